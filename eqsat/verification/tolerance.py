"""Tolerance: comparison of the outputs of two models, with a tolerance derived from the original.

The inputs are values as eqsat/runtime/session.py returns them. The output tells whether they are
the same bits, and if not, whether the original's own sensitivity explains the difference. The
tolerance is derived and is never a knob:

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

import hashlib
import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from eqsat.frozen import frozen
from eqsat.runtime.session import Sparse
from eqsat.verification.steering import Decided

MULTIPLE = 8
ULPS = 4
SPREAD = 4
_LIKE = 3  # magnitudes are alike if their exponents differ in this many of the last bits alone
_MARGIN = 1e-9  # by which a quick comparison of an error with a tolerance errs on the safe side
_PEERS = 1 << 16  # the peers of a large array whose moves count; the median of more is the same
_JUMP = 16  # an error this many times the moves of its peers counts as a near-tie


@frozen(slots=False)
class Leaf:
    """One array of an output; an absent optional has no array.

    `path` is its place in the output: "" for a tensor, "[2]" in a sequence, and so on.
    """

    path: str
    array: np.ndarray | None

    @property
    def signature(self) -> str:
        if self.array is None:
            return f"{self.path}none"
        kind = "string" if self.array.dtype.kind in "OUST" else self.array.dtype.name
        return f"{self.path}{kind}[{','.join(map(str, self.array.shape))}]"


def leaves(value: Any) -> list[Leaf]:
    """Returns the arrays of an output in a fixed order."""
    found: list[Leaf] = []
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, list):
            found.append(Leaf(f"{path}sequence of ", np.asarray(len(item))))  # pyright: ignore[reportUnknownArgumentType]
            waiting.extend((f"{path}[{number}]", part) for number, part in reversed(list(enumerate(item))))  # pyright: ignore
        elif isinstance(item, dict):
            waiting.extend((f"{path}[{key!r}]", item[key]) for key in sorted(item, reverse=True))  # pyright: ignore
        elif isinstance(item, Sparse):
            path = f"{path}sparse[{','.join(map(str, item.shape))}]"
            waiting.extend(((f"{path}.values", item.values), (f"{path}.indices", item.indices)))
        else:
            found.append(Leaf(path, None if item is None else np.asarray(item)))
    return found


def differences(original: Any, optimized: Any) -> list[tuple[int, Difference]]:
    """Returns the arrays of two outputs of one signature that differ, by the numbers of their leaves."""
    pairs = zip(leaves(original), leaves(optimized), strict=True)
    found = [(number, Difference(a.array, b.array)) for number, (a, b) in enumerate(pairs) if a.array is not None and b.array is not None]
    return [(number, difference) for number, difference in found if difference.any]


def signature(value: Any) -> str:
    """Returns the type of an output as text: element types and shapes.

    Outputs of one signature can be compared.
    """
    return ", ".join(leaf.signature for leaf in leaves(value))


def plain(array: np.ndarray) -> np.ndarray:
    """Returns the same values in a dtype that numpy computes with."""
    if array.dtype.kind == "c":
        return np.stack((np.real(array), np.imag(array)), axis=-1)
    if array.dtype.kind in "biufOUST" and array.dtype.isbuiltin == 1:
        return array
    return array.astype(np.float32 if is_float(array) else np.int8 if array.dtype.name.startswith("int") else np.uint8)


def is_float(array: np.ndarray) -> bool:
    """Tells whether the elements are floating-point or complex numbers of any width."""
    return array.dtype.kind in "fc" or "float" in array.dtype.name


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns a mask of the equal elements of two plain arrays, where NaN equals NaN."""
    equal = a == b
    if a.dtype.kind == "f":
        equal = equal | (np.isnan(a) & np.isnan(b))
    return np.asarray(equal)


