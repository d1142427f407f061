"""The normal form of a model: graphs of nodes over named values, constants by reference.

A `Model` is what every stage takes and returns. Nodes stand in topological order, each name is defined
once in its scope, a `Constant` node is a constant like an initializer, and the protobuf messages that the
model came from are kept, unchanged, for everything that optimization does not touch.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import onnx
from google.protobuf.message import Message

from eqsat.errors import InputError
from eqsat.operators import Operator, normal_domain
from eqsat.tensors import Tensor

FunctionKey: TypeAlias = tuple[str, str, str]  # domain, name, overload


@dataclass(slots=True)
class Constant:
    """A constant of a graph. `node` is the Constant node that gave it, None for an initializer."""

    tensor: Tensor
    node: onnx.NodeProto | None = None


@dataclass(slots=True)
class Node:
    """One operator applied. Absent inputs and outputs are empty names; `captures` are the outer values its bodies use."""

    operator: Operator
    proto: onnx.NodeProto
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    bodies: dict[str, Graph] = field(default_factory=dict[str, "Graph"])
    captures: tuple[str, ...] = ()
    function: FunctionKey | None = None
    dequantizes: bool = False  # a DequantizeLinear is inside: folding the node would store quantized weights at full width


@dataclass(slots=True)
class Graph:
    """A graph, a body or a function body. `proto` holds names and annotations as they were read; its nodes and constants are not looked at again."""

    proto: onnx.GraphProto
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: dict[str, Constant]
    nodes: list[Node]
    overridable: frozenset[str] = frozenset()  # inputs whose constant is only a default
    sparse: dict[str, onnx.SparseTensorProto] = field(default_factory=dict[str, onnx.SparseTensorProto])

    def captured(self) -> tuple[str, ...]:
        """The outer values that this graph uses, in order of first use."""
        defined = {*self.inputs, *self.constants, *self.sparse}
        for node in self.nodes:
            defined.update(node.outputs)
        used: dict[str, None] = {}
        for node in self.nodes:
            used.update(dict.fromkeys(name for name in (*node.inputs, *node.captures) if name))
        used.update(dict.fromkeys(self.outputs))
        return tuple(name for name in used if name and name not in defined)


@dataclass(slots=True)
class Function:
    """A model-local function; its body is a graph whose inputs have no declared types."""

    proto: onnx.FunctionProto
    body: Graph


@dataclass(slots=True)
class Model:
    """A whole model. `proto` is the shell (versions, metadata, opsets) and `folder` is where its external data lie."""

    proto: onnx.ModelProto
    graph: Graph
    functions: dict[FunctionKey, Function]
    folder: Path | None


def function_key(domain: str, name: str, overload: str) -> FunctionKey:
    """How a function is found: by domain, name and overload."""
    return (normal_domain(domain), name, overload)


def attribute_graphs(node: onnx.NodeProto) -> Iterable[tuple[str, onnx.GraphProto]]:
    """The bodies of a node, by attribute; a list of graphs gives `name.0`, `name.1`, ..."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            for index, graph in enumerate(attribute.graphs):
                yield f"{attribute.name}.{index}", graph


def callees_first(functions: Mapping[FunctionKey, onnx.FunctionProto]) -> list[FunctionKey]:
    """The functions in an order in which each stands after those that it calls; an `InputError` where one calls itself."""
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
    """Counts leaf nodes: those of bodies and of called functions count inside, constants do not count."""

    def __init__(self, functions: Iterable[onnx.FunctionProto]) -> None:
        protos = {function_key(f.domain, f.name, f.overload): f for f in functions}
        self.inside: dict[FunctionKey, int] = {}
        for key in callees_first(protos):
            self.inside[key] = self.nodes(protos[key].node)

    def nodes(self, nodes: Iterable[onnx.NodeProto]) -> int:
        """The leaf nodes of a list of nodes."""
        total = 0
        for node in nodes:
            if node.op_type == "Constant" and normal_domain(node.domain) == "":
                continue
            key = function_key(node.domain, node.op_type, node.overload)
            bodies = [graph for _, graph in attribute_graphs(node)]
            if key in self.inside:
                total += self.inside[key]
            elif bodies:
                total += sum(self.nodes(graph.node) for graph in bodies)
            else:
                total += 1
        return total


def count_nodes(model: onnx.ModelProto) -> int:
    """The leaf nodes of a model: those of bodies and of called functions count inside, constants do not count."""
    return NodeCount(model.functions).nodes(model.graph.node)


def copy_fields(source: Message, target: Message, left_out: Container[str]) -> None:
    """Copies a message field by field but for those named, so that weights that are not wanted are never copied."""
    for descriptor, value in source.ListFields():
        if descriptor.name in left_out:
            continue
        if isinstance(value, (str, bytes, int, float)):
            setattr(target, descriptor.name, value)
        elif isinstance(value, Message):
            getattr(target, descriptor.name).CopyFrom(value)
        else:
            getattr(target, descriptor.name).MergeFrom(value)
