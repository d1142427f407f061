"""The operators whose number changed, as lines for a terminal: in columns, as many as fit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TextIO

_USUAL_WIDTH = 80
_GAP = 4  # columns of characters between two cells
_LONGEST_NAME = 40


def operator_table(operators: Mapping[str, Mapping[str, int]], width: int) -> list[str]:
    """Returns the operators with different numbers `before` and `after`, by name and downwards in
    columns. There are no lines if there is none.

    Lines are no longer than `width` unless one cell alone is.
    """
    changed = [(_short(name), counts["before"], counts["after"]) for name, counts in sorted(operators.items()) if counts["before"] != counts["after"]]
    if not changed:
        return []
    heights = sorted({-(-len(changed) // count) for count in range(1, len(changed) + 1)})
    layouts = ([_column(changed[begin : begin + height]) for begin in range(0, len(changed), height)] for height in heights)
    columns = next((layout for layout in layouts if sum(len(column[0]) + _GAP for column in layout) - _GAP <= width), [_column(changed)])
    return [(" " * _GAP).join(column[row] for column in columns if row < len(column)) for row in range(len(columns[0]))]


def width_of(stream: TextIO) -> int:
    """Returns the width of the terminal that a stream writes to, or a usual one if it is none."""
    try:
        return (os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0) or _USUAL_WIDTH
    except (OSError, ValueError):
        return _USUAL_WIDTH


def _column(rows: Sequence[tuple[str, int, int]]) -> list[str]:
    """Returns cells of one width, with aligned numbers."""
    name, before, after = (max(len(str(row[place])) for row in rows) for place in range(3))
    return [f"{row[0]:<{name}}  {row[1]:>{before}} -> {row[2]:>{after}}" for row in rows]


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."
