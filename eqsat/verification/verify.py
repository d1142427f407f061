"""The verify stage: it tells whether one model computes the same as another.

The input is two models (eqsat/verification/loaded_model.py), and perhaps the user's inputs; the
output is a `Verdict`, plain data with figures. "equal" has one of two reasons. Either the models
are the same graph. Or both ran on the same inputs, and every output that is not random was the same
bits, or within the tolerance that the original's own sensitivity sets. Models that could not run
are "unverified", with the reason. No model can take this process down (eqsat/runtime/worker.py).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from eqsat.facts.dims import render
from eqsat.model.sources import Source
from eqsat.parameters import value_types
from eqsat.runtime.worker import Worker, shared
from eqsat.verification.examiner import Examiner
from eqsat.verification.interface import checked_inputs, defaults, interface_change, same_graph
from eqsat.verification.loaded_model import LoadedModel, load_model, weight_bytes
from eqsat.verification.regions import Cut, Region
from eqsat.verification.request import DIFFERENT, EQUAL, UNVERIFIED, Judgement, OutputJudgement, Request
from eqsat.verification.samples import Draw, Edge, Plan, make_plan

__all__ = ["DIFFERENT", "EQUAL", "UNVERIFIED", "LoadedModel", "Verdict", "verify", "verify_files"]

# A weight is in memory as the file's bytes, as a tensor, and perhaps in a kernel's packed form.
_COPIES = 3
_MANY_NODES = 20_000
_NAMES_GIVEN_UP = 64
_ONLY_ONES = "it ran only at sizes that are all 1"
# The levels of nodes that a region takes in before it, in turn until it is found equal.
_DEPTHS = (0, 1, 4, 16, sys.maxsize)


@dataclass
class Verdict:
    """The result of verification; `asdict` of it is JSON.

    `status` is "equal", "different" or "unverified"; the last two have a `reason`. `output` is the
    output that differs, if one does. `sizes` lists the size of each named dimension in each run.
    The last `edges` of the runs were at edges: sizes 0, 1 and beyond the models' constants, and
    integers at the limits of their type. `regions` counts the parts that were judged apart; it is
    None if the models ran whole.
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
    draw: Draw | None = None  # the draw that showed the difference

    @property
    def max_error(self) -> float | None:
        """The largest error of any output; None if one was not finite."""
        errors = [output.max_error for output in self.outputs]
        return None if None in errors else max((error for error in errors if error is not None), default=0.0)

    def to_json(self) -> dict[str, Any]:
        """Returns the verdict as plain JSON data."""
        found = {**asdict(self), "max_error": self.max_error}
        del found["draw"]
        return found


def verify_files(
    original: Source,
    optimized: Source,
    *,
    inputs: Mapping[str, np.ndarray] | None = None,
    seed: int = 0,
    memory_limit: int | str = 1 << 30,
    custom_op_library: str | Path | None = None,
    time_limit: float = 60.0,
) -> Verdict:
    """Tells whether two models compute the same, by running both on the same inputs.

    Arguments:
        original: the model that sets the standard: a path, an `onnx.ModelProto`, an
            `onnx_ir.Model` or a `torch.onnx.ONNXProgram`.
        optimized: the model that is compared with it, in any of these kinds.
        inputs: the arrays to compare on, by the names of inputs; random ones by default.
        seed: another seed draws other inputs.
        memory_limit: models whose weights need more bytes are judged region by region; an integer,
            or a text such as "2G".
        custom_op_library: the path of a library of custom operators for ONNX Runtime.
        time_limit: the seconds after which a call of the runtime is given up.

    Returns a `Verdict`, whose `status` is "equal", "different" or "unverified". Raises `InputError`
    if an argument is no model, or the original does not take the `inputs`.

    >>> import eqsat
    >>> from onnx.parser import parse_model
    >>> head = '<ir_version: 8, opset_import: ["" : 17]> g (float[N, 4] x) => (float[N, 4] y)'
    >>> twice = parse_model(head + "{ y = Add (x, x) }")
    >>> square = parse_model(head + "{ y = Mul (x, x) }")
    >>> eqsat.verify(twice, twice).status
    'equal'
    >>> verdict = eqsat.verify(twice, square)
    >>> verdict.status, verdict.output
    ('different', 'y')
    """
    return verify(
        load_model(original, "original"),
        load_model(optimized, "optimized"),
        inputs=None if inputs is None else value_types.arrays("inputs", inputs),
        seed=value_types.whole_number("seed", seed),
        memory_limit=value_types.size_in_bytes("memory_limit", memory_limit),
        custom_op_library=None if custom_op_library is None else value_types.existing_file("custom_op_library", custom_op_library),
        time_limit=value_types.seconds("time_limit", time_limit),
    )


