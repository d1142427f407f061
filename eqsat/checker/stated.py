"""The numbers that an instance states: constants that nobody may draw again, and attributes.

Comes in: both sides, read. Goes out: whether the numbers are plain enough to be taken at their word, and the numbers near
which the sides may part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from eqsat.checker.call import Array, is_float
from eqsat.checker.evaluate import Program

_LANDMARKS = 64
_PLAIN = 32


def is_plain(programs: Iterable[Program], free: frozenset[str]) -> bool:
    """Whether all stated floats are small halves of integers, to which no other number rounds, even in bfloat16."""
    for array in _stated(programs, free):
        if not is_float(array):
            continue
        doubled = np.clip(array.astype(np.float64), -2 * _PLAIN, 2 * _PLAIN) * 2
        if not ((doubled == np.rint(doubled)) & (np.abs(doubled) <= 2 * _PLAIN)).all():
            return False
    return True


def landmarks(programs: Sequence[Program], free: frozenset[str]) -> list[float]:
    """The finite numbers that the sides state, as constants or attributes."""
    found = dict.fromkeys(number for program in programs for number in program.numbers)
    for array in _stated(programs, free):
        if array.dtype.kind in "iu" or is_float(array):
            found |= dict.fromkeys(array.reshape(-1)[:_LANDMARKS].astype(np.float64).tolist())
    return [number for number in found if np.isfinite(number)][:_LANDMARKS]


def _stated(programs: Iterable[Program], free: frozenset[str]) -> Iterator[Array]:
    for program in programs:
        yield from (array for name, array in program.constants.items() if name not in free)
