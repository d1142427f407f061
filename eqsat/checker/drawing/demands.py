"""Demands: the laws of ONNX for a node that its shape inference does not check.

The input is a node whose inputs all have known shapes; the output is the law that it breaks, in
words. A node that breaks a law runs in no implementation, or differs between implementations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Final, NamedTuple

from eqsat.checker.samplers.leaf_shapes import numbers
from eqsat.facts.dims import Dim
from eqsat.facts.fact import INTEGERS
from eqsat.facts.node import Node

_SPATIAL_LIMIT: Final = 3  # no runtime has windows over more axes


class Law(NamedTuple):
    """A demand of ONNX, in words, and whether a node keeps to it."""

    text: str
    holds: Callable[[Node], bool]


def broken_law(node: Node) -> str | None:
    """The law that the node breaks and that inference does not know; None if it breaks none."""
    law = _LAWS.get(node.operator.name)
    return None if law is None or law.holds(node) else law.text


def beyond_runtimes(node: Node) -> bool:
    """Whether the node is legal but its windows have more axes than any runtime supports.

    Few such nodes are worth drawing.
    """
    return node.operator.name in _WINDOWED and len(node.shape(0) or ()) - 2 > _SPATIAL_LIMIT


def _sizes(node: Node, position: int) -> tuple[int, ...]:
    return numbers(node.shape(position))


def _convolution(weights: int) -> Callable[[Node], bool]:
    def legal(node: Node) -> bool:
        x, w, group = _sizes(node, 0), _sizes(node, weights), node.integer("group", 1)
        if len(x) != len(w) or len(w) < 3 or group < 1 or x[1] != w[1] * group or w[0] % group or 0 in w:
            return False
        bias = node.shape(8 if weights == 3 else 2) if node.operator.name != "ConvInteger" else None
        return (bias is None or bias == (w[0],)) and node.integers("kernel_shape") in (None, w[2:]) and _same_pads(node, w[2:], -1)

    return legal


def _same_pads(node: Node, kernel: tuple[int, ...], least: int) -> bool:
    """Whether SAME adds `least` pads or more along each axis.

    The number of pads is negative if the stride is longer than the kernel. At -1 no window reaches
    the last row, which only pools refuse. Below -1 runtimes differ in the part that they cut off at
    the head.
    """
    if not node.text("auto_pad", "NOTSET").startswith("SAME"):
        return True
    strides, dilations = node.integers("strides") or (1,) * len(kernel), node.integers("dilations") or (1,) * len(kernel)
    spatial = _sizes(node, 0)[2:]
    # For an image without rows, ONNX infers one row if the stride is longer than the kernel.
    return 0 not in spatial and all(
        (-(-size // step) - 1) * step + (length - 1) * wide + 1 - size >= least
        for size, step, wide, length in zip(spatial, strides, dilations, kernel, strict=True)
    )


def _transposed(node: Node) -> bool:
    x, w, group = _sizes(node, 0), _sizes(node, 1), node.integer("group", 1)
    if len(x) != len(w) or len(w) < 3 or group < 1 or x[1] != w[0] or w[0] % group or 0 in w or 0 in x[1:]:
        return False
    strides, extra = node.integers("strides") or (1,) * len(w), node.integers("output_padding") or ()
    fits = all(more < step for more, step in zip(extra, strides, strict=False))
    return fits and node.shape(2) in (None, (w[1] * group,)) and node.integers("kernel_shape") in (None, w[2:])


def _pool(node: Node) -> bool:
    kernel = node.integers("kernel_shape") or ()
    if len(kernel) != len(node.shape(0) or ()) - 2 or not _same_pads(node, kernel, 0):
        return False
    # Under SAME, ONNX and ONNX Runtime disagree about the output size of a dilated window.
    if node.text("auto_pad", "NOTSET").startswith("SAME") and any(wide > 1 for wide in node.integers("dilations") or ()):
        return False
    pads = node.integers("pads") or (0,) * (2 * len(kernel))
    return 0 not in _sizes(node, 0)[1:] and all(pad < length for pad, length in zip(pads, (*kernel, *kernel), strict=True))


def _vectors(node: Node) -> bool:
    """Whether all other inputs have one element for each channel."""
    x = _sizes(node, 0)
    return len(x) > 1 and all(fact is None or fact.shape == (x[1],) for fact in node.inputs[1:])


def _instances(node: Node) -> bool:
    # ONNX Runtime crashes on the mean of no elements.
    return _vectors(node) and len(_sizes(node, 0)) > 2 and 0 not in _sizes(node, 0)


def _groups(node: Node) -> bool:
    groups = node.integer("num_groups", 1)
    return _instances(node) and groups > 0 and _sizes(node, 0)[1] % groups == 0


def _not_empty(node: Node) -> bool:
    return 0 not in _sizes(node, 0)


def _remainder(node: Node) -> bool:
    """Whether Mod of floats has C's remainder, the only one that floats have."""
    return node.dtype(0) in INTEGERS or node.integer("fmod", 0) == 1


