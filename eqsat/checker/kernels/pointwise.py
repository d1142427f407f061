"""Pointwise operators: each element of the result comes from one element of each operand.

The input is a `Call`; the output is its result, in the data types of its operands. Sums, products
and quotients round once, as IEEE 754 says. Transcendental functions go through one scalar function
of double precision, element by element, because vectorized ones round by position. Integers wrap,
and a Div of integers rounds towards zero. Dividing an integer by zero is `Illegal`, like everything
else without a defined value.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from typing import Any, cast

import ml_dtypes
import numpy as np
from onnx import helper

from eqsat.checker.kernels.call import Array, Call, Illegal, Kernel, Undefined, is_float, is_integer
from eqsat.checker.kernels.sums import largest, maximum, minimum, smallest

Scalar = Callable[[float], float]


_BARE: dict[Scalar, Scalar] = {}  # by guarded function, the one inside


def elementwise(function: Scalar, x: Array) -> Array:
    """A function of one double, applied to each element and rounded to the elements' type."""
    values = x.astype(np.float64)
    if function in _BARE:
        # Few arrays have an element for which Python raises.
        with contextlib.suppress(ValueError, OverflowError):
            return _each(_BARE[function], values).astype(x.dtype)
    return _each(function, values).astype(x.dtype)


def _each(function: Scalar, values: Array) -> Array:
    return np.asarray(np.frompyfunc(function, 1, 1)(values), np.float64)


def _guarded(function: Scalar, at_error: Scalar) -> Scalar:
    """A function that gives `at_error` where Python raises but IEEE 754 has a value."""

    def value(x: float) -> float:
        try:
            return function(x)
        except (ValueError, OverflowError):
            return at_error(x)

    _BARE[value] = function
    return value


def _nan(_: float) -> float:
    return math.nan


def _infinite(_: float) -> float:
    return math.inf


def _signed_infinite(x: float) -> float:
    return math.copysign(math.inf, x)


exp = _guarded(math.exp, _infinite)
log = _guarded(math.log, lambda x: -math.inf if x == 0 else math.nan)
expm1 = _guarded(math.expm1, _infinite)


