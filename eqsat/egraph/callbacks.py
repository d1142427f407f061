"""Callbacks: Python functions in the text of an egglog program.

egglog keeps a Python object as its pickle. A function gets a number, and the pickle leads to the
function through it while the program exists.
"""

from __future__ import annotations

import base64
import itertools
import pickle
from collections.abc import Callable

_functions: dict[int, Callable[..., object]] = {}
_tokens = itertools.count()


def _resolve(token: int) -> Callable[..., object]:
    return _functions[token]


class _Pointer:
    def __init__(self, token: int) -> None:
        self.token = token

    def __reduce__(self) -> tuple[Callable[[int], Callable[..., object]], tuple[int]]:
        return _resolve, (self.token,)


class Callbacks:
    """The functions of one program."""

    def __init__(self) -> None:
        self._own: list[int] = []

    def pointer(self, function: Callable[..., object]) -> str:
        """Returns the egglog expression of a function. It is valid until `close`."""
        token = next(_tokens)
        _functions[token] = function
        self._own.append(token)
        return f'(py-object "{base64.b64encode(pickle.dumps(_Pointer(token))).decode()}")'

    def close(self) -> None:
        """Releases the functions."""
        for token in self._own:
            del _functions[token]
        self._own.clear()
