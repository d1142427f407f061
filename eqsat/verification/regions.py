"""Regions: two models are cut into small pairs of models that can be judged apart.

The input is two loaded models. The output is regions, each a pair of small models with the same
inputs and outputs, so that parts common to both models are never loaded. Cut points are values with
the same name in both models. Nodes that are the same in both need no run. A region is a group of
differing nodes, joined by values that only one model has.

If every region computes the same on all inputs, so do the models. The proof is by induction along
the optimized model: each common value that it uses comes from a node that both have, or is an
output of a region. The converse does not hold, for two reasons. A region forgets the facts of its
inputs; taking it deeper, with more of the nodes before it, restores them. And one name may stand
for two values; giving it up as a cut point helps.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

import onnx

from eqsat.runtime.onnx_passes import NativeFailure, inferred
from eqsat.verification.loaded_model import COPIES, LoadedModel, held_bytes, same_content, without_weights
from eqsat.verification.region import Region
from eqsat.verification.top_level import TopLevel, identity

GIVEN = -1  # a depth: the values before a region are given, whatever nodes compute them
_FEW = 1 << 14  # the most elements of a computed constant that a region computes itself
_Node = tuple[int, int]  # the model (0: original, 1: optimized), and the node's place in it


class Cut:
    """The places where two models differ; `len` is the number of regions."""

    def __init__(self, original: LoadedModel, optimized: LoadedModel) -> None:
        self.models = (original, optimized)
        self._sides = (TopLevel(original.proto), TopLevel(optimized.proto))
        self._types: dict[str, onnx.TypeProto] | None = None
        a, b = self._sides
        self._common = set(a.names & b.names)
        self._other_weights = {
            name for name, tensor in a.weights.items() if name in b.weights and not same_content(tensor, original.folder, b.weights[name], optimized.folder)
        } | {name for name in a.sparse.keys() & b.sparse.keys() if a.sparse[name] != b.sparse[name]}
        self.results = frozenset(a.results)
        """The results of the original."""
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
        """Returns the identity of a region, which stays the same after `uncut`."""
        (a, b), outputs = self._regions[number]
        return tuple(a), tuple(b), tuple(outputs)

    def uncut(self, name: str) -> bool:
        """Stops taking `name` for the same value in both models, and cuts again.

        Returns False for a result of the models, which has to be the same value.
        """
        if name in self._sides[1].results:
            return False
        self._common.discard(name)
        self._partition()
        return True

    def outputs(self, number: int) -> list[str]:
        """Returns the values of a region that are compared."""
        return self._regions[number][1]

    def share(self, number: int) -> float:
        """Returns the share of the original's nodes that a region holds."""
        side = self._sides[0]
        return len(self._regions[number][0][0]) / max(len(side.keys), 1)

    def computed(self, number: int) -> frozenset[str]:
        """Returns the values that the nodes of a region compute in both models."""
        a, b = ({name for place in places for name in side.outputs[place]} for side, places in zip(self._sides, self._regions[number][0], strict=True))
        return frozenset(a & b)

    def border(self, number: int) -> list[str]:
        """Returns the values that a region reads if they are all given."""
        return self._chosen(number, GIVEN)[1]

    def learn(self, types: Mapping[str, onnx.TypeProto]) -> None:
        """Adds known types of values."""
        self._types = {**self._known_types(), **types}

    def originals(self, number: int) -> frozenset[str]:
        """Returns the values of the original that a region is about.

        Its nodes there compute them. If it has none there, the nodes that read its outputs do.
        """
        nodes, outputs = self._regions[number]
        side = self._sides[0]
        places = nodes[0] or [place for name in outputs for place in side.consumers.get(name, ())]
        names = {name for place in places for name in side.outputs[place]}
        return frozenset(names | {twin for twin, first in side.twins.items() if first in names})

    def before(self, values: Collection[str]) -> frozenset[str]:
        """Returns the values that the original computes directly before these values."""
        side = self._sides[0]
        read = {name for value in values if value in side.producer for name in side.inputs[side.producer[value]]}
        return frozenset(name for value in read if value in side.producer for name in side.outputs[side.producer[value]])

    def region(self, number: int, depth: int, most_bytes: int, settled: Collection[str] = ()) -> Region | str:
        """Returns the region with the nodes up to `depth` levels before it, or why there is none.

        One reason is that its weights take more than `most_bytes` where it runs. Outputs that are
        `settled` are left out, unless all of them are.
        """
        outputs = self._regions[number][1]
        outputs = [name for name in outputs if name not in settled] or outputs
        chosen, boundary = self._chosen(number, depth)
        known = self._known_types()
        for name in boundary:
            if name not in known:
                return f"region of {outputs[0]}: the type of value '{name}' is not known"
        size = self._bytes(chosen, boundary, outputs)
        if size > most_bytes:
            return f"region of {outputs[0]}: its weights, {size} bytes, do not fit in the memory limit"
        a, b = (LoadedModel(self._model(side, chosen[side], boundary, outputs), self.models[side].folder) for side in (0, 1))
        return Region(outputs[0], a, b, self._sides[0].inputs_of_model.issuperset(value.name for value in a.proto.graph.input))

    def _chosen(self, number: int, depth: int) -> tuple[tuple[set[int], set[int]], list[str]]:
        """Returns the nodes of a region with those before it, and the values that they read."""
        nodes = self._regions[number][0]
        chosen = (set(nodes[0]), set(nodes[1]))
        self._extend(chosen, depth)
        boundary = self._boundary(chosen)
        # The outputs of one node may come from several nodes in the other model. If one side
        # computes a value, the other has to compute it too.
        while split := self._computed_on_one_side(chosen, boundary):
            for side, place in split:
                chosen[side].add(place)
            self._extend(chosen, depth)
            boundary = self._boundary(chosen)
        return chosen, boundary

    def _computed_on_one_side(self, chosen: tuple[set[int], set[int]], boundary: Iterable[str]) -> list[_Node]:
        """Returns the nodes outside the region whose boundary values the other side computes."""
        nodes: list[_Node] = []
        for name in boundary:
            places = [names.producer.get(name) for names in self._sides]
            if any(place in chosen[side] for side, place in enumerate(places)):
                nodes.extend((side, place) for side, place in enumerate(places) if place is not None and place not in chosen[side])
        return nodes

    def _bytes(self, chosen: tuple[set[int], set[int]], boundary: Sequence[str], outputs: Sequence[str]) -> int:
        """Returns the bytes that the weights of a region take where it runs, without making it."""
        inside, weights = 0, list[onnx.TensorProto]()
        for names, places in zip(self._sides, chosen, strict=True):
            used = {name for place in places for name in names.inputs[place]}.union(outputs).difference(boundary)
            inside += sum(names.bytes[place] for place in places)
            weights += [names.weights[name] for name in used if name in names.weights]
        return COPIES * inside + held_bytes(weights)

    def _same_nodes(self) -> tuple[set[int], set[int]]:
        """Returns the places of the nodes that both models have.

        Such nodes agree in operator, attributes, names and the content of their weights.
        """
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
        """Yields groups of differing nodes.

        Two nodes belong together if they share a value that is no cut point, or if both compute the
        same name.
        """
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
        """Returns a group's common values that the optimized model needs outside the group."""
        inside = set(nodes[1])
        b = self._sides[1]
        computed = dict.fromkeys(name for side in (0, 1) for place in nodes[side] for name in self._sides[side].outputs[place] if name in self._common)
        return [name for name in computed if name in b.results or any(place not in inside for place in b.consumers.get(name, ()))]

    def _extend(self, chosen: tuple[set[int], set[int]], depth: int) -> None:
        """Adds `depth` levels of the nodes before a region, and nodes of values hard to draw.

        Those compute constants, integers (shapes, indices), values of unknown type, and, unless
        `depth` is 0, values of unknown size.
        """
        level = {name for side in (0, 1) for place in chosen[side] for name in self._sides[side].inputs[place]}
        distance = 0
        while level:
            following: set[str] = set()
            for name in sorted(level):
                if name not in self._common or distance < depth or not self._may_be_given(name, depth):
                    for side, names in enumerate(self._sides):
                        place = names.producer.get(name)
                        if place is not None and place not in chosen[side]:
                            chosen[side].add(place)
                            following.update(names.inputs[place])
            level = following
            distance += 1

    def _may_be_given(self, name: str, depth: int) -> bool:
        """Tells whether a region takes a value as an input. It computes constants, which a random
        draw would change, also in their size if that is not known, unless drawing them takes less.
        """
        if any(name in side.constants for side in self._sides):
            return False
        if depth == GIVEN:
            return True
        kind = self._known_types().get(name)
        made = any(name in side.uniform or (name in side.fixed and not _is_large(kind)) for side in self._sides)
        return not made and _can_be_drawn(kind, depth)

    def _boundary(self, chosen: tuple[set[int], set[int]]) -> list[str]:
        """Returns the values that a region uses, but does not compute, in either model."""
        needed: dict[str, None] = {}
        for side in (0, 1):
            names = self._sides[side]
            inside = {name for place in chosen[side] for name in names.outputs[place]}
            for place in sorted(chosen[side]):
                needed.update(dict.fromkeys(name for name in names.inputs[place] if name not in inside and name not in names.stored))
        return list(needed)

    def _model(self, side: int, chosen: set[int], boundary: Iterable[str], outputs: Iterable[str]) -> onnx.ModelProto:
        names, proto = self._sides[side], self.models[side].proto
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
        for name in stored:  # every result has to come from a node
            tensor = graph.initializer.add()
            tensor.CopyFrom(names.weights[name])
            tensor.name = f"{name} (stored)"
            graph.node.append(identity(tensor.name, name))
        graph.node.extend(names.nodes[place] for place in order)
        return model

    def _known_types(self) -> Mapping[str, onnx.TypeProto]:
        if self._types is None:
            self._types = {}
            proto = self.models[0].proto
            for value in _typed_values(proto):
                self._types.setdefault(value.name, value.type)
            for tensor in proto.graph.initializer:
                self._types[tensor.name] = onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
            self._learn_sizes()
        return self._types

    def _learn_sizes(self) -> None:
        """Adds the sizes of common values that only the optimized model tells. A region may rely on
        them, since the proof goes along the optimized model.
        """
        assert self._types is not None
        computed = (name for name in self._sides[0].producer if name in self._common)
        if any(not _is_sized(self._types.get(name)) for name in computed):
            for value in _typed_values(self.models[1].proto):
                if _is_sized(value.type) and not _is_sized(self._types.get(value.name)):
                    self._types[value.name] = value.type


def _typed_values(proto: onnx.ModelProto) -> Iterator[onnx.ValueInfoProto]:
    """Yields the values of a main graph whose types are known, the inferred types first."""
    try:
        graphs = [inferred(without_weights(proto)).graph, proto.graph]
    except NativeFailure:  # if inference refuses the model, the declared types must do
        graphs = [proto.graph]
    for graph in graphs:
        yield from (value for value in (*graph.input, *graph.value_info, *graph.output) if value.type.WhichOneof("value"))


def _is_sized(kind: onnx.TypeProto | None) -> bool:
    """Tells whether a type is that of a tensor whose sizes are all numbers."""
    if kind is None or not kind.tensor_type.HasField("shape"):
        return False
    return all(size.HasField("dim_value") for size in kind.tensor_type.shape.dim)


def _is_large(kind: onnx.TypeProto | None) -> bool:
    """Tells whether a type is that of a tensor of many elements."""
    return kind is not None and _is_sized(kind) and math.prod(size.dim_value for size in kind.tensor_type.shape.dim) > _FEW


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
