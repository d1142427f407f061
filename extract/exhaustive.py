"""Branch and bound over all choices of a small problem.

It needs no solver library and is exact in integers of any length.

The search decides classes one by one, as they become needed. The lower bound of a partial choice is
the weight of its decided nodes, plus the cheapest node of each class that is needed and undecided.
A branch ends when this bound reaches the best known weight or exceeds a limit. Terms are added at
the end; until then the bound counts every gain they could bring.
"""

from __future__ import annotations

from .problem import Problem

DEEPEST = 200
"""The largest number of classes. Each decided class is one level of recursion."""


class TooMany(Exception):
    """The problem has more choices than the step budget allows."""


def best(problem: Problem, nodes: list[int], weight: int | None, steps: int) -> tuple[list[int], int | None]:
    """Return the lightest choice within the limits and its weight.

    The result weighs less than `weight` or is `nodes` itself. It is (`nodes`, None) if there is no
    choice.

    `TooMany` is raised after `steps` steps, or where the problem has more than DEEPEST classes.
    """
    if sum(map(bool, problem.nodes_of)) > DEEPEST:
        raise TooMany
    search = _Search(problem, steps)
    search.nodes, search.weight = nodes, weight
    search.begin()
    return search.nodes, search.weight


class _Search:
    def __init__(self, problem: Problem, steps: int) -> None:
        self.problem = problem
        self.steps = steps
        self.nodes: list[int] = []
        self.weight: int | None = None
        self._gain = sum(term.weight for term in problem.terms if term.weight is not None and term.weight < 0)
        self._rows = [sorted(row, key=lambda n: problem.weight[n]) for row in problem.nodes_of]
        self._least = [problem.weight[row[0]] if row else 0 for row in self._rows]
        self._smallest = [[min((amount[n] for n in row), default=0) for row in problem.nodes_of] for amount in problem.amounts]
        self._pick: dict[int, int] = {}

    def begin(self) -> None:
        """Search all choices."""
        roots = self.problem.roots
        amounts = [sum(smallest[c] for c in roots) for smallest in self._smallest]
        self._decide(list(roots), set(roots), sum(self._least[c] for c in roots), amounts)

    def _decide(self, waiting: list[int], needed: set[int], weight: int, amounts: list[int]) -> None:
        """Decide the `waiting` classes; `weight` and `amounts` are lower bounds of the sums."""
        problem = self.problem
        if not waiting:
            self._keep()
            return
        c = waiting[-1]
        for n in self._rows[c]:
            self.steps -= 1
            if self.steps < 0:
                raise TooMany
            fresh = [child for child in problem.children[n] if child not in needed]
            heavier = weight + problem.weight[n] - self._least[c] + sum(self._least[child] for child in fresh)
            if self.weight is not None and heavier + self._gain >= self.weight:
                continue
            used = [
                amount + own[n] - smallest[c] + sum(smallest[child] for child in fresh)
                for amount, own, smallest in zip(amounts, problem.amounts, self._smallest, strict=True)
            ]
            if problem.fits(used):
                self._pick[c] = n
                self._decide(waiting[:-1] + fresh, needed.union(fresh), heavier, used)
        self._pick.pop(c, None)

    def _keep(self) -> None:
        """Keep the decided nodes if they are an acyclic choice lighter than the best known one."""
        self.steps -= len(self._pick)
        if self._is_cyclic():
            return
        nodes = list(self._pick.values())
        weight = self.problem.weigh(nodes)
        if weight is not None and (self.weight is None or weight < self.weight):
            self.nodes, self.weight = nodes, weight

    def _is_cyclic(self) -> bool:
        children, pick = self.problem.children, self._pick
        missing = {c: len(children[n]) for c, n in pick.items()}
        users: dict[int, list[int]] = {}
        for c, n in pick.items():
            for child in children[n]:
                users.setdefault(child, []).append(c)
        ready = [c for c, count in missing.items() if not count]
        for c in ready:
            for user in users.get(c, ()):
                missing[user] -= 1
                if not missing[user]:
                    ready.append(user)
        return len(ready) < len(pick)
