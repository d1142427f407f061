"""Unwritten memory: outputs of a session that show the former content of memory.

ONNX Runtime runs some inputs that ONNX forbids, such as a Concat of parts that do not fit. It then
leaves elements of the result as it found them. Such an element tells nothing about a model.
"""

from __future__ import annotations

import ctypes
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from eqsat.runtime.session import Session

_PERTURB = -6  # the parameter of glibc's mallopt that fills each new piece of memory
_FILLS = (0x55, 0xAA)  # these differ in every bit
_SMALL = range(24, 1033, 16)  # the sizes of the blocks that glibc keeps for the next request, each
_KEPT = 7  # so many times; their content stays, whatever mallopt says


def under_fills(session: Session, feeds: Mapping[str, Any], names: Sequence[str]) -> list[list[Any]]:
    """Return the outputs once for each content of new memory.

    The outputs differ where they show memory that nothing wrote. If the C library cannot fill
    memory, there is one list.
    """
    found: list[list[Any]] = []
    for fill in _FILLS:
        with _filled(fill) as works:
            found.append(session.run(feeds, names))
        if not works:
            break
    return found


@contextmanager
def _filled(fill: int) -> Generator[bool]:
    library = ctypes.CDLL(None)
    mallopt = getattr(library, "mallopt", None)
    works = mallopt is not None and bool(mallopt(_PERTURB, fill))
    if works:
        _fill_kept(library, fill)
    try:
        yield works
    finally:
        if mallopt is not None and works:
            mallopt(_PERTURB, 0)


def _fill_kept(library: ctypes.CDLL, fill: int) -> None:
    """Fills the small blocks that the C library keeps."""
    allocate, release = library.malloc, library.free
    allocate.argtypes, allocate.restype, release.argtypes = [ctypes.c_size_t], ctypes.c_void_p, [ctypes.c_void_p]
    for size in _SMALL:
        blocks = [block for _ in range(_KEPT) if (block := allocate(size))]
        for block in blocks:
            ctypes.memset(block, fill, size)
        for block in blocks:
            release(block)
