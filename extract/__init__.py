"""Extraction of one program from an e-graph by DAG cost, on plain data: `Graph` comes in, `Choice` goes out, `extract` says what is promised."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from .choosing import WORK, Method, choose
from .graph import Choice, ExtractionError, Graph, Node, Term, check
from .memory import demand

__all__ = ["Choice", "ExtractionError", "Graph", "Method", "Node", "Term", "check", "extract"]


def extract(
    graph: Graph,
    *,
    method: Method = "exact",
    initial: Mapping[int, int] | None = None,
    time_limit: float | None = None,
    work: float = WORK,
    memory_limit: int | None = None,
    reprice: Callable[[Choice], Iterable[Term]] | None = None,
) -> Choice:
    """One node for each class that the roots need, without cycles, so that the sum of the costs of the distinct nodes, and of terms, is least.

    `method`: "exact" reduces the graph, cuts it into independent problems, searches each, and proves that the result is the best or lets a solver improve
    it, for as much `work` as is given (deterministic, about seconds of one core); "greedy" only searches; "tree" takes for each class the node of least
    tree cost, in which nothing is shared, whatever terms say, and repairs that only where it exceeds limits: it is there to be compared with.

    `initial` (class to node; what the roots do not reach is ignored) is a choice already known: the result is never worse (but for "tree"), and of equally
    good choices it is the one that changes fewest nodes. Without `time_limit` (seconds) the result depends on the arguments alone; with it work may stop
    earlier, and there still is a valid choice. With `memory_limit` (bytes) a graph that needs more is refused before the work begins.

    `reprice` is called with each choice that is found, and gives terms that it lacks, costs that only the whole shows; the extraction begins anew
    with them, until none are given. The bound is that of the last problem.

    An ExtractionError says that the graph is malformed, that a needed class has no finite acyclic choice, that `initial` is no choice of the graph, or
    that no choice within the limits was found (which is a proof only where the message says so). The result has passed `check`.
    """
    deadline = None if time_limit is None else time.perf_counter() + time_limit
    if memory_limit is not None:
        demand(graph, memory_limit)
    choice = choose(graph, method, initial, deadline, work)
    check(graph, choice)
    while reprice is not None:
        terms = tuple(term for term in reprice(choice) if term not in graph.terms)
        if not terms:
            break
        graph = replace(graph, terms=graph.terms + terms)
        choice = choose(graph, method, initial, deadline, work)
        check(graph, choice)
    return choice
