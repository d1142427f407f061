"""Functions of tensors and of data types, for the table in `functions.py`, based on facts and
ONNX's types.

The arguments are known values of the sorts in the table; anything about a tensor may be unknown.
Results follow the table's conventions.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

from eqsat.facts import dims
from eqsat.facts.dims import Dim, Known
from eqsat.facts.fact import Array, element_count, packed_bytes
from eqsat.facts.known_ranges import known_range
from eqsat.language.values import DType, List, NoValue, Tensor, Value, concrete
from eqsat.traits import ELEMENTWISE, POSITIONLESS

# --- tensors ---


def dim(x: Tensor, axis: Known) -> Dim:
    """`dim`."""
    sizes = x.fact.shape
    if sizes is None:
        raise NoValue("the rank of the tensor is not known")
    number = concrete(axis, "the axis")
    if not -len(sizes) <= number < len(sizes):
        raise NoValue(f"axis {number} of a tensor of rank {len(sizes)}")
    return sizes[number]


def rank(x: Tensor) -> int | None:
    """`rank`."""
    return None if x.fact.shape is None else len(x.fact.shape)


def shape(x: Tensor) -> List | None:
    """`shape`."""
    return x.fact.shape


def dtype(x: Tensor) -> DType | None:
    """`dtype`."""
    return DType(x.fact.dtype) if x.fact.dtype else None


def elements(x: Tensor) -> Dim:
    """`elements`."""
    return element_count(x.fact)


def constant(x: Tensor) -> bool:
    """`constant`."""
    return x.fact.const


def _plain(content: bytes, code: int) -> List:
    """The elements of raw bytes; unknown for data types without numbers."""
    array: Array = np.frombuffer(content, helper.tensor_dtype_to_np_dtype(code).newbyteorder("<"))
    items: list[Any] = array.tolist()
    return tuple(item if isinstance(item, bool | float) else dims.whole(item) if isinstance(item, int) else None for item in items)


def uniform(x: Tensor) -> Value | None:
    """`uniform`."""
    return _plain(x.fact.uniform, x.fact.dtype)[0] if x.fact.uniform is not None and x.fact.dtype else None


def values(x: Tensor) -> List | None:
    """`values`."""
    fact = x.fact
    if fact.ints is not None and fact.dtype == TensorProto.BOOL:
        return tuple(bool(item) if isinstance(item, int) else None for item in fact.ints)
    return _plain(fact.floats, fact.dtype) if fact.floats is not None else fact.ints if fact.dtype else None


def halves_equal(x: Tensor) -> bool:
    """`halves_equal`."""
    return x.fact.doubled or _evenly_uniform(x)


def pairs_equal(x: Tensor) -> bool:
    """`pairs_equal`."""
    return x.fact.paired or _evenly_uniform(x)


def _evenly_uniform(x: Tensor) -> bool:
    """Whether all elements are equal, and even in number along the last axis."""
    size = x.fact.shape[-1] if x.fact.shape else 1
    return x.fact.uniform is not None and isinstance(size, int) and size % 2 == 0


def _bound(x: Tensor, field: str) -> Value | None:
    found = known_range(x.fact)
    end = None if found is None else getattr(found, field)
    return dims.whole(end) if isinstance(end, int) else end


def low(x: Tensor) -> Value | None:
    """`low`."""
    return _bound(x, "low")


def high(x: Tensor) -> Value | None:
    """`high`."""
    return _bound(x, "high")


def rounded_low(x: Tensor) -> Value | None:
    """`rounded_low`."""
    return _bound(x, "least")


def rounded_high(x: Tensor) -> Value | None:
    """`rounded_high`."""
    return _bound(x, "most")


def numbers(x: Tensor) -> bool:
    """`numbers`."""
    found = known_range(x.fact)
    return found is not None and not found.nan


# --- data types ---

_finfo: Any = ml_dtypes.finfo  # it is untyped
_NAMES = {code: TensorProto.DataType.Name(code) for code in TensorProto.DataType.values()}
# Floats that have infinities, NaN and -0, so that no value of a narrower float is lost.
_COMPLETE = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE})


def is_floating(t: DType) -> bool:
    """`floating`."""
    return "FLOAT" in _NAMES[t.code] or t.code == TensorProto.DOUBLE


def is_integral(t: DType) -> bool:
    """`integral`."""
    return "INT" in _NAMES[t.code]


def is_signed(t: DType) -> bool:
    """`signed`."""
    return (is_floating(t) and t.code != TensorProto.FLOAT8E8M0) or (is_integral(t) and not _NAMES[t.code].startswith("U"))


def is_positionless(operator: str, t: DType) -> bool:
    """`positionless`. Without floats nothing rounds, so no element depends on its position.

    The operands of Pow may have two types: integers do not tell that the other one holds no floats.
    """
    return _NAMES[t.code].lower() in POSITIONLESS.get(operator, ()) if is_floating(t) else operator in ELEMENTWISE - {"Pow"}


def bits(t: DType) -> int:
    """`bits`."""
    if t.code == TensorProto.STRING:
        raise NoValue("a string has no fixed number of bits")
    return packed_bytes(t.code, 8)


def _limits(t: DType) -> tuple[float, float] | tuple[int, int]:
    found = helper.tensor_dtype_to_np_dtype(t.code)
    if is_floating(t):
        limits = _finfo(found)
        return float(limits.min), float(limits.max)
    if is_integral(t):
        whole = ml_dtypes.iinfo(found)
        return int(whole.min), int(whole.max)
    raise NoValue(f"{t} has no least or greatest number")


def lowest(t: DType) -> Value | None:
    """`lowest`."""
    low, _ = _limits(t)
    return low if isinstance(low, float) else dims.whole(low)


def highest(t: DType) -> Value | None:
    """`highest`."""
    _, high = _limits(t)
    return high if isinstance(high, float) else dims.whole(high)


def lossless(source: DType, target: DType) -> bool:
    """`lossless`."""
    if source == target:
        return True
    if source.code == TensorProto.BOOL:
        return is_integral(target) or target.code in _COMPLETE
    if target.code in _COMPLETE and (is_floating(source) or is_integral(source)):
        (low, high), wider = _limits(source), _finfo(helper.tensor_dtype_to_np_dtype(target.code))
        if is_integral(source):
            return max(-low, high) <= min(2 ** (wider.nmant + 1), float(wider.max))
        narrow = _finfo(helper.tensor_dtype_to_np_dtype(source.code))
        return narrow.nmant <= wider.nmant and high <= float(wider.max) and float(narrow.smallest_subnormal) >= float(wider.smallest_subnormal)
    if is_integral(source) and is_integral(target):
        (low, high), (least, greatest) = _limits(source), _limits(target)
        return least <= low and high <= greatest
    return False
