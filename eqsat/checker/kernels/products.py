"""Matrix products: MatMul, Gemm and Einsum.

The input is a `Call`; the output is its result. Each element is a sum of products in the order of
the inner index (eqsat/checker/kernels/sums.py). If an operator adds a bias of its own, the sum
begins with it. Kernels may add the bias first or last, so splitting a bias off is equal in real
arithmetic, but not to the bits.
"""

from __future__ import annotations

import string

import numpy as np

from eqsat.checker.kernels.call import Array, Call, Illegal, Kernel
from eqsat.checker.kernels.sums import total


def matmul(a: Array, b: Array) -> Array:
    """numpy's matmul, with sums in order."""
    if a.ndim == 0 or b.ndim == 0:
        raise Illegal("MatMul of a scalar")
    left = a.reshape(1, -1) if a.ndim == 1 else a
    right = b.reshape(-1, 1) if b.ndim == 1 else b
    if left.shape[-1] != right.shape[-2]:
        raise Illegal(f"MatMul of {list(a.shape)} and {list(b.shape)}")
    rank = max(left.ndim, right.ndim)
    left, right = (x.reshape((1,) * (rank - x.ndim) + x.shape) for x in (left, right))
    columns, rows = left.transpose(rank - 1, *range(rank - 1)), right.transpose(rank - 2, *range(rank - 2), rank - 1)
    # In the order of rows, `total` need not copy the terms.
    result = total(np.multiply(columns[..., None], rows[..., None, :], order="C"))
    result = result[..., 0, :] if a.ndim == 1 else result
    return result[..., 0] if b.ndim == 1 else result


def _gemm(call: Call) -> list[Array]:
    a, b, c = call.input(0), call.input(1), call.given(2)
    a = a.T if call.integer("transA") else a
    b = b.T if call.integer("transB") else b
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise Illegal("Gemm of matrices that do not fit")
    terms = np.asarray(np.asarray(call.number("alpha", 1)).astype(a.dtype) * (a.T[:, :, None] * b[:, None, :]))
    if c is not None:
        bias = np.asarray(np.asarray(call.number("beta", 1)).astype(a.dtype) * c)
        terms = np.concatenate([np.broadcast_to(bias, terms.shape[1:])[None], terms])
    found = total(terms)
    # The factor is one of the sum: an infinite one makes NaN of the sum of no products.
    return [found if a.shape[1] else np.asarray(found + np.asarray(call.number("alpha", 1)).astype(a.dtype) * np.zeros((), a.dtype))]


def einsum(equation: str, operands: list[Array]) -> Array:
    """The Einstein sum; summed indices run in the order in which the equation first names them, the
    last one fastest.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    names = left.split(",")
    if len(names) != len(operands):
        raise Illegal("Einsum names another number of operands")
    spare = [letter for letter in string.ascii_letters if letter not in equation]
    dotted = max((x.ndim - len(name) + 3 for name, x in zip(names, operands, strict=True) if "..." in name), default=0)
    batch = "".join(spare[:dotted])
    names = [name.replace("...", batch[dotted - (x.ndim - len(name) + 3) :]) if "..." in name else name for name, x in zip(names, operands, strict=True)]
    every = "".join(dict.fromkeys("".join(names)))
    kept = (
        right.replace("...", batch)
        if arrow
        else batch + "".join(sorted(letter for letter in every if letter not in batch and "".join(names).count(letter) == 1))
    )
    summed = "".join(letter for letter in every if letter not in kept)
    order = summed + kept
    factors: list[Array] = []
    for name, x in zip(names, operands, strict=True):
        if len(name) != x.ndim:
            raise Illegal("Einsum names another number of axes")
        distinct = "".join(dict.fromkeys(name))
        # This takes diagonals and permutes axes; it adds nothing.
        turned: Array = np.einsum(x, [every.index(letter) for letter in name], [every.index(letter) for letter in sorted(distinct, key=order.index)])
        sizes = dict(zip(sorted(distinct, key=order.index), turned.shape, strict=True))
        factors.append(turned.reshape([sizes.get(letter, 1) for letter in order]))
    terms = factors[0]
    for factor in factors[1:]:
        terms = np.asarray(terms * factor)
    return total(terms.reshape((-1, *terms.shape[len(summed) :]))) if terms.size else np.zeros(terms.shape[len(summed) :], terms.dtype)


def _dot(call: Call) -> list[Array]:
    return [matmul(call.input(0), call.input(1))]


def _einsum(call: Call) -> list[Array]:
    return [einsum(call.text("equation"), call.all_inputs())]


KERNELS: dict[str, Kernel] = {"Einsum": _einsum, "Gemm": _gemm, "MatMul": _dot}
