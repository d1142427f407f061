"""The stored figures are small, without paths, and hold what was measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.stored_figures import growth_of, latency_of, main, orders_of
from tests.notebooks.notebook import FOLDER

DATA = sorted((FOLDER / "data").glob("*.json"))


def outcome(order: str, cost: float) -> dict[str, Any]:
    return {"order": order, "cost": cost, "nodes": 3, "launches": 3, "took": 0.123456789, "verify": "equal", "hit": "steps" if order.endswith("2") else None}


RUN = {
    "versions": {"onnx": "1.23.2"},
    "eqsat": "",
    "models": [
        {
            "model": "/some/where/bert.ts.onnx",
            "target": "onnxruntime-cpu",
            "unit": "seconds",
            "cost": 1 / 3,
            "nodes": 5,
            "close": 0.001,
            "saturation": outcome("", 0.1),
            "greedy": [outcome("files", 0.3), outcome("random:1", 0.2), outcome("random:2", 0.1)],
        }
    ],
}


def test_orders_keep_every_random_order() -> None:
    (found,) = orders_of(RUN)
    assert found["model"] == "bert.ts" and found["cost"] == 0.333333
    assert found["saturation"] == {"cost": 0.1, "nodes": 3, "took": 0.123457} and found["in_files"]["cost"] == 0.3
    assert found["random"]["cost"] == [0.2, 0.1] and found["random"]["nodes"] == [3, 3]
    assert found["verify"] == {"equal": 3} and found["limits"] == {"steps": 1}


def test_latency_keeps_what_was_measured() -> None:
    measured = {"original": {"median": 2.0, "minimum": 1.5, "launches": 7, "low": 1, "high": 3}}
    variant = {"status": "equal", "nodes": 4, "cpu_seconds": 0.0, "path": "/some/where"}
    model = {
        "model": "bert.ts",
        "measurement": {"measured": measured, "rounds": 48, "spread": 0.01},
        "variants": {"original": variant, "lost": variant | {"status": "failed"}},
        "predicted": {"original": 2.5},
    }
    (found,) = latency_of({"models": [model]})
    kept = {"status": "equal", "nodes": 4, "launches": 7, "milliseconds": 2.0, "least": 1.5, "predicted": 2.5, "seconds": 0.0}
    assert found == {"model": "bert.ts", "rounds": 48, "spread": 0.01, "results": {"original": kept}}


def test_growth_keeps_every_step() -> None:
    step = {"graph": 0, "phase": "explore", "step": "grow", "nodes": 9, "classes": 8, "seconds": 0.1}
    report = {"input": "/some/where/bert.ts.onnx", "nodes": {"before": 7}, "limits": {"hit": None}, "saturation": {"steps": [step]}}
    assert list(growth_of(report)) == [{"model": "bert.ts", "nodes": 7, "limit": None, "steps": [["explore", "grow", 9, 8]]}]


def test_a_file_has_day_and_machine_and_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, output = tmp_path / "run.json", tmp_path / "out.json"
    source.write_text(json.dumps(RUN))
    monkeypatch.setattr(sys, "argv", ["x", "orders", str(source), "--machine", "2 cores", "--date", "2026-01-02", "-o", str(output)])
    assert main() == 0
    text = output.read_text()
    assert "/" not in text
    head = {"date": "2026-01-02", "machine": "2 cores", "versions": {"onnx": "1.23.2"}}
    assert {key: value for key, value in json.loads(text).items() if key != "models"} == head


@pytest.mark.parametrize("path", DATA, ids=lambda path: path.stem)
def test_stored_figures_are_of_many_models(path: Path) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    names = [model["model"] for model in data["models"]]
    assert names == sorted(set(names)) and len(names) >= (3 if path.stem == "growth" else 10)
    assert data["date"] and "core" in data["machine"]


def test_orders_are_of_a_hundred_verified_runs() -> None:
    for model in json.loads((FOLDER / "data" / "orders.json").read_text(encoding="utf-8"))["models"]:
        assert len(model["random"]["cost"]) >= 100
        assert model["verify"] == {"equal": len(model["random"]["cost"]) + 1}
