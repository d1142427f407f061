"""The halves of a left side. A rule with two roots is searched one root at a time, so matches are
never enumerated in pairs.

Six thousand products of one input make eighteen million pairs, but only six thousand half-matches.
Two half-matches join on the variables they share.
"""

from __future__ import annotations

from collections.abc import Iterator

from eqsat.frozen import frozen
from eqsat.language.query import Atom, FactAtom, MappedAtom, NodeAtom, OutputAtom, Pattern


@frozen
class Half:
    """A part of a query that is matched by itself: its atoms, its class variables (those in `lists`
    are of lists), and the sources that it reads.
    """

    root: str
    atoms: tuple[Atom, ...]
    variables: tuple[str, ...]
    lists: frozenset[str]
    sources: tuple[int, ...]
    facts: frozenset[int]  # the sources that are facts; the others are attributes


def halves(pattern: Pattern) -> tuple[Half, ...]:
    """The two halves of a pattern with two roots, which share at most some classes. Any other
    pattern is one half.
    """
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
    """The class variables that all halves share."""
    first, *rest = found
    return tuple(v for v in first.variables if all(v in half.variables for half in rest))


def shared_attributes(found: tuple[Half, ...]) -> tuple[int, ...]:
    """The attributes that all halves read. Facts are left out, because the halves may have read
    different facts of a shared class.
    """
    first, *rest = found
    facts = {source for half in found for source in half.facts}
    return tuple(source for source in first.sources if source not in facts and all(source in half.sources for half in rest))


def _variables(atom: NodeAtom | OutputAtom | MappedAtom) -> Iterator[str]:
    yield atom.variable
    if isinstance(atom, OutputAtom):
        yield atom.node
    elif isinstance(atom, MappedAtom):
        yield from (*atom.lists, *atom.classes)
    else:
        yield from (v for v in (*atom.inputs, *atom.items, atom.rest) if v is not None)


def _below(root: str, structure: dict[str, NodeAtom | OutputAtom | MappedAtom]) -> dict[str, None]:
    """The class variables that are reachable from a root."""
    found = {root: None}
    waiting = [root]
    while waiting:
        atom = structure.get(waiting.pop())
        for variable in () if atom is None else _variables(atom):
            if variable not in found:
                found[variable] = None
                waiting.append(variable)
    return found


def _half(pattern: Pattern, root: str, variables: dict[str, None], structure: dict[str, NodeAtom | OutputAtom | MappedAtom]) -> Half:
    atoms = tuple(atom for atom in pattern.atoms if atom.variable in variables)
    lists = {atom.rest for atom in structure.values() if isinstance(atom, NodeAtom) and atom.rest is not None}
    lists |= {atom.variable for atom in atoms if isinstance(atom, FactAtom) and atom.listed}
    read = {atom.source for atom in atoms if isinstance(atom, FactAtom)}
    read |= {column for atom in atoms if isinstance(atom, MappedAtom) for column in atom.attributes}
    read |= {column for atom in atoms if isinstance(atom, NodeAtom) for column in atom.attributes if isinstance(column, str)}
    sources = tuple(position for position, source in enumerate(pattern.sources) if source in read)
    facts = frozenset(pattern.sources.index(atom.source) for atom in atoms if isinstance(atom, FactAtom) and atom.source in read)
    return Half(root, atoms, tuple(variables), frozenset(lists & set(variables)), sources, facts)
