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

    def late(self) -> bool:
        """Tell whether the deadline has passed."""
        return self.deadline is not None and time.perf_counter() >= self.deadline
