"""Solve a part whose nodes occur in terms: search first, then let `proving` improve the result."""

from __future__ import annotations

from collections.abc import Mapping

from .budget import Budget
from .parts import Part
from .plain import Solution
from .proving import improve
from .search import Search
from .work import Work


def solve(part: Part, known: Mapping[int, int] | None, work: Work) -> Solution:
    """Return the best choice found that no term forbids, never heavier than `known`.

    If every choice found is forbidden, the result is forbidden too and weighs more than any other.
    """
    problem, nodes = part.with_terms()
    searches = [Search(problem, Budget.of(problem, work.deadline, fraction=work.fraction))]
    searches[0].start()
    if known is not None:
        local = {n: way for way, n in enumerate(nodes)}
        search = Search(problem, Budget.of(problem, work.deadline, fraction=work.fraction))
        search.adopt({index: local[known[c]] for index, c in enumerate(part.classes) if c in known})
        searches.append(search)
    start = problem.reached(searches[0].pick)
    weight: int | None = None
    for search in searches:
        search.improve()
        found = problem.reached(search.pick)
        other = problem.weigh(found)
        if other is not None and (weight is None or other < weight):
            weight, start = other, found
    ways, proved = improve(problem, start, weight, work)
    weight = problem.weigh(ways)
    bound = problem.bound() if proved is None else max(problem.bound(), proved)
    return Solution(problem.heaviest() if weight is None else weight, bound, tuple(nodes[way] for way in ways))
