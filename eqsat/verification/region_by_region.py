"""Region by region: the parts in which two models differ are judged apart, on random values.

The input is two models; the output is a `Verdict` with the number of regions. Regions and their
borders are those of eqsat/verification/regions.py. A region that is found equal at some depth is
equal. One that differs settles nothing unless its inputs are the models' own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection
from typing import NamedTuple

from eqsat.verification.examiner import Examiner
from eqsat.verification.loaded_model import LoadedModel
from eqsat.verification.model_verdict import Verdict
from eqsat.verification.region import Region
from eqsat.verification.regions import Cut
from eqsat.verification.request import DIFFERENT, EQUAL, UNVERIFIED
from eqsat.verification.whole import TooMuch, whole

_NAMES_GIVEN_UP = 64
_ONLY_ONES = "it ran only at sizes that are all 1"
# The levels of nodes that a region takes in before it, in turn until it is found equal.
_DEPTHS = (0, 1, 4, 16, sys.maxsize)
_ALMOST_ALL = 0.5  # the share of a model's nodes above which more of them are all of them


def by_regions(original: LoadedModel, optimized: LoadedModel, examiner: Examiner, reason: str) -> Verdict:
    """Judges the differing regions apart. `reason` tells why the models do not run whole."""
    cut = Cut(original, optimized)
    verdict = Verdict(EQUAL, regions=len(cut))
    verdict.notes.append(f"judged region by region, on random values between the regions: {reason}")
    results = {value.name for value in original.proto.graph.output}
    judged: set[object] = set()
    given_up = number = 0
    end = time.monotonic() + examiner.time_limit
    while number < len(cut):
        if time.monotonic() > end and verdict.status == EQUAL:
            verdict.status, verdict.reason = UNVERIFIED, f"{len(cut) - number} of {len(cut)} regions were not reached in {examiner.time_limit:g} s"
            break
        if cut.key(number) in judged:
            number += 1
            continue
        part, closed, _ = one_region(cut, number, examiner, end)
        if part.status == DIFFERENT and part.output and given_up < _NAMES_GIVEN_UP and cut.uncut(part.output):
            given_up += 1
            number = 0
            continue
        if part.status == DIFFERENT and not (closed and (not part.output or part.output in results)):
            # A name inside the models may stand for another value.
            doubt = "the name may stand for another value" if closed else "on arbitrary values; it may hold on those that arise"
            part.status, part.reason = UNVERIFIED, f"{part.reason} ({doubt})"
        judged.add(cut.key(number))
        number += 1
        verdict.engine = verdict.engine or part.engine
        verdict.outputs += part.outputs
        verdict.runs += part.runs
        verdict.notes += part.notes
        if part.status == DIFFERENT or (part.status == UNVERIFIED and verdict.status == EQUAL):
            verdict.status, verdict.reason, verdict.output = part.status, part.reason, part.output
        if part.status == DIFFERENT:
            break
    verdict.regions = len(judged)
    return verdict


class Part(NamedTuple):
    """The verdict on a region, whether its inputs are the whole model's, and how deep it went."""

    verdict: Verdict
    closed: bool
    depth: int


def one_region(cut: Cut, number: int, examiner: Examiner, end: float, doubted: bool = False, settled: Collection[str] = ()) -> Part:
    """Returns the verdict on a region of a cut.

    A region may fail on arbitrary values and hold on those that really arise. Arbitrary values may
    also fail to move an output that real ones move. Deeper regions settle both. None of them begins
    after `end`, a time of the monotonic clock. If real values are known to differ, the region
    either makes none of it, or only the deepest settles it. Outputs that are `settled` are not
    compared.
    """
    part, closed, depth = Verdict(UNVERIFIED), False, 0
    depths = (0, sys.maxsize) if doubted or cut.share(number) >= _ALMOST_ALL else _DEPTHS
    for deeper in depths:
        if deeper and time.monotonic() > end:
            break
        depth = deeper
        region = cut.region(number, depth, examiner.memory_limit, settled)
        if isinstance(region, str):
            part.reason = part.reason or region
            break
        form = region.form()
        if region.is_same() or (form is not None and form in examiner.proved):
            return Part(Verdict(EQUAL), False, depth)
        try:
            part, closed = whole(region.original, region.optimized, None, examiner.plan(region.original.proto), examiner, region), region.closed
        except (NotImplementedError, TooMuch) as reason:
            part, closed = Verdict(UNVERIFIED, str(reason)), False
        if part.status == EQUAL:
            still = _not_tried(region, part)
            if not still and form is not None:
                examiner.proved.add(form)
            # An output that the whole model's inputs do not move is as good as constant.
            if not still or (closed and still != _ONLY_ONES):
                break
            part.status, part.reason = UNVERIFIED, still
        elif part.status == DIFFERENT and not part.runs:
            # If a runtime refuses a part, the cut may be the reason.
            part.status, part.output = UNVERIFIED, ""
        part.reason = f"region of {region.name}: {part.reason}"
        if closed:
            break
    return Part(part, closed, depth)


def _not_tried(region: Region, part: Verdict) -> str:
    """Returns the reason why equal runs of a region tell nothing; empty if they tell."""
    moving = region.moving()
    sizes = [column[: part.runs - part.edges] for column in part.sizes.values()]
    if sizes and all(size == 1 for column in sizes for size in column):
        return _ONLY_ONES
    # Two choices of sizes are enough for outputs that depend on sizes alone.
    varied = len(set(zip(*sizes, strict=True))) != 1
    still = [output.name for output in part.outputs if output.exercised is False and not varied]
    still += [output.name for output in part.outputs if output.name in moving and not output.random and not output.exercised]
    return f"nothing that was drawn moved {still[0]}" if still else ""
