"""`eqsat compare`: optimizers on models, or two given models, as tables, JSON and CSV."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqsat.cli.comparison_table import print_operators
from eqsat.cli.main import main
from tests.support.fake_peers import command_of
from tests.support.models import parse

BODY = "{ a = Relu (x)  b = Identity (a)  y = Tanh (b) }"
QUICK = ("--rounds", "1", "--seconds", "0")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.onnx"
    path.write_bytes(parse(f"g (float[N, 4] x) => (float[N, 4] y) {BODY}").SerializeToString())
    return path


@pytest.fixture
def other(tmp_path: Path) -> Path:
    path = tmp_path / "other.onnx"
    path.write_bytes(parse("g (float[N, 4] x) => (float[N, 4] y) { a = Relu (x)  y = Tanh (a) }").SerializeToString())
    return path


def record(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> dict[str, Any]:
    assert main(["compare", *map(str, arguments), *QUICK, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_each_optimizer_is_a_row(model: Path, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    peers = [option for kind in ("copies", "lies", "crashes") for option in ("--peer", f"{kind}={command_of(kind)}")]
    table = tmp_path / "table.csv"
    given = ["--against", "copies,lies,crashes", *peers, "--csv", str(table), "--keep", str(tmp_path / "kept")]
    assert main(["compare", str(model), str(other), *given, *QUICK]) == 0
    out, err = capsys.readouterr()
    assert not err
    lines = [line.split() for line in out.splitlines()]
    for begin in (["original", "original", "3", "2"], ["copies", "equal", "3", "2"], ["lies", "different", "3", "2"], ["crashes", "failed", "-", "-"]):
        assert any(line[:4] == begin for line in lines), out
    assert "crashes: failed: crashed (SIGABRT)" in out and "1 thread of ONNX Runtime" in out and "inputs: random, N=" in out
    assert "lies: different: " in out and "ms*" in out and "count for no mean" in out
    assert any(line[:6] == ["lies", "0", "2", "0", "0", "0"] for line in lines), "the means count right and wrong results"
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(Path(row["model"]).name, row["optimizer"], row["status"]) for row in rows[:4]] == [
        ("tiny.onnx", "original", "equal"),
        ("tiny.onnx", "copies", "equal"),
        ("tiny.onnx", "lies", "different"),
        ("tiny.onnx", "crashes", "failed"),
    ]
    assert len(rows) == 8 and float(rows[1]["median_ms"]) > 0 and rows[3]["median_ms"] == ""
    assert sorted(str(path.relative_to(tmp_path / "kept")) for path in (tmp_path / "kept").rglob("*.onnx")) == [
        "other/copies.onnx",
        "other/lies.onnx",
        "tiny/copies.onnx",
        "tiny/lies.onnx",
    ]


@pytest.mark.slow
def test_sizes_inputs_and_options_are_as_given(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--against", "eqsat", "--eqsat", "--effort low --only nothing-of-this-name")
    (failed,) = record(capsys, model, *given)["models"]
    assert failed["results"][1]["status"] == "failed" and "nothing-of-this-name" in failed["results"][1]["reason"]
    (assumed,) = record(capsys, model, "--against", "eqsat", "--assume-dim", "N=7", "--threads", "2")["models"]
    assert assumed["sizes"] == {"N": 7} and assumed["results"][1]["nodes"] == 2
    np.savez(tmp_path / "inputs.npz", x=np.ones((2, 4), np.float32))
    found = record(capsys, model, "--against", "eqsat", "--dim", "N=2", "--inputs", tmp_path / "inputs.npz")
    assert found["inputs"] == str(tmp_path / "inputs.npz") and found["models"][0]["sizes"] == {}
    assert [row["launches"] for row in found["models"][0]["results"]] == [2, 2]


@pytest.mark.slow
def test_missing_peers_tell_how_to_install_them(model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eqsat.comparing.optimizers.installed_version", lambda package: "")
    (found,) = record(capsys, model, "--against", "onnxsim")["models"]
    assert found["results"][1]["status"] == "missing" and "pip install 'eqsat[compare]'" in found["results"][1]["reason"]
    assert main(["compare", str(model), *QUICK]) == 0
    out = capsys.readouterr().out
    assert "onnxsim, onnxslim, onnxoptimizer, onnxscript, ort-basic, ort-extended: not installed; " in out and "\n  eqsat " in out


@pytest.mark.slow
def test_two_models_as_they_are(model: Path, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (equal,) = record(capsys, model, other, "--as-is")["models"]
    assert [row["status"] for row in equal["results"]] == ["equal", "equal"] and equal["results"][1]["operators"] == {"Relu": 1, "Tanh": 1}
    assert main(["compare", str(model), str(other), "--as-is", *QUICK]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["Identity", "1", "0", "-1"] in lines and ["Relu", "1", "1"] in lines and ["all", "3", "2", "-1"] in lines
    wrong = tmp_path / "wrong.onnx"
    wrong.write_bytes(parse("g (float[N, 4] x) => (float[N, 4] y) { a = Abs (x)  y = Tanh (a) }").SerializeToString())
    assert record(capsys, model, wrong, "--as-is", code=1)["models"][0]["results"][1]["status"] == "different"
    strange = [tmp_path / f"strange{number}.onnx" for number in (1, 2)]
    for path, operator in zip(strange, ("Strange", "Stranger"), strict=True):
        text = f'<ir_version: 8, opset_import: ["": 17, "nowhere": 1]> g (float[2] x) => (float[2] y) {{ y = nowhere.{operator} (x) }}'
        path.write_bytes(parse(text, "").SerializeToString())
    unknown = record(capsys, *strange, "--as-is", code=3)["models"][0]
    assert unknown["results"][1]["status"] == "unverified" and unknown["not_timed"].startswith("the original does not run")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.onnx"], "nowhere.onnx: no such file"),
        (["{broken}"], "not an ONNX model"),
        (["{model}", "--against", "me"], "no optimizer is called 'me'"),
        (["{model}", "--peer", "me"], "is not of the form NAME=COMMAND"),
        (["{model}", "--peer", "me=a {{input}} {{output}}", "--peer", "me=b {{input}} {{output}}"], "gives 'me' two commands"),
        (["{model}", "--eqsat", "--effort most"], "--eqsat: argument --effort: invalid choice"),
        (["{model}", "--eqsat", "-o x.onnx"], "--eqsat: unrecognized arguments: -o x.onnx"),
        (["{model}", "--eqsat", "--no-such-option"], "--eqsat: unrecognized arguments: --no-such-option"),
        (["{model}", "--eqsat"], "--eqsat: expected one argument"),
        (["{model}", "--eqsat", "'"], "are no options"),
        (["{model}", "--assume-dim", "M=2"], "no dimension named 'M'"),
        (["{model}", "{other}", "--dim", "M=2"], "no model has a dimension named 'M'; they have: N"),
        (["{model}", "--inputs", "nowhere.npz"], "nowhere.npz: can not read it"),
        (["{model}", "--target", "launches"], "predicts no time"),
        (["{model}", "--csv", "{model}"], "would overwrite"),
        (["{model}", "--csv", "nowhere/table.csv"], "nowhere: no such folder"),
        (["{model}", "--keep", "{model}"], "is no folder"),
        (["{model}", "--threads", "0"], "'0' is not a positive number"),
        (["{model}", "--clock", "cpu", "--threads", "2"], "it needs --threads 1"),
        (["{model}", "--as-is"], "compares two models, not 1"),
        (["{model}", "{model}", "--as-is"], "both are"),
        (["{model}", "{other}", "--as-is", "--keep", "kept"], "--keep has no meaning with it"),
    ],
)
def test_wrong_input_is_one_clear_line(
    model: Path, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    given = [argument.format(model=model, other=other, broken=tmp_path / "broken.onnx") for argument in arguments]
    assert main(["compare", *given]) == 2
    out, err = capsys.readouterr()
    assert not out and message in err and err.startswith("eqsat: error: ") and err.count("\n") == 1
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_names_of_a_model_can_not_write_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_operators({"results": [{"operators": {"a.\x1b[2J[red]Op": 2}}, {"operators": {}}]})
    assert ["a.", "[2J[red]Op", "2", "0", "-2"] in [line.split() for line in capsys.readouterr().out.splitlines()]


# --- custom operators ---


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Returns a library that ONNX Runtime refuses: a process that would load it says so."""
    path = tmp_path / "ops.so"
    path.write_text("no library")
    return path


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    """Returns a model that only ONNX Runtime runs, and whose smaller form has to run, too."""
    return fast_gelu(tmp_path / "twice.onnx", "a = Relu (x)  b = Relu (a)  y = com.microsoft.FastGelu (b)")


