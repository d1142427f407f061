"""The commands of the rule language: their output, their errors, and their state after a stop."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import onnx
import pytest

from eqsat.cli.main import main
from tests.support.models import parse

RIGHT = """# A Transpose moves elements, and Relu does not ask where they are.
exact rule relu-of-transpose:
    Transpose<perm = p>(Relu(x)) => Relu(Transpose<perm = p>(x))
    test x: T[2, 3], p = [1, 0]
"""
WRONG = """real rule mean-mul:
    ReduceMean<..p>(Mul(x, c), axes) => Mul(ReduceMean<..p>(x, axes), c)
    where shape(c) == []
    test x: T[2, 3], c: T[], axes = [1]
"""
UNTIDY = "# T\n\n\n\nexact rule a:\r\n  Neg(Neg(x))=>x\n  test x:T[2]"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a working folder with rule files of all kinds."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "right.rules").write_text(RIGHT)
    (tmp_path / "twin.rules").write_text(RIGHT)
    (tmp_path / "wrong.rules").write_text(WRONG)
    (tmp_path / "untidy.rules").write_bytes(UNTIDY.encode())
    (tmp_path / "empty.rules").write_text("# Nothing yet.\n")
    (tmp_path / "binary.rules").write_bytes(bytes(range(256)))
    (tmp_path / "none").mkdir()
    with (tmp_path / "large.rules").open("wb") as file:
        file.truncate(100 << 20)
    onnx.save(parse("g (float[3,4] x) => (y) { r = Relu(x)  y = Transpose<perm = [1, 0]>(r) }"), tmp_path / "m.onnx")
    return tmp_path


def call(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(["rules", *line.split()])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("check missing.rules", "eqsat: error: missing.rules: can not read it: No such file or directory"),
        ("format missing.rules", "eqsat: error: missing.rules: can not read it: No such file or directory"),
        ("list --rules missing.rules", "eqsat: error: missing.rules: can not read it: No such file or directory"),
        ("list --rules none", "eqsat: error: none: can not read it: Is a directory"),
        ("check none", "eqsat: error: none: no rule file (*.rules) lies there"),
        ("format none", "eqsat: error: none: no rule file (*.rules) lies there"),
        ("check empty.rules", "eqsat: error: empty.rules: has no rule"),
        ("check binary.rules", "binary.rules:2:118: the text is not UTF-8"),
        ("format binary.rules", "binary.rules:2:118: the text is not UTF-8"),
        ("check large.rules", "large.rules:1:1: a rule file has at most 4 MiB; split it"),
        ("format large.rules", "large.rules:1:1: a rule file has at most 4 MiB; split it"),
        ("check /dev/zero", "/dev/zero:1:1: a rule file has at most 4 MiB; split it"),
        ("show matmul-asoc", "eqsat: error: there is no rule 'matmul-asoc'; did you mean matmul-assoc?"),
        ("why matmul-asoc m.onnx", "eqsat: error: there is no rule 'matmul-asoc'; did you mean matmul-assoc?"),
        ("why matmul-assoc missing.onnx", "eqsat: error: missing.onnx: no such file"),
        ("check --n 0", "eqsat: error: argument --n: '0' is not a positive number (see: eqsat rules check --help)"),
        ("check --n -1", "eqsat: error: argument --n: '-1' is not a positive number (see: eqsat rules check --help)"),
        ("check --n ²", "eqsat: error: argument --n: '²' is not a positive number (see: eqsat rules check --help)"),
        ("check --seed x", "eqsat: error: argument --seed: 'x' is not a number, 0 or more (see: eqsat rules check --help)"),
        ("check --seed -1", "eqsat: error: argument --seed: '-1' is not a number, 0 or more (see: eqsat rules check --help)"),
        ("check wrong.rules --n 5 --save right.rules", "eqsat: error: right.rules: can not write counterexamples there: File exists"),
    ],
)
def test_wrong_input_is_one_clear_line(line: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert call(line, capsys) == (2, "", f"{message}\n")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_a_rule_name_in_two_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in ("check right.rules twin.rules", "list --rules right.rules --rules twin.rules"):
        code, out, err = call(line, capsys)
        assert (code, out) == (2, "")
        assert err.splitlines()[0] == "twin.rules:2:12: rule relu-of-transpose: another rule has this name, at right.rules:2"


def test_a_file_that_is_given_twice_is_one_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call("check right.rules ./right.rules --n 5", capsys)
    assert code == 0 and out.splitlines()[-1].startswith("1 rules, ")


@pytest.mark.parametrize(
    ("line", "code", "keys"),
    [
        ("list --json", 0, {"groups"}),
        ("show matmul-assoc --json", 0, {"name", "file", "line", "text", "members"}),
        ("show matmul-assoc --egglog --json", 0, {"name", "egglog"}),
        ("check right.rules --n 5 --json", 0, {"passed", "rules"}),
        ("check wrong.rules --n 5 --json", 2, {"passed", "rules"}),
        ("format untidy.rules --json", 0, {"changed"}),
        ("format untidy.rules --check --json", 2, {"changed"}),
        ("why relu-of-transpose m.onnx --rules right.rules --json", 0, {"rule", "fires", "fires_with_others", "places", "notes"}),
    ],
)
def test_json_is_one_object(line: str, code: int, keys: set[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, out, err = call(line, capsys)
    assert (found, err) == (code, "")
    assert out.count("\n") == 1 and set(json.loads(out)) == keys


# --- writing ---


def test_format_keeps_mode_and_link_and_leaves_nothing_behind(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, link = folder / "untidy.rules", folder / "link.rules"
    file.chmod(0o640)
    link.symlink_to("untidy.rules")
    names = sorted(os.listdir(folder))
    assert call("format link.rules", capsys) == (0, "link.rules\n", "")
    assert file.read_text() == "# T\n\nexact rule a:\n    Neg(Neg(x)) => x\n    test x: T[2]\n"
    assert file.stat().st_mode & 0o777 == 0o640 and link.is_symlink()
    assert sorted(os.listdir(folder)) == names
    assert call("format link.rules", capsys) == (0, "", "")


def test_a_full_disk_loses_no_file(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    names = sorted(os.listdir(folder))
    monkeypatch.setattr(os, "fsync", full)
    assert call("format untidy.rules", capsys) == (2, "", "eqsat: error: untidy.rules: can not write it: No space left on device\n")
    assert (folder / "untidy.rules").read_bytes() == UNTIDY.encode()
    assert sorted(os.listdir(folder)) == names


def test_format_tells_the_errors_of_all_files_and_writes_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "other.rules").write_text("exact rule b\n")
    code, out, err = call("format binary.rules other.rules untidy.rules", capsys)
    assert (code, out) == (2, "")
    assert [line.split(":")[0] for line in err.splitlines() if line[0] != " "] == ["binary.rules", "other.rules"]
    assert (folder / "untidy.rules").read_bytes() == UNTIDY.encode()


# --- being stopped ---


def test_a_reader_who_leaves_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-m", "eqsat", "rules", "list"], stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@contextmanager
def checking() -> Iterator[subprocess.Popen[str]]:
    """Yields `eqsat rules check` in a session of its own, and ends all its processes afterwards."""
    command = [sys.executable, "-m", "eqsat", "rules", "check"]
    # A shell makes background processes ignore interrupts, and the tests' children would inherit
    # this.
    hearing = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=hearing)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seconds", [0.7, 1.0, 3.0])
def test_an_interrupt_ends_all_processes_and_says_so_in_a_line(seconds: float) -> None:
    with checking() as process:
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to all processes
        out, err = process.communicate()  # returns when the last process that could write has ended
    assert process.returncode == 130
    assert all(line.startswith("ok ") for line in out.splitlines())  # of rules that were checked until then
    assert err == "eqsat: interrupted; a file that was being written is whole or not there\n"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_processes_end_with_the_one_that_started_them() -> None:
    with checking() as process:
        time.sleep(3)
        process.kill()
        process.communicate()  # the pipe stays open until the last process has ended
