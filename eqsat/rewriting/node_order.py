"""The order of a model's nodes: how much memory it needs, and an order that needs less.

Only nodes move, in the main graph and in all bodies. A model with functions of its own keeps its
order, because the memory that a function needs is not visible from outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx

from eqsat.errors import InputError
from eqsat.model.model import attribute_graphs
from eqsat.model.read import normalize
from eqsat.model.validity import light
from eqsat.rewriting.activations import Scheduled, scheduled
from eqsat.runtime.onnx_passes import NativeFailure, inlined


def memory(proto: onnx.ModelProto, folder: Path | None, sizes: Mapping[str, int]) -> int:
    """Returns the peak of a model in its written order: the most bytes of activations alive at
    once.
    """
    weights = frozenset(tensor.name for tensor in proto.graph.initializer)
    model = None
    if proto.functions:
        try:
            model = normalize(inlined(light(proto)), folder, None)
        except (NativeFailure, InputError):
            pass  # each call counts as a single node
    return scheduled(model or normalize(proto, folder, None), sizes, weights, reorder=False).peak


def reordered(proto: onnx.ModelProto, folder: Path | None, sizes: Mapping[str, int]) -> onnx.ModelProto:
    """Returns the model with its nodes in an order of a lower peak, or the model itself if none is
    found.
    """
    if proto.functions:
        return proto
    found = scheduled(normalize(proto, folder, None), sizes, frozenset(), reorder=True)
    result = onnx.ModelProto()
    result.CopyFrom(proto)
    return result if _reorder(result.graph, found) else proto


def _reorder(graph: onnx.GraphProto, found: Scheduled) -> bool:
    """Puts the nodes of a graph and its bodies in the order found. Tells whether a node moved."""
    moved = False
    places = {tuple(node.output): place for place, node in enumerate(graph.node)}
    order = [places[node.outputs] for node in found.nodes]
    for place, number in enumerate(order):
        bodies = dict(attribute_graphs(graph.node[number]))
        for (at, name), body in found.bodies.items():
            if at == place:
                moved |= _reorder(bodies[name], body)
    if order == sorted(order):
        return moved
    # Constants come first. Nodes without results, which compute nothing, come last.
    ordered = set(order)
    constants = [place for place, node in enumerate(graph.node) if place not in ordered and any(node.output)]
    idle = [place for place, node in enumerate(graph.node) if not any(node.output)]
    nodes = [graph.node[place] for place in (*constants, *order, *idle)]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    return True
