"""The judge of the rule checker: whether both sides of an instance are equal, as the rule's label
claims.

The input is a `Case`, a label and a seed; the output is a `Verdict`, the same one for the same
input. Sides that are equal as claimed are never called different, whatever the seed. Sides that are
not equal are called different as soon as one of the tried values shows it.

`exact`: both sides are computed in their declared types and compared bit by bit on values of all
kinds. Our kernels compute them, whose bits do not depend on position, and so do runtimes, whose
bits may (eqsat/checker/judging/runtime_sides.py).

`finite`: both sides are computed in double precision. If all numbers on both sides are short
(eqsat/checker/kernels/reference.py), the arithmetic was exact and any difference counts. So small
integers test polynomials, ties and poles. Otherwise a difference counts if rounding does not
explain it (eqsat/checker/judging/differences.py). An element that is finite on one side alone
counts, unless an infinity occurred in some step: an overflow or a pole, at which sides may differ.
Values decide nothing if some step may have underflowed.

`real`: as `finite`. Then NaN and infinities are put into the values, one and two at a time
(eqsat/checker/judging/specials.py).

A Cast of one side may round a float, as the definition of an operator on the other side does, such as
LayerNormalization with its `stash_type`. Computed in double precision, that operator does not round.
Then the sides may differ as reals, but are equal all the same if our kernels, which follow the
definitions step by step, compute equal bits in the declared types.

Integers and truth values are compared by bits under each label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from onnx import helper

from eqsat.checker.drawing.fixed_numbers import is_finite, is_plain, landmarks
from eqsat.checker.judging import specials
from eqsat.checker.judging.differences import Difference, unequal_bits
from eqsat.checker.judging.runtime_sides import Runtimes
from eqsat.checker.judging.sides import Sides
from eqsat.checker.judging.specials import Specials
from eqsat.checker.judging.trial_values import ANY, Slot, Style, Values
from eqsat.checker.judging.verdict import Case, Kind, Outcome, Verdict
from eqsat.checker.kernels.call import Array, Illegal, Undefined, Unsupported, some
from eqsat.checker.kernels.evaluate import Feeds, IllegalModel, Mode, Program, Run
from eqsat.facts.fact import dtype_name
from eqsat.language.syntax import Label

# The number of draws of each style.
_EXACT_STYLES = {
    Style.SMALL: 1,
    Style.SIGNS: 1,
    Style.NORMAL: 2,
    Style.WIDE: 2,
    Style.TOUR: 5,
    Style.LANDMARKS: 3,
    Style.EXTREME: 2,
    Style.FULL: 1,
    Style.SPECIAL: 1,
}
_REAL_STYLES = {Style.SMALL: 1, Style.SIGNS: 3, Style.NORMAL: 1, Style.POSITIVE: 1, Style.LANDMARKS: 3, Style.WIDE: 1, Style.EXTREME: 2}
# The styles whose first draw runtimes compute, too.
_RUN = frozenset({Style.NORMAL, Style.WIDE, Style.FULL, Style.TOUR, Style.SPECIAL})
_REDRAWS = 6  # attempts to find values that the left side accepts
SHARES = 6


def judge(case: Case, label: Label, seed: int, share: int | None = None) -> Verdict:
    """Whether the sides of `case` are equal as `label` claims.

    Many cases of one rule divide the draws among them: `share`, a number from 0, picks one of
    `SHARES` parts. A part has draws of some of the styles, and every part has special values. If
    the part decides nothing, another one of other styles may, and after that all values are drawn.
    """
    if share is not None:
        for part in (share, share + SHARES // 2):
            found = _judged(case, label, seed, part % SHARES)
            if found.outcome in (Outcome.EQUAL, Outcome.DIFFERENT):
                return found
    return _judged(case, label, seed, None)


def _judged(case: Case, label: Label, seed: int, share: int | None) -> Verdict:
    try:
        left = Program(case.left, case.types)
    except IllegalModel as error:
        return Verdict(Outcome.INVALID, reason=f"the left side is illegal: {error}")
    except Unsupported as error:
        return Verdict(Outcome.UNDECIDED, reason=str(error))
    try:
        right = Program(case.right)
    except IllegalModel as error:
        return Verdict(Outcome.DIFFERENT, Kind.FAILS, f"the right side is illegal: {error}")
    except Unsupported as error:
        return Verdict(Outcome.UNDECIDED, reason=str(error))
    found = _compared(case, left, right, seed, share, label)
    if label is not Label.EXACT and found.kind is Kind.VALUE and (left.narrows or right.narrows):
        bits = _compared(case, left, right, seed, share, None)
        return bits if bits.outcome is Outcome.EQUAL else found
    return found


def _compared(case: Case, left: Program, right: Program, seed: int, share: int | None, label: Label | None) -> Verdict:
    """The verdict on the sides; without a label, on the bits that our own kernels compute."""
    try:
        return _Comparison(case, left, right, seed, share).verdict(label)
    except _Refuted as refuted:
        return refuted.verdict
    except Unsupported as error:
        return Verdict(Outcome.UNDECIDED, reason=str(error))


class _Refuted(Exception):
    """The two sides differ."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict


