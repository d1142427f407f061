"""Output shapes of spatial operators: convolutions and pools, and operators that resample.

ONNX forbids windows larger than the padded input, so no quotient is negative.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from eqsat.facts.dims import Dim, add, ceildiv, floordiv, minimum, mul, nonnegative, product, sub, truncdiv, whole
from eqsat.facts.element_bytes import decoded
from eqsat.facts.node import Node, Shape, from_front


def _spread(node: Node, name: str, rank: int, default: int) -> tuple[int, ...]:
    values = node.integers(name)
    return values if values is not None and len(values) == rank else (default,) * rank


def _window(node: Node, spatial: Shape, kernel: Shape, pools: bool = False) -> Shape:
    rank = len(spatial)
    strides, dilations = _spread(node, "strides", rank, 1), _spread(node, "dilations", rank, 1)
    pads = _spread(node, "pads", 2 * rank, 0)
    mode = node.text("auto_pad", "NOTSET")
    sizes: list[Dim] = []
    for axis, (size, length, stride, dilation) in enumerate(zip(spatial, kernel, strides, dilations, strict=True)):
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            # Engines disagree about dilated pools.
            sizes.append(None if pools and dilation != 1 else ceildiv(size, stride))
            continue
        head, tail = (pads[axis], pads[axis + rank]) if mode == "NOTSET" else (0, 0)
        room = sub(add(size, head + tail - 1), mul(sub(length, 1), dilation))
        if node.integer("ceil_mode", 0) == 1:
            sizes.append(_rounded_up(add(ceildiv(room, stride), 1), ceildiv(add(size, head), stride), node.operator.version >= 22))
        else:
            sizes.append(add(_quotient(room, stride), 1))
    return tuple(sizes)


def _quotient(room: Dim, stride: int) -> Dim:
    """Return the quotient of a room that legal nodes have, so it may be rounded towards 0 or down.

    Exporters compute the same size by an integer division. Its form is used if it has no second
    part for rooms below 0.
    """
    return truncdiv(room, stride) if nonnegative(add(room, stride - 1)) else floordiv(room, stride)


def _rounded_up(windows: Dim, inside: Dim, agreed: bool) -> Dim:
    """Return the number of windows of a pool with ceil_mode.

    No window may begin behind the image and its head padding. ONNX's inference ignored this before
    opset 22.
    """
    return minimum(windows, inside) if agreed or nonnegative(sub(inside, windows)) else None


def _kernel(node: Node, rank: int, weight: Shape | None) -> Shape | None:
    given = node.integers("kernel_shape")
    if given is not None and len(given) == rank:
        return given
    return weight[2:] if weight is not None and len(weight) == rank + 2 else None


def convolution(node: Node, weight_input: int = 1) -> list[Shape] | None:
    """Conv and its variants: the data's batch, the weights' channels, the windows that fit."""
    data, weight = node.shape(0), node.shape(weight_input)
    if data is None or len(data) < 3:
        return None
    kernel = _kernel(node, len(data) - 2, weight)
    spatial = (None,) * (len(data) - 2) if kernel is None else _window(node, data[2:], kernel)
    return [(data[0], weight[0] if weight else None, *spatial)]


def quantized_convolution(node: Node) -> list[Shape] | None:
    """QLinearConv, whose weights are the fourth input."""
    return convolution(node, 3)


def pool(node: Node) -> list[Shape] | None:
    """Pools: batch and channels of the data, and the windows that fit; all outputs are alike."""
    data = node.shape(0)
    kernel = None if data is None else _kernel(node, len(data) - 2, None)
    if data is None or kernel is None:
        return None
    return [(*data[:2], *_window(node, data[2:], kernel, pools=True))] * node.outputs


def global_pool(node: Node) -> list[Shape] | None:
    """Global pools: every spatial size becomes 1."""
    data = node.shape(0)
    return None if data is None or len(data) < 2 else [(*data[:2], *(1 for _ in data[2:]))]


def transposed_convolution(node: Node) -> list[Shape] | None:
    """ConvTranspose: the sizes whose convolution gives the input."""
    data, weight = node.shape(0), node.shape(1)
    if data is None or len(data) < 3:
        return None
    rank = len(data) - 2
    channels = mul(weight[1], node.integer("group", 1)) if weight is not None and len(weight) == rank + 2 else None
    kernel, mode = _kernel(node, rank, weight), node.text("auto_pad", "NOTSET")
    given = node.integers("output_shape")
    if given is not None:
        spatial: Shape = given if len(given) == rank else (None,) * rank
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
            wanted = [mul(size, stride) for size, stride in zip(data[2:], strides, strict=True)]
            spatial = tuple(_cropped(a, b) if not any(extra) else None for a, b in zip(spatial, wanted, strict=True))
    return [(data[0], channels, *spatial)]


def _cropped(size: Dim, wanted: Dim) -> Dim:
    """Return the size that SAME requires.

    Where a kernel is shorter than its stride, engines disagree about the missing part.
    """
    return wanted if nonnegative(sub(size, wanted)) else None


def _scales(node: Node, position: int) -> tuple[float, ...] | None:
    given = node.attributes.get("scales")
    if isinstance(given, tuple):
        return tuple(float(scale) for scale in given)
    fact = node.fact(position)
    if fact is None or fact.floats is None:
        return None
    return tuple(decoded(fact.floats, fact.dtype).astype(float).tolist())


def _scaled(size: Dim, scale: float) -> Dim:
    """Return `size * scale` rounded down, if single and double precision agree on it."""
    if not math.isfinite(scale) or scale <= 0:
        return None
    if isinstance(size, int):
        products = (math.floor(np.float32(size) * np.float32(scale)), math.floor(size * scale), math.floor(size * Fraction(scale)))
        return whole(products[0]) if len(set(products)) == 1 else None
    if scale.is_integer():
        return mul(size, int(scale))
    # Only powers of two have an exact inverse.
    return floordiv(size, int(1 / scale)) if math.frexp(scale)[0] == 0.5 else None


def resize(node: Node) -> list[Shape] | None:
    """Resize and Upsample: by given sizes, or by scales with exact products."""
    shape = node.shape(0)
    if shape is None:
        return None
    axes = tuple(range(len(shape)))
    if "axes" in node.attributes:
        given = tuple(from_front(axis, len(shape)) for axis in node.integers("axes") or ())
        axes = tuple(axis for axis in given if axis is not None)
        if len(axes) != len(given):
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


def unpool(node: Node) -> list[Shape] | None:
    """MaxUnpool: the given output sizes, or those of the pool's input."""
    data, kernel = node.shape(0), node.integers("kernel_shape")
    if data is None or kernel is None or len(kernel) != len(data) - 2:
        return None
    if node.fact(2) is not None:
        wanted = node.parameter("output_shape", 2)
        return None if wanted is None or len(wanted) != len(data) else [wanted]
    rank = len(kernel)
    strides, pads = _spread(node, "strides", rank, 1), _spread(node, "pads", 2 * rank, 0)
    places = zip(data[2:], kernel, strides, pads[:rank], pads[rank:], strict=True)
    return [(*data[:2], *(add(mul(sub(size, 1), stride), length - head - tail) for size, length, stride, head, tail in places))]


