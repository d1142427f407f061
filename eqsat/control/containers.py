"""Sequences and optionals of known content: reads become uses of the elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from eqsat.control.surroundings import Scope
from eqsat.model.names import FreshNames

READS = frozenset({"ConcatFromSequence", "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceLength"})
"""The operators that read from a container."""

Node = onnx.NodeProto


def unpacked(node: Node, scope: Scope, fresh: FreshNames) -> list[Node] | None:
    """Return plain nodes that replace a read from a sequence or optional of known content."""
    source = node.input[0] if node.input else ""
    if node.op_type.startswith("Optional"):
        container = scope.producer(source, "Optional")
        full = container is not None and len(container.input) == 1 and bool(container.input[0])
        if node.op_type == "OptionalGetElement":
            return [helper.make_node("Identity", [container.input[0]], [node.output[0]])] if container is not None and full else None
        known = container is not None or not source
        return [constant_node(np.array(full), node.output[0])] if known else None
    elements = _elements(source, scope)
    if node.op_type == "SequenceLength":
        return None if elements is None else [constant_node(np.array(len(elements), np.int64), node.output[0])]
    parts = scope.producer(source, "SplitToSequence")
    attributes = {item.name: item.i for item in node.attribute}
    if node.op_type == "ConcatFromSequence":
        stacked, axis = attributes.get("new_axis", 0), attributes.get("axis")
        if axis is None:
            return None
        if elements and not stacked:
            return [helper.make_node("Concat", elements, [node.output[0]], axis=axis)]
        if parts is None:
            return None
        split = {item.name: item.i for item in parts.attribute}
        whole = len(parts.input) > 1 and bool(parts.input[1])
        if whole and not split.get("keepdims", 1):
            return None  # ONNX ignores the attribute here, but runtimes do not
        same = split.get("axis", 0) == axis and stacked == int(not whole and not split.get("keepdims", 1))
        return [helper.make_node("Identity", [parts.input[0]], [node.output[0]])] if same else None
    place = scope.integer(node.input[1])
    if place is None:
        return None
    if elements is not None:
        return [helper.make_node("Identity", [elements[place]], [node.output[0]])] if -len(elements) <= place < len(elements) else None
    return None if parts is None else _part(parts, place, node.output[0], scope, fresh)


def _part(parts: Node, place: int, result: str, scope: Scope, fresh: FreshNames) -> list[Node] | None:
    """Return nodes for one part of a SplitToSequence."""
    attributes = {item.name: item.i for item in parts.attribute}
    axis = attributes.get("axis", 0)
    if len(parts.input) < 2 or not parts.input[1]:
        number = constant_node(np.array(place if attributes.get("keepdims", 1) == 0 else [place], np.int64), fresh.make("part"))
        return [number, helper.make_node("Gather", [parts.input[0], number.output[0]], [result], axis=axis)]
    sizes = scope.value(parts.input[1])
    # With given sizes ONNX ignores keepdims, but runtimes do not.
    if sizes is None or not attributes.get("keepdims", 1) or (sizes.ndim == 0 and place < 0) or (sizes.ndim == 1 and not -sizes.size <= place < sizes.size):
        return None
    if sizes.ndim == 0:
        start, end = place * int(sizes), (place + 1) * int(sizes)
    else:
        start = int(sizes[: place % sizes.size].sum())
        end = start + int(sizes[place])
    bounds = [constant_node(np.array([number], np.int64), fresh.make("bound")) for number in (start, end, axis)]
    return [*bounds, helper.make_node("Slice", [parts.input[0], *(bound.output[0] for bound in bounds)], [result])]


def _elements(name: str, scope: Scope) -> list[str] | None:
    """Return the elements of a sequence of known content."""
    node = scope.producer(name, "SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase")
    if node is None or node.op_type == "SequenceEmpty":
        return None if node is None else []
    if node.op_type == "SequenceConstruct":
        return list(node.input)
    before = _elements(node.input[0], scope)
    inserts = node.op_type == "SequenceInsert"
    given = node.input[1 + inserts] if len(node.input) > 1 + inserts else ""
    if before is None:
        return None
    last = len(before) if inserts else len(before) - 1
    place = scope.integer(given) if given else last
    if place is None or not -len(before) <= place <= last:
        return None
    place = place % len(before) if place < 0 else place
    return [*before[:place], *([node.input[1]] if inserts else []), *before[place + (not inserts) :]]


def constant_node(array: np.ndarray[Any, Any], name: str) -> Node:
    """Return a Constant node that gives an array under a name."""
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array, name))
