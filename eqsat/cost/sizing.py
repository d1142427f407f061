"""Sizing: the sizes of values that a runtime leaves open, from the facts of the values before them.

A runtime follows sizes through fewer operators than eqsat's facts do. A graph in which it lost them
would be priced at usual sizes, so a model with many unknown sizes would seem cheap beside an equal
one. `complete` adds the sizes that facts can tell. The sizes of inputs have to be numbers.
`named_types` tells them under the names that the inputs' sizes have.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import onnx

from eqsat.control.bodies import BODIES, first_output
from eqsat.control.unrolling import scan_axes
from eqsat.cost.blocked_sizes import blocked_shape
from eqsat.facts.dims import Dim
from eqsat.facts.fact import UNKNOWN, Contradiction, Fact, from_tensor, from_type, merge, to_type
from eqsat.facts.inference import infer
from eqsat.facts.node import Node
from eqsat.model.model import attribute_graphs
from eqsat.operators import find_operator, normal_domain, read_attributes
from eqsat.traits import NEWEST

_BY_NAME = BODIES | {"SequenceAt", "SplitToSequence"}
"""Operators of which a node is followed by itself: tensors of sequences are known by name, and bodies
are too large for a key.
"""
_MOST_TRIPS = 1 << 16  # a Loop that is given more is one that its condition ends


def complete(graph: onnx.GraphProto, opset_import: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Adds to `value_info` what facts tell of the values that nodes of a graph compute, and of the
    inputs and values of its bodies. The values that a loop carries count with their sizes in the
    first trip.

    Returns the number of trips that each Loop is given, where it is known, by the name of its first
    output. A condition may end it before.
    """
    trips: dict[str, int] = {}
    _complete(graph, {}, {}, {normal_domain(item.domain): item.version for item in opset_import}, trips)
    return trips


def named_types(graph: onnx.GraphProto, opset_import: Iterable[onnx.OperatorSetIdProto]) -> dict[str, onnx.TypeProto]:
    """Returns the types of the values that the nodes of a graph compute, where facts tell the rank. Sizes
    are numbers, texts that are equal for sizes that are, or unknown.
    """
    opsets = {normal_domain(item.domain): item.version for item in opset_import}
    sizing = _Sizing(graph, {info.name: info.type for info in graph.value_info}, opsets, {}, {}, named=True)
    for node in graph.node:
        sizing.follow(node)
    return {name: sizing.type_of(name) for name in sizing.made if sizing.facts[name].dtype and sizing.facts[name].shape is not None}


def _complete(graph: onnx.GraphProto, around: Mapping[str, Fact], given: Mapping[str, Fact], opsets: Mapping[str, int], trips: dict[str, int]) -> None:
    """Completes a graph that sees the values `around` it. `given` are facts of its inputs."""
    declared = {info.name: info.type for info in graph.value_info}
    bodies = [node for node in graph.node if any(attribute_graphs(node))]
    written = {info.name: info.type for info in graph.output} | declared
    if not bodies and not around and all(_is_sized(written.get(name)) for node in graph.node for name in node.output if name):
        return
    sizing = _Sizing(graph, declared, opsets, around, given)
    for node in graph.node:
        sizing.follow(node)
    rows = [(name, sizing.type_of(name)) for name in dict.fromkeys([*declared, *given, *sizing.made])]
    del graph.value_info[:]
    for name, kind in rows:
        graph.value_info.add(name=name, type=kind)
    for node in bodies:
        count = sizing.facts.get(node.input[0], UNKNOWN).ints if node.op_type == "Loop" and node.input else None
        if count and isinstance(count[0], int) and count[0] <= _MOST_TRIPS:
            trips[first_output(node)] = max(count[0], 0)
        for _, body in attribute_graphs(node):
            _complete(body, sizing.facts, _arguments(node, body, sizing.facts), opsets, trips)


