"""The extraction methods: least trees, heuristic search, and search with proof.

Weights are exact integers inside this module. The `Choice` that leaves it has floats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from . import coupled, plain
from .budget import Budget
from .graph import Choice, ExtractionError, Graph, walk
from .parts import parts, without_cyclic_nodes
from .plain import Solution
from .preparation import prepare
from .problem import Problem
from .proving import improve
from .resources import within_limits
from .search import Search
from .unlimited import Unlimited
from .work import Work

WORK = 20.0
"""The default bound on the solver's deterministic time."""

Method = Literal["exact", "greedy", "tree"]


def choose(
    graph: Graph, method: Method, initial: Mapping[int, int] | None, deadline: float | None, work: float, gap: float = 0.0, unlimited: Unlimited | None = None
) -> Choice:
    """Make a choice by `method`. The caller still has to check it."""
    known = None if initial is None else walk(graph, initial)
    problem, scale, units = prepare(graph, known)
    if known is not None and any(problem.is_excluded(n) for n in known.values()):
        known = None
    # Less work also means shorter searches. Without a proof, a search takes half of the steps.
    spent = Work(deadline, work, max(1, round((WORK / max(work, 0.005)) ** 0.5))) if method == "exact" else Work(deadline, 0.0, 2)
    spent.changes = scale.change_base.bit_length() - 1
    begin = problem.weigh(list(known.values())) if gap and known is not None else None
    spent.slack = int(gap * max(0, begin or 0))
    if method == "tree":
        found = _least_trees(problem)
    elif method == "greedy":
        found = _searched(problem, known, spent)
    else:
        found = None if unlimited is None else unlimited.known(problem, spent)
        if found is None:
            found = _proved(problem, known, spent, begin)
            if unlimited is not None:
                unlimited.keep(problem, spent, found)
    limited = not problem.allows(found.picks)
    bound = found.bound
    if limited:
        found = _within_limits(problem, units, found, known, spent)
    weight = found.weight
    if weight == problem.heaviest():
        raise ExtractionError("no choice was found that has none of the combinations that terms forbid; this is no proof that there is none")
    cost, tie = scale.costs(weight)
    optimal = weight // scale.change_base == found.bound // scale.change_base
    return Choice(
        walk(graph, {problem.owner[n]: n for n in found.picks}),
        cost,
        tie,
        tuple(sum(amount[n] for n in found.picks) / unit for amount, unit in zip(problem.amounts, units, strict=True)),
        "optimal" if optimal else "feasible",
        scale.costs(min(found.bound, weight))[0],
        "choices within the limits" if problem.narrowed or (limited and found.bound > bound) else "all choices",
    )


def _least_trees(problem: Problem) -> Solution:
    if problem.free:
        # In a tree a forced class weighs once for each use, so every class counts as free.
        problem = replace(problem, free=[c for c, row in enumerate(problem.nodes_of) if row])
    search = Search(problem, Budget.of(problem, None))
    search.start_from_trees()
    return _lightest(problem, [search])


def _searched(problem: Problem, known: Mapping[int, int] | None, work: Work) -> Solution:
    """Search from scratch and from the known choice; return the lightest choice found."""
    searches: list[Search] = []
    if known is not None:
        searches.append(_begun(problem, known, work))
    if known is None or problem.free:
        searches.append(Search(problem, Budget.of(problem, work.deadline, fraction=work.fraction)))
        searches[-1].start()
    if problem.free:
        for search in searches:
            search.improve()
    return _lightest(problem, searches)


def _lightest(problem: Problem, searches: list[Search]) -> Solution:
    """Return the lightest of the searches' choices; ties go to the first search."""
    return _solution(problem, min(searches, key=lambda search: search.total).pick, problem.bound())


def _begun(problem: Problem, known: Mapping[int, int], work: Work) -> Search:
    search = Search(problem, Budget.of(problem, work.deadline, fraction=work.fraction))
    search.adopt(known)
    return search


def _proved(problem: Problem, known: Mapping[int, int] | None, work: Work, begin: int | None) -> Solution:
    """Solve each part without the limits, with the best proof that `work` allows.

    The known choice is the start of another search. Where a gap is allowed, `begin` is its weight. One that
    is no lighter starts none: what that finds is hardly ever more than the gap.
    """
    fixed = {c: row[0] for c, row in enumerate(problem.nodes_of) if problem.needed[c] and len(row) == 1}
    pick: dict[int, int] = {}
    bound = 0
    for part in parts(problem):
        solution = coupled.solve(part, known, work) if part.has_terms else plain.solve(part.kernel(), work)
        bound += solution.bound
        pick.update((problem.owner[n], n) for n in solution.picks)
        for c in part.classes:
            fixed.pop(c, None)
    bound += sum(problem.weight[n] for n in fixed.values())
    found = _solution(problem, {**fixed, **pick}, bound)
    if known is None or work.enough(found.weight, bound) or (begin is not None and begin >= found.weight):
        return found
    search = _begun(problem, known, work)
    search.improve()
    other = _solution(problem, search.pick, bound)
    return other if other.weight < found.weight else found


def _solution(problem: Problem, pick: Sequence[int] | Mapping[int, int], bound: int) -> Solution:
    """Make a solution of a pick. A pick that a term forbids weighs more than any other choice."""
    nodes = problem.reached(pick)
    weight = problem.weigh(nodes)
    return Solution(problem.heaviest() if weight is None else weight, bound, tuple(nodes))


def _within_limits(problem: Problem, units: Sequence[int], found: Solution, known: Mapping[int, int] | None, work: Work) -> Solution:
    """Start from a choice that exceeds the limits; find or prove the lightest one within them."""
    problem = without_cyclic_nodes(problem)
    start = _begun(problem, {problem.owner[n]: n for n in found.picks}, work).pick
    nodes = within_limits(problem, units, start, known, work.deadline, work.fraction)
    begin = list(found.picks) if nodes is None else problem.reached(nodes)
    weight = None if nodes is None else problem.weigh(begin)
    if weight is not None and work.enough(weight, found.bound):
        return _solution(problem, {problem.owner[n]: n for n in begin}, found.bound)
    ways, proved = improve(problem, begin, weight, work)
    if not problem.allows(ways):
        raise ExtractionError("no choice within the limits was found; this is no proof that there is none")
    return _solution(problem, {problem.owner[n]: n for n in ways}, found.bound if proved is None else max(found.bound, proved))
