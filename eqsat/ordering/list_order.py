"""A good order of many steps, built one stretch after the other, in either direction.

A stretch starts at each step that may run next. The list scheduler looks ahead along the steps that
become ready by it, and cuts the stretch where the least is alive. The height of a stretch is the
most memory alive on the way, its depth is the memory alive at its end. If a stretch ends no higher
than it begins, the lowest such stretch runs. Otherwise the stretch that falls most from its height
runs. For independent chains this order is optimal (Liu, 1987).
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from eqsat.ordering.frontier import Frontiers, highest, numbers
from eqsat.ordering.lifetimes import Steps

_AHEAD = 12  # steps of a stretch
_STARTS = 16  # steps tried as the start of the next stretch


class _Stretch(NamedTuple):
    """Steps that run one after the other."""

    height: int
    depth: int
    steps: list[int]


def list_order(problem: Steps, forward: bool = True) -> list[int]:
    """Returns an order of all steps, built from the first to the last, or from the last to the
    first.
    """
    moves = Frontiers(problem)
    move, opened = (moves.add, moves.opened) if forward else (moves.take, moves.closed)
    done, alive, ready, goal = (0, moves.start, moves.first, moves.everything) if forward else (moves.everything, moves.end, moves.last, 0)
    order: list[int] = []

    def rank(found: _Stretch) -> tuple[int, int, int]:
        """Puts stretches that end no higher than they begin first, lowest first, then those that
        fall most.
        """
        if found.depth <= alive:
            return 0, found.height, found.depth
        return 1, found.depth - found.height, found.depth

    def stretch(first: int) -> _Stretch:
        state, level, height = done, alive, 0
        steps: list[int] = []
        best = _Stretch(0, 0, [])
        new = 1 << first
        while new and len(steps) < _AHEAD:
            during, level, number = min((*move(state, level, number), number) for number in islice(numbers(new), _STARTS))
            state ^= 1 << number
            height = max(height, during)
            steps.append(number)
            if not best.steps or level < best.depth:
                best = _Stretch(height, level, list(steps))
            new = new & ~(1 << number) | opened(number, state)
        return best

    while done != goal:
        starts = islice(numbers(ready), _STARTS) if forward else islice(highest(ready), _STARTS)
        chosen = min((stretch(first) for first in starts), key=rank)
        for number in chosen.steps:
            done ^= 1 << number
            ready = ready & ~(1 << number) | opened(number, done)
        order += chosen.steps
        alive = chosen.depth
    return order if forward else order[::-1]
