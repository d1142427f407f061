"""Own constants: the body of a loop stores the constants that it alone reads.

ONNX Runtime hands each value from outside to a body anew in every trip. The weights of a cell, which exporters carry
from trip to trip, take longer to hand over than to multiply by. No rule moves them, since they are no nodes.
"""

from __future__ import annotations

from collections import Counter

import onnx

from eqsat.model.model import all_graphs, attribute_graphs
from eqsat.model.names import captures

OWNED = "constants that the body of one loop alone reads are stored there, which saves time in each trip"
"""The note on a model in which some moved."""

_LOOPS = frozenset({"Loop", "Scan"})
_NAMED = 4  # the IR version since which an initializer need not be an input


def with_own_constants(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with constants moved into the bodies of loops that alone read them, or the model itself if
    there are none. Constants with external data stay, and so do those that a caller may replace.
    """
    if model.ir_version < _NAMED or not any(_owned(graph) for graph in all_graphs(model.graph)):
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for graph in all_graphs(result.graph):  # each before its bodies, so that constants reach the innermost loop
        owned = _owned(graph)
        if not owned:
            continue
        bodies = _bodies(graph)
        for tensor in graph.initializer:
            if tensor.name in owned:
                bodies[owned[tensor.name]][1].initializer.append(tensor)
        for values in (graph.initializer, graph.value_info):
            for place in reversed([place for place, value in enumerate(values) if value.name in owned]):
                del values[place]
    return result


def _bodies(graph: onnx.GraphProto) -> list[tuple[onnx.NodeProto, onnx.GraphProto]]:
    """Returns the bodies in a graph, each with its node."""
    return [(node, body) for node in graph.node for _, body in attribute_graphs(node)]


def _owned(graph: onnx.GraphProto) -> dict[str, int]:
    """Returns the constants of a graph that the body of one loop alone reads, and its place among the bodies."""
    bodies = _bodies(graph)
    if not bodies:
        return {}
    reads = [(name, place) for place, (_, body) in enumerate(bodies) for name in captures(body)]
    reader, readers = dict(reads), Counter(name for name, _ in reads)
    outside = {name for node in graph.node for name in node.input} | {info.name for info in (*graph.input, *graph.output)}
    alone = [
        tensor.name
        for tensor in graph.initializer
        if readers[tensor.name] == 1 and tensor.name not in outside and tensor.data_location != onnx.TensorProto.EXTERNAL
    ]
    return {name: reader[name] for name in alone if bodies[reader[name]][0].op_type in _LOOPS}
