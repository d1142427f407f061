"""The verify stage: does one model compute what another computes?

Comes in: two models (eqsat/subject.py), and perhaps the user's inputs. Goes out: a `Verdict`, plain data with figures.
Promised: "equal" is said only of models that ran on the same inputs, or are the same graph, and whose every output
that is not random was the same bits or within a tolerance that the original's own sensitivity sets; what could not
be run is "unverified", and says why. No model can take this process down (eqsat/worker.py).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from eqsat.examiner import Examiner
from eqsat.interface import checked_inputs, defaults, interface_change, same_graph
from eqsat.regions import Cut, Region
from eqsat.request import DIFFERENT, EQUAL, UNVERIFIED, OutputJudgement, Request
from eqsat.samples import Draw, Edge, Plan, make_plan
from eqsat.subject import Subject, read_subject, weight_bytes
from eqsat.worker import Worker, shared

__all__ = ["DIFFERENT", "EQUAL", "UNVERIFIED", "Subject", "Verdict", "verify", "verify_files"]

# A weight is there as the file's bytes, as a tensor, and perhaps packed for a kernel.
_COPIES = 3
_MANY_NODES = 20_000
_NAMES_GIVEN_UP = 64
_ONLY_ONES = "it ran only at sizes that are all 1"
_DEPTHS = (0, 1, 4, 16, sys.maxsize)  # how many levels of nodes before a region are taken in, until it is found equal


@dataclass
class Verdict:
    """What verification found; `asdict` of it is JSON.

    `status` is "equal", "different" or "unverified", the last two with a `reason`; `output` is the one that differs, if one does. `sizes` lists, for each named
    dimension, the size in each run; the last `edges` of the runs were at edges: sizes 0, 1 and beyond the models' constants, and
    integers at the ends of their type. `regions` counts the parts that were judged apart, None when the models were run whole.
    """

    status: str
    reason: str = ""
    output: str = ""
    engine: str = ""
    outputs: list[OutputJudgement] = field(default_factory=list[OutputJudgement])
    runs: int = 0
    edges: int = 0
    sizes: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    notes: list[str] = field(default_factory=list[str])
    regions: int | None = None
    seconds: float = 0.0
    draw: Draw | None = None  # that showed the difference

    @property
    def max_error(self) -> float | None:
        """The largest error of any output; None if one was not finite."""
        errors = [output.max_error for output in self.outputs]
        return None if None in errors else max((error for error in errors if error is not None), default=0.0)

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain JSON data."""
        found = {**asdict(self), "max_error": self.max_error}
        del found["draw"]
        return found


def verify_files(
    original: str | Path,
    optimized: str | Path,
    *,
    inputs: Mapping[str, np.ndarray] | None = None,
    seed: int = 0,
    memory_limit: int = 1 << 30,
    custom_op_library: str | Path | None = None,
    time_limit: float = 60.0,
) -> Verdict:
    """`verify` for two files; raises `InputError` if one of them is not a model."""
    return verify(
        read_subject(original),
        read_subject(optimized),
        inputs=inputs,
        seed=seed,
        memory_limit=memory_limit,
        custom_op_library=custom_op_library,
        time_limit=time_limit,
    )


def verify(
    original: Subject,
    optimized: Subject,
    *,
    inputs: Mapping[str, np.ndarray] | None = None,
    seed: int = 0,
    memory_limit: int = 1 << 30,
    custom_op_library: str | Path | None = None,
    time_limit: float = 60.0,
    worker: Worker | None = None,
) -> Verdict:
    """Whether `optimized` computes what `original` computes, on random inputs or on `inputs`.

    Raises `InputError` if `inputs` are not what the original takes. Models whose weights need more than `memory_limit`
    bytes are judged region by region. `time_limit` is in seconds and holds for each call of the runtime.
    """
    started = time.perf_counter()
    judge = Examiner(memory_limit, str(custom_op_library) if custom_op_library is not None else None, worker or shared(), seed, time_limit)
    verdict = _verify(original, optimized, inputs, judge)
    verdict.seconds = time.perf_counter() - started
    return verdict


