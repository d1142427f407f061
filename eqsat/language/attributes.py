"""Attributes as the language sees them: integers, floats, strings, lists of those, and data types."""

from __future__ import annotations

import math
import struct

from onnx import TensorProto, defs

from eqsat.language.values import DType, Value
from eqsat.operators import AttributeValue, Operator
from eqsat.traits import DTYPE_ATTRIBUTES

_TYPES = defs.OpSchema.AttrType


def to_value(operator: Operator, name: str, value: AttributeValue) -> Value | None:
    """What a rule sees of an attribute; None for tensors, graphs and what else has no value in the language."""
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
    """The attribute that a rule's value means; None where it is not known, or is none that the operator takes."""
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
    """Whether the numbers of a value still mean what they did where an attribute stores them, in single precision.

    None may become 0 or infinite. Where `precise`, none may round at all: what computes in double precision, or keeps every
    bit, would show it.
    """
    if isinstance(value, tuple):
        return isinstance(stored, tuple) and all(survives(number, item, precise) for number, item in zip(value, stored, strict=True))
    if not isinstance(value, (int, float)) or not isinstance(stored, float) or value == stored or value != value:
        return True
    return not precise and bool(stored) and math.isfinite(stored)


def _single(value: Value | None) -> float | None:
    """A number as ONNX stores it in an attribute: in single precision."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if not math.isfinite(value):
        return float(value)
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return None
