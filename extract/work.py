"""The work left for an extraction: a deadline, and the exact solver's deterministic time.

All calls of the solver share this time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(slots=True)
class Work:
    """The remaining work."""

    deadline: float | None
    # The exact solver's deterministic time, about seconds of one core.
    solver: float
    # Searches take this fraction of their usual steps: one in `fraction`.
    fraction: int = 1
    # The weight that the results of all parts together may have above their bounds and count as
    # good enough.
    slack: int = 0
    # The last bits of a weight that count changes alone: no proof about them is worth the solver's
    # time.
    changes: int = 0

    def enough(self, weight: int, bound: int) -> bool:
        """Tell whether a result of this weight needs no better one, given a lower bound."""
        return weight - bound <= self.slack

    def accept(self, weight: int, bound: int) -> bool:
        """Tell whether a result is good enough; if it is, its distance to the bound is used up."""
        if not self.enough(weight, bound):
            return False
        self.slack -= weight - bound
        return True

    def late(self) -> bool:
        """Tell whether the deadline has passed."""
        return self.deadline is not None and time.perf_counter() >= self.deadline
