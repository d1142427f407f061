"""A turn: a set of rules rewrites a model once.

The input is a model as it is read, and a job. The output is an attempt: the best of the rewritten
model, the one after the first phase alone, and the model itself. Before the rules, control flow,
sequences and optionals become nodes that rules see, as far as enough is known of them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import onnx

from eqsat.choose.folding import calls
from eqsat.choose.storing import Place
from eqsat.control.arguments import drop_unread
from eqsat.control.calls import speaks_as_model
from eqsat.deadline import INTERRUPTED
from eqsat.egraph.admission import RuleSet
from eqsat.egraph.limits import Limits
from eqsat.egraph.outer import Outer
from eqsat.egraph.phases import Phase
from eqsat.garbage import MANY
from eqsat.language.library import Library
from eqsat.language.syntax import Label
from eqsat.model.file_bytes import model_bytes
from eqsat.model.imports import import_domains
from eqsat.model.model import Function, Model, attribute_graphs, copy_fields, function_key
from eqsat.model.names import FreshNames, all_names
from eqsat.model.read import normalize
from eqsat.model.validity import is_typed, is_valid
from eqsat.rewriting.attempt import Attempt
from eqsat.rewriting.beyond_rules import keep_loadable
from eqsat.rewriting.finished import RAISED, Finished
from eqsat.rewriting.job import Job
from eqsat.rewriting.opening import may_open, opened
from eqsat.rewriting.portions import Unchanged
from eqsat.rewriting.rewrite import Options, Rewriter
from eqsat.rewriting.solved import Turn
from eqsat.rewriting.trace import Trace, waiting_matches
from eqsat.runtime.worker import shared


@lru_cache(maxsize=8)
def _ruleset(library: Library, least: Label, phases: tuple[Phase, ...]) -> RuleSet:
    return RuleSet(library.directions, least, groups=library.group_of, phases=phases)


def take_turn(model: Model, job: Job, most: float, library: Library, kept: frozenset[str], closed: bool = False, shifted: bool = False) -> Attempt:
    """Rewrites the model once. The result may take at most `most` bytes; it is valid, and no worse than
    the model.

    The nodes of the main graph that compute a `kept` value stay as they are. `closed` keeps control
    flow closed, and `shifted` cuts a large model into regions at other places.
    """
    proto, trace = model.proto, Trace()
    found = Attempt(proto, trace, None, [], closed)
    stayed = same = False
    chosen = Finished(proto, proto, proto)
    try:
        simple: tuple[onnx.ModelProto, Trace] | None = None
        if proto.training_info:
            found.notes.append("the model holds training information, which refers to its values by name: it stays as it is")
        else:
            known = open_known(model, job, most, kept) if not closed and may_open(proto) else proto
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
            found.settle_before(job)  # prices take memory, too
        other = keep_loadable(found.model, proto, model.folder, job.valuation)
        original, chosen = job.finished(proto, model.folder), job.finished(other, model.folder)
        if not _is_lawful(chosen.model, proto) or job.valuation.is_worse(chosen.model, original.model, model.folder):
            chosen = original
        # The first phase only simplifies. Its model may be faster in the runtime, or need less
        # memory.
        plain = None if simple is None else job.finished(keep_loadable(simple[0], proto, model.folder, job.valuation), model.folder)
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


def open_known(model: Model, job: Job, most: float, kept: frozenset[str]) -> onnx.ModelProto:
    """Returns the model with bodies and calls opened. Half of the bytes by which the file may still
    grow are left for the turn itself.
    """
    return opened(model, job.valuation, job.deadline, kept, (most - model_bytes(model.proto)) / 2, job.flat, job.settings.exact)


def _is_lawful(model: onnx.ModelProto, original: onnx.ModelProto) -> bool:
    """Tells whether a model is as valid as its original. Folding can reveal a type that was unknown
    before and that no runtime accepts.
    """
    return all(holds(model) or not holds(original) for holds in (is_valid, is_typed))


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
