"""Passes: one direction of a rule, looked for at the live values of a term graph.

A pass remembers where it has looked, and looks again only where something has changed that a match
could contain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eqsat.egraph.plain_matching import Assignments
from eqsat.greedy.term_graph import TermGraph
from eqsat.language.firing import Firing
from eqsat.language.query import MappedAtom, NodeAtom, OutputAtom, Pattern
from eqsat.terms.terms import PROJECTION

_SHARE = 4_000  # terms looked at in one place
_BUDGET = 1 << 40  # terms looked at in all: time has a limit of its own


class Pass:
    """The matches of one direction of a rule in one term graph."""

    def __init__(self, graph: TermGraph, firing: Firing) -> None:
        self.firing = firing
        pattern = firing.compiled.pattern
        self._graph = graph
        # A match can become possible by a change below any of its roots, so the search begins at
        # each.
        self._searches = [Assignments(pattern, graph, _BUDGET, _SHARE, root) for root in pattern.roots]
        self._depth = depth(pattern)
        self._looked: dict[tuple[int, int], int] = {}
        self._refused: dict[tuple[int, int], int] = {}

    def places(self) -> Iterator[tuple[int, int]]:
        """Yields the places where a match may begin that were not looked at since the last change:
        the number of a root, and a value. Values come in topological order.
        """
        graph = self._graph
        for number, search in enumerate(self._searches):
            classes = [term.eclass for term in graph.heads(graph.terms.signature(search.root.signature))]
            if search.root.variable != search.anchor:
                classes = [output.eclass for eclass in classes for output in graph.direct(eclass, PROJECTION) if output.data == (search.output,)]
            for eclass in sorted(classes, key=lambda eclass: (graph.level[eclass], eclass)):
                if graph.is_alive(eclass) and self._is_new(number, eclass):
                    yield number, eclass

    def _is_new(self, number: int, eclass: int) -> bool:
        place = number, eclass
        looked = self._looked.get(place, -1)
        # A match that was too dear may pay after a change anywhere: its nodes may lose their other
        # users.
        return looked < self._graph.changed(eclass, self._depth) or self._refused.get(place, self._graph.clock) < self._graph.clock

    def matches(self, number: int, eclass: int) -> Iterator[tuple[int, Mapping[str, int]]]:
        """Yields the matches at a place that fire: the number of the firing, and the classes of the
        left side's variables.
        """
        self._looked[number, eclass] = self._graph.clock
        self._refused.pop((number, eclass), None)
        search = self._searches[number]
        for found in search.complete(eclass):
            firing = self.firing(*search.handles(found))
            if firing >= 0:
                yield firing, found.bindings

    def refuse(self, number: int, eclass: int) -> None:
        """Notes that a place has a match that was not worth its price."""
        self._refused[number, eclass] = self._graph.clock


def depth(pattern: Pattern) -> int:
    """Returns the most nodes between a root of a left side and a class that it reads."""
    atoms = {atom.variable: atom for atom in pattern.atoms if isinstance(atom, (NodeAtom, OutputAtom, MappedAtom))}
    known: dict[str, int] = {}

    def below(variable: str) -> int:
        if variable in known:
            return known[variable]
        match atoms.get(variable):
            case NodeAtom(inputs=inputs, items=items, rest=rest):
                found = 1 + max((below(name) for name in (*inputs, *items, rest) if name is not None), default=0)
            case OutputAtom(node=node):
                found = below(node)
            case MappedAtom(nodes=nodes, classes=classes, lists=lists):
                found = len(nodes) + max((below(name) for name in (*classes, *lists) if name in atoms), default=0)
            case _:
                found = 0
        known[variable] = found
        return found

    return max(map(below, pattern.roots.values()))
