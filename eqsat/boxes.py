"""Sequences and optionals of which enough is known: what is taken out of one that was filled in sight is taken directly."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from eqsat.names import FreshNames
from eqsat.visible import Scope

BOXES = frozenset({"ConcatFromSequence", "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceLength"})
"""The operators that take something out."""

Node = onnx.NodeProto


def unboxed(node: Node, scope: Scope, fresh: FreshNames) -> list[Node] | None:
    """What is taken out of a sequence or an optional that was filled in sight."""
    source = node.input[0] if node.input else ""
    if node.op_type.startswith("Optional"):
        box = scope.made(source, "Optional")
        full = box is not None and len(box.input) == 1 and bool(box.input[0])
        if node.op_type == "OptionalGetElement":
            return [helper.make_node("Identity", [box.input[0]], [node.output[0]])] if box is not None and full else None
        known = box is not None or not source
        return [stored(np.array(full), node.output[0])] if known else None
    elements = _elements(source, scope)
    if node.op_type == "SequenceLength":
        return None if elements is None else [stored(np.array(len(elements), np.int64), node.output[0])]
    parts = scope.made(source, "SplitToSequence")
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
    """One part of what SplitToSequence splits."""
    attributes = {item.name: item.i for item in parts.attribute}
    axis = attributes.get("axis", 0)
    if len(parts.input) < 2 or not parts.input[1]:
        number = stored(np.array(place if attributes.get("keepdims", 1) == 0 else [place], np.int64), fresh.make("part"))
        return [number, helper.make_node("Gather", [parts.input[0], number.output[0]], [result], axis=axis)]
    sizes = scope.value(parts.input[1])
    # Where sizes are stated, ONNX ignores keepdims, but runtimes do not.
    if sizes is None or not attributes.get("keepdims", 1) or (sizes.ndim == 0 and place < 0) or (sizes.ndim == 1 and not -sizes.size <= place < sizes.size):
        return None
    if sizes.ndim == 0:
        start, end = place * int(sizes), (place + 1) * int(sizes)
    else:
        start = int(sizes[: place % sizes.size].sum())
        end = start + int(sizes[place])
    bounds = [stored(np.array([number], np.int64), fresh.make("bound")) for number in (start, end, axis)]
    return [*bounds, helper.make_node("Slice", [parts.input[0], *(bound.output[0] for bound in bounds)], [result])]


def _elements(name: str, scope: Scope) -> list[str] | None:
    """The elements of a sequence that was filled in sight."""
    node = scope.made(name, "SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase")
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


def stored(array: np.ndarray[Any, Any], name: str) -> Node:
    """A node that gives a constant under a name."""
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array, name))
