"""The memory of this machine, for the limits that a command has by default."""

from __future__ import annotations

import os
from pathlib import Path


def available_memory() -> int:
    """The bytes of memory that are available without swapping. If the system does not tell, all
    memory of the machine.
    """
    statistics = Path("/proc/meminfo")
    if statistics.exists():
        for line in statistics.read_text().splitlines():
            name, _, amount = line.partition(":")
            if name == "MemAvailable":
                return int(amount.split()[0]) << 10
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
