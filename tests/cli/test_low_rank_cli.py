"""`eqsat low-rank`: the model that it writes, and one line for each mistake."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from eqsat.cli.main import main
from tests.support.models import weighted


@pytest.fixture
def model(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    weight = generator.standard_normal((24, 2)) @ generator.standard_normal((2, 32))
    path = tmp_path / "m.onnx"
    onnx.save(weighted("g (float[N, 24] x) => (float[N, 32] y) { y = MatMul (x, w) }", w=weight.astype(np.float32)), path)
    return path


def test_the_model_and_the_report(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "thin.onnx"
    assert main(["low-rank", str(model), "--error", "1e-3", "-o", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("weight  w 24 x 32 -> rank 2, error ") and lines[-1] == f"wrote   {out}"
    assert [node.op_type for node in onnx.load(out).graph.node] == ["MatMul", "MatMul"]
    assert main(["verify", str(model), str(out)]) == 0, "the weight has this rank, so nothing but rounding changes"
    capsys.readouterr()
    assert main(["low-rank", str(model), "--error", "1e-3", "-o", str(out), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    (weight,) = record["weights"]
    assert (weight["weight"], weight["shape"], weight["rank"]) == ("w", [24, 32], 2) and weight["error"] <= record["bound"] == 1e-3
    assert record["bytes"]["after"] < record["bytes"]["before"]


def test_weights_in_a_file_stay_in_one(model: Path, tmp_path: Path) -> None:
    onnx.save(onnx.load(model), tmp_path / "e.onnx", save_as_external_data=True, location="e.data", size_threshold=0)
    assert main(["low-rank", str(tmp_path / "e.onnx"), "--error", "1e-3", "-o", str(tmp_path / "thin.onnx")]) == 0
    assert main(["verify", str(model), str(tmp_path / "thin.onnx")]) == 0


def test_standard_output_has_the_model_alone(model: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["low-rank", str(model), "--error", "1e-3", "-o", "-"]) == 0
    shown = capfdbinary.readouterr()
    assert len(onnx.load_from_string(shown.out).graph.node) == 2 and b"rank 2" in shown.err


def test_standard_output_has_no_room_for_weights_in_files(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(onnx.load(model), tmp_path / "e.onnx", save_as_external_data=True, location="e.data", size_threshold=0)
    assert main(["low-rank", str(tmp_path / "e.onnx"), "--error", "1e-3", "-o", "-"]) == 2
    assert "its weights are in files of their own" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--error", "0"], "'0' is no number above 0 and below 1"),
        (["--error", "1"], "'1' is no number above 0 and below 1"),
        (["--error", "nan"], "'nan' is no number above 0 and below 1"),
        (["--error", "much"], "'much' is no number above 0 and below 1"),
        ([], "required: --error"),
        (["--error", "0.1", "-o", "nowhere/thin.onnx"], "nowhere: no such folder"),
        (["--error", "0.1", "-o", "."], ".: is a folder, not a file to write"),
        (["--error", "1e-9"], "no weight of a product has a rank that saves multiplications within --error 1e-09; nothing is written"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["low-rank", str(model), "-o", str(tmp_path / "thin.onnx"), *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err and shown.err.count("\n") == 1 and not shown.out and not (tmp_path / "thin.onnx").exists()


def test_a_file_that_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    assert main(["low-rank", str(tmp_path / "bad.onnx"), "--error", "0.1", "-o", str(tmp_path / "thin.onnx")]) == 2
    assert capsys.readouterr().err.startswith("eqsat: error: ") and not (tmp_path / "thin.onnx").exists()
