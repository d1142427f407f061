"""Remove unread arguments from function calls, and the nodes that only computed them.

ONNX Runtime infers the types of a function's parameter from the nodes that read it. A parameter
without readers accepts only a few types; optionals and 4-bit integers are not among them. So a call
must lose an argument when its function loses the argument's last reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableSequence, Sequence

import onnx

from eqsat.model.model import FunctionKey, attribute_graphs, callees_first, function_key
from eqsat.model.names import captures


def drop_unread(model: onnx.ModelProto) -> None:
    """Remove unread arguments from all calls of a model, in place."""
    functions = {function_key(f.domain, f.name, f.overload): f for f in model.functions}
    unread: dict[FunctionKey, list[int]] = {}
    for key in callees_first(functions):
        function = functions[key]
        _clear(function.node, function.output, unread)
        read = {*function.output, *(name for node in function.node for name in _read(node))}
        unread[key] = [place for place, name in enumerate(function.input) if name not in read]
    if any(unread.values()):
        _clear(model.graph.node, [info.name for info in model.graph.output], unread)


def _clear(nodes: MutableSequence[onnx.NodeProto], outputs: Iterable[str], unread: Mapping[FunctionKey, Sequence[int]]) -> bool:
    """Clear unread arguments and dead nodes in a graph with these outputs, and in its bodies.

    Return whether anything changed.
    """
    cleared = False
    for node in nodes:
        for _, body in attribute_graphs(node):
            cleared |= _clear(body.node, [info.name for info in body.output], unread)
        for place in unread.get(function_key(node.domain, node.op_type, node.overload), ()):
            if place < len(node.input) and node.input[place]:
                node.input[place] = ""
                cleared = True
    if cleared:
        needed = set(outputs)
        for place in reversed(range(len(nodes))):
            if needed.isdisjoint(nodes[place].output):
                del nodes[place]
            else:
                needed.update(_read(nodes[place]))
    return cleared


def _read(node: onnx.NodeProto) -> list[str]:
    """Return the values that a node reads, itself or in its bodies."""
    return [*filter(None, node.input), *(name for _, body in attribute_graphs(node) for name in captures(body))]
