"""A cache between runs: what is expensive to make and follows from files comes out of the user's cache folder.

Sound because the key is a hash of everything that decides the result: the files, the code that reads them, and the
versions of Python and ONNX. Whatever goes wrong with the cache, the thing is made anew.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import onnx

Made = TypeVar("Made")

_made: dict[str, Any] = {}  # what this process has loaded or made


class _Pickler(pickle.Pickler):
    """Writes data classes as calls with their fields, which load several times faster than states that are set field by field."""

    def reducer_override(self, obj: Any) -> Any:
        if dataclasses.is_dataclass(obj) and not isinstance(obj, type) and all(field.init for field in dataclasses.fields(obj)):
            return type(obj), tuple(getattr(obj, field.name) for field in dataclasses.fields(obj))
        return NotImplemented


def cached(name: str, files: Iterable[Path], make: Callable[[], Made]) -> Made:
    """What `make` gives, or gave when the same `files` (folders: the files in them) had the same contents."""
    path = _folder() / f"{name}-{_key(files)}.pickle"
    if path.name not in _made:
        _made[path.name] = _loaded(path, name, make)
    return _made[path.name]


def _loaded(path: Path, name: str, make: Callable[[], Made]) -> Made:
    # A pickle is code: only a file that nobody else could have written is read.
    with contextlib.suppress(Exception):
        if _is_own(path):
            return pickle.loads(path.read_bytes())
    made = make()
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            _Pickler(file).dump(made)
        os.replace(temporary, path)
        for old in path.parent.glob(f"{name}-*.pickle"):
            if old != path:
                old.unlink()
    return made


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
    digest = hashlib.sha256(f"{sys.version} {onnx.__version__}".encode())
    for path in files:
        for file in sorted(path.glob("*.[pl]*")) if path.is_dir() else [path]:
            if file.is_file():
                digest.update(f"{file} {file.stat().st_size} ".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()[:32]
