"""Attempts: a set of rules rewrites a model, and a record of the run is kept.

An attempt takes turns. Each turn starts from the result of the turn before. Turns go on while there
is more to find and the result gets better. Before each turn, control flow, sequences and optionals
become nodes that rules see, as far as enough is known of them.
"""

from __future__ import annotations

from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path

import onnx

from eqsat.choose.folding import calls
from eqsat.choose.storing import Place
from eqsat.control.arguments import drop_unread
from eqsat.control.calls import inlinable, speaks_as_model
from eqsat.deadline import INTERRUPTED, Deadline
from eqsat.egraph.admission import RuleSet
from eqsat.egraph.limits import Limits
from eqsat.egraph.outer import Outer
from eqsat.egraph.phases import Phase, Plan
from eqsat.frozen import mutable
from eqsat.garbage import MANY, give_back
from eqsat.language.library import Library
from eqsat.language.syntax import Label
from eqsat.model.file_bytes import model_bytes
from eqsat.model.imports import import_domains, standard_opset
from eqsat.model.model import Function, Model, all_graphs, attribute_graphs, copy_fields, function_key
from eqsat.model.names import FreshNames, all_names
from eqsat.model.read import normalize
from eqsat.model.validity import is_typed, is_valid
from eqsat.operators import full_name, normal_domain
from eqsat.rewriting.declared_sizes import DECLARED
from eqsat.rewriting.faint_weights import FLUSHED
from eqsat.rewriting.finished import RAISED, Finished
from eqsat.rewriting.job import Job
from eqsat.rewriting.opening import may_open, opened
from eqsat.rewriting.own_constants import OWNED, with_own_constants
from eqsat.rewriting.portions import Unchanged
from eqsat.rewriting.rewrite import Options, Rewriter
from eqsat.rewriting.solved import Turn
from eqsat.rewriting.trace import Trace, fired_rules, waiting_matches
from eqsat.rewriting.valuation import Valuation
from eqsat.runtime.worker import shared
from eqsat.shipped import SELDOM

_OPENED = 8  # turns in all, the first included, that newly known control flow may lead to
_STOPS = (INTERRUPTED, "time", "memory")  # limits that end the whole run


@lru_cache(maxsize=8)
def _ruleset(library: Library, least: Label, phases: tuple[Phase, ...]) -> RuleSet:
    return RuleSet(library.directions, least, groups=library.group_of, phases=phases)


@mutable
class Attempt:
    """The result of one rewriting of the model, after its check."""

    model: onnx.ModelProto
    trace: Trace
    hit: str | None
    notes: list[str]
    closed: bool = False  # whether control flow stays even if its condition is known
    raised: bool = False  # whether low scores were raised in this turn
    unflushed: onnx.ModelProto | None = None  # the model with its subnormal weights, if these became zeros
    # By rule, the matches that the limit left unapplied.
    waiting: dict[str, int] = field(default_factory=dict[str, int])

    def unflush(self) -> None:
        """Takes the subnormal weights back."""
        assert self.unflushed is not None
        self.model, self.unflushed = self.unflushed, None
        self.notes.remove(FLUSHED)
        del self.trace.turns[-1:]

    def stay(self, original: onnx.ModelProto) -> None:
        """Takes the original in place of what was found."""
        self.model = original
        self.trace.forget()
        self.notes = ["the rewritten model was no better than the original, which stays as it is"]

    def ended(self, other: Attempt) -> None:
        """Takes over the limit that ended another turn."""
        self.hit, self.waiting = other.hit, other.waiting


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
    if kept or job.flat or found.hit in _STOPS or not inlinable(found.model, everything=True):
        return found
    job.settings.progress("optimize, with all functions inlined")
    flat = _attempt(model, replace(job, flat=True), most, library, kept)
    used, other = (flat, found) if model_bytes(flat.model) <= most and job.valuation.is_better(flat.model, found.model, model.folder) else (found, flat)
    used.trace.looked(other.trace)
    used.hit = other.hit if other.hit in _STOPS else used.hit
    return used


