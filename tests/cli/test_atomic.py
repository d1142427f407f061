"""A process that is killed at any moment leaves the old output or the new one, never half of either.

The moments that matter are those of the writing. One process optimizes; each of its forks writes
the result, and is killed at another time of that.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.support.models import parse

CASES = [  # how many elements, external data or not, and how many writers are killed
    pytest.param(1_000_000, False, 4, id="embedded, some"),
    pytest.param(3_000_000, False, 30, id="embedded", marks=[pytest.mark.slow]),
    pytest.param(3_000_000, True, 30, id="external", marks=[pytest.mark.slow]),
]

# Writes the result to a first place and says how long that took. Then, for each line that it reads,
# a fork writes it to the output until it is killed after so many seconds; the answer is how that
# ended.
WRITER = """
import os, signal, sys, time
import eqsat
source, first, output = sys.argv[1:]
result = eqsat.optimize(source, verify=False, target="launches")
started = time.monotonic()
result.save(first)
print(time.monotonic() - started, flush=True)
for line in sys.stdin:
    writer = os.fork()
    if not writer:
        result.save(output)
        os._exit(0)
    time.sleep(float(line))
    os.kill(writer, signal.SIGKILL)
    print(os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1]), flush=True)
"""


def make_model(value: float, elements: int, path: Path, external: bool) -> Path:
    """Returns a model that adds so many elements of one value to its input."""
    model = parse("g (float[1] x) => (float[n] y) { a = Add (x, w)  b = Add (x, w)  y = Max (a, b) }")
    model.graph.initializer.append(numpy_helper.from_array(np.full(elements, value, np.float32), "w"))
    onnx.save(model, path, save_as_external_data=external, location=f"{path.name}.data", size_threshold=0)
    return path


def command(source: Path, output: Path) -> list[str]:
    return [sys.executable, "-m", "eqsat", "optimize", str(source), "-o", str(output), "--quiet", "--no-verify", "--target", "launches"]


def content(path: Path) -> str:
    """Returns a digest of all weights of the model at the path."""
    (tensor,) = onnx.load(path).graph.initializer
    return hashlib.sha256(numpy_helper.to_array(tensor).tobytes()).hexdigest()


@pytest.fixture
def output(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "m.onnx"


@pytest.mark.parametrize(("elements", "external", "kills"), CASES)
def test_a_killed_writer_leaves_the_old_or_the_new_output(elements: int, external: bool, kills: int, tmp_path: Path, output: Path) -> None:
    old, new = (make_model(value, elements, tmp_path / "in" / f"{value}.onnx", external) for value in (1.0, 2.0))
    subprocess.run(command(old, output), check=True)
    shutil.copytree(tmp_path / "out", tmp_path / "kept")
    (tmp_path / "first").mkdir()
    first = tmp_path / "first" / "m.onnx"
    ends: list[int] = []
    writers = [sys.executable, "-c", WRITER, str(new), str(first), str(output)]
    with subprocess.Popen(writers, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        duration = float(process.stdout.readline())
        contents = [content(output), content(first)]
        assert contents == [content(old), content(new)] and len(set(contents)) == 2
        for kill in range(kills):
            print(duration * 1.2 * (kill + 0.5) / kills, file=process.stdin, flush=True)
            ends.append(int(process.stdout.readline()))
            assert content(output) in contents
            shutil.rmtree(tmp_path / "out")
            shutil.copytree(tmp_path / "kept", tmp_path / "out")
        process.stdin.close()
    assert -9 in ends


def test_a_killed_command_leaves_the_old_or_the_new_output(tmp_path: Path, output: Path) -> None:
    old, new = (make_model(value, 1_000_000, tmp_path / "in" / f"{value}.onnx", False) for value in (1.0, 2.0))
    started = time.monotonic()
    subprocess.run(command(new, output), check=True)
    duration = time.monotonic() - started
    os.replace(old, output)
    contents = {content(output), content(new)}
    process = subprocess.Popen(command(new, output))
    time.sleep(0.8 * duration)
    process.kill()
    process.wait()
    assert content(output) in contents
