"""Lean files: a large model is read and written without its weights in memory.

`read_lean` lets the system copy the weights of a model file into the file of a run
(`weight_file.py`), and parses the rest. `pieces` is the way back: the bytes of a whole message, with
ranges of that file in place of the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from google.protobuf.message import DecodeError, Message
from onnx import GraphProto, ModelProto, TensorProto

from eqsat.model.file_kinds import TEXT_FORMATS
from eqsat.model.model import copy_fields
from eqsat.model.sources import Source, load, path_of, readable
from eqsat.model.tensors import LARGE, External, header, is_apart, read_tensor, tensor_bytes
from eqsat.model.weight_file import WORTH, WeightFile, apart, is_plain, may_be_lean

_GRAPH = ModelProto.DESCRIPTOR.fields_by_name["graph"].number
_INITIALIZER = GraphProto.DESCRIPTOR.fields_by_name["initializer"].number
_RAW_DATA = TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number
_SIZED = 2  # the kind of fields that begin with their length
_FIXED = {1: 8, 5: 4}  # by kind, the bytes of fields of a fixed length
_VARYING = 0
_HEADER = 1 << 12  # bytes of a message around its elements, at most
_MANY = 1 << 20  # fields of a graph, or of a model, that take longer to go through than to parse
_FEW = 1 << 8  # fields of a tensor whose elements are one field


class _Unusual(Exception):
    """The file is no usual message."""


def load_lean(source: Source, name: str = "source", beside: WeightFile | None = None) -> tuple[ModelProto, Path | None, WeightFile | None]:
    """Returns what `load` returns, and the file with the model's large weights if they are apart: the
    file `beside` those of another model if it is given.
    """
    path = path_of(source)
    found = read_lean(Path(path), beside) if path and Path(path).suffix not in TEXT_FORMATS else None
    if found is not None and path:
        return readable(found[0], path), Path(path).parent, found[1]
    model, folder = load(source, name)
    lean, weights = apart(model, beside) or (model, None)
    return lean, folder, weights


def read_lean(path: Path, beside: WeightFile | None = None) -> tuple[ModelProto, WeightFile] | None:
    """Returns the model in a file without its large weights, and a file that has them: `beside` those of
    another model, or a new one. Returns None where they are few, where others are in files already,
    where the disk has no room, and where the file is no usual model.
    """
    try:
        with path.open("rb") as file:
            return _read(file, path, file.seek(0, 2), beside)
    except (OSError, ValueError, DecodeError, _Unusual):
        return None


def _read(file: BinaryIO, path: Path, size: int, beside: WeightFile | None) -> tuple[ModelProto, WeightFile] | None:
    graphs = [(begin, value, end) for number, begin, value, end in _fields(file, 0, size) if number == _GRAPH] if size >= WORTH else []
    if len(graphs) != 1:
        return None
    (begin, value, end) = graphs[0]
    parts: list[bytes | tuple[TensorProto, External]] = []
    copied = value
    for number, first, inside, last in _fields(file, value, end):
        if number == _INITIALIZER and last - inside >= LARGE and (found := _weight(file, path, inside, last)) is not None:
            parts += [_bytes(file, copied, first), found]
            copied = last
    if sum(part[1].length for part in parts if isinstance(part, tuple)) < WORTH:
        return None
    weights = beside or WeightFile()
    graph = bytearray()
    for part in (*parts, _bytes(file, copied, end)):
        if isinstance(part, tuple):
            weights.refer(*part)
            graph += _framed(_INITIALIZER, part[0].SerializeToString())
        else:
            graph += part
    model = ModelProto.FromString(b"".join((_bytes(file, 0, begin), _framed(_GRAPH, graph), _bytes(file, end, size))))
    return (model, weights) if may_be_lean(model) else None


def _weight(file: BinaryIO, path: Path, begin: int, end: int) -> tuple[TensorProto, External] | None:
    """Returns the header of a tensor and the range of its elements, or None for one that is small or
    unusual.
    """
    data = [(first, value, last) for number, first, value, last in _fields(file, begin, end, _FEW) if number == _RAW_DATA]
    if len(data) != 1:
        return None
    ((first, value, last),) = data
    if first - begin > _HEADER or end - last > _HEADER:
        return None
    tensor = TensorProto.FromString(_bytes(file, begin, first) + _framed(_RAW_DATA, b"") + _bytes(file, last, end))
    if not is_plain(tensor) or last - value != tensor_bytes(tensor):
        return None
    return header(tensor), External(path, value, last - value)


def _fields(file: BinaryIO, begin: int, end: int, most: int = _MANY) -> Iterator[tuple[int, int, int, int]]:
    """Yields the number of each field of a message that lies between two places of a file, and the
    places where the field begins, where its value begins, and where it ends.
    """
    while begin < end:
        if (most := most - 1) < 0:
            raise _Unusual
        file.seek(begin)
        key = _varint(file)
        kind = key & 7
        if kind == _VARYING:
            value = file.tell()
            _varint(file)
            last = file.tell()
        else:
            size = _varint(file) if kind == _SIZED else _FIXED.get(kind)
            value = file.tell()
            last = end + 1 if size is None else value + size
        if last > end:
            raise _Unusual
        yield key >> 3, begin, value, last
        begin = last


def _varint(file: BinaryIO) -> int:
    number = 0
    for shift in range(0, 70, 7):
        (byte,) = file.read(1) or (0x80,)  # at the end of the file, no number ends
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number
    raise _Unusual


def _bytes(file: BinaryIO, begin: int, end: int) -> bytes:
    file.seek(begin)
    found = file.read(end - begin)
    if len(found) < end - begin:
        raise _Unusual
    return found


def pieces(model: ModelProto, folder: Path) -> Iterator[bytes | External]:
    """Yields the bytes of a whole message in order, as protobuf writes it. Weights that are apart in a
    file in `folder` are ranges of that file.
    """
    graph = model.graph
    inner: list[bytes | External] = [_part(graph, lambda number: number < _INITIALIZER)]
    for tensor in graph.initializer:
        inner += _whole(tensor, folder) if is_apart(tensor) else [_framed(_INITIALIZER, tensor.SerializeToString(deterministic=True))]
    inner.append(_part(graph, lambda number: number > _INITIALIZER))
    yield _part(model, lambda number: number < _GRAPH) + _head(_GRAPH, _length(inner))
    yield from inner
    yield _part(model, lambda number: number > _GRAPH)


def _whole(tensor: TensorProto, folder: Path) -> list[bytes | External]:
    """Returns the field of a tensor in its graph, with the range of its elements."""
    elements, rest = read_tensor(tensor, folder).external, header(tensor)
    assert elements is not None
    before, after = (_part(rest, lambda number, last=last: (number > _RAW_DATA) == last) for last in (False, True))
    inner: list[bytes | External] = [before + _head(_RAW_DATA, elements.length), elements, after]
    return [_head(_INITIALIZER, _length(inner)), *inner]


def _part(message: Message, wanted: Callable[[int], bool]) -> bytes:
    """Returns the bytes of the fields of a message whose numbers are wanted."""
    part = type(message)()
    copy_fields(message, part, {field.name for field in message.DESCRIPTOR.fields if not wanted(field.number)})
    return part.SerializeToString(deterministic=True)


def _length(pieces: list[bytes | External]) -> int:
    return sum(len(piece) if isinstance(piece, bytes) else piece.length for piece in pieces)


def _framed(number: int, content: bytes | bytearray) -> bytes:
    return _head(number, len(content)) + content


def _head(number: int, size: int) -> bytes:
    """Returns the bytes before the content of a field."""
    return _number(number << 3 | _SIZED) + _number(size)


def _number(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
