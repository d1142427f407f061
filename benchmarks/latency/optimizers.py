"""Optimizers: the command of each, and the key of its results.

The key of a result says which optimizer made it: name, version and options. A checkout of eqsat
changes while its version stays, so its key includes a digest of the package's files.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import eqsat
import eqsat.extract
import eqsat.shipped
from benchmarks.latency.peer import PEERS

ORIGINAL = "original"
EQSAT = "eqsat"
CONTROL = "control"  # the original once more; it shows how noisy the times are
AGAINST = (ORIGINAL, *PEERS, EQSAT)


@dataclass(frozen=True)
class Optimizer:
    """An optimizer as a command from one file to another. `key` names a folder."""

    name: str
    key: str
    command: Callable[[Path, Path], list[str]]


def make_optimizer(name: str, options: Sequence[str] = ()) -> Optimizer:
    """Returns the optimizer of this name. `options` go to the command `eqsat optimize`."""
    if name == EQSAT:
        optimize = [sys.executable, "-m", "eqsat", "optimize", "--quiet", *options]
        return Optimizer(
            name,
            f"{name}-{eqsat.__version__}-{_digest(_sources(), *options)}",
            lambda source, target: [*optimize, str(source), "-o", str(target), "--report", str(report_path(target))],
        )
    version = importlib.metadata.version(name)
    return Optimizer(name, f"{name}-{version}", lambda source, target: [sys.executable, "-m", "benchmarks.latency.peer", name, str(source), str(target)])


def report_path(target: Path) -> Path:
    """Returns the path of eqsat's report of a result."""
    return target.with_suffix(".report")


def _sources() -> str:
    """Returns a digest of the files of the package that this process imports and that its command
    runs.
    """
    roots = {Path(eqsat.__file__).resolve().parent, Path(eqsat.extract.__file__).resolve().parent, eqsat.shipped.RULES.resolve()}
    files = [path for root in sorted(roots) for path in sorted(root.rglob("*")) if path.is_file() and path.suffix in (".py", ".rules", ".toml", ".lark")]
    return _digest(*(f"{path.name}:{hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
