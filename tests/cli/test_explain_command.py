"""`eqsat explain`: its output, its files, and its exit codes."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import onnx
import pytest

from eqsat.cli.main import main
from eqsat.explain import explanation
from eqsat.rewriting import rewrite
from tests.explain.test_chain import SHORT, SUMS
from tests.support.models import parse


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    onnx.save(parse(SHORT), tmp_path / "m.onnx")
    (tmp_path / "my.rules").write_text(SUMS)
    return ["explain", str(tmp_path / "m.onnx"), "--rules", str(tmp_path / "my.rules"), "--only", "my", "--target", "launches"]


def test_it_shows_the_rules_and_the_chain(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "cost    3 launches -> 1 launches, predicted for launches" in text
    assert "rules   2 of 2 that fired reach this cost (1 launches with them alone)" in text
    assert "three                              without it 2 launches" in text
    assert "chain   2 steps: 2 rewrites by one rule; it leads to the result, each step verified equal: 2 on what changes" in text
    assert main([*command, "--all", "--seconds", "0"]) == 0
    text = capsys.readouterr().out
    assert "   2  three: 2 launches -> 1 launches, 1 nodes  equal" in text
    assert "        - Add b" in text and "        + Sum y" in text and "2 fired, 2 in the chain" in text


def test_the_files_can_be_checked_by_anybody(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "steps"
    assert main([*command, "-o", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads((folder / "steps.json").read_text())
    assert found["files"] == ["step-000.onnx", "step-001.onnx", "step-002.onnx"]
    assert sorted(path.name for path in folder.iterdir()) == [*found["files"], "steps.json"]
    assert (found["status"], found["kinds"], found["reached"]) == ("equal", {"rewrite": 2}, True)
    assert found["minimal"]["proved"] and sorted(found["minimal"]["rules"]) == ["minus", "three"]
    assert [step["verify"]["status"] for step in found["steps"]] == ["equal", "equal"]
    for one, other in zip(found["files"], found["files"][1:], strict=False):
        assert main(["verify", str(folder / one), str(folder / other)]) == 0


def test_steps_need_not_be_verified(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--no-verify-steps", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == "skipped" and [step["verify"] for step in found["steps"]] == [None, None]


def test_a_chain_that_misses_the_result_is_an_error(command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    whole = explanation.links
    monkeypatch.setattr(explanation, "links", lambda *arguments: list(whole(*arguments))[:-1])
    assert main([*command, "--no-verify-steps"]) == 1
    assert "it does NOT lead to the result" in capsys.readouterr().out


def test_an_interrupt_is_told(command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(rewrite, "saturate", interrupted)
    assert main(command) == 130
    out, err = capsys.readouterr()
    assert "nodes   3 -> 3" in out and err == TOLD


TOLD = "eqsat: interrupted; this explains the best model that was found until then\n"


def ctrl_c_after(monkeypatch: pytest.MonkeyPatch, place: object, name: str, calls: int) -> list[int]:
    """Makes a function send the signal of Ctrl-C to this process, after so many calls. Returns a list
    that gets an item with each call.
    """
    usual: Any = getattr(place, name)
    made: list[int] = []

    def with_signal(*arguments: Any, **others: Any) -> object:
        found = usual(*arguments, **others)
        made.append(len(made))
        if len(made) == calls:
            os.kill(os.getpid(), signal.SIGINT)
        return found

    monkeypatch.setattr(place, name, with_signal)
    return made


def test_after_ctrl_c_in_the_search_nothing_is_replayed(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ctrl_c_after(monkeypatch, rewrite, "saturate", 1)
    replayed = ctrl_c_after(monkeypatch, explanation, "links", 0)
    verified = ctrl_c_after(monkeypatch, explanation, "passing", 0)
    assert main([*command, "-o", str(tmp_path / "steps")]) == 130
    out, err = capsys.readouterr()
    assert err == TOLD and not replayed and not verified
    assert "2 fired, 0 in the chain" in out and "nodes   3 -> 1" in out
    assert "no step: Ctrl-C ended" in out and "0 steps; Ctrl-C ended it before the result" in out and "verify  skipped" in out
    assert "wrote   0 models and steps.json" in out
    assert json.loads((tmp_path / "steps" / "steps.json").read_text())["hit"] == "interrupted"


def test_ctrl_c_in_the_chain_keeps_the_steps_before(command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    judged = ctrl_c_after(monkeypatch, explanation, "judged", 2)
    assert main([*command, "--json"]) == 130
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == TOLD and len(judged) == 2
    assert len(found["steps"]) == 1 and found["steps"][0]["verify"]["status"] == "equal"
    assert (found["hit"], found["reached"], found["status"], found["minimal"]) == ("interrupted", False, "unverified", None)


def test_ctrl_c_in_the_search_for_fewer_rules_keeps_the_chain(command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    runs = ctrl_c_after(monkeypatch, explanation, "attempt", 4)  # the run itself; with both rules, with none, and without one
    assert main([*command, "--json"]) == 130
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == TOLD and len(runs) == 4
    assert (found["status"], found["reached"], len(found["steps"])) == ("equal", True, 2)
    sets = found["minimal"]
    assert sorted(sets["rules"]) == ["minus", "three"] and sets["without"] == {} and not sets["proved"]


def test_only_a_new_or_empty_folder_is_written(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place, reason in ((tmp_path, "is not empty"), (tmp_path / "m.onnx", "is a file"), (tmp_path / "a" / "b", "no such folder"), ("", "-o is empty")):
        assert main([*command, "-o", str(place)]) == 2
        assert reason in capsys.readouterr().err
    assert main(["explain", str(tmp_path / "none.onnx"), "-o", str(tmp_path / "steps")]) == 2
    assert not (tmp_path / "steps").exists() and "none.onnx" in capsys.readouterr().err