def _attempt(model: Model, job: Job, most: float, library: Library, kept: frozenset[str]) -> Attempt:
    """Rewrites the model in turns. The result may take at most `most` bytes."""
    found = _at_seams(_begun(model, job, most, library, kept), model.folder, job, most, library, kept, True)
    for turn in range(1, max(job.plan.turns, _OPENED)):
        # A turn may make a condition known, so rules can find more in the branch that is taken.
        now = frozenset(found.trace.became.get(name, name) for name in kept)
        opens = not found.closed and found.hit not in _STOPS and may_open(found.model)
        opens = opens and _opened(normalize(found.model, model.folder, None), job, most, now) is not found.model
        unfinished = job.unfinished(found.model)
        # Rules that hide a Softmax had to wait until it makes no subnormal numbers.
        waited = found.raised and found.hit not in _STOPS and bool(job.valuation.target.hides_softmax)
        if not opens and not ((waited or found.hit in unfinished) and turn < job.plan.turns):
            break
        job.settings.progress(f"optimize, turn {turn + 1}, {_so_far(found.model, model.folder, job.valuation)}")
        _settle_before(found, job)
        here = job.in_regions if job.cuts(found.model) else job
        again = _turn(normalize(found.model, model.folder, None), here, most, library, now, found.closed, turn % 2 == 1)
        mended = job.valuation.mends(again.model, found.model, model.folder)
        if mended and job.valuation.is_worse(again.model, model.proto, model.folder):
            found.stay(model.proto)
            return found
        if not mended and not job.valuation.is_better(again.model, found.model, model.folder):
            # The record includes a turn that found nothing better, and the limit that ended it.
            found.trace.looked(again.trace)
            found.ended(again)
            break
        _follow(again, found, job)
        found = _at_seams(again, model.folder, job, most, library, kept, turn % 2 == 0)
    found = _after_turns(found, model.folder, job, most, library, kept)
    _settle(found, job)
    return _for_the_runtime(found, model.folder, job, most, bool(kept))


def _settle(found: Attempt, job: Job) -> None:
    """Finds out which rules a result uses that is kept."""
    priced = job.settings.reasons and job.deadline.hit is None
    found.trace.settle(shared(), job.settings.extractor if priced else None)


def _settle_before(found: Attempt, job: Job) -> None:
    """Finds out which rules a result uses, and frees its e-graphs before prices or the next turn need memory.
    Reasons against rules wait for all turns, since a later one may fire more.
    """
    if not job.settings.reasons:
        _settle(found, job)
    give_back(len(found.model.graph.node))


def _follow(again: Attempt, before: Attempt, job: Job) -> None:
    """Adds to the record of a turn that of the one which made its input."""
    _settle(before, job)
    again.trace.follow(before.trace)
    again.notes[:0] = [note for note in before.notes if note not in again.notes]


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
        return _turn(model, job, most, library, kept)
    plan, regions = job.plan.before_cut, job.in_regions
    far = _named(library, plan)
    folded = _turn(model, replace(job, plan=plan if plan.phases else Plan(job.plan.phases[:1])), most, far, kept)
    if folded.model is model.proto or folded.hit in _STOPS:
        return _turn(model, regions, most, library, kept)
    _settle_before(folded, job)
    now = frozenset(folded.trace.became.get(name, name) for name in kept)
    found = _turn(normalize(folded.model, model.folder, None), regions, most, library, now, folded.closed)
    _settle(folded, job)
    found.trace.follow(folded.trace)
    if found.hit not in _STOPS and job.valuation.is_worse(found.model, model.proto, model.folder):
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
    if found.hit in _STOPS or job.greedy:
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
    if found.hit in _STOPS or job.settings.exact or job.settings.only:
        return found
    if job.valuation.asks:
        _become(found, with_own_constants(found.model), OWNED, job)
    _become(found, job.valuation.declared(found.model, folder, most - model_bytes(found.model)), DECLARED, job)
    before = found.model
    if not mends:
        _become(found, job.valuation.flushed(found.model, folder), FLUSHED, job)
    found.unflushed = None if found.model is before else before
    return found


def _become(found: Attempt, model: onnx.ModelProto, note: str, job: Job) -> None:
    """Makes another model of the same nodes the result, with a note."""
    if model is not found.model:
        found.notes.append(note)
        found.trace.turns += [Turn(found.model, model)] if job.keep else []
        found.model = model


def _at_seams(found: Attempt, folder: Path | None, job: Job, most: float, library: Library, kept: frozenset[str], shifted: bool) -> Attempt:
    """Simplifies a model that was cut into regions once more, in regions with other seams. Returns
    the result if it is better.
    """
    if found.hit in _STOPS or job.greedy or not job.cuts(found.model):
        return found
    return _better_by(found, folder, job, job.plan.simplifying, most, library, kept, shifted)


