"""Control flow for the fuzzer of facts: the last nodes of a graph move into an If or a Loop.

A body computes what its nodes computed in the open graph. So the facts of the body must be true of
the open graph's values. The output of an If is one of two of these values. That of a Loop has one
of them for each turn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .facts_draw import Array, Draw
from .facts_engines import keep
from .facts_models import Drawn


class Wrapped(NamedTuple):
    """A model with control flow, and the sources of its outputs.

    An output is one of some values of the open graph, each repeated so many times (0: as it is).
    """

    model: onnx.ModelProto
    outputs: dict[str, list[tuple[str, int]]]


def wrap(drawn: Drawn, draw: Draw) -> Wrapped | None:
    """Returns the graph with its last nodes in bodies; None if it is too small.

    With two branches, the graph gets more nodes.
    """
    if len(drawn.nodes) < 2 or any(node.op_type in ("Optional", "SplitToSequence", "SequenceConstruct", "SequenceInsert") for node in drawn.nodes):
        return None
    start = draw.number(1, len(drawn.nodes) - 1)
    # Before opset 11 a Loop must carry a value.
    return _branches(drawn, draw, start) if drawn.opset < 11 or draw.chance() else _turns(drawn, draw, start)


def _branches(drawn: Drawn, draw: Draw, start: int) -> Wrapped:
    then = list(drawn.nodes[start:])
    names = {name: f"{name}_else" for node in then for name in node.output}
    other: list[onnx.NodeProto] = []
    for node in then:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [names.get(name, name) for name in node.input]
        copy.output[:] = [names[name] for name in node.output]
        other.append(copy)
    last = then[-1].output[0]
    if draw.chance(0.7):
        twice = helper.make_node("Concat", [names[last]] * 2, ["another"], axis=0)
        other.append(draw.pick(twice, helper.make_node("Relu", [names[last]], ["another"])))
    drawn.nodes += other
    node = helper.make_node("If", ["chosen"], ["either"], then_branch=_body(then), else_branch=_body(other))
    model = _model(drawn, drawn.nodes[:start], node)
    model.graph.input.append(helper.make_tensor_value_info("chosen", TensorProto.BOOL, []))
    return Wrapped(model, {"either": [(last, 0), (other[-1].output[0], 0)]})


def _turns(drawn: Drawn, draw: Draw, start: int) -> Wrapped:
    turns = draw.pick(1, 1, 3)
    inside = list(drawn.nodes[start:])
    body = _body(inside)
    body.input.extend([helper.make_tensor_value_info("turn", TensorProto.INT64, []), helper.make_tensor_value_info("on", TensorProto.BOOL, [])])
    body.node.append(helper.make_node("Identity", ["on"], ["still"]))
    body.output.insert(0, helper.make_tensor_value_info("still", TensorProto.BOOL, []))
    model = _model(drawn, drawn.nodes[:start], helper.make_node("Loop", ["turns", ""], ["each"], body=body))
    model.graph.initializer.append(numpy_helper.from_array(np.array(turns), "turns"))
    return Wrapped(model, {"each": [(inside[-1].output[0], turns)]})


def _body(nodes: list[onnx.NodeProto]) -> onnx.GraphProto:
    return helper.make_graph(nodes, "body", [], [onnx.ValueInfoProto(name=nodes[-1].output[0])])


def _model(drawn: Drawn, nodes: list[onnx.NodeProto], last: onnx.NodeProto) -> onnx.ModelProto:
    model = drawn.model()
    keep(model.graph.node, [*nodes, last])
    keep(model.graph.output, [onnx.ValueInfoProto(name=last.output[0])])
    return model


def repeated(value: Array, turns: int) -> Array:
    """Returns the value of an output of control flow, from a value of the open graph."""
    return np.stack([value] * turns) if turns else value