def columns(node: Node) -> list[Shape] | None:
    """Col2Im: the given image sizes; the blocks divide the channels."""
    data, image, block = node.shape(0), node.parameter("image_shape", 1), node.parameter("block_shape", 2)
    if data is None or len(data) != 3 or image is None or block is None:
        return None
    return [(data[0], floordiv(data[1], product(block)), *image)]


def fourier(node: Node) -> list[Shape] | None:
    """DFT: the given length, halved if `onesided`, and two parts per complex number."""
    shape, late = node.shape(0), node.operator.version >= 20
    if shape is None or not shape:
        return None
    if late and node.fact(2) is not None:
        given = node.ints(2)
        axis = from_front(given[0] if given else None, len(shape))
    else:
        axis = from_front(-2, len(shape)) if late else node.axis(len(shape), 1)
    if axis is None or axis == len(shape) - 1:
        return [(None,) * len(shape)]
    lengths = node.ints(1)
    size = shape[axis] if node.fact(1) is None else lengths[0] if lengths is not None and len(lengths) == 1 else None
    parts: Dim = 2
    if node.integer("onesided", 0):
        size, parts = (None, None) if node.integer("inverse", 0) else (add(floordiv(size, 2), 1), 2)
    return [(*shape[:axis], size, *shape[axis + 1 : -1], parts)]
