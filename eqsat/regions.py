"""Two models cut into small pairs that can be judged apart, so that what is the same in both is never loaded.

Comes in: two subjects. Goes out: regions, each a pair of small models with the same inputs and outputs. Cut points are
values that have the same name in both models. Nodes that are the same in both need no running; groups of nodes that
differ, joined by values that only one model knows, are a region. Promised: if every region computes the same on all
inputs, so do the models. (By induction along the optimized model: each common value that it uses comes from a node
that both have, or is an output of a region.) The converse does not hold, since a region forgets what is known of its
inputs, and since a name may have been given to another value; so a region can be taken deeper, with more of the nodes
before it, and a name can be given up as a cut point.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import onnx

from eqsat.model import attribute_graphs
from eqsat.names import captures
from eqsat.native import NativeFailure, inferred
from eqsat.operators import find_operator, may_train, read_attributes
from eqsat.ranges import nodes_in_order
from eqsat.subject import Subject, depends_on_inputs, has_external_data, same_content, tensor_bytes, weight_bytes, without_weights

GIVEN = -1  # a depth: the values before a region are given, and none of the nodes that compute them are taken in
_SMALL = 1024  # bytes of a constant up to which a region takes it as it is
_Node = tuple[int, int]  # which model (0: original, 1: optimized), and the node's place in it


@dataclass(frozen=True)
class Region:
    """Two models that should compute the same; `name` is that of a value that they compute.

    `closed` says that every input is one of the whole model: then what is found of the region holds of the whole model too.
    """

    name: str
    original: Subject
    optimized: Subject
    closed: bool

    def moving(self) -> frozenset[str]:
        """The outputs that depend on the values of inputs, and not on their sizes alone."""
        graph = self.original.proto.graph
        bare = onnx.GraphProto(input=graph.input, output=graph.output, node=[node for node in graph.node if node.op_type not in ("Shape", "Size")])
        return depends_on_inputs(onnx.ModelProto(graph=bare))

    def form(self) -> bytes | None:
        """The region but for its names: regions of one form compute the same, or none does. None where bodies make names matter."""
        digest = hashlib.sha256()
        names: dict[str, str] = {}
        for subject in (self.original, self.optimized):
            bare = onnx.ModelProto()
            bare.CopyFrom(subject.proto)
            graph = bare.graph
            if any(True for node in graph.node for _ in attribute_graphs(node)) or has_external_data(bare):
                return None
            for item in (*graph.input, *graph.initializer, *graph.output):
                item.name = names.setdefault(item.name, f"v{len(names)}")
            for info in (*graph.input, *graph.output):
                for size in info.type.tensor_type.shape.dim if info.type.HasField("tensor_type") else ():
                    if size.HasField("dim_param"):
                        size.dim_param = names.setdefault(f"dim {size.dim_param}", f"d{len(names)}")
            for node in graph.node:
                node.ClearField("name")
                node.ClearField("doc_string")
                node.ClearField("metadata_props")
                for field in (node.input, node.output):
                    for index, name in enumerate(field):
                        field[index] = names.setdefault(name, f"v{len(names)}") if name else ""
            digest.update(bare.SerializeToString(deterministic=True) + b"|")
        return digest.digest()


class Cut:
    """Where two models differ; `len` is the number of regions."""

    def __init__(self, original: Subject, optimized: Subject) -> None:
        self._subjects = (original, optimized)
        self._sides = (_Side(original.proto), _Side(optimized.proto))
        self._types: dict[str, onnx.TypeProto] | None = None
        a, b = self._sides
        self._common = set(a.names & b.names)
        self._other_weights = {
            name for name, tensor in a.weights.items() if name in b.weights and not same_content(tensor, original.folder, b.weights[name], optimized.folder)
        } | {name for name in a.sparse.keys() & b.sparse.keys() if a.sparse[name] != b.sparse[name]}
        self._partition()

    def __len__(self) -> int:
        return len(self._regions)

    def _partition(self) -> None:
        same = self._same_nodes()
        groups = self._groups(*([place for place in range(len(side.keys)) if place not in twins] for side, twins in zip(self._sides, same, strict=True)))
        regions = [(group, self._needed_outside(group)) for group in groups]
        regions += [(([], []), [name]) for name in sorted(self._other_weights & self._sides[1].results)]
        self._regions = [(group, outputs) for group, outputs in regions if outputs]

    def key(self, number: int) -> object:
        """What makes a region: equal keys, before and after `uncut`, are the same region."""
        (a, b), outputs = self._regions[number]
        return tuple(a), tuple(b), tuple(outputs)

    def uncut(self, name: str) -> bool:
        """No longer take `name` for the same value in both models, and cut again; False where it is a result and so has to be."""
        if name in self._sides[1].results:
            return False
        self._common.discard(name)
        self._partition()
        return True

    def border(self, number: int) -> list[str]:
        """The values that a region reads, where all that it reads is given."""
        return self._chosen(number, GIVEN)[1]

    def learn(self, types: Mapping[str, onnx.TypeProto]) -> None:
        """From now on values are known to have these types."""
        self._types = {**self._known_types(), **types}

    def originals(self, number: int) -> frozenset[str]:
        """The values of the original that a region is about: what its nodes there compute, or else what reads its outputs does."""
        nodes, outputs = self._regions[number]
        side = self._sides[0]
        places = nodes[0] or [place for name in outputs for place in side.consumers.get(name, ())]
        names = {name for place in places for name in side.outputs[place]}
        return frozenset(names | {twin for twin, first in side.twins.items() if first in names})

    def before(self, values: Collection[str]) -> frozenset[str]:
        """What the original's nodes compute that these values are made from."""
        side = self._sides[0]
        read = {name for value in values if value in side.producer for name in side.inputs[side.producer[value]]}
        return frozenset(name for value in read if value in side.producer for name in side.outputs[side.producer[value]])

    def region(self, number: int, depth: int, most_bytes: int) -> Region | str:
        """The region with the nodes up to `depth` levels before it; as text, why there is none, as when its weights are over `most_bytes`."""
        outputs = self._regions[number][1]
        chosen, boundary = self._chosen(number, depth)
        known = self._known_types()
        for name in boundary:
            if name not in known:
                return f"region of {outputs[0]}: the type of value '{name}' is not known"
        size = sum(self._bytes(side, chosen[side], boundary, outputs) for side in (0, 1))
        if size > most_bytes:
            return f"region of {outputs[0]}: its weights, {size} bytes, do not fit in the memory limit"
        a, b = (Subject(self._model(side, chosen[side], boundary, outputs), self._subjects[side].folder) for side in (0, 1))
        return Region(outputs[0], a, b, self._sides[0].inputs_of_model.issuperset(value.name for value in a.proto.graph.input))

    def _chosen(self, number: int, depth: int) -> tuple[tuple[set[int], set[int]], list[str]]:
        """The nodes of a region with those before it, and the values that they read."""
        nodes = self._regions[number][0]
        chosen = (set(nodes[0]), set(nodes[1]))
        self._extend(chosen, depth)
        boundary = self._boundary(chosen)
        # A node with several outputs may be split in the other model: what one side computes, the other has to compute as well.
        while split := self._computed_on_one_side(chosen, boundary):
            for side, place in split:
                chosen[side].add(place)
            self._extend(chosen, depth)
            boundary = self._boundary(chosen)
        return chosen, boundary

    def _computed_on_one_side(self, chosen: tuple[set[int], set[int]], boundary: Iterable[str]) -> list[_Node]:
        """The nodes, not in the region, that compute what is on its boundary and computed by the region in the other model."""
        nodes: list[_Node] = []
        for name in boundary:
            places = [names.producer.get(name) for names in self._sides]
            if any(place in chosen[side] for side, place in enumerate(places)):
                nodes.extend((side, place) for side, place in enumerate(places) if place is not None and place not in chosen[side])
        return nodes

    def _bytes(self, side: int, chosen: set[int], boundary: Iterable[str], outputs: Iterable[str]) -> int:
        """The size of the weights that the model of a region holds, without making it."""
        names = self._sides[side]
        used = {name for place in chosen for name in names.inputs[place]}.union(outputs).difference(boundary)
        return sum(names.bytes[place] for place in chosen) + sum(tensor_bytes(names.weights[name]) for name in used if name in names.weights)

    def _same_nodes(self) -> tuple[set[int], set[int]]:
        """The places of the nodes that both models have: same operator, attributes and names, of weights with the same content."""
        a, b = self._sides
        same: tuple[set[int], set[int]] = (set(), set())
        for place in range(len(a.keys)):
            twin = next((b.producer[name] for name in a.outputs[place] if name in b.producer), None)
            trusted = self._common.issuperset(a.inputs[place]) and self._other_weights.isdisjoint(a.inputs[place])
            if twin is not None and trusted and a.keys[place] == b.keys[twin]:
                same[0].add(place)
                same[1].add(twin)
        return same

    def _groups(self, *changed: list[int]) -> Iterator[tuple[list[int], list[int]]]:
        """Nodes that differ, joined where a value that is no cut point links them, or both compute the same name."""
        parent: dict[_Node, _Node] = {(side, place): (side, place) for side, places in enumerate(changed) for place in places}

        def root(node: _Node) -> _Node:
            while parent[node] != node:
                parent[node] = parent[parent[node]]
                node = parent[node]
            return node

        first: dict[tuple[str, int], _Node] = {}
        for node in list(parent):
            side, place = node
            names = self._sides[side]
            linked = [(name, -1) for name in names.outputs[place] if name in self._common]
            linked += [(name, side) for name in (*names.outputs[place], *names.inputs[place]) if name not in self._common and name not in names.weights]
            for link in linked:
                other = first.setdefault(link, node)
                x, y = sorted((root(node), root(other)))
                parent[y] = x
        groups: dict[_Node, tuple[list[int], list[int]]] = {}
        for node in parent:
            groups.setdefault(root(node), ([], []))[node[0]].append(node[1])
        yield from groups.values()

    def _needed_outside(self, nodes: tuple[list[int], list[int]]) -> list[str]:
        """The common values that a group computes in either model and that the optimized model needs outside of it."""
        inside = set(nodes[1])
        b = self._sides[1]
        computed = dict.fromkeys(name for side in (0, 1) for place in nodes[side] for name in self._sides[side].outputs[place] if name in self._common)
        return [name for name in computed if name in b.results or any(place not in inside for place in b.consumers.get(name, ()))]

    def _extend(self, chosen: tuple[set[int], set[int]], depth: int) -> None:
        """Take in `depth` levels of the nodes before a region, and what no draw would do justice to: what computes integers
        (shapes, indices), values of unknown type, and, unless `depth` is 0, values of a size that is not known."""
        a, b = self._sides
        known = self._known_types() if depth != GIVEN else dict[str, onnx.TypeProto]()
        constants = a.constants | b.constants  # drawn at random, they would be what they never are
        level = {name for side in (0, 1) for place in chosen[side] for name in self._sides[side].inputs[place]}
        distance = 0
        while level:
            following: set[str] = set()
            for name in sorted(level):
                if name not in self._common or distance < depth or name in constants or (depth != GIVEN and not _can_be_drawn(known.get(name), depth)):
                    for side, names in enumerate((a, b)):
                        place = names.producer.get(name)
                        if place is not None and place not in chosen[side]:
                            chosen[side].add(place)
                            following.update(names.inputs[place])
            level = following
            distance += 1

    def _boundary(self, chosen: tuple[set[int], set[int]]) -> list[str]:
        """The values that a region uses in either model and does not compute there."""
        needed: dict[str, None] = {}
        for side in (0, 1):
            names = self._sides[side]
            inside = {name for place in chosen[side] for name in names.outputs[place]}
            for place in sorted(chosen[side]):
                needed.update(dict.fromkeys(name for name in names.inputs[place] if name not in inside and name not in names.stored))
        return list(needed)

    def _model(self, side: int, chosen: set[int], boundary: Iterable[str], outputs: Iterable[str]) -> onnx.ModelProto:
        names, proto = self._sides[side], self._subjects[side].proto
        model = onnx.ModelProto(ir_version=max(proto.ir_version, 4), opset_import=proto.opset_import, functions=proto.functions)
        graph = model.graph
        graph.name = "region"
        order = sorted(chosen)
        computed = {name for place in order for name in names.outputs[place]}
        given = set(boundary)
        stored = [name for name in outputs if name not in computed and name not in given]
        used = dict.fromkeys(chain.from_iterable(names.inputs[place] for place in order))
        graph.initializer.extend(names.weights[name] for name in used if name in names.weights and name not in given and name not in stored)
        graph.sparse_initializer.extend(names.sparse[name] for name in used if name in names.sparse)
        types = self._known_types()
        constants = self._sides[0].small
        graph.initializer.extend(constants[name] for name in boundary if name in constants)
        graph.input.extend(onnx.ValueInfoProto(name=name, type=types[name]) for name in boundary if name not in constants)
        for name in outputs:
            graph.output.append(onnx.ValueInfoProto(name=name, type=_without_shape(types[name])) if name in types else onnx.ValueInfoProto(name=name))
        for name in stored:  # a result has to come from a node
            tensor = graph.initializer.add()
            tensor.CopyFrom(names.weights[name])
            tensor.name = f"{name} (stored)"
            graph.node.append(_identity(tensor.name, name))
        graph.node.extend(names.nodes[place] for place in order)
        return model

    def _known_types(self) -> Mapping[str, onnx.TypeProto]:
        if self._types is None:
            self._types = {}
            proto = self._subjects[0].proto
            try:
                graphs = [inferred(without_weights(proto)).graph, proto.graph]
            except NativeFailure:  # where inference refuses the model, what the file states must do
                graphs = [proto.graph]
            for graph in graphs:
                for value in (*graph.input, *graph.value_info, *graph.output):
                    if value.type.WhichOneof("value") and value.name not in self._types:
                        self._types[value.name] = value.type
            for tensor in proto.graph.initializer:
                self._types[tensor.name] = onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
        return self._types


