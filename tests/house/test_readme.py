"""The README is true: its Python example prints as stated.

Its test command is that of `.ci/run`.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


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
