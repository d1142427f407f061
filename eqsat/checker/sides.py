"""The two sides of an instance, run together, and disturbed together.

Comes in: two programs. Goes out: for values, what both compute; for differences between them, how far disturbances explain
those. A run that a disturbance made illegal tells nothing and is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eqsat.checker.call import Array, Illegal
from eqsat.checker.differences import Difference
from eqsat.checker.evaluate import Feeds, Mode, Program
from eqsat.checker.noise import Noise, Rounding, Stating

_DELTA = 1e-9  # far above rounding, and far below where a function bends
_UNITS = 4.0  # that a stated number may be off: a half where it is the rounding of another, one where it is met within rounding
_PAIRS = 8


@dataclass(frozen=True)
class Sides:
    """The left and the right side."""

    left: Program
    right: Program

    def explain(self, feeds: Feeds, differences: Sequence[Difference], seed: Sequence[int]) -> None:
        """Disturb rounding and stated numbers, both ways, until all differences are explained or it is clear that they are not."""
        for number in range(_PAIRS):
            for delta in (_DELTA, -_DELTA):
                for side, program in enumerate((self.left, self.right)):
                    _disturb(differences, side, program, feeds, Rounding(np.random.default_rng([*seed, number, side]), delta))
            if not _open(differences):
                return
            for units in (_UNITS, -_UNITS):
                stating = Stating(np.random.default_rng([*seed, number]), units)
                for difference, left, right in zip(differences, outputs(self.left, feeds, stating), outputs(self.right, feeds, stating), strict=False):
                    difference.stated(left, right)
            if not _open(differences):
                return


def _open(differences: Sequence[Difference]) -> bool:
    return any(difference.unexplained.any() for difference in differences)


def _disturb(differences: Sequence[Difference], side: int, program: Program, feeds: Feeds, noise: Rounding) -> None:
    for difference, array in zip(differences, outputs(program, feeds, noise), strict=False):
        difference.disturbed(side, array, _DELTA)


def outputs(program: Program, feeds: Feeds, noise: Noise | None) -> list[Array]:
    """The outputs of a run with reals; none where the values are illegal."""
    try:
        return program.run(feeds, Mode.REAL, noise).outputs
    except Illegal:
        return []
