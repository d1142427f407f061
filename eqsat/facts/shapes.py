"""Output shapes with symbolic sizes: a table from operator names to functions of a `Node`.

A function returns the shapes of the first outputs, with None for an unknown size, or None if
nothing is known. A shape is correct at all sizes at which the node is legal and runs. A function
returns None for an illegal axis or parameter. A size is unknown if the runtime, ONNX's inference
and its reference disagree on it.

ONNX's own inference covers every operator, but without named sizes. This table covers the operators
whose outputs can have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from eqsat.facts.dims import Dim, add, bounds, ceildiv, floordiv, maximum, minimum, mul, nonnegative, sub
from eqsat.facts.gather_shapes import (
    compress,
    gather,
    gather_elements,
    gather_nd,
    grid_sample,
    non_zero,
    one_hot,
    roi_align,
    roi_pool,
    suppressed,
    top_k,
    unique,
)
from eqsat.facts.layout_shapes import depth_to_space, expand, flatten, reshape, space_to_depth, squeeze, transpose, unsqueeze
from eqsat.facts.node import Node, Shape, alike, broadcast, float_number, from_front
from eqsat.facts.product_shapes import (
    attention,
    batch_normalization,
    determinant,
    einsum,
    fused_matmul,
    gemm,
    layer_normalization,
    loss,
    matmul,
    multi_head_attention,
    quantized_matmul,
    recurrence,
    skip_normalization,
)
from eqsat.facts.window_shapes import columns, convolution, fourier, global_pool, pool, quantized_convolution, resize, transposed_convolution, unpool
from eqsat.families import FAMILIES

# Exporters write "to the end" as the largest int32 or int64. We assume that no axis is longer than
# the largest int32.
UNBOUNDED = 2**31 - 1
# As the end of a backward slice, these mean "to the front" to ONNX Runtime and an empty slice to
# ONNX.
TO_THE_END = frozenset({2**31 - 1, 2**63 - 1})


def _elementwise(node: Node) -> list[Shape] | None:
    if node.operator.version < 7 and "broadcast" in node.attributes:
        first = node.shape(0)  # the second input is broadcast to the first
        return None if first is None else [first]
    shapes = [None if fact is None else fact.shape for fact in node.inputs]
    known = [shape for shape in shapes if shape is not None]
    return [broadcast(*known)] if known and len(known) == len(shapes) else None


def _same(node: Node) -> list[Shape] | None:
    shape = node.shape(0)
    return None if shape is None else [shape] * node.outputs


def _slope(node: Node) -> list[Shape] | None:
    # ONNX broadcasts the slope to the data only; ONNX Runtime broadcasts both.
    return _same(node) if node.operator.version < 7 else _elementwise(node)


def _quantized_dynamically(node: Node) -> list[Shape] | None:
    shape = node.shape(0)
    return None if shape is None else [shape, (), ()]


def _concat(node: Node) -> list[Shape] | None:
    shapes = [None if fact is None else fact.shape for fact in node.inputs]
    known = [shape for shape in shapes if shape is not None]
    if not known or len({len(shape) for shape in known}) > 1:
        return None
    axis = node.axis(len(known[0]), 1)
    if axis is None:
        return None
    total = add(*(None if shape is None else shape[axis] for shape in shapes))
    return [tuple(total if position == axis else alike(*dims) for position, dims in enumerate(zip(*known, strict=True)))]


def slice_axes(node: Node, rank: int) -> list[tuple[int, Dim, Dim, int]] | None:
    """Return (axis, start, end, step) of each sliced axis; None if axes or steps are unknown."""
    starts, ends = node.parameter("starts", 1), node.parameter("ends", 2)
    if starts is None or ends is None or len(starts) != len(ends):
        return None
    axes = node.axes(rank, 3) if node.given("axes", 3) else tuple(range(len(starts)))
    steps = node.ints(4) if node.fact(4) is not None else (1,) * len(starts)
    if axes is None or steps is None or not len(axes) == len(steps) == len(starts) <= rank or len(set(axes)) != len(axes):
        return None
    if any(end in TO_THE_END and (step is None or (isinstance(step, int) and step < 0)) for end, step in zip(ends, steps, strict=True)):
        return None
    known = [step for step in steps if isinstance(step, int) and step]
    return list(zip(axes, starts, ends, known, strict=True)) if len(known) == len(steps) else None


def _slice(node: Node) -> list[Shape] | None:
    shape = node.shape(0)
    if shape is None:
        return None
    cuts = slice_axes(node, len(shape))
    if cuts is None:
        known = node.axes(len(shape), 3) if node.given("axes", 3) else None
        return [tuple(None if known is None or axis in known else dim for axis, dim in enumerate(shape))]
    sizes = list(shape)
    for axis, start, end, step in cuts:
        sizes[axis] = _slice_size(shape[axis], start, end, step)
    return [tuple(sizes)]


def _below_zero(value: Dim) -> bool | None:
    lower, upper = bounds(value)
    return True if upper is not None and upper < 0 else False if lower is not None and lower >= 0 else None


def _slice_size(size: Dim, start: Dim, end: Dim, step: int) -> Dim:
    backward_start, backward_end = _below_zero(start), _below_zero(end)
    if size is None or start is None or end is None or backward_start is None or backward_end is None:
        return None
    # Each bound is a list of candidates: the least stop and the greatest start count. One minimum
    # over all differences replaces a minimum inside each bound.
    if step > 0:
        begins = [0, add(size, start)] if backward_start else [start]
        stops = [add(size, end)] if backward_end else [size] if isinstance(end, int) and end >= UNBOUNDED else [end, size]
        spans = [sub(stop, begin) for stop in stops for begin in begins]
        return maximum(0, ceildiv(minimum(*spans), step))
    last = sub(size, 1)
    if backward_start:
        # Before the front, ONNX begins at the first element, and its reference nowhere.
        if start != -1 and not nonnegative(add(size, start)):
            return None
        begins = [add(size, start)]
    else:
        begins = [last] if isinstance(start, int) and start >= UNBOUNDED else [start, last]
    if isinstance(end, int) and end <= -UNBOUNDED:
        stops: list[Dim] = [-1]
    else:
        stops = [-1, add(size, end)] if backward_end else [end]
    spans = [sub(begin, stop) for stop in stops for begin in begins]
    return maximum(0, ceildiv(minimum(*spans), -step))


def _constant_of_shape(node: Node) -> list[Shape] | None:
    wanted = node.parameter("shape", 0)
    return None if wanted is None else [wanted]


def split_sizes(node: Node, size: Dim) -> Shape | None:
    """Return the sizes of the pieces of an axis of length `size`."""
    if node.given("split", 1):
        sizes = node.parameter("split", 1)
        return sizes if sizes is not None and len(sizes) == node.outputs else None
    parts = node.integer("num_outputs", node.outputs)
    if parts != node.outputs or parts < 1:
        return None
    if node.operator.version < 18:
        return (floordiv(size, parts),) * parts
    whole = ceildiv(size, parts)
    return (*(whole,) * (parts - 1), sub(size, mul(whole, parts - 1)))


def _split(node: Node) -> list[Shape] | None:
    shape = node.shape(0)
    axis = None if shape is None else node.axis(len(shape), 0)
    if shape is None or axis is None:
        return None
    sizes = split_sizes(node, shape[axis]) or (None,) * node.outputs
    return [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]


def _tile(node: Node) -> list[Shape] | None:
    shape, repeats = node.shape(0), node.ints(1)
    if shape is None or node.operator.version < 6:
        return None
    if repeats is None or len(repeats) != len(shape):
        return [(None,) * len(shape)]
    return [tuple(mul(size, count) for size, count in zip(shape, repeats, strict=True))]


def _pad(node: Node) -> list[Shape] | None:
    shape = node.shape(0)
    if shape is None:
        return None
    pads = node.parameter("paddings" if node.operator.version < 2 else "pads", 1)
    axes = node.axes(len(shape), 3) if node.fact(3) is not None else tuple(range(len(shape)))
    if pads is None or axes is None or len(pads) != 2 * len(axes):
        return [(None,) * len(shape)]
    sizes = list(shape)
    for position, axis in enumerate(axes):
        sizes[axis] = add(sizes[axis], pads[position], pads[position + len(axes)])
    return [tuple(sizes)]


def _range(node: Node) -> list[Shape] | None:
    numbers = [float_number(node.fact(position)) for position in range(3)]
    if None not in numbers:
        return [(_count(*numbers),)]
    bounds_ = [node.ints(position) for position in range(3)]
    start, limit, delta = (None if elements is None or len(elements) != 1 else elements[0] for elements in bounds_)
    return [(range_length(start, limit, delta),)]


def _count(start: Any, limit: Any, delta: Any) -> Dim:
    """Return the length of a floating-point Range.

    It is known if exact arithmetic, double precision and the type's own arithmetic agree.
    """
    with np.errstate(all="ignore"):
        quotients = [(limit - start) / delta, (float(limit) - float(start)) / float(delta)] if delta else [math.nan]
    if not all(map(math.isfinite, (*quotients, start, limit, delta))):
        return None
    found = {math.ceil(quotient) for quotient in (*quotients, (Fraction(float(limit)) - Fraction(float(start))) / Fraction(float(delta)))}
    return max(0, found.pop()) if len(found) == 1 else None


def range_length(start: Dim, limit: Dim, delta: Dim) -> Dim:
    """Return the length of an integer Range whose step is a number."""
    return maximum(0, ceildiv(sub(limit, start), delta)) if isinstance(delta, int) else None


def _reduce(node: Node) -> list[Shape] | None:
    shape = node.shape(0)
    if shape is None:
        return None
    keep = node.integer("keepdims", 1) == 1
    axes = node.axes(len(shape), 1) if node.given("axes", 1) else ()
    if axes is None:
        return [(None,) * len(shape)] if keep else None
    if not axes:
        # An empty list of axes means all axes, unless `noop_with_empty_axes` is set.
        axes = () if node.integer("noop_with_empty_axes", 0) else tuple(range(len(shape)))
    return [tuple(1 if axis in axes else dim for axis, dim in enumerate(shape) if keep or axis not in axes)]


def _arg_extreme(node: Node) -> list[Shape] | None:
    shape = node.shape(0)
    axis = None if shape is None else node.axis(len(shape), 0)
    if shape is None or axis is None:
        return None
    return [(*shape[:axis], *((1,) if node.integer("keepdims", 1) == 1 else ()), *shape[axis + 1 :])]


def _center_crop_pad(node: Node) -> list[Shape] | None:
    shape, wanted = node.shape(0), node.ints(1)
    if shape is None:
        return None
    given = node.integers("axes")
    axes = tuple(range(len(shape))) if given is None else tuple(from_front(axis, len(shape)) for axis in given)
    if wanted is None or len(wanted) != len(axes):
        return [tuple(None if axis in axes else dim for axis, dim in enumerate(shape))]
    sizes = dict(zip(axes, (size if nonnegative(size) else None for size in wanted), strict=True))
    return [tuple(sizes.get(axis, dim) for axis, dim in enumerate(shape))]


def _affine_grid(node: Node) -> list[Shape] | None:
    sizes = node.parameter("size", 1)
    return None if sizes is None or len(sizes) not in (4, 5) else [(sizes[0], *sizes[2:], len(sizes) - 2)]


def _multinomial(node: Node) -> list[Shape] | None:
    shape = node.shape(0)
    return None if not shape else [(shape[0], node.integer("sample_size", 1))]


def _split_text(node: Node) -> list[Shape] | None:
    shape = node.shape(0)
    return None if shape is None else [(*shape, None), shape]


def _counted(node: Node) -> list[Shape] | None:
    shape, indices = node.shape(0), node.integers("ngram_indexes")
    return None if not shape or not indices else [(*shape[:-1], max(indices) + 1)]


ShapeFunction = Callable[[Node], "list[Shape] | None"]

_SAME = """Bernoulli BitCast Cast CastLike Clip CumProd CumSum DequantizeLinear Dropout EyeLike GroupNormalization Hardmax Identity
    InstanceNormalization LRN LogSoftmax LpNormalization MeanVarianceNormalization QLinearLeakyRelu QLinearSigmoid QuantizeLinear QuickGelu
    RMSNormalization RandomNormalLike RandomUniformLike RegexFullMatch ReverseSequence RotaryEmbedding Scatter ScatterElements ScatterND
    Softmax TensorScatter Trilu"""

SHAPES: dict[str, ShapeFunction] = {
    **dict.fromkeys((*FAMILIES["unary"].members, *_SAME.split()), _same),
    **dict.fromkeys((*FAMILIES["binary"].members, *FAMILIES["variadic"].members, "StringConcat", "Where"), _elementwise),
    **dict.fromkeys(FAMILIES["reduction"].members, _reduce),
    **dict.fromkeys("AveragePool LpPool MaxPool".split(), pool),
    **dict.fromkeys("GlobalAveragePool GlobalLpPool GlobalMaxPool".split(), global_pool),
    **dict.fromkeys("Conv ConvInteger DeformConv".split(), convolution),
    **dict.fromkeys("ArgMax ArgMin".split(), _arg_extreme),
    **dict.fromkeys("DynamicQuantizeMatMul MatMul MatMulInteger MatMulIntegerToFloat".split(), matmul),
    **dict.fromkeys("SkipLayerNormalization SkipSimplifiedLayerNormalization".split(), skip_normalization),
    **dict.fromkeys("Resize Upsample".split(), resize),
    **dict.fromkeys("GRU LSTM RNN".split(), recurrence),
    **dict.fromkeys("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss".split(), loss),
    "AffineGrid": _affine_grid,
    "Attention": attention,
    "MultiHeadAttention": multi_head_attention,
    "BatchNormalization": batch_normalization,
    "CenterCropPad": _center_crop_pad,
    "Col2Im": columns,
    "Compress": compress,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "ConvTranspose": transposed_convolution,
    "DFT": fourier,
    "DepthToSpace": depth_to_space,
    "Det": determinant,
    "DynamicQuantizeLinear": _quantized_dynamically,
    "Einsum": einsum,
    "Expand": expand,
    "Flatten": flatten,
    "FusedMatMul": fused_matmul,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Gemm": gemm,
    "GridSample": grid_sample,
    "LayerNormalization": layer_normalization,
    "MaxRoiPool": roi_pool,
    "MaxUnpool": unpool,
    "Multinomial": _multinomial,
    "NonMaxSuppression": suppressed,
    "NonZero": non_zero,
    "OneHot": one_hot,
    "Pad": _pad,
    "PRelu": _slope,
    "QLinearConv": quantized_convolution,
    "QLinearMatMul": quantized_matmul,
    "Range": _range,
    "Reshape": reshape,
    "RoiAlign": roi_align,
    "Slice": _slice,
    "SpaceToDepth": space_to_depth,
    "Split": _split,
    "Squeeze": squeeze,
    "StringSplit": _split_text,
    "TfIdfVectorizer": _counted,
    "Tile": _tile,
    "TopK": top_k,
    "Transpose": transpose,
    "Unique": unique,
    "Unsqueeze": unsqueeze,
}
