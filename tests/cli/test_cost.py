"""`eqsat cost`: the cost of a model by operator and by node, beside the runtime's own times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eqsat.cli.main import main
from tests.support.models import parse

MODEL = parse("g (float[N, 64] x) => (float[N, 64] y) { a = Exp (x)  b = Tanh (a)  c = MatMul (b, a)  y = Exp (c) }".replace("N", "64"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "model.onnx"
    found.write_bytes(MODEL.SerializeToString())
    return found


def record(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert main(["cost", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_sums_are_those_of_the_nodes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = record(capsys, path)
    assert found["target"] == "onnxruntime-cpu" and found["asked"] and not found["unknown"]
    assert found["sizes"] == {}
    for figure in ("launches", "bytes", "operations", "seconds"):
        assert found["total"][figure] == pytest.approx(sum(node[figure] for node in found["nodes"]))
        assert found["total"][figure] == pytest.approx(sum(group[figure] for group in found["operators"]))
    assert found["total"]["measured"] is None and found["rank_correlation"] is None
    (product,) = [node for node in found["nodes"] if node["operator"] == "MatMul"]
    assert product["operations"] == 2 * 64**3


def test_the_sizes_that_prices_assume_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "free.onnx"
    path.write_bytes(parse("g (float[N, M, K] x) => (float[N, M, K] y) { y = Exp (x) }").SerializeToString())
    assert record(capsys, path, "--assume-dim", "M=3")["sizes"] == {"N": 1, "M": 3, "K": 64}
    assert main(["cost", str(path)]) == 0
    assert "\ntarget  onnxruntime-cpu at N=1, M=64, K=64, the graph that" in capsys.readouterr().out


def test_measured_times_stand_beside_predictions(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = record(capsys, path, "--measure")
    assert all(node["measured"] >= 0 for node in found["nodes"]) and found["total"]["measured"] > 0
    assert main(["cost", str(path), "--measure", "--top", "1"]) == 0
    text = capsys.readouterr().out
    assert "measured" in text and "bound by" in text and text.count("\n") < 20


def test_launches_count_nodes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = record(capsys, path, "--target", "launches")
    assert found["total"]["launches"] == 4 and not found["asked"]


def test_an_operator_that_nobody_knows_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = parse("""<ir_version: 8, opset_import: ["": 17, "nowhere": 1]> g (float[2] x) => (float[2] y) { y = nowhere.Strange (x) }""", "")
    path = tmp_path / "strange.onnx"
    path.write_bytes(model.SerializeToString())
    assert record(capsys, path)["unknown"] == ["nowhere.Strange"]
    target = tmp_path / "mine.toml"
    target.write_text('base = "onnxruntime-cpu"\n[operators."nowhere.Strange"]\nclass = "elementwise"\n')
    assert record(capsys, path, "--target", target)["unknown"] == []
    assert main(["cost", str(path), "--measure"]) == 2
    assert capsys.readouterr().err.startswith("eqsat: error: the model can not be measured: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.onnx"], "nowhere.onnx: no such file"),
        (["{path}", "--target", "nope"], "nope: no such target; shipped are generic-gpu, launches, onnxruntime-cpu, onnxruntime-cuda"),
        (["{path}", "--target", "onnxruntime-cuda", "--measure"], "this machine's processor, and target onnxruntime-cuda is for another device"),
        (["{path}", "--top", "0"], "'0' is not a positive number"),
    ],
)
def test_wrong_input_is_one_clear_line(path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main(["cost", *(argument.format(path=path) for argument in arguments)]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
