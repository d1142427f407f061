"""A cache for results that are expensive to compute and follow from files.

A wheel ships its results; a checkout keeps them in the user's cache folder. The key is a hash of
everything that decides a result: the files, the code that reads them, and the versions of Python
and ONNX. So installations with the same contents share results, and no installation reads those of
another state. If anything goes wrong with the cache, the result is computed again.

A result is stored as an index and parts. The index is read at once and each part on demand, so a
run pays only for the parts that it needs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import mmap
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import onnx

from eqsat.shipped import SHIPPED

_LENGTH = 8  # bytes at the start of a file that hold the length of the index
_UNUSED = 30 * 86400.0  # seconds after which a file that no run has read is removed

_read: dict[str, Store] = {}  # the stores that this process has loaded or made


class _Pickler(pickle.Pickler):
    """Writes data classes as calls with their fields, which load several times faster than states
    that are set field by field.
    """

    def reducer_override(self, obj: Any) -> Any:
        if dataclasses.is_dataclass(obj) and not isinstance(obj, type) and all(field.init for field in dataclasses.fields(obj)):
            if type(obj).__reduce__ is object.__reduce__:
                return type(obj), tuple(getattr(obj, field.name) for field in dataclasses.fields(obj))
        return NotImplemented


def _pickled(made: object) -> bytes:
    stream = io.BytesIO()
    _Pickler(stream).dump(made)
    return stream.getvalue()


class Store:
    """An index, and the parts that it refers to by number."""

    def __init__(self, data: bytes | mmap.mmap) -> None:
        self._data = data
        begin = _LENGTH + int.from_bytes(data[:_LENGTH], "little")
        self.index, self._ends = pickle.loads(data[_LENGTH:begin])
        self._begin = begin

    def part(self, number: int) -> Any:
        """A part, loaded anew by each call."""
        begin = self._begin + (self._ends[number - 1] if number else 0)
        return pickle.loads(self._data[begin : self._begin + self._ends[number]])


def _stored(index: object, parts: Sequence[object]) -> bytes:
    """The bytes that a `Store` reads."""
    texts = [_pickled(part) for part in parts]
    ends: list[int] = []
    for text in texts:
        ends.append((ends[-1] if ends else 0) + len(text))
    head = _pickled((index, ends))
    return b"".join([len(head).to_bytes(_LENGTH, "little"), head, *texts])


def cached(name: str, files: Iterable[Path], make: Callable[[], tuple[object, Sequence[object]]]) -> Store:
    """The index and the parts that `make` returns for these contents of `files`. A folder stands
    for the files in it.
    """
    file = f"{name}-{_key(files)}.pickle"
    if file not in _read:
        _read[file] = _loaded(file, make)
    return _read[file]


def ship(name: str, files: Iterable[Path], make: Callable[[], tuple[object, Sequence[object]]], folder: Path) -> None:
    """Writes a result into the folder from which a wheel's installation reads it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}-{_key(files)}.pickle").write_bytes(_stored(*make()))


def _loaded(file: str, make: Callable[[], tuple[object, Sequence[object]]]) -> Store:
    path = _folder() / file
    with contextlib.suppress(Exception):
        if (SHIPPED / file).is_file():
            return _opened(SHIPPED / file)
        # A pickle is code: only a file that nobody else could have written is read.
        if _is_own(path):
            os.utime(path)
            return _opened(path)
    data = _stored(*make())
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.replace(temporary, path)
        for old in path.parent.glob("*.pickle"):
            if time.time() - old.stat().st_mtime > _UNUSED:
                old.unlink()
    return Store(data)


def _opened(path: Path) -> Store:
    with path.open("rb") as file:
        return Store(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _folder() -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    else:
        base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "eqsat"


def _is_own(path: Path) -> bool:
    if sys.platform == "win32":
        return path.exists()
    user = os.getuid()
    return all((found := place.stat()).st_uid == user and not found.st_mode & 0o022 for place in (path, path.parent))


def _key(files: Iterable[Path]) -> str:
    digest = hashlib.sha256(f"{sys.version_info[:2]} {onnx.__version__}".encode())
    for path in files:
        for file in sorted(path.glob("*.[pl]*")) if path.is_dir() else [path]:
            if file.is_file():
                content = file.read_bytes()
                digest.update(f"{file.name} {len(content)} ".encode())
                digest.update(content)
    return digest.hexdigest()[:32]
