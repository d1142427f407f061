"""Attempts: a model rewritten by a set of rules, with a record of the run.

An attempt takes turns. Each turn starts from the result of the one before, while there is more to
find and the result gets better. Before each turn, control flow, sequences and optionals that are
known well enough become nodes that rules see.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import onnx

from eqsat.choose.decode import Place
from eqsat.choose.folding import calls
from eqsat.control.arguments import drop_unread
from eqsat.control.flow import simplify
from eqsat.egraph.admission import RuleSet
from eqsat.egraph.encode import Outer
from eqsat.egraph.limits import Limits
from eqsat.egraph.phases import Phase, Plan
from eqsat.egraph.schedule import UNFINISHED
from eqsat.language.library import Library
from eqsat.language.syntax import Label
from eqsat.model.model import Function, Model, attribute_graphs, copy_fields, function_key
from eqsat.model.names import FreshNames, all_names
from eqsat.model.read import normalize
from eqsat.model.validity import is_typed, is_valid
from eqsat.operators import normal_domain
from eqsat.rewriting.rewrite import Options, Rewriter, Trace, written_bytes
from eqsat.rewriting.valuation import Valuation
from eqsat.runtime.worker import shared
from eqsat.settings import Settings

_OPENED = 8  # how often newly known control flow may start another turn
_STOPS = ("interrupted", "time", "memory")  # limits that end a run


@dataclass(frozen=True, slots=True)
class Job:
    """The settings that all attempts of a run share."""

    settings: Settings
    plan: Plan
    valuation: Valuation
    deadline: float | None  # in the time of `time.monotonic`

    @property
    def least(self) -> Label:
        """The least promise of a rule that may be used."""
        return Label.EXACT if self.settings.exact else Label.REAL if self.settings.strict else Label.FINITE


@dataclass(slots=True)
class Attempt:
    """The result of one rewriting of the model and of its check."""

    model: onnx.ModelProto
    trace: Trace
    hit: str | None
    notes: list[str]
    closed: bool = False  # whether bodies stay bodies even if their condition is known


def attempt(model: Model, job: Job, library: Library, kept: frozenset[str] = frozenset()) -> Attempt:
    """The model rewritten by these rules, valid and no worse, or else the original. Turns repeat
    while there is more to find and the result gets better.

    The nodes of the main graph that make a `kept` value stay as they are.
    """
    most = job.settings.max_growth + written_bytes(model.proto.graph)
    found = _first(model, job, most, library, kept)
    for turn in range(1, max(job.plan.turns, _OPENED)):
        # A turn may make a condition known, and rules can then find more in the branch.
        now = frozenset(found.trace.became.get(name, name) for name in kept)
        opens = not found.closed and found.hit not in _STOPS and simplify(found.model, now) is not found.model
        if not opens and not (found.hit in UNFINISHED and turn < job.plan.turns):
            break
        again = _turn(normalize(found.model, model.folder, None), job, job.plan.phases, most, library, now, found.closed)
        if not job.valuation.is_better(again.model, found.model, model.folder):
            # A vain search is part of the record all the same, and so is the limit that ended it.
            found.trace.looked(again.trace)
            found.hit = again.hit
            break
        again.trace.follow(found.trace)
        again.notes[:0] = [note for note in found.notes if note not in again.notes]
        found = again
    return found


def _first(model: Model, job: Job, most: float, library: Library, kept: frozenset[str]) -> Attempt:
    """The first turn. Where costs are predictions, the first phase alone, which only simplifies,
    may give a model that the runtime runs faster.
    """
    phases = job.plan.phases
    found = _turn(model, job, phases, most, library, kept)
    if len(phases) == 1 or not job.valuation.asks or found.hit in _STOPS:
        return found
    simple = _turn(model, job, phases[:1], most, library, kept)
    if simple.hit in _STOPS or not job.valuation.is_better(simple.model, found.model, model.folder):
        found.trace.looked(simple.trace)
        return found
    simple.trace.looked(found.trace)
    simple.hit = found.hit
    return simple


def _turn(model: Model, job: Job, phases: tuple[Phase, ...], most: float, library: Library, kept: frozenset[str], closed: bool = False) -> Attempt:
    """One rewriting of the model by some phases, whose result may take at most `most` bytes."""
    proto, trace = model.proto, Trace()
    found = Attempt(proto, trace, None, [], closed)
    try:
        if proto.training_info:
            found.notes.append("the model holds training information, which refers to its values by name: it stays as it is")
        else:
            known = proto if closed else simplify(proto, kept)
            found.model = _rewrite(model if known is proto else normalize(known, model.folder, None), job, phases, most, library, trace, kept)
            if known is not proto and not is_typed(found.model) and is_typed(proto):
                # A body hid nodes that no runtime accepts outside, such as a Range up to a tensor
                # that is no scalar.
                trace, found.closed = Trace(), True
                found.trace = trace
                found.model = _rewrite(model, job, phases, most, library, trace, kept)
        found.hit = next((record.hit for record in trace.records if record.hit), trace.folding or trace.choosing)
        found.notes += trace.notes
        found.notes += [f"the rule {name} is wrong: {reason}" for record in trace.records for name, reason in record.wrong.items()]
        # Folding can reveal a type that was unknown before and that no runtime accepts.
        lawful = all(holds(found.model) or not holds(proto) for holds in (is_valid, is_typed))
        if not lawful or job.valuation.is_worse(found.model, proto, model.folder):
            found.notes.append("the rewritten model was no better than the original, which stays as it is")
            found.model = proto
    except KeyboardInterrupt:
        found.hit, found.model = "interrupted", proto
    except MemoryError:
        found.hit, found.model = "memory", proto
    return found


def fired_rules(trace: Trace) -> dict[str, int]:
    """The number of firings of each rule, over all graphs of the model."""
    fired: dict[str, int] = {}
    for record in trace.records:
        for name, count in record.fired.items():
            if count:
                fired[name] = fired.get(name, 0) + count
    return dict(sorted(fired.items()))


def needed_rules(model: Model, job: Job, library: Library, found: Attempt, kept: frozenset[str]) -> dict[str, bool]:
    """For each rule that fired, whether all other rules together leave a worse model."""
    timeless = replace(job, deadline=None)
    without = {name: attempt(model, timeless, library.select((), (name,)), kept).model for name in fired_rules(found.trace)}
    return {name: job.valuation.is_worse(other, found.model, model.folder) for name, other in without.items()}


def _rewrite(model: Model, job: Job, phases: tuple[Phase, ...], most: float, library: Library, trace: Trace, kept: frozenset[str]) -> onnx.ModelProto:
    proto, settings = model.proto, job.settings
    ruleset = RuleSet(library.directions, job.least, groups=library.group_of, phases=phases)
    options = Options(
        Limits(job.deadline, settings.node_limit, settings.memory_limit),
        most - written_bytes(proto.graph),
        settings.memory_limit,
        settings.assume_dims,
        job.valuation.target,
        job.valuation.objective,
        ruleset,
        settings.extractor,
        settings.extract_time,
        settings.dump_egraph is not None,
    )
    graphs = [proto.graph, *(function.body.proto for function in model.functions.values())]
    rewriter = Rewriter(model, options, FreshNames(name for graph in graphs for name in all_names(graph)), shared(), trace)
    result = onnx.ModelProto()
    copy_fields(proto, result, {"graph", "functions"})
    decoded, _ = rewriter.graph(model.graph, Outer(main=True, kept=kept), Place(constant_nodes=proto.ir_version < 4), proto.opset_import)
    result.graph.CopyFrom(decoded.graph)
    called = any(calls(node.proto, model) for node in model.graph.nodes if not kept.isdisjoint(node.outputs))
    for function in model.functions.values():
        result.functions.append(_function(function, rewriter, proto) if speaks_as_model(function, proto) and not called else function.proto)
    drop_unread(result)
    _drop_uncalled(result)
    return result


def speaks_as_model(function: Function, proto: onnx.ModelProto) -> bool:
    """Whether the opsets of a function agree with the model's. If not, runtimes disagree on which
    of the two holds inside.
    """
    model = {normal_domain(item.domain): item.version for item in proto.opset_import}
    return all(model.get(normal_domain(item.domain), item.version) == item.version for item in function.proto.opset_import)


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
