"""Variants: the forms of a model that optimizers make, each made once and kept.

A result is the file and its figures as JSON. It lies in a folder for its optimizer's key, under the
hash of the model. A failure is kept as well, unless it depends on the machine: a failure at the
time limit, or a result that could not be compared.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import onnx

from benchmarks.inputs import Description
from benchmarks.latency.child import run
from benchmarks.latency.optimizers import ORIGINAL, Optimizer, report_path
from eqsat import count_nodes

DIFFERENT = "different"  # the verdict of `eqsat verify`


@dataclass(frozen=True)
class Variant:
    """A model as an optimizer left it. Without a `path`, `failure` is the reason.

    `nodes` counts no constants. `different` is empty if the variant computes the same as the
    original up to float rounding, and otherwise the reason, both according to `eqsat verify`.
    `stages` are the seconds of the stages named in eqsat's report.
    """

    name: str
    path: str = ""
    nodes: int = 0
    cpu_seconds: float = 0.0
    failure: str = ""
    different: str = ""
    stages: Mapping[str, float] = field(default_factory=dict[str, float])


def the_original(model: Path) -> Variant:
    return Variant(ORIGINAL, str(model), _nodes(model))


def make_variant(model: Path, description: Description, optimizer: Optimizer, cache: Path, time_limit: float) -> Variant:
    """Returns the variant from the cache, or makes it."""
    folder = cache / optimizer.key
    if not folder.is_dir():
        _warm_up(optimizer, time_limit)
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(model.read_bytes()).hexdigest()[:16]
    target = folder / f"{digest}.onnx"
    record = target.with_suffix(".json")
    if record.is_file():
        return Variant(**json.loads(record.read_text(encoding="utf-8")), path=str(target) if target.is_file() else "")
    part = folder / f".{digest}.{os.getpid()}.onnx"
    try:
        done = run(optimizer.command(model, part), time_limit)
        definite = not done.timed_out
        if not done.failure and not part.is_file():
            made = Variant(optimizer.name, cpu_seconds=done.cpu_seconds, failure="it wrote no file")
        elif done.failure:
            made = Variant(optimizer.name, cpu_seconds=done.cpu_seconds, failure=done.failure)
        else:
            different = _difference(model, part, description, time_limit)
            definite = not different or different.startswith(DIFFERENT)
            made = Variant(optimizer.name, str(target), _nodes(part), done.cpu_seconds, different=different, stages=_stages(report_path(part)))
            part.replace(target)
    finally:
        part.unlink(missing_ok=True)
        report_path(part).unlink(missing_ok=True)
    if definite:
        kept = asdict(made)
        del kept["path"]  # the folder may be moved, so no path is stored
        written = part.with_suffix(".part")
        written.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
        written.replace(record)
    return made


def _nodes(model: Path) -> int:
    return count_nodes(onnx.load_from_string(model.read_bytes()))


def _stages(report: Path) -> dict[str, float]:
    """Returns the seconds of each stage in a report, or none if the optimizer writes no report."""
    return json.loads(report.read_text(encoding="utf-8"))["seconds"] if report.is_file() else {}


def _warm_up(optimizer: Optimizer, time_limit: float) -> None:
    """Lets the optimizer fill its own caches on a model of one node, so that no measured run fills
    them.
    """
    graph = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }')
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "relu.onnx"
        source.write_bytes(graph.SerializeToString())
        run(optimizer.command(source, Path(folder) / "out.onnx"), time_limit)


def _difference(model: Path, variant: Path, description: Description, time_limit: float) -> str:
    """Returns why the variant does not compute the same on the described inputs, or "" if it does."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder) / "inputs.npz"
        np.savez(inputs, **description.draw())  # pyright: ignore[reportArgumentType]
        done = run([sys.executable, "-m", "eqsat", "verify", str(model), str(variant), "--inputs", str(inputs), "--json"], time_limit)
    try:
        verdict = json.loads(done.output)
    except ValueError:
        return f"not compared: {done.failure or 'no verdict'}"
    return "" if verdict["status"] == "equal" else f"{verdict['status']}: {verdict['reason'] or verdict['output']}"
