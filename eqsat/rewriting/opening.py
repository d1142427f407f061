"""Opening: bodies and calls become plain nodes before a turn, so that rules see them.

What is known of control flow is simplified in any case. An If whose branches may both run becomes a
Where, and a Loop or Scan with a known number of trips becomes the nodes of its trips, where the
target prices the new form lower. Both forms are priced alone, with the types of the values around
them. Functions are inlined where this makes the file no larger, or all of them where the caller asks
for it. The result computes the same as the model. It is the model itself if nothing pays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import onnx
from onnx import numpy_helper

from eqsat.choose.available import alone, refused
from eqsat.control.bodies import BODIES, Destination, everywhere, first_output, fits, replace_nodes, tidied
from eqsat.control.calls import inlined
from eqsat.control.containers import READS
from eqsat.control.flow import simplify
from eqsat.control.selection import Branch, selected
from eqsat.control.splitting import divided
from eqsat.control.surroundings import Scope
from eqsat.control.trips import loop_trips, stored
from eqsat.control.unrolling import repeatable, scan_axes, unrolled
from eqsat.cost.sizing import split_sizes
from eqsat.deadline import Deadline
from eqsat.egraph.encode import Encoding
from eqsat.egraph.outer import Outer
from eqsat.errors import InputError
from eqsat.facts.dims import Dim
from eqsat.facts.fact import INTEGERS, Contradiction, Fact, to_type
from eqsat.frozen import frozen
from eqsat.model.imports import standard_opset
from eqsat.model.model import Graph, Model, Node, attribute_graphs, copy_fields
from eqsat.model.names import FreshNames, NameClash, all_names
from eqsat.model.read import normalize
from eqsat.operators import find_operator
from eqsat.rewriting.body_facts import GraphFacts, has_halves
from eqsat.rewriting.valuation import Valuation

_OPENS = BODIES | {"SplitToSequence"}
_SCANS = 9  # the first opset in which Scan has no axis for batches
_MOST_TRIPS = 32  # trips of a loop that is unrolled
_MOST_COPIES = 512  # nodes that unrolling one loop may make
_PASSES = 8  # passes over the model; each opens the innermost bodies that are left


def may_open(proto: onnx.ModelProto) -> bool:
    """Tells whether a model has anything that could be opened."""
    return bool(proto.functions) or any(node.op_type in _OPENS | READS for node in everywhere(proto.graph.node))


def opened(
    model: Model, valuation: Valuation, deadline: Deadline, kept: frozenset[str], room: float, flat: bool = False, exact: bool = False
) -> onnx.ModelProto:
    """Returns the model with its control flow simplified, and with bodies opened where that pays.

    The file may grow by `room` bytes for it. After the deadline, no more bodies are opened. All
    calls are inlined if `flat`, and results keep every bit if `exact`. Nodes that compute a value in
    `kept` stay as they are, and with them all functions.
    """
    if exact and may_open(model.proto) and _rounds_seldom(model):
        return model.proto
    flattened = model.proto if kept else inlined(model.proto, everything=flat)
    try:
        return _opened(model, simplify(flattened, kept), _Aim(valuation.of_parts(), deadline, kept, exact), room)
    except InputError:
        # A function may hold nodes that are illegal outside of it.
        return simplify(model.proto, kept)


def _rounds_seldom(model: Model) -> bool:
    """Tells whether bits depend on which nodes are neighbors, so that none may move out of a body."""
    facts = GraphFacts()

    def is_half(graph: Graph, outer: Outer) -> bool:
        encoding, around = facts.of(graph, outer)
        inside = ((body, around.get(id(node.proto), Outer())) for node in graph.nodes for body in node.bodies.values())
        return has_halves(encoding) or any(is_half(body, seen.only(body.captured())) for body, seen in inside)

    try:
        return is_half(model.graph, Outer(main=True))
    except Contradiction:
        return True


@frozen
class _Aim:
    """The prices by which bodies are opened, and the bounds of it."""

    valuation: Valuation  # of parts
    deadline: Deadline
    kept: frozenset[str]
    exact: bool


def _opened(model: Model, found: onnx.ModelProto, aim: _Aim, room: float) -> onnx.ModelProto:
    """Returns the model with bodies opened, `found` being its simplified form. Raises `InputError`."""
    for _ in range(_PASSES):
        known = model if found is model.proto else normalize(found, model.folder, None)
        if not any(node.op_type in _OPENS for node in everywhere(found.graph.node)):
            break
        opening = _Pass(known, aim, room)
        if not opening.run():
            break
        room, found = opening.room, simplify(opening.proto, aim.kept)
    return found


@frozen
class _Here:
    """A graph on the way: the values that its nodes see, and their facts."""

    scope: Scope
    encoding: Encoding
    around: Mapping[int, Outer]  # what the bodies of a node see
    used: frozenset[str]  # values that something reads

    def known(self, name: str) -> Fact:
        """Returns what is known of a value that a body may capture."""
        return self.encoding.fact(name) if name in self.encoding.values else stored(self.scope, name)


class _Pass:
    """One pass over the bodies of a model's main graph, innermost first."""

    def __init__(self, model: Model, aim: _Aim, room: float) -> None:
        self.proto = onnx.ModelProto()
        self.room = room
        self._model = model
        self._aim = aim
        self._facts = GraphFacts()
        self._functions = frozenset(model.functions)
        graphs = [model.proto.graph, *(function.body.proto for function in model.functions.values())]
        self._fresh = FreshNames(name for graph in graphs for name in all_names(graph))

    def run(self) -> bool:
        """Opens what pays. Tells whether `proto` is another model now."""
        self.proto.CopyFrom(self._model.proto)
        opset = standard_opset(self.proto.opset_import)
        return self._graph(self.proto.graph, self._model.graph, Scope(opset, self.proto.ir_version >= 4), Outer(main=True))

    def _graph(self, graph: onnx.GraphProto, known: Graph, scope: Scope, outer: Outer) -> bool:
        """Opens what pays in a graph, in place, or in its bodies. Tells whether anything did."""
        if not any(node.bodies or node.operator.name in _OPENS for node in known.nodes):
            return False
        try:
            used = frozenset((*known.outputs, *(name for node in known.nodes for name in (*node.inputs, *node.captures))))
            here = _Here(scope.inside(graph), *self._facts.of(known, outer), used - {""})
        except Contradiction:
            return False
        nodes: list[onnx.NodeProto] = []
        sources = {name: node for node in known.nodes for name in node.outputs if name}
        changed = False
        for node in graph.node:
            source = sources.get(first_output(node))
            made = None if source is None or not self._aim.kept.isdisjoint(node.output) else self._node(node, source, graph, here)
            changed |= made is not None
            nodes += [node] if made is None else made
        if changed:
            replace_nodes(graph.node, nodes)
        return changed

    def _node(self, node: onnx.NodeProto, source: Node, graph: onnx.GraphProto, here: _Here) -> list[onnx.NodeProto] | None:
        """Returns nodes in place of one with bodies: cheaper ones, or the node itself if something in
        its bodies was opened. A SplitToSequence becomes a Split if that makes the sequence vanish.
        """
        if source.operator.standard and node.op_type == "SplitToSequence":
            sizes = self._part_sizes(node, here)
            return None if sizes is None else divided(node, sizes, graph, here.scope, self._fresh)
        seen = here.around.get(id(source.proto), Outer())
        inside = [self._graph(body, source.bodies[name], here.scope, seen.only(source.bodies[name].captured())) for name, body in attribute_graphs(node)]
        if any(inside):
            return [node]
        if not source.operator.standard or node.op_type not in BODIES or not fits(node) or self._aim.deadline.hit is not None:
            return None
        into = Destination(onnx.GraphProto(), here.scope, self._fresh)
        try:
            made = self._other_form(node, source, here, seen, into)
            made = None if made is None else tidied(made, here.used.intersection(node.output))
        except (NameClash, Contradiction):
            return None
        if made is None or not self._pays(node, made, source, into, here):
            return None
        graph.initializer.extend(into.graph.initializer)
        graph.value_info.extend(into.graph.value_info)
        return made

    def _other_form(self, node: onnx.NodeProto, source: Node, here: _Here, seen: Outer, into: Destination) -> list[onnx.NodeProto] | None:
        """Returns plain nodes that compute what a node with bodies does, if there are any."""
        if node.op_type == "If":
            if self._aim.exact and not all(here.encoding.fact(name).dtype in INTEGERS for name in node.output if name):
                return None  # ONNX Runtime's Where makes 0.0 of -0.0
            if not all(self._picks(here, name) for name in node.output if name):
                return None
            branches = {name: self._branch(body, seen) for name, body in source.bodies.items()}
            return selected(node, here.encoding.fact(node.input[0]), branches, into)
        body = source.bodies["body"]
        trips = loop_trips(node, here.scope, here.known) if node.op_type == "Loop" else self._scan_trips(node, here)
        copies = 0 if trips is None else trips * len(body.nodes)
        if trips is None or not 0 < trips <= _MOST_TRIPS or copies > _MOST_COPIES or not repeatable(body.proto, here.scope.opset, self._functions):
            return None
        return unrolled(node, trips, into, lambda nodes, names: self._sizes(nodes, names, source, into, here))

    def _picks(self, here: _Here, name: str) -> bool:
        """Tells whether the runtime has a Where for the type of a value. It has none for truth values."""
        known = here.encoding.fact(name)
        where = alone(find_operator("", "Where", here.scope.opset), {}, (Fact(onnx.TensorProto.BOOL), known, known), 1)
        return where is None or not refused((where,), self._aim.valuation.worker)

    def _branch(self, body: Graph, seen: Outer) -> Branch:
        encoding, _ = self._facts.of(body, seen.only(body.captured()))
        return Branch(body, {name: encoding.fact(name) for name in encoding.values})

    def _scan_trips(self, node: onnx.NodeProto, here: _Here) -> int | None:
        """Returns how often the body of a Scan runs, if that is known."""
        axes = scan_axes(node)
        sizes: set[Dim] = set()
        for name, axis in zip(node.input[len(node.input) - len(axes) :], axes, strict=True):
            shape = here.encoding.fact(name).shape
            sizes.add(None if shape is None or not -len(shape) <= axis < len(shape) else shape[axis])
        size = sizes.pop() if len(sizes) == 1 else None
        return size if isinstance(size, int) and here.scope.opset >= _SCANS else None

    def _part_sizes(self, node: onnx.NodeProto, here: _Here) -> list[int] | None:
        """Returns the sizes of the parts of a SplitToSequence, if they are known."""
        attributes = {item.name: item.i for item in node.attribute}
        axis, shape = attributes.get("axis", 0), here.encoding.fact(node.input[0]).shape
        split = here.encoding.fact(node.input[1]) if len(node.input) > 1 and node.input[1] else None
        if shape is None or not -len(shape) <= axis < len(shape) or (split is not None and not attributes.get("keepdims", 1)):
            return None
        size = shape[axis]
        parts = split_sizes(size, split) if isinstance(size, int) and size <= _MOST_TRIPS else []
        sizes = [part for part in parts if isinstance(part, int)]
        return sizes if sizes and len(sizes) == len(parts) else None

    def _sizes(self, nodes: Sequence[onnx.NodeProto], names: Sequence[str], source: Node, into: Destination, here: _Here) -> tuple[int, ...] | None:
        """Returns the sizes that all of these values have, if they are the same numbers."""
        part = self._part(nodes, names, source, into, here)
        if part is None:
            return None
        try:
            encoding, _ = self._facts.of(normalize(part, self._model.folder, None).graph, Outer(main=True))
        except (InputError, Contradiction):
            return None
        shapes = {encoding.fact(name).shape for name in names}
        shape = shapes.pop()
        numbers = tuple(size for size in shape or () if isinstance(size, int))
        return numbers if not shapes and shape is not None and len(numbers) == len(shape) else None

    def _pays(self, node: onnx.NodeProto, made: Sequence[onnx.NodeProto], source: Node, into: Destination, here: _Here) -> bool:
        """Tells whether plain nodes are better than a node with bodies, and fit into the file."""
        results = [name for name in node.output if name in here.used]
        growth = sum(item.ByteSize() for item in (*made, *into.graph.initializer)) - node.ByteSize()
        before = self._part([node], results, source, into, here)
        after = self._part(made, results, source, into, here)
        if growth > self.room or before is None or after is None:
            return False
        try:
            pays = self._aim.valuation.is_better(after, before, self._model.folder)
        except InputError:
            return False
        self.room -= growth if pays else 0
        return pays

    def _part(self, nodes: Iterable[onnx.NodeProto], results: Iterable[str], source: Node, into: Destination, here: _Here) -> onnx.ModelProto | None:
        """Returns a model of some nodes that take the place of one. It is None if the type of a
        value that they read is unknown.
        """
        part = onnx.ModelProto()
        copy_fields(self._model.proto, part, {"graph", "metadata_props", "doc_string", "training_info"})
        part.graph.name = "part"
        part.graph.node.extend(nodes)
        part.graph.initializer.extend(into.graph.initializer)
        part.graph.output.extend(onnx.ValueInfoProto(name=name) for name in results)
        for name in dict.fromkeys(filter(None, (*source.inputs, *source.captures))):
            value = here.scope.value(name)
            kind = to_type(here.encoding.fact(name))
            if value is not None:
                part.graph.initializer.append(numpy_helper.from_array(value, name))
            elif kind is not None:
                part.graph.input.add(name=name, type=kind)
            else:
                return None
        return part
