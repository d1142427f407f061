"""Find a choice within resource limits: Lagrangian prices first, then a greedy pass.

The prices find how much cost to give up. The greedy pass works in exact costs and takes back
whatever still fits.

This runs only if the unlimited choice exceeds a limit. Feasibility is NP-hard in general: the
result is a good choice, not a proof.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .budget import Budget
from .graph import ExtractionError
from .problem import Problem
from .search import Search

SLOPES = 10
"""The most prices that are tried. Short searches have one less for each halving of their steps."""

FRACTION_BITS = 64
"""The significant bits of shares and ratios, which are integers."""

EMPHASES = 12
"""The number of shifts between resources before the limits count as unreachable."""


class _Point(NamedTuple):
    """A choice, by weight and by shares of the limits."""

    weight: int
    shares: int
    pick: list[int]


class _Limited:
    """The search within limits. `best` is the least weight so far, with its picks."""

    def __init__(self, problem: Problem, deadline: float | None, fraction: int) -> None:
        self.problem = problem
        self.deadline = deadline
        self.fraction = fraction
        self.slopes = max(1, SLOPES - fraction.bit_length())
        self.search = Search(problem, Budget.of(problem, deadline, fraction=fraction), tracked=True)
        self.best: tuple[int, list[int]] | None = None
        # Amounts of different resources add up as shares of their limits. If a limit is 0, all
        # amounts are 0 too: nodes that exceed a limit alone are gone.
        bits = FRACTION_BITS + max(limit.bit_length() for limit in problem.limits if limit is not None)
        self.share = [(1 << bits) // limit if limit else 0 for limit in problem.limits]
        # The ratio of a weight to shares keeps FRACTION_BITS significant bits even for a weight of
        # 1.
        self.ratio_bits = 2 * bits + max(sum(amount).bit_length() for amount in problem.amounts)
        self.emphasis = [1] * len(problem.limits)
        self.emphases = 0

    def late(self) -> bool:
        return self.deadline is not None and time.perf_counter() >= self.deadline

    def excess(self) -> int:
        """Return the total excess over the limits, in shares."""
        return sum(
            share * max(0, used - limit) for share, used, limit in zip(self.share, self.search.used, self.problem.limits, strict=True) if limit is not None
        )

    def exceeded(self) -> list[int]:
        """Return the resources that the current choice uses too much of."""
        return [r for r, limit in enumerate(self.problem.limits) if limit is not None and self.search.used[r] > limit]

    def keep(self) -> None:
        """Improve the current choice within the limits; keep it if it is the best so far.

        Joint moves wait for the end: they take the most time, and change little here.
        """
        self._begin_strict()
        while self._fill():
            self.search.resettle()
        self.search.improve(lambda: True)
        self._end_strict()

    def finish(self) -> list[int] | None:
        """Improve the best choice by all moves and return its picks; None if there is none."""
        if self.best is None:
            return None
        self.search.start(self.best[1])
        self._begin_strict()
        self.search.improve()
        self._end_strict()
        return self.best[1]

    def _begin_strict(self) -> None:
        search = self.search
        search.reweigh(self.problem.weight)
        search.budget = Budget.of(self.problem, self.deadline, fraction=self.fraction)
        search.strict = True

    def _end_strict(self) -> None:
        search = self.search
        search.strict = False
        if self.best is None or search.total < self.best[0]:
            self.best = search.total, list(search.pick)

    def _offers(self) -> list[tuple[int, int, int, int]]:
        """Return all moves: change of weight, change of shares, class, node."""
        search, offers = self.search, list[tuple[int, int, int, int]]()
        for c in search.contended:
            if not search.refs[c]:
                continue
            if search.budget.spent():
                break
            first, total, shares = search.pick[c], search.total, self._shares()
            for n in search.acyclic(c, [n for n in self.problem.nodes_of[c] if n != first]):
                search.move(c, n)
                offers.append((search.total - total, self._shares() - shares, c, n))
            if search.pick[c] != first:
                search.move(c, first)
        return offers

    def _shares(self) -> int:
        return sum(share * used for share, used in zip(self.share, self.search.used, strict=True))

    def _fill(self) -> bool:
        """Take the moves that save cost and fit, best ratio first; tell whether any was taken."""
        search = self.search
        gains = [offer for offer in self._offers() if offer[0] < 0]
        gains.sort(key=lambda offer: (0, offer[0]) if offer[1] <= 0 else (1, (offer[0] << self.ratio_bits) // offer[1]))
        taken = False
        for _, _, c, n in gains:
            taken |= self._take(c, n, search.total)
        return taken

    def _take(self, c: int, n: int, below: int) -> bool:
        """Move class c to node n if the total falls under `below` and the limits hold."""
        search = self.search
        old = search.pick[c]
        if not search.refs[c] or old == n or search.closes_cycle(c, n):
            return False
        search.move(c, n)
        if search.total < below and search.allowed():
            return True
        search.move(c, old)
        return False

    def repair(self) -> bool:
        """Move until the limits hold, least cost per saved share first; tell whether they do."""
        search = self.search
        search.reweigh(self.problem.weight)
        search.budget = Budget.of(self.problem, self.deadline, fraction=8 * self.fraction)
        while excess := self.excess():
            before = excess
            search.resettle()
            savings = [offer for offer in self._offers() if offer[1] < 0]
            savings.sort(key=lambda offer: (offer[0] << self.ratio_bits) // -offer[1])
            for _, _, c, n in savings:
                old = search.pick[c]
                if not search.refs[c] or old == n or search.closes_cycle(c, n):
                    continue
                search.move(c, n)
                now = self.excess()
                if now >= excess:
                    search.move(c, old)
                    continue
                excess = now
                if not excess:
                    return True
            if excess == before:
                return False
        return True

    def approach(self, resources: list[int], beyond: Sequence[int]) -> None:
        """Look for the lightest choice within the limits, from a lighter one `beyond` them.

        The slope between a choice within the limits and one beyond them is the price of a share at
        which both are as good. A choice that is better at this price takes the place of one of
        them. If there is none, both are on the lower hull, and the price is Lagrange's multiplier.
        The choice within is kept; the one beyond is repaired and then kept too.
        """
        if self.best is None and not self._begin(resources):
            return
        shares = self._emphasized(resources)
        near = self._point(self.search.pick if self.best is None else self.best[1], shares)
        far = self._point(beyond, shares)
        for _ in range(self.slopes):
            rise, run = near.weight - far.weight, far.shares - near.shares
            if rise <= 0 or run <= 0 or self.late():
                break
            fits = self._priced(shares, rise, run)
            found = self._point(self.search.pick, shares)
            if found.weight * run + found.shares * rise >= near.weight * run + near.shares * rise:
                break
            near, far = (found, far) if fits else (near, found)
        # The best choice so far has been improved already.
        if self.best is None or near.pick != self.best[1]:
            self.search.start(near.pick)
            self.keep()
        self.search.start(far.pick)
        if self.repair():
            self.keep()

    def _begin(self, resources: Sequence[int]) -> bool:
        """Search at a price beside which weights are negligible, until a choice fits the limits;
        tell whether one does.
        """
        while not self._priced(self._emphasized(resources), sum(weight for weight in self.problem.weight if weight > 0) + 1, 1):
            # A resource still exceeded weighs too little beside the others.
            exceeded = self.exceeded()
            if self.repair():
                self.keep()
            if len(resources) == 1 or self.emphases == EMPHASES or self.late():
                return False
            self.emphases += 1
            for r in exceeded:
                self.emphasis[r] *= 2
        return True

    def _emphasized(self, resources: Sequence[int]) -> list[int]:
        """Return the shares that each node uses, by the emphasis of each resource."""
        rows = [[self.emphasis[r] * self.share[r] * amount for amount in self.problem.amounts[r]] for r in resources]
        return [sum(shares) for shares in zip(*rows, strict=True)]

    def _priced(self, shares: Sequence[int], price: int, unit: int) -> bool:
        """Search with `unit` for each unit of weight and `price` for each share; tell whether the
        result fits.
        """
        weight = [w * unit + price * share for w, share in zip(self.problem.weight, shares, strict=True)]
        self.search.reweigh(weight, unit)
        self.search.budget = Budget.of(self.problem, self.deadline, fraction=8 * self.fraction)
        self.search.start()
        # Joint moves wait until a choice is kept: here they take the most time and change little.
        self.search.improve(lambda: True)
        return not self.excess()

    def _point(self, pick: Sequence[int], shares: Sequence[int]) -> _Point:
        """Return the weight and the shares of a choice, without those of classes in every choice."""
        pick = list(pick)
        self.search.reweigh(self.problem.weight)
        self.search.start(pick)
        used = sum(shares[pick[c]] for c in self.problem.free if self.search.refs[c])
        return _Point(self.search.total, used, pick)


def within_limits(
    problem: Problem, units: Sequence[int], start: Sequence[int], known: Mapping[int, int] | None, deadline: float | None, fraction: int = 1
) -> list[int] | None:
    """Return picks within the limits, or None if none are found.

    The result is no heavier than `known` if that fits the limits. `start` does not. An
    ExtractionError proves that no choice fits.
    """
    for r, limit in enumerate(problem.limits):
        least = sum(min(problem.amounts[r][n] for n in problem.nodes_of[c]) for c, needed in enumerate(problem.needed) if needed)
        if limit is not None and least > limit:
            unit = units[r]
            raise ExtractionError(f"no choice is within the limits: every one uses at least {least / unit!r} of resource {r}, the limit is {limit / unit!r}")
    limited = _Limited(problem, deadline, fraction)
    search = limited.search
    if known is not None:
        search.adopt(known)
        if not limited.excess():
            limited.keep()
    search.start(start)
    exceeded = limited.exceeded()
    if limited.repair():
        limited.keep()
    limited.approach(exceeded, start)
    every = [r for r, limit in enumerate(problem.limits) if limit is not None]
    if limited.best is None and every != exceeded:
        limited.approach(every, start)
    return limited.finish()
