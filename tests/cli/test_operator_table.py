"""The table of operators: which it has, that it fits, and that the report has the same figures."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import onnx
import pytest

from eqsat.cli.main import main
from eqsat.cli.operator_table import operator_table, width_of
from tests.support.models import parse

OPERATORS = {
    "Add": {"before": 142, "after": 35},
    "Cast": {"before": 1, "after": 0},
    "Identity": {"before": 7, "after": 7},
    "LayerNormalization": {"before": 0, "after": 9},
    "com.microsoft.Gelu": {"before": 4, "after": 12},
}
CELL = re.compile(r"(\S+) +(\d+) -> +(\d+)")


@pytest.mark.parametrize("width", [1, 30, 40, 60, 79, 80, 200])
def test_each_change_is_there_once_and_lines_fit(width: int) -> None:
    lines = operator_table(OPERATORS, width)
    found = {name: (int(before), int(after)) for name, before, after in CELL.findall("\n".join(lines))}
    assert found == {name: (counts["before"], counts["after"]) for name, counts in OPERATORS.items() if name != "Identity"}
    assert max(map(len, lines)) <= width or len(lines) == 4
    assert len(lines) == (1 if width == 200 else 2 if width >= 60 else 4), "as few lines as fit"


def test_columns_are_read_downwards_and_aligned() -> None:
    assert operator_table(OPERATORS, 70) == [
        "Add   142 -> 35    LayerNormalization  0 ->  9",
        "Cast    1 ->  0    com.microsoft.Gelu  4 -> 12",
    ]


def test_there_is_no_table_without_a_change() -> None:
    assert operator_table({"Add": {"before": 2, "after": 2}}, 80) == [] and operator_table({}, 80) == []


def test_a_long_name_is_shortened() -> None:
    (line,) = operator_table({"my." + "Operator" * 20: {"before": 1, "after": 0}}, 80)
    assert len(line) < 60 and "..." in line and line.endswith("1 -> 0")


def test_the_width_of_no_terminal_is_the_usual_one() -> None:
    assert width_of(io.StringIO()) == 80


def test_the_terminal_and_the_report_have_the_same_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    model = parse("g (float[4, 4] x, float[4, 8] w) => (float[4, 8] y) { a = MatMul (x, w)  b = Neg (a)  c = Neg (b)  d = MatMul (x, w)  y = Add (c, d) }")
    onnx.save(model, "model.onnx")
    assert main(["optimize", "model.onnx", "--report", "report.json"]) == 0
    printed = capsys.readouterr().out
    report = json.loads(Path("report.json").read_text())
    assert report["operators"]["MatMul"] == {"before": 2, "after": 1} and report["operators"]["Neg"] == {"before": 2, "after": 0}
    table = printed.partition("kernels")[0].partition("\n")[2]
    assert {name: (int(before), int(after)) for name, before, after in CELL.findall(table)} == {
        name: (counts["before"], counts["after"]) for name, counts in report["operators"].items() if counts["before"] != counts["after"]
    }
    macs = [report["cost"][when]["multiply_adds"] for when in ("before", "after")]
    assert macs == [2 * 4 * 4 * 8, 4 * 4 * 8]
    assert f"{macs[0]:g} -> {macs[1]:g} multiply-adds" in printed
