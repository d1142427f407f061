"""Minimal sets of rules: some rules reach the cost that all of them reach, and none can be left out.

The input is the rules to try, and a function that tells the cost of a run with some rules alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

CLOSE = 0.0005
"""The share of a cost by which a run may miss it and still reach it. No prediction distinguishes
costs that are so close.
"""


@dataclass(slots=True)
class Minimal:
    """A set of rules that reaches a cost."""

    rules: list[str]
    cost: float
    """The cost with these rules alone."""
    without: dict[str, float] = field(default_factory=dict[str, float])
    """By rule, the cost with the others alone. A rule that was not tried is missing."""
    runs: int = 0

    @property
    def proved(self) -> bool:
        """Tells whether no rule can be left out."""
        return len(self.without) == len(self.rules)


def minimal(candidates: Sequence[Sequence[str]], cost: Callable[[Collection[str]], float], wanted: float, late: Callable[[], bool]) -> Minimal | None:
    """Returns a set of rules that reaches the `wanted` cost and of which no rule can be left out.

    The search begins with the first candidate that reaches the cost, and returns None if there is
    none. Where it is `late`, it ends with the least set so far, which may not be minimal. A cost is
    infinite where a run was ended.
    """
    search = _Search(cost, wanted, late)
    begin = next((list(dict.fromkeys(names)) for names in candidates if search.reaches(names)), None)
    if begin is None:
        return None
    rules = search.fewer(begin)
    return Minimal(rules, search.cost(rules), search.without(rules), search.runs)


class _Search:
    def __init__(self, cost: Callable[[Collection[str]], float], wanted: float, late: Callable[[], bool]) -> None:
        self.runs = 0
        self._cost = cost
        self._most = wanted + CLOSE * abs(wanted)
        self._late = late
        self._known: dict[frozenset[str], float] = {}

    def cost(self, names: Collection[str]) -> float:
        """Returns the cost of a run with these rules alone. Each set runs once."""
        key = frozenset(names)
        if key not in self._known:
            self.runs += 1
            self._known[key] = self._cost(names)
        return self._known[key]

    def reaches(self, names: Collection[str]) -> bool:
        """Tells whether a run with these rules alone reaches the cost."""
        return self.cost(names) <= self._most

    def fewer(self, rules: list[str]) -> list[str]:
        """Returns the rules that are left when first many and then single ones were left out."""
        size = len(rules)
        while rules and not self._late():
            shrunk = False
            for start in range(0, len(rules), size):
                part = set(rules[start : start + size])
                left = [name for name in rules if name not in part]
                if part and not self._late() and self.reaches(left):
                    rules, shrunk = left, True
                    break
            if not shrunk:
                if size <= 1:
                    break
                size = max(1, size // 2)
            size = min(size, max(1, len(rules)))
        return rules

    def without(self, rules: list[str]) -> dict[str, float]:
        """Returns the cost without each rule, as far as it is known: each is, unless it is late."""
        pairs = ((name, self._known.get(frozenset(rules) - {name}, math.inf)) for name in rules)
        return {name: cost for name, cost in pairs if cost < math.inf}