def ulp(magnitude: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Returns one unit in the last place, in `dtype`, of numbers given in double precision."""
    epsilon, least = _precision(dtype)
    exponent = np.frexp(np.where(np.isfinite(magnitude), magnitude, 0))[1]
    return np.maximum(np.ldexp(epsilon, exponent - 1), least)


def _precision(dtype: np.dtype[Any]) -> tuple[float, float]:
    import ml_dtypes

    information = cast(Any, ml_dtypes.finfo(dtype))  # handles numpy's own types too
    return float(information.eps), float(information.smallest_subnormal)


def nudge(value: Any, units: int, generator: np.random.Generator, coarsest: np.dtype[Any] | None = None) -> Any:
    """Returns the value with each floating-point element moved by `units` in its last place.

    Types narrower than 32 bits move by one unit. The signs are random. Zeros stay: a number that
    crosses zero would be another case, not nearly the same one. With `coarsest`, the last place is
    that of this type if the element's own is finer.
    """
    if isinstance(value, list):
        return [nudge(part, units, generator, coarsest) for part in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {key: nudge(part, units, generator, coarsest) for key, part in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, np.ndarray):
        return value
    array = cast(np.ndarray, value)
    if not is_float(array) or array.dtype.kind == "c":
        return array
    up = generator.integers(0, 2, array.shape, dtype=np.int8)
    if coarsest is None and array.dtype.kind == "f" and array.dtype.itemsize in (4, 8):
        return _next(array, np.where(up, units, -units))
    numbers = np.asarray(plain(array), dtype=np.float64)
    step = ulp(np.abs(numbers), array.dtype) * (units if array.dtype.itemsize >= 4 else 1)
    if coarsest is not None:
        step = np.maximum(step, ulp(np.abs(numbers), coarsest))
    with np.errstate(all="ignore"):
        moved = (numbers + np.where(up, step, -step)).astype(array.dtype)
        keep = (numbers == 0) | ~np.isfinite(plain(moved))
    return np.where(keep, array, moved)


def _next(array: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Returns floats so many places further from zero, or nearer to it if `places` is negative.

    Neighbors of one sign have consecutive bits. Elements that would reach zero or infinity stay.
    """
    whole = np.dtype(f"i{array.dtype.itemsize}")
    bits = np.ascontiguousarray(array).view(whole).reshape(array.shape)
    moved = (bits + places.astype(whole)).view(array.dtype)
    keep = (array == 0) | ~np.isfinite(array) | ~np.isfinite(moved) | (moved == 0)
    return np.where(keep, array, moved)


class Difference:
    """One array of both models' outputs, and how far the original's array moves.

    Only elements that differ are judged. The moves of all elements are noted, because an element
    may borrow those of its peers.
    """

    def __init__(self, original: np.ndarray, optimized: np.ndarray) -> None:
        self._dtype = original.dtype
        self._float = is_float(original)
        self._a, self._b = plain(original), plain(optimized)
        self._unequal = ~same(self._a, self._b)
        self._flips = np.zeros(self._a.shape, bool)
        self._change = np.zeros(self._a.shape if self._float else ())
        self._least = self._most = self._a

    @property
    def any(self) -> bool:
        """Tells whether any element differs."""
        return bool(self._unequal.any())

    def moved(self, nudged: np.ndarray, factor: float) -> bool:
        """Notes the original's result for nudged inputs; its changes count `factor` times.

        Tells whether further nudges may tell more: a result of floats that does not move ignores
        what is nudged, while a discrete one may need many nudges to reach its other side.
        """
        c = plain(nudged)
        if c.shape != self._a.shape or c.dtype != self._a.dtype:
            return True
        if self._float:
            with np.errstate(all="ignore"):
                change = np.asarray(np.subtract(c, self._a, dtype=np.float64))
                np.abs(change, out=change)
                change *= factor
                total = change.sum()
            flips = False
            # A sum is finite only if all of its parts are, and takes no further array.
            if not math.isfinite(total):
                finite = np.isfinite(self._a) & np.isfinite(c)
                flipped = ~finite & ~same(self._a, c)
                self._flips |= flipped
                flips = bool(flipped.any())
                change = np.where(finite, change, 0)
            np.maximum(self._change, change, out=self._change)
            return flips or bool(change.any())
        self._flips |= same(self._b, c)
        if c.dtype.kind in "biu":
            self._least, self._most = np.minimum(self._least, c), np.maximum(self._most, c)
        return True

    def explained(self, decided: Decided = Decided.CHOSEN) -> bool:
        """Tells whether the noted changes explain the whole difference.

        `decided` is the way floats decide discrete elements.
        """
        if not self._float:
            return not self._judge_discrete(decided).unexplained
        suspects = self._suspects
        if (suspects.broken & ~np.take(self._flips, self._places)).any():
            return False
        open_ = suspects.error > np.take(self._change, self._places) + suspects.rounding
        if not open_.any():
            return True
        for here, changes in self._peers(open_):
            error, rounding = suspects.error[here], suspects.rounding[here]
            if _exceeds(error, rounding, changes) or not (error <= _typical(changes) + rounding).all():
                return False
        return True

    def judge(self, decided: Decided = Decided.CHOSEN) -> Finding:
        """Returns the account of the difference: the noted changes explain some of its elements.

        There must be a difference.
        """
        if not self._float:
            return self._judge_discrete(decided)
        error, rounding, broken = self._suspects
        flips, change = np.take(self._flips, self._places), np.take(self._change, self._places)
        peers = np.zeros(len(error))
        for here, changes in self._peers(np.ones(len(error), bool)):
            peers[here] = _typical(changes)
        tolerance = np.maximum(change, peers) + rounding
        unexplained = (broken & ~flips) | (error > tolerance)
        jumps = (broken & flips) | ((error > peers * _JUMP + rounding) & ~unexplained)
        largest = None if broken.any() else float(error.max(initial=0.0))
        count = int(unexplained.sum())
        relative = self._relative(error) if count else math.inf
        return Finding(count, largest, float(tolerance[np.argmax(error / tolerance)]), int(jumps.sum()), relative)

    def _relative(self, error: np.ndarray) -> float:
        """Returns the length of the vector of errors over that of the original's elements."""
        with np.errstate(all="ignore"):
            length = float(np.linalg.norm(np.where(np.isfinite(self._a), self._a, 0).astype(np.float64)))
            return float(np.linalg.norm(error)) / length if length else math.inf

    @cached_property
    def _suspects(self) -> _Suspects:
        """The float elements that differ, in their order."""
        own, other = self._a[self._unequal], self._b[self._unequal]
        broken = ~(np.isfinite(own) & np.isfinite(other))
        with np.errstate(all="ignore"):
            error = np.where(broken, 0.0, np.abs(np.subtract(own, other, dtype=np.float64)))
        if self._dtype == np.float32:
            # The same as `ulp`, which takes several times as long, since it takes any double.
            size = np.abs(np.where(np.isfinite(own), own, 0))
            unit = np.where(size == 0, ulp(np.zeros(()), self._dtype), np.spacing(size))
        else:
            unit = ulp(np.abs(own.astype(np.float64)), self._dtype)
        return _Suspects(error, ULPS * unit, broken)

    @cached_property
    def _kinds(self) -> np.ndarray:
        """The class of magnitude of each element; elements that are not finite count as 0."""
        return (np.frexp(np.where(np.isfinite(self._a), self._a, 0))[1] >> _LIKE).astype(np.int16)

    @cached_property
    def _places(self) -> np.ndarray:
        """The places of the elements that differ."""
        return np.flatnonzero(self._unequal)

    @cached_property
    def _alike(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each class of magnitude that suspects have: their numbers, and the places of the
        elements of the class, or of some if they are many.
        """
        suspects = self._kinds[self._unequal]
        kinds = np.sort(suspects)
        # `np.unique` would load masked arrays, which takes longer than to judge a small model, and so
        # would `np.median` below.
        kinds = kinds[np.flatnonzero(np.diff(kinds, prepend=kinds[:1] - 1))]
        return [(np.flatnonzero(suspects == kind), _some(np.flatnonzero(self._kinds == kind))) for kind in kinds]

    def _peers(self, asked: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields the suspects that are asked for, those of like magnitude together, with the changes
        of their peers.
        """
        for suspects, places in self._alike:
            here = suspects[asked[suspects]]
            if here.size:
                yield here, np.take(self._change, places)

    def _judge_discrete(self, decided: Decided) -> Finding:
        error, excused = None, np.zeros(self._a.shape, bool)
        if self._a.dtype.kind in "biu":
            error = float(np.max(np.abs(self._a.astype(np.float64) - self._b.astype(np.float64)), initial=0.0))
        if decided == Decided.ROUNDED and self._a.dtype.kind in "biu":
            excused = (self._least <= self._b) & (self._b <= self._most)
        elif decided != Decided.NOT:
            excused = self._flips
        return Finding(int((self._unequal & ~excused).sum()), error, 0.0, int((self._unequal & excused).sum()))


def noted(differences: Sequence[tuple[int, Difference]], value: Any, factor: float) -> bool:
    """Notes the original's result for nudged inputs in all differences of an output, as `moved` does."""
    parts = leaves(value)
    moved = [difference.moved(array, factor) for leaf, difference in differences if leaf < len(parts) and (array := parts[leaf].array) is not None]
    return any(moved)


def _some(places: np.ndarray) -> np.ndarray:
    """Returns the places, or every so many of them if there are more than a median needs. The step is
    odd, because axes often have even sizes, and its multiples would be one column.
    """
    return places if places.size <= _PEERS else places[:: (places.size // _PEERS) | 1]


def _exceeds(error: np.ndarray, rounding: np.ndarray, changes: np.ndarray) -> bool:
    """Tells, without a median, that some error is larger than the typical change allows. In doubt
    the answer is no.
    """
    largest = np.argmax(error - rounding)
    # The margin is far above the rounding of these few operations.
    least = (error[largest] - rounding[largest] - _MARGIN * (error[largest] + rounding[largest])) / SPREAD
    # If fewer than half of the changes are as large, so is their median.
    return math.isfinite(least) and 2 * int(np.count_nonzero(changes >= least)) < changes.size


def _typical(changes: np.ndarray) -> float:
    """Returns the largest change without outliers, which an element may borrow from its peers."""
    return min(float(changes.max()), SPREAD * median(changes))


def median(numbers: np.ndarray) -> float:
    """Returns the median of the elements of a vector that is not empty and holds no NaN."""
    high = numbers.size // 2
    low = high - 1 + numbers.size % 2
    return float(np.partition(numbers, [low, high])[low : high + 1].mean())


class _Suspects(NamedTuple):
    """The elements of an array of floats that differ, with those that are not finite as broken."""

    error: np.ndarray
    rounding: np.ndarray
    broken: np.ndarray


@frozen(slots=False)
class Finding:
    """The number of unexplained elements, the largest error, and the tightest tolerance.

    An error of None is not a finite number. `relative` is the error of the whole array, known only
    if some element is unexplained.
    """

    unexplained: int
    max_error: float | None
    tolerance: float
    near_ties: int
    relative: float = math.inf


def digest(value: Any) -> tuple[str, bytes, bytes | None]:
    """Returns an output in few bytes: its type, its content, and its element if it is uniform."""
    content = hashlib.blake2b(digest_size=16)
    elements: set[bytes] = set()
    for leaf in leaves(value):
        if leaf.array is not None:
            array = plain(leaf.array)
            if array.dtype.kind == "f":
                array = array + array.dtype.type(0)  # makes -0 and 0 the same bits
            data = repr(array.tolist()).encode() if array.dtype.kind in "OUST" else array.tobytes()
            content.update(data)
            if array.size:
                first = array.reshape(-1)[:1]
                elements.add(first.tobytes() if array.dtype.kind not in "OUST" and same(array, first).all() else data)
    return signature(value), content.digest(), elements.pop() if len(elements) == 1 else None


def moves(digests: list[tuple[str, bytes, bytes | None]]) -> bool:
    """Tells whether an output held different elements on different inputs.

    A uniform tensor that only grew did not move.
    """
    return any(first[1] != other[1] and (first[0] == other[0] or first[2] is None or first[2] != other[2]) for first, other in itertools.pairwise(digests))
