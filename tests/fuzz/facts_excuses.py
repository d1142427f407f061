"""Known faults of the engines: results of one engine that tell nothing, by operator.

The input is the engine, a node, and the values around it. Each entry is as narrow as the defect.
The other engine's results are still compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx

from eqsat.families import FAMILIES

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


def _any_empty(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    return any(0 in _shape(node, values, place) for place in range(len(node.input)))


def _empty_from_the_end(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    stated = [*_attribute(node, "axes", []), _attribute(node, "axis", 0)]
    if len(node.input) > 1:
        stated += np.asarray(values[node.input[1]]).ravel().tolist()
    return _empty(node, values) and min(stated) < 0


def _outgrown(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    """Tells whether a window is larger than the padded image, or empty. ONNX defines neither."""
    spatial = _shape(node, values)[2:]
    rank = len(spatial)
    weights = _shape(node, values, 3 if node.op_type == "QLinearConv" else 1)
    kernel = _attribute(node, "kernel_shape", weights[2:])
    dilations, pads = _attribute(node, "dilations", [1] * rank), _attribute(node, "pads", [0] * 2 * rank)
    extents = [(length - 1) * dilation + 1 for length, dilation in zip(kernel, dilations, strict=False)]
    return any(extent < 1 or size + head + tail < extent for size, head, tail, extent in zip(spatial, pads, pads[rank:], extents, strict=False))


def _unsorted(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    return _attribute(node, "sorted", 1) == 0 or _empty(node, values)


def _unlike(*places: int) -> Excuse:
    """Tells whether vectors that must agree have different lengths. No runtime accepts this."""
    return lambda node, values: len({_shape(node, values, place)[:1] for place in places if place < len(node.input)}) > 1


def _channels(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    return any(_shape(node, values, place) != _shape(node, values)[1:2] for place in range(1, len(node.input)))


def _states(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    hidden, states = _attribute(node, "hidden_size", 0), _shape(node, values, 2)
    axis = 0 if _attribute(node, "layout", 0) else 1
    given = [_shape(node, values, place) for place in (5, 6) if place < len(node.input) and node.input[place]]
    return len(states) != 3 or hidden not in (0, states[2]) or any(first[axis] != _shape(node, values)[axis] for first in given)


def _padded(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    pads = _attribute(node, "pads", [])
    uneven = len(pads) != 4 or len(set(pads)) > 1
    return _outgrown(node, values) or _attribute(node, "auto_pad", b"") == b"SAME_LOWER" or (any(pads) and (uneven or _attribute(node, "ceil_mode", 0)))


def _different(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    parts = values.get(node.input[0])
    shapes = [part.shape for part in parts] if isinstance(parts, list) else [_shape(node, values, place) for place in range(len(node.input))]
    axis = _attribute(node, "axis", 0)
    joined = all(-len(shape) <= axis < len(shape) for shape in shapes)
    return joined and any(0 in shape for shape in shapes) and len({tuple(np.delete(shape, axis)) for shape in shapes}) > 1


def _empty_stacks(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    stacks = [_shape(node, values, place)[:-2] for place in (0, 3 if node.op_type == "QLinearMatMul" else 1)]
    return stacks[0] != stacks[1] and 0 in (*stacks[0], *stacks[1])


def _by_zero(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    divisor = values.get(node.input[1])
    return isinstance(divisor, np.ndarray) and divisor.dtype.kind in "iu" and not divisor.all()


def _unordered(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    axes = list(_attribute(node, "axes", []))
    return axes != sorted(axes) or min(axes, default=0) < 0


def _unfit(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    """Tells whether the inputs of Attention are empty, or do not fit one another: different batches,
    keys and values of different lengths, or a mask of more queries than there are.
    """
    queries, keys, rows = (_shape(node, values, place) for place in range(3))
    mask = (1, 1, *_shape(node, values, 3))
    lengths = -2 if len(queries) == 4 else 1
    batches = {queries[0], keys[0], rows[0]}
    return _any_empty(node, values) or len(batches) > 1 or keys[lengths] != rows[lengths] or mask[-2] not in (1, queries[lengths])


def _spread(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    padded = _attribute(node, "auto_pad", b"NOTSET") != b"NOTSET"
    return _outgrown(node, values) or (padded and any(step != 1 for step in _attribute(node, "dilations", [])))


_WINDOWS = "AveragePool Conv ConvInteger LpPool MaxPool QLinearConv"

RUNTIME: dict[str, Excuse] = {
    # The runtime ignores negative axes of an empty tensor.
    **dict.fromkeys(("ArgMax", "ArgMin", *FAMILIES["reduction"].members), _empty_from_the_end),
    # The runtime divides towards zero if a window does not fit, and so finds one.
    **dict.fromkeys(_WINDOWS.split(), _outgrown),
    # The runtime joins empty tensors whose other sizes differ.
    **dict.fromkeys("Concat ConcatFromSequence".split(), _different),
    # The runtime expands Attention without a kernel as a function, whose Reshape reads a size of 0
    # as "keep", and whose products broadcast inputs that do not fit.
    "Attention": _unfit,
    # The runtime broadcasts a stack of no matrices to one of one.
    **dict.fromkeys("MatMul MatMulInteger QLinearMatMul".split(), _empty_stacks),
}

REFERENCE: dict[str, Excuse] = {
    **dict.fromkeys(_WINDOWS.split(), _outgrown),
    # The reference reads the pads of a pool in another order, and ignores those of one axis. With
    # ceil_mode it counts them twice, and for SAME_LOWER it rounds sizes down.
    "MaxPool": _padded,
    # The reference ignores dilations if it pads by itself, with VALID too.
    "LpPool": _spread,
    # The reference assumes planes.
    "GlobalMaxPool": lambda node, values: len(_shape(node, values)) != 4,
    # The reference accepts parameters, states and regions of lengths that do not fit the data. No
    # kernel of the runtime accepts them.
    **dict.fromkeys("BatchNormalization InstanceNormalization".split(), _channels),
    **dict.fromkeys("GRU LSTM RNN".split(), _states),
    "GridSample": _unlike(0, 1),
    "RoiAlign": _unlike(1, 2),
    # The reference broadcasts transformations of another batch than the grids'.
    "AffineGrid": lambda node, values: _shape(node, values)[:1] != tuple(np.asarray(values[node.input[1]])[:1]),
    # The reference, too, broadcasts inputs of Attention that do not fit.
    "Attention": _unfit,
    # The reference takes a number of elements below 0 as counted from the end.
    "TopK": lambda node, values: len(node.input) > 1 and int(np.asarray(values[node.input[1]]).min()) < 0,
    # The reference divides integers by zero.
    **dict.fromkeys("Div Mod".split(), _by_zero),
    # The reference inserts axes one by one in the written order.
    "Unsqueeze": _unordered,
    # The reference does not clamp bounds before the first axis.
    "Shape": lambda node, values: min(_attribute(node, "end", 0), _attribute(node, "start", 0)) < -len(_shape(node, values)),
    # The reference accepts more repeats than there are axes.
    "Tile": lambda node, values: _shape(node, values, 1) != (len(_shape(node, values)),),
    # The reference accepts a depth below 1.
    "OneHot": lambda node, values: int(np.asarray(values[node.input[1]]).item()) < 1,
    # The reference reads a gray image as a matrix.
    "ImageDecoder": _always,
    # The reference treats an optional as a list.
    "OptionalGetElement": _always,
    # The reference sorts wrongly if it must not sort, and keeps the axes of an empty tensor.
    "Unique": _unsorted,
}


def excused(engine: str, node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    """Tells whether an engine's result for a node tells nothing."""
    found = (RUNTIME if engine == "the runtime" else REFERENCE).get(node.op_type)
    if found is None or found is _always:
        return found is not None
    return all(name in values for name in node.input if name) and found(node, values)
