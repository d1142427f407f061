"""Where an engine is known to be at fault: results of one engine that say nothing, by operator, each with its reason.

Comes in: the engine, a node, and the values around it. Each entry is as narrow as the defect. What is excused of one engine is
still compared with the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx

Excuse = Callable[[onnx.NodeProto, Mapping[str, Any]], bool]


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    return next((onnx.helper.get_attribute_value(item) for item in node.attribute if item.name == name), default)


def _shape(node: onnx.NodeProto, values: Mapping[str, Any], place: int = 0) -> tuple[int, ...]:
    found = values.get(node.input[place]) if place < len(node.input) else None
    return found.shape if isinstance(found, np.ndarray) else ()


def _always(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    return True


def _empty(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    return 0 in _shape(node, values)


def _outgrown(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    """A window that is larger than the padded image, which ONNX does not define."""
    spatial = _shape(node, values)[2:]
    rank = len(spatial)
    weights = _shape(node, values, 3 if node.op_type == "QLinearConv" else 1)
    kernel = _attribute(node, "kernel_shape", weights[2:])
    dilations, pads = _attribute(node, "dilations", [1] * rank), _attribute(node, "pads", [0] * 2 * rank)
    extents = [(length - 1) * dilation + 1 for length, dilation in zip(kernel, dilations, strict=False)]
    return any(size + head + tail < extent for size, head, tail, extent in zip(spatial, pads, pads[rank:], extents, strict=False))


def _unsorted(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    return _attribute(node, "sorted", 1) == 0 or _empty(node, values)


def _unlike(*places: int) -> Excuse:
    """Whether vectors that belong together have different lengths, which no runtime takes."""
    return lambda node, values: len({_shape(node, values, place)[:1] for place in places if place < len(node.input)}) > 1


def _channels(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    return any(_shape(node, values, place) != _shape(node, values)[1:2] for place in range(1, 5))


_REDUCTIONS = "ArgMax ArgMin ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
_WINDOWS = "AveragePool Conv ConvInteger LpPool MaxPool QLinearConv"

# The runtime's kernels for empty tensors leave reduced axes as they were, or take one axis for another.
# It divides towards zero where a window does not fit, and so finds one.
RUNTIME: dict[str, Excuse] = {**dict.fromkeys(_REDUCTIONS.split(), _empty), **dict.fromkeys(_WINDOWS.split(), _outgrown)}

# The reference takes the last two axes for all of space, or the first for all others.
# It takes lists that belong together at the length of the shorter.
# It returns what is unique in the order of a broken sort, and keeps the axes of an empty tensor.
# To it an optional is a list.
REFERENCE: dict[str, Excuse] = {
    **dict.fromkeys(_WINDOWS.split(), _outgrown),
    "GlobalMaxPool": lambda node, values: len(_shape(node, values)) != 4,
    "OptionalGetElement": _always,
    "BatchNormalization": _channels,
    "RoiAlign": _unlike(1, 2),
    "Unique": _unsorted,
}


def excused(engine: str, node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    """Whether what an engine gives for a node says nothing."""
    found = (RUNTIME if engine == "the runtime" else REFERENCE).get(node.op_type)
    return found is not None and found(node, values)
