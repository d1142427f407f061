"""Local search: moves on a choice; moves that gain are kept.

A tree-cost pass proposes a node for every class, in use or not; classes in use are free for it
(`State.resettle`). Three kinds of moves follow. `sweep` changes the node of one class. `share`
brings an unused class into use if several users gain by it together, such as one product merged
from many. `leave` makes all users of a shared class turn away from it at once.

The search is deterministic: its budget counts steps, not seconds.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from .state import State

PARTNERS = 64
"""The most classes that a joint move changes. Larger moves are unlikely to gain."""


class Search(State):
    """A search from a state. Each move below keeps the total or lowers it."""

    def improve(self, enough: Callable[[], bool] = lambda: False) -> None:
        """Take moves until none gains, the budget is spent, or the choice is good enough."""
        while not self.budget.spent():
            self.resettle()
            before = self.total
            while self.sweep() and not self.budget.spent():
                self.resettle()
            if enough():
                return
            self.joint()
            if self.total >= before:
                return

    def sweep(self) -> bool:
        """Give each class in use its best node, one at a time; tell whether the total fell."""
        before = self.total
        for c in self.contended:
            if self.refs[c]:
                if self.budget.spent():
                    break
                self.best(c)
        return self.total < before

    def joint(self) -> None:
        """Try to share each class with several possible users, and to leave each shared class."""
        for c in self.problem.free:
            if len(self.problem.users[c]) > 1:
                if self.budget.spent():
                    return
                if not self.refs[c]:
                    self.share(c)
                elif self.refs[c] > 1 and not self._forced[c]:
                    self.leave(c)

    def share(self, shared: int) -> bool:
        """Bring `shared` into use for every user that gains; keep this if the total falls."""
        problem, refs, prices, pick = self.problem, self.refs, self.price, self.pick
        before, weight, children, users, owner, order = self.total, self.weight, problem.children, problem.users, problem.owner, problem.order
        fresh = self._add((shared,))
        proposals: list[tuple[int, int, int]] = []
        partners: dict[int, None] = {}
        # The order of visits is by component, children first. So a price is final when a parent
        # reads it, except within a cycle.
        heap = sorted({(order[owner[n]], n) for c in fresh for n in users[c]})
        self.budget.steps -= len(heap)
        while heap and len(partners) + len(proposals) < PARTNERS:
            _, n = heapq.heappop(heap)
            c = owner[n]
            self.budget.steps -= 1
            if refs[c]:
                if pick[c] != n:
                    partners[c] = None
                continue
            price, limit = weight[n], prices[c]
            for child in children[n]:
                if price >= limit:
                    break
                if not refs[child]:
                    price += prices[child]
            if price < limit and not self.closes_cycle(c, n):
                proposals.append((c, pick[c], limit))
                self.repick(c, n)
                prices[c] = price
                self.budget.steps -= len(users[c])
                for user in users[c]:
                    heapq.heappush(heap, (order[owner[user]], user))
        moved: list[tuple[int, int]] = []
        for c in partners:
            if refs[c]:
                old = pick[c]
                if self.best(c):
                    moved.append((c, old))
        self._drop((shared,))
        if self.total < before and self.allowed():
            return True
        self._add((shared,))
        self._undo(moved)
        self._drop((shared,))
        for c, old, price in reversed(proposals):
            self.repick(c, old)
            prices[c] = price
        return False

    def leave(self, shared: int) -> bool:
        """Make all users of `shared` do without it; keep this if the total falls."""
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
