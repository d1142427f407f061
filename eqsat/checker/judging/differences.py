"""Differences of two arrays: in bits, or by more than rounding explains.

The input is an output of the left side and the same output of the right; then, for reals, both
under disturbances. The output is the elements that differ without explanation. No constant is
tuned:

    tolerance of an element = ROUNDING * spread + doubt

`spread` measures how far the element moves, relative to the disturbance. A random relative delta
disturbs every float that enters or leaves a rounding node. `spread` is the largest move of the
element on either side, divided by delta. A sum of terms t moves by delta * |sum of random parts of
t|, so the spread is, up to chance, the magnitude of the terms, however many nodes they passed and
however much they cancelled later. A double rounds by 1.1e-16, and ROUNDING, 1e-12, allows nine
thousand such errors in a row. Eight disturbances exclude chance: the probability that eight random
sums all fall below a thousandth of their terms is 1e-24.

`doubt` measures how far the two sides move apart when fixed numbers are off by up to four units in
the last place of their type (eqsat/checker/kernels/noise.py). A rule that writes sqrt(2) writes a
rounding of it, half a unit off. Eight random choices from eight times that range do not all miss
it. The tolerance also allows UNDERFLOW, below which doubles lose precision.

A disturbance may change an integer or a truth value, or make a finite number infinite or NaN. Such
an element is near a tie or a pole, and decides nothing. Disturbances come in opposite pairs, so one
of the two crosses any border that runs through the values.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from eqsat.checker.kernels.call import Array, is_float, some

ROUNDING: Final = 1e-12
UNDERFLOW: Final = 2.0**-970
_WORDS: Final = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}  # by bytes of a float


def unequal_bits(left: Array, right: Array) -> Array:
    """A mask of the elements that differ in a bit. All NaNs are equal; -0 is not 0."""
    if not is_float(left):
        return np.asarray(left != right)
    word = _WORDS[left.dtype.itemsize]
    other = (np.ascontiguousarray(left).view(word) != np.ascontiguousarray(right).view(word)).reshape(left.shape)
    if not some(other):
        return other
    return other & ~(np.isnan(left.astype(np.float64)) & np.isnan(right.astype(np.float64)))


class Difference:
    """One output of both sides, floats in double precision, and its moves under disturbances."""

    def __init__(self, left: Array, right: Array, poles: bool) -> None:
        """`poles`: an infinity occurred in finite computations.

        Elements that are finite on one side alone are then overflows or poles, and count against
        neither side.
        """
        self._sides = (left, right)
        self._float = is_float(left)
        self._spread = np.zeros(left.shape)
        self._doubt = np.zeros(left.shape)
        self._near = np.zeros(left.shape, np.bool_)
        if not some(left != right):
            self.error = np.zeros(left.shape)
        elif self._float:
            both, neither = np.isfinite(left) & np.isfinite(right), ~np.isfinite(left) & ~np.isfinite(right)
            with np.errstate(all="ignore"):
                self.error = np.where(both, np.abs(left - right), np.where(neither | poles, 0.0, np.inf))
        else:
            self.error = np.where(left == right, 0.0, np.inf)

    @property
    def any(self) -> bool:
        """Whether any element differs."""
        return some(self.error > 0)

    @property
    def decides(self) -> bool:
        """Whether any element was compared: numbers that are finite on both sides, integers, truth
        values. True also if there are no elements.
        """
        comparable = np.isfinite(self._sides[0]) & np.isfinite(self._sides[1]) if self._float else True
        return not self._near.size or some(comparable & ~self._near)

    def disturbed(self, side: int, array: Array, delta: float) -> None:
        """Notes the output of a side (0: left) under a disturbance of rounding by `delta`."""
        with np.errstate(over="ignore"):
            np.maximum(self._spread, self._moved(side, array) / delta, out=self._spread)

    def fixed_disturbed(self, left: Array, right: Array) -> None:
        """Notes how far both outputs moved apart under a disturbance of fixed numbers, which moves
        equal numbers alike.
        """
        together = self._moved(0, left) + self._moved(1, right)
        if self._float and left.shape == right.shape == self._near.shape:
            a, b = self._sides
            with np.errstate(all="ignore"):
                apart = np.abs((left - right) - (a - b))
            together = np.where(np.isfinite(apart), apart, together)
        np.maximum(self._doubt, together, out=self._doubt)

    def _moved(self, side: int, array: Array) -> Array:
        clean = self._sides[side]
        if array.shape != clean.shape:  # a size depends on the disturbed values
            self._near[...] = True
            return np.zeros(clean.shape)
        if not self._float:
            self._near |= array != clean
            return np.zeros(clean.shape)
        self._near |= np.isfinite(array) != np.isfinite(clean)
        with np.errstate(all="ignore"):
            return np.where(np.isfinite(array) & np.isfinite(clean), np.abs(array - clean), 0.0)

    @property
    def tolerance(self) -> Array:
        """The difference of each element that rounding and fixed numbers explain."""
        return ROUNDING * self._spread + self._doubt + UNDERFLOW

    @property
    def unexplained(self) -> Array:
        """A mask of the elements that differ by more than the tolerance."""
        different = self.error > 0
        return (self.error > self.tolerance) & ~self._near if some(different) else different
