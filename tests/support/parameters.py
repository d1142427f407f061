"""Parameters of tests: the inner loop has some of them, evenly spread, and all others are slow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


def spread(values: Iterable[T], name: Callable[[T], str] = str, every: int = 10) -> list[Any]:
    """Returns each value as a parameter with its name. All but every `every`th are slow."""
    return [pytest.param(value, id=name(value), marks=[pytest.mark.slow] if place % every else []) for place, value in enumerate(values)]
