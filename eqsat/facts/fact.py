"""A `Fact` about a value: its type, whether it is constant, and its elements if they are few.

A Fact is immutable and compares by value. `merge` joins the facts of two equal values. It is
commutative, associative and idempotent: the more precise fact wins, and two unknowns stay unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from onnx import TensorProto, TypeProto, helper, numpy_helper

from eqsat.dimension_names import own_name, sizes_of
from eqsat.facts.dims import Dim, Poly, precision, product, render, symbol, whole
from eqsat.facts.intervals import Range, coarse, meet, spanned

# The facts of larger tensors carry no elements. A mask gathers its elements by as many indices as a
# sequence has tokens.
INT_LIMIT = 512
_FLOAT_LIMIT = 64
_RANGE_LIMIT = 1 << 13
_FIRST = 64  # elements that are compared before the others

Array = np.ndarray[Any, np.dtype[Any]]
Part = TypeVar("Part")

_INTEGER_KINDS = "INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 BOOL INT4 UINT4 INT2 UINT2"
INTEGERS = frozenset(int(TensorProto.DataType.Value(name)) for name in _INTEGER_KINDS.split())
FLOATS = frozenset(int(TensorProto.DataType.Value(name)) for name in "FLOAT DOUBLE FLOAT16 BFLOAT16".split())
NUMBERS = INTEGERS | FLOATS
HALVES = frozenset({int(TensorProto.FLOAT16), int(TensorProto.BFLOAT16)})
# The bits of one element, for types that pack several elements into a byte.
PACKED_BITS = {
    int(TensorProto.DataType.Value(name)): bits
    for name, bits in {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2, "FLOAT6E2M3": 6, "FLOAT6E3M2": 6}.items()
}


class Fact(NamedTuple):
    """The known facts of one value. The empty value of a field means "unknown"."""

    # The onnx.TensorProto.DataType of a dense tensor; 0: unknown, or no tensor.
    dtype: int = 0
    # None: the rank is unknown. A None inside: that size is unknown.
    shape: tuple[Dim, ...] | None = None
    # The value is computed from constants by pure operators, so it can be evaluated now.
    const: bool = False
    # The elements, in row-major order, of a small integer or boolean tensor of concrete shape.
    ints: tuple[Dim, ...] | None = None
    # The element, in little-endian bytes, that all elements of a nonempty tensor equal.
    uniform: bytes | None = None
    # A serialized TypeProto of a sequence, optional, map or sparse tensor.
    other: bytes | None = None
    # The elements, in little-endian bytes, of a small floating-point constant.
    floats: bytes | None = None
    # The bounds of the elements, if they say more than the other fields.
    range: Range | None = None
    # Whether the second half of the last axis is known to equal the first, in real arithmetic. Only
    # floats that are not all equal have this.
    doubled: bool = False
    # The same of neighbours: each element at an even place of the last axis and the next one.
    paired: bool = False


UNKNOWN = Fact()


def type_of(fact: Fact) -> Fact:
    """Return the type in a fact, without anything about elements."""
    return Fact(fact.dtype, fact.shape, other=fact.other)


class Contradiction(ValueError):
    """Two facts that cannot both be true of one value."""


def merge(a: Fact, b: Fact) -> Fact:
    """Join two facts of one value; raise `Contradiction` if no value satisfies both."""
    if a == b:
        return a
    merged = Fact(
        _agree("dtype", a.dtype, b.dtype, dtype_name) if a.dtype and b.dtype else a.dtype or b.dtype,
        _merge_dims("shape", a.shape, b.shape),
        a.const or b.const,
        _merge_dims("elements", a.ints, b.ints),
        _merge_bytes("uniform", a.uniform, b.uniform),
        _merge_other(a.other, b.other),
        _merge_bytes("elements", a.floats, b.floats),
        a.range if b.range is None else b.range if a.range is None else meet(a.range, b.range),
        a.doubled or b.doubled,
        a.paired or b.paired,
    )
    if merged.other is not None and (merged.dtype or merged.shape is not None):
        raise Contradiction("one value can not be a tensor and no tensor")
    return merged


def _agree(field: str, a: Part, b: Part, show: Callable[[Part], str]) -> Part:
    if a != b:
        raise Contradiction(f"one value can not have the {field} {show(a)} and {show(b)}")
    return a


def merge_dim(a: Dim, b: Dim) -> Dim:
    """Return the more precise of two sizes that are equal."""
    if isinstance(a, int) and isinstance(b, int):
        return _agree("size", a, b, str)
    return a if a == b else min(a, b, key=precision)


def _merge_dims(field: str, a: tuple[Dim, ...] | None, b: tuple[Dim, ...] | None) -> tuple[Dim, ...] | None:
    if a is None or b is None or a == b:
        return b if a is None else a
    try:
        return tuple(merge_dim(x, y) for x, y in zip(a, b, strict=True))
    except ValueError as error:
        raise Contradiction(f"one value can not have the {field} {show_dims(a)} and {show_dims(b)}") from error


def _merge_bytes(field: str, a: bytes | None, b: bytes | None) -> bytes | None:
    return (b if a is None else a) if a is None or b is None else _agree(field, a, b, bytes.hex)


def _merge_other(a: bytes | None, b: bytes | None) -> bytes | None:
    if a is None or b is None or a == b:
        return b if a is None else a
    _agree("type", without_shapes(a), without_shapes(b), repr)
    # Of two equal types, the longer text holds more about shapes.
    return min(a, b, key=lambda text: (-len(text), text))


def without_shapes(text: bytes) -> bytes:
    """Remove all sizes from a serialized type."""
    proto = TypeProto.FromString(text)
    inner = proto
    while True:
        kind = inner.WhichOneof("value")
        if kind in ("tensor_type", "sparse_tensor_type"):
            getattr(inner, kind).ClearField("shape")
        if kind not in ("sequence_type", "optional_type", "map_type"):
            return proto.SerializeToString(deterministic=True)
        inner = inner.map_type.value_type if kind == "map_type" else getattr(inner, kind).elem_type


def dtype_name(dtype: int) -> str:
    """Return the name of a data type in ONNX text: "float16"."""
    return TensorProto.DataType.Name(dtype).lower()  # pyright: ignore[reportArgumentType]


DTYPES_OF_SCHEMAS = {f"tensor({dtype_name(dtype)})": dtype for dtype in TensorProto.DataType.values() if dtype}
"""The data types of tensors by the names that schemas give these types."""


def show_dims(dims: tuple[Dim, ...]) -> str:
    """Return dims as people read them: "[N, 64, ?]"."""
    return f"[{', '.join(map(render, dims))}]"


def from_type(type_proto: TypeProto, prefix: str, name_of: Callable[[str], Poly] = symbol) -> Fact:
    """Return the fact of a declared type. An unnamed size gets the name "?{prefix}.{axis}".

    `name_of` makes the size of a name: `symbol`, or `promised` if it is not 0.
    """
    kind = type_proto.WhichOneof("value")
    if kind is None:
        return UNKNOWN
    if kind != "tensor_type":
        return Fact(other=type_proto.SerializeToString(deterministic=True))
    tensor = type_proto.tensor_type
    if not tensor.HasField("shape"):
        return Fact(tensor.elem_type)
    return Fact(tensor.elem_type, tuple(name_of(size) if isinstance(size, str) else size for size in sizes_of(tensor, prefix)))


def to_type(fact: Fact) -> TypeProto | None:
    """Return the fact's type as ONNX writes it; None if the data type is unknown.

    Symbolic sizes become text.
    """
    if fact.other is not None:
        return TypeProto.FromString(fact.other)
    if not fact.dtype:
        return None
    shape = None if fact.shape is None else [dim if dim is None or isinstance(dim, int) else render(dim) for dim in fact.shape]
    return helper.make_tensor_type_proto(fact.dtype, shape)


def with_symbols(fact: Fact, prefix: str) -> Fact:
    """Name each unknown size of a known rank "?{prefix}.{axis}"."""
    if fact.shape is None or None not in fact.shape:
        return fact
    return fact._replace(shape=tuple(symbol(own_name(prefix, axis)) if dim is None else dim for axis, dim in enumerate(fact.shape)))


def element_count(fact: Fact) -> Dim:
    """Return the number of elements of the tensor."""
    return None if fact.shape is None else product(fact.shape)


def byte_size(fact: Fact) -> int | None:
    """Return the bytes of the elements, packed as in ONNX; None if unknown or strings."""
    count = element_count(fact)
    if not isinstance(count, int) or fact.dtype in (TensorProto.UNDEFINED, TensorProto.STRING):
        return None
    return packed_bytes(fact.dtype, count)


def packed_bytes(dtype: int, count: int) -> int:
    """Return the bytes of `count` elements of a fixed-size type, packed as in ONNX."""
    return (count * _element_bits(dtype) + 7) // 8


def _element_bits(dtype: int) -> int:
    return PACKED_BITS[dtype] if dtype in PACKED_BITS else 8 * helper.tensor_dtype_to_np_dtype(dtype).itemsize


def from_array(array: Array) -> Fact:
    """Return the full fact of a constant, with its elements if they are few.

    The function reads the array in pieces of bounded size.
    """
    if array.dtype.kind in "OSU":
        return Fact(TensorProto.STRING, array.shape, const=True)
    dtype = int(helper.np_dtype_to_tensor_dtype(array.dtype.newbyteorder("=")))
    ints, floats, uniform = None, None, _uniform(array)
    if dtype in INTEGERS and array.size <= INT_LIMIT:
        ints = tuple(whole(int(element)) for element in array.ravel())
    elif dtype in FLOATS and array.size <= _FLOAT_LIMIT:
        floats = _little_endian(array.ravel()).tobytes()
    varied = dtype in FLOATS and uniform is None
    ends = coarse(dtype, spanned(array)) if varied and floats is None and array.size <= _RANGE_LIMIT else None
    doubled, paired = varied and _twice(array, _halves), varied and _twice(array, _neighbours)
    return Fact(dtype, array.shape, True, ints, uniform, None, floats, ends, doubled=doubled, paired=paired)


def from_tensor(tensor: TensorProto) -> Fact:
    """Return the fact of a tensor message, as `from_array` does.

    If the elements are in another file or do not fit their type, the fact has only the type and
    shape.
    """
    if any(size < 0 for size in tensor.dims):
        return UNKNOWN
    if tensor.data_location != TensorProto.EXTERNAL:
        try:
            return from_array(numpy_helper.to_array(tensor))
        except (ValueError, TypeError, KeyError):
            pass
    return Fact(tensor.data_type, tuple(tensor.dims), const=True)


def _little_endian(array: Array) -> Array:
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def _uniform(array: Array, piece: int = 1 << 16) -> bytes | None:
    # Elements compare by their bytes: 0.0 and -0.0 differ, and a NaN equals itself.
    if array.size == 0:
        return None
    if array.size <= _FIRST:
        data = _little_endian(array).tobytes()
        one = data[: len(data) // array.size]
        return one if data == one * array.size else None
    elements = array.reshape(-1) if array.flags.c_contiguous else array.flat
    first = _little_endian(np.asarray(elements[:1]))
    one = np.frombuffer(first.tobytes(), np.uint8)
    # Some of the first elements differ in nearly every large tensor, so the others are not read.
    bounds = sorted({0, min(_FIRST, array.size), *range(piece, array.size, piece), array.size})
    for start, stop in pairwise(bounds):
        part = np.ascontiguousarray(_little_endian(np.asarray(elements[start:stop])))
        if not np.array_equal(part.view(np.uint8).reshape(len(part), -1), np.broadcast_to(one, (len(part), len(one)))):
            return None
    return one.tobytes()


def _twice(array: Array, parts: Callable[[Array], tuple[Array, Array]], piece: int = 1 << 16) -> bool:
    """Tell whether both parts of each row are equal."""
    if array.size == 0 or array.ndim == 0 or array.shape[-1] % 2:
        return False
    # The parts of the first row differ in nearly every tensor, so the others are not read.
    if not _same_bits(*parts(array[(0,) * (array.ndim - 1)])):
        return False
    rows = array.reshape(-1, array.shape[-1])
    step = max(1, piece // array.shape[-1])
    return all(_same_bits(*parts(rows[start : start + step])) for start in range(0, len(rows), step))


def _halves(rows: Array) -> tuple[Array, Array]:
    middle = rows.shape[-1] // 2
    return rows[..., :middle], rows[..., middle:]


def _neighbours(rows: Array) -> tuple[Array, Array]:
    return rows[..., ::2], rows[..., 1::2]


def _same_bits(one: Array, other: Array) -> bool:
    return np.array_equal(np.ascontiguousarray(one).view(np.uint8), np.ascontiguousarray(other).view(np.uint8))
