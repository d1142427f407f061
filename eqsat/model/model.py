"""The normal form of a model: graphs of nodes over named values, with constants by reference.

Reading gives a `Model`, and the optimizer starts from it. Nodes are in topological order, and each
name is defined once in its scope. A `Constant` node becomes a constant, like an initializer. The
protobuf messages of the original model stay unchanged for everything that optimization does not
touch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import TypeAlias

import onnx
from google.protobuf.message import Message

from eqsat.errors import InputError
from eqsat.frozen import mutable
from eqsat.model.sources import Source, load
from eqsat.model.tensors import Tensor
from eqsat.operators import Operator, normal_domain

FunctionKey: TypeAlias = tuple[str, str, str]  # domain, name, overload


@mutable
class Constant:
    """A constant of a graph. `node` is its Constant node, or None for an initializer."""

    tensor: Tensor
    node: onnx.NodeProto | None = None


@mutable
class Node:
    """One operator application. Absent inputs and outputs have empty names.

    `captures` are the outer values that the node's bodies use.
    """

    operator: Operator
    proto: onnx.NodeProto
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    bodies: dict[str, Graph] = field(default_factory=dict[str, "Graph"])
    captures: tuple[str, ...] = ()
    function: FunctionKey | None = None
    # The node contains a DequantizeLinear. Folding it would store quantized weights at full width.
    dequantizes: bool = False


@mutable
class Graph:
    """A graph: the main graph, a body, or a function body.

    `proto` holds the names and annotations as read. Its nodes and constants are not used again.
    """

    proto: onnx.GraphProto
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: dict[str, Constant]
    nodes: list[Node]
    overridable: frozenset[str] = frozenset()  # inputs whose constant is only a default
    sparse: dict[str, onnx.SparseTensorProto] = field(default_factory=dict[str, onnx.SparseTensorProto])

    def captured(self) -> tuple[str, ...]:
        """Return the outer values that this graph uses, in order of first use."""
        defined = {*self.inputs, *self.constants, *self.sparse}
        for node in self.nodes:
            defined.update(node.outputs)
        used: dict[str, None] = {}
        for node in self.nodes:
            used.update(dict.fromkeys(name for name in (*node.inputs, *node.captures) if name))
        used.update(dict.fromkeys(self.outputs))
        return tuple(name for name in used if name and name not in defined)


@mutable
class Function:
    """A model-local function. The inputs of its body have no declared types."""

    proto: onnx.FunctionProto
    body: Graph


@mutable
class Model:
    """A whole model: `proto` holds versions, metadata and opsets, `folder` the external data."""

    proto: onnx.ModelProto
    graph: Graph
    functions: dict[FunctionKey, Function]
    folder: Path | None


def function_key(domain: str, name: str, overload: str) -> FunctionKey:
    """Return the key that identifies a function: domain, name and overload."""
    return (normal_domain(domain), name, overload)


def attribute_graphs(node: onnx.NodeProto) -> Iterable[tuple[str, onnx.GraphProto]]:
    """Return the bodies of a node by attribute; a list of graphs gives `name.0`, `name.1`, ..."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            for index, graph in enumerate(attribute.graphs):
                yield f"{attribute.name}.{index}", graph


