"""Tuning keeps the model that ran fastest; if it can time none, it keeps the run's choice.

The times are made up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import eqsat
from eqsat.cli.main import main
from eqsat.errors import InputError
from eqsat.pipeline import Result
from eqsat.runtime.interleaved import NotTimed, time_rounds
from eqsat.runtime.worker import shared
from tests.support.models import operators, parse, weighted

RANDOM = np.random.default_rng(0)


def weights(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


# One Conv instead of two has eleven times the multiplications, so the targets disagree.
TWO = weighted("g (float[N, 16, 12, 12] x) => (float[N, 64, 10, 10] y) { h = Conv (x, v)  y = Conv (h, w) }", v=weights(4, 16, 3, 3), w=weights(64, 4, 1, 1))
STRANGE = parse("""<ir_version: 8, opset_import: ["": 17, "nowhere": 1]> g (float[2] x) => (float[2] y) { h = nowhere.Strange (x) y = Identity (h) }""", "")


class Times:
    """A stand-in for the runtime: one Conv takes `one` seconds, any other model takes `more`."""

    def __init__(self, one: float, more: float) -> None:
        self.one, self.more = one, more
        self.feeds: list[Mapping[str, Any]] = []

    def __call__(self, models: Mapping[str, bytes], folder: Any, library: Any, feeds: Mapping[str, Any], rounds: Sequence[Sequence[str]], worker: Any) -> Any:
        self.feeds.append(feeds)
        convs = {name: operators(onnx.ModelProto.FromString(model))["Conv"] for name, model in models.items()}
        return {name: [self.one if convs[name] == 1 else self.more] * len(rounds) for name in rounds[0]}


def tuned(monkeypatch: pytest.MonkeyPatch, times: Times, model: onnx.ModelProto = TWO, **options: Any) -> Result:
    monkeypatch.setattr("eqsat.tuning.tune.time_rounds", times)
    return eqsat.optimize(model, tune=True, max_growth=1 << 20, **options)


@pytest.mark.parametrize(("one", "more", "convs"), [(1.0, 2.0, 1), (2.0, 1.0, 2)])
def test_the_model_that_ran_fastest_is_kept(monkeypatch: pytest.MonkeyPatch, one: float, more: float, convs: int) -> None:
    result = tuned(monkeypatch, Times(one, more))
    assert operators(result.model)["Conv"] == convs
    record = result.report["tune"]
    rows = {row["name"]: row for row in record["candidates"]}
    assert record["kept"] == next(name for name, row in rows.items() if row["kept"]) and record["threads"] == 1
    assert {row["measured"] for row in rows.values()} == {one, more} and rows["original"]["ratio"] == [1.0, 1.0, 1.0]
    assert next(iter(rows)) == "choice" and list(rows)[-1] == "original"
    assert all(row["predicted"] > 0 for row in rows.values())
    assert result.report["verify"]["status"] == "equal" and result.report["cost"]["target"] == "onnxruntime-cpu"
    onnx.checker.check_model(result.model)


def test_times_of_this_processor_tell_nothing_of_another_device() -> None:
    with pytest.raises(InputError, match="--tune times models on this machine's processor, and target onnxruntime-cuda is for another device"):
        eqsat.optimize(TWO, tune=True, target="onnxruntime-cuda")


def test_inputs_have_the_assumed_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(1.0, 1.0)
    result = tuned(monkeypatch, times, assume_dims={"N": 3}, effort="low")
    assert {feeds["x"].shape[0] for feeds in times.feeds} == {3} and result.report["tune"]["sizes"] == {"N": 3}
    given = {"x": weights(2, 16, 12, 12)}
    times = Times(1.0, 1.0)
    assert tuned(monkeypatch, times, inputs=given, effort="low").report["tune"]["sizes"] == {}
    assert all(np.array_equal(feeds["x"], given["x"]) for feeds in times.feeds)


def test_without_tuning_there_is_no_record() -> None:
    assert eqsat.optimize(parse("g (float[2] x) => (float[2] y) { y = Relu (x) }")).report["tune"] is None


@pytest.mark.parametrize(
    ("model", "options", "reason"),
    [(STRANGE, {}, "nowhere"), (TWO, {"memory_limit": 5000}, "memory-limit")],
    ids=["refused", "memory"],
)
def test_what_can_not_be_timed_leaves_the_choice_and_says_why(model: onnx.ModelProto, options: dict[str, Any], reason: str) -> None:
    result = eqsat.optimize(model, tune=True, effort="low", **options)
    assert result.report["tune"]["kept"] == "choice" and result.report["tune"]["batches"] == 0
    note = next(note for note in result.report["notes"] if note.startswith("not tuned"))
    assert reason in note and "\n" not in note


def test_tuning_goes_with_time_alone() -> None:
    with pytest.raises(InputError, match="objective has to be time"):
        eqsat.optimize(TWO, tune=True, objective="memory")


def test_the_runtime_times_models_with_external_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.onnx"
    copy = onnx.ModelProto.FromString(TWO.SerializeToString())
    onnx.save_model(copy, str(path), save_as_external_data=True, location="model.data", size_threshold=0)
    assert main(["optimize", str(path), "--tune", "--tune-seconds", "0.2", "--json", "--assume-dim", "N=2", "--effort", "low"]) == 0
    record = json.loads(capsys.readouterr().out)["tune"]
    assert all(row["measured"] > 0 for row in record["candidates"] if not row["reason"])
    assert any(row["same"] is None for row in record["candidates"]) and (tmp_path / "model.opt.onnx").exists()
    assert main(["optimize", str(path), "--tune", "--tune-seconds", "0.1", "--effort", "low"]) == 0
    assert "tune    kept '" in capsys.readouterr().out


def test_rounds_give_a_time_for_each_model_and_round() -> None:
    relu, exp = (parse(f"g (float[64] x) => (float[64] y) {{ y = {name} (x) }}").SerializeToString() for name in ("Relu", "Exp"))
    feeds = {"x": np.zeros(64, np.float32)}
    found = time_rounds({"a": relu, "b": exp}, None, None, feeds, [["a", "b"], ["b", "a"], ["a", "b"]], shared())
    assert {name: len(times) for name, times in found.items()} == {"a": 3, "b": 3}
    assert all(0 < seconds < 1 for times in found.values() for seconds in times)
    with pytest.raises(NotTimed, match="x"):
        time_rounds({"a": relu}, None, None, {"x": np.zeros(63, np.float32)}, [["a"]], shared())
