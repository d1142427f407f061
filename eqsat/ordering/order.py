"""An order of steps that needs less memory: the best that is found, and never more than the given
order.

A step cuts an order into independent parts if it depends on all earlier steps and all later steps
depend on it. A part whose peak is not the highest stays as it is. Small parts are searched exactly.
Other parts are ordered by a list scheduler, forwards and backwards, and exact searches improve the
result around its peak.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eqsat.ordering.exact_order import exact_order
from eqsat.ordering.lifetimes import Steps, peak, profile, section
from eqsat.ordering.list_order import list_order

_TRIES = 100_000  # steps that an exact search of a part may try
_FEW_TRIES = 8000  # steps that a search around a peak may try
_WINDOW = 24  # steps around a peak that are ordered anew
_ROUNDS = 40  # rounds of mending the peak of a part
_LARGE = 2000  # steps that are ordered together; more are cut anywhere


def least_peak(problem: Steps) -> list[int]:
    """Returns an order of all steps whose peak is below that of the given order 0, 1, 2, ..., or
    else the given order. The result is the same each time.
    """
    hand = list(range(len(problem.steps)))
    parts = list(_parts(problem))
    heights = profile(problem, hand)
    peaks = {part: max(heights[part[0] : part[1]]) for part in parts}
    reached = 0  # the highest peak so far that the search could not avoid
    found = list(hand)
    for part in sorted(parts, key=lambda part: (-peaks[part], part)):
        if peaks[part] <= reached:
            break
        start, stop = part
        inner = section(problem, hand, start, stop)
        better = _ordered(inner)
        found[start:stop] = [start + step for step in better]
        reached = max(reached, peak(inner, better))
    return found if peak(problem, found) < max(heights, default=0) else hand


def _parts(problem: Steps) -> Iterator[tuple[int, int]]:
    """Yields the start and stop places at which the given order is cut."""
    count = len(problem.steps)
    after: list[list[int]] = [[] for _ in range(count)]
    for number, step in enumerate(problem.steps):
        for earlier in step.before:
            after[earlier].append(number)
    # A step to which all earlier steps lead is the only one so far that has no successor yet.
    ends = 0
    gathers: list[bool] = []
    has_successor = [False] * count
    for step in problem.steps:
        for earlier in set(step.before):
            ends -= not has_successor[earlier]
            has_successor[earlier] = True
        ends += 1
        gathers.append(ends == 1)
    begins = 0
    spreads = [False] * count
    has_predecessor = [False] * count
    for number in reversed(range(count)):
        for later in set(after[number]):
            begins -= not has_predecessor[later]
            has_predecessor[later] = True
        begins += 1
        spreads[number] = begins == 1
    start = 0
    for number in range(count):
        if (gathers[number] and spreads[number]) or number - start + 1 >= _LARGE:
            yield start, number + 1
            start = number + 1
    if start < count:
        yield start, count


def _ordered(problem: Steps) -> list[int]:
    """Returns the best order that is found for a part."""
    hand = list(range(len(problem.steps)))
    height = peak(problem, hand)
    best, proved = exact_order(problem, height, _TRIES)
    if proved:
        return hand if best is None else best
    candidates = [hand, list_order(problem), list_order(problem, forward=False)]
    mended = [_mended(problem, order) for order in candidates]
    return min(mended, key=lambda order: peak(problem, order))


def _mended(problem: Steps, order: Sequence[int]) -> list[int]:
    """Returns the order with the steps around its peak ordered anew, as long as that lowers the
    peak.
    """
    current = list(order)
    for _ in range(_ROUNDS):
        heights = profile(problem, current)
        height = max(heights)
        place = heights.index(height)
        for ahead in (_WINDOW // 2, _WINDOW - 1, 0):
            start = max(place - ahead, 0)
            inner = section(problem, current, start, start + _WINDOW)
            better, _ = exact_order(inner, height, _FEW_TRIES)
            if better is not None:
                current[start : start + _WINDOW] = [current[start + step] for step in better]
                break
        else:
            break
    return current
