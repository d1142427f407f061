"""The table: a row for each model, and geometric means over all of them, as Markdown.

A variant counts if it loads and computes the same as the original. The other variants are shown
with a mark or a dash, and listed with the reason. Milliseconds are medians of all runs. Ratios of
times are medians of the ratios of neighbors, which the machine disturbs less. `best` is the smallest
figure of the original and the peers that count. The smallest of several noisy figures is biased low.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.latency.optimizers import CONTROL
from benchmarks.latency.prediction import APART, Pairs, compared
from eqsat.comparing.comparison import Comparison, Figure
from eqsat.comparing.means import geometric_mean, kernels, latency
from eqsat.comparing.optimizers import EQSAT, ORIGINAL
from eqsat.comparing.stopwatch import SETTLED, Measured
from eqsat.comparing.variant import Variant

NONE = "-"
DIFFERENT = "≠"
STAGES = ("saturate", "extract", "verify")


@dataclass(frozen=True)
class Row(Comparison):
    """One model: its variants, which may have the control among them."""

    def best(self, figure: Figure) -> float | None:
        """Returns the smallest figure of the original and the peers."""
        found = [figure(measured) for name in self.variants if name not in (EQSAT, CONTROL) and (measured := self.counting(name))]
        return min(found) if found else None

    def ratio(self, name: str, figure: Figure, other: str = "") -> float | None:
        """Returns the variant's figure divided by another's, or by the best."""
        if other:
            return super().ratio(name, figure, other)
        mine, best = self.counting(name), self.best(figure)
        return figure(mine) / best if mine and best else None

    def pairs(self) -> Pairs:
        """Returns the pairs of variants that count, with their predictions."""
        found = [(measured.relative, self.predicted[name]) for name in self.predicted if name != CONTROL and (measured := self.counting(name))]
        return compared([taken for taken, _ in found], [guess for _, guess in found])


def least_time(measured: Measured) -> float:
    return measured.minimum


def header(names: Sequence[str]) -> str:
    """Returns the head of the table for these variants."""
    each = " / ".join(_strong(name, name) for name in names)
    ours = ["eqsat against the best"] if EQSAT in names else []
    stages = f" ({', '.join(STAGES)}: s)" if EQSAT in names else ""
    columns = ["model", f"nodes: {each}", f"launches: {each}", f"ms: {each}", f"least ms: {each}", *ours, f"cpu s{stages}"]
    return f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|"


def line(row: Row) -> str:
    """Returns the line of one model."""
    cells = [row.model, _cell(row, _nodes), *(_cell(row, _measured(row, show)) for show in (_launches, _median, _minimum))]
    if EQSAT in row.variants:
        cells.append(", ".join(f"{label} {_shown(row.ratio(EQSAT, figure))}" for label, figure in (("launches", kernels), ("time", latency))))
    cells.append(" / ".join(_strong(name, _seconds(variant)) for name, variant in row.variants.items() if variant.cpu_seconds) or NONE)
    return f"| {' | '.join(cells)} |"


def remarks(rows: Iterable[Row]) -> Iterator[str]:
    """Yields the problems, one line each: failures, differences, and times that did not settle."""
    for row in rows:
        if row.failure:
            yield f"- {row.model}: not measured: {row.failure}"
        for name, variant in row.variants.items():
            failure = row.measurement.failures.get(name, "") if variant.path else variant.reason
            if failure:
                yield f"- {row.model}, {name}: failed: {failure}"
            if _wrong(variant):
                yield f"- {row.model}, {name}: {variant.status}: {variant.reason}"
        if row.measurement.spread >= SETTLED:
            yield f"- {row.model}: the halves of {row.measurement.rounds} rounds disagree by {row.measurement.spread:.1%}"


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """Yields the geometric means, the number of models on which each variant is slower than the
    original, and how often the faster of two variants is predicted.
    """
    names = list(dict.fromkeys(name for row in rows for name in row.variants))
    yield "| geometric means | models | launches | time | least time | slower on | by more than 1 % |\n|---|---|---|---|---|---|---|"
    for name in names:
        for other in ([] if name == ORIGINAL else [ORIGINAL]) + ([""] if name == EQSAT else []):
            times = _ratios(rows, name, latency, other)
            means = " | ".join(_shown(geometric_mean(_ratios(rows, name, figure, other))) for figure in (kernels, latency, least_time))
            slower, clearly = (sum(ratio > limit for ratio in times) for limit in (1, 1 + SETTLED))
            yield f"| {name} / {other or 'best'} | {len(times)} | {means} | {slower} | {clearly} |"
    pairs = sum((row.pairs() for row in rows), Pairs())
    if pairs.apart:
        yield ""
        yield f"Of {pairs.apart} pairs that differ by more than {APART:.0%}, eqsat predicts the faster one of {pairs.told} ({pairs.told / pairs.apart:.1%})."


def _ratios(rows: Iterable[Row], name: str, figure: Figure, other: str) -> list[float]:
    return [ratio for row in rows if (ratio := row.ratio(name, figure, other)) is not None]


def _cell(row: Row, show: Callable[[Variant], str]) -> str:
    return " / ".join(_strong(name, show(variant) + (DIFFERENT if _wrong(variant) else "")) for name, variant in row.variants.items())


def _strong(name: str, text: str) -> str:
    return f"**{text}**" if name == EQSAT else text


def _wrong(variant: Variant) -> bool:
    """Tells whether there is a model that does not count."""
    return bool(variant.path) and not variant.right


def _nodes(variant: Variant) -> str:
    return str(variant.nodes) if variant.path else NONE


def _seconds(variant: Variant) -> str:
    stages = ", ".join(f"{variant.stages[stage]:.1f}" for stage in STAGES if stage in variant.stages)
    return f"{variant.cpu_seconds:.1f}" + (f" ({stages})" if stages else "")


def _measured(row: Row, show: Callable[[Measured], str]) -> Callable[[Variant], str]:
    return lambda variant: show(row.measurement.measured[variant.name]) if variant.name in row.measurement.measured else NONE


def _launches(measured: Measured) -> str:
    return str(measured.launches)


def _median(measured: Measured) -> str:
    return f"{measured.median:.2f}"


def _minimum(measured: Measured) -> str:
    return f"{measured.minimum:.2f}"


def _shown(ratio: float | None) -> str:
    return NONE if ratio is None else f"{ratio:.3f}"
