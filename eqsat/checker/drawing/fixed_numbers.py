"""Fixed numbers: constants that can not be drawn again, and attributes.

The input is both sides as programs. The output is whether all fixed numbers are exact, and the
landmarks: numbers near which the sides may differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from eqsat.checker.kernels.call import Array, is_float
from eqsat.checker.kernels.evaluate import Program

_LANDMARKS = 64
_PLAIN = 32


def is_plain(programs: Iterable[Program], free: frozenset[str]) -> bool:
    """Whether all fixed floats are small multiples of 1/2. Such a number is exact: it is not the
    rounding of another one, even in bfloat16.
    """
    for array in _fixed(programs, free):
        if not is_float(array):
            continue
        doubled = np.clip(array.astype(np.float64), -2 * _PLAIN, 2 * _PLAIN) * 2
        if not ((doubled == np.rint(doubled)) & (np.abs(doubled) <= 2 * _PLAIN)).all():
            return False
    return True


def is_finite(programs: Sequence[Program], free: frozenset[str]) -> bool:
    """Whether no fixed number is NaN or an infinity."""
    attributes = all(np.isfinite(number) for program in programs for number in program.numbers)
    return attributes and all(bool(np.isfinite(array).all()) for array in _fixed(programs, free) if is_float(array))


def landmarks(programs: Sequence[Program], free: frozenset[str]) -> list[float]:
    """The finite constants and attributes of the sides."""
    found = dict.fromkeys(number for program in programs for number in program.numbers)
    for array in _fixed(programs, free):
        if array.dtype.kind in "iu" or is_float(array):
            found |= dict.fromkeys(array.reshape(-1)[:_LANDMARKS].astype(np.float64).tolist())
    return [number for number in found if np.isfinite(number)][:_LANDMARKS]


def _fixed(programs: Iterable[Program], free: frozenset[str]) -> Iterator[Array]:
    for program in programs:
        yield from (array for name, array in program.constants.items() if name not in free)
