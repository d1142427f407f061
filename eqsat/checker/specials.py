"""What may become of NaN and infinities under a rule that is equal in real arithmetic.

Comes in: both sides, and values of which one element is special, or two are, of one input or of two. Goes out: for each output, the
elements that refute the rule.

A rule may not need that there is no NaN and no infinity; but infinities come from overflow too, which real
arithmetic does not know, and a*(b+c) is infinite where a*b + a*c is NaN. So:

* NaN: wherever the left side is NaN, the right one is not finite. A NaN that is lost refutes: x*0 => 0,
  x-x => 0, x/x => 1. Where the right side alone is NaN, it must not depend on the number that the NaN stands for: kernels
  padded with zeros, Strassen's and Winograd's products spread a NaN so, and are let pass, which is noted; Where(x > 0, x, 0) =>
  Relu(x) is not. An empty tensor may cut a NaN off rightly (a sum of nothing), so then nothing is asked.
* An infinity is a limit. If no step on either side is NaN, both sides have a limit, and must be infinite, or
  finite, in the same elements. If some step is NaN, nothing is asked.
* A NaN beside an infinity is a NaN beside a limit: it is asked about where a number in its place makes no step NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from eqsat.checker.call import Array, Illegal, is_float
from eqsat.checker.differences import Difference
from eqsat.checker.evaluate import Feeds, Mode, Run
from eqsat.checker.sides import Sides, changed_by

_FINITE = (0.75, -2.5, 37.0, -41.0)  # near what is drawn, and far above and below it
_ALONE = 4  # inputs that get a NaN, and an infinity
_PAIRS = ((math.nan, math.nan), (math.inf, math.inf), (math.nan, math.inf), (math.inf, math.nan))  # infinities of either sign


class Element(NamedTuple):
    """A place in an input."""

    name: str
    position: tuple[int, ...]


@dataclass(frozen=True)
class Special:
    """Elements of inputs that are NaN or infinite."""

    values: tuple[tuple[Element, float], ...]

    @property
    def undefined(self) -> bool:
        """Whether one is NaN."""
        return any(math.isnan(value) for _, value in self.values)

    @property
    def infinite(self) -> bool:
        """Whether one is infinite."""
        return any(math.isinf(value) for _, value in self.values)

    def placed(self, feeds: Feeds, number: float = math.nan) -> dict[str, Array]:
        """The values with the special ones in their places; `number` stands where a NaN would."""
        placed = {element.name: feeds[element.name].copy() for element, _ in self.values}
        for element, value in self.values:
            placed[element.name][element.position] = number if math.isnan(value) else value
        return {**feeds, **placed}

    def finite(self, feeds: Feeds) -> dict[str, Array]:
        """The values with a number in each of these places."""
        return Special(tuple((element, math.nan) for element, _ in self.values)).placed(feeds, _FINITE[0])

    def __str__(self) -> str:
        named = [f"a{' NaN' if math.isnan(value) else 'n infinity'} in {element.name}" for element, value in self.values]
        return f"{' and '.join(named)}, else normal"


def draw(shapes: Mapping[str, tuple[int, ...]], generator: np.random.Generator) -> list[Special]:
    """What is put into inputs of these shapes: into some of them a NaN and an infinity, each at its own place; then pairs, in two inputs and in one."""
    names = [name for name, shape in shapes.items() if 0 not in shape]
    generator.shuffle(names)

    def element(name: str) -> Element:
        return Element(name, tuple(int(generator.integers(size)) for size in shapes[name]))

    def signed(value: float) -> float:
        return -value if generator.random() < 0.5 else value

    found = [Special(((element(name), signed(value)),)) for name in names[:_ALONE] for value in (math.nan, math.inf)]
    for one, other in ((names[0], names[-1]), (names[-1], names[-1])) if names else ():
        for first, second in _PAIRS:
            pair = (element(one), signed(first)), (element(other), signed(second))
            if pair[0][0] != pair[1][0]:
                found.append(Special(pair))
    return found


class Finding(NamedTuple):
    """Of one output: the elements that refute the rule, and whether a NaN reached others, which it may."""

    refuting: Array
    spreads: bool


def compute(sides: Sides, special: Special, feeds: Feeds) -> tuple[Run, Run] | None:
    """What both sides compute of values that hold the special ones; None where one refuses them, or where nothing can be asked of them."""
    try:
        left, right = sides.left.run(feeds, Mode.REAL), sides.right.run(feeds, Mode.REAL)
        if not special.undefined:
            return None if left.undefined or right.undefined else (left, right)
        if special.infinite:
            limit = special.placed(feeds, _FINITE[0])
            if sides.left.run(limit, Mode.REAL).undefined or sides.right.run(limit, Mode.REAL).undefined:
                return None
    except Illegal:
        return None
    return None if left.empty or right.empty else (left, right)


def _overflows(sides: Sides, feeds: Feeds) -> bool:
    """Whether a side has infinities of finite values, which tell nothing of limits."""
    try:
        return any(side.run(feeds, Mode.REAL).infinite for side in (sides.left, sides.right))
    except Illegal:
        return True


def find(sides: Sides, special: Special, feeds: Feeds, place: int, left: Array, right: Array, seed: Sequence[int]) -> Finding:
    """What the special values did to the output number `place`, which is `left` and `right`."""
    if not is_float(left):
        difference = Difference(left, right, poles=False)
        if difference.any:
            # The others say nothing here; they only keep the places.
            sides.explain(feeds, [*(Difference(left, left, poles=False),) * place, difference], seed)
        return Finding(difference.unexplained, False)
    if not special.undefined:
        apart = np.isfinite(left) != np.isfinite(right)
        if apart.any() and _overflows(sides, special.finite(feeds)):
            apart[...] = False
        return Finding(apart, False)
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
