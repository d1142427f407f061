"""Proving: a problem and a choice of it come in, a choice at least as good and a bound come back, by whatever the work that is left allows.

All choices are looked at where they are few. The exact solver decides the rest: importing it takes longer than most extractions do.
"""

from __future__ import annotations

from .exhaustive import TooMany, best
from .graph import impossible
from .problem import Problem
from .work import Work

LARGEST = 200_000
"""Nodes of a problem, above which making the solver's model alone takes too long."""

STEPS = 20_000
"""Of looking at all choices, before the solver is asked: as long as importing it takes, at most."""


def improve(problem: Problem, nodes: list[int], weight: int | None, work: Work) -> tuple[list[int], int | None]:
    """Nodes that weigh at most `weight`, as those given do, and a weight that no choice within the limits undercuts (None where nothing was proved).

    Where `weight` is None the nodes given are no lawful choice, and come back if none is found. The solver's time is taken from `work`.
    """
    if work.late() or sum(map(len, problem.nodes_of)) > LARGEST:
        return nodes, None
    try:
        found = best(problem, nodes, weight, STEPS)
    except TooMany:
        if work.solver <= 0:
            return nodes, None
        from .solver import solve

        return solve(problem, nodes, weight, work)
    if found[1] is None:
        raise impossible()
    return found
