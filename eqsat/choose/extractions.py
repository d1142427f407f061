"""Extractions: equal problems of one turn are solved once.

A turn chooses from the e-graph after its first phase and from the final one. Regions in which later
phases found nothing pose the same problem twice.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from eqsat.extract import Choice, Graph, Method, extract


class Extractions:
    """Extracts, and remembers the choices by their problems."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Choice] = {}

    def extract(self, graph: Graph, initial: Mapping[int, int], method: Method, time_limit: float | None, work: float, gap: float) -> Choice:
        """Returns the choice that `extract` makes. One within a time limit is not remembered, since
        it may be the result of less work.
        """
        key = (graph.classes, tuple(graph.nodes), tuple(graph.roots), tuple(graph.limits), frozenset(initial.items()), method, work, gap)
        found = self._known.get(key)
        if found is None:
            found = extract(graph, method=method, initial=initial, time_limit=time_limit, work=work, gap=gap)
            if time_limit is None:
                self._known[key] = found
        return found
