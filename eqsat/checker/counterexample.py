"""Counterexamples: a case that was judged different comes in; what a person reads, and a model that shows it alone, go out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper, printer

from eqsat.checker.instances import Instance
from eqsat.checker.verdict import Case, Verdict, explain


@dataclass(frozen=True)
class Counterexample:
    """Where a rule is wrong. `model` has no inputs and computes both sides: outputs `left_0`, `right_0`, and so on."""

    reason: str
    left: str  # as ONNX text
    right: str
    model: bytes
    origin: str
    size: int  # elements and nodes: small ones are good ones


def counterexample(case: Case, verdict: Verdict, instance: Instance) -> Counterexample:
    """The counterexample that a verdict amounts to."""
    sizes = [np.asarray(value).size for value in verdict.inputs.values()]
    size = sum(sizes) + 8 * (len(case.left.graph.node) + len(case.right.graph.node))
    return Counterexample(explain(verdict), _text(case.left), _text(case.right), _both(case, verdict).SerializeToString(), instance.origin, size)


def _text(model: onnx.ModelProto) -> str:
    return printer.to_text(model.graph)


def _both(case: Case, verdict: Verdict) -> onnx.ModelProto:
    """Both sides in one model, the inputs on which they differ stored in it."""
    result = onnx.ModelProto()
    result.CopyFrom(case.left)
    graph = result.graph
    graph.name = "counterexample"
    del graph.node[:], graph.output[:], graph.input[:], graph.initializer[:], graph.value_info[:]
    stored = {tensor.name: tensor for side in (case.left, case.right) for tensor in side.graph.initializer if tensor.name in case.free}
    for name, value in verdict.inputs.items():
        graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    given = {tensor.name for tensor in graph.initializer}
    graph.initializer.extend(tensor for name, tensor in stored.items() if name not in given)
    given |= set(stored) | {info.name for info in case.left.graph.input}
    for prefix, side in (("left", case.left), ("right", case.right)):
        names = {info.name: f"{prefix}_{index}" for index, info in enumerate(side.graph.output)}

        def renamed(name: str, names: dict[str, str] = names, prefix: str = prefix) -> str:
            return name if name in given or not name else names.get(name, f"{prefix}.{name}")

        for tensor in side.graph.initializer:
            if tensor.name not in given:
                copy = graph.initializer.add()
                copy.CopyFrom(tensor)
                copy.name = renamed(tensor.name)
        for node in side.graph.node:
            copy = graph.node.add()
            copy.CopyFrom(node)
            copy.input[:] = map(renamed, node.input)
            copy.output[:] = map(renamed, node.output)
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in names.values())
    return result