def all_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph and all bodies in it, each after the graph around it."""
    yield graph
    for body in bodies(graph.node):
        yield from all_graphs(body)


BODY_TYPES = frozenset({onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS})
"""The types of attributes that hold bodies."""


def bodies(nodes: Iterable[onnx.NodeProto]) -> list[onnx.GraphProto]:
    """Return the bodies of all nodes of a list, without the bodies inside them."""
    found: list[onnx.GraphProto] = []
    for node in nodes:
        for attribute in node.attribute:
            if attribute.type in BODY_TYPES:
                found += [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs
    return found


def callees_first(functions: Mapping[FunctionKey, onnx.FunctionProto]) -> list[FunctionKey]:
    """Sort functions so that each comes after those it calls.

    Raise an `InputError` if a function calls itself.
    """
    calls: dict[FunctionKey, list[FunctionKey]] = {}
    for key, function in functions.items():
        called: dict[FunctionKey, None] = {}
        waiting = list(function.node)
        while waiting:
            node = waiting.pop()
            callee = function_key(node.domain, node.op_type, node.overload)
            if callee in functions:
                called[callee] = None
            for _, body in attribute_graphs(node):
                waiting.extend(body.node)
        calls[key] = list(called)
    order: list[FunctionKey] = []
    done: dict[FunctionKey, bool] = {}
    for start in functions:
        stack = [start]
        while stack:
            key = stack[-1]
            if key in done:
                stack.pop()
                if not done[key]:
                    done[key] = True
                    order.append(key)
                continue
            done[key] = False
            for callee in calls[key]:
                if done.get(callee) is False:
                    raise InputError(f"function {callee[0]}.{callee[1]} calls itself")
                if callee not in done:
                    stack.append(callee)
    return order


class NodeCount:
    """A counter of leaf nodes.

    It counts the nodes inside bodies and called functions instead of their callers. Constants do
    not count.
    """

    def __init__(self, functions: Iterable[onnx.FunctionProto]) -> None:
        protos = {function_key(f.domain, f.name, f.overload): f for f in functions}
        self.inside: dict[FunctionKey, Counter[str]] = {}
        for key in callees_first(protos):
            self.inside[key] = self.operators(protos[key].node)

    def nodes(self, nodes: Iterable[onnx.NodeProto]) -> int:
        """Count the leaf nodes of a list of nodes."""
        return self.operators(nodes).total()

    def operators(self, nodes: Iterable[onnx.NodeProto]) -> Counter[str]:
        """Count the leaf nodes of a list of nodes by operator, such as Add or com.microsoft.Gelu."""
        total: Counter[str] = Counter()
        plain: list[str] = []
        for node in nodes:
            domain = normal_domain(node.domain)
            if node.op_type == "Constant" and domain == "":
                continue
            key = function_key(node.domain, node.op_type, node.overload) if self.inside else None
            bodies = [graph for _, graph in attribute_graphs(node)]
            if key in self.inside:
                total.update(self.inside[key])
            elif bodies:
                for graph in bodies:
                    total.update(self.operators(graph.node))
            else:
                plain.append(f"{domain}.{node.op_type}" if domain else node.op_type)
        total.update(plain)
        return total


def count_nodes(model: Source) -> int:
    """Count the leaf nodes of a model, which is a message or any other kind that `optimize` takes.

    Nodes inside bodies and called functions count instead of their callers; constants do not count.

    >>> import eqsat
    >>> from onnx.parser import parse_model
    >>> text = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu (x) }'
    >>> eqsat.count_nodes(parse_model(text))
    1
    """
    proto: onnx.ModelProto = model if isinstance(model, onnx.ModelProto) else load(model, "model")[0]
    return count_operators(proto).total()


def count_operators(model: onnx.ModelProto) -> Counter[str]:
    """Count the leaf nodes of a model by operator, as `NodeCount` does."""
    return NodeCount(model.functions).operators(model.graph.node)


def without_weights(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of the model without the initializers of its main graph."""
    found = onnx.ModelProto()
    copy_fields(proto, found, {"graph"})
    copy_fields(proto.graph, found.graph, {"initializer"})
    return found


def copy_fields(source: Message, target: Message, left_out: Container[str]) -> None:
    """Copy all fields of a message except `left_out`, so that unwanted weights are never copied."""
    for descriptor, value in source.ListFields():
        if descriptor.name in left_out:
            continue
        if isinstance(value, (str, bytes, int, float)):
            setattr(target, descriptor.name, value)
        elif isinstance(value, Message):
            getattr(target, descriptor.name).CopyFrom(value)
        else:
            getattr(target, descriptor.name).MergeFrom(value)
