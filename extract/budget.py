"""The budget of one search, in steps and in time."""

from __future__ import annotations

import time
from dataclasses import dataclass

from .problem import Problem

STEPS, STEPS_PER_FREE_CLASS = 2_000_000, 200
"""The step budget of one search; a million steps take about a second."""


@dataclass(slots=True)
class Budget:
    """The steps left, and the time at which the search has to stop."""

    steps: int
    deadline: float | None = None

    @staticmethod
    def of(problem: Problem, deadline: float | None, *, fraction: int = 1) -> Budget:
        """Return a budget that suffices for small graphs, and takes seconds for large ones.

        `fraction` divides the steps.
        """
        return Budget((STEPS + STEPS_PER_FREE_CLASS * len(problem.free)) // fraction, deadline)

    def spent(self) -> bool:
        return self.steps <= 0 or (self.deadline is not None and time.perf_counter() >= self.deadline)
