"""The halves of a left side: a rule with two roots is looked for one root at a time, so that matches are never enumerated in pairs.

Six thousand products of one input make eighteen million pairs, and six thousand matches of half of the rule. What both halves have is what they are
brought together by.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eqsat.language.pattern import Atom, FactAtom, NodeAtom, OutputAtom, Pattern


@dataclass(frozen=True, slots=True)
class Half:
    """A part of a query that is matched by itself: its atoms, its class variables with those of lists apart, and the sources that it reads."""

    root: str
    atoms: tuple[Atom, ...]
    variables: tuple[str, ...]
    lists: frozenset[str]
    sources: tuple[int, ...]
    facts: frozenset[int]  # those of the sources that are facts; others are attributes


def halves(pattern: Pattern) -> tuple[Half, ...]:
    """Two halves of a pattern with two roots, which have at most some classes in common; all of any other pattern as one."""
    structure = {atom.variable: atom for atom in pattern.atoms if not isinstance(atom, FactAtom)}
    roots = list(pattern.roots.values())
    below = [_below(root, structure) for root in roots]
    if len(roots) == 2 and not any(root in other for root, other in zip(roots, reversed(below), strict=True)):
        found = tuple(_half(pattern, root, variables, structure) for root, variables in zip(roots, below, strict=True))
        if {source for half in found for source in half.sources} == set(range(len(pattern.sources))):
            return found
    everything = dict.fromkeys(v for atom in pattern.atoms for v in ([atom.variable] if isinstance(atom, FactAtom) else _variables(atom)))
    return (_half(pattern, roots[0], everything, structure),)


def shared(found: tuple[Half, ...]) -> tuple[str, ...]:
    """The class variables that all halves have."""
    first, *rest = found
    return tuple(v for v in first.variables if all(v in half.variables for half in rest))


def shared_attributes(found: tuple[Half, ...]) -> tuple[int, ...]:
    """The sources that all halves read and that are attributes; of a class that they share one may know more than the other by now."""
    first, *rest = found
    facts = {source for half in found for source in half.facts}
    return tuple(source for source in first.sources if source not in facts and all(source in half.sources for half in rest))


def _variables(atom: NodeAtom | OutputAtom) -> Iterator[str]:
    yield atom.variable
    if isinstance(atom, OutputAtom):
        yield atom.node
    else:
        yield from (v for v in (*atom.inputs, *atom.items, atom.rest) if v is not None)


def _below(root: str, structure: dict[str, NodeAtom | OutputAtom]) -> dict[str, None]:
    """The class variables that a root reaches."""
    found = {root: None}
    waiting = [root]
    while waiting:
        atom = structure.get(waiting.pop())
        for variable in () if atom is None else _variables(atom):
            if variable not in found:
                found[variable] = None
                waiting.append(variable)
    return found


def _half(pattern: Pattern, root: str, variables: dict[str, None], structure: dict[str, NodeAtom | OutputAtom]) -> Half:
    atoms = tuple(atom for atom in pattern.atoms if atom.variable in variables)
    lists = {atom.rest for atom in structure.values() if isinstance(atom, NodeAtom) and atom.rest is not None}
    lists |= {atom.variable for atom in atoms if isinstance(atom, FactAtom) and atom.listed}
    read = {atom.source for atom in atoms if isinstance(atom, FactAtom)}
    read |= {column for atom in atoms if isinstance(atom, NodeAtom) for column in atom.attributes if isinstance(column, str)}
    sources = tuple(position for position, source in enumerate(pattern.sources) if source in read)
    facts = frozenset(pattern.sources.index(atom.source) for atom in atoms if isinstance(atom, FactAtom) and atom.source in read)
    return Half(root, atoms, tuple(variables), frozenset(lists & set(variables)), sources, facts)
