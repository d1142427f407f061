"""The record of comparisons as plain data, for JSON, for CSV and for the tables of a terminal."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from eqsat.comparing.comparison import Comparison, Conditions
from eqsat.comparing.means import means
from eqsat.comparing.optimizers import EQSAT, Optimizer, installed_version
from eqsat.version import __version__

COLUMNS = (
    "model",
    "optimizer",
    "status",
    "reason",
    "nodes",
    "launches",
    "predicted_ms",
    "median_ms",
    "low_ms",
    "high_ms",
    "minimum_ms",
    "latency_ratio",
    "bytes",
    "cpu_seconds",
    "wall_seconds",
    "peak_bytes",
    "not_timed",
)
"""The columns of a CSV file, which are keys of each row."""


def recorded(comparisons: Sequence[Comparison], conditions: Conditions, optimizers: Sequence[Optimizer]) -> dict[str, Any]:
    """Returns all comparisons, with everything that the figures depend on."""
    return {
        "versions": {EQSAT: __version__, "onnxruntime": installed_version("onnxruntime"), **{each.name: each.version for each in optimizers if each.version}},
        "machine": {"processor": platform.machine(), "system": platform.system(), "cores": os.cpu_count()},
        "threads": conditions.threads,
        "clock": conditions.clock,
        "inputs": None if conditions.inputs_path is None else str(conditions.inputs_path),
        "no_empty_inputs": conditions.no_empty_inputs,
        "limits": asdict(conditions.limits),
        "models": [comparison_record(each) for each in comparisons],
        "means": [asdict(each) for each in means(comparisons)],
    }


def comparison_record(comparison: Comparison) -> dict[str, Any]:
    """Returns one comparison."""
    return {
        "model": comparison.model,
        "sizes": dict(comparison.sizes),
        "rounds": comparison.measurement.rounds,
        "spread": comparison.measurement.spread,
        "not_timed": comparison.failure,
        "results": [_row(comparison, name) for name in comparison.variants],
    }


def _row(comparison: Comparison, name: str) -> dict[str, Any]:
    variant, measured = comparison.variants[name], comparison.measurement.measured.get(name)
    base = comparison.measurement.measured.get(comparison.original.name)
    figures: Mapping[str, Any] = {} if measured is None else asdict(measured)
    there = bool(variant.path)
    made = name != comparison.original.name
    return {
        "optimizer": name,
        "status": variant.status,
        "reason": variant.reason,
        "nodes": variant.nodes if there else None,
        "launches": figures.get("launches"),
        "predicted_ms": comparison.predicted.get(name),
        **{f"{key}_ms": figures.get(key) for key in ("median", "low", "high", "minimum")},
        "latency_ratio": None if measured is None or base is None else measured.relative / base.relative,
        "bytes": variant.bytes if there else None,
        **{key: getattr(variant, key) if made else None for key in ("cpu_seconds", "wall_seconds", "peak_bytes")},
        "not_timed": comparison.measurement.failures.get(name, comparison.failure if there else ""),
        "operators": dict(variant.operators),
        "stages": dict(variant.stages),
    }


def csv_rows(record: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Yields the cells of `COLUMNS` for each result of a record."""
    for model in record["models"]:
        for row in model["results"]:
            yield [(model if column == "model" else row)[column] for column in COLUMNS]
