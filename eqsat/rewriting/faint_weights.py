"""Faint weights: makes zeros of the subnormal numbers among the weights of products.

Training with decay drives weights that nothing needs towards zero, and some are stored when they are
subnormal, below 1.18e-38. Many processors take a hundred times as long for a product with such a number.
In a sum with other products, it changes a result less than rounding does. No rule does it, since an
e-graph does not look into large constants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from eqsat.frozen import frozen
from eqsat.model.model import all_graphs
from eqsat.model.tensors import read_tensor
from eqsat.operators import normal_domain

FLUSHED = "subnormal weights of products, which are slow, are zeros"
"""The note on a model that had some."""

_PRODUCTS = {"Conv": (1,), "ConvTranspose": (1,), "Gemm": (1,), "MatMul": (0, 1)}
"""The inputs of products that hold weights, by operator."""
_LEAST = np.finfo(np.float32).tiny
_FAINT = np.uint32((1 << 23) - 1)  # the largest subnormal number, as an integer
_CHUNK = 1 << 20  # elements
_MAGNITUDE = np.uint32((1 << 31) - 1)  # all bits but the sign


@frozen
class _Use:
    """A product that reads a weight: its node, and the place among its inputs."""

    node: onnx.NodeProto
    place: int


def without_faint_weights(model: onnx.ModelProto, folder: Path | None) -> onnx.ModelProto:
    """Returns the model with zeros in place of subnormal weights, or the model itself if it has none.

    Only float32 weights count, that only products read and that can be read in no time. `folder` holds
    those that are apart. Weights stay if all weights of a sum, and its bias, are as small.
    """
    uses = _uses(model.graph)
    constants = _constants(model.graph)
    found: dict[str, np.ndarray[Any, Any]] = {}
    for name, products in uses.items():
        array = _read(constants.get(name), folder)
        if array is None or not _has_faint(array):
            continue
        faint = _faint(array)
        for use in products:
            faint = faint & _in_live_sums(array, use, lambda bias: _read(constants.get(bias), folder))
        if faint.any():
            found[name] = np.where(faint, np.float32(0), array)
    if not found:
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for name, tensor in _constants(result.graph).items():
        if name in found:
            own = tensor.name
            tensor.CopyFrom(numpy_helper.from_array(found[name], own))
    return result


def _uses(graph: onnx.GraphProto) -> dict[str, list[_Use]]:
    """Returns the products that read a value, for each that nothing but products of a graph and its bodies reads."""
    found: dict[str, list[_Use]] = {}
    others = {info.name for inner in all_graphs(graph) for info in (*inner.input, *inner.output)}
    for inner in all_graphs(graph):
        for node in inner.node:
            products = () if normal_domain(node.domain) else _PRODUCTS.get(node.op_type, ())
            for place, name in enumerate(node.input):
                if place in products:
                    found.setdefault(name, []).append(_Use(node, place))
                else:
                    others.add(name)
    return {name: uses for name, uses in found.items() if name not in others}


def _constants(graph: onnx.GraphProto) -> dict[str, TensorProto]:
    """Returns the float32 constants of a graph and its bodies by name. Bodies beside one another may use a
    name twice; then it has none.
    """
    found: list[tuple[str, TensorProto]] = []
    for inner in all_graphs(graph):
        found += [(tensor.name, tensor) for tensor in inner.initializer]
        stored = (node for node in inner.node if node.op_type == "Constant" and not normal_domain(node.domain))
        found += [(node.output[0], item.t) for node in stored for item in node.attribute if item.name == "value"]
    many = Counter(name for name, _ in found)
    return {name: tensor for name, tensor in found if many[name] == 1 and tensor.data_type == TensorProto.FLOAT}


def _read(tensor: TensorProto | None, folder: Path | None) -> np.ndarray[Any, Any] | None:
    """Returns the elements of a constant; None if they are far, or there is none."""
    known = None if tensor is None else read_tensor(tensor, folder)
    return None if known is None or known.hollow or not known.near else np.ascontiguousarray(known.array())


def _has_faint(array: np.ndarray[Any, Any]) -> bool:
    """Tells whether some element is subnormal, without much memory: few weights have any."""
    flat = array.reshape(-1)
    return any(bool(_faint(flat[start : start + _CHUNK]).any()) for start in range(0, len(flat), _CHUNK))


def _faint(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Tells which elements are subnormal. Zero wraps around, so that one comparison is enough."""
    return (array.view(np.uint32) & _MAGNITUDE) - np.uint32(1) < _FAINT


def _in_live_sums(array: np.ndarray[Any, Any], use: _Use, read: Callable[[str], np.ndarray[Any, Any] | None]) -> np.ndarray[Any, Any]:
    """Tells which weights of a product are added to others, or to a bias, that are no faint numbers."""
    node, integers = use.node, {item.name: item.i for item in use.node.attribute}
    live = ~(np.abs(array) < _LEAST)  # NaN is as alive as can be
    if node.op_type == "MatMul":
        return np.asarray(live.any(axis=-1 if use.place == 0 else max(-2, -array.ndim), keepdims=True))
    if node.op_type == "Gemm":
        return np.asarray(live.any(axis=1 if integers.get("transB") else 0, keepdims=True))
    groups = integers.get("group", 1)
    if node.op_type == "ConvTranspose":
        parts = live.reshape(groups, -1, *array.shape[1:])
        rows = parts.any(axis=(1, *range(3, parts.ndim)), keepdims=True)
        return np.broadcast_to(rows, parts.shape).reshape(array.shape)
    rows = live.reshape(len(array), -1).any(axis=1)
    bias = read(node.input[2]) if len(node.input) > 2 else None
    if bias is not None and bias.shape == rows.shape:
        rows = rows | ~(np.abs(bias) < _LEAST)
    return rows.reshape(-1, *(1,) * (array.ndim - 1))
