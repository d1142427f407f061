"""Random choices, the same for the same seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
T = TypeVar("T")

_NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, 0.25, 6.0)


class Chance:
    """A source of random choices."""

    def __init__(self, *seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def number(self, low: int, high: int) -> int:
        """Returns an integer from `low` to `high`, both included."""
        return int(self.generator.integers(low, high + 1))

    def often(self, probability: float = 0.5) -> bool:
        return bool(self.generator.random() < probability)

    def pick(self, items: Sequence[T]) -> T:
        return items[self.number(0, len(items) - 1)]

    def weighted(self, weights: Mapping[T, float]) -> T:
        """Returns one of the keys, with the probability of its weight."""
        at = self.generator.random() * sum(weights.values())
        for item, weight in weights.items():
            at -= weight
            if at <= 0:
                return item
        return list(weights)[-1]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        return [items[place] for place in self.generator.permutation(len(items))]

    def some(self, items: Sequence[T], least: int = 0) -> list[T]:
        """Returns some of the items, in random order."""
        return self.shuffled(items)[: self.number(min(least, len(items)), len(items))]

    def split(self, total: int, parts: int) -> list[int]:
        """Returns sizes that add up to the total. Parts may be empty."""
        cuts = sorted(self.number(0, total) for _ in range(parts - 1))
        return [high - low for low, high in zip([0, *cuts], [*cuts, total], strict=True)]

    def constant(self, dtype: Any, shape: Sequence[int]) -> Array:
        """Returns elements as in models: one number, small whole numbers, or arbitrary ones."""
        kind, shape = np.dtype(dtype), tuple(shape)
        if kind.kind == "O":
            return self.words(shape)
        style = self.number(0, 3)
        if style <= 1:
            number = self.pick(_NUMBERS)
            return np.full(shape, int(abs(number)) if is_whole(kind) else number).astype(kind)
        if style == 2:
            return self.whole(kind, shape, -2, 4)
        return self.ordinary(kind, shape)

    def ordinary(self, dtype: Any, shape: Sequence[int]) -> Array:
        """Returns normally distributed numbers, or small integers of either sign."""
        kind, shape = np.dtype(dtype), tuple(shape)
        if kind.kind == "O":
            return self.words(shape)
        if is_whole(kind):
            return self.whole(kind, shape, -6, 9)
        values = self.generator.standard_normal(shape)
        return np.asarray(values + 1j * self.generator.standard_normal(shape) if kind.kind == "c" else values).astype(kind)

    def whole(self, dtype: Any, shape: Sequence[int], low: int, high: int) -> Array:
        """Returns small integers, in any type."""
        kind = np.dtype(dtype)
        low = max(low, 0) if kind.kind in "ub" or kind.name.startswith("uint") else low
        return np.asarray(self.generator.integers(low, high + 1, tuple(shape))).astype(kind)

    def words(self, shape: Sequence[int]) -> Array:
        words = ("a", "", "Ü b", "42", "a")
        return np.array([self.pick(words) for _ in range(int(np.prod(shape)))], object).reshape(tuple(shape))


def is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "fc" or "float" in dtype.name


def is_whole(dtype: np.dtype[Any]) -> bool:
    """Tells whether the elements are integers or booleans."""
    return dtype.kind != "O" and not is_float(dtype)


BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
INT4, UINT4 = np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4)
