"""Stitching: the solutions of regions become one graph again.

The input is the regions and barriers of a graph in order, and for each kind of regions the nodes
chosen for its first region. Those nodes are written once for each region of the kind, over its own
values and constants. The output is one graph. Each value of the original is written once, under its
own name, however many regions need it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from eqsat.choose.decode import Decoded, Undecodable
from eqsat.choose.storing import Place, begin, finish, store_array, store_constant
from eqsat.frozen import mutable
from eqsat.model.model import Graph, attribute_graphs
from eqsat.model.names import FreshNames, captures, rename_captures
from eqsat.model.tensors import from_array
from eqsat.regions.cut import Definitions

Array = np.ndarray[Any, Any]

_SMALL = 512  # bytes of a constant that the rewritten graph may have as well


@mutable
class Solution:
    """The chosen nodes of a region, under names of the excerpt."""

    nodes: list[onnx.NodeProto]
    outputs: list[str]  # outputs of the region, in its order
    constants: dict[str, str]  # by name, the constant of the region that it stands for
    literals: list[onnx.TensorProto]  # constants that are the same for all regions of a kind
    originals: dict[str, int]  # references of the values that the original also has
    titles: dict[str, onnx.NodeProto]  # by name of a node, the original's node whose name it takes
    # By value of the original, the name that holds it now
    became: dict[str, str] = field(default_factory=dict[str, str])
    folded: dict[str, Array] = field(default_factory=dict[str, Array])  # constants computed from those of the region


@mutable
class _Scope:
    """The names of one region's values, by their names in the excerpt."""

    names: dict[str, str]  # names of the values that the original also has
    # Names of the values that are held under another name
    held: dict[str, str] = field(default_factory=dict[str, str])


