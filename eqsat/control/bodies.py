"""Bodies: graphs inside nodes, and the moving of their nodes into the graph around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import onnx
from onnx import helper

from eqsat.control.surroundings import Scope
from eqsat.frozen import mutable
from eqsat.model.model import attribute_graphs
from eqsat.model.names import FreshNames, captures, defined_names, rename_captures
from eqsat.operators import normal_domain

BODIES = frozenset({"If", "Loop", "Scan"})
"""The operators with bodies whose meaning is known here."""

Node = onnx.NodeProto
Graph = onnx.GraphProto


def everywhere(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield nodes, and those inside of their bodies."""
    for node in nodes:
        yield node
        for _, body in attribute_graphs(node):
            yield from everywhere(body.node)


def shell(function: onnx.FunctionProto) -> Graph:
    """Return a function's body as a graph."""
    body = Graph(name=function.name)
    body.input.extend(onnx.ValueInfoProto(name=name) for name in function.input)
    body.output.extend(onnx.ValueInfoProto(name=name) for name in function.output)
    body.node.extend(function.node)
    return body


def first_output(node: Node) -> str:
    """Return the name of the first output that a node names."""
    return next(filter(None, node.output), "")


def count_of(node: Node, name: str) -> int:
    """Return an integer attribute; 0 if it is absent."""
    return next((item.i for item in node.attribute if item.name == name), 0)


def fits(node: Node) -> bool:
    """Tell whether the inputs and outputs of the bodies match the node.

    ONNX's checker accepts some mismatches; no runtime does.
    """
    bodies = dict(attribute_graphs(node))
    if node.op_type == "If":
        return all(not body.input and len(body.output) == len(node.output) for body in bodies.values())
    body, skip = bodies["body"], 1 if node.op_type == "Loop" else 0
    carried = len(node.input) - (2 if skip else count_of(node, "num_scan_inputs"))
    return len(body.input) == len(node.input) and 0 <= carried <= len(body.output) - skip and len(node.output) <= len(body.output) - skip


def rename(node: Node, names: Mapping[str, str]) -> None:
    """Rename the inputs and outputs of a node, and what its bodies capture. Raise `NameClash`."""
    for values in (node.input, node.output):
        for place, name in enumerate(values):
            if name in names:
                values[place] = names[name]
    for _, body in attribute_graphs(node):
        rename_captures(body, names)


def _make_way(body: Graph, taken: set[str] | None, fresh: FreshNames) -> None:
    """Give other names to the values that a body, or a body in it, defines under a `taken` name, or
    under any that is not free.
    """
    names = {name: fresh.make(name) for name in defined_names(body) if taken is None or name in taken}
    for node in body.node:
        for _, inner in attribute_graphs(node):
            _make_way(inner, taken, fresh)
        rename(node, names)
    for named in (*body.input, *body.output, *body.initializer, *body.value_info, *(tensor.values for tensor in body.sparse_initializer)):
        named.name = names.get(named.name, named.name)


def replace_nodes(target: Any, nodes: Iterable[Node]) -> None:
    """Set a repeated field to `nodes`, which may come from the same field."""
    kept = Graph()
    kept.node.extend(nodes)
    del target[:]
    target.extend(kept.node)


def tidied(nodes: Iterable[Node], results: Iterable[str]) -> list[Node]:
    """Return nodes without copies (Identity) and dead ones; they compute the same `results`.

    The nodes change in place. Raise `NameClash`.
    """
    needed = set(results)
    names: dict[str, str] = {}
    left: list[Node] = []
    for node in nodes:
        rename(node, names)
        if node.op_type == "Identity" and not normal_domain(node.domain) and node.output[0] not in needed:
            names[node.output[0]] = node.input[0]
        else:
            left.append(node)
    kept: list[Node] = []
    for node in reversed(left):
        if not needed.isdisjoint(node.output):
            kept.append(node)
            needed.update(node.input, *(captures(body) for _, body in attribute_graphs(node)))
    return kept[::-1]


@mutable
class Destination:
    """The graph into which the nodes of bodies move, and the names that are free in it."""

    graph: Graph
    scope: Scope
    fresh: FreshNames

    def takes(self, body: Graph) -> bool:
        """Tell whether the stored constants of a body can move."""
        outside = any(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in body.initializer)
        return not body.sparse_initializer and (self.scope.stores or not outside)

    def stored(self, tensor: onnx.TensorProto) -> list[Node]:
        """Store a constant in the graph; return the node that holds it, if it needs one."""
        if not self.scope.stores:
            return [helper.make_node("Constant", [], [tensor.name], value=tensor)]
        self.graph.initializer.append(tensor)
        return []

    def moved(self, body: Graph, arguments: Mapping[str, str], results: Sequence[str], skip: int = 0, once: bool = True) -> list[Node]:
        """Return the nodes of a body for the graph around it. They read `arguments` for its inputs
        and compute `results`, of which empty ones are not needed, from its outputs after `skip`.

        `once` tells whether the body moves only once: then the names of nodes and declared types go
        with it, which may be wrong in other copies. The body stays as it is. Raise `NameClash`.
        """
        copy = Graph()
        copy.CopyFrom(body)
        sources = [info.name for info in copy.output][skip:]
        mapping = dict(arguments)
        given = {name for node in copy.node for name in node.output}
        for source, result in zip(sources, results, strict=False):
            if result and source in given and source not in mapping:
                mapping[source] = result
        for name in defined_names(copy):
            if name not in mapping:
                mapping[name] = self.fresh.make(name)
        for node in () if once else everywhere(copy.node):
            node.name = self.fresh.make(node.name) if node.name else ""  # ONNX Runtime refuses a name that two nodes have
        taken = set(mapping.values()) if once else None
        for node in copy.node:
            for _, inner in attribute_graphs(node):
                _make_way(inner, taken, self.fresh)
            rename(node, mapping)
        nodes: list[Node] = []
        for tensor in copy.initializer:
            if tensor.name not in arguments:
                tensor.name = mapping[tensor.name]
                nodes += self.stored(tensor)
        nodes += copy.node
        for info in copy.value_info if once else ():
            if info.name in mapping and mapping[info.name] not in results:
                info.name = mapping[info.name]
                self.graph.value_info.append(info)
        copies = [(mapping.get(source, source), result) for source, result in zip(sources, results, strict=False)]
        return nodes + [helper.make_node("Identity", [source], [result]) for source, result in copies if result and source != result]
