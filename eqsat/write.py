"""Writing: a model and the folder of its external data come in, a file appears whole or not at all.

External data are written again as external data, copied from file to file by the kernel; where the output
replaces the input, unchanged data stay where they are. New weights of a model that had external data join them.
The data file's name depends on the model, so that a model file never refers to data that are half of another
version; no other file is ever touched or removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import onnx
from onnx import TensorProto

from eqsat.errors import InputError
from eqsat.model import attribute_graphs
from eqsat.tensors import External, read_tensor

_ALIGNMENT = 16
_PAGE = 4096
_LARGE = 1024  # bytes; smaller tensors stay in the model file
_PROTOBUF_LIMIT = (1 << 31) - (1 << 20)


def tensors_of(model: onnx.ModelProto) -> Iterator[TensorProto]:
    """Every tensor that a model holds: initializers and attributes, in bodies and functions too."""
    graphs = [model.graph, *(graph for info in model.training_info for graph in (info.initialization, info.algorithm))]
    nodes = [node for function in model.functions for node in function.node]
    for function in model.functions:
        for attribute in function.attribute_proto:
            if attribute.HasField("t"):
                yield attribute.t
    while graphs or nodes:
        if graphs:
            graph = graphs.pop()
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield sparse.values
                yield sparse.indices
            nodes.extend(graph.node)
            continue
        node = nodes.pop()
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
        graphs.extend(graph for _, graph in attribute_graphs(node))


def has_external_data(model: onnx.ModelProto) -> bool:
    """Whether any tensor of a model lies outside of its file."""
    return any(tensor.data_location == TensorProto.EXTERNAL for tensor in tensors_of(model))


@dataclass(frozen=True, slots=True)
class _Part:
    tensor: TensorProto
    source: External | None  # None: the tensor's own raw data
    offset: int
    length: int


def save(model: onnx.ModelProto, folder: Path | None, target: Path, replaces: Path | None = None, outside: bool = False) -> None:
    """Writes `model`, whose external data lie in `folder`, to `target`; `replaces` is the file it was read from, if any.

    `outside`: no large tensor goes into the model file; what is too large for any file of protobuf's never does. `model`
    itself is not changed. Raises `InputError` where the target can not be written.
    """
    if target.is_symlink():
        target = target.resolve()  # the file that the link names is written, and the link stays
    if target.is_dir():
        raise InputError(f"{target}: is a folder, not a file to write")
    if not target.parent.is_dir():
        raise InputError(f"{target.parent}: no such folder")
    in_place = replaces is not None and folder is not None and replaces.resolve().parent == target.resolve().parent and _same_file(replaces, target)
    outside = outside or _inline_bytes(model) > _PROTOBUF_LIMIT
    try:
        if any(_moves(tensor, outside, in_place) for tensor in tensors_of(model)):
            _save_with_data(model, folder, target, outside, in_place)
        else:
            with replacing(target) as file:
                file.write(model.SerializeToString(deterministic=True))
    except OSError as error:
        raise InputError(f"{target}: can not write it: {error.strerror or error}") from None


def _same_file(a: Path, b: Path) -> bool:
    return a.exists() and b.exists() and os.path.samefile(a, b)


def _inline_bytes(model: onnx.ModelProto) -> int:
    return sum(len(tensor.raw_data) for tensor in tensors_of(model))


def _moves(tensor: TensorProto, outside: bool, in_place: bool) -> bool:
    """Whether the bytes of a tensor go into the data file that is written."""
    return not in_place if tensor.data_location == TensorProto.EXTERNAL else outside and len(tensor.raw_data) >= _LARGE


def _save_with_data(model: onnx.ModelProto, folder: Path | None, target: Path, outside: bool, in_place: bool) -> None:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    parts: list[_Part] = []
    places: dict[External, int] = {}  # weights that share their bytes go on sharing them
    offset = 0
    for tensor in tensors_of(copy):
        if not _moves(tensor, outside, in_place):
            continue
        source = None
        if tensor.data_location == TensorProto.EXTERNAL:
            source = read_tensor(tensor, folder).external
            assert source is not None
            length = source.length
            if source in places:
                parts.append(_Part(tensor, source, places[source], length))
                continue
            offset = _aligned(offset, length)
            places[source] = offset
        else:
            length = len(tensor.raw_data)
        offset = _aligned(offset, length)
        parts.append(_Part(tensor, source, offset if length else 0, length))
        offset += length
    payloads = [part.tensor.raw_data if part.source is None else b"" for part in parts]
    for part in parts:
        part.tensor.ClearField("raw_data")
        _refer(part, "")
    # The name tells this model's data from those of any other that was written under the target's name.
    digest = hashlib.blake2b(copy.SerializeToString(deterministic=True), digest_size=6)
    for payload in payloads:
        digest.update(payload)
    name = f"{target.name}.{digest.hexdigest()}.data"
    with replacing(target.parent / name) as file:
        written: set[int] = set()
        for part, payload in zip(parts, payloads, strict=True):
            if not part.length or part.offset in written:
                continue
            written.add(part.offset)
            file.seek(part.offset)
            if part.source is None:
                file.write(payload)
            else:
                copy_range(part.source, file)
    for part in parts:
        _refer(part, name)
    with replacing(target) as file:
        file.write(copy.SerializeToString(deterministic=True))


def _aligned(offset: int, length: int) -> int:
    """Where a tensor begins: a large one on a page, so that it can be mapped into memory, a small one where there is room."""
    step = _PAGE if length >= 16 * _PAGE else _ALIGNMENT
    return -(-offset // step) * step


def _refer(part: _Part, name: str) -> None:
    part.tensor.data_location = TensorProto.EXTERNAL
    del part.tensor.external_data[:]
    for key, value in (("location", name), ("offset", str(part.offset)), ("length", str(part.length))):
        part.tensor.external_data.add(key=key, value=value)


def copy_range(source: External, file: BinaryIO) -> None:
    """Appends a range of a file at the position of another, without its bytes passing through this process where the system can."""
    with source.path.open("rb") as data:
        file.flush()
        left, position = source.length, source.offset
        while left:
            done = _copy_some(data.fileno(), file.fileno(), position, left)
            if not done:
                raise OSError(f"{source.path} ended early")
            left -= done
            position += done


def _copy_some(source: int, target: int, position: int, count: int) -> int:
    if hasattr(os, "copy_file_range"):
        with contextlib.suppress(OSError):
            at = os.lseek(target, 0, os.SEEK_CUR)
            done = os.copy_file_range(source, target, min(count, 1 << 30), position, at)
            os.lseek(target, at + done, os.SEEK_SET)
            return done
    os.lseek(source, position, os.SEEK_SET)
    return os.write(target, os.read(source, min(count, 1 << 20)))


@contextlib.contextmanager
def replacing(target: Path) -> Generator[BinaryIO, None, None]:
    """A temporary file beside `target` that takes its place when the block ends well, and vanishes otherwise."""
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
