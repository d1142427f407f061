"""Constants by reference: a `Tensor` knows the type, size and location of its elements.

A Tensor comes from a `TensorProto` and the folder of its model, or from an array that folding
computed. It reads its elements only on request. External data stay in their file, and only paths
inside the model's folder are opened. Weights that a run has moved apart (`weight_file.py`) are such
data, too.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from eqsat.errors import InputError
from eqsat.facts.fact import packed_bytes
from eqsat.frozen import frozen, mutable

_CHUNK = 1 << 20
_PREFIX = 4096
_TYPED = ("float_data", "double_data", "int32_data", "int64_data", "uint64_data", "string_data")
_SIZED = frozenset(TensorProto.DataType.values()) - {TensorProto.STRING, TensorProto.UNDEFINED}
LARGE = 1 << 16  # bytes of a weight whose elements decide no shape
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
RUN_FILE = "weights-of-a-run-of-eqsat"
"""The location of weights that a run has moved apart."""


@frozen
class External:
    """A range of bytes in a file beside the model."""

    path: Path
    offset: int
    length: int
    own: bool = False  # whether the file is the run's, which changes no byte that it has written

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes piece by piece. Raise an `InputError` where the file ends too early."""
        left = self.length
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                while left:
                    chunk = file.read(min(left, _CHUNK))
                    if not chunk:
                        raise InputError(f"{self.path}: the file ends before the {self.length} bytes at offset {self.offset} that the model wants")
                    left -= len(chunk)
                    yield chunk
        except OSError as error:
            raise InputError(f"{self.path}: can not read external data: {error.strerror}") from None


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A dense constant.

    `proto` holds the elements. If `external` holds their place, it is only a header.
    """

    dtype: int
    dims: tuple[int, ...]
    nbytes: int
    proto: TensorProto
    external: External | None = None
    # The model was stripped: its file lacks all elements. Only the header is kept.
    hollow: bool = False

    @property
    def near(self) -> bool:
        """Tell whether the elements can be read in no time: they are in memory, or in the run's file."""
        return self.external is None or self.external.own

    def array(self) -> np.ndarray[Any, Any]:
        """Return the elements; external ones are read from their file now, or when they are used."""
        if self.external is None:
            return numpy_helper.to_array(self.proto)
        if self.external.own:
            kind = helper.tensor_dtype_to_np_dtype(self.dtype).newbyteorder("<")
            return np.memmap(self.external.path, kind, "r", self.external.offset, self.dims).view(np.ndarray)
        return numpy_helper.to_array(self.inline("").proto)

    def named(self, name: str) -> TensorProto:
        """Return a message of the same constant under a name; only the run's file keeps elements."""
        if self.external is None or not self.external.own:
            return self.inline(name).proto
        proto = TensorProto()
        proto.CopyFrom(self.proto)
        proto.name = name
        return proto

    def inline(self, name: str) -> Tensor:
        """Return the same constant, named `name`, with its elements in memory."""
        proto = TensorProto()
        if self.external is None:
            proto.CopyFrom(self.proto)
            proto.name = name
            return Tensor(self.dtype, self.dims, self.nbytes, proto)
        proto.data_type = self.dtype
        proto.dims.extend(self.dims)
        proto.name = name
        proto.raw_data = b"".join(self.external.chunks())
        return Tensor(self.dtype, self.dims, self.nbytes, proto)

    def beginning(self, count: int) -> bytes:
        """Return the first bytes of the elements, at most so many."""
        if self.external is None:
            return raw_bytes(self.proto)[:count]
        return b"".join(replace(self.external, length=min(count, self.external.length)).chunks())

    def chunks(self) -> Iterator[bytes]:
        """Yield the elements as raw little-endian bytes, piece by piece."""
        if self.external is not None:
            yield from self.external.chunks()
        else:
            yield raw_bytes(self.proto)


