"""A run of nodes of a model becomes a model-local function, which the model calls."""

from __future__ import annotations

import onnx
from onnx import helper

from .chance import Chance
from .scope import captures

DOMAIN = "made.here"


def outlined(model: onnx.ModelProto, chance: Chance) -> None:
    """Moves some consecutive nodes into a function.

    Bodies stay outside functions, as in older tools.
    """
    graph = model.graph
    nodes = list(graph.node)
    if len(nodes) < 2 or model.ir_version < 8 or any(captures(node) for node in nodes):
        return
    first = chance.number(0, len(nodes) - 1)
    part = nodes[first : first + chance.number(1, 4)]
    rest = nodes[:first] + nodes[first + len(part) :]
    made = {name for node in part for name in node.output if name}
    read = {name for node in rest for name in node.input} | {value.name for value in graph.output}
    inputs = sorted({name for node in part for name in node.input if name} - made)
    outputs = sorted(made & read)
    if not outputs:
        return
    names = {name: f"f{number}" for number, name in enumerate([*inputs, *sorted(made)])}
    inside: list[onnx.NodeProto] = []
    for node in part:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [names.get(name, "") for name in node.input]
        copy.output[:] = [names.get(name, "") for name in node.output]
        inside.append(copy)
    imports = list(model.opset_import)
    function = helper.make_function(DOMAIN, "part", [names[name] for name in inputs], [names[name] for name in outputs], inside, imports)
    call = helper.make_node("part", inputs, outputs, domain=DOMAIN)
    del graph.node[:]
    graph.node.extend([*nodes[:first], call, *nodes[first + len(part) :]])
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
