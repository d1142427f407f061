"""`eqsat example`: it lists, writes whole files, and overwrites nothing that nobody named."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from eqsat.cli.main import main
from eqsat.examples.examples import EXAMPLES


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_a_name_it_lists(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["example"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(EXAMPLES)
    assert main(["example", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == set(EXAMPLES)
    assert not list(folder.iterdir())


def test_it_writes_a_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["example", "bert", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["output"] == "bert.onnx" and record["bytes"] == (folder / "bert.onnx").stat().st_size
    assert len(onnx.load(folder / "bert.onnx").graph.output) == 1
    assert main(["example", "bert"]) == 0, "the same file again is no loss"
    assert "wrote   bert.onnx" in capsys.readouterr().out


def test_it_keeps_a_file_of_the_same_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bert.onnx").write_bytes(b"mine")
    assert main(["example", "bert"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert (folder / "bert.onnx").read_bytes() == b"mine"
    assert main(["example", "bert", "-o", "bert.onnx"]) == 0
    assert (folder / "bert.onnx").stat().st_size > 1 << 20


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("bart", "no example is called 'bart'; there are bert"),
        ("-o x.onnx", "-o goes with the name of an example"),
        ("bert -o none/x.onnx", "none: no such folder"),
        ("bert -o .", "is a folder, not a file to write"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(line: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["example", *line.split()]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and not captured.out
    assert not list(folder.iterdir())
