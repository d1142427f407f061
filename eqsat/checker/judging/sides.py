"""Sides: the two sides of an instance, run together and disturbed together.

The input is two programs and values. The output is the outputs of both, and how far disturbances
explain the differences between them. A run that a disturbance makes illegal is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eqsat.checker.judging.differences import Difference
from eqsat.checker.kernels.call import Array, Illegal
from eqsat.checker.kernels.evaluate import Feeds, Mode, Program
from eqsat.checker.kernels.noise import FixedNumberNoise, Noise, Rounding

_DELTA = 1e-9  # relative; far above rounding errors, far below the scale on which functions bend
# Units in the last place by which fixed numbers are disturbed: more than their errors, half a unit
# for rounding and one unit for a guard that matches within rounding.
_UNITS = 4.0
_PAIRS = 8  # pairs of opposite disturbances


@dataclass(frozen=True)
class Sides:
    """The left and the right side."""

    left: Program
    right: Program

    def explain(self, feeds: Feeds, differences: Sequence[Difference], seed: Sequence[int]) -> None:
        """Disturbs rounding and fixed numbers, both ways, until that explains all differences, at
        most `_PAIRS` times.

        A disturbance explains more or nothing, so none is made after the last one that is needed.
        """
        for number in range(_PAIRS):
            for delta in (_DELTA, -_DELTA):
                for side, program in enumerate((self.left, self.right)):
                    _disturb(differences, side, program, feeds, Rounding(np.random.default_rng([*seed, number, side]), delta))
                    if not _open(differences):
                        return
            for units in (_UNITS, -_UNITS):
                noise = FixedNumberNoise(np.random.default_rng([*seed, number]), units)
                for difference, left, right in zip(differences, outputs(self.left, feeds, noise), outputs(self.right, feeds, noise), strict=False):
                    difference.fixed_disturbed(left, right)
                if not _open(differences):
                    return


def _open(differences: Sequence[Difference]) -> bool:
    return any(difference.unexplained.any() for difference in differences)


def _disturb(differences: Sequence[Difference], side: int, program: Program, feeds: Feeds, noise: Rounding) -> None:
    for difference, array in zip(differences, outputs(program, feeds, noise), strict=False):
        difference.disturbed(side, array, _DELTA)


def outputs(program: Program, feeds: Feeds, noise: Noise | None) -> list[Array]:
    """The outputs of a run with reals; none if the values are illegal."""
    try:
        return program.run(feeds, Mode.REAL, noise).outputs
    except Illegal:
        return []
