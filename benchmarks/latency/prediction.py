"""Prediction: how often eqsat predicts the faster of two variants.

Variants of one model compute the same, so which of two is faster is the question that eqsat's cost
model has to answer. Pairs whose measured times are close do not count: noise decides them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

APART = 0.05
"""The measured times of a pair that counts differ by more than this share of the smaller one."""


@dataclass(frozen=True)
class Pairs:
    """Pairs of variants whose measured times are apart, and those whose faster one was predicted."""

    apart: int = 0
    told: int = 0

    def __add__(self, other: Pairs) -> Pairs:
        return Pairs(self.apart + other.apart, self.told + other.told)


def compared(measured: Sequence[float], guessed: Sequence[float]) -> Pairs:
    """Returns the pairs of variants, which have a measured and a predicted time each.

    Equal predictions tell nothing.
    """
    found = Pairs()
    for (first, second), (left, right) in zip(itertools.combinations(measured, 2), itertools.combinations(guessed, 2), strict=True):
        if abs(first - second) > APART * min(first, second):
            found += Pairs(1, int(left != right and (left < right) == (first < second)))
    return found
