"""The comparison of both exporters' models: pairs, opsets, bounds, and what differs."""

from pathlib import Path

import onnx
import pytest

from benchmarks.exporters import Optimized, Pair, find_pairs, line, main, optimized, record

OLD = '<ir_version: 8, opset_import: ["": 17]> g (float[4, 3] x) => (float[4, 3] y) { a = Identity(x)  y = Relu(a) }'
NEW = OLD.replace("17", "20")


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    for name, text in {"one.ts": OLD, "one.dyn": NEW, "one.ts.dynamic": OLD, "two.ts": OLD}.items():
        onnx.save(onnx.parser.parse_model(text), tmp_path / f"{name}.onnx")
    return tmp_path


def test_an_architecture_needs_both_exporters(zoo: Path) -> None:
    assert list(find_pairs(zoo, False, ())) == [("one", (zoo / "one.ts.onnx", zoo / "one.dyn.onnx"))]
    assert not list(find_pairs(zoo, True, ())) and not list(find_pairs(zoo, False, ["two"]))


def test_a_model_is_optimized_in_the_asked_opset(zoo: Path) -> None:
    assert optimized(zoo / "one.ts.onnx", None).operators == {"Relu": 1}
    assert optimized(zoo / "one.ts.onnx", 20) == optimized(zoo / "one.dyn.onnx", 20)


def test_bounds_are_shares_of_the_better_result() -> None:
    better = Optimized(100, 1.0, {"Add": 2, "Mul": 1})
    assert not Pair("bert", None, (better, Optimized(105, 1.02, {}))).outside
    assert Pair("bert", None, (Optimized(106, 1.0, {}), better)).outside
    slower = Pair("bert", None, (better, Optimized(100, 1.04, {"Add": 2, "Sum": 1})))
    assert slower.outside and slower.differences() == {"Mul": (1, 0), "Sum": (0, 1)}
    assert line(slower) == "| bert | 100 | 100 | 0.0% | 1000.000 | 1040.000 | 4.0% | ! |"


def test_the_command_prints_both_tables(zoo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["exporters", str(zoo), "--json", str(zoo / "figures.json")])
    assert main() == 0
    said = capsys.readouterr().out
    assert said.count("| one |") == 2 and "0 of 2 pairs" in said
    assert '"outside": false' in (zoo / "figures.json").read_text()
    monkeypatch.setattr("sys.argv", ["exporters", str(zoo), "--dynamic"])
    assert main() == 2


def test_the_record_names_the_exporters() -> None:
    result = Optimized(1, 2.0, {})
    assert record([Pair("bert", 20, (result, result))])["pairs"] == [
        {
            "name": "bert",
            "opset": 20,
            "results": {"ts": {"launches": 1, "seconds": 2.0, "operators": {}}, "dyn": {"launches": 1, "seconds": 2.0, "operators": {}}},
            "outside": False,
        }
    ]
