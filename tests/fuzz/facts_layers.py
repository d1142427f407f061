"""Legal nodes of layers: windows, products, norms, recurrences, resampling, losses, attention."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from .facts_draw import BOOL, FLOAT, INT32, INT64, Case, Draw, Fixed, Free, Maker, floats, ints, scalar

_SAME = ("SAME_UPPER", "SAME_LOWER")
_BYTES = (TensorProto.UINT8, TensorProto.INT8)


def windows(draw: Draw, rank: int, kernel: list[int], modes: bool = True) -> dict[str, Any]:
    """Returns strides, dilations and padding of a window, as far as the version has them."""
    assert draw.schema is not None
    attributes = draw.some(strides=draw.numbers(rank, 1, 3), dilations=draw.numbers(rank, 1, 2))
    if modes and draw.chance(0.4):
        return attributes | draw.some(auto_pad=(*_SAME, *_SAME, "VALID"))
    return attributes | draw.some(pads=[draw.number(0, size - 1) for size in kernel * 2])


def image(draw: Draw, rank: int, channels: int, least: int = 3) -> Free:
    return Free((draw.size(), channels, *(draw.number(least, 9) for _ in range(rank))))


def pool(draw: Draw) -> Case:
    rank = draw.number(1, 2)
    kernel = draw.numbers(rank, 1, 3)
    attributes = {"kernel_shape": kernel} | windows(draw, rank, kernel) | draw.some(ceil_mode=1, count_include_pad=1, storage_order=1, p=(1, 3))
    assert draw.schema is not None
    return Case([image(draw, rank, draw.number(1, 3))], attributes, draw.number(1, draw.schema.max_output))


def unpool(draw: Draw) -> Case:
    n, c, h, w = draw.number(1, 2), draw.number(1, 2), draw.number(1, 3), draw.number(1, 3)
    kernel, strides = draw.numbers(2, 1, 3), draw.numbers(2, 1, 3)
    attributes: dict[str, Any] = {"kernel_shape": kernel} | draw.some(strides=strides, pads=[0, 0, 0, 0])
    steps = attributes.get("strides", [1, 1])
    sizes = [(size - 1) * step + length for size, step, length in zip((h, w), steps, kernel, strict=True)]
    wanted = ints(n, c, *(size + draw.number(0, 1) for size in sizes)) if draw.chance() else None
    return Case([Free((n, c, h, w), 0, 4), Free((n, c, h, w), 0, 0, INT64), wanted], attributes)


def convolution(draw: Draw) -> Case:
    group, rank = draw.number(1, 2), draw.number(1, 2)
    kernel = draw.numbers(rank, 1, 3)
    out = group * draw.number(1, 3)
    attributes = windows(draw, rank, kernel) | draw.some(kernel_shape=kernel) | ({"group": group} if group > 1 else {})
    x, w = image(draw, rank, 2 * group), Free((out, 2, *kernel))
    assert draw.schema is not None
    if draw.schema.name == "ConvInteger":
        a, b = draw.pick(*_BYTES), draw.pick(*_BYTES)
        return Case([x._replace(dtype=a), w._replace(dtype=b), draw.pick(None, Free((), 0, 3, a)), draw.pick(None, Free((), 0, 3, b))], attributes)
    if draw.schema.name == "QLinearConv":
        a = draw.pick(*_BYTES)
        one, zero = Free((), 1, 2, FLOAT), Free((), 0, 3, a)
        return Case([x._replace(dtype=a), one, zero, w._replace(dtype=a), one, zero, one, zero, draw.pick(None, Free((out,), dtype=INT32))], attributes)
    return Case([x, w, draw.pick(None, Free((out,)))], attributes)


def deformed(draw: Draw) -> Case:
    kernel, (n, h, w) = draw.numbers(2, 1, 3), (draw.number(1, 2), draw.number(3, 6), draw.number(3, 6))
    sizes = [h - kernel[0] + 1, w - kernel[1] + 1]
    group, apart = draw.number(1, 2), draw.number(1, 2)
    count = kernel[0] * kernel[1] * apart
    offset, mask = Free((n, 2 * count, *sizes)), draw.pick(None, Free((n, count, *sizes)))
    attributes = {"group": group, "offset_group": apart} | draw.some(kernel_shape=kernel, strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1])
    return Case([Free((n, 2, h, w)), Free((2, 2 // group, *kernel)), offset, draw.pick(None, Free((2,))), mask], attributes)


def transposed_convolution(draw: Draw) -> Case:
    group, rank = draw.number(1, 2), draw.number(1, 2)
    kernel, strides = draw.numbers(rank, 1, 3), draw.numbers(rank, 1, 3)
    x = image(draw, rank, 2 * group, 1)
    attributes: dict[str, Any] = (
        {"strides": strides} | draw.some(kernel_shape=kernel, dilations=draw.numbers(rank, 1, 2)) | ({"group": group} if group > 1 else {})
    )
    kind = draw.number(0, 2)
    if kind == 0:
        attributes["auto_pad"] = draw.pick(*_SAME, "VALID")
    elif kind == 1:
        attributes["output_shape"] = [max(1, size * stride - draw.number(0, 2)) for size, stride in zip(x.shape[2:], strides, strict=True)]
    else:
        attributes |= draw.some(pads=draw.numbers(2 * rank, 0, 1))
    if kind != 1:
        attributes |= draw.some(output_padding=[draw.number(0, stride - 1) for stride in strides])
    return Case([x, Free((2 * group, 3, *kernel)), draw.pick(None, Free((3 * group,)))], attributes)


def global_pool(draw: Draw) -> Case:
    return Case([image(draw, draw.number(1, 3), draw.number(1, 3), 1)], draw.some(p=(1, 3)))


def roi_pool(draw: Draw) -> Case:
    boxes = draw.number(1, 3)
    return Case([Free((1, 2, 6, 7)), Free((boxes, 5), 0, 0)], {"pooled_shape": draw.numbers(2, 1, 3)} | draw.some(spatial_scale=0.5))


def roi_align(draw: Draw) -> Case:
    boxes = draw.number(0, 3)
    attributes = draw.some(mode="max", output_height=draw.number(1, 3), output_width=draw.number(1, 3), sampling_ratio=2, spatial_scale=0.5)
    attributes |= draw.some(coordinate_transformation_mode="output_half_pixel")
    return Case([Free((2, 3, 5, 6)), Free((boxes, 4), 0, 3), Free((boxes,), 0, 1, INT64)], attributes)


def columns(draw: Draw) -> Case:
    kernel, sizes = draw.numbers(2, 1, 2), draw.numbers(2, 2, 5)
    blocks = (sizes[0] - kernel[0] + 1) * (sizes[1] - kernel[1] + 1)
    shape = (draw.number(1, 2), 2 * kernel[0] * kernel[1], blocks)
    return Case([Free(shape), ints(*sizes), ints(*kernel)], draw.some(strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1]))


def product(draw: Draw) -> Case:
    rows, inner, width = draw.size(), draw.size(), draw.size()
    a, b = draw.operands(2)
    shapes = [draw.pick((inner,), (rows, inner), (*a[:2], rows, inner)), draw.pick((inner,), (inner, width), (*b[:2], inner, width))]
    assert draw.schema is not None
    if draw.schema.name == "MatMulInteger":
        types = [draw.pick(*_BYTES), draw.pick(*_BYTES)]
        return Case([*(Free(shape, dtype=kind) for shape, kind in zip(shapes, types, strict=True)), *(draw.pick(None, Free((), 0, 3, kind)) for kind in types)])
    if draw.schema.name == "QLinearMatMul":
        kind = draw.pick(*_BYTES)
        one, zero = Free((), 1, 2, FLOAT), Free((), 0, 3, kind)
        return Case([Free(shapes[0], dtype=kind), one, zero, Free(shapes[1], dtype=kind), one, zero, one, zero])
    return Case([Free(shape) for shape in shapes])


def gemm(draw: Draw) -> Case:
    rows, inner, width = draw.size(), draw.size(), draw.size()
    attributes = draw.some(alpha=0.5, beta=2.0, transA=1, transB=1)
    a = (inner, rows) if "transA" in attributes else (rows, inner)
    b = (width, inner) if "transB" in attributes else (inner, width)
    c = Free(draw.pick((rows, width), (width,), (rows, 1), (), (1, width)))
    return Case([Free(a), Free(b), draw.pick(c, None) if draw.version >= 11 else c], attributes)


def einsum(draw: Draw) -> Case:
    sizes = {letter: draw.size() for letter in "bijk"}
    batch = draw.shape(1, 2)
    equation = draw.pick(
        "ij,jk->ik", "bij,bjk->bik", "bij,bjk", "ij->ji", "ii->i", "ii", "ij->", "i,j->ij", "...ij,...jk->...ik", "ij, jk", "b...->...b", "b..."
    )
    terms = equation.split("->")[0].split(",")
    shapes = [tuple(size for letter in term.strip().replace("...", ".") for size in (batch if letter == "." else (sizes[letter],))) for term in terms]
    return Case([Free(shape) for shape in shapes], {"equation": equation})


# --- norms and recurrences ---


def batch_normalization(draw: Draw) -> Case:
    shape = (draw.number(1, 3), draw.number(1, 4), *draw.shape(0, 2))
    channel = Free((shape[1],), 1, 2)
    trains = draw.version >= 14 and draw.chance(0.3)
    attributes = draw.some(epsilon=0.5, momentum=0.5, spatial=1) | ({"training_mode": 1} if trains else {})
    return Case([Free(shape), *[channel] * 4], attributes, 3 if trains else 1)


def channels(draw: Draw) -> Case:
    shape = (draw.size(), draw.size(), *draw.shape(1, 2))
    return Case([Free(shape), Free((shape[1],)), Free((shape[1],))], draw.some(epsilon=0.5))


def groups(draw: Draw) -> Case:
    count = draw.number(1, 2)
    shape = (draw.size(), count * draw.number(1, 2), *draw.shape(1, 2))
    return Case(
        [Free(shape), Free((shape[1],)), Free((shape[1],))],
        {"num_groups": count} | draw.some(epsilon=0.5, stash_type=(TensorProto.FLOAT16, TensorProto.BFLOAT16) if draw.chance(0.2) else FLOAT),
    )


def layer_norm(draw: Draw) -> Case:
    shape = draw.shape(1)
    axis = draw.number(-len(shape), len(shape) - 1)
    assert draw.schema is not None
    inner = Free(shape[axis:])
    bias = [draw.pick(None, inner)] if draw.schema.name == "LayerNormalization" else []
    return Case(
        [Free(shape), inner, *bias],
        {"axis": axis} | draw.some(epsilon=0.5, stash_type=(TensorProto.FLOAT16, TensorProto.BFLOAT16) if draw.chance(0.2) else FLOAT),
        draw.number(1, draw.schema.max_output),
    )


def mean_variance(draw: Draw) -> Case:
    return Case([Free((draw.number(1, 2), 3, *draw.numbers(2, 1, 4)))], draw.some(axes=draw.pick([0, 2, 3], [0, 1, 2, 3], [2, 3], [-1])))


def local(draw: Draw) -> Case:
    return Case([Free((draw.size(), 3, *draw.shape(1, 2)))], {"size": draw.pick(1, 3)} | draw.some(alpha=0.5, beta=0.5, bias=2.0))


def recurrence(gates: int, states: int) -> Maker:
    def make(draw: Draw) -> Case:
        length, batch, width, hidden = draw.size(), draw.number(1, 3), draw.number(1, 3), draw.number(1, 3)
        direction = draw.pick("forward", "reverse", "bidirectional")
        ways = 2 if direction == "bidirectional" else 1
        turned = draw.version >= 14 and draw.chance(0.3)
        names = {1: ["Relu"], 3: ["Sigmoid", "Tanh"], 4: ["Sigmoid", "Tanh", "Tanh"]}[gates] * ways
        attributes: dict[str, Any] = draw.some(hidden_size=hidden, clip=2.0, activations=names, input_forget=0, linear_before_reset=1)
        attributes |= draw.some(activation_alpha=[0.5] * len(names), activation_beta=[0.5] * len(names)) if draw.chance(0.2) else {}
        attributes |= ({"direction": direction} if ways == 2 or draw.chance() else {}) | ({"layout": 1} if turned else {})
        x = (batch, length, width) if turned else (length, batch, width)
        state = Free((batch, ways, hidden) if turned else (ways, batch, hidden))
        inputs: list[Free | Fixed | None] = [Free(x), Free((ways, gates * hidden, width)), Free((ways, gates * hidden, hidden))]
        inputs += [draw.pick(None, Free((ways, 2 * gates * hidden))), draw.pick(None, Free((batch,), min(length, 1), length, INT32))]
        inputs += [draw.pick(None, state) for _ in range(states)]
        if gates == 4:
            inputs.append(draw.pick(None, Free((ways, 3 * hidden))))
        return Case(inputs, attributes, draw.number(1, 1 + states))

    return make


# --- resampling and signals ---


def resize(draw: Draw) -> Case:
    shape = (draw.number(1, 2), draw.number(1, 2), draw.number(1, 10), draw.number(1, 10))
    shape = shape[draw.number(0, 2) :]
    scale = (1.0, 2.0, 0.5, 1.5, 0.7, 1.3, 3.0, 0.6, 0.1 + 0.2, 1 / 3)
    axes = draw.axes(len(shape)) if draw.version >= 18 and draw.chance() else None
    kept = len(shape) - 2 if len(shape) > 2 and axes is None else 0
    count = len(shape) if axes is None else len(axes)
    scales = floats(*[1.0] * kept, *(draw.pick(*scale) for _ in range(count - kept)))
    assert draw.schema is not None
    if draw.schema.name == "Upsample":
        up = [1.0] * kept + [draw.pick(1.0, 2.0, 1.5, 1.3, 3.0) for _ in range(count - kept)]
        mode = draw.some(mode=("nearest", "linear"))
        return Case([Free(shape)], mode | {"scales": up}) if draw.version < 9 else Case([Free(shape), floats(*up)], mode)
    if draw.version == 10:
        return Case([Free(shape), scales], draw.some(mode=("nearest", "linear")))
    places = range(len(shape)) if axes is None else [axis % len(shape) for axis in axes]
    sizes = ints(*(shape[axis] if place < kept else draw.number(1, 9) for place, axis in enumerate(places)))
    crops = draw.chance(0.2)
    modes = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", *(("half_pixel_symmetric",) if draw.version >= 19 else ()))
    attributes = draw.some(mode=("nearest", "linear", "cubic"), coordinate_transformation_mode=modes, cubic_coeff_a=-0.5, exclude_outside=1)
    attributes |= draw.some(nearest_mode=("floor", "ceil", "round_prefer_ceil"), extrapolation_value=1.0, antialias=1)
    attributes |= {} if axes is None else {"axes": axes}
    if crops:
        attributes["coordinate_transformation_mode"] = "tf_crop_and_resize"
    roi = floats(*[0.0] * count, *(draw.pick(1.0, 0.5) for _ in range(count))) if crops else floats() if draw.version < 13 else draw.pick(None, floats())
    if draw.chance():
        return Case([Free(shape), roi, scales], attributes)
    attributes |= draw.some(keep_aspect_ratio_policy=("not_larger", "not_smaller"))
    return Case([Free(shape), roi, floats() if draw.version < 13 else None, sizes], attributes)


def grid_sample(draw: Draw) -> Case:
    rank = 3 if draw.version >= 20 and draw.chance(0.3) else 2
    modes = ("linear", "nearest", "cubic") if draw.version >= 20 else ("bilinear", "nearest", "bicubic")
    n = draw.number(1, 2)
    x, grid = Free((n, 2, *draw.numbers(rank, 1, 4))), Free((n, *draw.numbers(rank, 1, 4), rank), -1, 1)
    return Case([x, grid], draw.some(mode=modes[: 2 if rank == 3 else 3], padding_mode=("border", "reflection"), align_corners=1))


def affine_grid(draw: Draw) -> Case:
    rank, n = draw.number(2, 3), draw.number(1, 2)
    return Case([Free((n, rank, rank + 1)), ints(n, 2, *draw.numbers(rank, 1, 4))], draw.some(align_corners=1))


def fourier(draw: Draw) -> Case:
    shape = (draw.number(1, 2), draw.number(2, 5), draw.number(2, 5), draw.pick(1, 1, 2))
    axis = draw.number(0, 2)
    inverse = draw.chance(0.3) and shape[3] == 2
    attributes = ({"inverse": 1} if inverse else draw.some(onesided=1) if shape[3] == 1 else {}) | draw.some(axis=axis)
    length = draw.pick(None, scalar(draw.number(2, 6)))
    return (
        Case([Free(shape), length], attributes)
        if draw.version < 20
        else Case([Free(shape), length, draw.pick(None, scalar(draw.pick(axis, axis - 4)))], attributes)
    )


def short_fourier(draw: Draw) -> Case:
    length, frame = draw.number(8, 12), draw.number(2, 5)
    window = draw.pick(None, Free((frame,), 0, 1))
    size = scalar(frame) if window is None or draw.chance() else None
    return Case([Free((draw.number(1, 2), length, 1)), scalar(draw.number(1, 3)), window, size], draw.some(onesided=(0, 1)))


def mel(draw: Draw) -> Case:
    parts = [scalar(draw.number(2, 4)), scalar(draw.pick(8, 16)), scalar(8000), scalar(0.0, np.float32), scalar(2000.0, np.float32)]
    return Case(parts, draw.some(output_datatype=(FLOAT, TensorProto.DOUBLE)))


def determinant(draw: Draw) -> Case:
    size = draw.number(1, 3)
    return Case([Free((*draw.shape(0, 2), size, size))])


def picture(draw: Draw) -> Case:
    data = b"P5\n2 2\n255\n\x00\x7f\x80\xff"
    return Case([Fixed(np.frombuffer(data, np.uint8))], draw.some(pixel_format=("RGB", "BGR", "Grayscale")))


# --- losses, detection, attention ---


def loss(draw: Draw) -> Case:
    n, c, rest = draw.number(1, 3), draw.number(1, 4), draw.shape(0, 2)
    attributes = draw.some(reduction=("none", "sum", "mean"), ignore_index=0)
    assert draw.schema is not None
    inputs = [Free((n, c, *rest)), Free((n, *rest), 0, c - 1, draw.pick(INT32, INT64)), draw.pick(None, Free((c,), 1, 2))]
    return Case(inputs, attributes, draw.number(1, draw.schema.max_output))


def suppression(draw: Draw) -> Case:
    batch, boxes = draw.number(1, 2), draw.number(1, 5)
    limits = [draw.pick(None, scalar(draw.number(0, 3))), draw.pick(None, floats(0.5)), draw.pick(None, floats(0.25))]
    return Case([Free((batch, boxes, 4), 0, 2), Free((batch, draw.number(1, 2), boxes), 0, 1), *limits], draw.some(center_point_box=1))


def dynamic(draw: Draw) -> Case:
    return Case([Free(draw.shape())], {}, 3)


def rotary(draw: Draw) -> Case:
    batch, heads, length, half = draw.number(1, 2), draw.number(1, 3), draw.number(1, 4), draw.number(1, 2)
    flat = draw.chance()
    x = Free((batch, length, heads * 2 * half)) if flat else Free((batch, heads, length, 2 * half))
    attributes = ({"num_heads": heads} if flat else {}) | draw.some(interleaved=1, rotary_embedding_dim=2 * half if draw.chance() else 0)
    if draw.chance():
        cache = Free((6, half))
        return Case([x, cache, cache, Free((batch, length), 0, 5, INT64)], attributes)
    cache = Free((batch, length, half))
    return Case([x, cache, cache], attributes)


def attention(draw: Draw) -> Case:
    batch, kv, length, total, size, value = draw.number(1, 2), draw.number(1, 2), draw.number(1, 4), draw.number(1, 5), draw.number(1, 3), draw.number(1, 3)
    heads, past = kv * draw.number(1, 2), draw.number(1, 2)
    flat, remembers = draw.chance(), draw.chance(0.3)
    if flat:
        q, k, v = (batch, length, heads * size), (batch, total, kv * size), (batch, total, kv * value)
    else:
        q, k, v = (batch, heads, length, size), (batch, kv, total, size), (batch, kv, total, value)
    attributes = {"q_num_heads": heads, "kv_num_heads": kv} if flat else {}
    attributes |= draw.some(is_causal=1, scale=0.5, softcap=2.0, qk_matmul_output_mode=(1, 2, 3), softmax_precision=FLOAT)
    attributes |= draw.some(left_window_size=1, right_window_size=1)
    mask = draw.pick(None, None, Free((length, total + past * remembers), dtype=draw.pick(BOOL, FLOAT)))
    memory = [Free((batch, kv, past, size)), Free((batch, kv, past, value))] if remembers else [None, None]
    outputs = draw.number(3, 4) if remembers else draw.pick(1, 3, 4)
    filled = [Free((batch,), 1, total, INT64)] if draw.version >= 24 and not remembers and draw.chance(0.2) else []
    return Case([Free(q, dtype=FLOAT), Free(k, dtype=FLOAT), Free(v, dtype=FLOAT), mask, *memory, *filled], attributes, 1 if filled else outputs)


LAYERS: dict[str, Maker] = {
    **dict.fromkeys("AveragePool LpPool MaxPool".split(), pool),
    **dict.fromkeys("Conv ConvInteger QLinearConv".split(), convolution),
    **dict.fromkeys("GlobalAveragePool GlobalLpPool GlobalMaxPool".split(), global_pool),
    **dict.fromkeys("MatMul MatMulInteger QLinearMatMul".split(), product),
    **dict.fromkeys("LayerNormalization RMSNormalization".split(), layer_norm),
    **dict.fromkeys("Resize Upsample".split(), resize),
    **dict.fromkeys("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss".split(), loss),
    "AffineGrid": affine_grid,
    "Attention": attention,
    "BatchNormalization": batch_normalization,
    "Col2Im": columns,
    "ConvTranspose": transposed_convolution,
    "DFT": fourier,
    "DeformConv": deformed,
    "Det": determinant,
    "DynamicQuantizeLinear": dynamic,
    "Einsum": einsum,
    "GRU": recurrence(3, 1),
    "Gemm": gemm,
    "GridSample": grid_sample,
    "GroupNormalization": groups,
    "ImageDecoder": picture,
    "InstanceNormalization": channels,
    "LRN": local,
    "LSTM": recurrence(4, 2),
    "MaxRoiPool": roi_pool,
    "MaxUnpool": unpool,
    "MeanVarianceNormalization": mean_variance,
    "MelWeightMatrix": mel,
    "NonMaxSuppression": suppression,
    "RNN": recurrence(1, 1),
    "RoiAlign": roi_align,
    "RotaryEmbedding": rotary,
    "STFT": short_fourier,
}