def fast_gelu(path: Path, body: str) -> Path:
    header = '<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>'
    path.write_bytes(parse(f"g (float[N, 4] x) => (float[N, 4] y) {{ {body} }}", header).SerializeToString())
    return path


@pytest.mark.slow
def test_the_library_reaches_all_that_run_a_model(
    twice: Path, broken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    found = record(capsys, twice, "--against", "eqsat,ort-basic", "--custom-op-library", broken.name, "--keep", "kept")
    (row,) = found["models"]
    refusal = f"Failed to load library {broken}"
    assert refusal in row["not_timed"], "the runs that are timed"
    results = {result["optimizer"]: result for result in row["results"]}
    assert results["ort-basic"]["status"] == "failed" and refusal in results["ort-basic"]["reason"]
    assert results["eqsat"]["status"] == "unverified" and refusal in results["eqsat"]["reason"]
    report = json.loads((tmp_path / "kept" / "twice" / "eqsat.report").read_text())
    assert refusal in report["verify"]["reason"], "eqsat's own run"


@pytest.mark.slow
def test_the_library_verifies_two_given_models(twice: Path, tmp_path: Path, broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    once = fast_gelu(tmp_path / "once.onnx", "a = Relu (x)  y = com.microsoft.FastGelu (a)")
    assert record(capsys, twice, once, "--as-is")["models"][0]["results"][1]["status"] == "equal"
    (row,) = record(capsys, twice, once, "--as-is", "--custom-op-library", broken, code=3)["models"]
    assert "Failed to load library" in row["results"][1]["reason"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--custom-op-library", "none.so"], "--custom-op-library: none.so: no such file"),
        (["--custom-op-library", "ops.so", "--clock", "cpu"], "may have threads of their own"),
        (["--custom-op-library", "ops.so", "--csv", "ops.so"], "would overwrite a file that is read"),
    ],
)
def test_a_library_that_is_of_no_use_is_refused(
    options: list[str], message: str, model: Path, broken: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(broken.parent)
    assert main(["compare", str(model), *options, *QUICK]) == 2
    assert message in capsys.readouterr().err
    assert broken.read_text() == "no library"


@pytest.mark.parametrize("given", [("--no-empty-inputs",), ("--eqsat=--no-empty-inputs",)])
def test_the_promise_counts_wherever_it_is_given(given: tuple[str, ...], model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def engines(options: object, settings: dict[str, Any]) -> int:
        seen.append(settings["no_empty_inputs"])
        return 0

    def optimizers(models: object, options: object, conditions: Any, dims: object) -> int:
        seen.append(conditions.no_empty_inputs)
        return 0

    monkeypatch.setattr("eqsat.cli.engines.compare_engines", engines)
    monkeypatch.setattr("eqsat.cli.compare._optimizers", optimizers)
    assert main(["compare", str(model), "--engines", *given]) == main(["compare", str(model), *given]) == 0
    assert seen == [True, True]
