"""The record of a saturation: what each iteration and each rule came to, and what ended the run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from eqsat.language.matching import Refusal


@dataclass(frozen=True, slots=True)
class Iteration:
    """One step of laws or rules: what ran, how large the e-graph was after it, and the seconds that it took."""

    phase: str
    step: str  # laws, simplify, search or grow
    nodes: int
    classes: int
    seconds: float


@dataclass(slots=True)
class Record:
    """What a run did: its iterations, matches by law (`fact` and `literal` say what is known), firings by rule, the seconds that deciding about them
    took, and what ended it.
    """

    iterations: list[Iteration] = field(default_factory=list[Iteration])
    matches: dict[str, int] = field(default_factory=dict[str, int])
    fired: dict[str, int] = field(default_factory=dict[str, int])
    seconds: dict[str, float] = field(default_factory=dict[str, float])  # by rule; egglog itself does not tell how long it looks for each
    wrong: dict[str, str] = field(default_factory=dict[str, str])  # rules whose right side was of another type, and how
    refusals: dict[str, Counter[Refusal]] = field(default_factory=dict[str, Counter[Refusal]])  # by rule, why matches did not fire
    hit: str | None = None
    classes: int = 0
    nodes: int = 0