def _verify(original: Subject, optimized: Subject, inputs: Mapping[str, np.ndarray] | None, judge: Examiner) -> Verdict:
    reason = interface_change(original.proto, optimized.proto)
    if reason:
        return Verdict(DIFFERENT, reason)
    if same_graph(original, optimized):
        return Verdict(EQUAL, notes=["unchanged: the two models are the same graph; nothing was run"])
    try:
        plan = make_plan(original.proto)
    except NotImplementedError as error:
        return Verdict(UNVERIFIED, str(error))
    if inputs is not None:
        inputs = checked_inputs(inputs, plan)
    if (weight_bytes(original.proto) + weight_bytes(optimized.proto)) * _COPIES > judge.memory_limit:
        return _by_regions(original, optimized, judge, "the weights do not fit in the memory limit")
    if inputs is None and max(len(subject.proto.graph.node) for subject in (original, optimized)) > _MANY_NODES:
        # Loading is not linear in every runtime; where little differs, there is little to run.
        verdict = _by_regions(original, optimized, judge, f"there are more than {_MANY_NODES:,} nodes")
        if verdict.status == EQUAL:
            return verdict
    try:
        return _whole(original, optimized, inputs, plan, judge)
    except _TooMuch as reason:
        # What is the same in both models needs no running, and often that is nearly all.
        verdict = _by_regions(original, optimized, judge, str(reason))
        if verdict.status == UNVERIFIED:
            verdict.reason = f"{reason}; {verdict.reason}"
        return verdict


class _TooMuch(Exception):
    """The models can not be run as a whole: why."""


def _whole(
    original: Subject, optimized: Subject, inputs: Mapping[str, np.ndarray] | None, plan: Plan, judge: Examiner, region: Region | None = None
) -> Verdict:
    """The verdict on two models that are run as they are; they may be a region of larger ones."""
    try:
        request = judge.request(original, optimized, plan, inputs, region is None or region.closed)
    except ValueError:  # protobuf's, on a message over its limit
        raise _TooMuch("the model is too large to be handed to the runtime in one piece") from None
    judgement = judge.ask(request)
    if judgement.late:
        raise _TooMuch(judgement.reason)
    verdict = Verdict(
        judgement.status,
        judgement.reason,
        judgement.output,
        judgement.engine,
        judgement.outputs,
        judgement.runs,
        judgement.edges,
        judgement.sizes,
        judgement.notes,
        draw=judgement.draw,
    )
    still = [output.name for output in verdict.outputs if output.exercised is False]
    if still:
        verdict.notes.append(f"not exercised, the same on every draw: {', '.join(still)}")
    if verdict.status == EQUAL and region is None and judgement.costly:
        _with_costly_sizes(verdict, original, optimized, replace(request, edges=tuple(judgement.costly)), judge)
    if verdict.status == EQUAL and inputs is None and defaults(original.proto):
        _with_defaults_replaced(verdict, original, request, judge)
    return verdict


