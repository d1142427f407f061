"""Rounding: frees products from subnormal numbers, which many processors multiply slowly.

The result of a Softmax that holds subnormal elements (eqsat/cost/subnormals.py) gets a small number
added and subtracted again before products read it. For real numbers this changes nothing. Floats
far below that number become 0, all others keep their precision, and so do NaN and infinity. No rule
can do this, because for a rule x + c - c is x: the next run drops it, and adds it again.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper

from eqsat.choose.storing import Place, store_array
from eqsat.cost.subnormals import is_slowed
from eqsat.model.names import FreshNames, all_names

_SMALL = 2.0**-100
"""What is added and subtracted. Beside it, the least step of a float is 2**-123, which is normal. An
element of a Softmax that is as small has no weight beside those that add up to 1.
"""


def rounded(model: onnx.ModelProto, faint: Mapping[str, float]) -> onnx.ModelProto:
    """Returns the model with subnormal elements rounded away where they slow products, or the model
    itself if they slow none. `faint` are its values with such elements.
    """
    slow = _slow_softmaxes(model.graph, faint)
    if not slow:
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    _round(result.graph, slow, Place(constant_nodes=model.ir_version < 4))
    return result


def _slow_softmaxes(graph: onnx.GraphProto, faint: Mapping[str, float]) -> dict[str, None]:
    """Returns the results of Softmax whose elements reach a product, moved or not."""
    sources: dict[str, str] = {}
    found: dict[str, None] = {}
    for node in graph.node:
        for name in node.output:
            if name in faint:
                sources[name] = sources.get(node.input[0], name)
        if is_slowed(node, faint):
            found[sources[node.input[0]]] = None
    return found


def _round(graph: onnx.GraphProto, slow: Mapping[str, None], place: Place) -> None:
    fresh = FreshNames(all_names(graph))
    nodes: list[onnx.NodeProto] = []
    other: dict[str, str] = {}
    small = fresh.make("small")
    store_array(graph, nodes, place, small, np.array(_SMALL, np.float32))
    for node in graph.node:
        kept = onnx.NodeProto()
        kept.CopyFrom(node)
        for index, name in enumerate(kept.input):
            kept.input[index] = other.get(name, name)
        nodes.append(kept)
        for name in (name for name in node.output if name in slow):
            added, other[name] = fresh.make(f"{name}_raised"), fresh.make(f"{name}_rounded")
            nodes.append(helper.make_node("Add", [name, small], [added]))
            nodes.append(helper.make_node("Sub", [added, small], [other[name]]))
    del graph.node[:]
    graph.node.extend(nodes)
