"""Limits of a run: what it may use comes in; whether it may go on is answered, between iterations and inside them.

Counts come first: they end a run at the same place each time. Seconds and memory are a second fence, for what no count foresees.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_MATCHES_PER_NODE = 200  # by which the limit of matches grows with the graph
_CALLS = 1 << 9  # between two looks at the clock
_CALLS_BETWEEN_SIZES = 1 << 12  # between two looks at the memory that the system says is used


@dataclass(slots=True)
class Limits:
    """What a run may use. `deadline` is a time of `time.monotonic`."""

    deadline: float | None = None
    nodes: int = 2_000_000  # e-nodes
    memory: int | None = None  # bytes by which this process may grow during the run; watched where the system tells
    matches: int = 200_000  # of the left sides of rules, before their conditions are looked at, and more in large graphs


class Stop(Exception):
    """A limit was reached inside an iteration. What the iteration would still have added is lost, nothing else."""


class Watch:
    """Looks at the limits wherever egglog calls back: one iteration alone could take longer than all that was allowed."""

    def __init__(self, limits: Limits, size: int) -> None:
        self.allowance = math.inf  # e-nodes that rules may make until it is set anew
        self.hit: str | None = None
        self._limits = limits
        self._most_matches = limits.matches + _MATCHES_PER_NODE * size
        self._most_bytes = math.inf if limits.memory is None else resident_bytes() + limits.memory
        self._matches = 0
        self._calls = 0

    @property
    def full(self) -> bool:
        """Whether rules have made as many e-nodes as they may."""
        return self.allowance < 0

    def watched(self, function: Callable[..., int]) -> Callable[..., int]:
        """The function, which ends the run where time or memory is used up."""

        def call(*handles: int) -> int:
            self._look()
            return function(*handles)

        return call

    def answering(self, answer: Callable[..., int], made: int = 0) -> Callable[..., int]:
        """The answers to matches; -1 once as many e-nodes were made as may be, of which each match that fires makes `made`."""

        def fire(*handles: int) -> int:
            self._look()
            self._matches += 1
            if self._matches > self._most_matches:
                self.hit = "matches"
                raise Stop
            if self.allowance < 0:
                return -1
            found = answer(*handles)
            if found >= 0:
                self.allowance -= made
            return found

        return fire

    def reached(self, nodes: int) -> str | None:
        """The limit that is reached between iterations, if one is, of an e-graph of so many e-nodes."""
        if self._limits.deadline is not None and time.monotonic() > self._limits.deadline:
            return "time"
        if self._most_bytes < math.inf and resident_bytes() > self._most_bytes:
            return "memory"
        return "nodes" if nodes > self._limits.nodes else None

    def _look(self) -> None:
        self._calls += 1
        if self._calls % _CALLS:
            return
        if self._limits.deadline is not None and time.monotonic() > self._limits.deadline:
            self.hit = "time"
        elif not self._calls % _CALLS_BETWEEN_SIZES and self._most_bytes < math.inf and resident_bytes() > self._most_bytes:
            self.hit = "memory"
        if self.hit is not None:
            raise Stop


def resident_bytes() -> int:
    """The memory that this process holds now; 0 where the system does not tell."""
    statistics = Path("/proc/self/statm")
    return int(statistics.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statistics.exists() else 0
