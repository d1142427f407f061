"""Normalizations by stored statistics, or by those of the elements themselves.

The input is a `Call`; the output is its results. Means and variances are sums in order
(eqsat/checker/kernels/sums.py); a variance is the mean square of the differences from the mean. An
operator may compute in a wider type of its own (`stash_type`, or the type of its statistics); it
computes in the wider of that type and the type of the arrays.
"""

from __future__ import annotations

import math

import numpy as np
from onnx import helper

from eqsat.checker.kernels.call import Array, Call, Illegal, Kernel, Unsupported, from_front, per_channel
from eqsat.checker.kernels.pointwise import elementwise
from eqsat.checker.kernels.reductions import mean_of, reduced
from eqsat.checker.kernels.sums import total


def _square_root(x: Array) -> Array:
    return elementwise(lambda value: math.sqrt(value) if value >= 0 else math.nan, x)


def _mean(x: Array, axes: tuple[int, ...]) -> Array:
    return reduced(x, axes, mean_of, keepdims=True)


def _normalized(x: Array, axes: tuple[int, ...], epsilon: float) -> tuple[Array, Array, Array]:
    """`x` with mean 0 and variance 1 over `axes`; the mean; the inverse of the deviation."""
    mean = _mean(x, axes)
    apart = np.asarray(x - mean)
    deviation = _square_root(np.asarray(_mean(np.asarray(apart * apart), axes) + np.asarray(epsilon).astype(x.dtype)))
    return np.asarray(apart / deviation), mean, np.asarray(np.reciprocal(deviation))


def _stashed(call: Call, x: Array) -> Array:
    stash = helper.tensor_dtype_to_np_dtype(call.integer("stash_type", 1))
    return x.astype(stash) if stash.itemsize > x.dtype.itemsize else x


def _batch(call: Call) -> list[Array]:
    if call.integer("training_mode"):
        raise Unsupported("training is left to the runtimes")
    x = call.input(0)
    scale, bias, mean, variance = (per_channel(call.input(position), x.ndim) for position in range(1, 5))
    wide = max((x.dtype, scale.dtype, mean.dtype), key=lambda kind: kind.itemsize)
    epsilon = np.asarray(call.number("epsilon", 1e-5)).astype(wide)
    deviation = _square_root(np.asarray(variance.astype(wide) + epsilon))
    apart = np.asarray(x.astype(wide) - mean.astype(wide))
    return [np.asarray(apart / deviation * scale.astype(wide) + bias.astype(wide)).astype(x.dtype)]


def _instance(call: Call) -> list[Array]:
    x = call.input(0)
    result, _, _ = _normalized(x, tuple(range(2, x.ndim)), call.number("epsilon", 1e-5))
    return [np.asarray(result * per_channel(call.input(1), x.ndim) + per_channel(call.input(2), x.ndim))]


def _group(call: Call) -> list[Array]:
    x, groups = call.input(0), call.integer("num_groups", 1)
    if x.ndim < 2 or x.shape[1] % groups:
        raise Illegal("GroupNormalization of channels that the groups do not divide")
    wide = _stashed(call, x).reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    result, _, _ = _normalized(wide, tuple(range(2, wide.ndim)), call.number("epsilon", 1e-5))
    result = result.reshape(x.shape).astype(x.dtype)
    return [np.asarray(result * per_channel(call.input(1), x.ndim) + per_channel(call.input(2), x.ndim))]


def _layer(call: Call) -> list[Array]:
    x, bias = call.input(0), call.given(2)
    axes = tuple(range(from_front(call.integer("axis", -1), x.ndim), x.ndim))
    result, mean, inverse = _normalized(_stashed(call, x), axes, call.number("epsilon", 1e-5))
    result = np.asarray(result.astype(x.dtype) * call.input(1))
    return [result if bias is None else np.asarray(result + bias), mean, inverse]


def _root_mean_square(call: Call) -> list[Array]:
    x = call.input(0)
    axes = tuple(range(from_front(call.integer("axis", -1), x.ndim), x.ndim))
    wide = _stashed(call, x)
    epsilon = np.asarray(call.number("epsilon", 1e-5)).astype(wide.dtype)
    root = _square_root(np.asarray(_mean(np.asarray(wide * wide), axes) + epsilon))
    return [np.asarray(np.asarray(wide / root).astype(x.dtype) * call.input(1))]


def _mean_variance(call: Call) -> list[Array]:
    x = call.input(0)
    axes = tuple(sorted(from_front(axis, x.ndim) for axis in call.integers("axes") or (0, 2, 3)))
    mean = _mean(x, axes)
    apart = np.asarray(x - mean)
    deviation = _square_root(_mean(np.asarray(apart * apart), axes))
    return [np.asarray(apart / (deviation + np.asarray(1e-9).astype(x.dtype)))]


def _local_response(call: Call) -> list[Array]:
    x, size = call.input(0), call.integer("size", 1)
    before = (size - 1) // 2
    squares = np.asarray(x * x)
    padded = np.zeros((x.shape[0], x.shape[1] + size - 1, *x.shape[2:]), x.dtype)
    padded[:, before : before + x.shape[1]] = squares
    sums = total(np.stack([padded[:, offset : offset + x.shape[1]] for offset in range(size)]))
    alpha, bias, beta = call.number("alpha", 1e-4), call.number("bias", 1), call.number("beta", 0.75)
    return [np.asarray(x / elementwise(lambda value: (bias + alpha / size * value) ** beta, sums))]


KERNELS: dict[str, Kernel] = {
    "BatchNormalization": _batch,
    "GroupNormalization": _group,
    "InstanceNormalization": _instance,
    "LRN": _local_response,
    "LayerNormalization": _layer,
    "MeanVarianceNormalization": _mean_variance,
    "RMSNormalization": _root_mean_square,
}