class Stitcher:
    """Writes one graph, region by region."""

    def __init__(self, definitions: Definitions, fresh: FreshNames, place: Place) -> None:
        self._definitions = definitions
        self._encoding = definitions.encoding
        self._source = definitions.encoding.graph
        self._fresh = fresh
        self._place = place
        self._graph = begin(self._source)
        self._constants: list[onnx.NodeProto] = []
        self._nodes: list[onnx.NodeProto] = []
        # The name that holds a value of the original if its own name is not written.
        self._alias: dict[str, str] = {}
        self._written = set(self._source.inputs) | set(self._source.sparse)
        # The outputs of the nodes so far, by node
        self._known: dict[tuple[object, ...], tuple[str, ...]] = {}
        self._titles: set[str] = set()  # the names of the nodes so far
        self._literals = _small_constants(self._source)  # the names of small constants
        self._became: dict[str, str] = {}
        self._outputs = set(self._source.outputs)
        self._copies: list[onnx.NodeProto] = []  # the nodes that copy a value to an output

    def keep(self, references: Iterable[int]) -> None:
        """Writes nodes as in the original."""
        for reference in references:
            node = self._encoding.nodes.get(reference)
            if node is None:
                continue
            names = [self._own(name) for name in node.outputs]
            if all(not name or name in self._written for name in names):
                continue
            proto = onnx.NodeProto()
            proto.CopyFrom(node.proto)
            proto.input[:] = [self._holder(self._own(name)) for name in node.inputs]
            proto.output[:] = [name if name not in self._written else self._fresh.make(name) for name in names]
            for _, body in attribute_graphs(proto):
                rename_captures(body, {name: self._holder(self._own(name)) for name in node.captures})
            proto.name = self._title(node.proto.name)
            self._written.update(names)
            self._nodes.append(proto)

    def write(self, solution: Solution) -> None:
        """Writes the chosen nodes of a region."""
        scope = _Scope({name: self._definitions.name_of[reference] for name, reference in solution.originals.items()})
        self._store(solution, scope)
        for node in solution.nodes:
            if not all(not name or (name in scope.names and scope.names[name] in self._written) for name in node.output):
                self._place_node(node, solution, scope)
        for name, now in solution.became.items():
            if name in scope.names and (now in scope.names or now in scope.held):
                self._became.setdefault(scope.names[name], self._holder_in(scope, now))

    def _store(self, solution: Solution, scope: _Scope) -> None:
        """Stores the constants of a region that the original lacks."""
        for tensor in solution.literals:
            own = scope.names.get(tensor.name, tensor.name)
            if own in self._source.constants:
                continue  # the original stores this constant
            now = self._literal(tensor, own if own not in self._written else self._fresh.make(own))
            if now != own:
                self._hold(scope, tensor.name, now)
        for name, constant in solution.constants.items():
            if name != constant:
                self._hold(scope, name, scope.names[constant])
        for name, array in solution.folded.items():
            own = self._result(scope, name)
            if own not in self._written:
                self._written.add(own)
                store_array(self._graph, self._constants, self._place, own, array)

    def _place_node(self, node: onnx.NodeProto, solution: Solution, scope: _Scope) -> None:
        """Writes a node of a region, unless the graph already has an equal one."""
        if is_copy(node, solution):
            self._hold(scope, node.output[0], self._holder_in(scope, node.input[0]))
            return
        inputs = [self._holder_in(scope, name) for name in node.input]
        key = (node.domain, node.op_type, *inputs, len(node.output), *sorted(item.SerializeToString(deterministic=True) for item in node.attribute))
        if key in self._known:
            for name, now in zip(node.output, self._known[key], strict=True):
                if name:
                    self._hold(scope, name, now)
            return
        written = self._node(node, inputs, [name and self._result(scope, name) for name in node.output])
        if all(written.output):
            self._known[key] = tuple(written.output)
        lender = solution.titles.get(node.name)
        written.name = self._title(node.name if lender is None else lender.name)
        if lender is not None:
            written.doc_string = lender.doc_string
            del written.metadata_props[:]
            written.metadata_props.extend(lender.metadata_props)

    def _holder_in(self, scope: _Scope, name: str) -> str:
        """Returns the name that holds a value of a region's excerpt."""
        if name in scope.held:
            return scope.held[name]
        return self._holder(scope.names[name]) if name in scope.names else name

    def _result(self, scope: _Scope, name: str) -> str:
        """Returns the name under which a value of a region is written."""
        if name in scope.names and scope.names[name] not in self._alias:
            return scope.names[name]
        scope.held[name] = name if name not in self._written else self._fresh.make(name)
        return scope.held[name]

    def _hold(self, scope: _Scope, name: str, now: str) -> None:
        """Records that another name holds a value, so the value is not written itself."""
        scope.held[name] = now
        own = scope.names.get(name)
        if own is not None and own not in self._written:
            if own in self._outputs:
                self._copy(own, now)
            else:
                self._alias[own] = now

    def _node(self, node: onnx.NodeProto, inputs: Sequence[str], results: Sequence[str]) -> onnx.NodeProto:
        proto = onnx.NodeProto()
        proto.CopyFrom(node)
        proto.input[:] = inputs
        proto.output[:] = [name if name not in self._written else self._fresh.make(name) for name in results]
        self._written.update(name for name in results if name)
        self._nodes.append(proto)
        return proto

    def _literal(self, tensor: onnx.TensorProto, name: str) -> str:
        """Stores a constant under a name, unless the graph has an equal one. Returns the name that
        holds it.
        """
        copy = onnx.TensorProto()
        copy.CopyFrom(tensor)
        key = _content(copy)
        if key in self._literals:
            return self._literals[key]
        self._literals[key] = copy.name = name
        self._written.add(name)
        if self._place.constant_nodes:
            self._constants.append(helper.make_node("Constant", [], [name], value=copy))
        else:
            self._graph.initializer.append(copy)
        return name

    def graph(self) -> Decoded:
        """Returns the whole graph. Raises `Undecodable` if two outputs are one value that cannot be
        copied.
        """
        encoding, first, name_of = self._encoding, self._definitions.first, self._definitions.name_of
        for name in self._source.outputs:
            if name not in self._written and name not in self._source.constants:
                self._copy(name, self._holder(self._own(name)))
        renamed = self._drop_copies()
        used: dict[str, None] = {}
        for node in self._nodes:
            used.update(dict.fromkeys(node.input))
            for _, body in attribute_graphs(node):
                used.update(dict.fromkeys(captures(body)))
        used.update(dict.fromkeys(self._source.outputs))
        for name, constant in self._source.constants.items():
            if name in used and name not in self._source.inputs:
                store_constant(self._graph, self._constants, self._place, self._source, name, constant)
        self._graph.sparse_initializer.extend(tensor for name, tensor in self._source.sparse.items() if name in used and name not in self._source.overridable)
        self._graph.node.extend([*self._constants, *self._nodes])
        finish(self._graph, self._source, frozenset(self._source.inputs))
        became = {name: self._became.get(name_of[first(reference)], name_of[first(reference)]) for name, reference in encoding.values.items()}
        there = {*self._written, *used}
        return Decoded(self._graph, {name: renamed.get(now, now) for name, now in became.items() if now in there})

    def _own(self, name: str) -> str:
        """Returns the name that holds a value of the original."""
        return name and self._definitions.name_of[self._definitions.first(self._encoding.values[name])]

    def _title(self, name: str) -> str:
        """Returns the name of a node, or no name if another node has it. Several regions may write
        one node of the original.
        """
        if name in self._titles:
            return ""
        self._titles.add(name)
        return name

    def _holder(self, name: str) -> str:
        while name in self._alias:
            name = self._alias[name]
        return name

    def _copy(self, name: str, given: str) -> None:
        fact = self._encoding.fact(name)
        if not fact.dtype:
            raise Undecodable(f"'{name}' and '{given}' are one value of unknown type")
        self._copies.append(helper.make_node("Identity", [given], [name]))
        self._nodes.append(self._copies[-1])
        self._written.add(name)

    def _drop_copies(self) -> dict[str, str]:
        """Lets the node that computes a copied value write the output itself, unless another output
        has the value. Returns the names that values have now.
        """
        made = {name for node in self._nodes for name in node.output}
        renamed: dict[str, str] = {}
        gone: set[int] = set()
        for copy in self._copies:
            (given,), (name,) = copy.input, copy.output
            if given in made and given not in self._outputs and given not in renamed:
                renamed[given] = name
                gone.add(id(copy))
        self._nodes = [node for node in self._nodes if id(node) not in gone]
        for node in self._nodes if renamed else ():
            node.input[:] = [renamed.get(name, name) for name in node.input]
            node.output[:] = [renamed.get(name, name) for name in node.output]
            for _, body in attribute_graphs(node):
                rename_captures(body, renamed)
        return renamed


def is_copy(node: onnx.NodeProto, solution: Solution) -> bool:
    """Tells whether a node only gives an output of a region its value, so that it is not written."""
    return node.op_type == "Identity" and not node.domain and node.output[0] in solution.outputs


def _small_constants(source: Graph) -> dict[bytes, str]:
    """Returns the names of the small constants that a graph stores, by content."""
    found: dict[bytes, str] = {}
    for name, constant in source.constants.items():
        tensor = constant.tensor
        if name not in source.inputs and tensor.external is None and tensor.nbytes <= _SMALL and tensor.dtype != onnx.TensorProto.STRING:
            found.setdefault(_content(from_array(tensor.array(), "").proto), name)
    return found


def _content(tensor: onnx.TensorProto) -> bytes:
    tensor.name = ""
    return tensor.SerializeToString(deterministic=True)