def _with_costly_sizes(verdict: Verdict, original: Subject, optimized: Subject, request: Request, judge: Examiner) -> None:
    """Sizes at which running the whole models takes long: first where they differ, and as a whole only where that tells them apart."""
    cut, end = Cut(original, optimized), time.monotonic() + request.patience
    sizes = tuple(sorted({size for edge in request.edges for size in edge.sizes}, reverse=True))
    for number in range(len(cut)):
        region = cut.region(number, 0, judge.memory_limit // _COPIES)
        if isinstance(region, str) or time.monotonic() > end:
            verdict.notes.append(f"sizes of {sizes[0]} were not tried everywhere: {region if isinstance(region, str) else 'running takes long'}")
            return
        try:
            plan = make_plan(region.original.proto)
        except NotImplementedError as reason:
            verdict.notes.append(f"sizes of {sizes[0]} were not tried in region {region.name}: {reason}")
            continue
        part = judge.ask(replace(judge.request(region.original, region.optimized, plan, closed=False), edges=(Edge(plan.symbols, sizes),)))
        if part.status != DIFFERENT:
            continue
        whole = judge.ask(replace(request, work=0, only_edges=True))
        if whole.status == DIFFERENT:
            verdict.status, verdict.reason, verdict.output, verdict.draw = DIFFERENT, whole.reason, whole.output, whole.draw
        elif not whole.edges:
            verdict.status, verdict.reason = UNVERIFIED, f"region of {region.name}: {part.reason} (on arbitrary values; the whole is too large to tell)"
        return


def _with_defaults_replaced(verdict: Verdict, original: Subject, request: Request, judge: Examiner) -> None:
    """One more trial in which inputs that have a default value are fed as well."""
    judgement = judge.ask(replace(request, plan=make_plan(original.proto, overridable=True), edges=()))
    if judgement.status == DIFFERENT:
        verdict.status = DIFFERENT
        verdict.reason = f"with other values for the inputs that have a default: {judgement.reason}"
    elif judgement.status == UNVERIFIED:
        verdict.notes.append(f"inputs that have a default value were left at it: {judgement.reason}")
    else:
        verdict.runs += judgement.runs


def _by_regions(original: Subject, optimized: Subject, judge: Examiner, reason: str) -> Verdict:
    """Judge apart what differs; what is the same in both needs no running. `reason` is why the models are not run whole."""
    cut = Cut(original, optimized)
    verdict = Verdict(EQUAL, regions=len(cut))
    verdict.notes.append(f"judged region by region, on random values between the regions: {reason}")
    results = {value.name for value in original.proto.graph.output}
    judged: set[object] = set()
    given_up = number = 0
    end = time.monotonic() + judge.time_limit
    while number < len(cut):
        if time.monotonic() > end and verdict.status == EQUAL:
            verdict.status, verdict.reason = UNVERIFIED, f"{len(cut) - number} of {len(cut)} regions were not reached in {judge.time_limit:g} s"
            break
        if cut.key(number) in judged:
            number += 1
            continue
        part, closed = _one_region(cut, number, judge)
        if part.status == DIFFERENT and part.output and given_up < _NAMES_GIVEN_UP and cut.uncut(part.output):
            given_up += 1
            number = 0
            continue
        if part.status == DIFFERENT and not (closed and (not part.output or part.output in results)):
            # A name inside the models may have been given to another value.
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


def _one_region(cut: Cut, number: int, judge: Examiner) -> tuple[Verdict, bool]:
    """The verdict on a region, and whether its inputs are the whole model's.

    What fails on arbitrary values between regions may hold on those that really arise, and what no arbitrary value moved
    may move on those: then deeper regions tell.
    """
    part, closed = Verdict(UNVERIFIED), False
    for depth in _DEPTHS:
        region = cut.region(number, depth, judge.memory_limit // _COPIES)
        if isinstance(region, str):
            part.reason = part.reason or region
            break
        form = region.form()
        if form is not None and form in judge.proved:
            return Verdict(EQUAL), False
        try:
            part, closed = _whole(region.original, region.optimized, None, make_plan(region.original.proto), judge, region), region.closed
        except (NotImplementedError, _TooMuch) as reason:
            part, closed = Verdict(UNVERIFIED, str(reason)), False
        if part.status == EQUAL:
            still = _not_tried(region, part)
            if not still and form is not None:
                judge.proved.add(form)
            if not still or (closed and still != _ONLY_ONES):  # what the whole model's inputs do not move is as good as constant
                break
            part.status, part.reason = UNVERIFIED, still
        elif part.status == DIFFERENT and not part.runs:
            # That a runtime refuses a part tells of how it was cut.
            part.status, part.output = UNVERIFIED, ""
        part.reason = f"region of {region.name}: {part.reason}"
        if closed:
            break
    return part, closed


def _not_tried(region: Region, part: Verdict) -> str:
    """Why running a region told nothing, though both models agreed; empty if it told something."""
    moving = region.moving()
    sizes = [column[: part.runs - part.edges] for column in part.sizes.values()]
    if sizes and all(size == 1 for column in sizes for size in column):
        return _ONLY_ONES
    # What depends on sizes alone is told by two choices of them.
    varied = len(set(zip(*sizes, strict=True))) != 1
    still = [output.name for output in part.outputs if output.exercised is False and not varied]
    still += [output.name for output in part.outputs if output.name in moving and not output.random and not output.exercised]
    return f"nothing that was drawn moved {still[0]}" if still else ""