def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x)), without overflow."""
    return 1 / (1 + exp(-x)) if x >= 0 or math.isnan(x) else exp(x) / (1 + exp(x))


def softplus(x: float) -> float:
    """log(1 + exp(x)), without overflow."""
    return x if math.isnan(x) else max(x, 0.0) + math.log1p(exp(-abs(x)))


def _power(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:  # a pole, or a root of a negative number
        return math.nan if x else math.copysign(math.inf, x) if y % 2 == 1 else math.inf


_SCALARS: dict[str, Scalar] = {
    "Acos": _guarded(math.acos, _nan),
    "Acosh": _guarded(math.acosh, _nan),
    "Asin": _guarded(math.asin, _nan),
    "Asinh": math.asinh,
    "Atan": math.atan,
    "Atanh": _guarded(math.atanh, lambda x: _signed_infinite(x) if abs(x) == 1 else math.nan),
    "Cos": _guarded(math.cos, _nan),
    "Cosh": _guarded(math.cosh, _infinite),
    "Erf": math.erf,
    "Exp": exp,
    "Log": log,
    "Mish": lambda x: x * math.tanh(softplus(x)),
    "Sigmoid": sigmoid,
    "Sin": _guarded(math.sin, _nan),
    "Sinh": _guarded(math.sinh, _signed_infinite),
    "Softplus": softplus,
    "Softsign": lambda x: x / (1 + abs(x)),
    "Tan": _guarded(math.tan, _nan),
    "Tanh": math.tanh,
}


def _scalar(function: Scalar) -> Kernel:
    return lambda call: [elementwise(function, call.input(0))]


def _unary(function: Callable[[Array], Array]) -> Kernel:
    return lambda call: [np.asarray(function(call.input(0)))]


def _binary(function: Callable[[Array, Array], Array]) -> Kernel:
    return lambda call: [np.asarray(function(call.input(0), call.input(1)))]


def _constant(x: Array, value: float) -> Array:
    return np.asarray(value).astype(x.dtype)


# --- arithmetic ---


def _divide(a: Array, b: Array) -> Array:
    if not is_integer(a):
        return np.divide(a, b)
    if (b == 0).any():
        raise Illegal("an integer is divided by zero")
    down = np.floor_divide(a, b)
    return (down + ((np.remainder(a, b) != 0) & ((a < 0) != (b < 0)))).astype(a.dtype)


def _modulo(call: Call) -> list[Array]:
    a, b = call.input(0), call.input(1)
    if is_integer(a) and (b == 0).any():
        raise Illegal("an integer is divided by zero")
    if is_float(a) and not call.integer("fmod"):
        raise Illegal("Mod of floats without fmod")
    return [np.asarray(np.fmod(a, b) if call.integer("fmod") else np.remainder(a, b))]


def _to_the_power(call: Call) -> list[Array]:
    base, exponent = call.input(0), call.input(1)
    if is_float(base):
        powers = np.frompyfunc(_power, 2, 1)(base.astype(np.float64), exponent.astype(np.float64))
        return [np.asarray(powers, np.float64).astype(base.dtype)]
    if is_integer(exponent):
        if (exponent < 0).any():
            raise Illegal("an integer to a negative power")
        # Powers modulo 2**64 are powers modulo any smaller power of two.
        return [np.asarray(np.power(base.astype(np.int64), exponent.astype(np.int64))).astype(base.dtype)]
    powers = np.asarray(np.frompyfunc(_power, 2, 1)(base.astype(np.float64), exponent.astype(np.float64)), np.float64)
    information = np.iinfo(base.dtype)
    if not ((information.min <= powers) & (powers <= information.max)).all():
        raise Undefined("a power is out of the range of its integer type")
    return [powers.astype(base.dtype)]


def _shift(call: Call) -> list[Array]:
    x, amount = call.input(0), call.input(1)
    if (amount >= 8 * x.dtype.itemsize).any():
        raise Illegal("a shift by all bits or more")
    return [np.asarray(np.left_shift(x, amount) if call.text("direction") == "LEFT" else np.right_shift(x, amount))]


def _variadic(function: Callable[[Array, Array], Array]) -> Kernel:
    return lambda call: [np.asarray(functools.reduce(function, call.all_inputs()))]


def _extreme(function: Callable[[Array], Array]) -> Kernel:
    return lambda call: [function(np.stack(np.broadcast_arrays(*call.all_inputs())))]


def _mean(call: Call) -> list[Array]:
    values = call.all_inputs()
    return [np.asarray(functools.reduce(np.add, values) / _constant(values[0], len(values)))]


def _clip(call: Call) -> list[Array]:
    x, low, high = call.input(0), call.given(1), call.given(2)
    if any(bound is not None and bound.ndim for bound in (low, high)):
        raise Illegal("a bound of Clip that is no scalar")
    if is_float(x):
        # Absent bounds are the least and the greatest number of the type; infinities lie beyond
        # them.
        kind = helper.tensor_dtype_to_np_dtype(call.dtype(0))
        information = cast(Any, ml_dtypes.finfo(kind))
        low = np.asarray(float(information.min)).astype(x.dtype) if low is None else low
        high = np.asarray(float(information.max)).astype(x.dtype) if high is None else high
    x = x if low is None else maximum(x, low)
    return [x if high is None else minimum(x, high)]


def _root(x: Array) -> Array:
    # For int8 and bfloat16, numpy would compute in its smallest float.
    return np.sqrt(x) if x.dtype.kind == "f" else np.sqrt(x.astype(np.float64)).astype(x.dtype)


def _round(x: Array) -> Array:
    return np.rint(x)


def _is_infinite(call: Call) -> list[Array]:
    x = call.input(0)
    found = np.isinf(x)
    if not call.integer("detect_positive", 1):
        found &= ~(x > 0)
    if not call.integer("detect_negative", 1):
        found &= ~(x < 0)
    return [np.asarray(found)]


# --- activations ---


def _relu(x: Array) -> Array:
    return maximum(x, _constant(x, 0))


def _leaky_relu(call: Call) -> list[Array]:
    x = call.input(0)
    return [np.where(x >= 0, x, _constant(x, call.number("alpha")) * x)]


def _parametric_relu(call: Call) -> list[Array]:
    x, slope = call.input(0), call.input(1)
    return [np.where(x >= 0, x, slope * x)]


def _thresholded_relu(call: Call) -> list[Array]:
    x = call.input(0)
    return [np.where(x > call.number("alpha"), x, _constant(x, 0))]


def _elu(call: Call) -> list[Array]:
    x = call.input(0)
    return [np.where(x >= 0, x, _constant(x, call.number("alpha")) * elementwise(expm1, x))]


def _celu(call: Call) -> list[Array]:
    x = call.input(0)
    alpha = _constant(x, call.number("alpha"))
    return [maximum(x, _constant(x, 0)) + minimum(_constant(x, 0), alpha * elementwise(expm1, np.asarray(x / alpha)))]


def _selu(call: Call) -> list[Array]:
    x = call.input(0)
    alpha, gamma = _constant(x, call.number("alpha")), _constant(x, call.number("gamma"))
    return [gamma * np.where(x > 0, x, alpha * elementwise(expm1, x))]


def _hard_sigmoid(x: Array, alpha: float, beta: float) -> Array:
    return maximum(_constant(x, 0), minimum(_constant(x, 1), _constant(x, alpha) * x + _constant(x, beta)))


def _hard_swish(x: Array) -> Array:
    return x * _hard_sigmoid(x, 1 / 6, 0.5)


def _swish(call: Call) -> list[Array]:
    x = call.input(0)
    return [np.asarray(x * elementwise(sigmoid, np.asarray(_constant(x, call.number("alpha", 1)) * x)))]


def _gelu(call: Call) -> list[Array]:
    if call.text("approximate", "none") == "tanh":
        scale = math.sqrt(2 / math.pi)
        return [elementwise(lambda x: 0.5 * x * (1 + math.tanh(scale * (x + 0.044715 * x * x * x))), call.input(0))]
    # 1 + erf cancels if x is far below 0; erfc does not.
    return [elementwise(lambda x: 0.5 * x * math.erfc(-x / math.sqrt(2)), call.input(0))]


def _shrink(call: Call) -> list[Array]:
    x = call.input(0)
    bias, bound = _constant(x, call.number("bias")), call.number("lambd", 0.5)
    return [np.where(x < -bound, x + bias, np.where(x > bound, x - bias, np.where(x != x, x, _constant(x, 0))))]


KERNELS: dict[str, Kernel] = {
    **{name: _scalar(function) for name, function in _SCALARS.items()},
    "Abs": _unary(np.abs),
    "Add": _binary(np.add),
    "And": _binary(np.logical_and),
    "BitShift": _shift,
    "BitwiseAnd": _binary(np.bitwise_and),
    "BitwiseNot": _unary(np.bitwise_not),
    "BitwiseOr": _binary(np.bitwise_or),
    "BitwiseXor": _binary(np.bitwise_xor),
    "Ceil": _unary(np.ceil),
    "Celu": _celu,
    "Clip": _clip,
    "Div": _binary(_divide),
    "Elu": _elu,
    "Equal": _binary(np.equal),
    "Floor": _unary(np.floor),
    "Gelu": _gelu,
    "Greater": _binary(np.greater),
    "GreaterOrEqual": _binary(np.greater_equal),
    "HardSigmoid": lambda call: [_hard_sigmoid(call.input(0), call.number("alpha"), call.number("beta"))],
    "HardSwish": _unary(_hard_swish),
    "IsInf": _is_infinite,
    "IsNaN": _unary(np.isnan),
    "LeakyRelu": _leaky_relu,
    "Less": _binary(np.less),
    "LessOrEqual": _binary(np.less_equal),
    "Max": _extreme(largest),
    "Mean": _mean,
    "Min": _extreme(smallest),
    "Mod": _modulo,
    "Mul": _binary(np.multiply),
    "Neg": _unary(np.negative),
    "Not": _unary(np.logical_not),
    "Or": _binary(np.logical_or),
    "PRelu": _parametric_relu,
    "Pow": _to_the_power,
    "Reciprocal": _unary(np.reciprocal),
    "Relu": _unary(_relu),
    "Round": _unary(_round),
    "Selu": _selu,
    "Shrink": _shrink,
    "Sign": _unary(np.sign),
    "Sqrt": _unary(_root),
    "Sub": _binary(np.subtract),
    "Sum": _variadic(np.add),
    "Swish": _swish,
    "ThresholdedRelu": _thresholded_relu,
    "Where": lambda call: [np.where(call.input(0), call.input(1), call.input(2))],
    "Xor": _binary(np.logical_xor),
}
