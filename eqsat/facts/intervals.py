"""Ranges: two intervals of a tensor's elements, and their arithmetic.

`low` and `high` bound the elements in real arithmetic, `least` and `most` those that runtimes
compute with their rounding. A NaN lies in every range whose `nan` is true. Bounds of integers and
truth values are integers, and those of floats are floats, which may be infinite. All bounds are
rounded outward, so that a range is never too narrow.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

Elements: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Number: TypeAlias = int | float
Ends: TypeAlias = tuple[Number, Number]
# From the ends of the inputs, those of the result; None if it has no bounds.
Transfer: TypeAlias = "Callable[[Sequence[Ends]], Ends | None]"

BOOL = int(TensorProto.BOOL)
_FLOATS = frozenset(int(TensorProto.DataType.Value(name)) for name in "FLOAT DOUBLE FLOAT16 BFLOAT16".split())
_FLOAT = int(TensorProto.FLOAT)
_SINGLE = struct.Struct("<f")
_INFO: Any = ml_dtypes.finfo  # it is untyped
_HALF = float((1 << 27) + 1)  # splits the digits of a double into halves
_SMALL, _LARGE = 2.0**-500, 2.0**500  # the product of two numbers between them is normal


class Range(NamedTuple):
    """The bounds of all elements that are numbers, and whether others may be NaN."""

    low: Number
    high: Number
    least: Number
    most: Number
    nan: bool

    @property
    def real(self) -> Ends:
        """The bounds in real arithmetic."""
        return self.low, self.high

    @property
    def rounded(self) -> Ends:
        """The bounds of what runtimes compute."""
        return self.least, self.most

    @property
    def finite(self) -> bool:
        """Whether each element is known to be a finite number."""
        return not self.nan and math.isfinite(self.least) and math.isfinite(self.most)


def is_floating(dtype: int) -> bool:
    """Tell whether ranges of this data type are floats."""
    return dtype in _FLOATS


@functools.cache
def limits(dtype: int) -> Ends | None:
    """Return the bounds that a data type has by itself; None if its elements are no numbers."""
    if dtype == BOOL:
        return 0, 1
    if dtype in _FLOATS:
        return -math.inf, math.inf
    if "INT" not in TensorProto.DataType.Name(dtype):  # pyright: ignore[reportArgumentType]
        return None
    information = ml_dtypes.iinfo(helper.tensor_dtype_to_np_dtype(dtype))
    return int(information.min), int(information.max)


@functools.cache
def finite_limits(dtype: int) -> Ends:
    """Return the least and the greatest finite number of a data type that has limits."""
    if dtype in _FLOATS:
        information = _INFO(helper.tensor_dtype_to_np_dtype(dtype))
        return float(information.min), float(information.max)
    return limits(dtype) or (0, 0)


@functools.cache
def everything(dtype: int) -> Range | None:
    """Return the range that says nothing; None for a data type without numbers."""
    ends = limits(dtype)
    return None if ends is None else Range(*ends, *ends, dtype in _FLOATS)


def spanned(elements: Elements) -> Range | None:
    """Return the range of the elements of a constant of floats; None if none is a number."""
    numbers = elements.astype(np.float64).ravel()
    known = numbers[~np.isnan(numbers)]
    if not known.size:
        return None
    ends = float(known.min()), float(known.max())
    return Range(*ends, *ends, known.size < numbers.size)


def coarse(dtype: int, found: Range | None) -> Range | None:
    """Return a wider range of floats, whose ends are of few kinds; None if it says nothing.

    Facts of layers that differ in their weights then stay equal.
    """
    if found is None:
        return None
    tiny, most = _normal(dtype)
    kinds = (-math.inf, -most, -1.0, 0.0, tiny, 1.0, most, math.inf)
    ends = max(end for end in kinds if end <= found.low), min(end for end in kinds if end >= found.high)
    wider = Range(*ends, *ends, found.nan)
    return None if wider == everything(dtype) else wider


def made(dtype: int, real: Ends | None, rounded: Ends | None, nan: bool) -> Range | None:
    """Return the range with these ends, rounded outward to a data type; None if it says nothing.

    An end of an integer type that does not fit may have wrapped, so that it bounds nothing.
    """
    whole = everything(dtype)
    if whole is None:
        return None
    real, rounded = (None if ends is None else _fitted(dtype, ends) for ends in (real, rounded))
    found = Range(*(real or whole.real), *(rounded or whole.rounded), nan and whole.nan)
    return None if found == whole else found


def _fitted(dtype: int, ends: Ends) -> Ends | None:
    low, high = ends
    if dtype in _FLOATS:
        return outward(dtype, low, -math.inf), outward(dtype, high, math.inf)
    whole = limits(dtype)
    fits = whole is not None and isinstance(low, int) and isinstance(high, int) and whole[0] <= low and high <= whole[1]
    return ends if fits else None


def outward(dtype: int, value: Number | Fraction, towards: float) -> float:
    """Return the nearest number of a float type that lies on the side of `towards`.

    Runtimes may turn denormal numbers into zero, so a bound among them becomes zero or the least
    normal number.
    """
    if isinstance(value, float):
        if value == 0.0 or math.isinf(value):
            return value + 0.0
        tiny, most = _normal(dtype)
        if dtype == _FLOAT and tiny <= abs(value) <= most:
            (near,) = _SINGLE.unpack(_SINGLE.pack(value))
            fits = near >= value if towards > 0 else near <= value
            return near if fits else float(np.nextafter(np.float32(near), np.float32(towards)))
    return _outward(dtype, value, towards)


@functools.cache
def _normal(dtype: int) -> Ends:
    """Return the least positive normal number and the greatest finite number of a float type."""
    information = _INFO(helper.tensor_dtype_to_np_dtype(dtype))
    return float(information.tiny), float(information.max)


@functools.lru_cache(maxsize=1 << 12)
def _outward(dtype: int, value: Number | Fraction, towards: float) -> float:
    if isinstance(value, float) and math.isnan(value):
        return towards
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    exact = Fraction(value)
    with np.errstate(all="ignore"):
        try:
            near = np.array(float(exact)).astype(kind)
        except OverflowError:
            near = np.array(math.inf if exact > 0 else -math.inf).astype(kind)
        number = float(near)
        if math.isinf(number) or (Fraction(number) > exact if towards < 0 else Fraction(number) < exact):
            number = number if number == towards else float(np.nextafter(near, np.array(towards).astype(kind)))
        tiny = _normal(dtype)[0]
    if 0 < abs(number) < tiny:
        return 0.0 if (number > 0) == (towards < 0) else math.copysign(tiny, number)
    return number


def apply(dtype: int, transfer: Transfer, inputs: Sequence[Range], nan: bool) -> Range | None:
    """Return the range of an operator's result, whose elements a runtime rounds at most once."""
    return made(dtype, transfer([one.real for one in inputs]), transfer([one.rounded for one in inputs]), nan)


