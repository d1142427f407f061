"""The kinds of values that arguments of public functions may have.

Each function takes the name of an argument and its value, and returns the value in one form: one
string where a list belongs is a list of one. Any other type is an `InputError` that names the
argument, the type it has and the type it should have.
"""

from __future__ import annotations

import math
import numbers
import operator
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from eqsat.errors import InputError
from eqsat.parameters.byte_size import LARGEST_SIZE, byte_size

if TYPE_CHECKING:
    import numpy as np

One = TypeVar("One")
_LONGEST = 60  # characters of a value that a message shows


def shown(value: object) -> str:
    """Returns a value for a message: its text, shortened, and its type."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a foreign object may not even be able to print itself
        text = ""
    text = text.encode("ascii", "backslashreplace").decode() if not text.isprintable() else text
    kind = type(value).__name__
    return f"{text if len(text) <= _LONGEST else f'{text[: _LONGEST - 3]}...'} ({kind})" if text and not text.startswith("<") else kind


def wrong_type(name: str, value: object, wanted: str) -> InputError:
    """Returns the error for an argument of a wrong type."""
    return InputError(f"{name} is {shown(value)}; it has to be {wanted}")


def flag(name: str, value: object) -> bool:
    """Returns a truth value. A number is none: `verify=0` hides a mistake more often than not."""
    if isinstance(value, bool):
        return value
    if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise wrong_type(name, value, "True or False")


def whole_number(name: str, value: object) -> int:
    """Returns an integer of 0 or more."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise wrong_type(name, value, "a whole number (int)")
    try:
        number = operator.index(cast(Any, value))
    except TypeError:  # an array with several elements, say
        raise wrong_type(name, value, "a whole number (int)") from None
    return _not_negative(name, number)


def seconds(name: str, value: object) -> float:
    """Returns a number of seconds."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise wrong_type(name, value, "a number of seconds (float or int)")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond all floats
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{name} is {number}; it has to be a finite number of seconds")
    return _not_negative(name, number)


def size_in_bytes(name: str, value: object) -> int:
    """Returns a number of bytes, given as an integer or as text such as "2G"."""
    wanted = "a number of bytes (int), or a text such as '2G'"
    if isinstance(value, str):
        try:
            return byte_size(value)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise wrong_type(name, value, wanted)
    number = whole_number(name, value)
    if number > LARGEST_SIZE:
        raise InputError(f"{name}: {number if number < 10**30 else 'it'} is more bytes than any machine has")
    return number


def text(name: str, value: object) -> str:
    """Returns a text."""
    if not isinstance(value, str):
        raise wrong_type(name, value, "a text (str)")
    return value


def path(name: str, value: object) -> str | Path:
    """Returns a path; a text stays one, so that names and paths can share an argument."""
    found: object = value
    if isinstance(value, os.PathLike) and not isinstance(value, Path):
        inside: object = os.fspath(cast("os.PathLike[Any]", value))
        found = Path(inside) if isinstance(inside, str) else None
    if not isinstance(found, str | Path):
        raise wrong_type(name, cast(object, value), "a path (str or pathlib.Path)")
    if "\0" in str(found):
        raise InputError(f"{name} is {shown(found)}; no path has a NUL character")
    return found


def existing_file(name: str, value: object) -> str | Path:
    """Returns the path of a file that is there."""
    found = path(name, value)
    if not os.path.isfile(found):
        raise InputError(f"{name}: {found}: " + ("is a folder, not a file" if os.path.isdir(found) else "no such file"))
    return found


def text_or_number(name: str, value: object) -> str | int:
    """Returns a text, or an integer of 0 or more."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise wrong_type(name, value, "a text (str) or a whole number (int)")
    return whole_number(name, value)


def texts(name: str, value: object) -> tuple[str, ...]:
    """Returns several texts. One text stands for itself, never for its letters."""
    return _several(name, value, text, "a text (str) or a list of them")


def paths(name: str, value: object) -> tuple[str | Path, ...]:
    """Returns several paths. One path stands for itself."""
    return _several(name, value, path, "a path (str or pathlib.Path) or a list of them")


def sizes(name: str, value: object) -> dict[str, int]:
    """Returns the sizes of named dimensions."""
    wanted = "a mapping of names to sizes, such as {'N': 1}"
    if not isinstance(value, Mapping):
        raise wrong_type(name, value, wanted)
    found: dict[str, int] = {}
    for key, size in cast("Mapping[object, object]", value).items():
        if not isinstance(key, str):
            raise wrong_type(f"a key of {name}", key, "the name of a dimension (str)")
        found[key] = whole_number(f"{name}['{key}']", size)
    return found


def arrays(name: str, value: object) -> dict[str, np.ndarray[Any, Any]]:
    """Returns arrays by the names of inputs. A scalar of numpy is an array without axes."""
    if not isinstance(value, Mapping):
        raise wrong_type(name, value, "a mapping of the model's inputs to numpy arrays")
    numpy = sys.modules.get("numpy")  # whoever has an array has imported it
    found: dict[str, np.ndarray[Any, Any]] = {}
    for key, array in cast("Mapping[object, object]", value).items():
        if not isinstance(key, str):
            raise wrong_type(f"a key of {name}", key, "the name of an input (str)")
        if numpy is None or not isinstance(array, numpy.ndarray | numpy.generic):
            raise wrong_type(f"{name}['{key}']", array, "a numpy array")
        found[key] = numpy.asarray(array)
    return found


def function(name: str, value: object) -> Callable[..., Any]:
    """Returns something that can be called."""
    if not callable(value):
        raise wrong_type(name, value, "a function")
    return value


def one_of(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Returns one of the texts of a choice."""
    if not isinstance(value, str):
        raise wrong_type(name, value, f"one of {', '.join(choices)} (str)")
    if value not in choices:
        raise InputError(f"{name} is '{value}'; there are {', '.join(choices)}")
    return value


def _several(name: str, value: object, check: Callable[[str, object], One], wanted: str) -> tuple[One, ...]:
    if isinstance(value, str | os.PathLike):
        return (check(name, cast(object, value)),)
    if isinstance(value, bytes | Mapping) or not isinstance(value, Iterable):
        raise wrong_type(name, cast(object, value), wanted)
    items = cast("Iterable[object]", value)
    return tuple(check(f"{name}[{place}]", item) for place, item in enumerate(items))


Number = TypeVar("Number", int, float)


def _not_negative(name: str, number: Number) -> Number:
    if number < 0:
        raise InputError(f"{name} is {number}; it can not be negative")
    return number
