"""Places where no result can go are refused before the work begins."""

import os
from pathlib import Path

import onnx
import pytest

import eqsat
from eqsat import pipeline
from eqsat.cli.main import main
from eqsat.errors import InputError
from tests.support.models import parse


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two models, where no run may begin."""
    for name in ("a", "b"):
        onnx.save(parse("g (float[2] x) => (float[2] y) { y = Relu (x) }"), tmp_path / f"{name}.onnx")

    def begun(*_: object) -> None:
        raise AssertionError("the work began")

    monkeypatch.setattr(pipeline, "run", begun)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("arguments", [["a.onnx"], ["a.onnx", "-o", "small.onnx"], ["a.onnx", "--in-place"], ["a.onnx", "b.onnx", "-o", "many/"]])
def test_a_folder_without_permission(arguments: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    # A superuser may write anywhere, so the answer of the system is stood in for.
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert main(["optimize", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("eqsat: error: ") and err.endswith("can not write it: no permission to write in the folder .\n")


@pytest.mark.parametrize("arguments", [["-o", "pipe"], ["-o", "link"], ["--dump-egraph", "pipe"]])
def test_a_pipe_or_a_device_is_not_replaced(arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe")
    os.symlink("pipe", "link")
    assert main(["optimize", "a.onnx", *arguments]) == 2
    err = capsys.readouterr().err
    assert err == f"eqsat: error: {arguments[1]}: is a device or a pipe, and a result replaces a file as a whole; '-o -' writes to standard output\n"
    assert Path("pipe").is_fifo() and Path("link").is_symlink()


def test_a_result_does_not_replace_a_pipe_from_python(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    result = eqsat.optimize(parse("g (float[2] x) => (float[2] y) { y = Relu (x) }"), effort="low")
    with pytest.raises(InputError, match="is a device or a pipe"):
        result.save(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_a_report_may_go_to_a_device(tmp_path: Path) -> None:
    onnx.save(parse("g (float[2] x) => (float[2] y) { y = Relu (x) }"), tmp_path / "a.onnx")
    assert main(["optimize", str(tmp_path / "a.onnx"), "--effort", "low", "--quiet", "--report", "/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()


def test_several_models_do_not_go_into_one_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", "a.onnx", "b.onnx", "-o", "small.onnx"]) == 2
    assert capsys.readouterr().err == "eqsat: error: small.onnx: several models were given, and their results go into a folder: -o DIR/\n"
    assert sorted(path.name for path in folder.iterdir()) == ["a.onnx", "b.onnx"]
