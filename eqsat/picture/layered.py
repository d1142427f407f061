"""A layered layout: the nodes of a graph in rows, each below all that it reads.

The input is boxes with widths and the arrows between them, the output a place for each box. Rows
are ordered so that a box stands near the boxes that it is joined to, and arrows seldom cross.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter

from eqsat.frozen import frozen

_SWEEPS = 6
_GAP = 18.0
_ROW = 56.0


@frozen
class Layout:
    """The middle of each box, and the size of the whole."""

    places: Mapping[int, tuple[float, float]]
    width: float
    height: float


def layered(widths: Sequence[float], arrows: Sequence[tuple[int, int]]) -> Layout:
    """Returns places for boxes of these widths. `arrows` make no circle."""
    before: list[list[int]] = [[] for _ in widths]
    after: list[list[int]] = [[] for _ in widths]
    for source, target in arrows:
        before[target].append(source)
        after[source].append(target)
    rows = _rows(before, after)
    x = {box: float(place) for row in rows for place, box in enumerate(row)}
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            near = before if down else after
            row.sort(key=lambda box, near=near: _middle(near[box], x, x[box]))
            x.update((box, float(place)) for place, box in enumerate(row))
    totals = [sum(widths[box] for box in row) + _GAP * (len(row) - 1) for row in rows]
    width = max(totals, default=0.0)
    places: dict[int, tuple[float, float]] = {}
    for number, (row, total) in enumerate(zip(rows, totals, strict=True)):
        left = (width - total) / 2
        for box in row:
            places[box] = (left + widths[box] / 2, (number + 0.5) * _ROW)
            left += widths[box] + _GAP
    return Layout(places, width, len(rows) * _ROW)


def _rows(before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]) -> list[list[int]]:
    """Returns the boxes of each row. A box stands right above the first of those that it leads to,
    or, if there are none, right below the last of those that lead to it.
    """
    level = [0] * len(before)
    order = list(TopologicalSorter(dict(enumerate(before))).static_order())
    for box in order:
        level[box] = max((level[source] + 1 for source in before[box]), default=0)
    for box in reversed(order):
        level[box] = min((level[target] - 1 for target in after[box]), default=level[box])
    rows: list[list[int]] = [[] for _ in range(max(level, default=-1) + 1)]
    for box, number in enumerate(level):
        rows[number].append(box)
    return rows


def _middle(boxes: Sequence[int], x: Mapping[int, float], own: float) -> float:
    return sum(x[box] for box in boxes) / len(boxes) if boxes else own