def raw_bytes(proto: TensorProto) -> bytes:
    """Return the elements of an inline tensor as bytes that are equal for equal contents."""
    if proto.data_type == TensorProto.STRING:
        return b"".join(len(item).to_bytes(8, "little") + item for item in proto.string_data)
    if proto.HasField("raw_data"):
        return proto.raw_data
    return numpy_helper.from_array(numpy_helper.to_array(proto)).raw_data


def dense_bytes(dtype: int, count: int) -> int:
    """Return the bytes that `count` elements take in a file; strings and unknown types: 16 each."""
    return packed_bytes(dtype, count) if dtype in _SIZED else 16 * count


def tensor_bytes(tensor: TensorProto) -> int:
    """Return the number of bytes of a tensor's elements, wherever they are."""
    return dense_bytes(tensor.data_type, math.prod(tensor.dims))


def header(tensor: TensorProto) -> TensorProto:
    """Return a tensor of raw elements without them, and without their place in the file of a run."""
    found = TensorProto(dims=tensor.dims, metadata_props=tensor.metadata_props)
    for field in ("data_type", "name", "doc_string", *(() if is_apart(tensor) else ("data_location",))):
        if tensor.HasField(field):
            setattr(found, field, getattr(tensor, field))
    return found


def is_weight(tensor: TensorProto) -> bool:
    """Tell whether a tensor is so large, and of such a type, that its elements decide no shape."""
    return tensor.data_type in _FLOATS and tensor_bytes(tensor) >= LARGE


def is_apart(tensor: TensorProto) -> bool:
    """Tell whether the elements of a tensor are in the file of a run."""
    return tensor.data_location == TensorProto.EXTERNAL and any(entry.key == "location" and entry.value == RUN_FILE for entry in tensor.external_data)


def read_tensor(proto: TensorProto, folder: Path | None) -> Tensor:
    """Return the constant of a message; `folder` is its model's folder (None: in memory)."""
    dims = tuple(proto.dims)
    if proto.data_type not in TensorProto.DataType.values() or proto.data_type == TensorProto.UNDEFINED:
        raise InputError(f"tensor '{proto.name}' has no known element type ({proto.data_type})")
    if any(size < 0 for size in dims):
        raise InputError(f"tensor '{proto.name}' has a negative dimension: {list(dims)}")
    count = math.prod(dims)
    nbytes = dense_bytes(proto.data_type, count)
    if proto.data_location != TensorProto.EXTERNAL:
        if proto.data_type == TensorProto.STRING:
            nbytes = sum(len(item) for item in proto.string_data)
        return Tensor(proto.data_type, dims, nbytes, proto, hollow=_is_hollow(proto, count, nbytes))
    return Tensor(proto.data_type, dims, nbytes, proto, _external(proto, folder, nbytes))


def _is_hollow(proto: TensorProto, count: int, nbytes: int) -> bool:
    """Tells whether the file was stripped of a tensor's elements. Raises `InputError` if it has some
    elements, but not those that the type and the dimensions want.
    """
    if _has_elements(proto, count, nbytes):
        return False
    if proto.raw_data:
        raise InputError(f"tensor '{proto.name}' has {len(proto.raw_data)} bytes of elements where its type and dimensions want {nbytes}")
    numbers = sum(len(getattr(proto, field)) for field in _TYPED)
    if numbers:
        raise InputError(f"tensor '{proto.name}' has {numbers} numbers where its type and dimensions {list(proto.dims)} want {count} elements")
    return True


def _has_elements(proto: TensorProto, count: int, nbytes: int) -> bool:
    if proto.data_type == TensorProto.STRING:
        return len(proto.string_data) == count
    if proto.HasField("raw_data"):
        return len(proto.raw_data) == nbytes
    try:
        return numpy_helper.to_array(proto).size == count
    except (ValueError, TypeError, OverflowError):
        return False


