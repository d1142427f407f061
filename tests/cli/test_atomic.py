"""A process killed at any moment leaves the old output or the new one, never half of either."""

import hashlib
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

CASES = [  # the number of elements, external data or not, and the number of kills
    pytest.param(1_000_000, False, 1, id="embedded, once"),
    pytest.param(8_000_000, False, 12, id="embedded", marks=[pytest.mark.slow]),
    pytest.param(8_000_000, True, 12, id="external", marks=[pytest.mark.slow]),
]


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


@pytest.mark.parametrize(("elements", "external", "kills"), CASES)
def test_kill_leaves_the_old_or_the_new_output(elements: int, external: bool, kills: int, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    old, new = (make_model(value, elements, tmp_path / "in" / f"{value}.onnx", external) for value in (1.0, 2.0))
    output = tmp_path / "out" / "m.onnx"

    started = time.monotonic()
    subprocess.run(command(new, output), check=True)
    duration = time.monotonic() - started
    subprocess.run(command(old, output), check=True)
    contents = {content(old), content(new)}
    assert len(contents) == 2
    assert content(output) == content(old)
    shutil.copytree(tmp_path / "out", tmp_path / "kept")

    for kill in range(kills):
        # A run writes its files at its end.
        process = subprocess.Popen(command(new, output))
        time.sleep(duration * (0.5 + 0.6 * (kill + 0.5) / kills))
        process.kill()
        process.wait()
        assert content(output) in contents
        shutil.rmtree(tmp_path / "out")
        shutil.copytree(tmp_path / "kept", tmp_path / "out")
