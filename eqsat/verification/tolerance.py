"""Tolerance: comparison of the outputs of two models, with a tolerance derived from the original.

The output tells whether two values are the same bits, and if not, whether the original's own
sensitivity explains the difference. The tolerance is derived and is never a knob:

    tolerance of an element = MULTIPLE * change + ULPS * ulp

`change` measures how far this element of the original moves under nudges of its inputs. The nudges
are one unit in the last place at random signs, several times, and MULTIPLE units, which count
without the factor. `change` is the largest move. If elements of like magnitude moved further, it is
their largest move, but at most SPREAD times their median. `ulp` is one unit in the last place of
the element itself.

So an element that moved little by chance borrows the moves of its peers. Yet beside a mask of -1e9,
or a few elements that rounding made jump, the rest must be as exact as ever. If an element is
finite in one model only, a nudge must have changed the original's element in the same way.

A discrete element that differs must be a near-tie. eqsat/verification/steering.py tells how floats
decide it. If floats are rounded to it, it must lie between values that the original took when
nudged. If floats choose it, it must be one of these values. If no float decides it, nothing excuses
it. NaN equals NaN, and 0 equals -0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from eqsat.frozen import frozen
from eqsat.verification.last_places import ulp
from eqsat.verification.leaves import blocks, is_float, leaves, plain, same
from eqsat.verification.steering import Decided

MULTIPLE = 8
ULPS = 4
SPREAD = 4
_LIKE = 3  # magnitudes are alike if their exponents differ in this many of the last bits alone
_MARGIN = 1e-9  # by which a quick comparison of an error with a tolerance errs on the safe side
_PEERS = 1 << 16  # the peers of a large array whose moves count; the median of more is the same
_JUMP = 16  # an error this many times the moves of its peers counts as a near-tie


def differences(original: Any, optimized: Any) -> list[tuple[int, Difference]]:
    """Returns the arrays of two outputs of one signature that differ, by the numbers of their leaves."""
    pairs = zip(leaves(original), leaves(optimized), strict=True)
    found = [(number, Difference(a.array, b.array)) for number, (a, b) in enumerate(pairs) if a.array is not None and b.array is not None]
    return [(number, difference) for number, difference in found if difference.any]


class Difference:
    """One array of both models' outputs, and how far the original's array moves.

    Only elements that differ are judged. The moves of all elements are noted, because an element
    may borrow those of its peers.
    """

    def __init__(self, original: np.ndarray, optimized: np.ndarray) -> None:
        self._dtype = original.dtype
        self._float = is_float(original)
        a, b = plain(original), plain(optimized)
        self._shape = a.shape
        self._a, self._b = a.reshape(-1), b.reshape(-1)
        self._parts = [part for part in blocks(self._a.size) if not same(self._a[part], self._b[part]).all()]
        """The parts with elements that differ."""
        self._noted = False
        self._flips = np.zeros(self._a.shape, bool)
        self._change = np.zeros(self._a.shape if self._float else ())
        self._least = self._most = self._a
        self._alike: dict[int, np.ndarray] = {}
        """By class of magnitude: the places of its elements, or of some if they are many."""

    @property
    def any(self) -> bool:
        """Tells whether any element differs."""
        return bool(self._parts)

    def _places(self, part: slice) -> np.ndarray:
        """Returns the places of the elements in a part that differ."""
        return np.flatnonzero(~same(self._a[part], self._b[part])) + part.start

    def moved(self, nudged: np.ndarray, factor: float) -> bool:
        """Notes the original's result for nudged inputs; its changes count `factor` times.

        Tells whether further nudges may tell more: a result of floats that does not move ignores
        what is nudged, while a discrete one may need many nudges to reach its other side.
        """
        c = plain(nudged)
        if c.shape != self._shape or c.dtype != self._a.dtype:
            return True
        c = c.reshape(-1)
        self._noted = True
        if self._float:
            moved = [self._note(part, c[part], factor) for part in blocks(c.size)]
            return any(moved)
        self._flips |= same(self._b, c)
        if c.dtype.kind in "biu":
            self._least, self._most = np.minimum(self._least, c), np.maximum(self._most, c)
        return True

    def _note(self, part: slice, c: np.ndarray, factor: float) -> bool:
        """Notes a part of a nudged result of floats. Tells whether it moved."""
        a = self._a[part]
        flips = False
        with np.errstate(all="ignore"):
            change = np.asarray(np.subtract(c, a, dtype=np.float64))
            np.abs(change, out=change)
            change *= factor
            total = change.sum()
        # A sum is finite only if all of its parts are, and takes no further array.
        if not math.isfinite(total):
            finite = np.isfinite(a) & np.isfinite(c)
            flipped = ~finite & ~same(a, c)
            self._flips[part] |= flipped
            flips = bool(flipped.any())
            change = np.where(finite, change, 0)
        np.maximum(self._change[part], change, out=self._change[part])
        return flips or bool(change.any())

    def explained(self, decided: Decided = Decided.CHOSEN) -> bool:
        """Tells whether the noted changes explain the whole difference.

        `decided` is the way floats decide discrete elements.
        """
        if not self._float:
            return not self._judge_discrete(decided).unexplained
        if not self._noted:
            return self._rounded is not None
        worst: dict[int, float] = {}
        """By class of magnitude: the largest excess of the elements that moved less than it."""
        for part in self._parts:
            suspects = self._suspects(part)
            if (suspects.broken & ~self._flips[suspects.places]).any():
                return False
            open_ = np.flatnonzero(suspects.excess > self._change[suspects.places])
            kinds, excess = self._kinds[suspects.places[open_]], suspects.excess[open_]
            for kind in _distinct(kinds):
                worst[kind] = max(worst.get(kind, 0.0), float(excess[kinds == kind].max()))
        return all(_are_typical(self._peers(kind), excess) for kind, excess in worst.items())

    def judge(self, decided: Decided = Decided.CHOSEN) -> Finding:
        """Returns the account of the difference: the noted changes explain some of its elements.

        There must be a difference.
        """
        if not self._float:
            return self._judge_discrete(decided)
        if not self._noted and self._rounded is not None:
            return self._rounded
        kinds = {kind for part in self._parts for kind in _distinct(self._kinds[self._places(part)])}
        typical = {kind: _typical(self._peers(kind)) for kind in kinds}
        least = min(typical)
        by_kind = np.array([typical.get(kind, 0.0) for kind in range(least, max(typical) + 1)])
        unexplained = jumps = 0
        squares = 0.0
        largest, tightest, error_there, tolerance_there = 0.0, -math.inf, 0.0, 0.0
        for part in self._parts:
            places, error, rounding, broken = self._suspects(part)
            flips, peers = self._flips[places], by_kind[self._kinds[places] - least]
            typical_or_own = np.maximum(self._change[places], peers)
            without = (broken & ~flips) | (error - rounding > typical_or_own)
            unexplained += int(np.count_nonzero(without))
            with np.errstate(over="ignore"):
                squares += float(np.square(error[without] / self._scale).sum())
            jumps += int(np.count_nonzero((broken & flips) | ((error > peers * _JUMP + rounding) & ~without)))
            tolerance = typical_or_own + rounding
            shares = error / tolerance
            place = int(np.argmax(shares))
            if shares[place] > tightest:
                tightest, error_there, tolerance_there = float(shares[place]), float(error[place]), float(tolerance[place])
            largest = math.inf if broken.any() else max(largest, float(error.max()))
        most = None if largest == math.inf else largest
        if not unexplained:
            return Finding(0, most, tolerance_there, jumps)
        return Finding(unexplained, most, tolerance_there, jumps, error_there, self._share(squares))

    @cached_property
    def _rounded(self) -> Finding | None:
        """The account of a difference that a few units in the last place of each element explain,
        without any change; None if they do not.

        It is what the suspects would show, of which a large array may have as many as elements.
        """
        largest, tightest, tolerance = 0.0, -math.inf, 0.0
        for part in self._parts:
            own, other = self._a[part], self._b[part]
            with np.errstate(all="ignore"):
                error = np.abs(np.subtract(own, other, dtype=np.float64))
            error[same(own, other)] = 0.0
            rounding = ULPS * self._ulp(own)
            if not (error <= rounding).all():  # nor is NaN, of an element that is finite in one model only
                return None
            shares = error / rounding
            place = int(np.argmax(shares))
            if shares[place] > tightest:
                tightest, tolerance = float(shares[place]), float(rounding[place])
            largest = max(largest, float(error.max()))
        return Finding(0, largest, tolerance, 0)

    @cached_property
    def _scale(self) -> float:
        """The divisor with which squares of the original's elements are finite, so that no large double
        hides an error.
        """
        if self._dtype != np.float64:
            return 1.0
        return max((float(np.abs(np.where(np.isfinite(own), own, 0)).max()) for own in (self._a[part] for part in blocks(self._a.size))), default=0.0) or 1.0

    def _share(self, squares: float) -> float:
        """Returns the length of a vector of errors, from its scaled squares, over that of the original's
        elements.
        """
        total = 0.0
        for part in blocks(self._a.size):
            own = self._a[part]
            total += float(np.square(np.where(np.isfinite(own), own, 0) / self._scale, dtype=np.float64).sum())
        return math.sqrt(squares / total) if total else math.inf

    def _suspects(self, part: slice) -> _Suspects:
        """Returns the float elements in a part that differ. They are found anew each time, because of a
        large array they would take several times its memory.
        """
        places = self._places(part)
        own, other = self._a[places], self._b[places]
        broken = ~(np.isfinite(own) & np.isfinite(other))
        with np.errstate(all="ignore"):
            error = np.where(broken, 0.0, np.abs(np.subtract(own, other, dtype=np.float64)))
        return _Suspects(places, error, ULPS * self._ulp(own), broken)

    def _ulp(self, numbers: np.ndarray) -> np.ndarray:
        """Returns one unit in the last place of numbers of the original."""
        if self._dtype != np.float32:
            return ulp(np.abs(numbers.astype(np.float64)), self._dtype)
        # The same as `ulp`, which takes several times as long, since it takes any double.
        size = np.abs(np.where(np.isfinite(numbers), numbers, 0))
        return np.where(size == 0, ulp(np.zeros(()), self._dtype), np.spacing(size))

    @cached_property
    def _kinds(self) -> np.ndarray:
        """The class of magnitude of each element; elements that are not finite count as 0."""
        found = np.empty(self._a.shape, np.int16)
        for part in blocks(found.size):
            numbers = self._a[part]
            found[part] = np.frexp(np.where(np.isfinite(numbers), numbers, 0))[1] >> _LIKE
        return found

    def _peers(self, kind: int) -> np.ndarray:
        """Returns the changes of the elements of a class of magnitude, or of some if they are many."""
        places = self._alike.get(kind)
        if places is None:
            places = self._alike[kind] = _some(_gathered(np.flatnonzero(self._kinds[part] == kind) + part.start for part in blocks(self._kinds.size)))
        return self._change[places]

    def _judge_discrete(self, decided: Decided) -> Finding:
        places = _gathered(self._places(part) for part in self._parts)
        error, excused = None, np.zeros(places.shape, bool)
        own, other = self._a[places], self._b[places]
        if self._a.dtype.kind in "biu":
            error = float(np.max(np.abs(own.astype(np.float64) - other.astype(np.float64)), initial=0.0))
        if decided == Decided.ROUNDED and self._a.dtype.kind in "biu":
            excused = (self._least[places] <= other) & (other <= self._most[places])
        elif decided != Decided.NOT:
            excused = self._flips[places]
        return Finding(int((~excused).sum()), error, 0.0, int(excused.sum()), error or 0.0)


def noted(differences: Sequence[tuple[int, Difference]], value: Any, factor: float) -> bool:
    """Notes the original's result for nudged inputs in all differences of an output, as `moved` does."""
    parts = leaves(value)
    moved = [difference.moved(array, factor) for leaf, difference in differences if leaf < len(parts) and (array := parts[leaf].array) is not None]
    return any(moved)