def _arguments(node: onnx.NodeProto, body: onnx.GraphProto, facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """Returns the facts of the inputs of a body, in its first run."""
    inputs = [_open(facts.get(name, UNKNOWN))._replace(const=False, ints=None, uniform=None, floats=None) for name in node.input]
    if node.op_type == "Loop":
        inputs[:2] = [Fact(onnx.TensorProto.INT64, ()), Fact(onnx.TensorProto.BOOL, ())]
    axes = scan_axes(node) if node.op_type == "Scan" else []
    for place, axis in zip(range(len(inputs) - len(axes), len(inputs)), axes, strict=True):
        shape = inputs[place].shape
        known = shape is not None and -len(shape) <= axis < len(shape)
        inputs[place] = inputs[place]._replace(shape=(*shape[: axis % len(shape)], *shape[axis % len(shape) + 1 :]) if shape is not None and known else None)
    return {info.name: fact for info, fact in zip(body.input, inputs, strict=False)}


def _is_sized(kind: onnx.TypeProto | None) -> bool:
    """Tells whether a type is that of a tensor whose sizes are all numbers."""
    if kind is None or not kind.tensor_type.HasField("shape"):
        return False
    return all(size.HasField("dim_value") for size in kind.tensor_type.shape.dim)


class _Sizing:
    """The facts of the values of one graph, node by node."""

    def __init__(
        self,
        graph: onnx.GraphProto,
        declared: Mapping[str, onnx.TypeProto],
        opsets: Mapping[str, int],
        around: Mapping[str, Fact],
        given: Mapping[str, Fact],
        named: bool = False,
    ) -> None:
        self._named = named
        self.made: list[str] = []
        self.facts: dict[str, Fact] = {**around, **{info.name: self._told(from_type(info.type, info.name)) for info in graph.input}}
        self.facts.update((name, fact) for name, fact in given.items() if fact != UNKNOWN)
        self.facts.update((tensor.name, from_tensor(tensor)) for tensor in graph.initializer)
        self._declared = declared
        self._opsets = opsets
        self._items: dict[str, tuple[Fact, ...]] = {}  # the tensors of a sequence
        # Layers repeat their nodes and types, and messages are slow to read and to write. The number
        # of a fact stands for it in the keys of nodes, since a fact is slow to hash.
        self._numbers: dict[Fact, int] = {}
        self._number: dict[str, int] = {}  # of the fact of each value that was used or made
        self._followed: dict[Hashable, list[Fact]] = {}
        self._written: dict[int, onnx.TypeProto | None] = {}

    def follow(self, node: onnx.NodeProto) -> None:
        """Finds the facts of a node's outputs."""
        if node.op_type in _BY_NAME:
            found = self._found(node)
        else:
            attributes = tuple([item.SerializeToString() for item in node.attribute])
            inputs = tuple([self._number_of(name) if name else -1 for name in node.input])
            key = (node.domain, node.op_type, attributes, inputs, tuple([self._declares(name) for name in node.output]))
            found = self._followed.get(key)
            if found is None:
                found = self._followed[key] = self._found(node)
        for name, fact in zip(node.output, found, strict=True):
            if name:
                self.made.append(name)
                self.facts[name] = fact
                self._number.pop(name, None)

    def _number_of(self, name: str) -> int:
        number = self._number.get(name)
        if number is None:
            number = self._number[name] = self._numbers.setdefault(self.facts.get(name, UNKNOWN), len(self._numbers))
        return number

    def _declares(self, name: str) -> bytes | None:
        kind = self._declared.get(name) if name else None
        return None if kind is None else kind.SerializeToString()

    def _found(self, node: onnx.NodeProto) -> list[Fact]:
        """Returns the facts of a node's outputs. Except for sequences, they follow from those of its
        inputs and the declared types, whatever the names are.
        """
        domain = normal_domain(node.domain)
        operator = find_operator(domain, node.op_type, self._opsets.get(domain, 1))
        if domain == "" and operator.schema is None:
            operator = find_operator(domain, node.op_type, NEWEST)  # a runtime uses them in any opset
        inputs = tuple(self.facts.get(name, UNKNOWN) if name else None for name in node.input)
        attributes = read_attributes(operator, node.attribute)
        found = infer(operator, attributes, inputs, len(node.output))
        if operator.schema is None and (shape := blocked_shape(Node(operator, attributes, inputs, len(node.output)))) is not None:
            found = (Fact((inputs[0] or UNKNOWN).dtype, shape), *found[1:])
        if operator.standard and node.op_type == "SequenceAt":
            found = (self._item(node),)
        if operator.standard and node.op_type == "SplitToSequence":
            self._items[node.output[0]] = _parts(node, inputs)
        return [self._with_declared(name, fact) for name, fact in zip(node.output, found, strict=True)]

    def _told(self, fact: Fact) -> Fact:
        """Returns a fact with the sizes that count: numbers, or names as well."""
        return fact if self._named else _open(fact)

    def _with_declared(self, name: str, fact: Fact) -> Fact:
        fact = self._told(fact)
        if name not in self._declared:
            return fact
        known = _open(from_type(self._declared[name], name))
        try:
            return merge(fact, known)
        except Contradiction:
            return known

    def type_of(self, name: str) -> onnx.TypeProto:
        """Returns the type of a value: that of its fact, or else as it is declared."""
        number = self._number_of(name)
        if number not in self._written:
            self._written[number] = to_type(self.facts.get(name, UNKNOWN))
        return self._written[number] or self._declared.get(name, onnx.TypeProto())

    def _item(self, node: onnx.NodeProto) -> Fact:
        """Returns the fact of the tensor that SequenceAt takes."""
        items = self._items.get(node.input[0], ())
        index = self.facts.get(node.input[1], UNKNOWN).ints
        place = index[0] if index else None
        if isinstance(place, int) and -len(items) <= place < len(items):
            return items[place]
        return items[0] if len(set(items)) == 1 else UNKNOWN


def _parts(node: onnx.NodeProto, inputs: tuple[Fact | None, ...]) -> tuple[Fact, ...]:
    """Returns the tensors into which SplitToSequence splits one of known size."""
    source = inputs[0] or UNKNOWN
    attributes = {item.name: item.i for item in node.attribute}
    axis, shape = attributes.get("axis", 0), source.shape
    if shape is None or not -len(shape) <= axis < len(shape):
        return ()
    axis %= len(shape)
    size, split = shape[axis], inputs[1] if len(inputs) > 1 else None
    if not isinstance(size, int) or (split is not None and split.ints is None):
        return ()
    sizes = split_sizes(size, split)
    dropped = split is None and not attributes.get("keepdims", 1)
    return tuple(Fact(source.dtype, (*shape[:axis], *(() if dropped else (part,)), *shape[axis + 1 :])) for part in sizes)


def split_sizes(size: int, split: Fact | None) -> list[Dim]:
    """Returns the sizes of the parts of an axis; `split` holds them, or the size of each."""
    if split is None:
        return [1] * size
    given = split.ints or ()
    if split.shape:
        return list(given)
    step = next(iter(given), None)
    return [min(step, size - start) for start in range(0, size, step)] if isinstance(step, int) and step > 0 else []


def _open(fact: Fact) -> Fact:
    """Returns a fact whose unnamed sizes are unknown."""
    return fact if fact.shape is None else fact._replace(shape=tuple(size if isinstance(size, int) else None for size in fact.shape))
