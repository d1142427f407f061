"""Limits of a run, watched between and inside iterations.

Counts come first, because they end a run at the same place each time. Time and memory guard against
costs that no count foresees.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import field

from eqsat.deadline import Deadline
from eqsat.frozen import mutable

_MATCHES_PER_NODE = 200  # what each e-node of the graph adds to the match limit
_SHARE = 10  # of the match limit that one rule may use: one that runs away leaves the others their turns
_CALLS = 1 << 9  # callbacks between two checks of the clock
_CALLS_BETWEEN_SIZES = 1 << 12  # callbacks between two checks of the memory in use


@mutable
class Limits:
    """The limits of a run."""

    deadline: Deadline = field(default_factory=Deadline)
    nodes: int = 2_000_000  # e-nodes
    # Bytes by which this process may grow during the run, where the system reports memory.
    memory: int | None = None
    # Matches of left sides before their conditions are checked; larger graphs may have more.
    matches: int = 200_000


class Stop(Exception):
    """A limit was reached inside an iteration. Only the rest of that iteration is lost."""


class Watch:
    """Checks the limits in every callback, since one iteration alone could exceed them."""

    def __init__(self, limits: Limits, size: int) -> None:
        self.allowance = math.inf  # the e-nodes that rules may still make; each step sets it anew
        self.hit: str | None = None
        self.rested = False  # whether a rule was put to rest
        self._limits = limits
        self._most_matches = limits.matches + _MATCHES_PER_NODE * size
        self._most_bytes = math.inf if limits.memory is None else resident_bytes() + limits.memory
        self._matches = 0
        self._calls = 0

    @property
    def full(self) -> bool:
        """Tells whether rules have made as many e-nodes as they may."""
        return self.allowance < 0

    def watched(self, function: Callable[..., int]) -> Callable[..., int]:
        """Wraps a callback so that it ends the run when time or memory is used up."""

        def call(*handles: int) -> int:
            self._look()
            return function(*handles)

        return call

    def answering(self, answer: Callable[..., int], made: int = 0, rests: bool = True) -> Callable[..., int]:
        """Wraps the callback that decides about the matches of a rule.

        Each match that fires uses up `made` e-nodes of the allowance. Without allowance the answer
        is -1, and so it is for all further matches of a rule that is put to rest, after its share.
        """
        left = self._most_matches // _SHARE if rests else self._most_matches

        def fire(*handles: int) -> int:
            nonlocal left
            self._look()
            self._matches += 1
            if self._matches > self._most_matches:
                self.hit = "matches"
                raise Stop
            if self.allowance < 0:
                return -1
            left -= 1
            if left < 0:
                self.rested = True
                return -1
            found = answer(*handles)
            if found >= 0:
                self.allowance -= made
            return found

        return fire

    def reached(self, nodes: int) -> str | None:
        """Returns the limit that an e-graph of `nodes` e-nodes reaches, or None."""
        if (hit := self._limits.deadline.hit) is not None:
            return hit
        if self._most_bytes < math.inf and resident_bytes() > self._most_bytes:
            return "memory"
        return "nodes" if nodes > self._limits.nodes else None

    def _look(self) -> None:
        self._calls += 1
        if self._calls % _CALLS:
            return
        if (hit := self._limits.deadline.hit) is not None:
            self.hit = hit
        elif not self._calls % _CALLS_BETWEEN_SIZES and self._most_bytes < math.inf and resident_bytes() > self._most_bytes:
            self.hit = "memory"
        if self.hit is not None:
            raise Stop


def resident_bytes() -> int:
    """Returns the memory that this process holds now; 0 where the system does not report it."""
    try:
        statistics = os.open("/proc/self/statm", os.O_RDONLY)
    except OSError:
        return 0
    try:
        return int(os.read(statistics, 256).split()[1]) * os.sysconf("SC_PAGE_SIZE")
    finally:
        os.close(statistics)
