"""The cache of variants: what an optimizer made of a model is made once and kept.

A result is the file and its figures as JSON. It lies in a folder for its optimizer's name and
version, under the hash of the model. A failure is kept as well, unless it depends on the machine: a
failure at a limit, or a result that could not be compared.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.inputs import Description
from eqsat.comparing.child import Limits
from eqsat.comparing.making import make_variant, warm_up
from eqsat.comparing.optimizers import Optimizer, report_path
from eqsat.comparing.variant import FAILED, Variant


def kept_variant(model: Path, description: Description, optimizer: Optimizer, cache: Path, limits: Limits) -> Variant:
    """Returns the variant from the cache, or makes it."""
    folder = cache / f"{optimizer.name}-{optimizer.version}"
    if not folder.is_dir():
        warm_up([optimizer], limits)
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(model.read_bytes()).hexdigest()[:16]
    target = folder / f"{digest}.onnx"
    record = target.with_suffix(".json")
    if record.is_file():
        return replace(_read(record), path=str(target) if target.is_file() else "")
    part = folder / f".{digest}.{os.getpid()}.onnx"
    try:
        with tempfile.TemporaryDirectory() as place:
            inputs = Path(place) / "inputs.npz"
            np.savez(inputs, **description.draw())  # pyright: ignore[reportArgumentType]
            made = make_variant(optimizer, model, part, limits, ["--inputs", str(inputs)])
        if made.path:
            part.replace(target)
            made = replace(made, path=str(target))
    finally:
        part.unlink(missing_ok=True)
        report_path(part).unlink(missing_ok=True)
    if made.definite:
        kept = asdict(made)
        del kept["path"]  # the folder may be moved, so no path is stored
        written = part.with_suffix(".part")
        written.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
        written.replace(record)
    return made


def _read(record: Path) -> Variant:
    """Returns a kept variant. Older records have two texts instead of a status with a reason."""
    data: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
    failure, different = data.pop("failure", ""), data.pop("different", "")
    if failure:
        data |= {"status": FAILED, "reason": failure}
    elif different:
        status, _, reason = different.partition(": ")
        data |= {"status": status, "reason": reason}
    return Variant(**data)
