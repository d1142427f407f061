"""The best order of a few steps, found by a search over the sets of done steps, by least peak.

The search takes the set of least peak next. So the first path to the full set is a proof. A step
may run at once if it leaves no more alive than before and needs no more than the peak so far.
Running it later never helps, because its buffers would only end later.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from eqsat.ordering.frontier import Frontiers, numbers
from eqsat.ordering.lifetimes import Steps


def exact_order(problem: Steps, below: int, most: int) -> tuple[list[int] | None, bool]:
    """Returns the order of least peak if it is below `below`, else None, and whether that is
    proved. A search that ends after `most` steps proves nothing.
    """
    moves = Frontiers(problem)
    if moves.least >= below:
        return None, True
    # By set, the set before it and the steps between the two
    came: dict[int, tuple[int, list[int]]] = {}
    best = {0: moves.least}
    settled: set[int] = set()
    waiting = [(moves.least, 0, 0, _State(0, moves.start, moves.first))]  # peak, steps left, turn, state
    tried = 0
    while waiting:
        high, _, _, state = heapq.heappop(waiting)
        if state.done in settled:
            continue
        settled.add(state.done)
        if state.done == moves.everything:
            return _path(came, state.done), True
        for number in numbers(state.ready):
            tried += 1
            during, left = moves.add(state.done, state.alive, number)
            high_now = max(during, high)
            if high_now >= below:
                continue
            steps = [number]
            after, more = _forced(moves, _after(moves, state, number, left), high_now, steps)
            tried += more
            if after.done not in settled and high_now < best.get(after.done, below):
                best[after.done] = high_now
                came[after.done] = state.done, steps
                heapq.heappush(waiting, (high_now, (moves.everything & ~after.done).bit_count(), tried, after))
        if tried > most:
            return None, False
    return None, True


class _State(NamedTuple):
    """The steps that are done, the memory alive after them, and the steps that may run next."""

    done: int
    alive: int
    ready: int


def _after(moves: Frontiers, state: _State, number: int, alive: int) -> _State:
    done = state.done | 1 << number
    return _State(done, alive, state.ready & ~(1 << number) | moves.opened(number, done))


def _forced(moves: Frontiers, state: _State, peak: int, steps: list[int]) -> tuple[_State, int]:
    """Runs steps that may run at once without loss, and adds them to `steps`. Returns how many it
    tried.
    """
    looked = tried = 0  # `looked` are steps that were ready in this state but dearer
    while new := state.ready & ~looked:
        number = next(numbers(new))
        tried += 1
        during, left = moves.add(state.done, state.alive, number)
        if during <= peak and left <= state.alive:
            state = _after(moves, state, number, left)
            steps.append(number)
            looked = 0  # the others may end more now
        else:
            looked |= 1 << number
    return state, tried


def _path(came: dict[int, tuple[int, list[int]]], done: int) -> list[int]:
    parts: list[list[int]] = []
    while done:
        done, steps = came[done]
        parts.append(steps)
    return [number for part in reversed(parts) for number in part]
