"""The picture: `python -m benchmarks.latency.picture FIGURES.json -o docs/latency`.

Draws the figures that `python -m benchmarks.latency ... --json FIGURES.json` wrote: a row for each
model, and on it the latency of each result as a part of the original's. Only results that count are
drawn. Writes two SVG files, `-light.svg` and `-dark.svg`, for pages of both kinds.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from benchmarks.latency.optimizers import CONTROL
from eqsat.comparing.optimizers import EQSAT, ORIGINAL
from eqsat.comparing.variant import EQUAL

EXPORTERS = {"dyn": "dynamo", "ts": "TorchScript"}
WIDTH, LEFT, RIGHT, TOP, ROW, BOTTOM = 760, 190, 24, 58, 17, 34
STEP = 0.1  # between two lines of the scale
SIDES = {"square": 4, "diamond": 4, "triangle": 3}


@dataclass(frozen=True)
class Colors:
    """The colors of a page; `marks` are those of the optimizers, eqsat's first."""

    text: str
    faint: str
    marks: tuple[str, ...]


PAGES = {
    "light": Colors("#1f2328", "#d8dee4", ("#0969da", "#bc4c00", "#1a7f37", "#8250df")),
    "dark": Colors("#e6edf3", "#30363d", ("#58a6ff", "#f0883e", "#3fb950", "#bc8cff")),
}
SHAPES = ("disc", "square", "triangle", "diamond")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency.picture", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", type=Path, metavar="FIGURES.json")
    parser.add_argument("-o", "--output", required=True, metavar="PREFIX", help="the files are PREFIX-light.svg and PREFIX-dark.svg")
    options = parser.parse_args()
    rows = ratios(json.loads(options.figures.read_text(encoding="utf-8")))
    for page, colors in PAGES.items():
        Path(f"{options.output}-{page}.svg").write_text(picture(rows, colors), encoding="utf-8")
    return 0


def ratios(figures: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Returns by model, and by optimizer with a right result, its latency as a part of the
    original's. The model on which eqsat gains most comes first.
    """
    found: dict[str, dict[str, float]] = {}
    for row in figures["models"]:
        times = {name: measured["relative"] for name, measured in row["measurement"]["measured"].items() if row["variants"][name]["status"] == EQUAL}
        if ORIGINAL in times:
            others = {name: time / times[ORIGINAL] for name, time in times.items() if name not in (ORIGINAL, CONTROL)}
            found[row["model"]] = others
    return dict(sorted(found.items(), key=lambda row: row[1].get(EQSAT, math.inf)))


def picture(rows: Mapping[str, Mapping[str, float]], colors: Colors) -> str:
    """Returns the drawing as the text of an SVG file."""
    names = sorted({name for row in rows.values() for name in row}, key=lambda name: (name != EQSAT, name))
    values = [value for row in rows.values() for value in row.values()]
    scale = _Scale(math.floor(min(values) / STEP) * STEP, math.ceil(max(*values, 1.0) / STEP) * STEP)
    height = TOP + len(rows) * ROW + BOTTOM
    title = f"Latency of {len(rows)} models after each optimizer, relative to the original; less is better"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="-apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="12" fill="{colors.text}">',
        f'<text x="{LEFT}" y="18" font-weight="600">{escape(title)}</text>',
        *_legend(names, colors),
        *_lines(scale, height, colors),
    ]
    for number, (model, row) in enumerate(rows.items()):
        y = TOP + (number + 0.5) * ROW
        parts.append(f'<text x="{LEFT - 12}" y="{y + 4:g}" text-anchor="end">{escape(_label(model))}</text>')
        # The outlines of the peers come after eqsat's disc, which would hide them.
        parts += [_mark(names.index(name), scale.place(row[name]), y, colors, f"{name}: {row[name]:.3f}") for name in names if name in row]
    return "\n".join([*parts, "</svg>"]) + "\n"


@dataclass(frozen=True)
class _Scale:
    first: float
    last: float

    def place(self, value: float) -> float:
        return LEFT + (value - self.first) / (self.last - self.first) * (WIDTH - LEFT - RIGHT)


def _legend(names: Sequence[str], colors: Colors) -> Iterator[str]:
    x = float(LEFT)
    for number, name in enumerate(names):
        yield _mark(number, x + 5, 36, colors, name)
        yield f'<text x="{x + 15:g}" y="40">{escape(name)}</text>'
        x += 32 + 7 * len(name)


def _lines(scale: _Scale, height: int, colors: Colors) -> Iterator[str]:
    for number in range(round((scale.last - scale.first) / STEP) + 1):
        value = scale.first + number * STEP
        x, whole = scale.place(value), math.isclose(value, 1.0)
        stroke = colors.text if whole else colors.faint
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{height - BOTTOM}" stroke="{stroke}" stroke-width="1"/>'
        yield f'<text x="{x:.1f}" y="{height - BOTTOM + 18}" text-anchor="middle">{value:.1f}</text>'


def _mark(number: int, x: float, y: float, colors: Colors, title: str) -> str:
    shape, color = SHAPES[number % len(SHAPES)], colors.marks[number % len(colors.marks)]
    inner = f"<title>{escape(title)}</title>"
    if shape == "disc":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{color}">{inner}</circle>'
    begin = math.pi / 4 if shape == "square" else -math.pi / 2
    turns = (begin + 2 * math.pi * corner / SIDES[shape] for corner in range(SIDES[shape]))
    points = " ".join(f"{x + 4.5 * math.cos(turn):.1f},{y + 4.5 * math.sin(turn):.1f}" for turn in turns)
    return f'<polygon points="{points}" fill="none" stroke="{color}" stroke-width="1.4">{inner}</polygon>'


def _label(model: str) -> str:
    name, _, exporter = model.partition(".")
    return f"{name}, {EXPORTERS[exporter]}" if exporter in EXPORTERS else model


if __name__ == "__main__":
    sys.exit(main())
