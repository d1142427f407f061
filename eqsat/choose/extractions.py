"""Extractions: equal problems of one turn are solved once.

A turn chooses from the e-graph after its first phase and from the final one. Regions in which later
phases found nothing pose the same problem twice. A graph whose best choice stores too many bytes
poses its problem again, within a limit.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Mapping
from dataclasses import field

from eqsat.extract import Choice, Graph, Method, Unlimited, extract
from eqsat.frozen import mutable


@mutable
class _Known:
    """What is known of one graph."""

    choices: dict[tuple[float, ...], Choice] = field(default_factory=dict[tuple[float, ...], Choice])
    """By the limits."""
    unlimited: Unlimited = field(default_factory=Unlimited)


class Extractions:
    """Extracts, and remembers the choices by their problems."""

    def __init__(self) -> None:
        self._known: dict[bytes, _Known] = {}

    def extract(self, graph: Graph, initial: Mapping[int, int], method: Method, time_limit: float | None, work: float, gap: float) -> Choice:
        """Returns the choice that `extract` makes. One within a time limit is not remembered, since
        it may be the result of less work.
        """
        nodes = [(node.eclass, node.cost, node.children, node.resources, node.tie) for node in graph.nodes]
        problem = (graph.classes, nodes, list(graph.roots), sorted(initial.items()), method, work, gap)
        # Thousands of problems would take much memory as they are. Later versions of the format depend
        # on which objects are one.
        key = hashlib.blake2b(marshal.dumps(problem, 2), digest_size=16).digest()
        known = self._known.setdefault(key, _Known())
        found = known.choices.get(graph.limits)
        if found is None:
            found = extract(graph, method=method, initial=initial, time_limit=time_limit, work=work, gap=gap, unlimited=known.unlimited)
            if time_limit is None:
                known.choices[graph.limits] = found
        return found
