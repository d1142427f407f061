"""The work that an extraction may spend: seconds, if they are limited, and the exact solver's own deterministic measure, which is shared by all its calls."""

from __future__ import annotations

import time
from dataclasses import dataclass

from .problem import Problem

LARGEST = 200_000
"""Nodes of a problem, above which making the solver's model alone takes too long."""


@dataclass(slots=True)
class Work:
    """What may still be spent."""

    deadline: float | None
    solver: float  # of the exact solver's deterministic time, which is about seconds of one core

    def late(self) -> bool:
        """Whether no time is left."""
        return self.deadline is not None and time.perf_counter() >= self.deadline

    def improve(self, problem: Problem, nodes: list[int], weight: int | None) -> tuple[list[int], int | None]:
        """What the exact solver makes of a choice with what is left: see `solver.improve`."""
        if self.solver <= 0 or self.late() or sum(map(len, problem.nodes_of)) > LARGEST:
            return nodes, None
        # Its library takes longer to import than most extractions take.
        from .solver import improve

        return improve(problem, nodes, weight, self)
