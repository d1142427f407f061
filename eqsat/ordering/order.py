"""The order of steps that needs the least memory, as far as is found; never more than the order at hand.

Steps that come after all others before them, and before all others after them, cut an order into
parts that do not depend on one another. A part whose peak is not the highest stays as it is.
The others are searched exactly where they are small enough, and otherwise ordered by a list
scheduler, forwards and backwards, whose result exact searches improve around its peak.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eqsat.ordering.exact_order import exact_order
from eqsat.ordering.lifetimes import Steps, peak, profile, section
from eqsat.ordering.list_order import list_order

_TRIES = 100_000  # steps that an exact search of a part may try
_FEW_TRIES = 8000  # the same around a peak
_WINDOW = 24  # steps around a peak that are ordered anew
_ROUNDS = 40  # of mending the peak of a part
_LARGE = 2000  # steps that are ordered together; more are cut anywhere


def least_peak(problem: Steps) -> list[int]:
    """An order of all steps. Its peak is below that of the order at hand, 0, 1, 2, ..., or it is the
    order at hand. The result is the same each time.
    """
    hand = list(range(len(problem.steps)))
    parts = list(_parts(problem))
    heights = profile(problem, hand)
    peaks = {part: max(heights[part[0] : part[1]]) for part in parts}
    reached = 0  # a peak that no order of what was searched is known to avoid
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
    """The places from which to which the order at hand is cut."""
    count = len(problem.steps)
    after: list[list[int]] = [[] for _ in range(count)]
    for number, step in enumerate(problem.steps):
        for earlier in step.before:
            after[earlier].append(number)
    # A step that all before it lead to is the only one of them without a successor among them.
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
    """The best order that is found for a part."""
    hand = list(range(len(problem.steps)))
    height = peak(problem, hand)
    best, proved = exact_order(problem, height, _TRIES)
    if proved:
        return hand if best is None else best
    candidates = [hand, list_order(problem), list_order(problem, forward=False)]
    mended = [_mended(problem, order) for order in candidates]
    return min(mended, key=lambda order: peak(problem, order))


def _mended(problem: Steps, order: Sequence[int]) -> list[int]:
    """The order with the steps around its peak ordered anew, while that lowers the peak."""
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
