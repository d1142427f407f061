"""A choice under change: reference counts give the exact change of DAG cost of every move, and moves are kept while they gain.

A tree-cost pass, in which what is paid for already is free, proposes a node for every class, chosen or not (`settle`). Three kinds of moves follow:
another node for one class (`sweep`); a class that nobody uses yet but that pays once several use it, such as one product merged from many (`share`);
and a class that several use and that pays to be left by all of them at once (`leave`). A move costs as many steps as classes it adds and drops, whatever
the depth of what both nodes have in common, so that no set of costs is ever stored. Everything is deterministic; a budget counts steps, not seconds.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .problem import Problem

PARTNERS = 64
"""A joint move changes no more classes than this at once; beyond it the trial costs more than it is likely to gain."""


STEPS, STEPS_PER_FREE_CLASS = 2_000_000, 200
"""The budget of one search; a million steps take about a second."""


@dataclass(slots=True)
class Budget:
    """Steps that may still be taken, and the time after which none is."""

    steps: int
    deadline: float | None = None

    @staticmethod
    def of(problem: Problem, deadline: float | None, *, fraction: int = 1) -> Budget:
        """Enough for small graphs to be searched to the end, and seconds for large ones; one part in `fraction` of that."""
        return Budget((STEPS + STEPS_PER_FREE_CLASS * len(problem.free)) // fraction, deadline)

    def spent(self) -> bool:
        return self.steps <= 0 or (self.deadline is not None and time.perf_counter() >= self.deadline)


class Search:
    """A choice for `problem` under integer node weights `weight`.

    Invariants: `pick[c]` is a usable node for every class that a root reaches, and following picks from any class meets no cycle; `refs[c]` counts the
    chosen classes and roots that use c; `total` is the weight of the free classes with references, each once. Classes that are not free have a
    single node and are in every choice: they are never moved, and not in `total`. With `tracked`, `used` is what all chosen nodes use of each resource.
    While `strict`, which wants `tracked`, no move is kept that leaves the limits. Terms are in `total` where they apply; what they forbid costs more
    than any choice.
    """

    def __init__(self, problem: Problem, budget: Budget, *, tracked: bool = False) -> None:
        self.problem = problem
        self.budget = budget
        self.strict = False
        self.weight: Sequence[int] = ()
        self.pick = [row[0] if row else -1 for row in problem.nodes_of]
        self.contended = sorted((c for c in problem.free if len(problem.nodes_of[c]) > 1), key=lambda c: (problem.order[c], c))
        self.refs = [0] * len(self.pick)
        self.price = [0] * len(self.pick)
        self.total = 0
        self._cap = 0
        self._amounts = problem.amounts if tracked else []
        self._forced = [0] * len(self.pick)
        is_free = bytearray(len(self.pick))
        for c in problem.free:
            is_free[c] = 1
        for c in problem.roots:
            self._forced[c] += 1
        for row, needed, free in zip(problem.nodes_of, problem.needed, is_free, strict=True):
            if needed and not free:
                for child in problem.children[row[0]]:
                    self._forced[child] += 1
        for c, needed in enumerate(problem.needed):
            # What is not free never comes into use nor falls out of it, whoever refers to it.
            self._forced[c] += needed and not is_free[c]
        self._parts = sorted({problem.order[c] for c in problem.free})
        forced = [row[0] for row, needed, free in zip(problem.nodes_of, problem.needed, is_free, strict=True) if needed and not free]
        self._used = [sum(amount[n] for n in forced) for amount in self._amounts]
        self.used = list(self._used)
        self._terms_of: dict[int, list[int]] = {}
        self._sole_of: dict[int, list[int]] = {}
        for t, term in enumerate(problem.terms):
            for n in term.nodes:
                self._terms_of.setdefault(n, []).append(t)
            if term.sole >= 0:
                self._sole_of.setdefault(term.sole, []).append(t)
        self._missing = [len(term.nodes) for term in problem.terms]
        self._applied = [False] * len(problem.terms)
        self._bonus: list[int] = []
        self.reweigh(problem.weight)

    # -- states ------------------------------------------------------------------------------------------------------------------------------------

    def reweigh(self, weight: Sequence[int], shift: int = 0) -> None:
        """Search by other weights from now on, which are those of the problem times 2 ** `shift`, or more."""
        self.weight = weight
        self._cap = 1 + sum(max(weight[n] for n in self.problem.nodes_of[c]) for c in self.problem.free)
        changes = [term.weight for term in self.problem.terms if term.weight is not None]
        forbidden = self._cap + (sum(abs(change) for change in changes) << shift)
        self._bonus = [forbidden if term.weight is None else term.weight << shift for term in self.problem.terms]
        self.total = sum(weight[self.pick[c]] for c in self.problem.free if self.refs[c])
        self.total += sum(bonus for bonus, applied in zip(self._bonus, self._applied, strict=True) if applied)

    def start(self, pick: Sequence[int] | None = None) -> None:
        """Begin with the picks given, which must be acyclic, or with the tree-cost picks in which all that every choice needs is free."""
        if pick is None:
            self._settle(paid=self.problem.needed, fixed=bytes(len(self.pick)))
        else:
            self.pick = list(pick)
        self.refs = list(self._forced)
        self.used = list(self._used)
        self._missing = [len(term.nodes) for term in self.problem.terms]
        self._applied = [False] * len(self._missing)
        self.total = 0
        for c in self.problem.free:
            if self._forced[c]:
                self._account(self.pick[c], 1)
        for c in self.problem.free:
            if self._forced[c]:
                self._add(self.problem.children[self.pick[c]])

    def start_from_trees(self) -> None:
        """Begin with the node of least tree cost for each class, in which nothing is shared. (Trees count as equal beyond 2 ** 4096 times everything.)"""
        self._cap <<= 4096
        self._settle(paid=bytes(len(self.pick)), fixed=bytes(len(self.pick)))
        self.start(self.pick)

    def adopt(self, picks: Mapping[int, int]) -> None:
        """Begin with `picks`, a choice that is complete and acyclic over usable nodes; classes outside it get the node that is cheapest beside it."""
        fixed = bytearray(len(self.pick))
        for c, n in picks.items():
            self.pick[c] = n
            fixed[c] = 1
        self._settle(paid=fixed, fixed=fixed)
        self.start(self.pick)

    def totals(self) -> list[int]:
        """What the choice uses of each resource, classes that are not free included."""
        in_use = [self.pick[c] for c, count in enumerate(self.refs) if count]
        return [sum(amount[n] for n in in_use) for amount in self.problem.amounts]

    def forbidden(self) -> bool:
        """Whether the choice has a combination that a term forbids."""
        return any(applied and term.weight is None for applied, term in zip(self._applied, self.problem.terms, strict=True))

    def allowed(self) -> bool:
        """Whether a move may end here."""
        return not self.strict or self.problem.fits(self.used)

    # -- moves -------------------------------------------------------------------------------------------------------------------------------------

    def _account(self, n: int, sign: int) -> None:
        self.total += sign * self.weight[n]
        for r, amount in enumerate(self._amounts):
            self.used[r] += sign * amount[n]
        if self._terms_of:
            for t in self._terms_of.get(n, ()):
                self._missing[t] -= sign
                self._apply(t)

    def _apply(self, t: int) -> None:
        """Bring term t into the total, or out of it, as the choice is now."""
        sole = self.problem.terms[t].sole
        applies = not self._missing[t] and (sole < 0 or self.refs[sole] == 1)
        if applies != self._applied[t]:
            self._applied[t] = applies
            self.total += self._bonus[t] if applies else -self._bonus[t]

    def _add(self, classes: Sequence[int]) -> list[int]:
        """One reference more to each of `classes`; the classes that come into use."""
        refs, pick, children, sole_of = self.refs, self.pick, self.problem.children, self._sole_of
        added: list[int] = []
        stack = list(classes)
        while stack:
            c = stack.pop()
            refs[c] += 1
            if c in sole_of:
                for t in sole_of[c]:
                    self._apply(t)
            if refs[c] == 1:
                self._account(pick[c], 1)
                added.append(c)
                stack += children[pick[c]]
        self.budget.steps -= len(added) + 1
        return added

    def _drop(self, classes: Sequence[int]) -> None:
        """One reference less to each of `classes`."""
        refs, pick, children, sole_of = self.refs, self.pick, self.problem.children, self._sole_of
        stack = list(classes)
        while stack:
            c = stack.pop()
            refs[c] -= 1
            if c in sole_of:
                for t in sole_of[c]:
                    self._apply(t)
            if not refs[c]:
                self._account(pick[c], -1)
                stack += children[pick[c]]

    def move(self, c: int, n: int) -> None:
        """Choose node n for class c, which is in use; the caller knows that this closes no cycle (`closes_cycle`)."""
        old = self.pick[c]
        self.pick[c] = n
        self._account(n, 1)
        self._account(old, -1)
        # New children first: what both nodes need stays in use throughout, and costs no step.
        self._add(self.problem.children[n])
        self._drop(self.problem.children[old])

    def closes_cycle(self, c: int, n: int) -> bool:
        """Whether class c is reached, through picks, from the children of its node n."""
        order, pick, children = self.problem.order, self.pick, self.problem.children
        part = order[c]
        if len(self.problem.component[part]) == 1:
            return False
        stack = [child for child in children[n] if order[child] == part]
        seen = set(stack)
        while stack:
            here = stack.pop()
            if here == c:
                self.budget.steps -= len(seen)
                return True
            for child in children[pick[here]]:
                if order[child] == part and child not in seen:
                    seen.add(child)
                    stack.append(child)
        self.budget.steps -= len(seen)
        return False

    def best(self, c: int, banned: frozenset[int] | set[int] = frozenset()) -> bool:
        """Move class c, in use, to its node of smallest total that has no banned child; whether the node changed. Ties keep what is."""
        first = self.pick[c]
        best = first if not banned or banned.isdisjoint(self.problem.children[first]) else -1
        least = self.total
        for n in self.problem.nodes_of[c]:
            if n != first and banned.isdisjoint(self.problem.children[n]) and not self.closes_cycle(c, n):
                self.move(c, n)
                if (best < 0 or self.total < least) and self.allowed():
                    best, least = n, self.total
        if best < 0:
            best = first
        if self.pick[c] != best:
            self.move(c, best)
        return self.pick[c] != first

    # -- neighbourhoods ----------------------------------------------------------------------------------------------------------------------------

    def improve(self) -> None:
        """Take moves until none gains or the budget is spent."""
        while not self.budget.spent():
            self.resettle()
            before = self.total
            while self.sweep() and not self.budget.spent():
                self.resettle()
            self.joint()
            if self.total >= before:
                return

    def resettle(self) -> None:
        """Give each class that is not in use the node that would be cheapest beside what is."""
        in_use = bytes(1 if count else 0 for count in self.refs)
        self._settle(paid=in_use, fixed=in_use)

    def sweep(self) -> bool:
        """The best node for each class in use, one class at a time; whether the total fell."""
        before = self.total
        for c in self.contended:
            if self.refs[c]:
                if self.budget.spent():
                    break
                self.best(c)
        return self.total < before

    def joint(self) -> None:
        """Try each class that several could share, and each that several do share."""
        for c in self.problem.free:
            if len(self.problem.users[c]) > 1:
                if self.budget.spent():
                    return
                if not self.refs[c]:
                    self.share(c)
                elif self.refs[c] > 1 and not self._forced[c]:
                    self.leave(c)

    def share(self, shared: int) -> bool:
        """Bring `shared` into use, let all who gain turn to it, and keep that if the sum is a gain."""
        before, weight, children = self.total, self.weight, self.problem.children
        fresh = self._add((shared,))
        proposals: list[tuple[int, int, int]] = []
        partners: dict[int, None] = {}
        # Nodes by component, children first, so that a price is final, but for cycles, when a parent reads it.
        heap = sorted({(self.problem.order[self.problem.owner[n]], n) for c in fresh for n in self.problem.users[c]})
        self.budget.steps -= len(heap)
        while heap and len(partners) + len(proposals) < PARTNERS:
            _, n = heapq.heappop(heap)
            c = self.problem.owner[n]
            self.budget.steps -= 1
            if self.refs[c]:
                if self.pick[c] != n:
                    partners[c] = None
                continue
            price = weight[n] + sum(0 if self.refs[child] else self.price[child] for child in children[n])
            if price < self.price[c] and not self.closes_cycle(c, n):
                proposals.append((c, self.pick[c], self.price[c]))
                self.pick[c], self.price[c] = n, price
                self.budget.steps -= len(self.problem.users[c])
                for user in self.problem.users[c]:
                    heapq.heappush(heap, (self.problem.order[self.problem.owner[user]], user))
        moved: list[tuple[int, int]] = []
        for c in partners:
            if self.refs[c]:
                old = self.pick[c]
                if self.best(c):
                    moved.append((c, old))
        self._drop((shared,))
        if self.total < before and self.allowed():
            return True
        self._add((shared,))
        self._undo(moved)
        self._drop((shared,))
        for c, pick, price in reversed(proposals):
            self.pick[c], self.price[c] = pick, price
        return False

    def leave(self, shared: int) -> bool:
        """Make all users of `shared` do without it, and keep that if the sum is a gain."""
        banned = {shared}
        stack = [shared]
        partners: list[int] = []
        while stack:
            for n in self.problem.users[stack.pop()]:
                c = self.problem.owner[n]
                self.budget.steps -= 1
                if not self.refs[c] or self.pick[c] != n or c in banned:
                    continue
                if len(self.problem.nodes_of[c]) > 1:
                    partners.append(c)
                elif self._forced[c]:
                    return False
                else:
                    banned.add(c)
                    stack.append(c)
            if len(partners) + len(banned) > PARTNERS:
                return False
        before = self.total
        moved: list[tuple[int, int]] = []
        for c in dict.fromkeys(partners):
            old = self.pick[c]
            if self.refs[c] and self.best(c, banned):
                moved.append((c, old))
        if self.total < before and self.allowed():
            return True
        self._undo(moved)
        return False

    def _undo(self, moved: list[tuple[int, int]]) -> None:
        for c, old in reversed(moved):
            self.move(c, old)

    # -- proposals ---------------------------------------------------------------------------------------------------------------------------------

    def _settle(self, paid: bytes | bytearray, fixed: bytes | bytearray) -> None:
        """Set `pick` and `price` of all free classes that are not `fixed`: the node of least tree cost, where what is `paid` costs its users nothing.

        Picks stay acyclic: within a component classes are settled in order of cost, as Knuth's generalization of Dijkstra's algorithm does, each on classes
        that were settled before it. Tree costs grow exponentially with depth where no sharing is seen; they are capped at the weight of everything.
        """
        problem, weight, price, cap = self.problem, self.weight, self.price, self._cap
        nodes_of, children, pick = problem.nodes_of, problem.children, self.pick
        self.budget.steps -= len(self._parts)
        for part in self._parts:
            members = problem.component[part]
            if len(members) > 1:
                self._settle_cycle(members, paid, fixed)
                continue
            (c,) = members
            if fixed[c]:
                price[c] = weight[pick[c]]
                continue
            least = -1
            for n in nodes_of[c]:
                cost = weight[n]
                for child in children[n]:
                    if not paid[child]:
                        cost += price[child]
                if least < 0 or cost < least:
                    least, pick[c] = cost, n
            price[c] = least if least < cap else cap

    def _settle_cycle(self, members: list[int], paid: bytes | bytearray, fixed: bytes | bytearray) -> None:
        problem, weight, price = self.problem, self.weight, self.price
        part = problem.order[members[0]]
        # Within the component even what is paid counts, unless fixed: the order by cost has to be an order in which children come first.
        cost: dict[int, int] = {}
        missing: dict[int, int] = {}
        settled: set[int] = set()
        heap: list[tuple[int, int, int]] = []
        for c in members:
            if fixed[c]:
                settled.add(c)
                price[c] = weight[self.pick[c]]
        for c in members:
            if c in settled:
                continue
            for n in problem.nodes_of[c]:
                cost[n] = weight[n]
                missing[n] = 0
                for child in problem.children[n]:
                    if problem.order[child] == part and child not in settled:
                        missing[n] += 1
                    elif not paid[child]:
                        cost[n] += price[child]
                if not missing[n]:
                    heap.append((cost[n], c, n))
        heapq.heapify(heap)
        self.budget.steps -= len(members)
        while heap:
            least, c, n = heapq.heappop(heap)
            if c in settled:
                continue
            settled.add(c)
            self.pick[c] = n
            price[c] = least if least < self._cap else self._cap
            for user in problem.users[c]:
                if user in missing and problem.owner[user] not in settled:
                    missing[user] -= 1
                    cost[user] += price[c]
                    if not missing[user]:
                        heapq.heappush(heap, (cost[user], problem.owner[user], user))
