"""Sequences and optionals of known content: reads become uses of the elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from eqsat.control.surroundings import Scope
from eqsat.model.names import FreshNames

READS = frozenset({"ConcatFromSequence", "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceLength"})
"""The operators that read from a container."""

AXES_ARE_INPUTS = 13
"""The first opset in which axes, and the sizes of a Split, are inputs."""

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
    parts = scope.producer(source, "SplitToSequence")
    if node.op_type == "SequenceLength":
        if elements is not None:
            return [constant_node(np.array(len(elements), np.int64), node.output[0])]
        return None if parts is None else _count(parts, node.output[0], scope, fresh)
    attributes = {item.name: item.i for item in node.attribute}
    if node.op_type == "ConcatFromSequence":
        stacked, axis = attributes.get("new_axis", 0), attributes.get("axis")
        if axis is None:
            return None
        if elements and not stacked:
            return [helper.make_node("Concat", elements, [node.output[0]], axis=axis)]
        if elements:
            return joined_rows(elements, axis, node.output[0], scope, fresh)
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
        return None if parts is None or elements is not None else _any_part(parts, node.input[1], node.output[0], fresh)
    if elements is not None:
        return [helper.make_node("Identity", [elements[place]], [node.output[0]])] if -len(elements) <= place < len(elements) else None
    return None if parts is None else _part(parts, place, node.output[0], scope, fresh)


def _count(parts: Node, result: str, scope: Scope, fresh: FreshNames) -> list[Node] | None:
    """Return nodes for the number of parts of a SplitToSequence."""
    if len(parts.input) > 1 and parts.input[1]:
        sizes = scope.value(parts.input[1])
        return None if sizes is None or sizes.ndim != 1 else [constant_node(np.array(sizes.size, np.int64), result)]
    shape, axis = fresh.make("shape"), next((item.i for item in parts.attribute if item.name == "axis"), 0)
    place = constant_node(np.array(axis, np.int64), fresh.make("axis"))
    return [helper.make_node("Shape", [parts.input[0]], [shape]), place, helper.make_node("Gather", [shape, place.output[0]], [result], axis=0)]


def _any_part(parts: Node, place: str, result: str, fresh: FreshNames) -> list[Node] | None:
    """Return nodes for the part of size 1 at a place that is not known."""
    if len(parts.input) > 1 and parts.input[1]:
        return None
    attributes = {item.name: item.i for item in parts.attribute}
    # A place is a scalar. An index of one axis keeps the axis that Gather takes from.
    shape = constant_node(np.array([1] if attributes.get("keepdims", 1) else [], np.int64), fresh.make("shape"))
    index = helper.make_node("Reshape", [place, shape.output[0]], [fresh.make("place")])
    return [shape, index, helper.make_node("Gather", [parts.input[0], index.output[0]], [result], axis=attributes.get("axis", 0))]


def joined_rows(parts: Sequence[str], axis: int, result: str, scope: Scope, fresh: FreshNames) -> list[Node]:
    """Return nodes that stack values of equal sizes along a new axis."""
    rows = [result] if len(parts) == 1 else [fresh.make(f"{part}_row") for part in parts]
    nodes = along("Unsqueeze", parts, axis, rows, scope, fresh)
    return nodes + ([helper.make_node("Concat", rows, [result], axis=axis)] if len(parts) > 1 else [])


def along(operator: str, sources: Sequence[str], axis: int, results: Sequence[str], scope: Scope, fresh: FreshNames) -> list[Node]:
    """Return nodes that apply Squeeze or Unsqueeze to each of some values."""
    pairs = list(zip(sources, results, strict=True))
    if scope.opset < AXES_ARE_INPUTS:
        return [helper.make_node(operator, [source], [result], axes=[axis]) for source, result in pairs]
    axes = constant_node(np.array([axis], np.int64), fresh.make("axes"))
    return [axes, *(helper.make_node(operator, [source, axes.output[0]], [result]) for source, result in pairs)]


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
