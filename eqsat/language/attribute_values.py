"""Attributes in the rule language: integers, floats, strings, lists of these, and data types."""

from __future__ import annotations

import math
import struct

from onnx import TensorProto, defs

from eqsat.language.values import DType, Value
from eqsat.operators import AttributeValue, Operator
from eqsat.traits import DTYPE_ATTRIBUTES

_TYPES = defs.OpSchema.AttrType


def to_value(operator: Operator, name: str, value: AttributeValue) -> Value | None:
    """The value of an attribute in the rule language; None for tensors, graphs and other kinds that
    have none.
    """
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, int) and (operator.name, name) in DTYPE_ATTRIBUTES:
        return DType(value)
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, tuple):
        return tuple(item.decode("utf-8", "replace") if isinstance(item, bytes) else item for item in value)
    return None


def from_value(operator: Operator, name: str, value: Value | None) -> AttributeValue | None:
    """The attribute that a rule's value stands for; None if the value is unknown, or not one the
    operator takes.
    """
    assert operator.schema is not None
    kind = operator.schema.attributes[name].type
    if kind == _TYPES.INT:
        if isinstance(value, DType):
            return value.code if value.code in TensorProto.DataType.values() else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    if kind == _TYPES.FLOAT:
        return _single(value)
    if kind == _TYPES.STRING:
        return value.encode() if isinstance(value, str) else None
    if not isinstance(value, tuple):
        return None
    if kind == _TYPES.INTS:
        whole = tuple(item for item in value if isinstance(item, int) and not isinstance(item, bool))
        return whole if len(whole) == len(value) else None
    if kind == _TYPES.FLOATS:
        singles = tuple(single for item in value if (single := _single(item)) is not None)
        return singles if len(singles) == len(value) else None
    texts = tuple(item.encode() for item in value if isinstance(item, str))
    return texts if len(texts) == len(value) else None


def survives(value: Value | None, stored: AttributeValue, precise: bool) -> bool:
    """Whether the numbers of a value keep their meaning in an attribute, which stores single
    precision.

    No number may become 0 or infinite. With `precise` no number may round at all, because a
    computation in double precision, or one that keeps every bit, would show it.
    """
    if isinstance(value, tuple):
        return isinstance(stored, tuple) and all(survives(number, item, precise) for number, item in zip(value, stored, strict=True))
    if not isinstance(value, (int, float)) or not isinstance(stored, float) or value == stored or value != value:
        return True
    return not precise and bool(stored) and math.isfinite(stored)


def _single(value: Value | None) -> float | None:
    """A number in single precision, as ONNX stores it in an attribute."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if not math.isfinite(value):
        return float(value)
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return None
