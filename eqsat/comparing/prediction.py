"""Prediction: the time that eqsat predicts for a model, by the command `eqsat cost`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from eqsat.comparing.child import Limits, module, run
from eqsat.comparing.optimizers import library_option
from eqsat.errors import InputError
from eqsat.model.prepare import dimension_names
from eqsat.model.sources import read_proto


def predicted(model: Path, sizes: Mapping[str, int], limits: Limits, target: str | None = None, library: Path | None = None) -> float | None:
    """Returns the milliseconds that `eqsat cost` predicts for a model, or None if it fails.

    `sizes` are those of named dimensions. An optimizer may have dropped some of the names.
    `library` has the custom operators of the model.
    """
    try:
        known = dimension_names(read_proto(model))
    except InputError:
        return None
    options = [option for name, size in sizes.items() if name in known for option in ("--assume-dim", f"{name}={size}")]
    options += [] if target is None else ["--target", target]
    options += library_option(library)
    done = run(module("eqsat", "cost", str(model), "--json", *options), limits)
    return None if done.failure else 1000 * json.loads(done.output)["total"]["seconds"]