class _Side:
    """The top level of one model: what each node uses, bodies included, and makes."""

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
        self.bytes: list[int] = []
        self.keys: list[tuple[list[int], bytes, bytes]] = []
        self.inputs: list[list[str]] = []
        self.outputs: list[list[str]] = []
        self.producer: dict[str, int] = {}
        self.consumers: dict[str, list[int]] = {}
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
            self.producer.update(dict.fromkeys(self.outputs[-1], place))
            for name in self.inputs[-1]:
                self.consumers.setdefault(name, []).append(place)
        self.constants = {node.output[0] for node, size in zip(self.nodes, self.bytes, strict=True) if node.op_type == "Constant" and size <= _SMALL}
        self.names = self.producer.keys() | self.stored | {value.name for value in graph.input}


def _merged(proto: onnx.ModelProto, versions: Mapping[str, int]) -> tuple[list[onnx.NodeProto], dict[str, str]]:
    """The nodes of a model, of pure ones that say the same only the first: what uses another of them uses the first instead.
    And for each value of another the one of the first.

    Merging equal nodes and leaving out identities is what an optimizer does everywhere; done on both sides, it needs no running.
    """
    functions = {(function.domain, function.name) for function in proto.functions}
    results = {value.name for value in proto.graph.output}
    first: dict[bytes, onnx.NodeProto] = {}
    alias: dict[str, str] = {}
    twins: dict[str, str] = {}
    nodes: list[onnx.NodeProto] = []
    for original in proto.graph.node:
        node = onnx.NodeProto()
        node.CopyFrom(original)
        bodies = [body for _, body in attribute_graphs(node)]
        for index, name in enumerate(node.input):
            node.input[index] = alias.get(name, name)
        # Values that a body captures keep the names that it knows them by.
        captured = {name for body in bodies for name in captures(body) if name in alias}
        nodes.extend(_identity(alias.pop(name), name) for name in sorted(captured))
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


def _identity(source: str, name: str) -> onnx.NodeProto:
    return onnx.helper.make_node("Identity", [source], [name])


def _is_pure(node: onnx.NodeProto, versions: Mapping[str, int]) -> bool:
    operator = find_operator(node.domain, node.op_type, versions.get(node.domain, 1))
    return operator.pure and not may_train(operator, read_attributes(operator, node.attribute), len(node.input), sum(map(bool, node.output)))


def _used(node: onnx.NodeProto) -> dict[str, None]:
    """The values from outside that a node uses, those that its bodies capture included."""
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


def _can_be_drawn(kind: onnx.TypeProto | None, depth: int) -> bool:
    if kind is None or not kind.HasField("tensor_type"):
        return False
    if kind.tensor_type.elem_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.BOOL):
        return False
    shape = kind.tensor_type.shape
    return depth == 0 or (kind.tensor_type.HasField("shape") and all(size.HasField("dim_value") or size.dim_param for size in shape.dim))


def _without_shape(kind: onnx.TypeProto) -> onnx.TypeProto:
    bare = onnx.TypeProto()
    bare.CopyFrom(kind)
    if bare.HasField("tensor_type"):
        bare.tensor_type.ClearField("shape")
    return bare
