"""Attention: the runtimes have it in single precision only, and rules are judged in double.

The input is a `Call`; the output is its results, in the types of its operands. The scale multiplies
the products of queries and keys, as ONNX Runtime's kernel has it; ONNX's text multiplies queries and
keys by its root, which is the same number but for rounding. A query that may attend no key gives 0.
"""

from __future__ import annotations

import math

import numpy as np

from eqsat.checker.kernels.call import Array, Call, Illegal, Kernel, Unsupported
from eqsat.checker.kernels.products import matmul
from eqsat.checker.kernels.reductions import softmax_of


def _heads(x: Array, heads: int) -> Array:
    """The tensor as batch, heads, positions and width."""
    if x.ndim == 4:
        return x
    if x.ndim != 3 or heads <= 0 or x.shape[2] % heads:
        raise Illegal("Attention of other than four axes, or of three that do not split into heads")
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def _joined(call: Call, position: int, x: Array) -> Array:
    """Keys or values behind those of the past."""
    past = call.given(position)
    return x if past is None else np.concatenate([past, x], axis=2)


def _repeated(x: Array, heads: int) -> Array:
    """Keys or values with as many heads as the queries: each serves heads that are neighbours."""
    if not x.shape[1] or heads % x.shape[1]:
        raise Illegal("heads of queries that are no multiple of those of the keys")
    return np.repeat(x, heads // x.shape[1], axis=1)


def _visible(call: Call, rows: int, columns: int, past: int) -> Array:
    """Which keys each query may see, as truth values."""
    left, right = call.integer("left_window_size", -1), call.integer("right_window_size", -1)
    right = 0 if call.integer("is_causal") else right

    def sees(ahead: int) -> bool:
        return (left < 0 or ahead >= -left) and (right < 0 or ahead <= right)

    return np.array([[sees(key - query - past) for key in range(columns)] for query in range(rows)], np.bool_).reshape(rows, columns)


def _bias(call: Call, scores: Array, past: int) -> Array:
    """What is added to the scores: the mask, and minus infinity at keys that a query may not see."""
    mask, rows, columns = call.given(3), int(scores.shape[2]), int(scores.shape[3])
    minus = np.asarray(-np.inf, scores.dtype)
    bias = np.where(_visible(call, rows, columns, past), scores.dtype.type(0), minus)
    if mask is None:
        return bias
    if mask.shape[-1] != columns:
        raise Unsupported("a mask shorter than the keys is left to the runtimes")
    added = np.where(mask, bias.dtype.type(0), minus) if mask.dtype == np.bool_ else mask
    return np.asarray(bias + added)


def _attention(call: Call) -> list[Array]:
    if call.given(6) is not None or (len(call.results) > 3 and call.results[3]):
        raise Unsupported("lengths of caches and inner results are left to the runtimes")
    query = _heads(call.input(0), call.integer("q_num_heads"))
    key, value = (_joined(call, position + 3, _heads(call.input(position), call.integer("kv_num_heads"))) for position in (1, 2))
    if 0 in (*query.shape, *key.shape, *value.shape):
        raise Illegal("Attention without elements")
    if query.shape[0] != key.shape[0] or key.shape[:3] != value.shape[:3] or query.shape[3] != key.shape[3]:
        raise Illegal("queries, keys and values that do not fit")
    past = key.shape[2] - call.input(1).shape[-2]
    scale = call.number("scale", 1 / math.sqrt(query.shape[3]))
    if not scale > 0:
        raise Illegal("Attention by a scale that is not positive")
    scores = np.asarray(matmul(query, _repeated(key, query.shape[1]).swapaxes(2, 3)) * np.asarray(scale).astype(query.dtype))
    cap = call.number("softcap")
    scores = np.asarray(np.tanh(scores / scores.dtype.type(cap)) * scores.dtype.type(cap)) if cap else scores
    bias = _bias(call, scores, past)
    weights = np.moveaxis(softmax_of(np.moveaxis(np.asarray(scores + bias), -1, 0)), 0, -1)
    weights = np.where((bias == -np.inf).all(axis=-1, keepdims=True), weights.dtype.type(0), weights)
    result = matmul(weights, _repeated(value, query.shape[1]))
    result = result.transpose(0, 2, 1, 3).reshape(*result.transpose(0, 2, 1, 3).shape[:2], -1) if call.input(0).ndim == 3 else result
    return [result, key, value][: len(call.results)]


KERNELS: dict[str, Kernel] = {"Attention": _attention}
