"""The part of a left side that each of its nodes decides alone: the form of the node, and the steps
that look only at its own attributes and at the facts of its inputs.

If no term of a graph passes this part for some node, the left side has no match in the graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from eqsat.frozen import frozen
from eqsat.language.query import MappedAtom, NodeAtom, Pattern, Step
from eqsat.language.step_names import gives, reads, sources


@frozen
class Alone:
    """What a term must have to match one node of a left side.

    A column is an attribute, or after all attributes an operand: a single input or an item.
    """

    atom: NodeAtom
    sources: int = 0
    """The number of the sources of the left side."""
    columns: tuple[tuple[int, int], ...] = ()
    """The number of each source that the term gives, with its column."""
    same: tuple[tuple[int, int], ...] = ()
    """Pairs of columns of operands that are one value."""
    steps: tuple[Step, ...] = ()
    """The steps that the term decides, which names of other nodes do not change."""
    root: bool = False
    """Whether the term is all that the rule gives another form."""


def alone(pattern: Pattern) -> tuple[Alone, ...]:
    """The parts of the nodes of a left side."""
    roots = set(pattern.roots.values())
    bindable = {name for step in pattern.steps for name in gives(step)}
    found = [_of_node(pattern, atom, roots == {atom.variable}, bindable) for atom in pattern.atoms if isinstance(atom, NodeAtom)]
    # The steps for the items of a list are apart, with sources of their own.
    return (*found, *(Alone(node) for atom in pattern.atoms if isinstance(atom, MappedAtom) for node in atom.nodes))


def _of_node(pattern: Pattern, atom: NodeAtom, root: bool, bindable: set[str]) -> Alone:
    operands = (*atom.inputs, *atom.items)
    first = len(atom.attributes)
    named = [(variable, column) for column, variable in enumerate(operands, first) if variable is not None]
    numbers = {source: number for number, source in enumerate(pattern.sources)}
    given = [(numbers[name], column) for column, name in enumerate(atom.attributes) if isinstance(name, str) and name in numbers]
    given += [(pattern.facts[variable], column) for variable, column in named if variable in pattern.facts]
    same = tuple((one, other) for (name, one), (again, other) in combinations(named, 2) if name == again)
    steps = _decided(pattern.steps, {number for number, _ in given}, bindable)
    return Alone(atom, len(pattern.sources), tuple(given), same, steps, root)


def _decided(steps: Iterable[Step], given: set[int], bindable: set[str]) -> tuple[Step, ...]:
    """The steps that look only at the columns `given`, and at those of the `bindable` names that such
    steps bind.
    """
    known: set[str] = set()
    found: list[Step] = []
    for step in steps:
        if given.issuperset(sources(step)) and not (reads(step) & bindable) - known - gives(step):
            known |= gives(step)
            found.append(step)
    return tuple(found)
