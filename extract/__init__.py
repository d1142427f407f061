"""Extraction of one program from an e-graph by DAG cost, on plain data: `Graph` comes in, `Choice` goes out, `extract` says what is promised."""

from __future__ import annotations

import time
from collections.abc import Mapping

from .graph import Choice, ExtractionError, Graph, Node, check, walk
from .limits import within_limits
from .problem import Problem, prepare
from .search import Budget, Search

__all__ = ["Choice", "ExtractionError", "Graph", "Node", "check", "extract"]


def extract(graph: Graph, *, initial: Mapping[int, int] | None = None, time_limit: float | None = None) -> Choice:
    """One node for each class that the roots need, without cycles, so that the sum of the costs of the distinct nodes is small and the limits hold.

    `initial` (class to node; what the roots do not reach is ignored) is a choice already known: the result is never worse, it is the start of a second
    search, and it is what comes back where nothing better within the limits is found. Without `time_limit` (seconds) the result depends on the
    arguments alone; with it the search may stop earlier, and still returns a valid choice.

    An ExtractionError says that the graph is malformed, that a needed class has no finite acyclic choice, that `initial` is no choice of the graph, or
    that no choice within the limits was found (which is a proof only where the message says so). The result has passed `check`.
    """
    deadline = None if time_limit is None else time.perf_counter() + time_limit
    problem = prepare(graph)
    known = None if initial is None else walk(graph, initial)
    if known is not None and any(problem.is_excluded(n) for n in known.values()):
        known = None
    picks = _picks(problem, known, deadline)
    choice = _choice(graph, problem, picks)
    check(graph, choice)
    return choice


def _picks(problem: Problem, known: dict[int, int] | None, deadline: float | None) -> list[int]:
    """The best pick of every class that was found, within the limits; of two equally good ones that which comes from `known`."""
    searches: list[Search] = []
    if known is not None:
        search = Search(problem, Budget.of(problem, deadline))
        search.adopt(known)
        searches.append(search)
    if known is None or problem.free:
        search = Search(problem, Budget.of(problem, deadline))
        search.start()
        searches.append(search)
    if problem.free:
        for search in searches:
            search.improve()
    least = min(search.total for search in searches)
    for search in searches:
        if search.total == least and problem.fits(search.totals()):
            return search.pick
    return within_limits(problem, [search.pick for search in searches], known, deadline)


def _choice(graph: Graph, problem: Problem, picks: list[int]) -> Choice:
    nodes = walk(graph, {c: n for c, n in enumerate(picks) if n >= 0})
    total, bound = sum(problem.weight[n] for n in nodes.values()), problem.bound()
    cost, tie = divmod(total, problem.tie_base)
    resources = tuple(sum(amount[n] for n in nodes.values()) / unit for amount, unit in zip(problem.amounts, problem.amount_units, strict=True))
    status = "optimal" if total == bound else "feasible"
    return Choice(nodes, problem.cost.back(cost), problem.tie.back(tie), resources, status, problem.cost.back(bound // problem.tie_base))
