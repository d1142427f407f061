"""What may become of a NaN or an infinity under a rule that is equal in real arithmetic.

Comes in: both sides, and values of which one element of one input is special. Goes out: for each output, the elements that refute the rule.

A rule may not need that there is no NaN and no infinity; but infinities come from overflow too, which real
arithmetic does not know, and a*(b+c) is infinite where a*b + a*c is NaN. So:

* One NaN in one input: wherever the left side is NaN, the right one is not finite. A NaN that is lost refutes: x*0 => 0,
  x-x => 0, x/x => 1. Where the right side alone is NaN, it must not depend on the number that the NaN stands for: kernels
  padded with zeros, Strassen's and Winograd's products spread a NaN so, and are let pass, which is noted; Where(x > 0, x, 0) =>
  Relu(x) is not. An empty tensor may cut a NaN off rightly (a sum of nothing), so then nothing is asked.
* One infinity in one input is a limit. If no step on either side is NaN, both sides have a limit, and must be infinite, or
  finite, in the same elements. If some step is NaN, nothing is asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from eqsat.checker.call import Array, Illegal, is_float
from eqsat.checker.differences import Difference
from eqsat.checker.evaluate import Feeds, Mode, Run
from eqsat.checker.sides import Sides, changed_by

_FINITE = (0.75, -2.5, 37.0, -41.0)  # near what is drawn, and far above and below it


@dataclass(frozen=True)
class Special:
    """One element of one input that is NaN or infinite."""

    name: str
    position: tuple[int, ...]
    value: float

    def placed(self, feeds: Feeds, value: float) -> dict[str, Array]:
        """The values with another one in this place."""
        array = feeds[self.name].copy()
        array[self.position] = value
        return {**feeds, self.name: array}

    def __str__(self) -> str:
        return f"one {'NaN' if math.isnan(self.value) else 'infinity'} in {self.name}, else normal"


class Finding(NamedTuple):
    """Of one output: the elements that refute the rule, and whether a NaN reached others, which it may."""

    refuting: Array
    spreads: bool


def compute(sides: Sides, special: Special, feeds: Feeds) -> tuple[Run, Run] | None:
    """What both sides compute; None where one refuses the values, or where nothing can be asked of them."""
    try:
        left, right = sides.left.run(feeds, Mode.REAL), sides.right.run(feeds, Mode.REAL)
    except Illegal:
        return None
    if math.isnan(special.value):
        return None if left.empty or right.empty else (left, right)
    return None if left.undefined or right.undefined else (left, right)


def find(sides: Sides, special: Special, feeds: Feeds, place: int, left: Array, right: Array, seed: Sequence[int]) -> Finding:
    """What the special value did to the output number `place`, which is `left` and `right`."""
    if not is_float(left):
        difference = Difference(left, right, poles=False)
        if difference.any:
            # The others say nothing here; they only keep the places.
            sides.explain(feeds, [*(Difference(left, left, poles=False),) * place, difference], seed)
        return Finding(difference.unexplained, False)
    if not math.isnan(special.value):
        return Finding(np.isfinite(left) != np.isfinite(right), False)
    lost = np.isnan(left) & np.isfinite(right)
    spread = np.isfinite(left) & np.isnan(right)
    if not spread.any():
        return Finding(lost, False)
    one, *others = (special.placed(feeds, value) for value in _FINITE)
    for other in others:
        depends = changed_by(sides.right, one, other, place, seed)
        if depends is not None:
            lost |= spread & depends
    return Finding(lost, True)
