"""Making: lets an optimizer make its form of a model, and verifies it.

The optimizer runs in a process of its own, and so does `eqsat verify`, which judges all results in
the same way. Whatever the optimizer does, the result is a `Variant`.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from eqsat.comparing.child import Done, Limits, module, one_line, run
from eqsat.comparing.optimizers import EQSAT, ORIGINAL, REMEDY, Optimizer, report_path
from eqsat.comparing.variant import FAILED, MISSING, STOPPED, UNCHECKED, Variant
from eqsat.errors import InputError
from eqsat.model.external_data import has_external_data
from eqsat.model.file_bytes import model_bytes
from eqsat.model.model import count_nodes, count_operators
from eqsat.model.sources import load, read_proto
from eqsat.model.write import save

_CALLERS_FAULT = 2  # the exit code of eqsat for a model that it cannot read
_COMPLAINT = "eqsat: error: "
_LONGEST_START = 60.0  # seconds for a model of one node


def as_it_is(model: Path, name: str = ORIGINAL) -> Variant:
    """Returns a model that no optimizer made. Raises `InputError` if it is not a model."""
    return _described(Variant(name, str(model)), model)


def make_variant(optimizer: Optimizer, source: Path, target: Path, limits: Limits, verification: Sequence[str] = ()) -> Variant:
    """Returns what an optimizer makes of a model, in the file `target`, and whether it is right.

    `verification` is options of `eqsat verify`. A result that cannot be read is removed.
    """
    if not optimizer.version:
        return Variant(optimizer.name, status=MISSING, reason=REMEDY)
    done = _optimized(optimizer, source, target, limits)
    made = Variant(optimizer.name, "", 0, done.cpu_seconds, wall_seconds=done.wall_seconds, peak_bytes=done.peak_bytes)
    if done.failure:
        return replace(made, status=STOPPED if done.stopped else FAILED, reason=done.failure.removeprefix(_COMPLAINT))
    if not target.is_file():
        return replace(made, status=FAILED, reason="it wrote no file")
    try:
        made = verified(_described(replace(made, path=str(target), stages=_stages(optimizer, target)), target), source, limits, verification)
    except InputError as error:
        made = _unreadable(replace(made, path=str(target)), str(error))
    if not made.path:
        target.unlink()
    return made


def verified(made: Variant, original: Path, limits: Limits, verification: Sequence[str] = ()) -> Variant:
    """Returns the variant with the verdict of `eqsat verify` under the options `verification`."""
    done = run(module("eqsat", "verify", str(original), made.path, "--json", *verification), limits)
    if done.code == _CALLERS_FAULT:
        return _unreadable(made, done.failure.removeprefix(_COMPLAINT))
    try:
        verdict: dict[str, Any] = json.loads(done.output)
    except ValueError:
        return replace(made, status=UNCHECKED, reason=f"verification failed: {done.failure or 'no verdict'}")
    reason = one_line(verdict["reason"] or verdict["output"])
    return replace(made, status=verdict["status"], reason=reason)


def warm_up(optimizers: Iterable[Optimizer], limits: Limits) -> None:
    """Lets each optimizer fill its own caches on a model of one node, so that no measured run fills
    them.
    """
    graph = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }')
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "relu.onnx"
        source.write_bytes(graph.SerializeToString())
        for optimizer in optimizers:
            if optimizer.version:
                _optimized(optimizer, source, Path(folder) / f"{optimizer.name}.onnx", replace(limits, seconds=min(limits.seconds, _LONGEST_START)))


def _optimized(optimizer: Optimizer, source: Path, target: Path, limits: Limits) -> Done:
    """Runs an optimizer on a copy of the model, so that none can change the user's file or the
    other optimizers' input. Files that it leaves in the temporary folder are removed.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        own = _copied(source, Path(scratch))
        command = optimizer.command(own, target.absolute())
        return run(command, limits, environment={"TMPDIR": scratch}, folder=None if optimizer.at_home else Path(scratch))


def _copied(source: Path, folder: Path) -> Path:
    """Copies a model, with its external data, into a folder. Returns its path there."""
    target = folder / source.name
    proto, home = load(source)
    if has_external_data(proto):
        save(proto, home, target, None, True)
    else:
        shutil.copyfile(source, target)
    return target


def _described(made: Variant, path: Path) -> Variant:
    """Returns the variant with the figures of its file. Raises `InputError` if it is not a model."""
    proto = read_proto(path)
    return replace(made, nodes=count_nodes(proto), bytes=model_bytes(proto), operators=dict(count_operators(proto).most_common()))


def _unreadable(made: Variant, reason: str) -> Variant:
    return replace(made, path="", status=FAILED, reason=one_line(f"no valid model: {reason.removeprefix(f'{made.path}: ')}"))


def _stages(optimizer: Optimizer, target: Path) -> dict[str, float]:
    """Returns the seconds of each stage in eqsat's report; others have none."""
    return json.loads(report_path(target).read_text(encoding="utf-8"))["seconds"] if optimizer.name == EQSAT else {}
