"""The record of a saturation: its iterations, the work of each rule, and its final limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from typing import NamedTuple

from eqsat.frozen import mutable
from eqsat.language.firing import Firing
from eqsat.language.matching import Refusal


class Iteration(NamedTuple):
    """One step of laws or rules: its ruleset, its seconds, and the size of the e-graph after it."""

    phase: str
    step: str  # laws, simplify, search or grow
    nodes: int
    classes: int
    seconds: float


@mutable
class Record:
    """The record of a run: its iterations, its matches and firings, and the limit that ended it.

    Matches count by law (the laws `fact` and `literal` add knowledge), firings by rule.
    """

    iterations: list[Iteration] = field(default_factory=list[Iteration])
    matches: dict[str, int] = field(default_factory=dict[str, int])
    fired: dict[str, int] = field(default_factory=dict[str, int])
    # By rule, the time of deciding about matches. egglog does not report its search time by rule.
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    # By rule, the difference between the type of its right side and that of its left.
    wrong: dict[str, str] = field(default_factory=dict[str, str])
    # By rule, the reasons why matches did not fire.
    refusals: dict[str, Counter[Refusal]] = field(default_factory=dict[str, Counter[Refusal]])
    hit: str | None = None
    # By rule, the matches that the limit left unapplied, as far as they were found.
    waiting: dict[str, int] = field(default_factory=dict[str, int])
    classes: int = 0
    nodes: int = 0

    def add(self, firings: Iterable[Firing]) -> None:
        """Adds what the rules know of their decisions."""
        for firing in firings:
            name = firing.compiled.rule.name
            if firing.wrong is not None:
                self.wrong[name] = firing.wrong
            self.seconds[name] = self.seconds.get(name, 0.0) + firing.seconds
            self.refusals.setdefault(name, Counter()).update(firing.refusals)
