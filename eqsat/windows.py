"""Output shapes of operators over space: those that move a window (convolutions, pools) and those that resample.

A window that is larger than the padded input is illegal by ONNX's definition, so that quotients need no sign.
"""

from __future__ import annotations

import math

import numpy as np
from onnx import helper

from eqsat.dims import Dim, add, ceildiv, floordiv, minimum, mul, sub
from eqsat.nodes import Node, Shape, from_front


def _spread(node: Node, name: str, rank: int, default: int) -> tuple[int, ...]:
    values = node.integers(name)
    return values if values is not None and len(values) == rank else (default,) * rank


def _window(node: Node, spatial: Shape, kernel: Shape) -> Shape:
    rank = len(spatial)
    strides, dilations = _spread(node, "strides", rank, 1), _spread(node, "dilations", rank, 1)
    pads = _spread(node, "pads", 2 * rank, 0)
    mode = node.text("auto_pad", "NOTSET")
    sizes: list[Dim] = []
    for axis, (size, length, stride, dilation) in enumerate(zip(spatial, kernel, strides, dilations, strict=True)):
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            sizes.append(ceildiv(size, stride))
            continue
        head, tail = (pads[axis], pads[axis + rank]) if mode == "NOTSET" else (0, 0)
        room = sub(add(size, head + tail - 1), mul(sub(length, 1), dilation))
        if node.integer("ceil_mode", 0) == 1:
            # The last window must begin inside the image or its head padding.
            sizes.append(minimum(add(ceildiv(room, stride), 1), ceildiv(add(size, head), stride)))
        else:
            sizes.append(add(floordiv(room, stride), 1))
    return tuple(sizes)


def _kernel(node: Node, rank: int, weight: Shape | None) -> Shape | None:
    stated = node.integers("kernel_shape")
    if stated is not None and len(stated) == rank:
        return stated
    return weight[2:] if weight is not None and len(weight) == rank + 2 else None


def convolution(node: Node, weight_input: int = 1) -> list[Shape] | None:
    """Conv and its kin: batch of the data, channels of the weights, and the windows that fit."""
    data, weight = node.shape(0), node.shape(weight_input)
    if data is None or len(data) < 3:
        return None
    kernel = _kernel(node, len(data) - 2, weight)
    spatial = (None,) * (len(data) - 2) if kernel is None else _window(node, data[2:], kernel)
    return [(data[0], weight[0] if weight else None, *spatial)]


def quantized_convolution(node: Node) -> list[Shape] | None:
    """QLinearConv, whose weights come fourth."""
    return convolution(node, 3)


def pool(node: Node) -> list[Shape] | None:
    """Pools: batch and channels of the data, and the windows that fit; each output alike."""
    data = node.shape(0)
    kernel = None if data is None else _kernel(node, len(data) - 2, None)
    if data is None or kernel is None:
        return None
    return [(*data[:2], *_window(node, data[2:], kernel))] * node.outputs


def global_pool(node: Node) -> list[Shape] | None:
    """Global pools: every spatial size becomes 1."""
    data = node.shape(0)
    return None if data is None or len(data) < 2 else [(*data[:2], *(1 for _ in data[2:]))]


def transposed_convolution(node: Node) -> list[Shape] | None:
    """ConvTranspose: the sizes a convolution would have come from."""
    data, weight = node.shape(0), node.shape(1)
    if data is None or len(data) < 3:
        return None
    rank = len(data) - 2
    channels = mul(weight[1], node.integer("group", 1)) if weight is not None and len(weight) == rank + 2 else None
    kernel, mode = _kernel(node, rank, weight), node.text("auto_pad", "NOTSET")
    stated = node.integers("output_shape")
    if stated is not None:
        spatial: Shape = stated if len(stated) == rank else (None,) * rank
    elif kernel is None:
        spatial = (None,) * rank
    else:
        strides, dilations, extra = _spread(node, "strides", rank, 1), _spread(node, "dilations", rank, 1), _spread(node, "output_padding", rank, 0)
        pads = _spread(node, "pads", 2 * rank, 0) if mode == "NOTSET" else (0,) * (2 * rank)
        spatial = tuple(
            add(mul(sub(data[axis + 2], 1), strides[axis]), mul(sub(kernel[axis], 1), dilations[axis]), 1 + extra[axis] - pads[axis] - pads[axis + rank])
            for axis in range(rank)
        )
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            # The padding that is wanted is not negative, so that a kernel shorter than its stride leaves less.
            spatial = tuple(minimum(size, mul(data[axis + 2], strides[axis])) for axis, size in enumerate(spatial))
    return [(data[0], channels, *spatial)]


def _scales(node: Node, position: int) -> tuple[float, ...] | None:
    stated = node.attributes.get("scales")
    if isinstance(stated, tuple):
        return tuple(float(scale) for scale in stated)
    fact = node.fact(position)
    if fact is None or fact.floats is None:
        return None
    return tuple(np.frombuffer(fact.floats, helper.tensor_dtype_to_np_dtype(fact.dtype).newbyteorder("<")).astype(float).tolist())


def _scaled(size: Dim, scale: float) -> Dim:
    """`size * scale` rounded down, where single precision does not change it."""
    if not math.isfinite(scale) or scale <= 0:
        return None
    if scale.is_integer():
        return mul(size, int(scale))
    # Only powers of two have an exact inverse.
    return floordiv(size, int(1 / scale)) if math.frexp(scale)[0] == 0.5 else None


def resize(node: Node) -> list[Shape] | None:
    """Resize and Upsample, by stated sizes or by scales whose products are exact."""
    shape = node.shape(0)
    if shape is None:
        return None
    axes = tuple(range(len(shape)))
    if "axes" in node.attributes:
        stated = tuple(from_front(axis, len(shape)) for axis in node.integers("axes") or ())
        axes = tuple(axis for axis in stated if axis is not None)
        if len(axes) != len(stated):
            return None
    late = node.operator.name == "Resize" and node.operator.version >= 11
    sizes: list[Dim] = list(shape)
    wanted = node.ints(3) if late else None
    scales = _scales(node, 2 if late else 1)
    if wanted and len(wanted) == len(axes) and node.text("keep_aspect_ratio_policy", "stretch") == "stretch":
        for axis, size in zip(axes, wanted, strict=True):
            sizes[axis] = size
    elif scales and len(scales) == len(axes) and node.text("coordinate_transformation_mode", "") != "tf_crop_and_resize":
        for axis, scale in zip(axes, scales, strict=True):
            sizes[axis] = _scaled(shape[axis], scale)
    else:
        return [tuple(None if axis in axes else size for axis, size in enumerate(shape))]
    return [tuple(sizes)]
