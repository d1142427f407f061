"""Extraction: choose one program of least DAG cost from an e-graph.

This package works on plain data and knows nothing of ONNX. `extract` takes a `Graph` and returns a
`Choice`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from .choosing import WORK, Method, choose
from .graph import Choice, ExtractionError, Graph, Node, Term, check
from .memory import demand
from .unlimited import Unlimited

__all__ = ["Choice", "ExtractionError", "Graph", "Method", "Node", "Term", "Unlimited", "check", "extract"]


def extract(
    graph: Graph,
    *,
    method: Method = "exact",
    initial: Mapping[int, int] | None = None,
    time_limit: float | None = None,
    work: float = WORK,
    gap: float = 0.0,
    memory_limit: int | None = None,
    unlimited: Unlimited | None = None,
    reprice: Callable[[Choice], Iterable[Term]] | None = None,
) -> Choice:
    """Choose one node for each class that the roots need, without cycles, at least total cost.

    The total is the sum of the costs of the distinct chosen nodes and of the terms that apply.

    `method`:
    - "exact" reduces the graph, cuts it into independent problems and searches each. It then proves
      that the result is optimal, or lets a solver improve it. `work` bounds the solver's effort; it
      is deterministic, about seconds of one core. With `initial`, a result is good enough if it
      exceeds its bound by at most `gap` times the cost of `initial`: estimated costs are not worth
      a longer search.
    - "greedy" only searches.
    - "tree" takes the node of least tree cost in each class. Tree cost ignores sharing and terms.
      The method repairs its choice only where it exceeds limits; it exists for comparison.

    `initial` maps classes to nodes of a known choice; entries that the roots do not reach are
    ignored. The result is never worse than `initial`, except for "tree". Among equally good choices
    it is the one that changes fewest nodes, or one of few changes where only the solver could tell.

    Without `time_limit` (seconds) the result depends only on the arguments. With it, work may stop
    earlier, and the choice is still valid. `memory_limit` (bytes) refuses a graph that needs more
    before the work begins.

    `unlimited` keeps what "exact" finds before it looks at the limits. Pass one object to extractions
    that differ in their limits alone: the result is the same, and the later ones are quicker.

    `reprice` receives each choice found and returns terms the graph lacks: costs that only a whole
    choice reveals. The extraction starts again with these terms until none are new. The bound
    belongs to the last problem.

    An ExtractionError says that the graph is malformed, that a needed class has no finite acyclic
    choice, that `initial` is no choice of the graph, or that no choice within the limits was found.
    The last is a proof only where the message says so. The result has passed `check`.
    """
    deadline = None if time_limit is None else time.perf_counter() + time_limit
    if memory_limit is not None:
        demand(graph, memory_limit)
    choice = choose(graph, method, initial, deadline, work, gap, unlimited)
    check(graph, choice)
    while reprice is not None:
        terms = tuple(term for term in reprice(choice) if term not in graph.terms)
        if not terms:
            break
        graph = replace(graph, terms=graph.terms + terms)
        choice = choose(graph, method, initial, deadline, work, gap)
        check(graph, choice)
    return choice
