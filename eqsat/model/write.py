"""Write a model with its external data; the file appears whole or not at all.

External data stay external: the kernel copies them from file to file. Where the output replaces the
input, unchanged data stay in place. New weights of a model with external data become external too.
The name of the data file depends on the model's content, so a model file never refers to data of
another version. Writing touches and removes no other file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import BinaryIO

import onnx
from onnx import TensorProto

from eqsat.errors import InputError
from eqsat.frozen import frozen
from eqsat.model.external_data import copy_range, has_external_data, refer, tensors_of
from eqsat.model.file_kinds import irregular
from eqsat.model.lean_file import pieces
from eqsat.model.tensors import External, is_apart, read_tensor, tensor_bytes

_ALIGNMENT = 16
_PAGE = 4096
_LARGE = 1024  # bytes; smaller tensors stay in the model file
_PROTOBUF_LIMIT = (1 << 31) - (1 << 20)


@frozen
class _Part:
    tensor: TensorProto
    source: External | None  # None: the tensor's own raw data
    offset: int
    length: int


def save(model: onnx.ModelProto, folder: Path | None, target: Path, replaces: Path | None = None, outside: bool = False) -> None:
    """Write `model` to `target`. `replaces` is the file it was read from, if any.

    `folder` holds the external data of `model`, which is not changed itself. Weights that are apart in
    the file of a run go into the model file. With `outside`, no large tensor does. A tensor too large
    for protobuf never does. Raise `InputError` if the target cannot be written.
    """
    if target.is_symlink():
        target = target.resolve()  # write the link's target and keep the link
    if target.is_dir():
        raise InputError(f"{target}: is a folder, not a file to write")
    if not target.parent.is_dir():
        raise InputError(f"{target.parent}: no such folder")
    in_place = replaces is not None and folder is not None and replaces.resolve().parent == target.resolve().parent and _same_file(replaces, target)
    outside = outside or _inline_bytes(model) > _PROTOBUF_LIMIT
    try:
        if any(_moves(tensor, outside, in_place) for tensor in tensors_of(model)):
            _save_with_data(model, folder, target, outside, in_place)
        elif folder is not None and any(map(is_apart, model.graph.initializer)):
            if not in_place or not _holds(target, pieces(model, folder)):
                _write_pieces(pieces(model, folder), target)
        else:
            data = model.SerializeToString(deterministic=True)
            if not in_place or target.read_bytes() != data:  # a model that stays as it is keeps its time of change
                _write_pieces([data], target)
    except OSError as error:
        raise InputError(f"{target}: can not write it: {error.strerror or error}") from None


def serialized(model: onnx.ModelProto, target: str) -> bytes:
    """Returns the bytes of a model without external data, for a `target` that errors name."""
    if has_external_data(model):
        raise InputError(f"{target}: takes one file, and the model keeps its weights in another; give a file: -o FILE")
    if _inline_bytes(model) > _PROTOBUF_LIMIT:
        raise InputError(f"{target}: the model has more bytes than one message may have; give a file: -o FILE")
    return model.SerializeToString(deterministic=True)


def _same_file(a: Path, b: Path) -> bool:
    return a.exists() and b.exists() and os.path.samefile(a, b)


def _inline_bytes(model: onnx.ModelProto) -> int:
    return sum(tensor_bytes(tensor) for tensor in tensors_of(model) if tensor.HasField("raw_data") or is_apart(tensor))


def _moves(tensor: TensorProto, outside: bool, in_place: bool) -> bool:
    """Tell whether the bytes of a tensor go into the new data file."""
    if is_apart(tensor):
        return outside
    return not in_place if tensor.data_location == TensorProto.EXTERNAL else outside and len(tensor.raw_data) >= _LARGE


def _write_pieces(content: Iterable[bytes | External], target: Path) -> None:
    """Write pieces one after the other. Ranges of other files are not read."""
    with replacing(target) as file:
        for piece in content:
            if isinstance(piece, External):
                copy_range(piece, file)
                file.seek(0, os.SEEK_END)
            else:
                file.write(piece)


def _holds(target: Path, content: Iterable[bytes | External]) -> bool:
    """Tell whether a file holds these pieces and nothing more."""
    with target.open("rb") as file:
        for piece in content:
            for part in piece.chunks() if isinstance(piece, External) else [piece]:
                if file.read(len(part)) != part:
                    return False
        return not file.read(1)


def _save_with_data(model: onnx.ModelProto, folder: Path | None, target: Path, outside: bool, in_place: bool) -> None:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    parts: list[_Part] = []
    places: dict[External, int] = {}  # weights that share bytes keep sharing them
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
        refer(part.tensor, "", part.offset, part.length)
    # The hash separates this model's data from those of any other model written to the target's
    # name.
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
        refer(part.tensor, name, part.offset, part.length)
    with replacing(target) as file:
        file.write(copy.SerializeToString(deterministic=True))


def _aligned(offset: int, length: int) -> int:
    """Align a large tensor to a page for memory mapping, and a small one to a few bytes."""
    step = _PAGE if length >= 16 * _PAGE else _ALIGNMENT
    return -(-offset // step) * step


@contextlib.contextmanager
def replacing(target: Path) -> Generator[BinaryIO, None, None]:
    """Yield a temporary file beside `target`.

    It replaces `target` if the block succeeds; otherwise it is removed. Raises `InputError` for a
    target that is no file, such as a device, which would be lost.
    """
    if (line := irregular(target)) is not None:
        raise InputError(line)
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
