"""The kernel of a problem: a smaller problem of the same least weight, reduced step by step.

A way is a node, or several nodes contracted into one; choosing a way chooses all its `picks`. Each
step removes or shortens ways and keeps the least weight of a choice. Only `prune` and `drop_cyclic`
are sound under limits and terms; the other steps assume that the objective is the sum of the
weights alone.

Most steps rest on closures. The closure of a class holds the classes that every acyclic choice with
this class contains: the class itself, and the intersection over its ways of the union of their
children's closures. Closures are the greatest solution of this equation, so cycles do not weaken
them. They are bit sets in integers.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from .components import components


class Kernel:
    """Classes with their ways, both numbered from 0.

    A class without ways is out of the problem.
    """

    def __init__(self, roots: list[int], ways: list[list[int]], weight: list[int], children: list[tuple[int, ...]], picks: list[tuple[int, ...]]) -> None:
        self.roots = roots
        self.ways = ways
        self.weight = weight
        self.children = children
        self.picks = picks
        self.owner = [-1] * len(weight)
        for c, row in enumerate(ways):
            for n in row:
                self.owner[n] = c

    def size(self) -> int:
        """Return the number of ways left."""
        return sum(map(len, self.ways))

    def classes(self) -> list[int]:
        """Return the classes left."""
        return [c for c, row in enumerate(self.ways) if row]

    # -- steps -------------------------------------------------------------------------------------

    def prune(self) -> bool:
        """Drop the ways that no acyclic choice contains and the classes that no root reaches.

        No acyclic choice contains a way if one of its children has no ways, or only cyclic ones.
        """
        before = self.size()
        owner, children = self.owner, self.children
        missing = [-1] * len(owner)
        users: list[list[int]] = [[] for _ in self.ways]
        founded = bytearray(len(self.ways))
        queue: list[int] = []
        for c, row in enumerate(self.ways):
            for n in row:
                below = children[n]
                if c in below:
                    continue
                missing[n] = len(below)
                for child in below:
                    users[child].append(n)
                if not below and not founded[c]:
                    founded[c] = 1
                    queue.append(c)
        while queue:
            for n in users[queue.pop()]:
                missing[n] -= 1
                if not missing[n] and not founded[owner[n]]:
                    founded[owner[n]] = 1
                    queue.append(owner[n])
        ways: list[list[int]] = [[] for _ in self.ways]
        reached = bytearray(len(self.ways))
        queue = list(self.roots)
        for root in queue:
            reached[root] = 1
        while queue:
            c = queue.pop()
            ways[c] = [n for n in self.ways[c] if not missing[n]]
            for n in ways[c]:
                for child in children[n]:
                    if not reached[child]:
                        reached[child] = 1
                        queue.append(child)
        self.ways = ways
        return self.size() < before

    def drop_cyclic(self, closures: Closures) -> bool:
        """Drop each way whose closure contains its own class: it is cyclic in every choice.

        This is sound under limits and terms too.
        """
        before = self.size()
        for members in closures.component:
            if len(members) > 1:
                for c in members:
                    self.ways[c] = [n for n in self.ways[c] if not closures.of_way(n) >> c & 1]
        return self.size() < before

    def dominate(self, closures: Closures) -> bool:
        """Drop each way that another way of its class dominates.

        The dominating way weighs no more, even with the least trees of its children that the
        dropped way's closure lacks. Children that need such a tree, or that count as present only
        because every choice needs them, must be in another component: then they cannot need the
        class itself.
        """
        trees = self._trees(closures)
        changed = False
        for c, row in enumerate(self.ways):
            if len(row) < 2:
                continue
            mask = closures.component_mask[closures.order[c]]
            aside = closures.needed & ~mask
            kept: list[int] = []
            for n in sorted(row, key=lambda n: (self.weight[n], len(self.children[n]), n)):
                have = closures.of_way(n) | aside
                for m in kept:
                    if self._stands_in(m, have, mask, self.weight[n] - self.weight[m], trees):
                        changed = True
                        break
                else:
                    kept.append(n)
            self.ways[c] = kept
        return changed

    def _stands_in(self, m: int, have: int, mask: int, margin: int, trees: Sequence[int]) -> bool:
        for child in self.children[m]:
            if not have >> child & 1:
                margin -= trees[child]
                if margin < 0 or mask >> child & 1:
                    return False
        return True

    def _trees(self, closures: Closures) -> list[int]:
        """Return the least tree cost of each class, in which nothing is shared.

        Adding a missing class to a choice costs at most this much.
        """
        # Tree costs grow exponentially with depth. Above the weight of everything they make no
        # difference.
        cap = 1 + sum([max([self.weight[n] for n in row]) for row in self.ways if row])
        tree = [cap] * len(self.ways)
        for members in closures.component:
            if len(members) > 1:
                self._settle(members, tree)
                continue
            (c,) = members
            for n in self.ways[c]:
                cost = self.weight[n]
                for child in self.children[n]:
                    cost += tree[child]
                if cost < tree[c]:
                    tree[c] = cost
        return tree

    def _settle(self, members: Sequence[int], tree: list[int]) -> None:
        """Set the least tree costs below the cap in a component, the least first."""
        sums: dict[int, int] = {}
        missing: dict[int, int] = {}
        users: dict[int, list[int]] = {c: [] for c in members}
        heap: list[tuple[int, int]] = []
        for c in members:
            for n in self.ways[c]:
                inside = [child for child in self.children[n] if child in users]
                missing[n] = len(inside)
                sums[n] = self.weight[n] + sum([tree[child] for child in self.children[n] if child not in users])
                for child in inside:
                    users[child].append(n)
                if not inside:
                    heap.append((sums[n], c))
        heapq.heapify(heap)
        settled: set[int] = set()
        while heap:
            cost, c = heapq.heappop(heap)
            if c in settled:
                continue
            settled.add(c)
            tree[c] = min(cost, tree[c])
            for n in users[c]:
                missing[n] -= 1
                sums[n] += tree[c]
                if not missing[n] and self.owner[n] not in settled:
                    heapq.heappush(heap, (sums[n], self.owner[n]))

    def contract(self, closures: Closures) -> bool:
        """Inline each class that has a single way, if the way is free or has one user."""
        users: dict[int, list[int]] = {}
        for row in self.ways:
            for n in row:
                for child in self.children[n]:
                    users.setdefault(child, []).append(n)
        changed = False
        for c in self.classes():
            row = self.ways[c]
            if len(row) != 1 or closures.needed >> c & 1:
                continue
            (n,) = row
            if (self.weight[n] and len(users[c]) != 1) or c in self.children[n]:
                continue
            for user in users[c]:
                self.weight[user] += self.weight[n]
                self.picks[user] += self.picks[n]
                self.children[user] = tuple(dict.fromkeys([child for child in self.children[user] if child != c] + list(self.children[n])))
            for child in self.children[n]:
                users[child] = list(dict.fromkeys([user for user in users[child] if user != n] + users[c]))
            self.ways[c] = []
            changed = True
        return changed

    def drop_heavy(self, closures: Closures, weight: int, kept: set[int]) -> bool:
        """Drop each way outside `kept` whose closure already weighs `weight` or more."""
        before = self.size()
        least = [min((self.weight[n] for n in row), default=0) for row in self.ways]
        known: dict[int, int] = {}

        def total(classes: int) -> int:
            if classes not in known:
                known[classes] = sum(least[c] for c in bits(classes))
            return known[classes]

        base = total(closures.needed)
        for c, row in enumerate(self.ways):
            if not row:
                continue
            here = closures.of[c] & ~closures.needed
            self.ways[c] = [n for n in row if n in kept or base + total((closures.of_way(n) & ~closures.needed) | here) + self.weight[n] - least[c] < weight]
        return self.size() < before

    def bound(self, closures: Closures) -> int:
        """Return a lower bound on the weight of every choice."""
        return sum(min(self.weight[n] for n in self.ways[c]) for c in bits(closures.needed))


class Closures:
    """A snapshot of a kernel's closures, and the classes that every choice needs."""

    def __init__(self, kernel: Kernel) -> None:
        self._children = kernel.children
        self.order, self.component = components(kernel.roots, kernel.ways, kernel.children)
        self._everything = (1 << len(kernel.ways)) - 1
        self.of = [self._everything] * len(kernel.ways)
        self.component_mask = [sum([1 << c for c in members]) for members in self.component]
        for number, members in enumerate(self.component):
            if len(members) > 1:
                self._settle(kernel, number, members)
            else:
                self.of[members[0]] = self._common(kernel, members[0])
        self.needed = 0
        for root in kernel.roots:
            self.needed |= self.of[root]

    def _common(self, kernel: Kernel, c: int) -> int:
        """Return the closure of a class, given those of its children."""
        common = self._everything
        for n in kernel.ways[c]:
            common &= self.of_way(n)
            if not common:
                break
        return common | 1 << c

    def _settle(self, kernel: Kernel, number: int, members: Sequence[int]) -> None:
        """Find the closures of the classes of a component.

        A class's closure depends on its children's closures. Only the users of a class that changed
        are visited again, lower classes first.
        """
        users: dict[int, list[int]] = {c: [] for c in members}
        place = {c: index for index, c in enumerate(members)}
        for c in members:
            for child in {child for n in kernel.ways[c] for child in self._children[n] if self.order[child] == number}:
                users[child].append(c)
        waiting = members
        while waiting:
            again: set[int] = set()
            for c in waiting:
                again.discard(c)
                common = self._common(kernel, c)
                if common != self.of[c]:
                    self.of[c] = common
                    again.update(users[c])
            waiting = sorted(again, key=place.__getitem__)

    def of_way(self, n: int) -> int:
        """Return the union of the closures of way n's children."""
        found = 0
        for child in self._children[n]:
            found |= self.of[child]
        return found


def bits(number: int) -> Iterator[int]:
    """Yield the positions of the set bits in ascending order."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def reduce(kernel: Kernel) -> Closures:
    """Apply the steps that need no known choice, until none applies; return the closures."""
    kernel.prune()
    while True:
        closures = Closures(kernel)
        # Each step keeps closures or enlarges them, so those of before serve all steps.
        dropped = kernel.drop_cyclic(closures) | kernel.dominate(closures)
        if dropped:
            kernel.prune()
        if kernel.contract(closures):
            kernel.prune()
        elif not dropped:
            return closures
