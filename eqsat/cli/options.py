"""The options of the command line that come from `Settings`, and the values that options take.

Every setting with an `Option` becomes an option. The given ones come back as keyword arguments of
`Settings`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eqsat.errors import InputError
from eqsat.parameters.byte_size import byte_size
from eqsat.settings import Settings, flag_of, option_of

if TYPE_CHECKING:
    import numpy as np


def size(text: str) -> int:
    """A number of bytes: 4096, 64k, 2M, 1.5GiB."""
    try:
        return byte_size(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def seconds(text: str) -> float:
    """A number of seconds."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds")
    return number


def count(text: str) -> int:
    """A positive number."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number")
    return int(text)


def _dimension(text: str) -> tuple[str, int]:
    name, _, given = text.partition("=")
    if not name or not (given.isascii() and given.isdecimal()) or len(given) > 19:
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form NAME=SIZE")
    return name, int(given)


_FORMS: Mapping[str, Callable[[str], Any]] = {"S": seconds, "N": count, "SIZE": size, "NAME=SIZE": _dimension}
"""By the form of an option's value, the function that reads it. Any other form is a text."""


def add_settings(parser: argparse.ArgumentParser, only: Sequence[str] = ()) -> None:
    """Adds an option for each setting that has one, or for those that `only` names."""
    for setting in fields(Settings):
        option = option_of(setting)
        if option is None or (only and setting.name not in only):
            continue
        flag = flag_of(setting)
        if not option.form and not option.choices:
            parser.add_argument(flag, dest=setting.name, action="store_true", default=None, help=option.help)
            continue
        parser.add_argument(
            flag,
            dest=setting.name,
            metavar=option.form or None,
            type=_FORMS.get(option.form, str),
            choices=option.choices or None,
            action="append" if option.repeats else "store",
            help=option.help + (" (repeatable)" if option.repeats else f" (default: {setting.default})" if option.choices else ""),
        )


def prints_help(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    """Returns the command of a parser that was given no command: it prints the help."""

    def command(options: argparse.Namespace) -> int:
        parser.print_help()
        return 0

    return command


def given_settings(options: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `Settings` that the options give. Raises `InputError` for a value
    that can not be used.
    """
    given: dict[str, Any] = {}
    for setting in fields(Settings):
        value = getattr(options, setting.name, None)
        if value is None or option_of(setting) is None:
            continue
        if setting.name == "inputs":
            value = _load_inputs(value)
        elif setting.name == "rules":
            value = [Path(path) for path in value]
        elif setting.default_factory is not MISSING:
            value = _sizes(flag_of(setting), value)
        elif setting.default is True:
            value = not value
        given[setting.name] = value
    return given


def _load_inputs(path: str) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an .npz file, by name."""
    import numpy as np

    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise InputError(f"{path}: holds one array; inputs are an .npz file with one array for each input")
        with archive:
            members: dict[str, Any] = {name: archive[name] for name in archive.files}
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: can not read it: {error.strerror or error}") from None
    except Exception as error:  # for a damaged file, any of the libraries below numpy may raise
        raise InputError(f"{path}: not an .npz file of plain arrays ({str(error)[:120] or type(error).__name__})") from None
    for name, value in members.items():
        if not isinstance(value, np.ndarray):
            raise InputError(f"{path}: '{name}' is no array; numpy.savez writes such files")
    return members


def _sizes(flag: str, pairs: Sequence[tuple[str, int]]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for name, given in pairs:
        if sizes.setdefault(name, given) != given:
            raise InputError(f"{flag} gives '{name}' two sizes, {sizes[name]} and {given}")
    return sizes
