"""The files that `eqsat optimize` writes, and checks of them before anything runs.

The input is the parsed command line, the output a `Destination` for each model. No run writes a
file twice, or over a file that it reads; only a model may be replaced by its own result.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from eqsat.cli.report_files import is_page
from eqsat.cli.streams import STANDARD, check_output, once
from eqsat.errors import InputError
from eqsat.frozen import frozen
from eqsat.model import file_kinds


@frozen
class Destination:
    """A model, and the file of its result."""

    model: str
    """The path of the model; `-` is standard input."""
    result: Path | None
    """Where its result goes; None is standard output."""

    @property
    def shown(self) -> str:
        """The name of the result in a report."""
        return STANDARD if self.result is None else str(self.result)


def destinations(options: argparse.Namespace) -> list[Destination]:
    """Returns the models of a command line with the files of their results.

    Raises `InputError` if a file cannot be written, or would overwrite another one.
    """
    once(options.models)
    found = [Destination(model, _result(model, options)) for model in options.models]
    if any(destination.result is None for destination in found):
        check_output()
    if len(found) > 1 and options.dump_egraph:
        raise InputError("--dump-egraph writes the e-graph of one model; several were given")
    if len(found) > 1 and (pages := [path for path in options.report if is_page(Path(path))]):
        raise InputError(f"{pages[0]}: a page shows one model; several were given, so the report is JSON")
    if len(found) == 1 and options.models[0] != STANDARD:
        _check_model(options.models[0])
    for destination in found:
        # A model that is not there is reported as such, in its turn.
        if destination.result is not None and (options.output is not None or Path(destination.model).is_file()):
            _check_place(destination.result, options)
            _check_replaced(destination.result)
    for _, path in _extra_files(options):
        _check_place(path, options)
    if options.dump_egraph:
        _check_replaced(Path(options.dump_egraph))
    _keep_apart(options, found)
    return found


def _check_model(model: str) -> None:
    """Raises `InputError` for a model that is no file, before other mistakes are named."""
    if (line := file_kinds.address(model)) is not None:
        raise InputError(line)
    if os.path.isdir(model):
        raise InputError(file_kinds.folder(Path(model)))
    if not os.path.exists(model):
        raise InputError(f"{model or repr(model)}: no such file")


def _check_place(path: Path, options: argparse.Namespace) -> None:
    """Raises `InputError` if no file can be written at a path."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder, not a file to write; '{path}/' writes into it")
    parent = path.parent.parent if _into_folder(options) and path.parent == Path(options.output) else path.parent
    if not parent.is_dir():
        raise InputError(f"{parent}: no such folder")


def _check_replaced(path: Path) -> None:
    """Raises `InputError` if no file can take the place of a path as a whole."""
    if (line := file_kinds.irregular(path)) is not None:
        raise InputError(line)
    # A folder of results that is not there yet is made later.
    shown = path.parent if path.parent.is_dir() else path.parent.parent
    if not os.access(_real(path).parent if path.is_symlink() else shown, os.W_OK):
        raise InputError(f"{path}: can not write it: no permission to write in the folder {shown}")


def make_folder(options: argparse.Namespace) -> None:
    """Makes the folder of the results if it is not there."""
    if _into_folder(options):
        try:
            Path(options.output).mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"{options.output}: can not make the folder: {error.strerror}") from None


def _into_folder(options: argparse.Namespace) -> bool:
    return bool(options.output) and options.output != STANDARD and (len(options.models) > 1 or options.output.endswith("/"))


def _result(model: str, options: argparse.Namespace) -> Path | None:
    """Returns the file of a model's result. It is checked later."""
    if options.in_place:
        if options.output is not None or model == STANDARD:
            raise InputError("--in-place replaces each model by its result; it goes with no -o and no '-'")
        if Path(model).suffix in file_kinds.TEXT_FORMATS:
            raise InputError(f"{model}: is a text, and results are binary; --in-place would change its format")
        return Path(model)
    if options.output is None:
        return None if model == STANDARD else Path(model).with_suffix(".opt.onnx") if Path(model).name else Path(model)
    if not options.output:
        raise InputError("-o is empty; give a file, a folder with '/' at its end, or '-'")
    if options.output == STANDARD:
        if len(options.models) > 1:
            raise InputError("standard output takes the result of one model; several were given: -o DIR/")
        return None
    if not _into_folder(options):
        return Path(options.output)
    if Path(options.output).suffix == ".onnx" and not options.output.endswith("/") and not Path(options.output).exists():
        raise InputError(f"{options.output}: several models were given, and their results go into a folder: -o DIR/")
    if Path(options.output).exists() and not Path(options.output).is_dir():
        raise InputError(f"{options.output}: is a file; the results of several models go into a folder")
    return Path(options.output) / ("model.onnx" if model == STANDARD else Path(model).with_suffix(".onnx").name if Path(model).name else model)


def _extra_files(options: argparse.Namespace) -> list[tuple[str, Path]]:
    """Returns the other files that a run writes, each with its purpose."""
    asked = [("the report", path) for path in options.report] + [("the e-graph", options.dump_egraph)]
    return [(what, Path(path)) for what, path in asked if path]


def _keep_apart(options: argparse.Namespace, found: list[Destination]) -> None:
    # By file, its purpose, and the model that it belongs to.
    kept: dict[Path, tuple[str, str]] = {}
    for what, path in _read_files(options, found):
        kept.setdefault(_real(path), (what, ""))
    for destination in found:
        _claim(kept, destination.result, "the result", destination.model)
    for what, path in _extra_files(options):
        _claim(kept, path, what, "")


def _read_files(options: argparse.Namespace, found: list[Destination]) -> Iterator[tuple[str, Path]]:
    for destination in found:
        if destination.model != STANDARD:
            yield "the model", Path(destination.model)
    for what, path in (("the inputs", options.inputs), ("the library of custom operators", options.custom_op_library)):
        if path:
            yield what, Path(path)


def _claim(kept: dict[Path, tuple[str, str]], path: Path | None, what: str, model: str) -> None:
    """Notes that a file is written. `model` is the one that the file may replace."""
    if path is None:
        return
    before, of = kept.get(_real(path), ("", ""))
    own = before == "the model" and model and _real(Path(model)) == _real(path)
    if before and not own:
        both = f"{what} of {model} would overwrite {before} of {of}" if model and before == "the result" else f"{what} would overwrite {before}"
        raise InputError(f"{path}: {both}")
    kept[_real(path)] = (what, model)


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):  # a circle of links, or a name that no file can have
        return path
