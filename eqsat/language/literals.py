"""Constants in rules: the one number that all elements of a tensor equal, and the literals that
right sides make.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from eqsat.facts.dims import Poly
from eqsat.facts.fact import INTEGERS, Fact
from eqsat.language.values import Value
from eqsat.terms.terms import Literal


def number_of(fact: Fact) -> tuple[float | int, float] | None:
    """The number that all elements of a non-empty constant equal, and the distance to the next
    number of its data type; None if there is no such number.
    """
    if fact.uniform is None or not fact.dtype or fact.dtype in (TensorProto.STRING, TensorProto.COMPLEX64, TensorProto.COMPLEX128):
        return None
    kind = helper.tensor_dtype_to_np_dtype(fact.dtype)
    element: Any = np.frombuffer(fact.uniform, kind.newbyteorder("<") if kind.kind in "iuf" else kind)[0]
    if fact.dtype in INTEGERS:
        return int(element), 0.0
    value = float(element)
    if not math.isfinite(value):
        return value, 0.0
    # numpy's `spacing` lacks the extended types, so the bits give the next number.
    width = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[kind.itemsize]
    bits = np.abs(np.array(element, kind)).reshape(1).view(width)
    following = float((bits + width(1)).view(kind)[0])
    return value, following - abs(value) if math.isfinite(following) else 0.0


def is_number(fact: Fact, wanted: float | int, near: bool) -> bool:
    """Whether a tensor is a non-empty constant whose elements all equal `wanted` (0 is not -0), or
    with `near` are within the rounding of its type.
    """
    found = number_of(fact)
    if found is None or isinstance(wanted, bool):
        return False
    value, spacing = found
    if near:
        return abs(value - wanted) <= spacing
    if not value and not wanted and isinstance(value, float):
        return math.copysign(1.0, value) == math.copysign(1.0, wanted)
    return value == wanted


def integers(value: Value | None, rank: int) -> Literal | None:
    """The literal of a parameter of integers: a list for rank 1, one integer for rank 0; None for
    any other value.
    """
    items = value if isinstance(value, tuple) else (value,)
    if isinstance(value, tuple) != (rank == 1):
        return None
    sizes = tuple(item for item in items if isinstance(item, (int, Poly)) and not isinstance(item, bool))
    return Literal(int(TensorProto.INT64), (len(sizes),) if rank else (), sizes) if len(sizes) == len(items) else None


def scalar(value: Value | None, dtype: int) -> Literal | None:
    """The scalar literal of a number in a data type; None if the type can not represent it. Floats
    round to the type's nearest, but never to 0 or infinity.
    """
    if not isinstance(value, (bool, int, float)) or dtype in (TensorProto.STRING, TensorProto.COMPLEX64, TensorProto.COMPLEX128):
        return None
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    if dtype in INTEGERS:
        if value != value or math.isinf(value) or int(value) != value:
            return None
        try:
            fits = int(np.array(int(value)).astype(kind)) == int(value)
        except OverflowError:
            return None
        return Literal(dtype, (), (int(value),)) if fits else None
    with np.errstate(over="ignore"):
        element = np.array(value, np.float64).astype(kind)
    if value != float(element) and (not element or math.isinf(float(element))):
        return None
    return Literal(dtype, (), element.astype(kind.newbyteorder("<")).tobytes())