def hull(dtype: int, ranges: Iterable[Range]) -> Range | None:
    """Return the range of a tensor whose elements come from tensors of these ranges."""
    found = list(ranges)
    if not found:
        return None
    low, high, least, most = (pick(one[place] for one in found) for place, pick in enumerate((min, max, min, max)))
    return made(dtype, (low, high), (least, most), any(one.nan for one in found))


def meet(a: Range, b: Range) -> Range:
    """Return the range of a value that lies in both."""
    return Range(max(a.low, b.low), min(a.high, b.high), max(a.least, b.least), min(a.most, b.most), a.nan and b.nan)


# --- arithmetic; the results are exact, as fractions where floats are not ---


def _sum(a: Number, b: Number, undefined: float) -> Any:
    """Return the sum of two ends. Where a double holds it, as for most floats of 32 bits, it is one."""
    if isinstance(a, float) and isinstance(b, float):
        total = a + b
        part = total - a
        if math.isfinite(total) and (a - (total - part)) + (b - part) == 0:
            return total + 0.0
    return _exact(lambda x, y: x + y, a, b, undefined)


def _product(a: Number, b: Number) -> Any:
    """Return the product of two ends. That of two numbers with half the digits of a double is one."""
    if isinstance(a, float) and isinstance(b, float) and _is_short(a) and _is_short(b):
        return a * b + 0.0
    return _exact(lambda x, y: x * y, a, b, 0.0)


def _is_short(number: float) -> bool:
    """Tell whether a number has at most 26 digits and is far from the ends of doubles."""
    return number == 0 or (_SMALL < abs(number) < _LARGE and (number * _HALF) - (number * _HALF - number) == number)


def is_infinite(end: Number) -> bool:
    """Tell whether an end is infinite. A fraction is not, though it may be beyond all floats."""
    return isinstance(end, float) and math.isinf(end)


def _exact(function: Callable[[Any, Any], Any], a: Number, b: Number, undefined: float) -> Any:
    """Return a function of two ends; `undefined` where it is, as for infinity minus infinity."""
    if isinstance(a, int) and isinstance(b, int):
        return function(a, b)
    if is_infinite(a) or is_infinite(b):
        # Beside an infinity the sign of the other end decides, which may be beyond all floats.
        a, b = (end if is_infinite(end) else (end > 0) - (end < 0) for end in (a, b))
        with np.errstate(all="ignore"):
            found = float(function(np.float64(a), np.float64(b)))
        return undefined if math.isnan(found) else found
    return function(Fraction(a), Fraction(b))


def add(ends: Sequence[Ends]) -> Ends:
    """Return the ends of a sum of two."""
    (a, b), (c, d) = ends
    return _sum(a, c, -math.inf), _sum(b, d, math.inf)


def subtract(ends: Sequence[Ends]) -> Ends:
    """Return the ends of a difference."""
    (a, b), (c, d) = ends
    return add([(a, b), (-d, -c)])


def multiply(ends: Sequence[Ends]) -> Ends:
    """Return the ends of a product of two. An infinite end times zero is zero, for all numbers
    below that end.
    """
    products = [_product(x, y) for x in ends[0] for y in ends[1]]
    return min(products), max(products)


def divide(ends: Sequence[Ends]) -> Ends | None:
    """Return the ends of a quotient of floats; None if the divisor may be zero."""
    (_, _), (c, d) = ends
    if c <= 0 <= d:
        return None
    quotients = [_exact(lambda x, y: Fraction(x, y) if isinstance(x, int) else x / y, x, y, 0.0) for x in ends[0] for y in (c, d)]
    return min(quotients), max(quotients)
