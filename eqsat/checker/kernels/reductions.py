"""Operators that reduce axes, run along one axis, or pick elements along one by their order.

The input is a `Call`; the output is its results. Sums run in row-major order over the reduced axes
(eqsat/checker/kernels/sums.py). Of equal elements, ArgMax, ArgMin and TopK pick the first, unless
an attribute says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from eqsat.checker.kernels.call import Array, Call, Illegal, Kernel, from_front, from_front_all, is_integer
from eqsat.checker.kernels.pointwise import elementwise, exp, log
from eqsat.checker.kernels.sums import largest, product, smallest, total

Fold = Callable[[Array], Array]


def in_front(x: Array, axes: tuple[int, ...]) -> Array:
    """`x` with `axes` as one axis at the front, in row-major order, and the others behind it."""
    kept = tuple(axis for axis in range(x.ndim) if axis not in axes)
    return x.transpose(axes + kept).reshape((math.prod(x.shape[axis] for axis in axes), *(x.shape[axis] for axis in kept)))


def reduced(x: Array, axes: tuple[int, ...], fold: Fold, keepdims: bool) -> Array:
    """`x` with `axes` folded away, or left with size 1."""
    result = fold(in_front(x, axes))
    return np.expand_dims(result, axes) if keepdims else result


def mean_of(terms: Array) -> Array:
    """The mean over the first axis; a mean of integers is rounded towards zero."""
    count = len(terms)
    if not is_integer(terms):
        return np.asarray(total(terms) / np.asarray(count).astype(terms.dtype))
    if not count:
        raise Illegal("the mean of no integers")
    return np.asarray(np.trunc(total(terms) / count)).astype(terms.dtype)


def _log_of_sum(terms: Array) -> Array:
    return elementwise(log, total(terms))


def _log_of_sum_of_exponentials(terms: Array) -> Array:
    if not len(terms):
        return _log_of_sum(terms)
    top = largest(terms)
    top = np.where(np.isinf(top), np.zeros((), top.dtype), top).astype(top.dtype)
    return elementwise(log, total(elementwise(exp, np.asarray(terms - top)))) + top


def _extreme(fold: Fold, low: bool) -> Fold:
    def value(terms: Array) -> Array:
        if len(terms):
            return fold(terms)
        if is_integer(terms):
            information = np.iinfo(terms.dtype)
            return np.full(terms.shape[1:], information.min if low else information.max, terms.dtype)
        return np.full(terms.shape[1:], not low if terms.dtype.kind == "b" else -math.inf if low else math.inf).astype(terms.dtype)

    return value


def _square_root(terms: Array) -> Array:
    squares = total(terms * terms)
    return np.asarray(np.sqrt(squares.astype(np.float64))).astype(terms.dtype)


def _reduce(fold: Fold) -> Kernel:
    def kernel(call: Call) -> list[Array]:
        x, axes = call.input(0), call.parameter(1)
        if not axes and call.integer("noop_with_empty_axes"):
            axes = ()
        elif not axes:
            axes = tuple(range(x.ndim))
        return [reduced(x, tuple(sorted(from_front_all(axes, x.ndim))), fold, bool(call.integer("keepdims", 1)))]

    return kernel


def _running(fold: Callable[[Array], Array], empty: int) -> Kernel:
    """CumSum and CumProd: the result of `fold` at each step along an axis."""

    def kernel(call: Call) -> list[Array]:
        x = call.input(0)
        axis = from_front((call.parameter(1) or (0,))[0], x.ndim)
        terms = np.moveaxis(x, axis, 0)
        terms = terms[::-1] if call.integer("reverse") else terms
        result = fold(terms)
        if call.integer("exclusive"):
            result = np.concatenate([np.full((1, *terms.shape[1:]), empty).astype(x.dtype), result[:-1]])[: len(terms)]
        return [np.moveaxis(result[::-1] if call.integer("reverse") else result, 0, axis)]

    return kernel


def _pick(choose: Callable[[Array], Array]) -> Kernel:
    """ArgMax and ArgMin."""

    def kernel(call: Call) -> list[Array]:
        x = call.input(0)
        axis = from_front(call.integer("axis"), x.ndim)
        terms = np.moveaxis(x, axis, 0)
        if not len(terms):
            raise Illegal("the place of the largest of nothing")
        plain = terms if terms.dtype.kind in "iuf" else terms.astype(np.float64)
        last = call.integer("select_last_index")
        places = len(terms) - 1 - choose(plain[::-1]) if last else choose(plain)
        return [np.expand_dims(places, axis) if call.integer("keepdims", 1) else np.asarray(places)]

    return kernel


def _top(call: Call) -> list[Array]:
    x, count = call.input(0), (call.parameter(1) or (1,))[0]
    axis = from_front(call.integer("axis", -1), x.ndim)
    if not 0 <= count <= x.shape[axis]:
        raise Illegal(f"the first {count} of {x.shape[axis]}")
    terms = np.moveaxis(x, axis, 0)
    plain = terms if terms.dtype.kind in "iuf" else terms.astype(np.float64)
    if call.integer("largest", 1):
        # Sorting the reversed terms puts the first of equal elements first after the reversal.
        order = len(terms) - 1 - np.argsort(plain[::-1], axis=0, kind="stable")[::-1]
    else:
        order = np.argsort(plain, axis=0, kind="stable")
    order = order[:count]
    return [np.moveaxis(np.take_along_axis(terms, order, 0), 0, axis), np.moveaxis(order, 0, axis).astype(np.int64)]


# --- along one axis ---


def softmax_of(terms: Array) -> Array:
    """Softmax along the first axis."""
    powers = elementwise(exp, np.asarray(terms - largest(terms))) if len(terms) else terms
    return np.asarray(powers / total(powers))


def _log_softmax_of(terms: Array) -> Array:
    if not len(terms):
        return terms
    shifted = np.asarray(terms - largest(terms))
    return np.asarray(shifted - elementwise(log, total(elementwise(exp, shifted))))


def _hardmax_of(terms: Array) -> Array:
    places = np.argmax(terms.astype(np.float64), axis=0) if len(terms) else np.zeros(terms.shape[1:])
    return (np.arange(len(terms)).reshape((-1,) + (1,) * (terms.ndim - 1)) == places).astype(terms.dtype)


def _along(function: Fold) -> Kernel:
    def kernel(call: Call) -> list[Array]:
        x = call.input(0)
        axis = from_front(call.integer("axis", -1), x.ndim)
        return [np.moveaxis(function(np.moveaxis(x, axis, 0)), 0, axis)]

    return kernel


def _normalized(call: Call) -> list[Array]:
    """LpNormalization; a norm of 0 leaves zeros, as in ONNX Runtime and the reference."""
    x = call.input(0)
    fold = _square_root if call.integer("p", 2) == 2 else _FOLDS["ReduceL1"]
    norm = reduced(x, (from_front(call.integer("axis", -1), x.ndim),), fold, keepdims=True)
    return [np.where(norm == 0, np.zeros((), x.dtype), x / norm).astype(x.dtype)]


_FOLDS: dict[str, Fold] = {
    "ReduceL1": lambda terms: total(np.abs(terms)),
    "ReduceL2": _square_root,
    "ReduceLogSum": _log_of_sum,
    "ReduceLogSumExp": _log_of_sum_of_exponentials,
    "ReduceMax": _extreme(largest, low=True),
    "ReduceMean": mean_of,
    "ReduceMin": _extreme(smallest, low=False),
    "ReduceProd": product,
    "ReduceSum": total,
    "ReduceSumSquare": lambda terms: total(np.asarray(terms * terms)),
}


KERNELS: dict[str, Kernel] = {
    **{name: _reduce(fold) for name, fold in _FOLDS.items()},
    "ArgMax": _pick(lambda terms: np.argmax(terms, axis=0)),
    "ArgMin": _pick(lambda terms: np.argmin(terms, axis=0)),
    "CumProd": _running(lambda terms: np.multiply.accumulate(terms, axis=0, dtype=terms.dtype), 1),
    "CumSum": _running(lambda terms: np.add.accumulate(terms, axis=0, dtype=terms.dtype), 0),
    "Hardmax": _along(_hardmax_of),
    "LogSoftmax": _along(_log_softmax_of),
    "LpNormalization": _normalized,
    "Softmax": _along(softmax_of),
    "TopK": _top,
}
