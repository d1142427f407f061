"""Scratch folders: where a run writes the files that egglog reads itself.

The output is an empty folder of one run, which goes away with it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")  # a file system in memory, on most systems with Linux
_ROOM = 1 << 30  # free bytes there, far more than a run writes


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """Returns a new folder, in memory if the system has a place and room for it.

    A small graph is saturated in less time than a disk takes to make a few files and remove them.
    """
    return tempfile.TemporaryDirectory(prefix="eqsat-", dir=_MEMORY if _has_room(_MEMORY) else None)


def _has_room(place: Path) -> bool:
    try:
        return os.access(place, os.W_OK) and shutil.disk_usage(place).free >= _ROOM
    except OSError:
        return False