def _sequences(node: Node) -> bool:
    return {node.integer("batch_axis", 1), node.integer("time_axis", 0)} == {0, 1} and 0 not in _sizes(node, 0)[:2]


def _pad(node: Node) -> bool:
    if node.text("mode", "constant") == "constant":
        return node.shape(0) != ()
    return 0 not in _sizes(node, 0) and all(isinstance(pad, int) and pad >= 0 for pad in node.ints(1) or ())


def _onto(node: Node) -> bool:
    """Whether the second input broadcasts to the first."""
    x, y = _sizes(node, 0), _sizes(node, 1)
    return len(y) <= len(x) and all(size in (1, wide) for size, wide in zip(reversed(y), reversed(x), strict=False))


def _scale(node: Node) -> bool:
    axis = node.integer("axis", -1)
    inner = _sizes(node, 0)[axis:]
    if 0 in inner:
        return False
    for position in (1, 2):
        y = node.shape(position)
        if y is not None and not (len(y) <= len(inner) and all(size in (1, wide) for size, wide in zip(reversed(y), reversed(inner), strict=False))):
            return False
    return True


def _scalars(node: Node) -> bool:
    return all(fact is None or fact.shape == () for fact in node.inputs[1:])


def _elements(node: Node) -> bool:
    data, indices, axis = _sizes(node, 0), _sizes(node, 1), node.integer("axis", 0) % max(1, len(_sizes(node, 0)))
    if len(data) != len(indices) or not data:
        return False
    if any(size > wide for place, (size, wide) in enumerate(zip(indices, data, strict=True)) if place != axis):
        return False
    # Two updates of one element have no order, so only reductions that need no order are defined.
    scatter = node.operator.name == "ScatterElements"
    return (data[axis] > 0 or 0 in indices) and (not scatter or (node.shape(2) == indices and (indices[axis] <= 1 or node.text("reduction", "none") != "none")))


def _gather(node: Node) -> bool:
    data, axis = _sizes(node, 0), node.integer("axis", 0)
    return -len(data) <= axis < len(data) and (data[axis] > 0 or 0 in _sizes(node, 1))


