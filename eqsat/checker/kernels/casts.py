"""Casts and quantization: the operators that exist to round.

The input is a `Call`, with the data types that the model declares; the output is its results. A
cast to a type that holds all values of the declared type keeps a float, so that reals pass through.
A cast to any other type rounds. Casting NaN or a number out of range to an integer type is
`Illegal`. Quantizing saturates numbers out of range; quantizing NaN is `Illegal`.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

from eqsat.checker.kernels.call import Array, Call, Illegal, Kernel, Undefined, Unsupported, is_float, is_integer, per_channel
from eqsat.checker.kernels.convolutions import convolve
from eqsat.checker.kernels.products import matmul
from eqsat.checker.kernels.sums import largest, smallest

# By floating-point type, the types that hold all its values.
_HOLDERS: dict[int, frozenset[int]] = {
    TensorProto.FLOAT16: frozenset({TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE}),
    TensorProto.BFLOAT16: frozenset({TensorProto.BFLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE}),
    TensorProto.FLOAT: frozenset({TensorProto.FLOAT, TensorProto.DOUBLE}),
    TensorProto.DOUBLE: frozenset({TensorProto.DOUBLE}),
}
_PLAIN = frozenset(_HOLDERS) | frozenset(
    {
        TensorProto.BOOL,
        *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64),
        *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
    }
)


def rounds_floats(source: int, target: int) -> bool:
    """Whether a cast between two floating-point types rounds."""
    return source in _HOLDERS and target in _HOLDERS and target not in _HOLDERS[source]


def _cast(call: Call) -> list[Array]:
    x, source, target = call.input(0), call.dtype(0), call.results[0]
    if source not in _PLAIN or target not in _PLAIN:
        raise Unsupported("casts of narrower types are left to the runtimes")
    kind = helper.tensor_dtype_to_np_dtype(target)
    if target in _HOLDERS.get(source, ()) and x.dtype == np.float64:
        return [x]
    if is_float(x) and is_integer(np.empty(0, kind)):
        whole = np.trunc(x.astype(np.float64))
        # No double equals the upper bound of the widest integers, so the comparison is with the
        # first number that is too large.
        if not ((whole >= float(np.iinfo(kind).min)) & (whole < float(int(np.iinfo(kind).max) + 1))).all():
            raise Undefined("a float out of the range of the integer type it is cast to")
        return [whole.astype(kind)]
    return [x.astype(kind)]


def _bit_cast(call: Call) -> list[Array]:
    source, target = (helper.tensor_dtype_to_np_dtype(dtype) for dtype in (call.dtype(0), call.results[0]))
    return [call.input(0).astype(source, order="C").view(target)]


# --- quantization ---


def _limits(kind: np.dtype[Any]) -> tuple[int, int]:
    information: Any = np.iinfo(kind) if kind.isbuiltin == 1 else ml_dtypes.iinfo(kind)
    return int(information.min), int(information.max)


def _saturated(x: Array, dtype: int) -> Array:
    """Whole numbers, held as floats or wide integers, clipped to the integer type `dtype`."""
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    if "int" not in kind.name:
        raise Unsupported("quantization to floats is left to the runtimes")
    if np.isnan(x).any():
        raise Illegal("a NaN is quantized")
    return np.clip(x, *_limits(kind)).astype(np.int64).astype(kind)


def _along(call: Call, parameter: Array, x: Array) -> Array:
    """A scale or zero point, laid out to broadcast to `x`: one number, one for each index of an
    axis, or one for each block.
    """
    axis = call.integer("axis", 1)
    if parameter.ndim == 0 or parameter.size == 1:
        return parameter.reshape(())
    if not -x.ndim <= axis < x.ndim:
        raise Illegal("a quantization axis that is not there")
    axis %= x.ndim
    if parameter.ndim == 1:
        return per_channel(parameter, x.ndim, axis)
    return np.repeat(parameter, call.integer("block_size", 1), axis)[tuple(slice(size) for size in x.shape)]


def _rounded_quotient(x: Array, scale: Array) -> Array:
    return np.rint(np.asarray(x.astype(scale.dtype) / scale).astype(np.float64))


def _quantize(call: Call) -> list[Array]:
    x, scale, zero = call.input(0), call.input(1), call.given(2)
    if call.integer("precision"):
        raise Unsupported("QuantizeLinear with a precision of its own is left to the runtimes")
    whole = _rounded_quotient(x, _along(call, scale, x))
    return [_saturated(whole if zero is None else whole + _along(call, zero, x).astype(np.float64), call.results[0])]


def _dequantize(call: Call) -> list[Array]:
    x, scale, zero = call.input(0), call.input(1), call.given(2)
    if is_float(x):
        raise Unsupported("quantized floats are left to the runtimes")
    steps = x.astype(np.int64) if zero is None else x.astype(np.int64) - _along(call, zero, x).astype(np.int64)
    # The declared type of the result, of the scale or another, is that of the product. Reals stay
    # in double precision.
    kind = scale.dtype if scale.dtype == np.float64 else helper.tensor_dtype_to_np_dtype(call.results[0])
    return [np.asarray(steps.astype(kind) * _along(call, scale, x).astype(kind))]


def _dynamic(call: Call) -> list[Array]:
    x = call.input(0)
    flat = np.concatenate([x.reshape(-1), np.zeros(1, x.dtype)])
    low, high = smallest(flat), largest(flat)
    scale = np.asarray((high - low) / np.asarray(255).astype(x.dtype))
    if not scale > 0:
        raise Illegal("DynamicQuantizeLinear of zeros, or of what is not a number")
    zero = np.clip(np.rint(np.asarray(-low / scale).astype(np.float64)), 0, 255)
    return [_saturated(_rounded_quotient(x, scale) + zero, TensorProto.UINT8), scale, zero.astype(np.uint8)]


def _steps(call: Call, position: int, zero_position: int, axis: int) -> Array:
    """An operand of an integer product: its distance from the zero point.

    The zero point is one number, or one for each row, column or filter.
    """
    x, zero = call.input(position), call.given(zero_position)
    if zero is None:
        return x.astype(np.int32)
    offset = zero.astype(np.int32)
    if offset.ndim == 1 and offset.size > 1:
        offset = per_channel(offset, x.ndim, axis % x.ndim)
    return x.astype(np.int32) - (offset.reshape(()) if offset.size == 1 else offset)


def _matmul_integer(call: Call) -> list[Array]:
    return [matmul(_steps(call, 0, 2, -2), _steps(call, 1, 3, -1))]


def _convolution_integer(call: Call) -> list[Array]:
    return [convolve(call, _steps(call, 0, 2, 0), _steps(call, 1, 3, 0), None)]


def _scaled(sums: Array, factor: Array, zero: Array, dtype: int) -> Array:
    whole = np.rint(np.asarray(sums.astype(factor.dtype) * factor).astype(np.float64))
    return _saturated(whole + zero.astype(np.float64), dtype)


def _quantized_matmul(call: Call) -> list[Array]:
    sums = matmul(_steps(call, 0, 2, -2), _steps(call, 3, 5, -1))
    left, right = call.input(1), call.input(4)
    left = left.reshape(-1, 1) if left.ndim == 1 and left.size > 1 else left
    return [_scaled(sums, np.asarray(left * right / call.input(6)), call.input(7), call.results[0])]


def _quantized_convolution(call: Call) -> list[Array]:
    bias = call.given(8)
    sums = convolve(call, _steps(call, 0, 2, 0), _steps(call, 3, 5, 0), None if bias is None else bias.astype(np.int32))
    factor = np.asarray(call.input(1) * call.input(4) / call.input(6))
    return [_scaled(sums, per_channel(factor, sums.ndim) if factor.size > 1 else factor.reshape(()), call.input(7), call.results[0])]


KERNELS: dict[str, Kernel] = {
    "BitCast": _bit_cast,
    "Cast": _cast,
    "CastLike": _cast,
    "ConvInteger": _convolution_integer,
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic,
    "MatMulInteger": _matmul_integer,
    "QLinearConv": _quantized_convolution,
    "QLinearMatMul": _quantized_matmul,
    "QuantizeLinear": _quantize,
}
