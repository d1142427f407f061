"""How far a check is: the instances of each rule so far, as the checking processes count them.

Each process writes the counts of the rules that it checks, and the main process reads all of them.
No lock guards them, so a process that crashes blocks no other.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableSequence
from ctypes import c_longlong
from dataclasses import dataclass
from multiprocessing.sharedctypes import RawArray
from typing import Any

_NOT_BEGUN = -1


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a check of `total` rules is. A family counts as one rule."""

    done: int
    total: int
    failed: int
    """The rules that did not pass so far."""
    fired: int
    """The instances that fired so far, of all rules."""
    under_check: tuple[str, ...]
    """The rules that are being checked now."""


class Counts:
    """The instances of each rule that fired so far, in memory that processes share."""

    def __init__(self, rules: int) -> None:
        self.shared: Any = RawArray(c_longlong, [_NOT_BEGUN] * rules)

    def total(self) -> int:
        """Returns the instances of all rules."""
        return sum(count for count in self.shared if count > 0)

    def begun(self, rules: Mapping[int, str]) -> tuple[str, ...]:
        """Returns the names of those of these rules, by number, that a process has begun."""
        return tuple(name for number, name in rules.items() if self.shared[number] != _NOT_BEGUN)


_counts: MutableSequence[int] = []


def share(counts: MutableSequence[int]) -> None:
    """Makes this process write into the counts of the main process."""
    global _counts
    _counts = counts


def note(rule: int, fired: int) -> None:
    """Writes how many instances of a rule fired, if this process shares its counts."""
    if _counts:
        _counts[rule] = fired
