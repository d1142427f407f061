"""Pools: the maximum, the mean or a norm of the elements under a window.

The input is a `Call` for MaxPool, AveragePool, LpPool or one of their global forms; the output is
its results. Padding does not count, unless AveragePool has to count it. A maximum follows IEEE
754-2019, so that a NaN under a window is its maximum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np

from eqsat.checker.kernels.call import Array, Call, Illegal, Kernel
from eqsat.checker.kernels.convolutions import Windows, windows
from eqsat.checker.kernels.reductions import in_front, mean_of
from eqsat.checker.kernels.sums import largest, total


def _windows(call: Call) -> Windows:
    return windows(call, call.input(0).shape[2:], call.integers("kernel_shape") or ())


def _terms(places: Windows, x: Array, fill: Array) -> Array:
    """The elements under each window, with the positions in the window as the first axis."""
    under = places.of(x, fill)
    rank = len(places.kernel)
    return in_front(under, tuple(range(2 + rank, 2 + 2 * rank)))


def _lowest(x: Array) -> Array:
    return np.asarray(-math.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min).astype(x.dtype)


def _inside(places: Windows, x: Array) -> Array:
    """A mask of the positions in each window that lie inside of the image."""
    return _terms(places, np.ones((1, 1, *x.shape[2:]), np.bool_), np.asarray(False))


def _max_pool(call: Call) -> list[Array]:
    x = call.input(0)
    places = _windows(call)
    terms, inside = _terms(places, x, _lowest(x)), _inside(places, x)
    if not inside.any(axis=0).all():
        raise Illegal("a window that holds padding alone")
    result = largest(terms)
    if len(call.results) < 2 or not call.results[1]:
        return [result]
    # The index of the first maximum in the whole tensor, in row-major or column-major order.
    spatial = x.shape[2:]
    plane = cast(Array, np.arange(math.prod(spatial))).reshape(spatial, order="F" if call.integer("storage_order") else "C")
    numbers = math.prod(spatial) * cast(Array, np.arange(math.prod(x.shape[:2]))).reshape(*x.shape[:2], *(1,) * len(spatial)) + plane
    chosen = np.argmax((terms == result) & inside, axis=0)
    return [result, np.take_along_axis(_terms(places, numbers, np.asarray(0)), chosen[None], 0)[0].astype(np.int64)]


def _average_pool(call: Call) -> list[Array]:
    x = call.input(0)
    places = _windows(call)
    terms = _terms(places, x, np.zeros((), x.dtype))
    if call.integer("count_include_pad"):
        # Padding counts, but the part of a last window beyond the padding does not.
        padded = tuple(head + size + tail for head, size, tail in zip(places.heads, x.shape[2:], places.tails, strict=True))
        none = (0,) * len(padded)
        whole = Windows(places.kernel, places.strides, places.dilations, none, none, places.counts)
        count = _terms(whole, np.ones((1, 1, *padded), np.bool_), np.asarray(False)).sum(axis=0)
    else:
        count = _inside(places, x).sum(axis=0)
    return [np.asarray(total(terms) / count.astype(x.dtype))]


def _norm(terms: Array, power: int) -> Array:
    if power == 1:
        return total(np.abs(terms))
    if power == 2:
        return np.sqrt(total(np.asarray(terms * terms)).astype(np.float64)).astype(terms.dtype)
    sums = total(np.asarray(np.abs(terms).astype(np.float64) ** power))
    return np.asarray(sums ** (1 / power)).astype(terms.dtype)


def _norm_pool(call: Call) -> list[Array]:
    x = call.input(0)
    return [_norm(_terms(_windows(call), x, np.zeros((), x.dtype)), call.integer("p", 2))]


def _global(fold: Callable[[Call, Array], Array]) -> Kernel:
    def kernel(call: Call) -> list[Array]:
        x = call.input(0)
        if 0 in x.shape[2:]:
            raise Illegal("a pool over nothing")
        axes = tuple(range(2, x.ndim))
        return [np.expand_dims(fold(call, in_front(x, axes)), axes)]

    return kernel


KERNELS: dict[str, Kernel] = {
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global(lambda _, terms: mean_of(terms)),
    "GlobalLpPool": _global(lambda call, terms: _norm(terms, call.integer("p", 2))),
    "GlobalMaxPool": _global(lambda _, terms: largest(terms)),
    "LpPool": _norm_pool,
    "MaxPool": _max_pool,
}