def _better_by(found: Attempt, folder: Path | None, job: Job, plan: Plan, most: float, library: Library, kept: frozenset[str], shifted: bool) -> Attempt:
    """Rewrites a model once more by a plan of its own. Returns the result if it is better."""
    _settle_before(found, job)
    now = frozenset(found.trace.became.get(name, name) for name in kept)
    again = _turn(normalize(found.model, folder, None), replace(job, plan=plan), most, library, now, found.closed, shifted)
    if not job.valuation.is_better(again.model, found.model, folder):
        found.trace.looked(again.trace)
        if again.hit in _STOPS:
            found.ended(again)
        return found
    _follow(again, found, job)
    if again.hit is None:
        again.ended(found)
    return again


def _turn(model: Model, job: Job, most: float, library: Library, kept: frozenset[str], closed: bool = False, shifted: bool = False) -> Attempt:
    """Rewrites the model once. The result may take at most `most` bytes."""
    proto, trace = model.proto, Trace()
    found = Attempt(proto, trace, None, [], closed)
    stayed = same = False
    chosen = Finished(proto, proto, proto)
    try:
        simple: tuple[onnx.ModelProto, Trace] | None = None
        if proto.training_info:
            found.notes.append("the model holds training information, which refers to its values by name: it stays as it is")
        else:
            known = _opened(model, job, most, kept) if not closed and may_open(proto) else proto
            found.model, simple = _rewrite(model if known is proto else normalize(known, model.folder, None), job, most, library, trace, kept, shifted)
            same = found.model is proto
            if known is not proto and not is_typed(found.model) and is_typed(proto):
                # A branch can hold a node that no runtime accepts outside of it, such as a Range
                # with a limit that is no scalar.
                trace, found.closed = Trace(), True
                found.trace = trace
                found.model, simple = _rewrite(model, job, most, library, trace, kept, shifted)
        found.hit = next((record.hit for record in trace.records if record.hit), trace.folding or trace.choosing)
        found.waiting = waiting_matches(trace)
        found.notes += trace.notes
        found.notes += [f"the rule {name} is wrong: {reason}" for record in trace.records for name, reason in record.wrong.items()]
        if len(proto.graph.node) >= MANY:
            _settle_before(found, job)  # prices take memory, too
        other = job.valuation.loaded(found.model, proto, model.folder)
        original, chosen = job.finished(proto, model.folder), job.finished(other, model.folder)
        if not _is_lawful(chosen.model, proto) or job.valuation.is_worse(chosen.model, original.model, model.folder):
            chosen = original
        # The first phase only simplifies. Its model may be faster in the runtime, or need less
        # memory.
        plain = None if simple is None else job.finished(job.valuation.loaded(simple[0], proto, model.folder), model.folder)
        if simple is not None and plain is not None and _is_lawful(plain.model, proto) and job.valuation.is_better(plain.model, chosen.model, model.folder):
            chosen, found.trace = plain, simple[1]
            found.trace.looked(trace)
        elif chosen is original and not same:
            found.notes.append(f"the rewritten model was no better than the original, {original.changes(proto)}")
            stayed = True
        found.model = chosen.model
        found.raised = chosen.raised
        found.notes += [RAISED] if found.raised else []
    except KeyboardInterrupt:
        found.hit, found.model = INTERRUPTED, proto
    except MemoryError:
        found.hit, found.model = "memory", proto
    # A choice of the model as it is was made for reasons, too.
    if stayed or (found.model is proto and not same):
        found.trace.forget()
    if job.keep:
        rewritten = found.trace.turns[0] if found.trace.turns and not stayed else Turn(proto, proto)
        found.trace.turns = [] if found.model is proto else chosen.turns(replace(rewritten, before=proto))
    return found


def _opened(model: Model, job: Job, most: float, kept: frozenset[str]) -> onnx.ModelProto:
    """Returns the model with bodies and calls opened. Half of the bytes by which the file may still
    grow are left for the turn itself.
    """
    return opened(model, job.valuation, job.deadline, kept, (most - model_bytes(model.proto)) / 2, job.flat, job.settings.exact)


def _is_lawful(model: onnx.ModelProto, original: onnx.ModelProto) -> bool:
    """Tells whether a model is as valid as its original. Folding can reveal a type that was unknown
    before and that no runtime accepts.
    """
    return all(holds(model) or not holds(original) for holds in (is_valid, is_typed))


