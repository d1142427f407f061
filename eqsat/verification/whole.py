"""Whole models: two models run as they are, on the same inputs, and their outputs are compared.

The input is two models and a plan for drawing inputs. The output is a `Verdict`. A region of two
models is a pair of models too (eqsat/verification/regions.py), and runs in the same way.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from eqsat.facts.dims import render
from eqsat.model.prepare import default_inputs
from eqsat.verification.examiner import Examiner, patience_after
from eqsat.verification.loaded_model import LoadedModel
from eqsat.verification.model_verdict import Verdict
from eqsat.verification.region import Region
from eqsat.verification.regions import Cut
from eqsat.verification.request import DIFFERENT, EQUAL, UNVERIFIED, Judgement, Request
from eqsat.verification.runs import affords_some
from eqsat.verification.sample_plan import Edge, Plan

_LONGER = 8  # times as long as at usual edges whole models may run where no region can tell


class TooMuch(Exception):
    """The models cannot run as a whole; the text says why."""


def whole(
    original: LoadedModel,
    optimized: LoadedModel,
    inputs: Mapping[str, np.ndarray] | None,
    plan: Plan,
    examiner: Examiner,
    region: Region | None = None,
    inside: Sequence[str] = (),
) -> Verdict:
    """Returns the verdict on two models that run whole; `region` tells if they are a region. Values
    `inside` that agree are in the verdict.
    """
    try:
        request = examiner.request(original, optimized, plan, inputs, region is None or region.closed, inside)
    except ValueError:  # protobuf raises it for a message over its limit
        raise TooMuch("the model is too large to be handed to the runtime in one piece") from None
    begun = time.monotonic()
    judgement = examiner.ask(request)
    related = examiner.at_related_sizes(original, request) if region is None and inputs is None and _fits_ones_alone(judgement) else None
    if related is not None:
        request, judgement = related, examiner.ask(related)
        judgement.notes += [f"ran where {name} is {render(size)}" for name, size in related.plan.computed.items()]
    if judgement.too_much:
        raise TooMuch(judgement.reason)
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
        relative=judgement.relative,
        agreed=judgement.agreed,
        seconds_inside=judgement.seconds_inside,
    )
    request = replace(request, inside=())
    still = [output.name for output in verdict.outputs if output.exercised is False]
    if still:
        verdict.notes.append(f"not exercised, the same on every draw: {', '.join(still)}")
    if verdict.status == EQUAL and region is None and judgement.costly:
        patience = patience_after(time.monotonic() - begun, request.patience)
        _with_costly_sizes(verdict, original, optimized, replace(request, edges=tuple(judgement.costly)), examiner, patience)
    if verdict.status == EQUAL and inputs is None and default_inputs(original.proto):
        _with_defaults_replaced(verdict, original, request, examiner)
    return verdict


def _fits_ones_alone(judgement: Judgement) -> bool:
    """Tells whether the original ran at no usual sizes, or at sizes that are all 1: at these, what
    has to be equal broadcasts.
    """
    usual = judgement.runs - judgement.edges
    return not judgement.too_much and judgement.status != DIFFERENT and all(size == 1 for column in judgement.sizes.values() for size in column[:usual])


def _with_costly_sizes(verdict: Verdict, original: LoadedModel, optimized: LoadedModel, request: Request, examiner: Examiner, patience: float) -> None:
    """Tries sizes at which whole models take long, first on the regions that differ.

    The whole models run at such a size only if a region shows a difference there alone. A region that
    shows one at usual sizes too tells nothing, since its inputs are arbitrary; then the whole models
    run at the largest of the sizes that do not take much longer than usual. No region begins after
    `patience`, in seconds.
    """
    cut, end = Cut(original, optimized), time.monotonic() + patience
    sizes = tuple(sorted({size for edge in request.edges for size in edge.sizes}, reverse=True))
    untried = f"sizes of {sizes[0]} were not tried"
    costly = blind = False
    for number in range(len(cut)):
        region = cut.region(number, 0, examiner.memory_limit)
        if isinstance(region, str) or time.monotonic() > end:
            verdict.notes.append(f"{untried} everywhere: {region if isinstance(region, str) else 'running takes long'}")
            return
        try:
            plan = examiner.plan(region.original.proto)
        except NotImplementedError as reason:
            verdict.notes.append(f"{untried} in region {region.name}: {reason}")
            continue
        if not plan.symbols:  # all its sizes are fixed
            continue
        asked = examiner.request(region.original, region.optimized, plan, closed=False)
        if not affords_some(asked, sizes):
            costly = True
            continue
        part = examiner.ask(replace(asked, edges=(Edge(plan.symbols, sizes),), only_edges=True))
        costly |= bool(part.costly)
        if part.status != DIFFERENT:
            continue
        telling = examiner.ask(replace(asked, edges=())).status != DIFFERENT
        if blind and not telling:
            continue
        work, nodes = (0, 0) if telling else (request.work // _LONGER, request.nodes // _LONGER)
        found = examiner.ask(replace(request, work=work, nodes=nodes, only_edges=True))
        if found.status == DIFFERENT:
            verdict.status, verdict.reason, verdict.output, verdict.draw = DIFFERENT, found.reason, found.output, found.draw
        elif telling and not found.edges:
            verdict.status, verdict.reason = UNVERIFIED, f"region of {region.name}: {part.reason} (on arbitrary values; the whole is too large to tell)"
        if telling or found.status == DIFFERENT or (found.edges and not found.costly):
            return
        blind = True
    if costly or blind:
        verdict.notes.append(f"{untried} everywhere: running takes long")


def _with_defaults_replaced(verdict: Verdict, original: LoadedModel, request: Request, examiner: Examiner) -> None:
    """Runs another trial that also feeds the inputs with a default value."""
    judgement = examiner.ask(replace(request, plan=examiner.plan(original.proto, overridable=True), edges=()))
    if judgement.status == DIFFERENT:
        verdict.status = DIFFERENT
        verdict.reason = f"with other values for the inputs that have a default: {judgement.reason}"
    elif judgement.status == UNVERIFIED:
        verdict.notes.append(f"inputs that have a default value were left at it: {judgement.reason}")
    else:
        verdict.runs += judgement.runs