def _quantization(node: Node) -> bool:
    x, scale, axis = _sizes(node, 0), _sizes(node, 1), node.integer("axis", 1)
    if node.shape(2) not in (None, scale):
        return False
    block = node.integer("block_size", 0)
    if block:
        along = axis % len(x) if x else 0
        return len(scale) == len(x) > along and scale == (*x[:along], -(-x[along] // block), *x[along + 1 :])
    return scale in ((), (1,)) or (len(scale) == 1 and -len(x) <= axis < len(x) and scale == (x[axis],))


def _place(node: Node) -> bool:
    """Whether there are elements to choose from: a maximum of no elements has no index."""
    data, axis = _sizes(node, 0), node.integer("axis", 0)
    return -len(data) <= axis < len(data) and data[axis] > 0


def _places(node: Node) -> bool:
    data, indices, batch = _sizes(node, 0), _sizes(node, 1), node.integer("batch_dims", 0)
    return bool(indices) and 0 < indices[-1] <= len(data) - batch and (0 not in data or 0 in indices) and indices[:batch] == data[:batch]


def _scattered(node: Node) -> bool:
    data, indices = _sizes(node, 0), _sizes(node, 1)
    if not indices or not 0 < indices[-1] <= len(data) or (0 in data and 0 not in indices):
        return False
    few = all(size <= 1 for size in indices[:-1]) or node.text("reduction", "none") != "none"
    return (few or _distinct(node.ints(1), indices[-1])) and node.shape(2) == (*indices[:-1], *data[indices[-1] :])


def _distinct(places: Sequence[Dim] | None, depth: int) -> bool:
    """Whether the places, of so many numbers each, are known to be different ones."""
    if places is None or not all(isinstance(number, int) and number >= 0 for number in places):
        return False
    rows = [tuple(places[start : start + depth]) for start in range(0, len(places), depth)]
    return len(set(rows)) == len(rows)


def _permutation(node: Node) -> bool:
    order = node.integers("perm")
    return order is None or sorted(order) == list(range(len(_sizes(node, 0))))


def _has_axes(node: Node) -> bool:
    return node.shape(0) != ()


def _names_axes(node: Node) -> bool:
    return node.ints(1) != ()


def _reshaped(node: Node) -> bool:
    """Whether the elements fill the new shape, in which zeros may copy a size and one size may be
    inferred.
    """
    x, wanted = _sizes(node, 0), node.ints(1)
    if wanted is None:
        return True
    copies = node.integer("allowzero", 0) == 0
    sizes = [x[place] if size == 0 and copies and place < len(x) else size for place, size in enumerate(wanted)]
    known = prod(size for size in sizes if isinstance(size, int) and size >= 0)
    return prod(x) == known if -1 not in sizes else sizes.count(-1) == 1 and known > 0 and prod(x) % known == 0


def _attended(node: Node) -> bool:
    """Whether batches, heads and positions agree."""
    query = _by_heads(_sizes(node, 0), node.integer("q_num_heads", 0))
    key, value = (_by_heads(_sizes(node, place), node.integer("kv_num_heads", 0)) for place in (1, 2))
    if not len(query) == len(key) == len(value) == 4:
        return False
    past = _sizes(node, 4)
    total = key[2] + (past[2] if len(past) == 4 else 0)
    grouped = key[1] > 0 and query[1] % key[1] == 0 and (query[0], query[3]) == (key[0], key[3]) and key[:3] == value[:3]
    mask = _sizes(node, 3)
    known = all(size in (1, whole) for size, whole in zip(mask[::-1], (total, query[2], query[1], query[0]), strict=False))
    return grouped and known and len(mask) <= 4 and mask[-1:] in ((), (total,))


def _by_heads(shape: tuple[int, ...], heads: int) -> tuple[int, ...]:
    """Returns the shape with an axis of heads, which three axes hold in the last one."""
    return (shape[0], heads, shape[1], shape[2] // heads) if len(shape) == 3 and heads and shape[2] % heads == 0 else shape


_WINDOWED: Final = frozenset("AveragePool Conv ConvInteger ConvTranspose LpPool MaxPool QLinearConv".split())
_CONVOLVED: Final = (
    "the data has as many channels as the weights have for all groups, the groups divide the output channels, a bias has one element for each of these, "
    "kernel_shape is that of the weights, and SAME adds no negative padding"
)
_POOLED: Final = (
    "the kernel has one size for each spatial axis, pads are smaller than the kernel, SAME windows are not dilated, and no axis but the batch is empty"
)
_EMPTY: Final = Law("no axis is empty: no elements have neither a mean nor a maximum", _not_empty)
_SCALED: Final = Law("the normalized axes are not empty, and scale and bias broadcast to them", _scale)
_CHOSEN: Final = Law("the axis is not empty: no elements have no maximum", _place)
_INDEXED: Final = Law(
    "indices have the rank of the data and no longer axes, updates have the shape of the indices; several updates of one element need a reduction", _elements
)
_QUANTIZED: Final = Law(
    "scale and zero point have one shape: a scalar, a vector as long as the axis, or that of the data with the axis divided by block_size", _quantization
)

_LAWS: Final[Mapping[str, Law]] = {
    **dict.fromkeys(("Conv", "ConvInteger"), Law(_CONVOLVED, _convolution(1))),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), Law(_POOLED, _pool)),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _SCALED),
    **dict.fromkeys(("GatherElements", "ScatterElements"), _INDEXED),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), _QUANTIZED),
    **dict.fromkeys(("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool", "MeanVarianceNormalization", "LRN"), _EMPTY),
    **dict.fromkeys(("ArgMax", "ArgMin"), _CHOSEN),
    "Attention": Law(
        "query, keys and values agree in batches and positions, the heads of the keys divide those of the query, and a mask broadcasts to the scores", _attended
    ),
    "BatchNormalization": Law("all inputs but the data are vectors of one element for each channel", _vectors),
    "Clip": Law("the bounds are scalars", _scalars),
    "ConvTranspose": Law(
        "the first axis of the weights is the channels of the data, which the groups divide, output_padding is smaller than the stride, "
        "and a bias has one element for each output channel",
        _transposed,
    ),
    "Gather": Law("an axis without elements takes no indices", _gather),
    "GatherND": Law("the last axis of the indices is at most the rank of the data without batch_dims, and the batches are alike", _places),
    "GroupNormalization": Law("the groups divide the channels, and scale and bias have one element for each channel", _groups),
    "InstanceNormalization": Law("scale and bias have one element for each channel, and no axis of the image is empty", _instances),
    "Mod": Law("floats need fmod = 1", _remainder),
    "PRelu": Law("the slope broadcasts to the data", _onto),
    "Pad": Law("a scalar has no axis to pad, and modes other than constant take no negative pads and no empty data", _pad),
    "QLinearConv": Law(_CONVOLVED, _convolution(3)),
    "ReverseSequence": Law("batch_axis and time_axis are 0 and 1, in either order, and not empty", _sequences),
    "Reshape": Law("the elements of the data fill the shape, in which one size may be -1", _reshaped),
    "ScatterND": Law("the updates have the shape of the chosen elements, and several updates of one element need a reduction", _scattered),
    "Slice": Law("a scalar has no axis to slice", _has_axes),
    "Squeeze": Law("axes is not an empty list, which some implementations read as none, and others as all", _names_axes),
    "Transpose": Law("perm names each axis of the data once", _permutation),
}
