"""A cache between runs: what is expensive to make and follows from files comes out of the user's cache folder.

Sound because the key is a hash of everything that decides the result: the files, the code that reads them, and the
versions of Python and ONNX. Whatever goes wrong with the cache, the thing is made anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import onnx

Made = TypeVar("Made")


def cached(name: str, files: Iterable[Path], make: Callable[[], Made]) -> Made:
    """What `make` gives, or gave when the same `files` (folders: the files in them) had the same contents."""
    path = _folder() / f"{name}-{_key(files)}.pickle"
    # A pickle is code: only a file that nobody else could have written is read.
    with contextlib.suppress(Exception):
        if _is_own(path):
            return pickle.loads(path.read_bytes())
    made = make()
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            pickle.dump(made, file)
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