def verify(
    original: LoadedModel,
    optimized: LoadedModel,
    *,
    inputs: Mapping[str, np.ndarray] | None = None,
    seed: int = 0,
    memory_limit: int = 1 << 30,
    custom_op_library: str | Path | None = None,
    time_limit: float = 60.0,
    worker: Worker | None = None,
    proved: set[bytes] | None = None,
) -> Verdict:
    """Judges whether `optimized` computes the same as `original`, on random or given inputs.

    Raises `InputError` if the original does not take `inputs`. Models whose weights need more than
    `memory_limit` bytes are judged region by region. `time_limit` is in seconds and holds for each
    call of the runtime.

    With `proved`, the regions that differ are judged first, whatever the `inputs`. The whole models
    run only if some region is not found equal. `proved` is the forms of regions that were found
    equal so far, which need no other run; this call adds those that it finds.
    """
    started = time.perf_counter()
    library = str(custom_op_library) if custom_op_library is not None else None
    examiner = Examiner(memory_limit, library, worker or shared(), seed, time_limit, set() if proved is None else proved)
    verdict = _verify(original, optimized, inputs, examiner, proved is not None)
    verdict.seconds = time.perf_counter() - started
    return verdict


def _verify(original: LoadedModel, optimized: LoadedModel, inputs: Mapping[str, np.ndarray] | None, examiner: Examiner, changes_first: bool) -> Verdict:
    reason = interface_change(original.proto, optimized.proto)
    if reason:
        return Verdict(DIFFERENT, reason)
    # Inputs that do not fit are a mistake even where nothing has to run.
    same = same_graph(original, optimized)
    if same and inputs is None:
        return _unchanged()
    try:
        plan = make_plan(original.proto)
    except NotImplementedError as error:
        return _unchanged() if same else Verdict(UNVERIFIED, str(error))
    if inputs is not None:
        inputs = checked_inputs(inputs, plan)
    if same:
        return _unchanged()
    if (weight_bytes(original.proto) + weight_bytes(optimized.proto)) * _COPIES > examiner.memory_limit:
        return _by_regions(original, optimized, examiner, "the weights do not fit in the memory limit")
    many = inputs is None and max(len(model.proto.graph.node) for model in (original, optimized)) > _MANY_NODES
    doubt = ""
    if many or changes_first:
        # Not every runtime loads in linear time. If models differ little, little has to run.
        why = f"there are more than {_MANY_NODES:,} nodes" if many else "only what differs had to run"
        verdict = _by_regions(original, optimized, examiner, why)
        if verdict.status == EQUAL:
            return verdict
        doubt = verdict.reason
    try:
        verdict = _whole(original, optimized, inputs, plan, examiner)
        if doubt:
            verdict.notes.append(f"the whole models ran, for their regions did not tell: {doubt}")
        return verdict
    except _TooMuch as reason:
        # Parts that both models share need no run, and often that is nearly everything.
        verdict = _by_regions(original, optimized, examiner, str(reason))
        if verdict.status == UNVERIFIED:
            verdict.reason = f"{reason}; {verdict.reason}"
        return verdict


def _unchanged() -> Verdict:
    return Verdict(EQUAL, notes=["unchanged: the two models are the same graph; nothing was run"])


class _TooMuch(Exception):
    """The models cannot run as a whole; the text says why."""


