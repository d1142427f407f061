"""The tables of a comparison on a terminal, from its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from eqsat.comparing.child import printable
from eqsat.parameters.amounts import scaled

Show: TypeAlias = Callable[[Mapping[str, Any]], str]
"""Shows a figure of a row."""

_NONE = "-"
_STYLES = {"equal": "", "different": "red", "failed": "red", "stopped": "red"}
_NO_MODEL = ("failed", "stopped", "missing")
_UNSETTLED = 0.01  # the halves of the rounds disagree by so much


def print_comparison(model: Mapping[str, Any], record: Mapping[str, Any], made: bool) -> None:
    """Prints the table of one model, and the lines that explain it. `made` tells whether optimizers
    made the results.
    """
    table = _table(model["model"], "optimizer" if made else "model", "result", *_FIGURES, *(_EFFORT if made else {}))
    for place, row in enumerate(model["results"]):
        cells = [show(row) for show in (_FIGURES | _EFFORT if made else _FIGURES).values()]
        status = row["status"] if place else "original"
        table.add_row(escape(row["optimizer"]), status, *cells, style=_STYLES.get(row["status"], "yellow"))
    _print(table)
    for line in _remarks(model, record):
        print(printable(line))
    print()


def print_operators(model: Mapping[str, Any]) -> None:
    """Prints the operators of two models by kind, the most frequent first."""
    before, after = (row["operators"] for row in model["results"])
    table = _table("operators", "operator", "first", "second", "change")
    kinds = sorted({*before, *after}, key=lambda kind: (-max(before.get(kind, 0), after.get(kind, 0)), kind))
    for kind in kinds:
        table.add_row(escape(printable(kind)), *_change(before.get(kind, 0), after.get(kind, 0)))
    table.add_row("all", *_change(sum(before.values()), sum(after.values())), style="bold")
    _print(table)


def print_means(means: Sequence[Mapping[str, Any]]) -> None:
    """Prints how each optimizer did over all models."""
    table = _table("geometric means over right results, as ratios to the original", "optimizer", *_MEANS)
    for row in means:
        table.add_row(escape(row["optimizer"]), *(show(row) for show in _MEANS.values()))
    _print(table)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=escape(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for place, column in enumerate(columns):
        table.add_column(column, no_wrap=True, justify="left" if place == 0 or column == "result" else "right")
    return table


def _print(table: Table) -> None:
    """Prints a table whole: a narrow terminal breaks its lines, and no figure is left out."""
    console = Console(highlight=False)
    console.width = max(console.width, Measurement.get(console, console.options.update(width=1000), table).maximum)
    with console.capture() as capture:
        console.print(table, crop=False)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def _remarks(model: Mapping[str, Any], record: Mapping[str, Any]) -> list[str]:
    """The reasons and conditions of a table, one line each."""
    lines: list[str] = []
    for row in model["results"]:
        if row["reason"]:
            lines.append(f"{row['optimizer']}: {row['status']}: {row['reason']}")
        if row["not_timed"] and row["not_timed"] != model["not_timed"]:
            lines.append(f"{row['optimizer']}: not timed: {row['not_timed']}")
    if any(_wrong(row) and row["median_ms"] is not None for row in model["results"]):
        lines.append("*: the result is not known to be right; its figures count for no mean")
    sizes = ", ".join(f"{name}={size}" for name, size in model["sizes"].items())
    inputs = record["inputs"] or f"random{f', {sizes}' if sizes else ''}"
    if model["not_timed"]:
        lines.append(f"not timed: {model['not_timed']}")
    else:
        threads = f"{record['threads']} thread{'s' if record['threads'] > 1 else ''} of ONNX Runtime {record['versions']['onnxruntime']}"
        clock = "" if record["clock"] == "wall" else " in processor time"
        lines.append(f"latency: medians of {model['rounds']} rounds{clock} on {threads}; inputs: {inputs}; half of the runs are within the spread")
    if model["spread"] >= _UNSETTLED:
        lines.append(f"noise: two halves of the rounds disagree by {model['spread']:.1%}; --seconds gives more rounds")
    return lines


def _wrong(row: Mapping[str, Any]) -> bool:
    return row["status"] != "equal"


def _number(key: str) -> Show:
    return lambda row: _NONE if row[key] is None else str(row[key])


def _milliseconds(key: str) -> Show:
    return lambda row: _NONE if row[key] is None else f"{row[key]:.4g} ms"


def _marked(show: Show) -> Show:
    """Shows a measured figure with a mark if the result is not known to be right."""
    return lambda row: show(row) + ("*" if row["median_ms"] is not None and _wrong(row) else "")


def _spread(row: Mapping[str, Any]) -> str:
    return _NONE if row["median_ms"] is None else f"{row['low_ms'] / row['median_ms'] - 1:+.1%} {row['high_ms'] / row['median_ms'] - 1:+.1%}"


def _ratio(key: str) -> Show:
    return lambda row: _NONE if row[key] is None else f"{row[key]:.3f}"


def _scaled(key: str, unit: str) -> Show:
    return lambda row: _NONE if row[key] is None else f"{scaled(row[key])}{unit}"


def _seconds(key: str) -> Show:
    return lambda row: _NONE if not row[key] else f"{row[key]:.2f} s"


def _statuses(*names: str) -> Show:
    return lambda row: str(sum(row["statuses"].get(name, 0) for name in names))


def _change(before: int, after: int) -> tuple[str, str, str]:
    return str(before), str(after), f"{after - before:+d}" if after != before else ""


_FIGURES: dict[str, Show] = {
    "nodes": _number("nodes"),
    "launches": _number("launches"),
    "predicted": _milliseconds("predicted_ms"),
    "latency": _marked(_milliseconds("median_ms")),
    "spread": _spread,
    "ratio": _marked(_ratio("latency_ratio")),
    "file": _scaled("bytes", "B"),
}
_EFFORT: dict[str, Show] = {"processor": _seconds("cpu_seconds"), "wall": _seconds("wall_seconds"), "memory": _scaled("peak_bytes", "B")}
_MEANS: dict[str, Show] = {
    "right": _statuses("equal"),
    "wrong": _statuses("different"),
    "unknown": _statuses("unverified", "unchecked"),
    "no result": _statuses(*_NO_MODEL),
    "timed": _number("timed"),
    "latency": _ratio("latency"),
    "launches": _ratio("launches"),
    "nodes": _ratio("nodes"),
    "predicted": _ratio("predicted"),
    "processor": _seconds("seconds"),
}
