"""Turns: a set of rules rewrites a model, turn by turn.

The input is a model as it is read, and a job. The output is an attempt. Each turn
(eqsat/rewriting/turn.py) starts from the result of the turn before. Turns go on while there is more to
find and the result gets better.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx

from eqsat.control.calls import inlinable
from eqsat.deadline import Deadline
from eqsat.egraph.phases import Plan
from eqsat.language.library import Library
from eqsat.model.file_bytes import model_bytes
from eqsat.model.imports import standard_opset
from eqsat.model.model import Model, all_graphs
from eqsat.model.read import normalize
from eqsat.operators import full_name, normal_domain
from eqsat.rewriting.attempt import STOPS, Attempt
from eqsat.rewriting.beyond_rules import declare_sizes, flush_weights
from eqsat.rewriting.declared_sizes import DECLARED
from eqsat.rewriting.faint_weights import FLUSHED
from eqsat.rewriting.job import Job
from eqsat.rewriting.opening import may_open
from eqsat.rewriting.own_constants import OWNED, with_own_constants
from eqsat.rewriting.trace import fired_rules
from eqsat.rewriting.turn import open_known, take_turn
from eqsat.rewriting.valuation import Valuation
from eqsat.shipped import SELDOM

_OPENED = 8  # turns in all, the first included, that newly known control flow may lead to


def attempt(model: Model, job: Job, library: Library, kept: frozenset[str] = frozenset()) -> Attempt:
    """Rewrites the model by these rules. The result is valid and no worse than the original, or
    else is the original. Turns repeat while there is more to find and the result gets better.

    The nodes of the main graph that compute a `kept` value stay as they are. Functions that are
    called several times are inlined if the result is better and the file stays small enough.
    """
    size = model_bytes(model.proto)
    most = size + job.settings.growth(size)
    library = job.allowed(library, standard_opset(model.proto.opset_import))
    found = _attempt(model, job, most, library, kept)
    if kept or job.flat or found.hit in STOPS or not inlinable(found.model, everything=True):
        return found
    job.settings.progress("optimize, with all functions inlined")
    flat = _attempt(model, replace(job, flat=True), most, library, kept)
    used, other = (flat, found) if model_bytes(flat.model) <= most and job.valuation.is_better(flat.model, found.model, model.folder) else (found, flat)
    used.trace.looked(other.trace)
    used.hit = other.hit if other.hit in STOPS else used.hit
    return used


def _attempt(model: Model, job: Job, most: float, library: Library, kept: frozenset[str]) -> Attempt:
    """Rewrites the model in turns. The result may take at most `most` bytes."""
    found = _at_seams(_begun(model, job, most, library, kept), model.folder, job, most, library, kept, True)
    for turn in range(1, max(job.plan.turns, _OPENED)):
        # A turn may make a condition known, so rules can find more in the branch that is taken.
        now = frozenset(found.trace.became.get(name, name) for name in kept)
        opens = not found.closed and found.hit not in STOPS and may_open(found.model)
        opens = opens and open_known(normalize(found.model, model.folder, None), job, most, now) is not found.model
        unfinished = job.unfinished(found.model)
        # Rules that hide a Softmax had to wait until it makes no subnormal numbers.
        waited = found.raised and found.hit not in STOPS and bool(job.valuation.target.hides_softmax)
        if not opens and not ((waited or found.hit in unfinished) and turn < job.plan.turns):
            break
        job.settings.progress(f"optimize, turn {turn + 1}, {_so_far(found.model, model.folder, job.valuation)}")
        found.settle_before(job)
        here = job.in_regions if job.cuts(found.model) else job
        again = take_turn(normalize(found.model, model.folder, None), here, most, library, now, found.closed, turn % 2 == 1)
        mended = job.valuation.mends(again.model, found.model, model.folder)
        if mended and job.valuation.is_worse(again.model, model.proto, model.folder):
            found.stay(model.proto)
            return found
        if not mended and not job.valuation.is_better(again.model, found.model, model.folder):
            # The record includes a turn that found nothing better, and the limit that ended it.
            found.trace.looked(again.trace)
            found.ended(again)
            break
        again.follow(found, job)
        found = _at_seams(again, model.folder, job, most, library, kept, turn % 2 == 0)
    found = _after_turns(found, model.folder, job, most, library, kept)
    found.settle(job)
    return _for_the_runtime(found, model.folder, job, most, bool(kept))


def _so_far(model: onnx.ModelProto, folder: Path | None, valuation: Valuation) -> str:
    """Describes the best model so far, for people."""
    figures = valuation.figures(model, folder)
    return f"{figures.nodes} nodes" + ("" if valuation.target.counts else f" and {figures.totals.seconds * 1e3:.3g} ms so far")


def _begun(model: Model, job: Job, most: float, library: Library, kept: frozenset[str]) -> Attempt:
    """Runs the first turn. A large model takes a turn as a whole before it is cut: its constants are
    folded, since regions may share the nodes that compute them, and rules run that move nodes over
    long ways.
    """
    if not job.cuts(model.proto):
        return take_turn(model, job, most, library, kept)
    plan, regions = job.plan.before_cut, job.in_regions
    far = _named(library, plan)
    folded = take_turn(model, replace(job, plan=plan if plan.phases else Plan(job.plan.phases[:1])), most, far, kept)
    if folded.model is model.proto or folded.hit in STOPS:
        return take_turn(model, regions, most, library, kept)
    folded.settle_before(job)
    now = frozenset(folded.trace.became.get(name, name) for name in kept)
    found = take_turn(normalize(folded.model, model.folder, None), regions, most, library, now, folded.closed)
    folded.settle(job)
    found.trace.follow(folded.trace)
    if found.hit not in STOPS and job.valuation.is_worse(found.model, model.proto, model.folder):
        found.stay(model.proto)
    return found


def _named(library: Library, plan: Plan) -> Library:
    """Returns the groups of rules that the phases of a plan name."""
    groups = {group for phase in plan.phases for group in phase.groups}
    return Library(tuple(group for group in library.groups if group.name in groups))


def _after_turns(found: Attempt, folder: Path | None, job: Job, most: float, library: Library, kept: frozenset[str]) -> Attempt:
    """Runs the rules of a target's own groups that come last, over the result. Returns what they find if
    it is better.
    """
    if found.hit in STOPS or job.greedy:
        return found
    operators = {full_name(normal_domain(node.domain), node.op_type) for graph in all_graphs(found.model.graph) for node in graph.node}
    plan = job.plan.after_turns(job.valuation.target.cold, operators)
    last = _named(library, plan)
    if not any(group.name in SELDOM for group in last.groups):
        return found
    return _better_by(found, folder, job, plan, most, last, kept, False)


def _for_the_runtime(found: Attempt, folder: Path | None, job: Job, most: float, mends: bool) -> Attempt:
    """Changes what is no node and what rules do not see, where the runtime is faster for it: loops store
    their own constants, sizes are declared where it fuses more, and subnormal weights become zeros.
    Results may round differently, so an attempt that `mends` another leaves weights alone.
    """
    if found.hit in STOPS or job.settings.exact or job.settings.only:
        return found
    if job.valuation.asks:
        found.become(with_own_constants(found.model), OWNED, job)
    found.become(declare_sizes(found.model, folder, job.valuation, most - model_bytes(found.model)), DECLARED, job)
    before = found.model
    if not mends:
        found.become(flush_weights(found.model, folder, job.valuation), FLUSHED, job)
    found.unflushed = None if found.model is before else before
    return found


def _at_seams(found: Attempt, folder: Path | None, job: Job, most: float, library: Library, kept: frozenset[str], shifted: bool) -> Attempt:
    """Simplifies a model that was cut into regions once more, in regions with other seams. Returns
    the result if it is better.
    """
    if found.hit in STOPS or job.greedy or not job.cuts(found.model):
        return found
    return _better_by(found, folder, job, job.plan.simplifying, most, library, kept, shifted)


def _better_by(found: Attempt, folder: Path | None, job: Job, plan: Plan, most: float, library: Library, kept: frozenset[str], shifted: bool) -> Attempt:
    """Rewrites a model once more by a plan of its own. Returns the result if it is better."""
    found.settle_before(job)
    now = frozenset(found.trace.became.get(name, name) for name in kept)
    again = take_turn(normalize(found.model, folder, None), replace(job, plan=plan), most, library, now, found.closed, shifted)
    if not job.valuation.is_better(again.model, found.model, folder):
        found.trace.looked(again.trace)
        if again.hit in STOPS:
            found.ended(again)
        return found
    again.follow(found, job)
    if again.hit is None:
        again.ended(found)
    return again


def needed_rules(model: Model, job: Job, library: Library, found: Attempt, kept: frozenset[str]) -> dict[str, bool]:
    """Tells for each rule that fired whether the model gets worse without it."""
    timeless = replace(job, deadline=Deadline())
    without = {name: attempt(model, timeless, library.select((), (name,)), kept).model for name in fired_rules(found.trace)}
    return {name: job.valuation.is_worse(other, found.model, model.folder) for name, other in without.items()}