def _whole(
    original: LoadedModel, optimized: LoadedModel, inputs: Mapping[str, np.ndarray] | None, plan: Plan, examiner: Examiner, region: Region | None = None
) -> Verdict:
    """Returns the verdict on two models that run whole; `region` tells if they are a region."""
    try:
        request = examiner.request(original, optimized, plan, inputs, region is None or region.closed)
    except ValueError:  # protobuf raises it for a message over its limit
        raise _TooMuch("the model is too large to be handed to the runtime in one piece") from None
    judgement = examiner.ask(request)
    related = examiner.at_related_sizes(original, request) if region is None and inputs is None and _fits_ones_alone(judgement) else None
    if related is not None:
        request, judgement = related, examiner.ask(related)
        judgement.notes += [f"ran where {name} is {render(size)}" for name, size in related.plan.computed.items()]
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
        _with_costly_sizes(verdict, original, optimized, replace(request, edges=tuple(judgement.costly)), examiner)
    if verdict.status == EQUAL and inputs is None and defaults(original.proto):
        _with_defaults_replaced(verdict, original, request, examiner)
    return verdict


def _fits_ones_alone(judgement: Judgement) -> bool:
    """Tells whether the original ran at no usual sizes, or at sizes that are all 1: at these, what
    has to be equal broadcasts.
    """
    usual = judgement.runs - judgement.edges
    return not judgement.late and judgement.status != DIFFERENT and all(size == 1 for column in judgement.sizes.values() for size in column[:usual])


def _with_costly_sizes(verdict: Verdict, original: LoadedModel, optimized: LoadedModel, request: Request, examiner: Examiner) -> None:
    """Tries sizes at which whole models take long, first on the regions that differ.

    The whole models run only if a region shows a difference.
    """
    cut, end = Cut(original, optimized), time.monotonic() + request.patience
    sizes = tuple(sorted({size for edge in request.edges for size in edge.sizes}, reverse=True))
    for number in range(len(cut)):
        region = cut.region(number, 0, examiner.memory_limit // _COPIES)
        if isinstance(region, str) or time.monotonic() > end:
            verdict.notes.append(f"sizes of {sizes[0]} were not tried everywhere: {region if isinstance(region, str) else 'running takes long'}")
            return
        try:
            plan = make_plan(region.original.proto)
        except NotImplementedError as reason:
            verdict.notes.append(f"sizes of {sizes[0]} were not tried in region {region.name}: {reason}")
            continue
        part = examiner.ask(replace(examiner.request(region.original, region.optimized, plan, closed=False), edges=(Edge(plan.symbols, sizes),)))
        if part.status != DIFFERENT:
            continue
        whole = examiner.ask(replace(request, work=0, only_edges=True))
        if whole.status == DIFFERENT:
            verdict.status, verdict.reason, verdict.output, verdict.draw = DIFFERENT, whole.reason, whole.output, whole.draw
        elif not whole.edges:
            verdict.status, verdict.reason = UNVERIFIED, f"region of {region.name}: {part.reason} (on arbitrary values; the whole is too large to tell)"
        return


def _with_defaults_replaced(verdict: Verdict, original: LoadedModel, request: Request, examiner: Examiner) -> None:
    """Runs another trial that also feeds the inputs with a default value."""
    judgement = examiner.ask(replace(request, plan=make_plan(original.proto, overridable=True), edges=()))
    if judgement.status == DIFFERENT:
        verdict.status = DIFFERENT
        verdict.reason = f"with other values for the inputs that have a default: {judgement.reason}"
    elif judgement.status == UNVERIFIED:
        verdict.notes.append(f"inputs that have a default value were left at it: {judgement.reason}")
    else:
        verdict.runs += judgement.runs


def _by_regions(original: LoadedModel, optimized: LoadedModel, examiner: Examiner, reason: str) -> Verdict:
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
        part, closed = _one_region(cut, number, examiner)
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


def _one_region(cut: Cut, number: int, examiner: Examiner) -> tuple[Verdict, bool]:
    """Returns the verdict on a region, and whether its inputs are the whole model's.

    A region may fail on arbitrary values and hold on those that really arise. Arbitrary values may
    also fail to move an output that real ones move. Deeper regions settle both.
    """
    part, closed = Verdict(UNVERIFIED), False
    for depth in _DEPTHS:
        region = cut.region(number, depth, examiner.memory_limit // _COPIES)
        if isinstance(region, str):
            part.reason = part.reason or region
            break
        form = region.form()
        if region.is_same() or (form is not None and form in examiner.proved):
            return Verdict(EQUAL), False
        try:
            part, closed = _whole(region.original, region.optimized, None, make_plan(region.original.proto), examiner, region), region.closed
        except (NotImplementedError, _TooMuch) as reason:
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
    return part, closed


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