def _external(proto: TensorProto, folder: Path | None, nbytes: int) -> External:
    fields = {entry.key: entry.value for entry in proto.external_data}
    location = fields.get("location", "")
    if folder is None:
        raise InputError(f"tensor '{proto.name}' has external data in '{location}', but the model came without a folder: give its path instead")
    if not location or os.path.isabs(location) or ".." in Path(location).parts or "\\" in location:
        raise InputError(f"tensor '{proto.name}' has external data in '{location}', which is not a relative path inside the model's folder")
    path = folder / location
    try:
        offset, length = int(fields.get("offset", 0)), int(fields.get("length", nbytes))
    except ValueError:
        raise InputError(f"tensor '{proto.name}': offset and length of its external data must be numbers") from None
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (ValueError, RuntimeError) as error:  # a name with a NUL, a circle of links
        raise InputError(f"tensor '{proto.name}': can not read external data {location!r}: {error}") from None
    if not inside:
        raise InputError(f"tensor '{proto.name}' has external data in '{location}', which leads out of the model's folder")
    try:
        size = path.stat().st_size
        readable = path.is_file() and os.access(path, os.R_OK)
    except OSError as error:
        raise InputError(f"tensor '{proto.name}': can not read external data '{location}': {error.strerror}") from None
    if not readable:
        raise InputError(f"tensor '{proto.name}': can not read external data '{location}'")
    if length != nbytes:
        raise InputError(f"tensor '{proto.name}' has {length} bytes of external data where its type and dimensions want {nbytes}")
    if offset < 0 or offset + length > size:
        raise InputError(f"tensor '{proto.name}': external data '{location}' has {size} bytes, but bytes {offset} to {offset + length} are wanted")
    return External(path, offset, length, location == RUN_FILE)


def from_array(array: np.ndarray[Any, Any], name: str) -> Tensor:
    """Return a constant that holds `array`; its header has the name `name`."""
    proto = numpy_helper.from_array(np.asarray(array), name)
    return Tensor(proto.data_type, tuple(proto.dims), dense_bytes(proto.data_type, int(np.asarray(array).size)), proto)


class ContentIndex:
    """Numbers for constants: one for each distinct (type, dimensions, bytes).

    A large constant is hashed only if another one has the same type, dimensions and first bytes. So
    distinct weights are not read as a whole.
    """

    def __init__(self) -> None:
        self._by_prefix: dict[tuple[object, ...], list[_Content]] = {}
        self._count = 0

    def key(self, tensor: Tensor) -> int:
        """Return the number of this content: equal for equal contents, and only for those."""
        start = tensor.beginning(_PREFIX)
        bucket = self._by_prefix.setdefault((tensor.dtype, tensor.dims, start), [])
        if bucket and tensor.nbytes <= _PREFIX and tensor.dtype != TensorProto.STRING:
            return bucket[0].number
        mine = _Content(tensor, self._count)
        for other in bucket:
            if other.digest() == mine.digest():
                return other.number
        self._count += 1
        bucket.append(mine)
        return mine.number


@mutable
class _Content:
    tensor: Tensor
    number: int
    known: bytes | None = None

    def digest(self) -> bytes:
        if self.known is None:
            digest = hashlib.blake2b(digest_size=32)
            for chunk in self.tensor.chunks():
                digest.update(chunk)
            self.known = digest.digest()
        return self.known


def constant_value(attribute: onnx.AttributeProto, folder: Path | None) -> Tensor | None:
    """Return the tensor in a Constant node's attribute; None for sparse values and references."""
    if attribute.ref_attr_name:
        return None
    if attribute.name == "value" and attribute.type == onnx.AttributeProto.TENSOR:
        return read_tensor(attribute.t, folder)
    values: dict[str, tuple[Any, Any]] = {
        "value_float": (attribute.f, np.float32),
        "value_floats": (list(attribute.floats), np.float32),
        "value_int": (attribute.i, np.int64),
        "value_ints": (list(attribute.ints), np.int64),
    }
    if attribute.name in values:
        value, dtype = values[attribute.name]
        return from_array(np.array(value, dtype), "")
    if attribute.name in ("value_string", "value_strings"):
        items = [attribute.s] if attribute.name == "value_string" else list(attribute.strings)
        dims = [] if attribute.name == "value_string" else [len(items)]
        proto = TensorProto(data_type=TensorProto.STRING, dims=dims, string_data=items)
        return read_tensor(proto, folder)
    return None
