"""Optimizers of the benchmark: those of `eqsat compare`, with a version that names their results.

A checkout of eqsat changes while its version stays, so its version here includes a digest of the
package's files and of the options.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import eqsat
import eqsat.extract
import eqsat.shipped
from eqsat.comparing.optimizers import EQSAT, NAMES, ORIGINAL, Optimizer, make_optimizer

CONTROL = "control"  # the original once more; it shows how noisy the times are
KNOWN = (ORIGINAL, *NAMES)
AGAINST = (ORIGINAL, "onnxsim", "onnxslim", "onnxscript", EQSAT)
"""The optimizers that are compared unless others are named."""


def chosen_optimizers(names: str, options: Sequence[str]) -> list[Optimizer]:
    """Returns the optimizers of a list of names, in its order. Raises ValueError for an unknown
    name.
    """
    found: list[Optimizer] = []
    for name in names.split(","):
        if name not in KNOWN:
            raise ValueError(f"no optimizer is called {name!r}; there are {', '.join(KNOWN)}")
        if name != ORIGINAL:
            found.append(_with_exact_version(make_optimizer(name, options), options))
            if not found[-1].version:
                raise ValueError(f"{name} is not installed; install the extra: pip install -e '.[compare]'")
    if options and EQSAT not in names.split(","):
        raise ValueError("--eqsat has options, but eqsat is not compared")
    return found


def _with_exact_version(optimizer: Optimizer, options: Sequence[str]) -> Optimizer:
    if optimizer.name != EQSAT:
        return optimizer
    return replace(optimizer, version=f"{optimizer.version}-{_digest(_sources(), *options)}")


def _sources() -> str:
    """Returns a digest of the files of the package that this process imports and that its command
    runs.
    """
    roots = {Path(eqsat.__file__).resolve().parent, Path(eqsat.extract.__file__).resolve().parent, eqsat.shipped.RULES.resolve()}
    files = [path for root in sorted(roots) for path in sorted(root.rglob("*")) if path.is_file() and path.suffix in (".py", ".rules", ".toml", ".lark")]
    return _digest(*(f"{path.name}:{hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
