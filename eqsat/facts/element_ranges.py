"""The ranges of operators that compute element by element: functions for the table in `ranges`.

A function takes the output's data type and the ranges of the inputs, and returns the range of the
output; None says nothing. Kernels of Exp, Sigmoid, Tanh and others are not exact, and their results
may even leave the mathematical range: Sigmoid of ONNX Runtime reaches 1.0000001. So the bounds of
what is computed have a margin, which bounds in real arithmetic lack.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
from onnx import TensorProto, helper

from eqsat.facts.intervals import Ends, Number, Range, add, apply, divide, is_floating, limits, made, multiply, subtract

ElementFunction = Callable[[int, Sequence[Range]], "Range | None"]

_INFO: Any = ml_dtypes.finfo  # it is untyped
# The errors of kernels, relative and absolute, are below this margin or some units of rounding.
_MARGIN = 2.0**-14
_UNITS = 16
# In 16 bits, the runtime's sign of NaN is 0.
_SIGNS_OF_NAN = frozenset({int(TensorProto.FLOAT), int(TensorProto.DOUBLE)})
# Functions are evaluated here in double precision, whose errors are below this.
_DOUBLE = 2.0**-40


def kernel_margin(dtype: int) -> float:
    """Return the most that a kernel of a function may err, relative to 1 plus the result."""
    return max(_MARGIN, _UNITS * float(_INFO(helper.tensor_dtype_to_np_dtype(dtype)).eps))


def within(low: float, high: float, defined: Callable[[Range], bool]) -> ElementFunction:
    """Return the function of an operator whose results lie in an interval, whatever the input.

    `defined` tells for the range of the input whether all results are numbers.
    """

    def function(dtype: int, inputs: Sequence[Range]) -> Range | None:
        if not is_floating(dtype):
            return None
        margin = kernel_margin(dtype)
        rounded = low if low == 0 else low - margin * (1 + abs(low)), high if high == 0 else high + margin * (1 + abs(high))
        return made(dtype, (low, high), rounded, not all(map(defined, inputs)))

    return function


def is_finite(x: Range) -> bool:
    """Tell whether all elements are finite numbers."""
    return x.finite


def _is_number(x: Range) -> bool:
    return not x.nan


def _curve(function: Callable[[float], float], low: float, high: float) -> ElementFunction:
    """Return the function of an operator that never decreases, between its limits."""

    def bounded(ends: Ends, margin: float, exact: float) -> Ends:
        found: list[float] = []
        for end, sign in zip(ends, (-1, 1), strict=True):
            value = function(end)
            # At zero and infinity these functions have values without an error.
            error = margin if margin > _DOUBLE or (end != 0 and math.isfinite(end)) else 0.0
            found.append(value + sign * error * (1 + abs(value)) if math.isfinite(value) else value)
        return max(found[0], low - exact * (low != 0)), min(found[1], high + exact)

    def ranged(dtype: int, inputs: Sequence[Range]) -> Range | None:
        (x,) = inputs
        if not is_floating(dtype):
            return None
        margin = kernel_margin(dtype)
        return made(dtype, bounded(x.real, _DOUBLE, 0.0), bounded(x.rounded, margin, 2 * margin), x.nan)

    return ranged


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _sigmoid(x: float) -> float:
    return 1 / (1 + _exp(-x))


def _mapped(function: Callable[[Number], Number]) -> ElementFunction:
    """Return the function of an operator that never decreases and does not round."""

    def transfer(ends: Sequence[Ends]) -> Ends:
        (low, high) = ends[0]
        return function(low), function(high)

    return lambda dtype, inputs: apply(dtype, transfer, inputs, inputs[0].nan)


def _whole(function: Callable[[float], int]) -> Callable[[Number], Number]:
    return lambda x: float(function(x)) if math.isfinite(x) else x


def _sign(dtype: int, inputs: Sequence[Range]) -> Range | None:
    (x,) = inputs
    kind = float if is_floating(dtype) else int
    zero = x.nan and dtype not in _SIGNS_OF_NAN

    def transfer(ends: Sequence[Ends]) -> Ends:
        low, high = ((end > 0) - (end < 0) for end in ends[0])
        return kind(min(low, 0) if zero else low), kind(max(high, 0) if zero else high)

    return apply(dtype, transfer, inputs, x.nan)


def _absolute(dtype: int, inputs: Sequence[Range]) -> Range | None:
    least = limits(dtype)
    if not is_floating(dtype) and least is not None and least[0] < 0 and inputs[0].least <= least[0]:
        return None  # the least integer has no opposite

    def transfer(ends: Sequence[Ends]) -> Ends:
        low, high = ends[0]
        zero = 0.0 if is_floating(dtype) else 0
        return zero if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high))

    return apply(dtype, transfer, inputs, inputs[0].nan)


def _negative(dtype: int, inputs: Sequence[Range]) -> Range | None:
    return apply(dtype, lambda ends: (-ends[0][1], -ends[0][0]), inputs, inputs[0].nan)


def _root(dtype: int, inputs: Sequence[Range]) -> Range | None:
    (x,) = inputs

    def transfer(ends: Sequence[Ends]) -> Ends:
        low, high = (math.sqrt(max(end, 0)) for end in ends[0])
        return low * (1 - _DOUBLE), high * (1 + _DOUBLE)

    return apply(dtype, transfer, inputs, x.nan or x.least < 0)


def _reciprocal(dtype: int, inputs: Sequence[Range]) -> Range | None:
    found = apply(dtype, lambda ends: divide([(1.0, 1.0), *ends]), inputs, inputs[0].nan or inputs[0].least <= 0 <= inputs[0].most)
    return None if inputs[0].low <= 0 <= inputs[0].high else found


def _may_cancel(a: Range, b: Range) -> bool:
    """Tell whether a sum may be infinity minus infinity."""
    return (a.least == -math.inf and b.most == math.inf) or (a.most == math.inf and b.least == -math.inf)


def _sum(dtype: int, inputs: Sequence[Range]) -> Range | None:
    a, b = inputs
    return apply(dtype, add, inputs, a.nan or b.nan or _may_cancel(a, b))


def _difference(dtype: int, inputs: Sequence[Range]) -> Range | None:
    a, b = inputs
    opposite = b._replace(least=-b.most, most=-b.least)
    return apply(dtype, subtract, inputs, a.nan or b.nan or _may_cancel(a, opposite))


def _vanishes(a: Range, b: Range) -> bool:
    """Tell whether a product may be zero times infinity."""
    return a.least <= 0 <= a.most and not (math.isfinite(b.least) and math.isfinite(b.most))


def _product(dtype: int, inputs: Sequence[Range]) -> Range | None:
    a, b = inputs
    return apply(dtype, multiply, inputs, a.nan or b.nan or _vanishes(a, b) or _vanishes(b, a))


def _quotient(dtype: int, inputs: Sequence[Range]) -> Range | None:
    a, b = inputs
    if is_floating(dtype):
        numbers = a.finite and b.finite and not b.least <= 0 <= b.most
        return apply(dtype, divide, inputs, not numbers)
    if not isinstance(a.high, int) or not isinstance(b.high, int) or a.low < 0 or b.low <= 0:
        return None  # runtimes may differ in the rounding of negative quotients
    ends = int(a.low) // b.high, a.high // int(b.low)
    return made(dtype, ends, ends, False)


def _remainder(dtype: int, inputs: Sequence[Range]) -> Range | None:
    a, b = inputs
    if is_floating(dtype) or b.low <= 0 or a.low < 0:
        return None  # of a negative number, the remainder depends on fmod
    ends = 0, min(a.high, b.high - 1)
    return made(dtype, ends, ends, False)


def _largest(dtype: int, inputs: Sequence[Range]) -> Range | None:
    return apply(dtype, lambda ends: (max(end[0] for end in ends), max(end[1] for end in ends)), inputs, any(one.nan for one in inputs))


def _smallest(dtype: int, inputs: Sequence[Range]) -> Range | None:
    return apply(dtype, lambda ends: (min(end[0] for end in ends), min(end[1] for end in ends)), inputs, any(one.nan for one in inputs))


def signs(ends: Ends) -> Ends:
    """Return the ends of sums, of which only signs are certain: rounding adds up."""
    return 0.0 if ends[0] >= 0 else -math.inf, 0.0 if ends[1] <= 0 else math.inf


def _total(dtype: int, inputs: Sequence[Range]) -> Range | None:
    if not is_floating(dtype):
        return None
    if len(inputs) == 2:
        return _sum(dtype, inputs)
    low, high = min(one.least for one in inputs), max(one.most for one in inputs)
    real = signs((min(one.low for one in inputs), max(one.high for one in inputs)))
    return made(dtype, real, signs((low, high)), True)


def mean(dtype: int, inputs: Sequence[Range]) -> Range | None:
    """Return the range of means of elements of these ranges."""
    if not is_floating(dtype):
        return None
    real = min(one.low for one in inputs), max(one.high for one in inputs)
    return made(dtype, real, signs((min(one.least for one in inputs), max(one.most for one in inputs))), True)


def _power(dtype: int, inputs: Sequence[Range]) -> Range | None:
    x, p = inputs
    if not is_floating(dtype) or p.nan or p.least < 0:
        return None
    even = p.low == p.high and p.least == p.most and math.isfinite(p.low) and p.low % 2 == 0
    return made(dtype, (0.0, math.inf), (0.0, math.inf), True) if even or x.least >= 0 else None


def _bits_in_common(dtype: int, inputs: Sequence[Range]) -> Range | None:
    a, b = inputs
    ends = 0, min(a.high, b.high)
    return made(dtype, ends, ends, False) if a.low >= 0 and b.low >= 0 else None


# --- truth values ---


def truth(holds: bool | None) -> Range | None:
    """Return the range of a condition that is known to hold, or not to hold."""
    number = int(bool(holds))
    return None if holds is None else Range(number, number, number, number, False)


def _less(a: Range, b: Range) -> bool | None:
    if a.least >= b.most:
        return False  # of NaN, too
    return True if a.most < b.least and not (a.nan or b.nan) else None


def _at_most(a: Range, b: Range) -> bool | None:
    if a.least > b.most:
        return False
    return True if a.most <= b.least and not (a.nan or b.nan) else None


def _equal(a: Range, b: Range) -> bool | None:
    if a.least > b.most or b.least > a.most:
        return False
    return True if a.least == a.most == b.least == b.most and not (a.nan or b.nan) else None


def _comparison(compare: Callable[[Range, Range], bool | None]) -> ElementFunction:
    return lambda dtype, inputs: truth(compare(*inputs))


def _logical(function: Callable[[Sequence[Ends]], Ends]) -> ElementFunction:
    return lambda dtype, inputs: apply(dtype, function, inputs, False)


ELEMENT_RANGES: dict[str, ElementFunction] = {
    "Abs": _absolute,
    "Acos": within(0.0, math.pi + _DOUBLE, lambda x: False),
    "Acosh": within(0.0, math.inf, lambda x: False),
    "Add": _sum,
    "And": _logical(lambda ends: (min(ends[0][0], ends[1][0]), min(ends[0][1], ends[1][1]))),
    "BitwiseAnd": _bits_in_common,
    "Ceil": _mapped(_whole(math.ceil)),
    "Cos": within(-1.0, 1.0, is_finite),
    "Cosh": within(1.0, math.inf, _is_number),
    "Div": _quotient,
    "Equal": _comparison(_equal),
    "Erf": _curve(math.erf, -1.0, 1.0),
    "Exp": _curve(_exp, 0.0, math.inf),
    "Floor": _mapped(_whole(math.floor)),
    "Greater": _comparison(lambda a, b: _less(b, a)),
    "GreaterOrEqual": _comparison(lambda a, b: _at_most(b, a)),
    "IsInf": lambda dtype, inputs: truth(False if math.isfinite(inputs[0].least) and math.isfinite(inputs[0].most) else None),
    "IsNaN": lambda dtype, inputs: truth(None if inputs[0].nan else False),
    "Less": _comparison(_less),
    "LessOrEqual": _comparison(_at_most),
    "Max": _largest,
    "Mean": mean,
    "Min": _smallest,
    "Mod": _remainder,
    "Mul": _product,
    "Neg": _negative,
    "Not": _logical(lambda ends: (1 - ends[0][1], 1 - ends[0][0])),
    "Or": _logical(lambda ends: (max(ends[0][0], ends[1][0]), max(ends[0][1], ends[1][1]))),
    "Pow": _power,
    "Reciprocal": _reciprocal,
    "Relu": _mapped(lambda x: max(x, type(x)(0))),
    "Round": _mapped(_whole(round)),
    "Sigmoid": _curve(_sigmoid, 0.0, 1.0),
    "Sign": _sign,
    "Sin": within(-1.0, 1.0, is_finite),
    "Softplus": within(0.0, math.inf, _is_number),
    "Sqrt": _root,
    "Sub": _difference,
    "Sum": _total,
    "Tanh": _curve(math.tanh, -1.0, 1.0),
}
"""By operator, the range of its output. All inputs have known types."""
