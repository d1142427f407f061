"""Every choice of a small problem, as far as it can still become the best: without a library to import, and exact in integers of any length.

Classes are decided one after the other as they come to be needed. What is decided and the cheapest ways of what is needed besides may not weigh as much as
the best choice known, nor exceed a limit. Costs of combinations are added at the end; until then all that could be gained by them counts as gained.
"""

from __future__ import annotations

from .problem import Problem

DEEPEST = 200
"""Classes, at most: each that is decided is one call deep."""


class TooMany(Exception):
    """There are more choices to look at than were allowed."""


def best(problem: Problem, nodes: list[int], weight: int | None, steps: int) -> tuple[list[int], int | None]:
    """The lightest choice within the limits, which weighs less than `weight` or is `nodes` itself, and its weight; (`nodes`, None) if there is none.

    `TooMany` is raised after so many `steps`, or where there are too many classes to look at one below the other.
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
        """Look at every choice."""
        roots = self.problem.roots
        amounts = [sum(smallest[c] for c in roots) for smallest in self._smallest]
        self._decide(list(roots), set(roots), sum(self._least[c] for c in roots), amounts)

    def _decide(self, waiting: list[int], needed: set[int], weight: int, amounts: list[int]) -> None:
        """Decide what waits, `weight` and `amounts` being the least that what is decided and what waits can sum to."""
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
        """Remember what is decided, if it is a choice and lighter than the best one known."""
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
