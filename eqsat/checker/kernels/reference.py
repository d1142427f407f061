"""The reference kernels: the table of our own kernels, and the rounding of each.

The input is the name of a standard operator of the newest opset. The output is its kernel, if there
is one; whether the operator ever rounds; and whether its short results are exact (see
`exact_where_short`). Each kernel is validated against ONNX Runtime
(tests/checker/test_reference.py).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Final

import numpy as np

from eqsat.checker.kernels import attention, casts, convolutions, fused, moves, normalizations, pointwise, pools, products, recurrences, reductions, rotary
from eqsat.checker.kernels.call import Array, Kernel, is_float, some
from eqsat.operators import Attributes

KERNELS: Final[dict[str, Kernel]] = {
    **attention.KERNELS,
    **casts.KERNELS,
    **convolutions.KERNELS,
    **fused.KERNELS,
    **moves.KERNELS,
    **normalizations.KERNELS,
    **pointwise.KERNELS,
    **pools.KERNELS,
    **products.KERNELS,
    **recurrences.KERNELS,
    **reductions.KERNELS,
    **rotary.KERNELS,
}

# Operators without rounding errors: the results are operands, integers or truth values, or rounding
# is the operator's purpose.
_NEVER_ROUNDS: Final = frozenset(moves.KERNELS) | frozenset(
    """
    Abs And ArgMax ArgMin BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil CenterCropPad Clip Compress Equal
    EyeLike Floor GatherND GlobalMaxPool Greater GreaterOrEqual Hardmax IsInf IsNaN Less LessOrEqual Max MaxPool MaxUnpool Min Mod Neg
    NonMaxSuppression NonZero Not Or ReduceMax ReduceMin Relu ReverseSequence Round Sign TensorScatter ThresholdedRelu TopK Unique Where Xor
    """.split()
)
_SCATTERS: Final = frozenset({"ScatterElements", "ScatterND"})

# Operators made of sums, products, quotients and square roots alone.
_ARITHMETIC: Final = frozenset(
    """
    Add AveragePool Conv ConvTranspose CumSum Div Einsum Gemm GlobalAveragePool MatMul Mean Mul Range Reciprocal ReduceL1 ReduceMean ReduceSum
    ReduceSumSquare Sqrt Sub Sum
    """.split()
)

# Operators whose tiny results show an underflow: products of many factors, which may underflow on
# the way; operators that are never 0; and operators that are 0 only if an operand is 0.
_PRODUCTS: Final = frozenset({"CumProd", "ReduceProd"})
_NEVER_ZERO: Final = frozenset("Exp Sigmoid Softmax Softplus".split())
_ZERO_OF_ZEROS: Final = frozenset("Div Mul Pow Reciprocal".split())
_TINY: Final = float(np.finfo(np.float64).tiny)

# Operators that order elements. ONNX does not say where a NaN belongs in the order.
ORDERED: Final = frozenset("ArgMax ArgMin Hardmax NonMaxSuppression TopK Unique".split())

# Float inputs that are settings rather than data: the smallest change may change a shape.
SETTINGS: Final[dict[str, frozenset[int]]] = {"Range": frozenset({0, 1, 2}), "Resize": frozenset({1, 2})}

_UNIT: Final = 256.0
_BOUND: Final = 4096.0
_TERMS: Final = 1 << 13


def rounds(name: str, attributes: Attributes) -> bool:
    """Whether an operator may round non-integers."""
    if name in _SCATTERS:
        return attributes.get("reduction") in (b"add", b"mul")
    return name not in _NEVER_ROUNDS


def exact_where_short(name: str, attributes: Attributes) -> bool:
    """Whether every short result of the operator on short operands is exact.

    Two short numbers have a product of 40 bits, and 8192 of those have a sum of 53 bits: sums of
    products are exact in any order. If a rounded quotient or root is short, its remainder is a
    multiple of 2**-16 and smaller than that, so it is 0. An infinity or a NaN among the results is
    a pole, since short numbers do not overflow.
    """
    return name in _ARITHMETIC or not rounds(name, attributes)


def may_vanish(name: str) -> bool:
    """Whether `vanishes` may hold for some results of an operator."""
    return name in _PRODUCTS or name in _NEVER_ZERO or name in _ZERO_OF_ZEROS


def vanishes(name: str, inputs: Iterable[Array | None], results: Iterable[Array], overflowed: bool = False) -> bool:
    """Whether the operator, on reals, may have met a number so small that it lost digits, or became
    0. If finite numbers `overflowed` before, an infinity may stand for a large number, and what is 0
    because of it for a small one.
    """
    if name in _PRODUCTS:
        floats = [np.abs(x) for x in inputs if x is not None and is_float(x)]
        return any(bool(np.minimum(x[x > 0], 1).prod() < _TINY) for x in floats)
    if not may_vanish(name):
        return False
    # A NaN is not tiny: the comparison is false for it, where its negation would be true.
    tiny = [np.abs(x) < _TINY for x in results]
    if not any(map(some, tiny)):
        return False
    floats = [np.abs(x) for x in inputs if x is not None and is_float(x)]
    # Zeros and infinities give zeros that nothing was lost of, as Exp of minus infinity.
    whole = [(np.isinf(x) & (not overflowed)) | ((x == 0) & (name in _ZERO_OF_ZEROS)) for x in floats]
    return any(some(mask & ~functools.reduce(np.logical_or, whole, np.zeros(mask.shape, np.bool_))) for mask in tiny)


def is_short(array: Array) -> bool:
    """Whether there are at most 8192 elements, and each float is a multiple of 1/256 of at most
    4096 in magnitude, or not finite.
    """
    if array.size > _TERMS:
        return False
    scaled = array * _UNIT
    long = (scaled != np.rint(scaled)) | (np.abs(scaled) > _BOUND * _UNIT)
    return not some(long) or not some(long & np.isfinite(array))
