"""Likeness: which values of two models are computed in the same way, whatever their names are.

A value has a key made of its operator, its attributes and the keys of the values that it reads.
Inputs of the model count by name, constants by their elements, external data by their place.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping

import onnx

from eqsat.frozen import frozen
from eqsat.model.model import attribute_graphs
from eqsat.model.names import captures

Key = bytes


@frozen
class Likeness:
    """The keys of one model: of its values by name, and of its nodes."""

    values: Mapping[str, Key]
    nodes: Counter[Key]
    results: tuple[Key, ...]
    functions: frozenset[Key]

    def same(self, other: Likeness) -> bool:
        """Tells whether two models are the same up to the names of values and nodes, and up to the
        order of nodes. Their opsets are not compared.
        """
        return self.nodes == other.nodes and self.results == other.results and self.functions == other.functions


class Keys:
    """Makes the keys of models that follow one another. Weights that stay are digested once."""

    def __init__(self) -> None:
        self._weights: dict[str, tuple[onnx.TensorProto, Key]] = {}

    def of(self, model: onnx.ModelProto) -> Likeness:
        """Returns the keys of a model whose nodes are in topological order."""
        graph = model.graph
        values: dict[str, Key] = {info.name: _digest(b"input", info.name.encode()) for info in graph.input}
        self._weights = {tensor.name: self._weight(tensor) for tensor in graph.initializer}
        for name, (_, key) in self._weights.items():
            values.setdefault(name, key)
        for sparse in graph.sparse_initializer:
            values.setdefault(sparse.values.name, _digest(b"sparse", sparse.SerializeToString(deterministic=True)))
        nodes: Counter[Key] = Counter()
        for node in graph.node:
            key = _node(node, values)
            if node.op_type != "Constant":
                nodes[key] += 1
            for place, name in enumerate(node.output):
                values[name] = _tensor(node.attribute[0].t) if _holds_tensor(node) else _digest(key, str(place).encode())
        results = tuple(values.get(info.name, b"") for info in graph.output)
        functions = frozenset(_digest(function.SerializeToString(deterministic=True)) for function in model.functions)
        return Likeness(values, nodes, results, functions)

    def _weight(self, tensor: onnx.TensorProto) -> tuple[onnx.TensorProto, Key]:
        """Returns a weight and its key. To compare a weight with the one of its name in the last
        model is faster than to digest it.
        """
        known = self._weights.get(tensor.name)
        if known is not None and known[0] == tensor:
            return known
        own = onnx.TensorProto()
        own.CopyFrom(tensor)  # a part of a message keeps all of it in memory
        return own, _tensor(tensor)


def _node(node: onnx.NodeProto, values: Mapping[str, Key]) -> Key:
    bare = onnx.NodeProto(op_type=node.op_type, domain=node.domain, overload=node.overload)
    bare.attribute.extend(sorted(node.attribute, key=lambda attribute: attribute.name))
    captured = (name for _, body in attribute_graphs(node) for name in captures(body))
    inputs = [values.get(name, name.encode()) if name else b"" for name in (*node.input, *captured)]
    return _digest(bare.SerializeToString(deterministic=True), *inputs, str([bool(name) for name in node.output]).encode())


def _holds_tensor(node: onnx.NodeProto) -> bool:
    return node.op_type == "Constant" and len(node.attribute) == 1 and node.attribute[0].type == onnx.AttributeProto.TENSOR


def _tensor(tensor: onnx.TensorProto) -> Key:
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return _digest(b"external", *(f"{entry.key}={entry.value}".encode() for entry in tensor.external_data))
    bare = onnx.TensorProto()
    bare.CopyFrom(tensor)
    bare.ClearField("name")
    bare.ClearField("doc_string")
    return _digest(bare.SerializeToString(deterministic=True))


def _digest(*parts: bytes) -> Key:
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.digest()
