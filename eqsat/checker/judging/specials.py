"""Specials: NaN and infinities under a rule that is equal in real arithmetic.

The input is both sides, and values of which one or two elements are special. The output is, for
each output, the elements that refute the rule.

NaN and infinities are no real numbers. A `real` rule promises that a number stays the same number,
and that NaN and infinities do not become numbers. For each element of an output, by its left value:

* A number: the right side has the same one. So a kernel may not be padded with zeros, because an
  infinity times such a zero is NaN.
* NaN: the right side has no number either. So x*0 => 0, x-x => 0 and x/x => 1 are refuted.
* Infinity: the right side has that infinity, or NaN. a*(b+c) may be infinite where a*b + a*c is
  infinity minus infinity.

An element that overflows or meets a pole without special values decides nothing. Sides with empty
tensors decide nothing either: a factor may be outside of an empty sum, where it is read, or inside
each of its terms, where it is not. A `finite` rule promises nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, cycle

import numpy as np
from onnx import helper

from eqsat.checker.judging.differences import Difference
from eqsat.checker.judging.sides import Sides
from eqsat.checker.judging.trial_values import Slot
from eqsat.checker.kernels.call import Array, Illegal, is_float, is_float_type, some
from eqsat.checker.kernels.evaluate import Feeds, Mode, Run

_INPUTS = 4  # number of inputs that get a special value
_PAIRS = ((math.nan, math.inf), (math.inf, -math.inf), (math.inf, math.inf), (-math.inf, math.nan), (math.nan, math.nan))


@dataclass(frozen=True)
class Special:
    """One element of one input that is NaN or infinite."""

    name: str
    position: tuple[int, ...]
    value: float

    def __str__(self) -> str:
        shown = "NaN" if math.isnan(self.value) else "infinity" if self.value > 0 else "-infinity"
        return f"{shown} in {self.name}"


Specials = tuple[Special, ...]


def described(specials: Specials) -> str:
    """The special values, in words."""
    return f"{' and '.join(map(str, specials))}, else normal"


def placed(specials: Specials, feeds: Feeds) -> dict[str, Array]:
    """The values, with the special ones at their positions."""
    found = dict(feeds)
    for special in specials:
        found[special.name] = found[special.name].copy()
        found[special.name][special.position] = special.value
    return found


def drawn(slots: Mapping[str, Slot], generator: np.random.Generator, is_wanted: Callable[[int], bool]) -> Iterator[tuple[int, Specials]]:
    """Special values to try, those alone whose number is wanted: one alone in each of a few inputs,
    and two at once.

    Each has a random position. An infinity has a sign that its domain admits.
    """
    floats = [name for name, slot in slots.items() if 0 not in slot.shape and is_float_type(helper.tensor_dtype_to_np_dtype(slot.dtype))]
    generator.shuffle(floats)
    chosen = floats[:_INPUTS]

    def special(name: str, value: float) -> Special:
        slot = slots[name]
        position = tuple(int(generator.integers(size)) for size in slot.shape)
        return Special(name, position, value if slot.domain.low is None else abs(value))

    pairs = [*combinations(chosen, 2), *((name, name) for name in chosen)]
    generator.shuffle(pairs)
    planned = [((name, value),) for name in chosen for value in (math.nan, -math.inf if generator.random() < 0.5 else math.inf)]
    planned += [((one, values[0]), (other, values[1])) for (one, other), values in zip(cycle(pairs), _PAIRS, strict=False)] if pairs else []
    for number, values in enumerate(planned):
        if is_wanted(number):
            found = tuple([special(*value) for value in values])
            if len({(one.name, one.position) for one in found}) == len(found):
                yield number, found


def refuting(sides: Sides, feeds: Feeds, special: Feeds, seed: Sequence[int]) -> list[tuple[Array, Array, Array]]:
    """For each output both sides under the special values, and a mask of the elements that refute
    the rule.

    The list is empty if a side refuses the values, holds an empty tensor, or has other shapes than
    the other side.
    """
    runs = run_both(sides, special)
    if not runs:
        return []
    pairs = list(zip(*(run.outputs for run in runs), strict=True))
    if any(run.empty for run in runs) or any(left.shape != right.shape for left, right in pairs):
        return []
    differences = [Difference(left, right, poles=True) for left, right in pairs]
    if any(difference.any for difference in differences):
        sides.explain(special, differences, seed)
    found = [(left, right, difference.unexplained | _parted(left, right)) for (left, right), difference in zip(pairs, differences, strict=True)]
    if not any(some(where) for _, _, where in found):
        return found  # so the values without special ones need no run
    plain = [run.outputs for run in run_both(sides, feeds)]
    return [(left, right, where & _is_number(one, other)) for (left, right, where), one, other in zip(found, *plain, strict=True)] if plain else []


def run_both(sides: Sides, feeds: Feeds) -> list[Run]:
    """A run of each side; none if one of them refuses the values."""
    try:
        return [program.run(feeds, Mode.REAL) for program in (sides.left, sides.right)]
    except Illegal:
        return []


def _is_number(one: Array, other: Array) -> Array:
    """A mask of the elements that are numbers on both sides."""
    return np.isfinite(one) & np.isfinite(other) if is_float(one) else np.ones(one.shape, np.bool_)


def _parted(left: Array, right: Array) -> Array:
    """A mask of the elements that are a number on one side alone, or opposite infinities."""
    if not is_float(left):
        return np.zeros(left.shape, np.bool_)
    return (np.isfinite(left) != np.isfinite(right)) | (np.isinf(left) & np.isinf(right) & (np.sign(left) != np.sign(right)))
