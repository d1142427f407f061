"""Improve a choice and prove a lower bound, as far as the remaining work allows.

Small problems are searched exhaustively. The exact solver takes the rest: its import alone takes
longer than most extractions.
"""

from __future__ import annotations

from .exhaustive import TooMany, best
from .graph import impossible
from .problem import Problem
from .work import Work

LARGEST = 200_000
"""The solver's largest problem, in nodes: building the model of a larger one takes too long."""

STEPS = 20_000
"""The steps of exhaustive search before the solver is tried; its import takes longer."""


def improve(problem: Problem, nodes: list[int], weight: int | None, work: Work) -> tuple[list[int], int | None]:
    """Return nodes of weight at most `weight`, and a lower bound on every choice within the limits.

    The bound is None if nothing was proved. `weight` is None if the given nodes are no valid
    choice; then they return only if none is found. The solver's time is subtracted from `work`.
    """
    if work.late() or sum(map(len, problem.nodes_of)) > LARGEST:
        return nodes, None
    try:
        # Without the solver, a search that finds no proof soon is not worth its time.
        found = best(problem, nodes, weight, STEPS if work.solver > 0 else STEPS // work.fraction)
    except TooMany:
        if work.solver <= 0:
            return nodes, None
        from .solver import solve

        return solve(problem, nodes, weight, work)
    if found[1] is None:
        raise impossible()
    return found
