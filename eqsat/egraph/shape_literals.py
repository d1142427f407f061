"""Literals for computed shapes: if x is [N, S, 768], Reshape to [N, S, 12, 64] is [0, 0, 12, 64].

The input is the facts of an operator's data and of its shape input. The output is a literal with
the same meaning for every size of the named dimensions, zero included, or None if there is none. In
a literal for Reshape, a zero copies the size (allowzero = 0).
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import TensorProto

from eqsat.facts.dims import Dim, equal
from eqsat.facts.fact import Fact
from eqsat.operators import AttributeValue
from eqsat.terms.terms import Literal


def realized(operator: str, attributes: Mapping[str, AttributeValue | None], x: Fact, shape: Fact) -> Literal | None:
    """Returns the literal for the shape input of `operator` (Reshape or Expand), or None."""
    if shape.ints is None or shape.shape is None or None in shape.ints or x.shape is None or shape.dtype != TensorProto.INT64:
        return None
    if all(isinstance(size, int) for size in shape.ints):
        return None  # it is a literal already
    sizes = _reshape(x.shape, shape.ints, attributes.get("allowzero", 0) != 0) if operator == "Reshape" else _expand(x.shape, shape.ints)
    return None if sizes is None else Literal(TensorProto.INT64, (len(sizes),), sizes)


def _reshape(x: tuple[Dim, ...], wanted: tuple[Dim, ...], allowzero: bool) -> tuple[int, ...] | None:
    if allowzero and 0 in wanted:
        return None  # a zero in the literal would copy a size
    sizes: list[int] = []
    inferred = False
    for axis, size in enumerate(wanted):
        if isinstance(size, int):
            sizes.append(size)
        elif axis < len(x) and equal(x[axis], size) is True:
            sizes.append(0)
        else:
            sizes.append(-1)
            inferred = True
    if sizes.count(-1) > 1:
        return None
    # The runtime infers -1 by dividing by all other sizes, so none of them may be zero. With
    # `allowzero` it leaves zeros out.
    if 0 in sizes and (inferred or (allowzero and -1 in sizes)):
        return None
    return tuple(sizes)


def _expand(x: tuple[Dim, ...], wanted: tuple[Dim, ...]) -> tuple[int, ...] | None:
    sizes: list[int] = []
    offset = len(x) - len(wanted)
    for axis, size in enumerate(wanted):
        if isinstance(size, int):
            sizes.append(size)
        elif axis + offset >= 0 and equal(x[axis + offset], size) is True:
            sizes.append(1)  # broadcasting keeps the data's own size
        else:
            return None
    return tuple(sizes)
