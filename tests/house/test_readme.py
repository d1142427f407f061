"""The README is true: its first commands and its Python example print as stated, and its table has
the figures of its picture.

Its test command is that of `.ci/run`.
"""

import re
import shlex
from pathlib import Path
from statistics import geometric_mean

import pytest

from eqsat.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOPIC = re.compile(r"^(\w+) +(.*)$", re.MULTILINE)


def first_steps() -> tuple[list[str], str]:
    """Returns the commands on the first model, and what the README says that the last one prints."""
    ((commands, printed),) = re.findall(r"```sh\n([^`]*eqsat example [^`]*)```\n\n```text\n(.*?)```", README, re.DOTALL)
    return [line.partition("#")[0].strip() for line in commands.splitlines() if line.startswith("eqsat ")], printed


def change(line: str) -> tuple[float, float]:
    """Returns the first numbers around the arrow of a line."""
    before, after = line.split(" -> ")
    return float(before.split()[0]), float(after.split()[0])


@pytest.mark.slow
def test_first_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    commands, stated = first_steps()
    for command in commands:
        capsys.readouterr()
        assert main(shlex.split(command)[1:]) == 0
    said, found = dict(TOPIC.findall(stated)), dict(TOPIC.findall(capsys.readouterr().out))
    assert list(said) == list(found)
    for topic in ("nodes", "kernels", "macs", "time", "file"):
        # The processor's kernels decide which of several results is the fastest.
        (before, after), (known_before, known_after) = change(found[topic]), change(said[topic])
        assert before == pytest.approx(known_before, rel=0.05) and after == pytest.approx(known_after, rel=0.05), topic
    assert found["verify"].startswith("equal") and said["verify"].startswith("equal")
    assert (tmp_path / said["wrote"]).exists()


def test_python_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^print\(.*  # (.*)$", code, re.MULTILINE)
    assert (tmp_path / "head.opt.onnx").exists()


def test_continuous_integration_runs_the_tests_as_the_readme_says() -> None:
    (command,) = re.findall(r"&& \.venv/bin/(python -m pytest.*)$", README, re.MULTILINE)
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert "pip install -e '.[dev]'" in README


# --- the measured results ---

MARK = re.compile(r"<title>(\S+): (\d\.\d+)</title>")


def drawn(page: str) -> dict[str, list[float]]:
    """Returns the latencies that a picture shows, by optimizer."""
    found: dict[str, list[float]] = {}
    for name, value in MARK.findall((ROOT / "docs" / f"latency-{page}.svg").read_text(encoding="utf-8")):
        found.setdefault(name, []).append(float(value))
    return found


def test_both_pictures_show_the_same() -> None:
    assert drawn("light") == drawn("dark") and len(drawn("light")["eqsat"]) == 30


def test_the_table_has_the_figures_of_the_picture() -> None:
    table = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in README.partition("## Measured")[2].splitlines() if line.startswith("|")]
    names = [cell.split()[0] for cell in table[0][1:]]
    rows = {row[0]: dict(zip(names, map(float, row[1:]), strict=True)) for row in table[2:]}
    latencies = drawn("light")
    for name, values in latencies.items():  # the table has more optimizers
        assert rows["latency"][name] == round(geometric_mean(values), 2)
        assert rows["models slower than the original by more than 1 %"][name] == sum(value > 1.01 for value in values)
