"""The ranges of sums of products: matrix products and convolutions.

Each function takes a node and the data type of its result, and returns the result's range. If one
operand is a small constant, its positive and its negative elements bound each sum on their own.
Otherwise all terms have the bounds of one product. In real arithmetic the bounds are exact. Those of
what runtimes compute have a margin for any order of the sum, and for factors of ten bits as tensor
cores read them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from onnx import helper

from eqsat.facts.dims import Dim, product
from eqsat.facts.element_bytes import decoded
from eqsat.facts.fact import Fact
from eqsat.facts.intervals import Ends, Number, Range, finite_limits, is_floating, is_infinite, made, multiply
from eqsat.facts.known_ranges import range_of
from eqsat.facts.node import Node

_INFO: Any = ml_dtypes.finfo  # it is untyped
_FACTOR_ROUNDING = Fraction(1, 1 << 9)  # of a product of two factors of ten bits
_NOTHING = Range(0.0, 0.0, 0.0, 0.0, False)


class _Weights(NamedTuple):
    """For each different sum, the sum of its positive coefficients and that of its negative ones,
    both without their signs; and how many terms a sum has.
    """

    sums: tuple[tuple[Fraction, Fraction], ...]
    terms: int


def matmul(node: Node, dtype: int) -> Range | None:
    """MatMul: a row of the left operand times a column of the right one."""
    left, right = node.fact(0), node.fact(1)
    a, b = range_of(node, 0), range_of(node, 1)
    if left is None or right is None or a is None or b is None or not left.shape or not right.shape or _is_boundless(a, b, _length(left, -1)):
        return None
    return _products(dtype, a, _weights(left, -1), b, _weights(right, -2 if len(right.shape) > 1 else -1), _length(left, -1))


def gemm(node: Node, dtype: int) -> Range | None:
    """Gemm: a factor times the product of two matrices, and a term."""
    left, right = node.fact(0), node.fact(1)
    a, b = range_of(node, 0), range_of(node, 1)
    alpha, beta = (node.attributes.get(name, 1.0) for name in ("alpha", "beta"))
    if left is None or right is None or a is None or b is None or not isinstance(alpha, float) or not isinstance(beta, float):
        return None
    rows, columns = (-2 if node.integer("transA", 0) else -1), (-1 if node.integer("transB", 0) else -2)
    return _products(dtype, a, _weights(left, rows), b, _weights(right, columns), _length(left, rows), _term(node, 2), alpha, beta)


def conv(node: Node, dtype: int) -> Range | None:
    """Conv: a window, of which zeros may be a part, times a kernel."""
    x, kernel, weights = range_of(node, 0), range_of(node, 1), node.fact(1)
    if x is None or kernel is None or weights is None or not weights.shape:
        return None
    if any(node.integers("pads") or ()) or node.text("auto_pad", "NOTSET") != "NOTSET":
        x = Range(*_with_zero(x.real), *_with_zero(x.rounded), x.nan)
    length = product(weights.shape[1:])
    if _is_boundless(x, kernel, length):
        return None
    return _products(dtype, x, None, kernel, _weights(weights, 0, others=True), length, _term(node, 2))


def _is_boundless(a: Range, b: Range, length: Dim) -> bool:
    """Tell whether sums of `length` products have no bound on either side: a factor `a` has none, and
    not all of the others are 0. Most products are such, and this is known before coefficients are read.
    """
    return length != 0 and a.low == a.least == -math.inf and a.high == a.most == math.inf and a.nan and (b.low != 0 or b.high != 0)


def _with_zero(ends: Ends) -> Ends:
    return min(ends[0], 0.0), max(ends[1], 0.0)


def _term(node: Node, position: int) -> Range | None:
    """Return the range of a term that may be absent, which is 0; None if it is no number."""
    return _NOTHING if node.fact(position) is None else range_of(node, position)


def _length(fact: Fact, axis: int) -> Dim:
    return None if fact.shape is None or len(fact.shape) < -axis else fact.shape[axis]


def _weights(fact: Fact, axis: int, others: bool = False) -> _Weights | None:
    """Return the coefficients of a small constant along an axis, or along all `others`."""
    shape = fact.shape
    if shape is None or not all(isinstance(size, int) for size in shape) or not -len(shape) <= axis < len(shape) or not is_floating(fact.dtype):
        return None
    sizes = [size for size in shape if isinstance(size, int)]
    along = math.prod(sizes[:axis] + sizes[axis + 1 :]) if others else sizes[axis]
    elements = fact.uniform if fact.uniform is not None else fact.floats
    if elements is None or not math.prod(sizes):
        return None
    numbers = decoded(elements, fact.dtype).astype(np.float64)
    if not np.isfinite(numbers).all():
        return None
    if fact.uniform is not None:
        number = Fraction(float(numbers[0])) * along
        return _Weights(((max(number, Fraction(0)), max(-number, Fraction(0))),), along)
    moved = np.moveaxis(numbers.reshape(sizes), axis, 0 if others else -1).reshape((-1, along))
    rows = [[Fraction(item) for item in row] for row in moved.tolist()]
    return _Weights(tuple((sum((c for c in row if c > 0), Fraction(0)), -sum((c for c in row if c < 0), Fraction(0))) for row in rows), along)


def _products(
    dtype: int,
    a: Range,
    left: _Weights | None,
    b: Range,
    right: _Weights | None,
    length: Dim,
    term: Range | None = _NOTHING,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> Range | None:
    """Return the range of `alpha` times sums of `length` products of two values, and `beta` times a
    term.
    """
    if term is None or not is_floating(dtype) or not math.isfinite(alpha) or not math.isfinite(beta):
        return None
    if right is not None:
        real, rounded, size, terms = *(_weighted(right, ends) for ends in (a.real, a.rounded)), _largest(right, a), right.terms
    elif left is not None:
        real, rounded, size, terms = *(_weighted(left, ends) for ends in (b.real, b.rounded)), _largest(left, b), left.terms
    elif isinstance(length, int):
        real, rounded = (_times(Fraction(length), multiply([x, y])) for x, y in ((a.real, b.real), (a.rounded, b.rounded)))
        size, terms = _size(_size(Fraction(length), a), b), length
    else:
        return None
    real, rounded = (_sum(_times(Fraction(alpha), ends), _times(Fraction(beta), more)) for ends, more in ((real, term.real), (rounded, term.rounded)))
    size = None if size is None else _plus(size * max(abs(Fraction(alpha)), 1), _size(abs(Fraction(beta)), term))
    finite = a.finite and b.finite and term.finite
    return _with_margin(dtype, real, rounded, size, terms, finite)


def _with_margin(dtype: int, real: Ends, rounded: Ends, size: Fraction | None, terms: int, finite: bool) -> Range | None:
    """Return the range of sums whose terms have the absolute values `size` together, if it is known."""
    information = _INFO(helper.tensor_dtype_to_np_dtype(dtype))
    if size is None or size * 2 > Fraction(finite_limits(dtype)[1]):
        return made(dtype, real, None, True)  # a partial sum may overflow
    error = size * (_FACTOR_ROUNDING + (terms + 4) * Fraction(float(information.eps))) + (terms + 2) * Fraction(float(information.tiny))
    low, high = (Fraction(end) for end in rounded)
    ends: Any = (low - error, high + error)
    return made(dtype, real, ends, not finite)


def _weighted(weights: _Weights, ends: Ends) -> Ends:
    """Return the ends of sums with these coefficients of values between two ends."""
    found = [_sum(_times(plus, ends), _times(-minus, ends)) for plus, minus in weights.sums]
    return min(low for low, _ in found), max(high for _, high in found)


def _times(factor: Fraction, ends: Ends) -> Ends:
    found: Any = [0 if not factor else factor * Fraction(end) if not is_infinite(end) else end if factor > 0 else -end for end in ends]
    return min(found), max(found)


def _sum(a: Ends, b: Ends) -> Ends:
    """Return the ends of a sum, which an infinite end makes infinite."""
    return _end(a[0], b[0], -math.inf), _end(a[1], b[1], math.inf)


def _end(a: Number, b: Number, infinite: float) -> Any:
    return infinite if is_infinite(a) or is_infinite(b) else Fraction(a) + Fraction(b)


def _size(factor: Fraction | None, x: Range) -> Fraction | None:
    """Return `factor` times the greatest absolute value; None if that has no bound."""
    ends: Sequence[Number] = (x.low, x.high, x.least, x.most)
    return factor * max(abs(Fraction(end)) for end in ends) if factor is not None and all(map(math.isfinite, ends)) else None


def _largest(weights: _Weights, x: Range) -> Fraction | None:
    return _size(max(plus + minus for plus, minus in weights.sums), x)


def _plus(a: Fraction, b: Fraction | None) -> Fraction | None:
    return None if b is None else a + b
