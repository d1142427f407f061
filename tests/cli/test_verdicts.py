"""Verdicts are shown in the order of the rules, on a pipe as early as that allows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eqsat.checker.check import REFUTED, Verdict
from eqsat.checker.judging.counterexample import Counterexample
from eqsat.checker.judging.verdict import Kind
from eqsat.checker.standing import Standing
from eqsat.cli.verdicts import Counterexamples, Verdicts, standing_line
from eqsat.errors import InputError

FIRST, SECOND, THIRD = (Verdict(name, "my.rules", 1, "exact", drawn=9, fired=9) for name in ("first", "second", "third"))


def names(printed: str) -> list[str]:
    return [line.split()[1] for line in printed.splitlines()]


def test_a_pipe_gets_each_verdict_once_those_before_it_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Verdicts(Counterexamples(None), True)
    shown.add(1, SECOND)
    assert capsys.readouterr().out == ""
    shown.add(0, FIRST)
    assert names(capsys.readouterr().out) == ["first", "second"]
    shown.add(2, THIRD)
    shown.finish()
    assert names(capsys.readouterr().out) == ["third"]


def test_a_terminal_gets_all_at_the_end(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shown = Verdicts(Counterexamples(None), True)
    shown.add(1, SECOND)
    shown.add(0, FIRST)
    assert capsys.readouterr().out == ""
    shown.finish()
    assert names(capsys.readouterr().out) == ["first", "second"]


def test_json_prints_no_lines(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Verdicts(Counterexamples(None), False)
    shown.add(0, FIRST)
    shown.finish()
    assert capsys.readouterr().out == ""


def test_counterexamples_go_into_one_folder(tmp_path: Path) -> None:
    wrong = [Verdict(name, "my.rules", 1, "exact", REFUTED, counterexample=Counterexample("", "", "", name.encode(), "", 1, Kind.VALUE)) for name in "ab"]
    files = Counterexamples(str(tmp_path / "new"))
    for verdict in (FIRST, *wrong):
        files.save(verdict)
    assert {name: Path(path).read_text() for name, path in files.paths.items()} == {"a": "a", "b": "b"}
    assert {Path(path).parent for path in files.paths.values()} == {tmp_path / "new"}
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="can not write counterexamples there"):
        Counterexamples(str(tmp_path / "file")).save(wrong[0])


def test_the_line_of_a_standing_is_short() -> None:
    assert standing_line(Standing(0, 9, 0, 0, ())) == "0 of 9 rules, 0 instances; processes start"
    assert standing_line(Standing(3, 9, 1, 420, ("a[Mul]", "b"))) == "3 of 9 rules, 1 did not pass, 420 instances; checking a[Mul], b"
    assert standing_line(Standing(3, 99, 0, 1, tuple("abcde"))).endswith("checking a, b, c and 2 more")