def _gathered(parts: Iterator[np.ndarray]) -> np.ndarray:
    """Returns the places that the parts hold, in their order."""
    found = [part for part in parts if part.size]
    return found[0] if len(found) == 1 else np.concatenate(found) if found else np.empty(0, np.intp)


def _distinct(kinds: np.ndarray) -> list[int]:
    """Returns the different elements, in their order.

    `np.unique` would load masked arrays, which takes longer than to judge a small model, and so would
    `np.median` below.
    """
    if not kinds.size:
        return []
    least = int(kinds.min())
    return (np.flatnonzero(np.bincount(kinds - least)) + least).tolist()


def _some(places: np.ndarray) -> np.ndarray:
    """Returns the places, or every so many of them if there are more than a median needs. The step is
    odd, because axes often have even sizes, and its multiples would be one column.
    """
    return places if places.size <= _PEERS else places[:: (places.size // _PEERS) | 1]


def _are_typical(changes: np.ndarray, excess: float) -> bool:
    """Tells whether the typical change is at least `excess`."""
    # If fewer than half of the changes are as large, so is their median, which takes longer to find.
    if 2 * int(np.count_nonzero(changes >= excess * (1 - _MARGIN) / SPREAD)) < changes.size:
        return False
    return excess <= _typical(changes)


def _typical(changes: np.ndarray) -> float:
    """Returns the largest change without outliers, which an element may borrow from its peers."""
    return min(float(changes.max()), SPREAD * median(changes))


def median(numbers: np.ndarray) -> float:
    """Returns the median of the elements of a vector that is not empty and holds no NaN."""
    high = numbers.size // 2
    low = high - 1 + numbers.size % 2
    return float(np.partition(numbers, [low, high])[low : high + 1].mean())


class _Suspects(NamedTuple):
    """The elements of a part of an array of floats that differ, with those that are not finite as broken."""

    places: np.ndarray
    error: np.ndarray
    rounding: np.ndarray
    broken: np.ndarray

    @property
    def excess(self) -> np.ndarray:
        """The error beyond rounding, which changes must explain."""
        return self.error - self.rounding


@frozen(slots=False)
class Finding:
    """The number of unexplained elements, the largest error, and the tightest tolerance.

    An error of None is not a finite number. `error` is that of the element whose tolerance is the
    tightest, known only if some element is unexplained. `relative` is the length of the errors that are not
    explained, as a share of that of the original's elements; infinite if there are none.
    """

    unexplained: int
    max_error: float | None
    tolerance: float
    near_ties: int
    error: float = 0.0
    relative: float = math.inf