def needed_rules(model: Model, job: Job, library: Library, found: Attempt, kept: frozenset[str]) -> dict[str, bool]:
    """Tells for each rule that fired whether the model gets worse without it."""
    timeless = replace(job, deadline=Deadline())
    without = {name: attempt(model, timeless, library.select((), (name,)), kept).model for name in fired_rules(found.trace)}
    return {name: job.valuation.is_worse(other, found.model, model.folder) for name, other in without.items()}


def _rewrite(
    model: Model, job: Job, most: float, library: Library, trace: Trace, kept: frozenset[str], shifted: bool
) -> tuple[onnx.ModelProto, tuple[onnx.ModelProto, Trace] | None]:
    """Returns the rewritten model, or the model itself where nothing has changed. If extraction does
    not see the whole cost, also returns the model after the first phase alone, with its record.
    """
    proto, settings = model.proto, job.settings
    ruleset = _ruleset(job.suitable(library, model), job.least, job.plan.phases)
    options = Options(
        Limits(job.deadline, settings.node_limit, settings.memory_bytes),
        most - model_bytes(proto),
        settings.memory_bytes,
        settings.assume_dims,
        job.valuation.target,
        # The peak of memory is no sum over nodes, so extraction counts the bytes moved instead. A
        # choice that moves few bytes keeps few alive.
        "bytes" if job.valuation.objective == "memory" else job.valuation.objective,
        ruleset,
        settings.extractor,
        job.plan.proof,
        settings.extract_time,
        settings.dump_egraph is not None,
        # Only an e-graph grows so fast with a model that the model has to be cut.
        None if job.greedy else job.regions,
        shifted,
        job.greedy,
        settings.seed,
        settings.domains,
        lambda step: settings.progress(f"optimize, {step}"),
        job.keep,
    )
    graphs = [proto.graph, *(function.body.proto for function in model.functions.values())]
    rewriter = Rewriter(model, options, FreshNames(name for graph in graphs for name in all_names(graph)), shared(), trace)
    try:
        place = Place(constant_nodes=proto.ir_version < 4, weights=job.weights)
        decoded, _ = rewriter.graph(model.graph, Outer(main=True, filled=settings.no_empty_inputs, kept=kept), place, proto.opset_import)
    except Unchanged:
        return proto, None
    called = any(calls(node.proto, model) for node in model.graph.nodes if not kept.isdisjoint(node.outputs))
    functions = [
        _function(function, rewriter, proto) if speaks_as_model(function.proto, proto) and not called else function.proto
        for function in model.functions.values()
    ]

    def whole(graph: onnx.GraphProto) -> onnx.ModelProto:
        result = onnx.ModelProto()
        copy_fields(proto, result, {"graph", "functions"})
        result.graph.CopyFrom(graph)
        result.functions.extend(functions)
        if settings.domains:
            import_domains(result)
        drop_unread(result)
        _drop_uncalled(result)
        return result

    simple = rewriter.simplified() if job.valuation.asks or job.valuation.objective == "memory" else None
    for one in (trace, simple[1]) if job.keep and simple is not None else (trace,) if job.keep else ():
        one.turns = [Turn(proto, proto, model, one.solved, whole)]
    return whole(decoded.graph), None if simple is None else (whole(simple[0]), simple[1])


def _function(function: Function, rewriter: Rewriter, proto: onnx.ModelProto) -> onnx.FunctionProto:
    result = onnx.FunctionProto()
    result.CopyFrom(function.proto)
    opsets = {item.domain: item for item in (*proto.opset_import, *function.proto.opset_import)}
    decoded, _ = rewriter.graph(function.body, Outer(), Place(constant_nodes=True), list(opsets.values()))
    del result.node[:]
    result.node.extend(decoded.graph.node)
    del result.value_info[:]
    result.value_info.extend(decoded.graph.value_info)
    return result


def _drop_uncalled(model: onnx.ModelProto) -> None:
    """Removes functions that nothing calls any more."""
    functions = {function_key(f.domain, f.name, f.overload): f for f in model.functions}
    called: set[object] = set()
    waiting = list(model.graph.node)
    while waiting:
        node = waiting.pop()
        key = function_key(node.domain, node.op_type, node.overload)
        if key in functions and key not in called:
            called.add(key)
            waiting.extend(functions[key].node)
        for _, graph in attribute_graphs(node):
            waiting.extend(graph.node)
    kept = [function for key, function in functions.items() if key in called]
    if len(kept) < len(model.functions):
        copies = [onnx.FunctionProto.FromString(function.SerializeToString()) for function in kept]
        del model.functions[:]
        model.functions.extend(copies)
