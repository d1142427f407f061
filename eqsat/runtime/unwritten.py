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
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    works = mallopt is not None and bool(mallopt(_PERTURB, fill))
    try:
        yield works
    finally:
        if mallopt is not None and works:
            mallopt(_PERTURB, 0)
