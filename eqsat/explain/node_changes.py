"""Changes: the nodes that differ between two models of a chain."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from eqsat.model.likeness import Likeness


def changes(before: onnx.ModelProto, old: Likeness, after: onnx.ModelProto, new: Likeness) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the nodes that went and those that came, each as its operator and its first output.
    `old` and `new` are the keys of the models. A node that only computes, or reads, a value of
    another name is no change.
    """
    named = {key: name for name, key in old.values.items()}
    was = {name: named[key] for name, key in new.values.items() if name not in old.values and key in named}  # names before
    left: dict[bytes, list[onnx.NodeProto]] = {}
    for node in before.graph.node:
        left.setdefault(_written(node, {}), []).append(node)
    came: list[str] = []
    for node in after.graph.node:
        same = left.get(_written(node, was))
        if same:
            twin = next((one for one in same if one.output == node.output), same[0])
            same.remove(twin)
            was.update((now, then) for now, then in zip(node.output, twin.output, strict=True) if now != then)
        elif node.op_type != "Constant":
            came.append(_title(node))
    gone = [node for nodes in left.values() for node in nodes if node.op_type != "Constant"]
    return tuple(map(_title, gone)), tuple(came)


def _written(node: onnx.NodeProto, was: Mapping[str, str]) -> bytes:
    """Returns what a node computes, from which values."""
    bare = onnx.NodeProto(op_type=node.op_type, domain=node.domain, attribute=node.attribute)
    bare.input.extend(was.get(name, name) for name in node.input)
    bare.output.extend("x" if name else "" for name in node.output)
    return bare.SerializeToString(deterministic=True)


def _title(node: onnx.NodeProto) -> str:
    return f"{node.op_type} {next(filter(None, node.output), '')}"
