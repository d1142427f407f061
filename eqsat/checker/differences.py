"""Where two arrays differ, in bits or by more than rounding explains.

Comes in: an output of the left side and the same of the right; then, for reals, what either becomes when it is disturbed.
Goes out: which elements differ without explanation. Nothing here is a knob:

    tolerance of an element = ROUNDING * spread + doubt

`spread` is the most that the element moved on either side, for its size, when every float that enters or leaves a rounding
node was disturbed by a random relative delta; divided by delta. A sum of terms t moves by delta * |sum of random parts of t|:
so the spread is, but for chance, the magnitude of the terms, through however many nodes they came and however much they
cancelled afterwards. A double rounds by 1.1e-16; ROUNDING, 1e-12, allows nine thousand such errors in a row. Chance is
met by disturbing again, eight times: that eight random sums all fall below a thousandth of what they are sums of has a
probability of 1e-24. `doubt` is the most that the two sides moved apart when stated numbers were off by up to four units in the
last place of their type (eqsat/checker/noise.py): a rule that writes sqrt(2) writes a rounding of it, half a unit off; eight
random choices out of eight times that range do not all miss it. UNDERFLOW is where doubles lose their precision.

An element that leaves its kind under a disturbance (an integer or truth that changes, a number that ceases to be
finite) is a near-tie, or near a pole, and decides nothing. Disturbances come in opposite pairs, so that a border which runs
through the values is crossed by one of the two.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from eqsat.checker.call import Array, is_float

ROUNDING: Final = 1e-12
UNDERFLOW: Final = 2.0**-970


def unequal_bits(left: Array, right: Array) -> Array:
    """Which elements differ in a bit. NaN is one value; -0 is not 0."""
    if not is_float(left):
        return np.asarray(left != right)
    word = np.dtype(f"u{left.dtype.itemsize}")
    same = np.ascontiguousarray(left).view(word) == np.ascontiguousarray(right).view(word)
    return ~(same | (np.isnan(left.astype(np.float64)) & np.isnan(right.astype(np.float64)))).reshape(left.shape)


class Difference:
    """One output of both sides, floats in double precision, and how either moves."""

    def __init__(self, left: Array, right: Array, poles: bool) -> None:
        """`poles`: an infinity occurred in finite computations; what is finite on one side alone is an overflow or a pole then, and open to neither side."""
        self._sides = (left, right)
        self._float = is_float(left)
        self._spread = np.zeros(left.shape)
        self._doubt = np.zeros(left.shape)
        self._near = np.zeros(left.shape, np.bool_)
        if self._float:
            both, neither = np.isfinite(left) & np.isfinite(right), ~np.isfinite(left) & ~np.isfinite(right)
            with np.errstate(all="ignore"):
                self.error = np.where(both, np.abs(left - right), np.where(neither | poles, 0.0, np.inf))
        else:
            self.error = np.where(left == right, 0.0, np.inf)

    @property
    def any(self) -> bool:
        """Whether an element differs at all."""
        return bool((self.error > 0).any())

    @property
    def decides(self) -> bool:
        """Whether an element was compared at all: numbers that are finite on both sides, integers, truths; or there are none to compare."""
        comparable = np.isfinite(self._sides[0]) & np.isfinite(self._sides[1]) if self._float else True
        return not self._near.size or bool((comparable & ~self._near).any())

    def disturbed(self, side: int, array: Array, delta: float) -> None:
        """Take note of what a side (0: left) became when rounding was disturbed by `delta`."""
        with np.errstate(over="ignore"):
            np.maximum(self._spread, self._moved(side, array) / delta, out=self._spread)

    def stated(self, left: Array, right: Array) -> None:
        """Take note of what both sides became when stated numbers were disturbed, equal ones alike: what counts is how far they moved apart."""
        together = self._moved(0, left) + self._moved(1, right)
        if self._float and left.shape == right.shape == self._near.shape:
            a, b = self._sides
            with np.errstate(all="ignore"):
                apart = np.abs((left - right) - (a - b))
            together = np.where(np.isfinite(apart), apart, together)
        np.maximum(self._doubt, together, out=self._doubt)

    def _moved(self, side: int, array: Array) -> Array:
        clean = self._sides[side]
        if array.shape != clean.shape:  # a size depends on what was disturbed
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
        """What rounding and stated numbers explain of each element."""
        return ROUNDING * self._spread + self._doubt + UNDERFLOW

    @property
    def unexplained(self) -> Array:
        """Which elements differ by more."""
        return (self.error > self.tolerance) & ~self._near
