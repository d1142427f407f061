"""Random legal nodes in the spelling of older opsets, by operator and version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto

from eqsat.spelling.versions import CHANGES

Array = np.ndarray[Any, Any]


class Instance(NamedTuple):
    """A legal node of an old version."""

    attributes: Mapping[str, Any]
    values: Sequence[Any]
    outputs: int = 1


class Draw:
    """Random choices, the same for the same seed."""

    def __init__(self, *seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def number(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def chance(self) -> bool:
        return self.number(0, 1) == 1

    def choice(self, *items: Any) -> Any:
        return items[self.number(0, len(items) - 1)]

    def some(self, **attributes: Any) -> dict[str, Any]:
        """Returns some of the attributes."""
        return {name: value for name, value in attributes.items() if self.chance()}

    def shape(self, low: int = 1, high: int = 4) -> tuple[int, ...]:
        return tuple(self.number(1, 4) for _ in range(self.number(low, high)))

    def tensor(self, *shape: int, dtype: Any = np.float32) -> Array:
        return np.asarray(self.random.normal(size=shape) * 4).astype(dtype)

    def axis(self, rank: int, version: int) -> int:
        """Returns an axis. Negative axes came with opset 11."""
        return self.number(-rank if version >= 11 else 0, rank - 1)

    def axes(self, rank: int, version: int) -> list[int]:
        found = self.random.permutation(rank)[: self.number(1, rank)].tolist()
        return [axis - rank if version >= 11 and self.chance() else axis for axis in found]


def ints(*items: int) -> Array:
    return np.array(items, np.int64)


def operands(dtype: Any) -> Callable[[Draw, int], Instance]:
    def make(draw: Draw, version: int) -> Instance:
        shape = draw.shape(2)
        kind = draw.number(0, 2)
        second = shape if kind == 0 else shape[draw.number(0, len(shape) - 1) :] if kind == 1 else draw.choice((), (1,))
        attributes = {"broadcast": 1} if version < 7 and kind else {}
        if version < 7 and kind == 1 and draw.chance():
            attributes["axis"] = len(shape) - len(second)
        return Instance(attributes, (draw.tensor(*shape, dtype=dtype), draw.tensor(*second, dtype=dtype)))

    return make


def several(draw: Draw, version: int) -> Instance:
    shape = draw.shape()
    return Instance({}, [draw.tensor(*shape) for _ in range(draw.number(1, 3))])


def softmax(draw: Draw, version: int) -> Instance:
    shape = draw.shape(2)
    axis = draw.axis(len(shape), version)
    if draw.chance():
        shape = tuple(1 if place > axis % len(shape) else size for place, size in enumerate(shape))
    return Instance({"axis": axis}, (draw.tensor(*shape),))


def reduction(draw: Draw, version: int) -> Instance:
    x = abs(draw.tensor(*draw.shape())) + 1
    axes = draw.axes(x.ndim, version)
    attributes = draw.some(keepdims=draw.number(0, 1))
    if version < 18:
        return Instance(attributes | draw.some(axes=axes), (x,))
    attributes |= draw.some(noop_with_empty_axes=draw.number(0, 1))
    return Instance(attributes, (x, draw.choice(ints(*axes), ints(), None)))


def reduced_sum(draw: Draw, version: int) -> Instance:
    return reduction(draw, 18 if version == 13 else version)


def pool(name: str) -> Callable[[Draw, int], Instance]:
    def make(draw: Draw, version: int) -> Instance:
        rank = draw.number(1, 2)
        kernel = [draw.number(1, 3) for _ in range(rank)]
        attributes: dict[str, Any] = {"kernel_shape": kernel} | draw.some(strides=[draw.number(1, 3) for _ in range(rank)])
        mode = draw.choice("NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
        if mode != "NOTSET":
            attributes["auto_pad"] = mode
        else:
            attributes |= draw.some(pads=[draw.number(0, size - 1) for size in kernel * 2])
            if version >= {"AveragePool": 10, "MaxPool": 10, "LpPool": 18}[name]:
                attributes |= draw.some(ceil_mode=1)
            if version >= {"AveragePool": 19, "MaxPool": 10, "LpPool": 18}[name]:
                attributes |= draw.some(dilations=[draw.number(1, 2) for _ in range(rank)])
        if name == "AveragePool" and version >= 7:
            attributes |= draw.some(count_include_pad=1)
        if name == "MaxPool" and version >= 8 and draw.chance():
            return Instance(attributes | draw.some(storage_order=draw.number(0, 1)), (draw.tensor(2, 2, *(draw.number(5, 8) for _ in range(rank))),), 2)
        return Instance(attributes, (draw.tensor(2, 2, *(draw.number(5, 8) for _ in range(rank))),))

    return make


def batch_normalization(draw: Draw, version: int) -> Instance:
    x = draw.tensor(2, 3, *draw.shape(0, 2))
    attributes: dict[str, Any] = draw.some(epsilon=0.5, momentum=0.25)
    if version < 7:
        attributes["is_test"] = 1
    if version < 9:
        attributes |= draw.some(spatial=1)
    return Instance(attributes, (x, draw.tensor(3), draw.tensor(3), draw.tensor(3), abs(draw.tensor(3))))


def cast(draw: Draw, version: int) -> Instance:
    to = draw.choice("FLOAT", "DOUBLE", "INT32", "BOOL", "FLOAT16")
    return Instance({"to": to if version < 6 else TensorProto.DataType.Value(to)}, (draw.tensor(*draw.shape()),))


def clip(draw: Draw, version: int) -> Instance:
    x = draw.tensor(*draw.shape(), dtype=draw.choice(np.float32, np.float32, np.float64) if version > 11 else np.float32)
    if version < 11:
        return Instance(draw.some(min=-1.5, max=2.5), (x,))
    return Instance({}, (x, draw.choice(None, np.array(-1.5, x.dtype)), draw.choice(None, np.array(2.5, x.dtype))))


def concat(draw: Draw, version: int) -> Instance:
    shape = draw.shape(2)
    axis = draw.axis(len(shape), version)
    parts = [draw.tensor(*(draw.number(1, 3) if place == axis % len(shape) else size for place, size in enumerate(shape))) for _ in range(draw.number(1, 3))]
    return Instance({} if version < 4 and axis == 1 else {"axis": axis}, parts)


def convolution(draw: Draw, version: int) -> Instance:
    group, rank = draw.number(1, 2), draw.number(1, 2)
    kernel = [draw.number(1, 3) for _ in range(rank)]
    attributes = draw.some(strides=[draw.number(1, 3) for _ in range(rank)], kernel_shape=kernel) | {"group": group}
    if draw.chance():
        attributes["auto_pad"] = draw.choice("VALID", "SAME_UPPER", "SAME_LOWER")
    else:
        attributes |= draw.some(pads=[draw.number(0, 2) for _ in range(2 * rank)], dilations=[draw.number(1, 2) for _ in range(rank)])
    x, w = draw.tensor(2, 2 * group, *(draw.number(5, 8) for _ in range(rank))), draw.tensor(3 * group, 2, *kernel)
    return Instance(attributes, (x, w, draw.choice(None, draw.tensor(3 * group))))


def transposed_convolution(draw: Draw, version: int) -> Instance:
    group, rank = draw.number(1, 2), draw.number(1, 2)
    kernel, strides = [draw.number(1, 3) for _ in range(rank)], [draw.number(1, 3) for _ in range(rank)]
    attributes = {"strides": strides, "group": group} | draw.some(kernel_shape=kernel, dilations=[draw.number(1, 2) for _ in range(rank)])
    sizes = [draw.number(3, 5) for _ in range(rank)]
    kind = draw.number(0, 2)
    if kind == 0:
        attributes["auto_pad"] = draw.choice("VALID", "SAME_UPPER", "SAME_LOWER")
    elif kind == 1:
        attributes["output_shape"] = [size * stride - draw.number(0, 2) for size, stride in zip(sizes, strides, strict=True)]
    else:
        attributes |= draw.some(pads=[draw.number(0, 1) for _ in range(2 * rank)], output_padding=[draw.number(0, stride - 1) for stride in strides])
    x, w = draw.tensor(2, 2 * group, *sizes), draw.tensor(2 * group, 3, *kernel)
    return Instance(attributes, (x, w, draw.choice(None, draw.tensor(3 * group))))


def fourier(draw: Draw, version: int) -> Instance:
    return Instance(draw.some(axis=draw.number(0, 1), inverse=draw.number(0, 1)), (draw.tensor(4, 5, 3, draw.number(1, 2)),))


def dequantized(draw: Draw, version: int) -> Instance:
    x = draw.tensor(3, 4, dtype=np.int8)
    return Instance(
        {}, (x, *draw.choice((np.float32(0.5), np.int8(3)), (np.float32(0.5), None), (draw.tensor(4), None) if version >= 13 else (np.float32(2), None)))
    )


def quantized(draw: Draw, version: int) -> Instance:
    return Instance({}, (draw.tensor(3, 4), np.float32(0.5), draw.choice(np.int8(3), np.uint8(3), None)))


def dropout(draw: Draw, version: int) -> Instance:
    x = draw.tensor(*draw.shape())
    if version < 12:
        return Instance(draw.some(ratio=0.25) | ({"is_test": 1} if version < 7 else {}), (x,))
    return Instance(draw.some(seed=3), (x, draw.choice(None, np.float32(0.25)), draw.choice(None, np.array(False))), draw.number(1, 2))


def gather(draw: Draw, version: int) -> Instance:
    x = draw.tensor(*draw.shape())
    axis = draw.axis(x.ndim, version)
    size = x.shape[axis]
    low = -size if version >= 11 else 0
    indices = np.array([draw.number(low, size - 1) for _ in range(3)], draw.choice(np.int32, np.int64))
    return Instance({"axis": axis}, (x, indices.reshape(draw.choice((3,), (3, 1)))))


def gemm(draw: Draw, version: int) -> Instance:
    rows, inner, columns = (draw.number(2, 4) for _ in range(3))
    a, b = draw.tensor(rows, inner), draw.tensor(inner, columns)
    # The reference ignores beta if nothing is broadcast.
    attributes: dict[str, Any] = draw.some(alpha=0.5, **({"beta": 2.0} if version >= 7 else {}))
    if draw.chance():
        a, attributes["transA"] = np.ascontiguousarray(a.T), 1
    if draw.chance():
        b, attributes["transB"] = np.ascontiguousarray(b.T), 1
    full = draw.tensor(rows, columns)
    if version < 7:
        broadcast = draw.chance()
        return Instance(attributes | {"broadcast": int(broadcast)}, (a, b, draw.tensor(columns) if broadcast else full))
    return Instance(attributes, (a, b, draw.choice(full, draw.tensor(columns), draw.tensor(rows, 1), *((None,) if version >= 11 else ()))))


def sampled(draw: Draw, version: int) -> Instance:
    attributes = draw.some(mode=draw.choice("bilinear", "nearest", "bicubic"), padding_mode=draw.choice("zeros", "border"), align_corners=1)
    return Instance(attributes, (draw.tensor(2, 2, 4, 5), draw.tensor(2, 3, 3, 2) / 4))


def one_hot(draw: Draw, version: int) -> Instance:
    shape = draw.shape(1, 2)
    kind = draw.choice(np.uint8, np.int64, np.int64)
    indices = draw.random.integers(0 if kind is np.uint8 else -3, 6, shape).astype(kind)
    return Instance(draw.some(axis=draw.number(0, len(shape))), (indices, np.int64(4), draw.tensor(2)))


def slope(draw: Draw, version: int) -> Instance:
    x = draw.tensor(*draw.shape(2))
    if version < 7:
        return Instance({}, (x, draw.tensor(1)))
    return Instance({}, (x, draw.tensor(*x.shape[draw.number(0, x.ndim - 1) :])))


def padded(draw: Draw, version: int) -> Instance:
    x = draw.tensor(*(draw.number(3, 5) for _ in range(draw.number(1, 3))))
    mode = draw.choice("constant", "constant", "edge", "reflect", *(["wrap"] if version >= 19 else []))
    axes = draw.axes(x.ndim, version) if version >= 18 and draw.chance() else None
    count = x.ndim if axes is None else len(axes)
    pads = [draw.number(-1 if mode == "constant" else 0, 2) for _ in range(2 * count)]
    attributes: dict[str, Any] = {"mode": mode}
    if version < 11:
        return Instance(attributes | {"pads": pads} | draw.some(value=draw.choice(0.0, 1.5)), (x,))
    value = draw.choice(None, np.float32(0), np.float32(-0.0), np.float32(1.5))
    kind = draw.choice(np.int32, np.int64)
    return Instance(attributes, (x, ints(*pads), value, None if axes is None else np.array(axes, kind)))


def reshaped(draw: Draw, version: int) -> Instance:
    if version >= 14 and draw.number(0, 3) == 0:
        return Instance({"allowzero": 1}, (draw.tensor(0, 3), draw.choice(ints(3, 0), ints(0, 7), ints(0, 3))))
    x, sizes = draw.tensor(2, 3, 4), draw.choice([0, -1], [4, 6], [-1], [0, 0, 2, 2], [2, 1, 12])
    return Instance({"shape": sizes}, (x,)) if version < 5 else Instance({}, (x, ints(*sizes)))


def resized(draw: Draw, version: int) -> Instance:
    x = draw.tensor(1, 2, draw.number(2, 4), draw.number(2, 4))
    if version < 11:
        scales = draw.choice([1, 1, 2, 3], [1, 1, 1, 2], [1, 1, 1.5, 2])
        mode = draw.choice("nearest", "nearest", "linear")
        if version < 9:
            return Instance({"mode": mode, "scales": [float(scale) for scale in scales]}, (x,))
        return Instance({"mode": mode}, (x, np.array(scales, np.float32)))
    attributes = draw.some(
        mode=draw.choice("nearest", "linear", "cubic"),
        coordinate_transformation_mode=draw.choice("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"),
        nearest_mode=draw.choice("floor", "ceil", "round_prefer_ceil"),
        cubic_coeff_a=-0.5,
        extrapolation_value=2.0,
    )
    sizes, scales = ints(1, 2, 5, 6), np.array([1, 1, draw.choice(0.5, 1.5, 2), 2], np.float32)
    if version >= 18 and draw.chance():
        return Instance(attributes | {"axes": [2, draw.choice(3, -1)]}, (x, None, scales[2:]) if draw.chance() else (x, None, None, sizes[2:]))
    empty = np.zeros(0, np.float32)
    absent = empty if version < 13 else draw.choice(None, empty)
    return Instance(attributes, (x, absent, scales) if draw.chance() else (x, absent, empty if version < 13 else None, sizes))


def scattered(draw: Draw, version: int) -> Instance:
    attributes: dict[str, Any] = draw.some(axis=draw.choice(0, -2) if version >= 11 else 0)
    if version >= 16:
        attributes |= draw.some(reduction=draw.choice("add", "mul", *(["max", "min"] if version >= 18 else [])))
    return Instance(attributes, (draw.tensor(3, 3), np.array([[1, 0, 2], [0, 2, 1]], np.int64), draw.tensor(2, 3)))


def sliced(draw: Draw, version: int) -> Instance:
    x = draw.tensor(*(draw.number(1, 5) for _ in range(draw.number(1, 4))))
    axes = draw.axes(x.ndim, version)
    starts = [draw.choice(0, draw.number(-7, 7), draw.number(0, 3)) for _ in axes]
    ends = [draw.choice(2**63 - 1, 2**31 - 1, draw.number(-7, 7), x.shape[axis]) for axis in axes]
    steps = None
    if version >= 10 and draw.chance():
        steps = [draw.choice(1, 1, 2, -1, -2) for _ in axes]
        ends = [draw.choice(-(2**31), -9, draw.number(-7, 7)) if step < 0 else end for end, step in zip(ends, steps, strict=True)]
    if draw.chance():
        axes = None if draw.chance() and len(starts) <= x.ndim else axes
    if version < 10:
        return Instance({"starts": starts, "ends": ends} | ({} if axes is None else {"axes": axes}), (x,))
    kind = draw.choice(np.int64, np.int64, np.int32)
    parts = [None if part is None else np.clip(part, np.iinfo(kind).min, np.iinfo(kind).max).astype(kind) for part in map(_array, (starts, ends, axes, steps))]
    return Instance({}, (x, *parts))


def _array(items: list[int] | None) -> Array | None:
    return None if items is None else np.array(items, np.int64)


def split(draw: Draw, version: int) -> Instance:
    shape = draw.shape(1, 3)
    axis, count = draw.axis(len(shape), version), draw.number(1, 3)
    size = count * draw.number(1, 2)
    kind = draw.number(0, 2)
    sizes = [size // count] * count
    if kind == 2:
        sizes[0], sizes[-1] = sizes[0] - 1, sizes[-1] + 1
    uneven = kind == 0 and version >= 18 and count > 1
    x = draw.tensor(*(sum(sizes) + uneven * draw.number(0, 1) * (count - 1) if place == axis % len(shape) else length for place, length in enumerate(shape)))
    if kind == 0 or (kind == 2 and count == 1):
        return Instance({"axis": axis} | ({"num_outputs": count} if version >= 18 else {}), (x,), count)
    if version < 13:
        return Instance({"axis": axis, "split": sizes}, (x,), count)
    return Instance({"axis": axis}, (x, ints(*sizes)), count)


def squeezed(draw: Draw, version: int) -> Instance:
    shape = draw.choice((1, 2, 1), (1, 3), (2, 1, 1, 3))
    axes = draw.choice(
        None, [axis - (len(shape) if version >= 11 and draw.chance() else 0) for axis, size in enumerate(shape) if size == 1][:: draw.choice(1, -1)]
    )
    x = draw.tensor(*shape)
    if axes is None:
        return Instance({}, (x,))
    return Instance({"axes": axes}, (x,)) if version < 13 else Instance({}, (x, ints(*axes)))


def unsqueezed(draw: Draw, version: int) -> Instance:
    x = draw.tensor(*draw.shape(0, 3))
    rank = x.ndim + draw.number(1, 2)
    axes = draw.random.permutation(rank)[: rank - x.ndim].tolist()
    axes = [axis - rank if version >= 11 and draw.chance() else axis for axis in axes]
    return Instance({"axes": axes}, (x,)) if version < 13 else Instance({}, (x, ints(*axes)))


def top(draw: Draw, version: int) -> Instance:
    x = draw.tensor(*draw.shape())
    axis = draw.axis(x.ndim, version)
    k = draw.number(1, x.shape[axis])
    if version < 10:
        return Instance({"axis": axis, "k": k}, (x,), 2)
    return Instance({"axis": axis} | (draw.some(largest=0, sorted=1) if version >= 11 else {}), (x, ints(k)), 2)


def norm(draw: Draw, version: int) -> Instance:
    return Instance(draw.some(p=2.0 if version < 2 else 2), (draw.tensor(2, 3, *draw.shape(1, 2)),))


def attention(draw: Draw, version: int) -> Instance:
    q, k, v = draw.tensor(1, 2, 3, 4), draw.tensor(1, 2, 5, 4), draw.tensor(1, 2, 5, 4)
    return Instance(draw.some(is_causal=1, scale=0.5), (q, k, v, draw.choice(None, draw.tensor(3, 5))))


def cast_like(draw: Draw, version: int) -> Instance:
    return Instance({}, (draw.tensor(2, 3), draw.tensor(1, dtype=draw.choice(np.float16, np.int32))))


GENERATORS: dict[str, Callable[[Draw, int], Instance]] = {
    **dict.fromkeys(["Add", "Div", "Greater", "Less", "Mul", "Pow", "Sub"], operands(np.float32)),
    **dict.fromkeys(["And", "Or", "Xor"], operands(np.bool_)),
    "Equal": operands(np.int32),
    **dict.fromkeys(["Max", "Mean", "Min", "Sum"], several),
    **dict.fromkeys(["Hardmax", "LogSoftmax", "Softmax"], softmax),
    **{name: reduction for name in CHANGES if name.startswith("Reduce")},
    "Attention": attention,
    "AveragePool": pool("AveragePool"),
    "BatchNormalization": batch_normalization,
    "Cast": cast,
    "CastLike": cast_like,
    "Clip": clip,
    "Concat": concat,
    "Conv": convolution,
    "ConvTranspose": transposed_convolution,
    "DFT": fourier,
    "DequantizeLinear": dequantized,
    "Dropout": dropout,
    "Gather": gather,
    "Gemm": gemm,
    "GlobalLpPool": norm,
    "GridSample": sampled,
    "LpPool": pool("LpPool"),
    "MaxPool": pool("MaxPool"),
    "OneHot": one_hot,
    "PRelu": slope,
    "Pad": padded,
    "QuantizeLinear": quantized,
    "ReduceSum": reduced_sum,
    "Reshape": reshaped,
    "Resize": resized,
    "ScatterElements": scattered,
    "Slice": sliced,
    "Split": split,
    "Squeeze": squeezed,
    "TopK": top,
    "Unsqueeze": unsqueezed,
}
