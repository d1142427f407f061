"""The GitHub Action, the hooks for pre-commit and the container: well-formed, and their commands run."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import onnx
import pytest

import eqsat
from tests.support.models import parse

yaml: Any = pytest.importorskip("yaml", reason="needs the extra `dev`")

ROOT = Path(__file__).resolve().parents[2]
TWICE = parse("g (float[N, 4] x) => (float[N, 4] y) { a = Relu (x)  b = Relu (a)  y = Identity (b) }")
CUSTOM = parse(
    "g (float[2] x) => (float[2] y) <float[2] p> { p = my.Op (x)  a = Relu (p)  b = Relu (a)  y = Identity (b) }",
    '<ir_version: 8, opset_import: ["" : 17, "my" : 1]>',
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Returns a search path on which `eqsat` and `python` are those of the tests."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, command in (("eqsat", f'"{sys.executable}" -m eqsat'), ("python", f'"{sys.executable}"'), ("pip", f'"{sys.executable}" -m pip')):
        (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (programs / name).chmod(0o755)
    return f"{programs}{os.pathsep}{os.environ['PATH']}"


def environment(path: str, **more: str) -> dict[str, str]:
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **more}


# --- the action ---


def action() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def run_action(folder: Path, path: str, **inputs: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """Runs the step that optimizes, as the runner would. Returns what it left in GITHUB_OUTPUT, too."""
    description = action()
    step = next(step for step in description["runs"]["steps"] if step.get("id") == "optimize")
    values = {name: spec.get("default", "") for name, spec in description["inputs"].items()} | {name.replace("_", "-"): text for name, text in inputs.items()}
    variables = {name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: values[found[1]], text) for name, text in step["env"].items()}
    outputs = folder / "github-output"
    outputs.write_text("")
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]  # as the runner starts bash
    done = subprocess.run(
        command, cwd=folder, env=environment(path, GITHUB_OUTPUT=str(outputs), **variables), capture_output=True, text=True, timeout=120, check=False
    )
    return done, outputs.read_text()


def test_the_action_is_described_as_github_wants() -> None:
    description = action()
    assert description.keys() <= {"name", "description", "author", "branding", "inputs", "outputs", "runs"}
    assert description["runs"]["using"] == "composite"
    for step in description["runs"]["steps"]:
        assert ("uses" in step) != ("run" in step) and ("run" not in step or step["shell"] == "bash")
        assert "${{" not in step.get("run", ""), "an input inside a command could be a command"
        named = re.findall(r"inputs\.([\w-]+)", json.dumps(step))
        assert set(named) <= description["inputs"].keys()
    install = next(step["run"] for step in description["runs"]["steps"] if "Install" in step.get("name", ""))
    assert shlex.split(install)[:4] == ["python", "-m", "pip", "install"] and shlex.split(install)[-1] == "$GITHUB_ACTION_PATH"
    assert (ROOT / "pyproject.toml").is_file(), "the path of the action is a package"


def test_the_action_optimizes(tmp_path: Path, path: str) -> None:
    (tmp_path / "zoo" / "deep").mkdir(parents=True)
    onnx.save(TWICE, tmp_path / "zoo" / "a.onnx")
    onnx.save(TWICE, tmp_path / "zoo" / "deep" / "b.onnx")
    done, outputs = run_action(tmp_path, path, models="zoo/**/*.onnx", options="--effort low\n--target launches")
    assert done.returncode == 0, done.stderr
    assert [eqsat.count_nodes(tmp_path / "optimized" / f"{name}.onnx") for name in "ab"] == [1, 1]
    assert outputs == "report=eqsat-report.json\n"
    assert len(json.loads((tmp_path / "eqsat-report.json").read_text())["models"]) == 2


def test_the_action_fails_where_a_result_is_not_verified(tmp_path: Path, path: str) -> None:
    onnx.save(CUSTOM, tmp_path / "custom.onnx")
    done, _ = run_action(tmp_path, path, models="custom.onnx", output="out/")
    assert done.returncode == 3 and not (tmp_path / "out").exists()


def test_the_action_runs_no_input_as_a_command(tmp_path: Path, path: str) -> None:
    onnx.save(TWICE, tmp_path / "a.onnx")
    for inputs in ({"models": "$(touch pwned)"}, {"models": "a.onnx; touch pwned"}, {"models": "a.onnx", "options": "`touch pwned` * ; touch pwned"}):
        done, _ = run_action(tmp_path, path, **inputs)
        assert done.returncode == 2 and not (tmp_path / "pwned").exists()
    done, _ = run_action(tmp_path, path, models="a.onnx", options="--only *")
    assert "there is no rule and no group '*'" in done.stderr, "options are no patterns of files"
    done, _ = run_action(tmp_path, path, models="none/*.onnx")
    assert done.returncode == 2 and done.stdout == "::error::no model matches none/*.onnx\n"


# --- the hooks ---


def hooks() -> list[dict[str, Any]]:
    return yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))


def test_the_hooks_are_described_as_pre_commit_wants() -> None:
    clientlib = pytest.importorskip("pre_commit.clientlib", reason="needs the extra `dev`")
    clientlib.load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))
    assert {hook["id"] for hook in hooks()} == {"eqsat-optimize", "eqsat-rules-format", "eqsat-rules-check"}
    assert all(hook["language"] == "python" and hook["entry"].startswith("eqsat ") for hook in hooks())


@pytest.mark.slow
def test_pre_commit_runs_the_hooks(tmp_path: Path, path: str) -> None:
    """The same entries as local hooks: installing an environment would need a network."""
    pytest.importorskip("pre_commit", reason="needs the extra `dev`")
    repository = tmp_path / "repository"
    repository.mkdir()
    local = [{**hook, "language": "system"} for hook in hooks()]
    (repository / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [{"repo": "local", "hooks": local}]}))
    onnx.save(TWICE, repository / "a.onnx")
    rule = "# Twice the same.\nexact rule twice:\n    Relu(Relu(x)) => Relu(x)\n    test x: T[2, 3]\n"
    (repository / "mine.rules").write_text(rule)
    known = environment(path, PRE_COMMIT_HOME=str(tmp_path / "home"), GIT_CONFIG_GLOBAL=os.devnull)

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=repository, env=known, capture_output=True, text=True, timeout=300, check=False)

    assert run("git", "init", "--quiet").returncode == 0 and run("git", "add", "-A").returncode == 0
    once = run(sys.executable, "-m", "pre_commit", "run", "--all-files")
    assert once.returncode == 1 and "files were modified by this hook" in once.stdout, once.stdout + once.stderr
    assert eqsat.count_nodes(repository / "a.onnx") == 1
    run("git", "add", "-A")
    again = run(sys.executable, "-m", "pre_commit", "run", "--all-files")
    assert again.returncode == 0 and again.stdout.count("Passed") == 3, again.stdout + again.stderr


# --- the container ---


def instructions() -> list[tuple[str, str]]:
    lines = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text(encoding="utf-8")).splitlines()
    return [(line.split()[0], line.partition(" ")[2]) for line in lines if line and not line.startswith("#")]


def context(target: Path) -> Path:
    """Returns a copy of the files that a build sees, by the few forms that .dockerignore uses."""
    lines = [line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*" and lines[-1] == "**/__pycache__" and all(line.startswith("!") for line in lines[1:-1])
    for name in (line[1:] for line in lines[1:-1]):
        assert (ROOT / name).exists()
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    return target


def test_the_container_is_described_as_docker_wants() -> None:
    found = instructions()
    assert {name for name, _ in found} <= {"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT"}
    images = [rest.split()[0] for name, rest in found if name == "FROM"]
    assert images == ["python:3.12-slim"] * 2 and found[0][0] == "FROM"
    assert json.loads(next(rest for name, rest in found if name == "ENTRYPOINT")) == ["eqsat"]
    assert [rest for name, rest in found if name == "USER"] == ["eqsat"], "not as root"


@pytest.mark.slow
def test_the_commands_of_the_container_run(tmp_path: Path, path: str) -> None:
    """The folders of the image are below the test's own, and nothing comes from an index."""
    source, wheels, installed = context(tmp_path / "source"), tmp_path / "wheels", tmp_path / "installed"
    commands = [rest for name, rest in instructions() if name == "RUN" and rest.startswith("pip ")]
    offline = ["--no-build-isolation --no-index", f"--no-deps --no-index --target {installed}"]
    for command, more in zip(commands, offline, strict=True):
        command = command.replace("/wheels", str(wheels)) + f" {more}"
        subprocess.run(["bash", "-c", command], cwd=source, env={**os.environ, "PATH": path}, check=True, capture_output=True, timeout=300)
    (wheel,) = wheels.iterdir()
    assert fnmatch(wheel.name, "eqsat-*.whl")
    onnx.save(TWICE, tmp_path / "a.onnx")
    code = "import sys; from eqsat.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "optimize", "a.onnx", "-o", "-"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed), "HOME": "/nonexistent"},
        capture_output=True,
        timeout=120,
        check=True,
    )
    assert eqsat.count_nodes(onnx.load_model_from_string(done.stdout)) == 1
