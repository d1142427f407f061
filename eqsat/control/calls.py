"""Calls: nodes that call a function of the model become the nodes of the function.

Runtimes inline all functions when they load a model, so a call costs no time. But rules see neither
into a call nor the types of its arguments inside of the function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import onnx
from onnx import AttributeProto, FunctionProto

from eqsat.control.bodies import Destination, Graph, Node, everywhere, replace_nodes, shell
from eqsat.control.surroundings import Scope
from eqsat.model.model import FunctionKey, NodeCount, attribute_graphs, callees_first, function_key
from eqsat.model.names import FreshNames, NameClash, all_names
from eqsat.operators import normal_domain

_MOST_NODES = 1 << 14  # nodes that a model may have after its calls are inlined


def speaks_as_model(function: FunctionProto, proto: onnx.ModelProto) -> bool:
    """Tell whether the opsets of a function agree with the model's. If they differ, runtimes
    disagree on which of the two holds inside the function.
    """
    model = {normal_domain(item.domain): item.version for item in proto.opset_import}
    return all(model.get(normal_domain(item.domain), item.version) == item.version for item in function.opset_import)


def inlinable(proto: onnx.ModelProto, everything: bool = False) -> set[FunctionKey]:
    """Return the functions whose calls are worth inlining: those without which the file gets no
    larger, or all.

    A function stays if its opsets differ from the model's.
    """
    if everything and proto.functions and NodeCount(proto.functions).nodes(proto.graph.node) > _MOST_NODES:
        return set()
    functions = {function_key(f.domain, f.name, f.overload): f for f in proto.functions}
    calls = _calls(proto) if functions else Counter[FunctionKey]()
    return {key for key, f in functions.items() if calls[key] and speaks_as_model(f, proto) and (everything or _saves(f, calls[key]))}


def inlined(proto: onnx.ModelProto, everything: bool = False) -> onnx.ModelProto:
    """Return the model with the calls of its `inlinable` functions inlined, as far as they can be.

    It is the model itself if there are none.
    """
    chosen = inlinable(proto, everything)
    if not chosen:
        return proto
    result = onnx.ModelProto()
    result.CopyFrom(proto)
    return result if _Inliner(result, chosen).run() else proto


def _calls(proto: onnx.ModelProto) -> Counter[FunctionKey]:
    """Count the calls of each function, as the file has them."""
    lists = [proto.graph.node, *(function.node for function in proto.functions)]
    return Counter(_key(node) for nodes in lists for node in everywhere(nodes))


def _key(node: Node) -> FunctionKey:
    return function_key(node.domain, node.op_type, node.overload)


def _saves(function: FunctionProto, calls: int) -> bool:
    """Tell whether a file gets no larger if each call becomes the nodes of the function."""
    call = sum(len(text) for text in (function.domain, function.name, *function.input, *function.output))
    return calls * sum(node.ByteSize() for node in function.node) <= function.ByteSize() + calls * call


class _Inliner:
    """Inlines the calls of some functions of a model, in place."""

    def __init__(self, proto: onnx.ModelProto, chosen: set[FunctionKey]) -> None:
        self._proto = proto
        self._functions = {function_key(f.domain, f.name, f.overload): f for f in proto.functions}
        self._chosen = chosen
        self._fresh = FreshNames(())

    def run(self) -> bool:
        """Inline what can be inlined; tell whether anything was."""
        changed = False
        for key in callees_first(self._functions):
            graph = shell(self._functions[key])
            self._fresh = FreshNames(all_names(graph))  # other functions have their own names
            if self._graph(graph):
                changed = True
                replace_nodes(self._functions[key].node, graph.node)
        self._fresh = FreshNames(all_names(self._proto.graph))
        changed |= self._graph(self._proto.graph)
        left = _calls(self._proto)
        gone = [f for key, f in self._functions.items() if key in self._chosen and not left[key]]
        for place in reversed(range(len(self._proto.functions))):
            if any(self._proto.functions[place] is f for f in gone):
                del self._proto.functions[place]
        return changed

    def _graph(self, graph: Graph) -> bool:
        """Inline the calls in a graph and in its bodies."""
        nodes: list[Node] = []
        changed = False
        for node in graph.node:
            for _, body in attribute_graphs(node):
                changed |= self._graph(body)
            try:
                made = self._inlined(node, graph) if _key(node) in self._chosen else None
            except NameClash:
                made = None
            changed |= made is not None
            nodes += [node] if made is None else made
        if changed:
            replace_nodes(graph.node, nodes)
        return changed

    def _inlined(self, call: Node, graph: Graph) -> list[Node] | None:
        function = self._functions[_key(call)]
        if len(call.input) > len(function.input) or len(call.output) > len(function.output):
            return None
        body = Graph()
        body.CopyFrom(shell(function))
        given = {attribute.name: attribute for attribute in (*function.attribute_proto, *call.attribute)}
        if not all(_with_attributes(node, given) for node in everywhere(body.node)):
            return None
        arguments = dict.fromkeys(function.input, "") | dict(zip(function.input, call.input, strict=False))
        absent = {name for name, argument in arguments.items() if not argument}
        inside = [graph for node in everywhere(body.node) for _, graph in attribute_graphs(node)]
        if any(info.name in absent for one in (body, *inside) for info in one.output):
            return None
        results = [*call.output, *[""] * (len(function.output) - len(call.output))]
        made = Destination(graph, Scope(0, False), self._fresh).moved(body, arguments, results, once=False)
        imported = {normal_domain(item.domain) for item in self._proto.opset_import}
        self._proto.opset_import.extend(item for item in function.opset_import if normal_domain(item.domain) not in imported)
        return made


def _with_attributes(node: Node, given: Mapping[str, AttributeProto]) -> bool:
    """Put the arguments of a call in place of the parameters that the attributes of a node name.

    An attribute without an argument is absent. Return False if the node cannot do without it.
    """
    kept: list[AttributeProto] = []
    for attribute in node.attribute:
        argument = given.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if argument is not None:
            kept.append(AttributeProto())
            kept[-1].CopyFrom(argument)
            kept[-1].name = attribute.name
        elif node.op_type == "Constant":
            return False
    if any(attribute.ref_attr_name for attribute in node.attribute):
        del node.attribute[:]
        node.attribute.extend(kept)
    return True
