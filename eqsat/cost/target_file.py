"""The keys of a target's file and what each may hold.

`check_tables` takes the tables as TOML gives them. It raises `InputError` for the first error: one
line with the file, the key, the problem and what is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from onnx import TensorProto

from eqsat.contributed import DOMAINS
from eqsat.cost.fusion import CONDITIONS
from eqsat.cost.kinds import KINDS
from eqsat.errors import InputError
from eqsat.shipped import SELDOM
from eqsat.spelling.definitions import DEFINED

DTYPES: Final = {name.lower(): int(number) for name, number in TensorProto.DataType.items() if name != "UNDEFINED"}
"""The data types by their names in ONNX text."""

_BEYOND = 10**300  # integers from here on are no floats, but TOML may contain them

# A check takes a value, its key and the file, and raises InputError if the value is not allowed.
Check: TypeAlias = Callable[[Any, str, Path], None]


def _wrong(path: Path, key: str, value: object, allowed: str) -> InputError:
    shown = repr(value)
    return InputError(f"{path}: {key}: {shown if len(shown) <= 60 else shown[:57] + '...'} is not allowed there; it must be {allowed}")


def _number(allowed: str, above: float = 0.0, equal: bool = True, whole: bool = False, infinite: bool = False) -> Check:
    def check(value: Any, key: str, path: Path) -> None:
        fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool) and (isinstance(value, float) or abs(value) < _BEYOND)
        if not fits or math.isnan(value) or (math.isinf(value) and not infinite) or not (value >= above if equal else value > above):
            raise _wrong(path, key, value, allowed)

    return check


def _kind(kind: type, allowed: str) -> Check:
    def check(value: Any, key: str, path: Path) -> None:
        if not isinstance(value, kind):
            raise _wrong(path, key, value, allowed)

    return check


def _one_of(names: Mapping[str, object] | tuple[str, ...], what: str) -> Check:
    def check(value: Any, key: str, path: Path) -> None:
        if not isinstance(value, str) or value not in names:
            raise _wrong(path, key, value, f"{what}: {', '.join(sorted(names))}")

    return check


def _list(inner: Check, allowed: str) -> Check:
    def check(value: Any, key: str, path: Path) -> None:
        if not isinstance(value, list) or not value:
            raise _wrong(path, key, cast(object, value), allowed)
        for index, item in enumerate(cast(list[Any], value)):
            inner(item, f"{key}[{index}]", path)

    return check


def _table(keys: Mapping[str, Check], required: tuple[str, ...] = ()) -> Check:
    def check(value: Any, key: str, path: Path) -> None:
        if not isinstance(value, dict):
            raise _wrong(path, key, value, "a table")
        table = cast(dict[str, Any], value)
        prefix = f"{key}." if key else ""
        for name, item in table.items():
            if name not in keys:
                raise InputError(f"{path}: {prefix}{name}: there is no such key; allowed are {', '.join(sorted(keys))}")
            keys[name](item, prefix + name, path)
        for name in required:
            if name not in table:
                raise InputError(f"{path}: {prefix}{name}: is missing")

    return check


def _tables(inner: Check, names: tuple[str, ...] | None = None) -> Check:
    def check(value: Any, key: str, path: Path) -> None:
        if not isinstance(value, dict):
            raise _wrong(path, key, value, "a table")
        table = cast(dict[str, Any], value)
        for name, item in table.items():
            if names is not None and name not in names:
                raise InputError(f"{path}: {key}.{name}: there is no such class; allowed are {', '.join(names)}")
            inner(item, f"{key}.{name}", path)

    return check


def _missing(value: Any, key: str, path: Path) -> None:
    if not isinstance(value, bool):
        _list(_one_of(DTYPES, "a data type"), "true, false, or a list of data types")(value, key, path)


def _levels(value: Any, key: str, path: Path) -> None:
    _list(_table({"bytes": _POSITIVE, "rate": _POSITIVE}, ("bytes", "rate")), "a list of tables with bytes and rate")(value, key, path)
    size = seconds = 0.0
    for index, level in enumerate(value):
        if level["bytes"] <= size or level["bytes"] / level["rate"] <= seconds:
            raise InputError(f"{path}: {key}[{index}]: more bytes must take more time; sort the levels by bytes, and lower the rate")
        size, seconds = level["bytes"], level["bytes"] / level["rate"]


_SECONDS = _number("a number of seconds, 0 or more")
_POSITIVE = _number("a number above 0", equal=False)
_THROUGHPUT = _number("a number above 0, or inf", equal=False, infinite=True)
_COUNT = _number("a whole number, 0 or more", whole=True)
_SIZE = _number("a whole number, 1 or more", above=1, whole=True)
_TEXT = _kind(str, "text")
_NAMES = _list(_TEXT, "a list of operators")
_SHARES = _list(_POSITIVE, "a list of positive numbers")
_RELATIVE = _table(dict.fromkeys(DTYPES, _POSITIVE))

RATES: Final[dict[str, Check]] = {
    "launches": _COUNT,
    "launch": _SECONDS,
    "throughput": _THROUGHPUT,
    "per_element": _SECONDS,
    "per_row": _SECONDS,
    "per_weight": _SECONDS,
    "per_cold_weight": _SECONDS,
    "columns": _SIZE,
    "depth": _COUNT,
    "bandwidth": _POSITIVE,
    "relative": _RELATIVE,
}
"""The rates that a class may have. An operator may have them in place of its class."""

_OPERATOR: Final[dict[str, Check]] = {
    **RATES,
    "class": _one_of(KINDS, "a class"),
    "operations": _number("a number of operations for each element, 0 or more"),
    "missing": _missing,
    "missing_from": _SIZE,
    "expanded": _table({"version": _SIZE, "launches": _COUNT, "relative": _POSITIVE, "moved": _SHARES}, ("version", "launches", "relative")),
    "classes": _tables(_table(RATES), KINDS),
    "later": _table({"version": _SIZE, **RATES}, ("version",)),
}
_FUSION: Final[dict[str, Check]] = {
    "first": _NAMES,
    "second": _NAMES,
    "becomes": _TEXT,
    "where": _list(_one_of(CONDITIONS, "a condition"), "a list of conditions"),
}
_EIGHT_BITS: Final = _list(_one_of(("int8", "uint8"), "a data type of 8 bits"), "a list of data types")
_QUANTIZED: Final[dict[str, Check]] = {"operators": _NAMES, "becomes": _TEXT, "dtypes": _EIGHT_BITS, "weights": _EIGHT_BITS, "floats": _TEXT}

_FILE = _table(
    {
        "about": _TEXT,
        "base": _TEXT,
        "runtime": _TEXT,
        "launch": _SECONDS,
        "change": _SECONDS,
        "cache": _POSITIVE,
        "subnormal": _SECONDS,
        "layouts": _kind(bool, "true or false"),
        "launch_bound": _kind(bool, "true or false"),
        "bandwidth": _levels,
        "relative": _RELATIVE,
        "blocked": _table(
            {"block": _SIZE, "multiple": _SIZE, "dtypes": _list(_one_of(DTYPES, "a data type"), "a list of data types")}, ("block", "multiple", "dtypes")
        ),
        "classes": _tables(_table(RATES), KINDS),
        "operators": _tables(_table(_OPERATOR)),
        "leaves_out": _list(_TEXT, "a list of groups of rules"),
        "hides_softmax": _list(_TEXT, "a list of groups of rules"),
        "takes_in": _list(_one_of(SELDOM, "a group of rules for few targets"), "a list of groups of rules"),
        "latest": _SIZE,
        "domains": _list(_one_of(DOMAINS, "a domain"), "a list of domains"),
        "assembles": _list(_one_of(DEFINED, "an operator with a definition"), "a list of operators"),
        "fusions": _list(_table(_FUSION, ("first", "second", "becomes")), "a list of tables"),
        "quantized": _list(_table(_QUANTIZED, ("operators", "becomes", "dtypes")), "a list of tables"),
    }
)


def check_tables(tables: Mapping[str, Any], path: Path) -> None:
    """Raises `InputError` if a key is unknown, a value is not allowed, or a part is missing."""
    _FILE(dict(tables), "", path)
