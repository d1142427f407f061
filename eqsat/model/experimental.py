"""Experimental operators: ONNX dropped them in version 1.5, ONNX Runtime has them still, and files of WinML
and Custom Vision begin with one, ImageScaler. It has no schema, so onnx's converter refuses their models, and
no rule reads it. It is a product and a sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import onnx
from onnx import AttributeProto, TensorProto, helper

from eqsat.model.imports import standard_opset
from eqsat.model.names import FreshNames, all_names
from eqsat.operators import normal_domain

_BROADCASTING = 7  # the first opset whose products and sums broadcast as numpy does
_KINDS = {"scale": AttributeProto.FLOAT, "bias": AttributeProto.FLOATS}


def without_experimental(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with a product and a sum for each ImageScaler of an input; `proto` itself if it has none.

    ONNX Runtime has it for float alone, so those of other inputs stay.
    """
    images = {value.name: value for value in proto.graph.input if value.type.tensor_type.elem_type == TensorProto.FLOAT}
    if standard_opset(proto.opset_import) < _BROADCASTING or not any(_is_scaler(node, images) for node in proto.graph.node):
        return proto
    result, fresh = onnx.ModelProto(), FreshNames(all_names(proto.graph))
    result.CopyFrom(proto)
    del result.graph.node[:]
    for node in proto.graph.node:
        result.graph.node.extend(_scaled(node, fresh) if _is_scaler(node, images) else (node,))
    return result


def _is_scaler(node: onnx.NodeProto, images: Mapping[str, onnx.ValueInfoProto]) -> bool:
    """Tell whether a node is an ImageScaler of one of these images, with a number for each channel."""
    if node.op_type != "ImageScaler" or normal_domain(node.domain) or len(node.input) != 1 or len(node.output) != 1 or node.input[0] not in images:
        return False
    if any(_KINDS.get(each.name) != each.type for each in node.attribute):
        return False
    sizes, bias = images[node.input[0]].type.tensor_type.shape.dim, _settings(node)["bias"]
    return bool(bias) and len(sizes) == 4 and (not sizes[1].HasField("dim_value") or sizes[1].dim_value == len(bias))


def _settings(node: onnx.NodeProto) -> dict[str, Any]:
    return {"scale": 1.0, "bias": ()} | {each.name: helper.get_attribute_value(each) for each in node.attribute}


def _scaled(node: onnx.NodeProto, fresh: FreshNames) -> Iterator[onnx.NodeProto]:
    settings, result = _settings(node), node.output[0]
    scale, bias, product = (fresh.make(f"{result}_{part}") for part in ("scale", "bias", "scaled"))
    yield helper.make_node("Constant", [], [scale], value=helper.make_tensor(scale, TensorProto.FLOAT, (), [settings["scale"]]))
    yield helper.make_node("Constant", [], [bias], value=helper.make_tensor(bias, TensorProto.FLOAT, (len(settings["bias"]), 1, 1), settings["bias"]))
    yield helper.make_node("Mul", [node.input[0], scale], [product])
    yield helper.make_node("Add", [product, bias], [result], name=node.name)