class _Comparison:
    """Both sides of one case, and the findings so far."""

    def __init__(self, case: Case, left: Program, right: Program, seed: int, share: int | None) -> None:
        free = {name: program for program in (right, left) for name in sorted(case.free) if name in program.constants}
        self._case = case
        self._sides = Sides(left, right)
        self._seed = seed
        self._share = share
        self._rounds = 0
        self._refusal = ""
        self._undecided = set(left.outputs)
        types = {name: (given.dtype, given.shape) for name, given in left.inputs.items()}
        types |= {name: (program.types[name], program.constants[name].shape) for name, program in free.items()}
        if untried := [dtype_name(dtype) for dtype, _ in types.values() if helper.tensor_dtype_to_np_dtype(dtype).kind in "Oc"]:
            raise Unsupported(f"no values are drawn of the type {untried[0]}")
        slots = {name: Slot(dtype, shape, case.domains.get(name, ANY)) for name, (dtype, shape) in types.items()}
        self._values = Values(slots, landmarks((left, right), case.free), seed)
        self._plain = is_plain((left, right), case.free)
        self._finite = is_finite((left, right), case.free)

    def verdict(self, label: Label | None) -> Verdict:
        """The verdict as in `_compared`; raises `_Refuted` for a difference."""
        self._compare_types()
        if label in (Label.EXACT, None):
            self._judge_bits(by_runtimes=label is Label.EXACT)
        else:
            self._judge_reals(label)
        if not self._rounds:
            return Verdict(Outcome.INVALID, reason=f"the left side fails: {self._refusal}")
        if self._undecided:
            return Verdict(Outcome.UNDECIDED, reason=f"no values decide anything of {', '.join(sorted(self._undecided))}", rounds=self._rounds)
        return Verdict(Outcome.EQUAL, rounds=self._rounds)

    def _judge_bits(self, by_runtimes: bool) -> None:
        runtimes = Runtimes(self._case, self._sides.left, self._sides.right) if by_runtimes else None
        ran: set[Style] = set()
        for feeds, run, style in self._draws(_EXACT_STYLES, Mode.BITS):
            self._compare_bits(feeds, run, style)
            if runtimes is not None and style in _RUN - ran:
                ran.add(style)
                self._compare_runtimes(runtimes, feeds, run, style)

    def _judge_reals(self, label: Label) -> None:
        for feeds, run, style in self._draws(_REAL_STYLES, Mode.REAL):
            self._compare_reals(feeds, run, style)
        if label is Label.REAL:
            generator = np.random.default_rng([self._seed, len(_REAL_STYLES)])
            for turn, special in specials.drawn(self._values.slots, generator, self._is_mine):
                self._compare_special(special, turn + 1)

    # --- values ---

    def _draws(self, styles: Mapping[Style, int], mode: Mode) -> Iterator[tuple[dict[str, Array], Run, Style]]:
        """Values that the left side accepts, and its outputs for them."""
        seen: set[bytes] = set()
        number = 0
        for style, turns in styles.items():
            for turn in range(turns):
                number += 1
                if not self._is_mine(number):
                    continue
                found = self._accepted((self._values.draw(style, turn + turns * redraw) for redraw in range(_REDRAWS)), mode, seen)
                if found is not None:
                    yield *found, style
                    if style is Style.SIGNS and not found[1].exact:
                        break  # this style tests only the ties and poles of exact arithmetic

    def _is_mine(self, number: int) -> bool:
        """Whether the draw of this number belongs to the share of the case."""
        return self._share is None or number % SHARES == self._share

    def _accepted(self, draws: Iterable[dict[str, Array]], mode: Mode, seen: set[bytes]) -> tuple[dict[str, Array], Run] | None:
        """The first new draw that the left side accepts, and its outputs for it."""
        for feeds in draws:
            content = b"".join(array.tobytes() for array in feeds.values())
            if content in seen:  # draws of few elements, or of none, soon repeat
                continue
            seen.add(content)
            try:
                return feeds, self._sides.left.run(feeds, mode)
            except Illegal as error:
                self._refusal = self._refusal or str(error)
        return None

    def _run_right(self, feeds: Feeds, left: Run, mode: Mode, style: str) -> Run:
        try:
            run = self._sides.right.run(feeds, mode)
        except Illegal as error:
            if isinstance(error, Undefined) and not any(array.size for array in left.outputs):
                return left  # all outputs are empty, so nothing reads the undefined value
            reason = f"the right side fails where the left one does not: {error}"
            raise _Refuted(Verdict(Outcome.DIFFERENT, Kind.FAILS, reason, inputs=feeds, style=style, rounds=self._rounds)) from None
        self._rounds += 1
        return run

    # --- comparisons ---

    def _compare_types(self) -> None:
        left, right = self._sides.left, self._sides.right
        if len(left.outputs) != len(right.outputs):
            raise _Refuted(Verdict(Outcome.DIFFERENT, Kind.TYPE, f"{len(left.outputs)} outputs on the left, {len(right.outputs)} on the right"))
        for ours, theirs in zip(left.outputs, right.outputs, strict=True):
            a, b = left.types[ours], right.types[theirs]
            if a != b:
                reason = f"{ours} is {dtype_name(a)} on the left and {dtype_name(b)} on the right"
                raise _Refuted(Verdict(Outcome.DIFFERENT, Kind.TYPE, reason, ours))

    def _pairs(self, left: Run, right: Run, feeds: Feeds) -> list[tuple[str, Array, Array]]:
        pairs = list(zip(self._sides.left.outputs, left.outputs, right.outputs, strict=True))
        for name, a, b in pairs:
            if a.shape != b.shape:
                reason = f"{name} has the shape {list(a.shape)} on the left and {list(b.shape)} on the right"
                raise _Refuted(Verdict(Outcome.DIFFERENT, Kind.TYPE, reason, name, inputs=feeds))
        return pairs

    def _compare_bits(self, feeds: Feeds, left: Run, style: str) -> None:
        right = self._run_right(feeds, left, Mode.BITS, style)
        for name, a, b in self._pairs(left, right, feeds):
            self._refute(name, a, b, unequal_bits(a, b), feeds, style)
            self._undecided.discard(name)

    def _compare_runtimes(self, runtimes: Runtimes, feeds: Feeds, left: Run, style: str) -> None:
        for found in runtimes.parted(feeds, left.outputs):
            name = self._sides.left.outputs[found.place]
            self._refute(name, found.left, found.right, found.unequal, feeds, f"by {found.engine}, {style}")

    def _compare_reals(self, feeds: Feeds, left: Run, style: str) -> None:
        right = self._run_right(feeds, left, Mode.REAL, style)
        exact = left.exact and right.exact and self._plain
        if not exact and (left.vanished or right.vanished):
            return
        # As for special values among the inputs: a factor may be outside of an empty sum, where it is
        # read, or inside of each of its terms, where it is not.
        if not self._finite and (left.empty or right.empty):
            return
        poles = not exact and (left.infinite or right.infinite)
        pairs = self._pairs(left, right, feeds)
        differences = [Difference(a, b, poles) for _, a, b in pairs]
        if not exact and any(difference.any for difference in differences):
            self._sides.explain(feeds, differences, (self._seed, self._rounds))
        for (name, a, b), difference in zip(pairs, differences, strict=True):
            self._refute(name, a, b, difference.error > 0 if exact else difference.unexplained, feeds, style, difference)
            if exact or difference.decides:
                self._undecided.discard(name)

    def _compare_special(self, special: Specials, turn: int) -> None:
        plain = self._values.draw(Style.NORMAL, turn)
        feeds = specials.placed(special, plain)
        self._rounds += 1
        found = specials.refuting(self._sides, plain, feeds, (self._seed, self._rounds))
        for name, (left, right, where) in zip(self._sides.left.outputs, found, strict=False):
            self._refute(name, left, right, where, feeds, specials.described(special))

    def _refute(self, name: str, a: Array, b: Array, where: Array, feeds: Feeds, style: str, difference: Difference | None = None) -> None:
        """Raises `_Refuted` with the first element of the mask `where`, if there is one."""
        if not some(where):
            return
        position = tuple(int(place) for place in np.argwhere(where)[0])
        error, tolerance = (0.0, 0.0) if difference is None else (float(difference.error[position]), float(difference.tolerance[position]))
        reason = f"{name} has another value"
        left, right = a[position].item(), b[position].item()
        raise _Refuted(Verdict(Outcome.DIFFERENT, Kind.VALUE, reason, name, position, left, right, error, tolerance, feeds, style, self._rounds))
