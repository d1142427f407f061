"""Standard input and output as models: `-` in place of a file."""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eqsat.errors import InputError

if TYPE_CHECKING:
    import onnx

STANDARD = "-"


def source_of(text: str) -> Any:
    """Returns the model that an argument names: a path as it is, and for `-` the message that
    standard input holds.
    """
    if text != STANDARD:
        return text
    if sys.stdin is None or sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison]
        raise InputError("standard input is no file; '-' reads a model from it: eqsat optimize - < model.onnx > small.onnx")
    from eqsat.model.sources import parse_proto

    return parse_proto(sys.stdin.buffer.read(), "standard input")


def once(texts: list[str]) -> None:
    """Raises `InputError` if more than one of the arguments is standard input."""
    if texts.count(STANDARD) > 1:
        raise InputError("standard input can be only one of the models")


class _Results(io.FileIO):
    """Standard output, which raises `InputError` where its device is full."""

    def write(self, b: Any, /) -> int | None:
        try:
            return super().write(b)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            _discard(self.fileno())  # as `abandon_results` does
            raise InputError("standard output: no space left on the device") from None


def results_alone() -> None:
    """Keeps standard output for `sys.stdout`: other writers of the process lose theirs. onnx's checker prints
    a warning there for each model with an operator of its early drafts, which would spoil a report or a
    model.
    """
    results = sys.stdout
    if results is not sys.__stdout__ or results is None:
        return  # somebody captures it, or there is none
    raw = _Results(os.dup(results.fileno()), "w")
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(raw), results.encoding, results.errors, line_buffering=results.isatty())
    _discard(results.fileno())


def abandon_results() -> None:
    """Ends with the results that standard output could not take: the interpreter would write them once
    more at its end, and complain.
    """
    _discard(sys.stdout.fileno())


def _discard(descriptor: int) -> None:
    """Sends to nowhere all that a descriptor is given from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def check_output() -> None:
    """Raises `InputError` where the bytes of a model would go to a terminal."""
    if sys.stdout.isatty():
        raise InputError("standard output is a terminal; redirect it, or give a file: -o FILE")


def check_file(path: Path) -> None:
    """Raises `InputError` where no file can be written, before a command begins."""
    if path.is_dir() or not path.name:
        raise InputError(f"{path}: is a folder, not a file to write")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent}: no such folder")


def print_model(model: onnx.ModelProto) -> None:
    """Writes the bytes of a model to standard output, and nothing else."""
    from eqsat.model.write import serialized

    sys.stdout.buffer.write(serialized(model, "standard output"))
    sys.stdout.buffer.flush()
