"""The trace: what a rewriting has done, for the report and for the turns that follow."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import field

from eqsat.choose.decode import Decoded
from eqsat.choose.dump import Dump
from eqsat.egraph.record import Record
from eqsat.extract import Choice, Method
from eqsat.frozen import mutable
from eqsat.rewriting.solved import Solved, Turn
from eqsat.rewriting.uses import Solution, Uses
from eqsat.runtime.worker import Worker


@mutable
class Trace:
    """The record of a rewriting, summed over all graphs of the model."""

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("encode", "saturate", "extract", "fold", "decode"), 0.0))
    records: list[Record] = field(default_factory=list[Record])
    choice: Choice | None = None  # the choice for the main graph, with its bodies included
    bound: float = 0.0  # the bound proved for the model; 0 if nothing is proved
    dump: Dump | None = None  # the last e-graph of the main graph, if a dump is asked for
    folded: int = 0
    became: dict[str, str] = field(default_factory=dict[str, str])
    notes: list[str] = field(default_factory=list[str])
    folding: str | None = None  # the limit that ended folding, if one did
    choosing: str | None = None  # the limit that ended choosing, if one did
    solved: Solved | None = None  # the main graph, if it is kept
    solutions: list[Solution] = field(default_factory=list[Solution])
    """The choices that made the result, until the rules are known that they use."""
    tried: list[Solution] = field(default_factory=list[Solution])
    """The choices from which the rules were chosen that ran on all regions. No result is made of
    them, but they tell what speaks against other rules.
    """
    uses: Uses = field(default_factory=Uses)
    turns: list[Turn] = field(default_factory=list[Turn])  # those whose results were used, if solved graphs are kept

    def add(self, folded: int, decoded: Decoded) -> None:
        """Adds the counts of one graph."""
        self.folded += folded
        self.became.update(decoded.became)

    def looked(self, other: Trace) -> None:
        """Adds the time and the records of another rewriting, whose result is not used."""
        self.records += other.records
        for stage, seconds in other.seconds.items():
            self.seconds[stage] += seconds

    def follow(self, before: Trace) -> None:
        """Adds the record of the rewriting that produced this one's input."""
        self.records[:0] = before.records
        for stage, seconds in before.seconds.items():
            self.seconds[stage] += seconds
        self.folded += before.folded
        self.turns[:0] = before.turns
        self.uses.join(before.uses)
        self.became = {name: self.became[now] for name, now in before.became.items() if now in self.became}

    def settle(self, worker: Worker, priced: Method | None) -> None:
        """Finds out which rules the result uses, and with an extraction method what others cost.
        The choices that made the result are forgotten.
        """
        fired = fired_rules(self)
        for solution in self.solutions:
            self.uses.join(solution.uses(fired, worker, priced))
        for solution in self.tried if priced is not None else ():
            self.uses.join(Uses(reasons=solution.uses(fired, worker, priced).reasons))
        self.solutions, self.tried = [], []

    def forget(self) -> None:
        """Forgets the choices of a result that is not kept."""
        self.turns.clear()
        self.solutions.clear()
        self.tried.clear()
        self.uses = Uses()

    def clock(self, stage: str, since: float) -> float:
        """Adds the time since `since` to a stage. Returns the current time."""
        now = time.perf_counter()
        self.seconds[stage] += now - since
        return now


def fired_rules(trace: Trace) -> dict[str, int]:
    """Returns the number of firings of each rule, over all graphs of the model."""
    fired: dict[str, int] = {}
    for record in trace.records:
        for name, count in record.fired.items():
            if count:
                fired[name] = fired.get(name, 0) + count
    return dict(sorted(fired.items()))


def waiting_matches(trace: Trace) -> dict[str, int]:
    """Returns the matches of each rule that a limit left unapplied, over all graphs of the model."""
    waiting: Counter[str] = Counter()
    for record in trace.records:
        waiting.update(record.waiting)
    return dict(sorted(waiting.items()))
