"""Orders: how far the greedy engine gets with a model in many orders of the rules, and how far
saturation gets with the same rules, prices and checks.

The figures are plain data. They tell what the order of the rules costs where each rewrite replaces
what it matches.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from eqsat.deadline import INTERRUPTED
from eqsat.model.read import Source
from eqsat.pipeline import run
from eqsat.settings import IN_FILES, RANDOM, Settings

CLOSE = 0.001
"""The share of saturation's cost by which an order may miss it and still count as reaching it."""

_FIGURES = {"time": "seconds", "launches": "launches", "bytes": "bytes", "size": "size", "memory": "memory"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The model that one run wrote."""

    order: str  # of the rules; empty for saturation
    cost: float  # under the objective: seconds for time, or launches on a target that counts
    nodes: int
    launches: int
    took: float  # seconds of the run
    verify: str  # the verdict on the result
    hit: str | None  # the limit that ended the search


@dataclass(frozen=True, slots=True)
class Spread:
    """The least, the middle and the greatest of some figures."""

    least: float
    median: float
    most: float

    @staticmethod
    def of(figures: Sequence[float]) -> Spread:
        """Returns the spread of at least one figure."""
        return Spread(min(figures), statistics.median(figures), max(figures))


_UNITS = {"seconds": "milliseconds", "launches": "launches"}


@dataclass(slots=True)
class Orders:
    """The figures of one model."""

    model: str
    target: str
    unit: str  # of costs: seconds, launches, bytes, size or memory
    cost: float  # of the original
    nodes: int  # of the original
    saturation: Outcome
    greedy: list[Outcome] = field(default_factory=list[Outcome])

    @property
    def reached(self) -> float:
        """Returns the share of orders that reach saturation's cost."""
        return sum(one.cost <= self.saturation.cost * (1 + CLOSE) for one in self.greedy) / max(1, len(self.greedy))

    @property
    def costs(self) -> Spread:
        """Returns the spread of the costs over the orders."""
        return Spread.of([one.cost for one in self.greedy])

    @property
    def node_counts(self) -> Spread:
        """Returns the spread of the numbers of nodes over the orders."""
        return Spread.of([one.nodes for one in self.greedy])

    def to_json(self) -> dict[str, Any]:
        """Returns the figures as plain data."""
        found = asdict(self) | {"close": CLOSE}
        if self.greedy:
            found |= {"reached": self.reached, "costs": asdict(self.costs), "node_counts": asdict(self.node_counts)}
        return found


def orders(source: Source, settings: Settings, seeds: Sequence[int]) -> Orders:
    """Optimizes a model by saturation, then by the greedy engine: with the rules as in their files,
    and in the random order of each seed.

    The runs differ in `engine` and `order` alone. The other settings hold for all of them, but
    nothing is tuned, and no e-graph is written. An interrupt ends the runs; the figures are of those
    that were finished.
    """
    given = replace(settings, engine="saturation", order=IN_FILES, tune=False, needed=False, dump_egraph=None)
    report, first = _run(source, given, "saturation", "")
    cost, before = report["cost"], report["cost"]["before"]
    unit = _unit(report)
    found = Orders(str(report["input"] or "model"), cost["target"], unit, before[unit], report["nodes"]["before"], first)
    wanted = [IN_FILES, *(f"{RANDOM}{seed}" for seed in seeds)]
    for number, order in enumerate(wanted, 1):
        if first.hit == INTERRUPTED:
            break
        _, outcome = _run(source, replace(given, engine="greedy", order=order), f"order {number} of {len(wanted)}", order)
        if outcome.hit == INTERRUPTED:
            break
        found.greedy.append(outcome)
    return found


def _run(source: Source, settings: Settings, title: str, order: str) -> tuple[Mapping[str, Any], Outcome]:
    def progress(step: str) -> None:
        settings.progress(f"{title}: {step}")

    clock = time.monotonic()
    report = run(source, replace(settings, progress=progress)).report
    after = report["cost"]["after"]
    took = time.monotonic() - clock
    outcome = Outcome(order, after[_unit(report)], report["nodes"]["after"], after["launches"], took, report["verify"]["status"], report["limits"]["hit"])
    return report, outcome


def _unit(report: Mapping[str, Any]) -> str:
    """Returns the figure of a report that its run made small."""
    unit = _FIGURES[report["cost"]["objective"]]
    return unit if report["cost"]["before"][unit] is not None else "launches"


def table(rows: Sequence[Orders]) -> list[str]:
    """Returns the figures of several models as lines for people. Times are in milliseconds. All
    models have the same target and unit.
    """
    lines = [f"{'':24} {'original':>10} {'saturation':>10}   greedy: least    median      most  reached   nodes: original saturation  greedy"]
    for row in rows:
        scale = 1e3 if row.unit == "seconds" else 1.0
        name = row.model.rpartition("/")[2]
        start = f"{name:24} {row.cost * scale:>10.4g} {row.saturation.cost * scale:>10.4g}"
        if row.greedy:
            costs, nodes = row.costs, row.node_counts
            start += f"   {costs.least * scale:>13.4g} {costs.median * scale:>9.4g} {costs.most * scale:>9.4g} {row.reached:>8.0%}"
            start += f"   {row.nodes:>15} {row.saturation.nodes:>10}  {nodes.least:g}..{nodes.median:g}..{nodes.most:g}"
        lines.append(start)
    lines += [f"costs: {_UNITS.get(row.unit, 'bytes')}, predicted for {row.target}" for row in rows[:1]]
    full = [row for row in rows if row.greedy]
    if len(full) > 1:
        some = sum(row.reached > 0 for row in full)
        lines.append(f"some order reaches the cost of saturation, up to {CLOSE:.1%}, for {some} of {len(full)} models")
    return lines
