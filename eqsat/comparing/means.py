"""Means: how each optimizer did over several models, as plain data.

Only right results count for a mean, and a mean tells of how many models it is. `seconds` are those
of the processor that the optimizer took; all other means are ratios to the original.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from eqsat.comparing.comparison import Comparison
from eqsat.comparing.stopwatch import Measured
from eqsat.comparing.variant import Variant


@dataclass(frozen=True)
class Means:
    """One optimizer. `statuses` counts its results by their status. A mean is None if no model
    counts for it.
    """

    optimizer: str
    models: int
    statuses: dict[str, int]
    timed: int
    latency: float | None
    launches: float | None
    nodes: float | None
    predicted: float | None
    seconds: float | None


def means(comparisons: Sequence[Comparison]) -> list[Means]:
    """Returns the means of each optimizer, in the order in which they appear."""
    names = dict.fromkeys(name for one in comparisons for name in one.variants if name != one.original.name)
    return [_means(name, [one for one in comparisons if name in one.variants]) for name in names]


def _means(name: str, comparisons: Sequence[Comparison]) -> Means:
    statuses: dict[str, int] = {}
    for one in comparisons:
        status = one.variants[name].status
        statuses[status] = statuses.get(status, 0) + 1
    right = [one for one in comparisons if one.variants[name].right]
    latencies = measured_ratios(right, name, latency)
    return Means(
        name,
        len(comparisons),
        statuses,
        len(latencies),
        geometric_mean(latencies),
        geometric_mean(measured_ratios(right, name, kernels)),
        geometric_mean(_ratios((one.variants[name].nodes, one.original.nodes) for one in right)),
        geometric_mean(_ratios((one.predicted.get(name), one.predicted.get(one.original.name)) for one in right)),
        geometric_mean([_processor(one.variants[name]) for one in right]),
    )


def latency(measured: Measured) -> float:
    return measured.relative


def kernels(measured: Measured) -> float:
    return measured.launches


def measured_ratios(comparisons: Iterable[Comparison], name: str, figure: Callable[[Measured], float], other: str | None = None) -> list[float]:
    """Returns the ratios of a figure to another variant's, by default the original's."""
    found = (one.ratio(name, figure, one.original.name if other is None else other) for one in comparisons)
    return [ratio for ratio in found if ratio]


def _ratios(pairs: Iterable[tuple[float | None, float | None]]) -> list[float]:
    return [mine / its for mine, its in pairs if mine and its]


def _processor(variant: Variant) -> float:
    return max(variant.cpu_seconds, 1e-3)


def geometric_mean(ratios: Sequence[float]) -> float | None:
    """Returns the geometric mean, or None for no ratios."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else None
