"""Splitting: a SplitToSequence whose parts are all known becomes a Split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from eqsat.control.bodies import Node
from eqsat.control.containers import AXES_ARE_INPUTS, along, constant_node
from eqsat.control.surroundings import Scope
from eqsat.model.model import attribute_graphs
from eqsat.model.names import FreshNames, captures
from eqsat.operators import normal_domain

_MOST_PARTS = 64  # parts of a Split that takes the place of a SplitToSequence


def part_sizes(node: Node, scope: Scope) -> list[int] | None:
    """Return the sizes of the parts of a SplitToSequence that a constant lists."""
    sizes = scope.value(node.input[1]) if len(node.input) > 1 and node.input[1] else None
    keeps = next((item.i for item in node.attribute if item.name == "keepdims"), 1)
    # With given sizes ONNX ignores keepdims, but runtimes do not.
    return None if sizes is None or sizes.ndim != 1 or not keeps else [int(size) for size in sizes]


def divided(node: Node, sizes: Sequence[int], graph: onnx.GraphProto, scope: Scope, fresh: FreshNames) -> list[Node] | None:
    """Return a Split, and a sequence of its results, in place of a SplitToSequence into parts of these
    sizes.

    Return None unless the sequence vanishes, because only known reads use it. Where they read few
    parts, the sizes become a constant instead, so that each read becomes a node of its own.
    """
    name, count = node.output[0], len(sizes)
    places: set[int] = set()
    if any(info.name == name for info in graph.output):
        return None
    for user in graph.node:
        if any(name in captures(body) for _, body in attribute_graphs(user)):
            return None
        if name in user.input:
            read = _places(user, count, scope) if not normal_domain(user.domain) else None
            if read is None:
                return None
            places |= read
    attributes = {item.name: item.i for item in node.attribute}
    if not 1 < count <= _MOST_PARTS or 2 * len(places) < max(count, 4):
        if not attributes.get("keepdims", 1) or part_sizes(node, scope) is not None:
            return None
        given = constant_node(np.array(sizes, np.int64), fresh.make("sizes"))
        return [given, helper.make_node("SplitToSequence", [node.input[0], given.output[0]], [name], axis=attributes.get("axis", 0))]
    axis = attributes.get("axis", 0)
    parts = [fresh.make(f"{name}_{place}") for place in range(count)]
    nodes = _split(node.input[0], sizes, axis, parts, scope, fresh)
    if not attributes.get("keepdims", 1):
        rows = [fresh.make(f"{part}_row") for part in parts]
        nodes, parts = [*nodes, *along("Squeeze", parts, axis, rows, scope, fresh)], rows
    return [*nodes, helper.make_node("SequenceConstruct", parts, [name])]


def _split(source: str, sizes: Sequence[int], axis: int, parts: Sequence[str], scope: Scope, fresh: FreshNames) -> list[Node]:
    if scope.opset < AXES_ARE_INPUTS:
        return [helper.make_node("Split", [source], parts, axis=axis, split=list(sizes))]
    given = constant_node(np.array(sizes, np.int64), fresh.make("sizes"))
    return [given, helper.make_node("Split", [source, given.output[0]], parts, axis=axis)]


def _places(user: Node, count: int, scope: Scope) -> set[int] | None:
    """Return the places of the elements that a node reads of a sequence, or None if it may keep or
    change the sequence.
    """
    if user.op_type == "SequenceAt":
        place = scope.integer(user.input[1])
        return None if place is None or not -count <= place < count else {place % count}
    if user.op_type == "ConcatFromSequence":
        return set(range(count)) if any(item.name == "axis" for item in user.attribute) else None
    return set() if user.op_type == "SequenceLength" else None
