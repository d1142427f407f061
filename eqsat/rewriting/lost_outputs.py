"""Lost outputs: those of which ONNX Runtime forgets that they are outputs, so that it refuses the model.

Its optimizations (1.32) make one Gemm of a Transpose, a Gemm of two matrices that reads it and a
Transpose that alone reads the result. The result is gone then, although the model may return it as
well.
"""

from __future__ import annotations

import onnx
from onnx import helper

from eqsat.model.model import all_graphs
from eqsat.model.names import FreshNames, all_names


def with_outputs_kept(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model where an Identity makes each output that would be lost; the model itself if none
    would be.
    """
    if not any(map(_lost, all_graphs(model.graph))):
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    fresh = FreshNames(all_names(result.graph))
    for graph in all_graphs(result.graph):
        for gemm, reader in _lost(graph):
            output = gemm.output[0]
            gemm.output[0] = reader.input[0] = fresh.make(output)
            graph.node.insert(list(graph.node).index(gemm) + 1, helper.make_node("Identity", [gemm.output[0]], [output]))
    return result


def _lost(graph: onnx.GraphProto) -> list[tuple[onnx.NodeProto, onnx.NodeProto]]:
    """Returns the nodes of a graph whose outputs would be lost, each with its reader."""
    outputs = {info.name for info in graph.output}
    gemms = [node for node in graph.node if node.op_type == "Gemm" and not node.domain and not any(node.input[2:]) and node.output[0] in outputs]
    if not gemms:
        return []
    transposed = {node.output[0] for node in graph.node if node.op_type == "Transpose"}
    readers: dict[str, list[onnx.NodeProto]] = {gemm.output[0]: [] for gemm in gemms}
    for node in graph.node:
        for name in node.input:
            if name in readers:
                readers[name].append(node)
    found = [(gemm, readers[gemm.output[0]]) for gemm in gemms if not transposed.isdisjoint(gemm.input)]
    return [(gemm, reading[0]) for gemm, reading in found if [node.op_type for node in reading] == ["Transpose"]]
