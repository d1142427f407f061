"""Results of a function, by the identity of what it was asked about.

The identity of a syntax tree takes less time than its hash, which visits all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")


class ByIdentity(Generic[Item, Found]):
    """A function that remembers its results for at most so many objects.

    It keeps each object with its result, so that no other gets the same identity.
    """

    __slots__ = ("_compute", "_known", "_most")

    def __init__(self, compute: Callable[[Item], Found], most: int) -> None:
        self._compute = compute
        self._most = most
        self._known: dict[int, tuple[Found, Item]] = {}

    def __call__(self, item: Item) -> Found:
        known = self._known.get(id(item))
        if known is None:
            if len(self._known) >= self._most:
                self._known.clear()
            known = self._known[id(item)] = self._compute(item), item
        return known[0]
