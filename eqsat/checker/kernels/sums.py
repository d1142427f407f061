"""Sums and products of many numbers in the one order that this package uses.

The input is the terms, along one axis of an array; the output is their total, of the same data
type. Each total is formed from the first term to the last, one rounding a step, whatever the
position of the element or the shape of the array. So equal terms in equal order give equal bits; in
another order they may not.
"""

from __future__ import annotations

import numpy as np

from eqsat.checker.kernels.call import Array, some

_WIDE = 32  # sums at once, from which on adding rows is faster than running sums


def total(terms: Array) -> Array:
    """The sum over the first axis; 0 if it is empty. Integers wrap."""
    if not len(terms):
        return np.zeros(terms.shape[1:], terms.dtype)
    rows = terms.reshape(len(terms), -1)
    if rows.shape[1] >= _WIDE and rows.dtype.isbuiltin == 1:
        # numpy adds whole rows in order, unless the terms of one sum are neighbours in memory. Then
        # it adds pairs. A sum that begins with -0 keeps the sign of zeros.
        first = -0.0 if rows.dtype.kind == "f" else 0
        return np.add.reduce(np.ascontiguousarray(rows), axis=0, dtype=terms.dtype, initial=first).reshape(terms.shape[1:])
    # A running sum has only one order, in every memory layout.
    return np.asarray(np.add.accumulate(terms, axis=0, dtype=terms.dtype)[-1])


def product(factors: Array) -> Array:
    """The product over the first axis; 1 if it is empty. Integers wrap."""
    if not len(factors):
        return np.ones(factors.shape[1:], factors.dtype)
    return np.asarray(np.multiply.accumulate(factors, axis=0, dtype=factors.dtype)[-1])


def maximum(a: Array, b: Array) -> Array:
    """The larger of two numbers by IEEE 754-2019, in either operand order: a NaN wins, and +0 is
    above -0.
    """
    larger: Array = np.maximum(a, b)
    return np.where((a == 0) & (b == 0), a + b, larger).astype(larger.dtype) if larger.dtype.kind not in "biu" else larger


def minimum(a: Array, b: Array) -> Array:
    """The smaller of two numbers by IEEE 754-2019, in either operand order: a NaN wins, and -0 is
    below +0.
    """
    smaller: Array = np.minimum(a, b)
    return np.where((a == 0) & (b == 0), -(-a + -b), smaller).astype(smaller.dtype) if smaller.dtype.kind not in "biu" else smaller


def largest(values: Array) -> Array:
    """The maximum over the first axis, which is not empty."""
    top: Array = np.asarray(np.maximum.reduce(values, axis=0))
    if top.dtype.kind in "biu" or not some(top == 0):
        return top
    # numpy gives either zero. The sum of zeros is +0 if one of them is.
    zeros: Array = np.where(values == 0, values, np.asarray(-0.0).astype(values.dtype))
    return np.where(top == 0, total(zeros), top).astype(top.dtype)


def smallest(values: Array) -> Array:
    """The minimum over the first axis, which is not empty."""
    return values.min(axis=0) if values.dtype.kind in "biu" else np.asarray(-largest(-values))
