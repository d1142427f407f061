"""The inside of two models: a wrong value whose error the outputs hide.

The input is two models whose outputs agree. The output is the first value inside that both models
name and that they compute differently, with the reason. Normalizations, gates and small weights
shrink an error until the outputs round it away, on the inputs that were drawn. Where a value is
made, the error is as large as it ever is, so values are compared there: in the runs of the whole
models, as far as memory allows, and region by region where these did not agree.

A value is wrong only if it differs on values that really arise, from the models' inputs on. Even there
it may differ by rounding that spreads, as where TopK chooses among nearly equal elements: none is wrong
if each region computes the same on the values that really arise before it. Two models may also have
one name for two values. These are not nearly the same, and the region with the nodes that read them is
equal, on arbitrary values. Such a name is given up, and at once if the values have other shapes. So
is one whose error no sum of floats could hold, as that of low scores that were raised in front of a
Softmax: the nodes that read the value tell whether it matters.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from dataclasses import field, replace

from eqsat.frozen import frozen
from eqsat.verification.examiner import Examiner, patience_after
from eqsat.verification.locate import is_carried
from eqsat.verification.model_verdict import Verdict
from eqsat.verification.region_by_region import one_region
from eqsat.verification.regions import Cut
from eqsat.verification.request import DIFFERENT, EQUAL

_NAMES_GIVEN_UP = 4  # of one region: behind so many values that differ, an error only fades
_PATIENCE = 1 / 4  # the most, of the time limit of a call
_ALMOST = 0.1  # a smaller error, as a share of the value, is that of a value made wrong
_FAINT = 2.0**-60  # a smaller error, as a share of the value, shows only if the nodes that read it differ
_NEAR = 4  # the most levels of nodes through which arbitrary values show that a region is equal


@frozen(slots=False)
class Inside:
    """The reason why models differ inside, empty if they do not, and remarks for the reader."""

    reason: str = ""
    notes: list[str] = field(default_factory=list[str])


def values_inside(cut: Cut) -> list[str]:
    """Returns the values at the borders of regions that are no results of the models."""
    return list(dict.fromkeys(name for number in range(len(cut)) for name in cut.outputs(number) if name not in cut.results))


def difference_inside(cut: Cut, agreed: Collection[str], examiner: Examiner, seconds: float, spent: float) -> Inside:
    """Returns how two models differ inside, which ran whole in so many seconds and are cut into
    regions. Values that `agreed` in these runs are judged, for which some of the seconds were
    `spent`. No region begins after about as long again, and none that would take longer than that.
    """
    results = cut.results
    known = results.union(agreed)
    seconds -= spent
    patience = patience_after(seconds, examiner.time_limit * _PATIENCE)
    end = time.monotonic() + patience
    examiner = replace(examiner, patience=patience)
    late = 0
    differing: dict[str, Verdict] = {}
    judged: set[object] = set()
    number = 0
    while number < len(cut):
        if time.monotonic() > end:
            late += sum(cut.key(later) not in judged and not known.issuperset(cut.outputs(later)) for later in range(number, len(cut)))
            break
        if cut.key(number) in judged:
            number += 1
            continue
        given_up = [name for name in cut.computed(number) if name in differing]
        if not given_up and known.issuperset(cut.outputs(number)):
            number += 1
            continue
        if seconds * cut.share(number) > patience:
            judged.add(cut.key(number))
            late += 1
            continue
        # An output that agreed need not be compared again, unless the values before it are in doubt.
        part, closed, depth = one_region(cut, number, examiner, end, bool(agreed), () if given_up else known)
        judged.add(cut.key(number))
        if part.status == EQUAL and given_up and depth > _NEAR:
            return _hidden(cut, differing[given_up[0]], examiner)
        if part.status == DIFFERENT and closed and part.output and part.output not in results:
            if part.relative is None or _FAINT <= part.relative < math.inf:
                differing[part.output] = part
                almost = part.relative is not None and part.relative < _ALMOST
                if almost or len(given_up) >= _NAMES_GIVEN_UP:
                    return _hidden(cut, differing[given_up[0] if given_up else part.output], examiner)
            cut.uncut(part.output)
            number = 0
            continue
        number += 1
    return Inside(notes=[f"{late} of {len(cut)} regions were not compared inside: running takes long"] if late else [])


def _hidden(cut: Cut, part: Verdict, examiner: Examiner) -> Inside:
    """Returns what a region that differs tells. The models are cut anew, at the values given up as well."""
    if is_carried(*cut.models, part.draw, examiner, examiner.time_limit / 2):
        return Inside(notes=[f"rounding spreads inside, where each region alone computes the same on real values: {part.reason}"])
    return Inside(f"inside the models, which their outputs hide: {part.reason}")
