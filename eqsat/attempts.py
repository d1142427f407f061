"""Attempts: a model and rules come in; the model rewritten by these rules goes out, with what happened on the way.

An attempt takes turns: each begins with the result of the one before it, while there was more to find and the result gets smaller. Before each turn
control flow, sequences and optionals of which enough is known become the nodes that rules see.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from eqsat.admission import RuleSet
from eqsat.control import simplify
from eqsat.decode import Place
from eqsat.encode import Outer
from eqsat.fold import calls
from eqsat.language.library import Library
from eqsat.limits import Limits
from eqsat.model import Function, Model, attribute_graphs, copy_fields, count_nodes, function_key
from eqsat.names import FreshNames, all_names
from eqsat.operators import normal_domain
from eqsat.phases import Plan
from eqsat.read import normalize
from eqsat.rewrite import Options, Rewriter, Trace, written_bytes
from eqsat.schedule import UNFINISHED
from eqsat.settings import Settings
from eqsat.validity import is_typed, is_valid
from eqsat.worker import shared

_OPENED = 8  # turns that control flow may take which becomes known in the one before
SHAPE_CONSTANTS = 2048  # bytes by which constants may outgrow the original's by default


@dataclass(frozen=True, slots=True)
class Job:
    """What all attempts of a run have in common."""

    settings: Settings
    plan: Plan
    deadline: float | None  # a time of `time.monotonic`

    def growth(self) -> int:
        """The bytes by which the model may grow."""
        return SHAPE_CONSTANTS if self.settings.max_growth is None else self.settings.max_growth


@dataclass(slots=True)
class Attempt:
    """What one rewriting of the model, and its check, came to."""

    model: onnx.ModelProto
    trace: Trace
    hit: str | None
    notes: list[str]
    closed: bool = False  # whether bodies that are known stay bodies


def attempt(model: Model, job: Job, library: Library, kept: frozenset[str] = frozenset()) -> Attempt:
    """The model rewritten by these rules, valid and no worse, or as it was: as often as there was more to find and a result gets smaller.

    The nodes of the main graph that give a value which is `kept` stay as they are.
    """
    most = job.growth() + written_bytes(model.proto.graph)
    found = _turn(model, job, most, library, kept)
    for turn in range(1, max(job.plan.turns, _OPENED)):
        # What was found may have made a condition known, and more can be found in the branch.
        now = frozenset(found.trace.became.get(name, name) for name in kept)
        opens = not found.closed and found.hit not in ("interrupted", "time", "memory") and simplify(found.model, now) is not found.model
        if not opens and not (found.hit in UNFINISHED and turn < job.plan.turns):
            break
        again = _turn(normalize(found.model, model.folder, None), job, most, library, now, found.closed)
        if count_nodes(again.model) >= count_nodes(found.model):
            # What was looked for in vain is part of the record all the same, and so is what ended it.
            found.trace.looked(again.trace)
            found.hit = again.hit
            break
        again.trace.follow(found.trace)
        again.notes[:0] = [note for note in found.notes if note not in again.notes]
        found = again
    return found


def _turn(model: Model, job: Job, most: float, library: Library, kept: frozenset[str], closed: bool = False) -> Attempt:
    """One rewriting of the model, which may take so many bytes."""
    proto, trace = model.proto, Trace()
    found = Attempt(proto, trace, None, [], closed)
    try:
        if proto.training_info:
            found.notes.append("the model holds training information, which refers to its values by name: it stays as it is")
        else:
            known = proto if closed else simplify(proto, kept)
            found.model = _rewrite(model if known is proto else normalize(known, model.folder, None), job, most, library, trace, kept)
            if known is not proto and not is_typed(found.model) and is_typed(proto):
                # A body hid what no runtime takes in the open: a Range up to a tensor that is no scalar, say.
                trace, found.closed = Trace(), True
                found.trace = trace
                found.model = _rewrite(model, job, most, library, trace, kept)
        found.hit = next((record.hit for record in trace.records if record.hit), trace.folding or trace.choosing)
        found.notes += trace.notes
        found.notes += [f"the rule {name} is wrong: {reason}" for record in trace.records for name, reason in record.wrong.items()]
        # What was folded can show a type that nobody saw before, and that no runtime takes.
        lawful = all(holds(found.model) or not holds(proto) for holds in (is_valid, is_typed))
        if count_nodes(found.model) > count_nodes(proto) or not lawful:
            found.notes.append("the rewritten model was no better than the original, which stays as it is")
            found.model = proto
    except KeyboardInterrupt:
        found.hit, found.model = "interrupted", proto
    except MemoryError:
        found.hit, found.model = "memory", proto
    return found


def fired_rules(trace: Trace) -> dict[str, int]:
    """How often each rule fired, over all graphs of the model."""
    fired: dict[str, int] = {}
    for record in trace.records:
        for name, count in record.fired.items():
            if count:
                fired[name] = fired.get(name, 0) + count
    return dict(sorted(fired.items()))


def _rewrite(model: Model, job: Job, most: float, library: Library, trace: Trace, kept: frozenset[str]) -> onnx.ModelProto:
    proto, settings = model.proto, job.settings
    ruleset = RuleSet(library.compiled, settings.least, groups=library.group_of, phases=job.plan.phases)
    options = Options(
        Limits(job.deadline, settings.node_limit, settings.memory_limit),
        most - written_bytes(proto.graph),
        settings.memory_limit,
        settings.assume_dims,
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
    _drop_uncalled(result)
    return result


def speaks_as_model(function: Function, proto: onnx.ModelProto) -> bool:
    """Whether a function imports the opsets that the model does: where it does not, runtimes disagree on which of the two holds inside."""
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
    """Functions that nothing calls any more are dead code."""
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
