"""The work that an extraction may spend: seconds, if they are limited, and the exact solver's own deterministic measure, which is shared by all its calls."""

from __future__ import annotations

import time
from dataclasses import dataclass

from .exhaustive import TooMany, best
from .graph import impossible
from .problem import Problem

LARGEST = 200_000
"""Nodes of a problem, above which making the solver's model alone takes too long."""

STEPS = 20_000
"""Of looking at all choices, before the solver is asked: as long as importing it takes, at most."""


@dataclass(slots=True)
class Work:
    """What may still be spent."""

    deadline: float | None
    solver: float  # of the exact solver's deterministic time, which is about seconds of one core
    fraction: int = 1  # searches take one part in this of their usual steps

    def late(self) -> bool:
        """Whether no time is left."""
        return self.deadline is not None and time.perf_counter() >= self.deadline

    def improve(self, problem: Problem, nodes: list[int], weight: int | None) -> tuple[list[int], int | None]:
        """Nodes that weigh at most `weight`, as those given do, and a weight that no choice within the limits undercuts (None where nothing was proved).

        Where `weight` is None the nodes given are no lawful choice, and come back if none is found.
        """
        if self.late() or sum(map(len, problem.nodes_of)) > LARGEST:
            return nodes, None
        try:
            found = best(problem, nodes, weight, STEPS)
            if found[1] is None:
                raise impossible()
            return found
        except TooMany:
            if self.solver <= 0:
                return nodes, None
            # Its library takes longer to import than most extractions take.
            from .solver import improve

            return improve(problem, nodes, weight, self)
