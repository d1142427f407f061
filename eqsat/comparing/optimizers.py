"""Optimizers: the command of each, and how to install it.

An optimizer is a command from one file to another: a peer, eqsat itself, or a command of the user.
"""

from __future__ import annotations

import importlib.metadata
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eqsat.comparing.child import module
from eqsat.errors import InputError
from eqsat.version import __version__

ORIGINAL = "original"
EQSAT = "eqsat"

PACKAGES: Mapping[str, str] = {
    "onnxsim": "onnxsim",
    "onnxslim": "onnxslim",
    "onnxoptimizer": "onnxoptimizer",
    "onnxscript": "onnxscript",
    "ort-basic": "onnxruntime",
    "ort-extended": "onnxruntime",
}
"""The package of each peer. The last two are levels of ONNX Runtime's own optimizations."""

NAMES = (*PACKAGES, EQSAT)
REMEDY = "not installed; install the peers: pip install 'eqsat[compare]'"


@dataclass(frozen=True)
class Optimizer:
    """An optimizer as a command from one file to another. Without a `version`, it is not installed.

    The command of one that is `at_home` may name files by the caller's folder, so it runs there.
    Others run in an empty folder.
    """

    name: str
    version: str
    command: Callable[[Path, Path], list[str]]
    at_home: bool = False


def make_optimizer(name: str, options: Sequence[str] = (), library: Path | None = None) -> Optimizer:
    """Returns the optimizer of this name. `options` go to the command `eqsat optimize`. Those that
    run models load the `library` of custom operators.
    """
    if name == EQSAT:
        optimize = module("eqsat", "optimize", "--quiet", *library_option(library), *options)
        return Optimizer(name, __version__, lambda source, target: [*optimize, str(source), "-o", str(target), "--report", str(report_path(target))], True)
    peer = module("eqsat.comparing.peer", name)
    more = [] if library is None else [str(library.absolute())]
    return Optimizer(name, installed_version(PACKAGES[name]), lambda source, target: [*peer, str(source), str(target), *more])


def library_option(library: Path | None) -> list[str]:
    """Returns the option of eqsat's commands that names a library of custom operators."""
    return [] if library is None else ["--custom-op-library", str(library.absolute())]


def promise_option(no_empty_inputs: bool) -> list[str]:
    """Returns the option of eqsat's commands that promises inputs which are not empty."""
    return ["--no-empty-inputs"] if no_empty_inputs else []


def report_path(target: Path) -> Path:
    """Returns the path of eqsat's report of a result."""
    return target.with_suffix(".report")


def installed_version(package: str) -> str:
    """Returns the version of a package, or "" if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def chosen_optimizers(
    names: str | None, own: Mapping[str, str], options: Sequence[str], library: Path | None = None, no_empty_inputs: bool = False
) -> list[Optimizer]:
    """Returns the optimizers of a list of names, in its order. By default these are the installed
    ones and the user's `own`, whose commands have `{input}` and `{output}`. eqsat may rely on
    `no_empty_inputs`.

    Raises `InputError` for an unknown name or a wrong command.
    """
    mine = {name: _own_optimizer(name, command) for name, command in own.items()}
    known = (*NAMES, *mine)
    wanted = known if names is None else [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in known:
            raise InputError(f"no optimizer is called '{name}'; there are {', '.join(known)}")
    found = [mine[name] if name in mine else make_optimizer(name, [*options, *promise_option(no_empty_inputs)], library) for name in dict.fromkeys(wanted)]
    if options and EQSAT not in wanted:
        raise InputError("--eqsat has options, but eqsat is not compared")
    return [optimizer for optimizer in found if names is not None or optimizer.version]


def left_out(chosen: Sequence[Optimizer], names: str | None) -> list[str]:
    """Returns the peers that are left out because they are not installed."""
    return [] if names is not None else [name for name in NAMES if name not in {optimizer.name for optimizer in chosen}]


def _own_optimizer(name: str, command: str) -> Optimizer:
    if name in (ORIGINAL, *NAMES) or not name.replace("-", "").replace("_", "").replace(".", "").isalnum() or name.startswith("."):
        raise InputError(f"--peer '{name}': an optimizer of yours needs a name of its own, of letters, digits, '-', '_' and '.'")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"--peer {name}: '{command}' is no command: {error}") from None
    if not all(any(place in word for word in words) for place in ("{input}", "{output}")):
        raise InputError(f"--peer {name}: the command has to name both files, as in {name}='tool {{input}} {{output}}'")
    return Optimizer(name, "yours", lambda source, target: [word.replace("{input}", str(source)).replace("{output}", str(target)) for word in words], True)
