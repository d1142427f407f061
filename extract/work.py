"""The work that an extraction may spend: seconds, if they are limited, and the exact solver's own deterministic measure, which is shared by all its calls."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(slots=True)
class Work:
    """The work that is left."""

    deadline: float | None
    solver: float  # of the exact solver's deterministic time, which is about seconds of one core
    fraction: int = 1  # searches take one part in this of their usual steps

    def late(self) -> bool:
        """Whether no time is left."""
        return self.deadline is not None and time.perf_counter() >= self.deadline
