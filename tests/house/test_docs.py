"""The documentation is true: the tutorial runs as written, examples are rules, tables are current.

`python -m tests.house.generated` writes the generated tables anew.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eqsat.checker.check import OK, REFUTED, check, check_rule
from eqsat.checker.judging.trial_values import Style
from eqsat.language.functions import FUNCTIONS
from eqsat.language.library import built_in, load
from eqsat.language.printer import show_file
from eqsat.language.problems import RuleErrors
from eqsat.language.resolve import load as load_text
from tests.house.generated import GENERATED, function_table, groups, with_table

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL, REFERENCE, LAWS, README = ROOT / "docs" / "tutorial.md", ROOT / "docs" / "rule-language.md", ROOT / "rules" / "README.md", ROOT / "README.md"
REPORT = ROOT / "docs" / "report.md"
OPTIONS = ROOT / "docs" / "options.md"
PYTHON = ROOT / "docs" / "python.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SAVED = re.compile(r"`([\w.]+)`[^`]*:\n\n\Z")  # the sentence above a file to save ends with its name


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


# --- tables that are generated ---


@pytest.mark.parametrize("name", GENERATED)
def test_table_is_that_of_the_code(name: str) -> None:
    path, table = GENERATED[name]
    assert text(path) == with_table(text(path), name, table()), "write it anew: python -m tests.house.generated"


def test_a_table_holds_all_that_there_is() -> None:
    assert all(f"| `{name}(" in function_table() for name in FUNCTIONS)
    assert sum(count for _, count, _ in groups()) == len({entry.listed.family for entry in built_in().entries})
    assert all(about for _, _, about in groups()), "a rule file begins with what it is about"


# --- examples of rules ---


def examples(path: Path) -> list[tuple[str, str]]:
    """Returns the rules that a document shows, with the errors that it states for them.

    The errors are a block of text right below the rules.
    """
    blocks = list(BLOCK.finditer(text(path)))
    return [(block[2], below(path, block)) for block in blocks if block[1] == "rules"]


def below(path: Path, block: re.Match[str]) -> str:
    """Returns the block of text right below another block, or nothing."""
    found = BLOCK.match(text(path), block.end() + 2)
    return found[2] if found is not None and found[1] == "text" else ""


EXAMPLES = [pytest.param(*pair, id=f"{path.stem}-{index}") for path in (REFERENCE, LAWS, README) for index, pair in enumerate(examples(path))]


@pytest.mark.parametrize("rules, errors", EXAMPLES)
def test_example_is_a_rule_or_as_wrong_as_it_says(rules: str, errors: str) -> None:
    if errors:
        with pytest.raises(RuleErrors) as caught:
            load_text(rules, "mine.rules")
        assert str(caught.value) == errors.rstrip("\n")
    else:
        found = load([rules])
        file = found.groups[0].file
        assert show_file(file) == rules, "examples are in the one layout"


@pytest.mark.slow
def test_the_checker_finds_nothing_against_the_reference() -> None:
    right = [rule for rules, errors in examples(REFERENCE) if not errors for rule in load([rules]).rules]
    for verdict in check(right, 20, 0, lambda place, verdict: None):
        assert verdict.status == OK, verdict.reason


def test_examples_are_found() -> None:
    assert len(examples(REFERENCE)) >= 3 and any(errors for _, errors in examples(REFERENCE))


# --- the tutorial ---


def run(command: str, folder: Path) -> tuple[int, str]:
    """Runs a line of the tutorial. Returns its exit code and its output, errors last."""
    program, *arguments = shlex.split(command)
    launch = {"eqsat": [sys.executable, "-m", "eqsat"], "python": [sys.executable]}[program]
    done = subprocess.run([*launch, *arguments], cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=120)
    return done.returncode, done.stdout + done.stderr


def stable(output: str) -> list[str]:
    """Returns the part of an output that is the same on every machine.

    Of a counterexample it keeps whether it is of integers, of sizes and times that there are some.
    """
    kept: list[str] = []
    refuted = False
    for line in output.splitlines():
        refuted = line.startswith("refuted ") or (refuted and line.startswith("    "))
        if not refuted or line.startswith("refuted "):
            kept.append(re.sub(r"[\d.]+ ?[kmu]?", "#", line) if re.match(r"moved |time |file |took |refuted |ok |\d+ rules, ", line) else line)
        elif line.startswith("    left ("):
            kept.append("of integers" if re.match(r" *left \(u?int", line) else "of floats")
    return kept


def steps() -> list[tuple[str, str, str]]:
    """Returns the steps of the tutorial in order.

    They are ("save", name, text), ("run", commands, output) and ("install", commands, "").
    """
    document = text(TUTORIAL)
    found: list[tuple[str, str, str]] = []
    for block in BLOCK.finditer(document):
        kind, body = block[1], block[2]
        if kind == "sh":
            found.append(("install", body, "") if "pip install" in body else ("run", body, below(TUTORIAL, block)))
        elif kind != "text":
            name = SAVED.search(document[: block.start()])
            assert name is not None, f"where is this saved?\n{body}"
            found.append(("save", name[1], body))
    return found


@pytest.mark.slow
def test_tutorial_runs_as_it_is_written(tmp_path: Path) -> None:
    ran = 0
    for kind, what, content in steps():
        if kind == "save":
            (tmp_path / what).write_text(content, encoding="utf-8")
        elif kind == "run":
            ran += 1
            done = [run(command, tmp_path) for command in what.splitlines()]
            printed = "".join(output for _, output in done)
            assert stable(printed) == stable(content), printed
            # Only a refuted rule ends with the exit code for mistakes of the caller.
            assert [code for code, _ in done] == [0] * (len(done) - 1) + [2 if content.startswith("refuted ") else 0]
    assert ran >= 6
    keys = re.findall(r"^\| `(\w+)` \|", text(REPORT).split("Each of `rules`:")[1].split("\n\n")[1], re.MULTILINE)
    for rule in json.loads(text(tmp_path / "report.json"))["rules"]:
        assert [*rule, "dropped"] == keys


def test_tutorial_refutes_mends_fires_and_explains() -> None:
    outputs = [content for kind, _, content in steps() if kind == "run"]
    said = ["nodes   3 -> 3", "refuted ", "ok ", "nodes   3 -> 2", "rule mean-mul: fires at 0 places", "refuted "]
    assert [begin for output, begin in zip(outputs, said, strict=True) if output.startswith(begin)] == said
    refuted = [output for output in outputs if output.startswith("refuted ")]
    assert len(refuted) == 2
    for output in refuted:
        assert "different: " in output and "    left (" in output and "    right (" in output and "holds both sides: " in output


# --- the README ---


def test_the_kinds_of_values_are_all_described() -> None:
    (table,) = re.findall(r"^\| values \| elements \|\n(.*?)\n\n", text(REFERENCE), re.DOTALL | re.MULTILINE)
    assert re.findall(r"`(\w+)`", table) == [style.value for style in Style]


def test_the_readme_shows_a_prediction_with_its_sizes() -> None:
    """The sizes are those that a prediction assumes where nothing is fixed."""
    from eqsat.cli.summary import assumed
    from eqsat.cost.shaped import assumed_size

    shown = assumed({name: assumed_size(name, {}) for name in ("batch", "sequence")})
    assert f"predicted for onnxruntime-cpu{shown}" in " ".join(text(README).split())


def test_readme_shows_a_rule_that_integers_refute() -> None:
    ((rules, _),) = examples(README)
    verdict = check_rule(load([rules]).rules[0], 60, 0)
    assert verdict.status == REFUTED
    assert verdict.counterexample is not None and "left (int" in verdict.counterexample.left.replace("uint", "int")


def test_the_pass_of_the_python_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnx

    from tests.support.models import parse

    monkeypatch.chdir(tmp_path)
    onnx.save(parse("g (float[N, 4] x) => (float[N, 4] y) { a = Relu (x)  b = Relu (a)  y = Identity (b) }"), "model.onnx")
    (code,) = (block[2] for block in BLOCK.finditer(text(PYTHON)) if block[1] == "python" and "OptimizePass" in block[2])
    found: dict[str, Any] = {}
    exec(compile(code, "docs/python.md", "exec"), found)
    assert [node.op_type for node in found["result"].model.graph] == ["Relu"]


def test_the_python_page_has_all_public_names() -> None:
    import eqsat

    assert {name for name in dir(eqsat) if f"`{name}" not in text(PYTHON)} == {"__version__"}


def test_the_exit_codes_are_all_described() -> None:
    from eqsat.cli import exit_codes

    codes = {value for name, value in vars(exit_codes).items() if name.isupper()}
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", text(OPTIONS), re.MULTILINE)} == codes


def test_the_options_are_all_described(capsys: pytest.CaptureFixture[str]) -> None:
    from eqsat.cli.main import main

    with pytest.raises(SystemExit):
        main(["optimize", "--help"])
    options = set(re.findall(r"^  (?:-\w, |-\w \w+, )?(--[a-z-]+)", capsys.readouterr().out, re.MULTILINE)) - {"--help", "--output"}
    table = text(OPTIONS).split("Exit codes")[0]
    assert len(options) > 10 and {option for option in options if f"`{option}" not in table} == set()
