"""The ranges of quantized values and of what is made of them, from scales and zero points.

Each function takes a node and the data type of its result, and returns the result's range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import ml_dtypes
from onnx import TensorProto, helper

from eqsat.facts.intervals import Ends, Number, Range, apply, is_floating, limits, made, multiply, subtract
from eqsat.facts.known_ranges import range_of
from eqsat.facts.node import Node

_INFO: Any = ml_dtypes.finfo  # it is untyped
# Integers that each float type holds, with those of their differences.
_EXACT = {int(TensorProto.FLOAT): 1 << 24, int(TensorProto.DOUBLE): 1 << 53, int(TensorProto.FLOAT16): 1 << 11, int(TensorProto.BFLOAT16): 1 << 8}


def dequantized(node: Node, dtype: int) -> Range | None:
    """DequantizeLinear: the distance from the zero point times the scale, rounded once."""
    x, scale, zero = range_of(node, 0), range_of(node, 1), _zero_point(node)
    if x is None or scale is None or zero is None or not is_floating(dtype) or node.dtype(1) != dtype:
        return None  # a result of another type than the scale rounds twice
    distance = subtract([x.real, zero.real])
    if max(map(abs, distance)) > _EXACT[dtype]:
        return None

    def transfer(ends: Sequence[Ends]) -> Ends:
        return multiply([distance, ends[0]])

    return apply(dtype, transfer, [scale], not scale.finite)


def quantized(node: Node, dtype: int) -> Range | None:
    """QuantizeLinear: the quotient by a positive scale, rounded to even, from the zero point on and
    within the integer type.
    """
    x, scale, zero, whole = range_of(node, 0), range_of(node, 1), _zero_point(node), limits(dtype)
    if x is None or scale is None or zero is None or whole is None or is_floating(dtype):
        return None
    if not x.finite or not scale.finite or node.integer("precision", 0) or min(scale.low, scale.least) <= 0:
        return None  # NaN becomes some integer
    margin = max(_margin(node.dtype(0)), _margin(node.dtype(1)))
    least, most = min(x.low, x.least), max(x.high, x.most)
    scales = min(scale.low, scale.least), max(scale.high, scale.most)
    low = min(_rounded(least, by, -margin) for by in scales) + int(zero.low)
    high = max(_rounded(most, by, margin) for by in scales) + int(zero.high)
    ends = tuple(min(max(end, int(whole[0])), int(whole[1])) for end in (low, high))
    return made(dtype, (ends[0], ends[1]), (ends[0], ends[1]), False)


def _margin(dtype: int) -> Fraction:
    """Return the most by which a quotient of numbers of this type may be off, relative to its size."""
    return 4 * Fraction(float(_INFO(helper.tensor_dtype_to_np_dtype(dtype)).eps)) if is_floating(dtype) else Fraction(0)


def _rounded(end: Number, scale: Number, margin: Fraction) -> int:
    """Return the integer nearest to a quotient that may be off by a margin, relative to its size."""
    quotient = Fraction(end) / Fraction(scale)
    return round(quotient + margin * (1 + abs(quotient)))


def _zero_point(node: Node) -> Range | None:
    """Return the range of the zero point, which is 0 where it is absent; None if it is no integer."""
    zero = Range(0, 0, 0, 0, False) if node.fact(2) is None else range_of(node, 2)
    return None if zero is None or math.isinf(zero.low) or math.isinf(zero.high) else zero
