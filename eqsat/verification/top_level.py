"""Top levels: the nodes of a model's main graph, with the values that each uses and computes.

Equal pure nodes are merged into the first, and identities are dropped. So two models that differ
only in these look the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx

from eqsat.model.model import attribute_graphs
from eqsat.model.names import captures
from eqsat.model.prepare import default_inputs
from eqsat.operators import find_operator, may_train, read_attributes
from eqsat.verification.input_ranges import nodes_in_order
from eqsat.verification.loaded_model import tensor_bytes, weight_bytes

_SMALL = 1024  # the most bytes of a constant that a region contains


class TopLevel:
    """The top level of one model: the values that each node uses, bodies included, and computes."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        graph = proto.graph
        versions = {entry.domain: entry.version for entry in proto.opset_import}
        functions = {(function.domain, function.name): function for function in proto.functions}
        meaning = b"".join(function.SerializeToString(deterministic=True) for function in functions.values())
        self.sparse = {tensor.values.name: tensor for tensor in graph.sparse_initializer}
        self.weights = {tensor.name: tensor for tensor in graph.initializer}
        self.stored = self.weights.keys() | self.sparse.keys()
        inline = ((name, tensor) for name, tensor in self.weights.items() if tensor.data_location != onnx.TensorProto.EXTERNAL)
        self.small = {name: tensor for name, tensor in inline if tensor_bytes(tensor) <= _SMALL}
        self.results = {value.name for value in graph.output}
        self.inputs_of_model = {value.name for value in graph.input}
        self._defaults = set(default_inputs(proto))
        self.bytes: list[int] = []
        self.keys: list[tuple[list[int], bytes, bytes]] = []
        self.inputs: list[list[str]] = []
        self.outputs: list[list[str]] = []
        self.producer: dict[str, int] = {}
        self.consumers: dict[str, list[int]] = {}
        self.fixed: set[str] = set()
        """The values that nodes compute from stored constants alone."""
        self.uniform: set[str] = set()
        """Those of them whose elements are one number: making them takes less than drawing them."""
        self.nodes, self.twins = _merged(proto, versions)
        for place, node in enumerate(self.nodes):
            bare = onnx.NodeProto()
            bare.CopyFrom(node)
            bare.ClearField("name")
            bare.ClearField("doc_string")
            bare.ClearField("metadata_props")
            inside = list(nodes_in_order([node]))
            called = meaning if any((inner.domain, inner.op_type) in functions for inner in inside) else b""
            self.bytes.append(weight_bytes(onnx.ModelProto(graph=onnx.GraphProto(node=[node]))) if node.attribute else 0)
            self.keys.append(([versions.get(inner.domain, 0) for inner in inside], bare.SerializeToString(deterministic=True), called))
            self.inputs.append(list(_used(node)))
            self.outputs.append([name for name in node.output if name])
            if self._is_fixed(node, versions):
                self.fixed.update(self.outputs[-1])
                if node.op_type == "ConstantOfShape":
                    self.uniform.update(self.outputs[-1])
            self.producer.update(dict.fromkeys(self.outputs[-1], place))
            for name in self.inputs[-1]:
                self.consumers.setdefault(name, []).append(place)
        self.constants = {node.output[0] for node, size in zip(self.nodes, self.bytes, strict=True) if node.op_type == "Constant" and size <= _SMALL}
        self.names = self.producer.keys() | self.stored | {value.name for value in graph.input}

    def _is_fixed(self, node: onnx.NodeProto, versions: Mapping[str, int]) -> bool:
        read = self.inputs[-1][: 1 if node.op_type == "CastLike" else None]  # its second input gives a type only
        known = all(name in self.fixed or (name in self.stored and name not in self._defaults) for name in read)
        return known and _is_pure(node, versions)


def _merged(proto: onnx.ModelProto, versions: Mapping[str, int]) -> tuple[list[onnx.NodeProto], dict[str, str]]:
    """Returns the nodes of a model with equal pure nodes merged into the first.

    It also returns the new name of each merged value. Every optimizer merges equal nodes and drops
    identities; done on both sides, this needs no run.
    """
    functions = {(function.domain, function.name) for function in proto.functions}
    results = {value.name for value in proto.graph.output}
    first: dict[bytes, onnx.NodeProto] = {}
    alias: dict[str, str] = {}
    twins: dict[str, str] = {}
    nodes: list[onnx.NodeProto] = []
    for original in _defined_once(proto.graph.node):
        node = onnx.NodeProto()
        node.CopyFrom(original)
        bodies = [body for _, body in attribute_graphs(node)]
        for index, name in enumerate(node.input):
            node.input[index] = alias.get(name, name)
        # Values that a body captures keep the names that the body uses.
        captured = {name for body in bodies for name in captures(body) if name in alias}
        nodes.extend(identity(alias.pop(name), name) for name in sorted(captured))
        if node.op_type == "Identity" and node.domain in ("", "ai.onnx") and node.input[0] and results.isdisjoint(node.output):
            alias[node.output[0]] = node.input[0]
            continue
        if bodies or (node.domain, node.op_type) in functions or not _is_pure(node, versions) or not results.isdisjoint(node.output):
            nodes.append(node)
            continue
        key = onnx.NodeProto()
        key.CopyFrom(node)
        for field in ("name", "doc_string", "metadata_props", "output"):
            key.ClearField(field)
        key.output.extend("x" if name else "" for name in node.output)
        twin = first.setdefault(key.SerializeToString(deterministic=True), node)
        if twin is node:
            nodes.append(node)
        else:
            twins.update((old, new) for old, new in zip(node.output, twin.output, strict=True) if old)
            alias.update((old, new) for old, new in zip(node.output, twin.output, strict=True) if old)
    return nodes, twins


def _defined_once(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yields the nodes without constants of a name that another one has: runtimes take the latest
    one, wherever the name is read.
    """
    latest = {node.output[0]: node for node in nodes if _is_constant(node)}
    for node in nodes:
        if not _is_constant(node):
            yield node
        elif (found := latest.pop(node.output[0], None)) is not None:
            yield found


def _is_constant(node: onnx.NodeProto) -> bool:
    return node.op_type == "Constant" and node.domain in ("", "ai.onnx") and len(node.output) == 1


def identity(source: str, name: str) -> onnx.NodeProto:
    """Returns a node that copies a value to another name."""
    return onnx.helper.make_node("Identity", [source], [name])


def _is_pure(node: onnx.NodeProto, versions: Mapping[str, int]) -> bool:
    operator = find_operator(node.domain, node.op_type, versions.get(node.domain, 1))
    return operator.pure and not may_train(operator, read_attributes(operator, node.attribute), len(node.input), sum(map(bool, node.output)))


def _used(node: onnx.NodeProto) -> dict[str, None]:
    """Returns the outer values that a node uses, captures of its bodies included."""
    used: dict[str, None] = {}
    made: set[str] = set()
    for inner in nodes_in_order([node]):
        used.update(dict.fromkeys(name for name in inner.input if name))
        if inner is not node:
            made.update(inner.output)
        for attribute in inner.attribute:
            for body in (attribute.g, *attribute.graphs):
                made.update(value.name for value in body.input)
                made.update(tensor.name for tensor in body.initializer)
                used.update(dict.fromkeys(value.name for value in body.output))
    for name in node.input:
        made.discard(name)
    return {name: None for name in used if name not in made}
