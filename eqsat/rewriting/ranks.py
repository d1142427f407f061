"""Ranks: gives numbers as many axes as the tensor has that they are combined with.

ONNX Runtime's kernels of operands that broadcast put axes of size 1 together with those before them,
but only up to the rank of the operand that has fewer axes. If there are no others up to there, as in
`Mul(x, 0.5)` for an x of sizes [1000, 1], they take the elements one by one, in twenty times the time.
The rank of a constant number changes no value. No rule gives it, because an e-graph would hold each
of these numbers twice, and all that is made of it; prices there assume it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from math import prod

import onnx
from onnx.external_data_helper import uses_external_data

from eqsat.choose.storing import Place, store_array
from eqsat.cost.kinds import BROADCASTING
from eqsat.cost.workload import steps_singly
from eqsat.facts.fact import from_type
from eqsat.facts.node import Shape
from eqsat.frozen import frozen
from eqsat.model.imports import standard_opset
from eqsat.model.model import all_graphs, bodies
from eqsat.model.names import FreshNames, all_names
from eqsat.model.tensors import Tensor, constant_value, read_tensor
from eqsat.operators import normal_domain

_BROADCAST = 9  # the first opset in which all operators that broadcast do so
_MOST = 32  # axes of an array


def with_full_ranks(model: onnx.ModelProto, typed: Callable[[], onnx.ModelProto]) -> onnx.ModelProto:
    """Returns the model with numbers of full rank where kernels would take elements one by one, or the
    model itself if there are none. `typed` returns a model of the same nodes that may declare more of
    their types. It is asked only where a number is an operand.
    """
    # What refers to a model's values from outside of its graphs may refer to its numbers.
    if standard_opset(model.opset_import) < _BROADCAST or model.training_info or not (operands := _beside_numbers(model.graph)):
        return model
    found = list(_slow(model.graph, typed().graph, operands, {}, {}))
    if not any(slow.ranks for slow in found):
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    place, fresh = Place(constant_nodes=model.ir_version < 4), FreshNames(all_names(model.graph))
    # Bodies first: new nodes move those after them.
    pairs = reversed(list(zip(all_graphs(result.graph), found, strict=True)))
    _remove_unread(result.graph, {name for graph, slow in pairs for name in _widened(graph, slow, place, fresh)})
    return result


@frozen
class _Slow:
    """The nodes of a graph that take their elements one by one."""

    ranks: Mapping[int, int]  # that their numbers need, by the places of the nodes
    numbers: Mapping[str, Tensor]  # that the graph can read, by name


def _beside_numbers(graph: onnx.GraphProto) -> set[str]:
    """Returns the operands of nodes that read a number, in a graph and its bodies."""
    graphs = list(all_graphs(graph))
    numbers = {name for inner in graphs for name in _numbers(inner)}
    joined = [node.input for inner in graphs for node in inner.node if node.op_type in BROADCASTING] if numbers else []
    return {name for operands in joined if not numbers.isdisjoint(operands) for name in operands}


def _slow(graph: onnx.GraphProto, types: onnx.GraphProto, operands: Set[str], shapes: Mapping[str, Shape], numbers: Mapping[str, Tensor]) -> Iterator[_Slow]:
    """Yields the slow nodes of each graph of `all_graphs`, among those with these `operands`. They can read
    values of these `shapes` and these `numbers` from around the graph.
    """
    made = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer} | {name for node in graph.node for name in node.output}
    own = _numbers(graph)
    numbers = {name: tensor for name, tensor in numbers.items() if name not in made} | own
    around = {name: shape for name, shape in shapes.items() if name not in made}
    shapes = around | _shapes(types, operands) | {name: tensor.dims for name, tensor in own.items()}
    yield _Slow({place: rank for place, node in enumerate(graph.node) if (rank := _wanted(node, shapes, numbers))}, numbers)
    for body, inside in zip(bodies(graph.node), bodies(types.node), strict=True):
        yield from _slow(body, inside, operands, shapes, numbers)


def _widened(graph: onnx.GraphProto, slow: _Slow, place: Place, fresh: FreshNames) -> set[str]:
    """Gives the numbers of a graph's slow nodes their ranks; returns the names that these nodes read before."""
    wider: dict[tuple[str, int], str] = {}
    stored: list[onnx.NodeProto] = []
    for number, rank in slow.ranks.items():
        node = graph.node[number]
        for position, name in enumerate(node.input):
            tensor = slow.numbers.get(name)
            if tensor is None or len(tensor.dims) == rank:
                continue
            if (name, rank) not in wider:
                wider[name, rank] = fresh.make(name)
                store_array(graph, stored, place, wider[name, rank], tensor.array().reshape((1,) * rank))
            node.input[position] = wider[name, rank]
    for node in reversed(stored):
        graph.node.insert(0, node)
    return {name for name, _ in wider}


def _remove_unread(graph: onnx.GraphProto, left: Set[str]) -> None:
    """Removes those numbers from a graph and its bodies that nothing reads any more."""
    graphs = list(all_graphs(graph))
    read = {name for inner in graphs for node in inner.node for name in node.input}
    unread = left - read.union(info.name for inner in graphs for info in (*inner.output, *inner.input))
    for inner in graphs:
        for place in reversed(range(len(inner.initializer))):
            if inner.initializer[place].name in unread:
                del inner.initializer[place]
        for place in reversed(range(len(inner.node))):
            if inner.node[place].op_type == "Constant" and inner.node[place].output[0] in unread:
                del inner.node[place]


def _numbers(graph: onnx.GraphProto) -> dict[str, Tensor]:
    """Returns the constants of one element of a graph, without those in files and those that the caller may
    replace.
    """
    given = {info.name for info in graph.input}
    small = (tensor for tensor in graph.initializer if tensor.name not in given and prod(tensor.dims) == 1)
    found: dict[str, Tensor | None] = {tensor.name: read_tensor(tensor, None) for tensor in small if not uses_external_data(tensor)}
    for node in graph.node:
        if node.op_type == "Constant" and not normal_domain(node.domain) and len(node.attribute) == 1 and not uses_external_data(node.attribute[0].t):
            found[node.output[0]] = constant_value(node.attribute[0], None)
    whole = {name: tensor for name, tensor in found.items() if tensor is not None and not tensor.hollow}
    return {name: tensor for name, tensor in whole.items() if prod(tensor.dims) == 1 and tensor.dtype != onnx.TensorProto.STRING}


def _shapes(graph: onnx.GraphProto, names: Set[str]) -> dict[str, Shape]:
    """Returns the declared sizes of values of a graph."""
    declared = {info.name: from_type(info.type, info.name).shape for info in (*graph.value_info, *graph.input, *graph.output) if info.name in names}
    stored = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer if tensor.name in names}
    return {name: shape for name, shape in declared.items() if shape is not None} | stored


def _wanted(node: onnx.NodeProto, shapes: Mapping[str, Shape], numbers: Mapping[str, Tensor]) -> int:
    """Returns the rank that the numbers need among the operands of a node; 0 if they may stay as they are."""
    if node.op_type not in BROADCASTING or normal_domain(node.domain) or not all(name in shapes for name in node.input):
        return 0
    operands = [shapes[name] for name in node.input]
    rank = max(map(len, operands))
    if rank > _MOST or any(name not in numbers and len(shapes[name]) < rank for name in node.input):
        return 0
    return rank if steps_singly(operands) and any(size != 1 for shape in operands for size in shape) else 0
