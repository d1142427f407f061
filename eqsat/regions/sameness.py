"""Sameness: whether the nodes chosen for a region are those that it has.

Names of values inside, the order of nodes and the place of small constants do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import onnx

from eqsat.model.likeness import Keys
from eqsat.model.model import Constant
from eqsat.model.tensors import Tensor, from_array, read_tensor
from eqsat.regions.stitch import Solution, is_copy

_SMALL = 512  # bytes of a constant that counts by its elements; a larger one counts by its name


def is_region(solution: Solution, nodes: Sequence[onnx.NodeProto], constants: Mapping[str, Constant]) -> bool:
    """Tells whether a solution has just these nodes of its region, over the same inputs and constants.
    No node has a body.

    Nodes and `constants` have the names of the excerpt, as the solution has.
    """
    chosen, outputs = _without_copies(solution)
    if len(chosen) != len(nodes):
        return False
    # The excerpt has the constants of all regions.
    read = dict.fromkeys([*(name for node in (*nodes, *chosen) for name in node.input), *solution.constants.values(), *outputs])
    there = [(name, constants[name].tensor) for name in read if name in constants]
    small = [_named(tensor, name) for name, tensor in there if _is_small(tensor)]
    known = {tensor.name for tensor in small}
    if any(name != own and own not in known for name, own in solution.constants.items()):
        return False
    made = [_named(read_tensor(tensor, None), tensor.name) for tensor in solution.literals]
    held = [_named(constants[own].tensor, name) for name, own in solution.constants.items() if name != own]
    keys = Keys()
    one = keys.of(_model(nodes, small, solution.outputs))
    return one.same(keys.of(_model(chosen, [*small, *made, *held], outputs)))


def _without_copies(solution: Solution) -> tuple[list[onnx.NodeProto], list[str]]:
    """Returns the nodes of a solution and its outputs without the copies to outputs, as they are
    written (eqsat/regions/stitch.py).
    """
    copies: dict[str, str] = {}
    nodes: list[onnx.NodeProto] = []
    for node in solution.nodes:
        if is_copy(node, solution):
            copies[node.output[0]] = copies.get(node.input[0], node.input[0])
            continue
        if not copies.keys().isdisjoint(node.input):
            node = onnx.NodeProto.FromString(node.SerializeToString())
            node.input[:] = [copies.get(name, name) for name in node.input]
        nodes.append(node)
    return nodes, [copies.get(name, name) for name in solution.outputs]


def _is_small(tensor: Tensor) -> bool:
    return tensor.external is None and tensor.nbytes <= _SMALL and tensor.dtype != onnx.TensorProto.STRING


def _named(tensor: Tensor, name: str) -> onnx.TensorProto:
    """Returns the elements of a tensor in the one spelling that all have here."""
    return from_array(tensor.array(), name).proto


def _model(nodes: Iterable[onnx.NodeProto], constants: Iterable[onnx.TensorProto], outputs: Iterable[str]) -> onnx.ModelProto:
    """Returns nodes as a model. Values that it does not define count by their names."""
    found = onnx.ModelProto()
    found.graph.node.extend(nodes)
    found.graph.initializer.extend(constants)
    found.graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    return found
