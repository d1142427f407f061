"""Standard output has the results and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import onnx
import onnx.parser
import pytest

# `Affine` is of onnx's early drafts: onnx's checker prints a warning to standard output.
_DRAFT = """
<ir_version: 8, opset_import: ["": 9]>
g (float[2] x) => (float[2] y) { a = Affine <alpha = 2.0> (x) y = Relu (a) }
"""


def _run(*arguments: str | Path, output: int | None = subprocess.PIPE) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "eqsat", *map(str, arguments)], stdout=output, stderr=subprocess.PIPE, check=False)


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(_DRAFT), tmp_path / "draft.onnx")
    return tmp_path / "draft.onnx"


def test_a_report_is_alone(draft: Path) -> None:
    ended = _run("optimize", draft, "-o", draft.with_name("small.onnx"), "--json")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert json.loads(ended.stdout)["nodes"]["before"] == 2


def test_a_model_is_alone(draft: Path) -> None:
    ended = _run("optimize", draft, "-o", "-", "--quiet")
    assert ended.returncode == 0
    assert [node.op_type for node in onnx.ModelProto.FromString(ended.stdout).graph.node] == ["Affine", "Relu"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [["--help"], ["rules", "list"]])
def test_a_full_device_is_one_line(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        ended = _run(*arguments, output=full.fileno())
    assert (ended.returncode, ended.stderr) == (2, b"eqsat: error: standard output: no space left on the device\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_device_for_a_model_is_one_line(draft: Path) -> None:
    with open("/dev/full", "wb") as full:
        ended = _run("optimize", draft, "-o", "-", "--quiet", output=full.fileno())
    assert (ended.returncode, ended.stderr) == (2, b"eqsat: error: standard output: no space left on the device\n")
