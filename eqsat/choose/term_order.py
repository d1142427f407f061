"""The order of chosen terms, in which each follows its children."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping

from eqsat.terms.terms import Term


def children_first(terms: Mapping[int, Term], rank: Callable[[int], int]) -> list[int]:
    """Returns the classes of `terms`, children first. Of those whose children are there, the one of the
    least rank is next.
    """
    users: dict[int, list[int]] = {}
    missing: dict[int, int] = {}
    ready: list[tuple[int, int]] = []
    for eclass, term in terms.items():
        needed = set(term.children)
        missing[eclass] = len(needed)
        for child in needed:
            users.setdefault(child, []).append(eclass)
        if not needed:
            heapq.heappush(ready, (rank(eclass), eclass))
    order: list[int] = []
    while ready:
        _, eclass = heapq.heappop(ready)
        order.append(eclass)
        for user in users.get(eclass, ()):
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, (rank(user), user))
    return order
