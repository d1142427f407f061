"""Ranks: gives numbers as many axes as the tensor has that they are combined with.

ONNX Runtime's kernels of operands that broadcast put axes of size 1 together with those before them,
but only up to the rank of the operand that has fewer axes. If there are no others up to there, as in
`Mul(x, 0.5)` for an x of sizes [1000, 1], they take the elements one by one, in twenty times the time.
The rank of a constant number changes no value. No rule gives it, because an e-graph would hold each
of these numbers twice, and all that is made of it; prices there assume it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Final

import numpy as np
import onnx
from onnx.external_data_helper import uses_external_data

from eqsat.choose.storing import Place, store_array
from eqsat.families import members
from eqsat.model.imports import standard_opset
from eqsat.model.model import all_graphs, attribute_graphs
from eqsat.model.names import FreshNames, all_names
from eqsat.model.tensors import Tensor, constant_value, read_tensor
from eqsat.operators import normal_domain

_OPERATORS: Final = members("binary") | members("variadic") | {"PRelu", "Where"}
_BROADCAST = 9  # the first opset in which all of them broadcast

_Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
_Shape = tuple[int | None, ...]  # None: a size that has no number


def with_full_ranks(model: onnx.ModelProto, types: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with numbers of full rank where kernels would take elements one by one, or the
    model itself if there are none. `types` has the same nodes, and may declare more of their types.
    """
    if standard_opset(model.opset_import) < _BROADCAST:
        return model
    ranking = _Ranking(model)
    ranking.graph(ranking.model.graph, types.graph, {}, {})
    return ranking.result() if ranking.left else model


class _Ranking:
    """A copy of a model while its graphs change."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self.left: set[str] = set()  # numbers that a node reads no more
        self._place = Place(constant_nodes=model.ir_version < 4)
        self._fresh = FreshNames(all_names(model.graph))

    def graph(self, graph: onnx.GraphProto, types: onnx.GraphProto, shapes: Mapping[str, _Shape], numbers: Mapping[str, _Array]) -> None:
        """Changes a graph and its bodies. `shapes` and `numbers` are those that it can read from around it."""
        own = _numbers(graph)
        numbers = {**{name: array for name, array in numbers.items() if name not in own}, **own}
        shapes = {**shapes, **_shapes(types), **{name: array.shape for name, array in own.items()}}
        nodes: list[onnx.NodeProto] = []
        made: dict[tuple[str, int], str] = {}
        for node, typed in zip(graph.node, types.node, strict=True):
            for (_, body), (_, inside) in zip(attribute_graphs(node), attribute_graphs(typed), strict=True):
                self.graph(body, inside, shapes, numbers)
            rank = _wanted(node, shapes, numbers)
            for position, name in enumerate(node.input):
                if rank and name in numbers and numbers[name].ndim < rank:
                    if (name, rank) not in made:
                        made[name, rank] = self._fresh.make(name)
                        store_array(graph, nodes, self._place, made[name, rank], numbers[name].reshape((1,) * rank))
                    node.input[position] = made[name, rank]
                    self.left.add(name)
            nodes.append(node)
        if len(nodes) > len(graph.node):
            _replace(graph, nodes)

    def result(self) -> onnx.ModelProto:
        """Returns the model, without numbers that nothing reads any more."""
        graphs = list(all_graphs(self.model.graph))
        read = {name for graph in graphs for node in graph.node for name in node.input}
        read.update(info.name for graph in graphs for info in (*graph.output, *graph.input))
        unread = self.left - read
        for graph in graphs:
            for place in reversed(range(len(graph.initializer))):
                if graph.initializer[place].name in unread:
                    del graph.initializer[place]
            if any(node.op_type == "Constant" and node.output[0] in unread for node in graph.node):
                _replace(graph, [node for node in graph.node if node.op_type != "Constant" or node.output[0] not in unread])
        return self.model


def _replace(graph: onnx.GraphProto, nodes: Iterable[onnx.NodeProto]) -> None:
    """Gives a graph other nodes. They may be its own, so they are copied first."""
    kept = onnx.GraphProto(node=nodes)
    del graph.node[:]
    graph.node.MergeFrom(kept.node)


def _numbers(graph: onnx.GraphProto) -> dict[str, _Array]:
    """Returns the constants of one element of a graph, without those that the caller may replace."""
    given = {info.name for info in graph.input}
    small = (tensor for tensor in graph.initializer if tensor.name not in given and prod(tensor.dims) == 1)
    found: dict[str, Tensor | None] = {tensor.name: read_tensor(tensor, None) for tensor in small if not uses_external_data(tensor)}
    for node in graph.node:
        if node.op_type == "Constant" and not normal_domain(node.domain) and len(node.attribute) == 1:
            found[node.output[0]] = constant_value(node.attribute[0], None)
    whole = {name: tensor for name, tensor in found.items() if tensor is not None and prod(tensor.dims) == 1 and tensor.external is None and not tensor.hollow}
    return {name: tensor.array() for name, tensor in whole.items() if tensor.dtype != onnx.TensorProto.STRING}


def _shapes(graph: onnx.GraphProto) -> dict[str, _Shape]:
    """Returns the declared sizes of the values of a graph."""
    declared = (info for info in (*graph.value_info, *graph.input, *graph.output) if info.type.tensor_type.HasField("shape"))
    found = {info.name: tuple([size.dim_value if size.HasField("dim_value") else None for size in info.type.tensor_type.shape.dim]) for info in declared}
    return found | {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}


def _wanted(node: onnx.NodeProto, shapes: Mapping[str, _Shape], numbers: Mapping[str, _Array]) -> int:
    """Returns the rank that the numbers need among the operands of a node; 0 if they may stay as they are."""
    if node.op_type not in _OPERATORS or normal_domain(node.domain) or not all(name in shapes for name in node.input):
        return 0
    operands = [shapes[name] for name in node.input]
    rank, least = max(map(len, operands)), min(map(len, operands))
    if least == rank or any(name not in numbers and len(shapes[name]) < rank for name in node.input):
        return 0
    slow = all(size == 1 for shape in operands for size in shape[-max(least, 1) :])
    return rank if slow and any(size != 1 for shape in operands for size in shape) else 0
