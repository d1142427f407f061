"""The part of a model that some of its outputs need."""

from __future__ import annotations

from collections.abc import Collection

import onnx

from .scope import captures


def cone(proto: onnx.ModelProto, names: Collection[str]) -> onnx.ModelProto:
    """Returns a copy of the model with only the outputs `names`.

    Nodes and constants that they do not need are gone, inputs stay.
    """
    result = onnx.ModelProto()
    result.CopyFrom(proto)
    graph = result.graph
    needed = set(names)
    nodes: list[onnx.NodeProto] = []
    for node in reversed(proto.graph.node):
        if needed & set(node.output):
            needed |= set(node.input) | captures(node)
            nodes.append(node)
    needed |= {value.name for value in graph.input}
    del graph.node[:], graph.output[:], graph.initializer[:]
    graph.node.extend(reversed(nodes))
    graph.output.extend(value for value in proto.graph.output if value.name in names)
    graph.initializer.extend(tensor for tensor in proto.graph.initializer if tensor.name in needed)
    return result
