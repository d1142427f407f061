"""The state of a local search: a choice, and the exact change of its DAG cost with every move.

Reference counts give the change of cost. A move takes as many steps as it adds and drops classes,
however deep the common subgraph of both nodes is, so no cost sets are stored.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence

from .budget import Budget
from .problem import Problem


class State:
    """A choice for `problem` under the integer node weights `weight`, changed by moves.

    Invariants:
    - `pick[c]` is a usable node for every class that a root reaches. Picks never form a cycle.
    - `refs[c]` counts the chosen classes and the roots that use c.
    - `total` is the weight of the free classes in use, each once, plus the terms that apply. A
      forbidden combination adds more than any choice weighs.
    - A class that is not free has one node and is in every choice. It never moves and is not in
      `total`.
    - `_ranks[i]`, where it is there, numbers the classes of component i so that each has a greater
      number than the classes of the component that its pick needs.
    - With `tracked`, `used` is the use of each resource by all chosen nodes.
    - While `strict` is set, which needs `tracked`, no move leaves the limits.
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
        self._ranks: dict[int, dict[int, float]] = {}
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
            # A class that is not free never enters or leaves the choice, however many users refer
            # to it.
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

    # -- states ------------------------------------------------------------------------------------

    def reweigh(self, weight: Sequence[int], unit: int = 1) -> None:
        """Continue with other weights: at least those of the problem times `unit`."""
        self.weight = weight
        self._cap = 1 + sum(max(weight[n] for n in self.problem.nodes_of[c]) for c in self.problem.free)
        changes = [term.weight for term in self.problem.terms if term.weight is not None]
        forbidden = self._cap + sum(abs(change) for change in changes) * unit
        self._bonus = [forbidden if term.weight is None else term.weight * unit for term in self.problem.terms]
        self.total = sum(weight[self.pick[c]] for c in self.problem.free if self.refs[c])
        self.total += sum(bonus for bonus, applied in zip(self._bonus, self._applied, strict=True) if applied)

    def start(self, pick: Sequence[int] | None = None) -> None:
        """Start from acyclic picks, or from tree-cost picks with all needed classes paid."""
        if pick is None:
            self._settle(paid=self.problem.needed, fixed=bytes(len(self.pick)))
        else:
            self.pick = list(pick)
            self._ranks.clear()
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
        """Start from the node of least tree cost in each class.

        Tree costs above 2 ** 4096 times the weight of everything count as equal.
        """
        self._cap <<= 4096
        self._settle(paid=bytes(len(self.pick)), fixed=bytes(len(self.pick)))
        self.start(self.pick)

    def adopt(self, picks: Mapping[int, int]) -> None:
        """Start from a complete acyclic choice.

        Other classes get the node that is cheapest beside it.
        """
        fixed = bytearray(len(self.pick))
        for c, n in picks.items():
            self.pick[c] = n
            fixed[c] = 1
        self._settle(paid=fixed, fixed=fixed)
        self.start(self.pick)

    def totals(self) -> list[int]:
        """Return the use of each resource by the whole choice, forced classes included."""
        in_use = [self.pick[c] for c, count in enumerate(self.refs) if count]
        return [sum(amount[n] for n in in_use) for amount in self.problem.amounts]

    def forbidden(self) -> bool:
        """Tell whether the choice has a combination that a term forbids."""
        return any(applied and term.weight is None for applied, term in zip(self._applied, self.problem.terms, strict=True))

    def allowed(self) -> bool:
        """Tell whether a move may end in this state."""
        return not self.strict or self.problem.fits(self.used)

    # -- moves -------------------------------------------------------------------------------------

    def _account(self, n: int, sign: int) -> None:
        self.total += sign * self.weight[n]
        for r, amount in enumerate(self._amounts):
            self.used[r] += sign * amount[n]
        if self._terms_of:
            for t in self._terms_of.get(n, ()):
                self._missing[t] -= sign
                self._apply(t)

    def _apply(self, t: int) -> None:
        """Add term t to the total, or remove it, as the current choice demands."""
        sole = self.problem.terms[t].sole
        applies = not self._missing[t] and (sole < 0 or self.refs[sole] == 1)
        if applies != self._applied[t]:
            self._applied[t] = applies
            self.total += self._bonus[t] if applies else -self._bonus[t]

    def _add(self, classes: Sequence[int]) -> list[int]:
        """Add one reference to each of `classes`; return the classes that enter the choice."""
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
        """Remove one reference from each of `classes`."""
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
        """Choose node n for class c, which is in use.

        The caller has ruled out a cycle (`closes_cycle`).
        """
        old = self.pick[c]
        self.repick(c, n)
        self._account(n, 1)
        self._account(old, -1)
        # The new children come first: shared children then stay in use and cost no steps.
        self._add(self.problem.children[n])
        self._drop(self.problem.children[old])

    def closes_cycle(self, c: int, n: int) -> bool:
        """Tell whether the children of node n reach class c through picks."""
        part = self.problem.order[c]
        if len(self.problem.component[part]) == 1:
            return False
        rank = self._ranked(part)
        seen = self._above(n, rank, rank[c])
        self.budget.steps -= len(seen)
        return c in seen

    def acyclic(self, c: int, nodes: Sequence[int]) -> Iterator[int]:
        """Yield the nodes of class c that close no cycle, whichever of them the class picks meanwhile.

        A class may have a node for each value of the graph, as their common shape has, and each look
        down from a node goes through all values before. So after as many steps as the component has
        classes, one look up from the class answers for all other nodes.
        """
        size = len(self.problem.component[self.problem.order[c]])
        enough, users = self.budget.steps - size, None
        for n in nodes:
            if users is None and size > 1 and self.budget.steps < enough:
                users = self.users(c)
            if not self.closes_cycle(c, n) if users is None else users.isdisjoint(self.problem.children[n]):
                yield n

    def users(self, c: int) -> set[int]:
        """Return the classes of a component that reach class c through picks, and the class itself."""
        rank = self._ranked(self.problem.order[c])
        pick, children, least = self.pick, self.problem.children, rank[c]
        self.budget.steps -= len(rank)
        found = {c}
        for other in sorted([other for other, place in rank.items() if place > least], key=rank.__getitem__):
            if not found.isdisjoint(children[pick[other]]):
                found.add(other)
        return found

    def _above(self, n: int, rank: Mapping[int, float], least: float) -> set[int]:
        """Return the classes of at least this rank that the children of node n reach through picks.
        Classes of a lower rank reach no others.
        """
        pick, children = self.pick, self.problem.children
        stack = [child for child in children[n] if rank.get(child, -1.0) >= least]
        seen = set(stack)
        while stack:
            for child in children[pick[stack.pop()]]:
                if rank.get(child, -1.0) >= least and child not in seen:
                    seen.add(child)
                    stack.append(child)
        return seen

    def repick(self, c: int, n: int) -> None:
        """Set the pick of class c, in use or not, to node n, which closes no cycle."""
        self.pick[c] = n
        part = self.problem.order[c]
        rank = self._ranks.get(part)
        above = self._above(n, rank, rank[c]) if rank is not None else ()
        if rank is None or not above:
            return
        # What c needs now goes below it, and stays above all that it needs itself.
        needs = (child for other in above for child in self.problem.children[self.pick[other]] if child not in above)
        low = max((rank[child] for child in needs if child in rank), default=-1.0)
        step = (rank[c] - low) / (len(above) + 1)
        for place, other in enumerate(sorted(above, key=rank.__getitem__), 1):
            rank[other] = low + place * step
        if not low < low + step <= low + len(above) * step < rank[c]:
            del self._ranks[part]  # no room between two numbers

    def _ranked(self, part: int) -> dict[int, float]:
        """Return the numbers of the classes of a component, in which those that the pick of a class needs
        come before it. They are made where there are none.
        """
        if part in self._ranks:
            return self._ranks[part]
        order, pick, children = self.problem.order, self.pick, self.problem.children
        members = self.problem.component[part]
        self.budget.steps -= len(members)
        rank = self._ranks[part] = dict[int, float]()
        stack: list[int] = []
        for member in members:
            stack.append(member)
            while stack:
                c = stack[-1]
                waiting = [child for child in children[pick[c]] if order[child] == part and child not in rank]
                if waiting:
                    stack += waiting
                else:
                    rank.setdefault(stack.pop(), float(len(rank)))
        return rank

    def best(self, c: int, banned: frozenset[int] | set[int] = frozenset()) -> bool:
        """Move class c, in use, to the node of least total without a banned child.

        Return whether the node changed. A tie keeps the current node.
        """
        first = self.pick[c]
        best = first if not banned or banned.isdisjoint(self.problem.children[first]) else -1
        least = self.total
        # Where the current node's children stay in use without it, no heavier node is better.
        frees = best < 0 or bool(self.problem.terms) or any(self.refs[child] == 1 for child in self.problem.children[first])
        nodes = self.problem.nodes_of[c]
        lighter = nodes if frees else [n for n in nodes if self.weight[n] < self.weight[first]]
        for n in self.acyclic(c, [n for n in lighter if n != first and banned.isdisjoint(self.problem.children[n])]):
            self.move(c, n)
            if (best < 0 or self.total < least) and self.allowed():
                best, least = n, self.total
        if best < 0:
            best = first
        if self.pick[c] != best:
            self.move(c, best)
        return self.pick[c] != first

    # -- proposals ---------------------------------------------------------------------------------

    def resettle(self) -> None:
        """Give each unused class the node that would be cheapest beside the current choice."""
        in_use = bytes(1 if count else 0 for count in self.refs)
        self._settle(paid=in_use, fixed=in_use)

    def _settle(self, paid: bytes | bytearray, fixed: bytes | bytearray) -> None:
        """Set `pick` and `price` of all free classes outside `fixed`, by least tree cost.

        Classes in `paid` cost their users nothing. Picks stay acyclic: inside a component, classes
        are settled in order of cost (Knuth's generalization of Dijkstra's algorithm), each from
        classes settled before it. Tree costs ignore sharing and grow exponentially with depth; they
        are capped at the weight of everything.
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
        self._ranks.pop(part, None)
        # Inside the component a paid class counts too, unless it is fixed: only then does the order
        # by cost put children first.
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
