"""A table of functions that draw legal nodes of operators that move, choose or lay out elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import numpy_helper

from .facts_draw import BOOL, FLOAT, INT32, INT64, Case, Draw, Fixed, Free, Maker, ints, listed, scalar

_END = (2**63 - 1, 2**31 - 1)


def concat(draw: Draw) -> Case:
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    parts = [tuple(draw.size() if place == axis % len(shape) else size for place, size in enumerate(shape)) for _ in range(draw.number(1, 3))]
    return Case([Free(part) for part in parts], {"axis": axis})


def sliced(draw: Draw) -> Case:
    shape = draw.shape(1)
    axes = draw.axes(len(shape), 1)
    steps = [draw.pick(1, 1, 1, 2, 3, -1, -2) if draw.version >= 10 else 1 for _ in axes]
    starts = [draw.pick(0, draw.number(-7, 7), draw.number(0, 2), *_END) if step < 0 else draw.pick(0, draw.number(-7, 7), 1) for step in steps]
    ends = [draw.pick(-(2**31), -_END[0], draw.number(-7, 7), *_END) if step < 0 else draw.pick(*_END, -1, 2, 4, draw.number(-7, 9)) for step in steps]
    if draw.chance(0.25):
        axes = list(range(len(starts)))
        stated: list[int] | None = None
    else:
        stated = axes
    if draw.version < 10:
        return Case([Free(shape)], {"starts": starts, "ends": ends} | ({} if stated is None else {"axes": [axis % len(shape) for axis in stated]}))
    stepped = draw.chance() or any(step != 1 for step in steps)
    return Case([Free(shape), ints(*starts), ints(*ends), None if stated is None else ints(*stated), ints(*steps) if stepped else None])


def split(draw: Draw) -> Case:
    shape = draw.shape(1)
    axis, count = draw.axis(len(shape)), draw.number(1, 3)
    sizes = [draw.size() for _ in range(count)]
    equal = draw.chance()
    if equal:
        sizes = [sizes[0]] * count
    total = max(0, sum(sizes) - (draw.number(0, 1) if equal and draw.version >= 18 else 0))
    x = Free(tuple(total if place == axis % len(shape) else size for place, size in enumerate(shape)))
    if equal and draw.chance(0.7):
        return Case([x], {"axis": axis} | ({"num_outputs": count} if draw.version >= 18 else {}), count)
    return listed(draw, "split", sizes, 13, [x], axis=axis)._replace(outputs=count)


def reshape(draw: Draw) -> Case:
    shape = draw.shape()
    sizes: list[int] = [size or 1 for size in shape] if draw.chance(0.6) else list(shape)
    while len(sizes) > 1 and draw.chance():
        place = draw.number(0, len(sizes) - 2)
        sizes[place : place + 2] = [sizes[place] * sizes[place + 1]]
    if draw.chance(0.3):
        sizes.insert(draw.number(0, len(sizes)), 1)
    if sizes and draw.chance():
        sizes[draw.number(0, len(sizes) - 1)] = -1
    sizes = [0 if place < len(shape) and size == shape[place] and draw.chance(0.3) else size for place, size in enumerate(sizes)]
    return Case([Free(shape), ints(*sizes)], draw.some(allowzero=1))


def transpose(draw: Draw) -> Case:
    shape = draw.shape()
    return Case([Free(shape)], draw.some(perm=draw.random.permutation(len(shape)).tolist()) if shape else {})


def squeeze(draw: Draw) -> Case:
    shape = tuple(1 if draw.chance(0.6) else draw.size() for _ in range(draw.number(0, 4)))
    ones = [axis - (len(shape) if draw.version >= 11 and draw.chance() else 0) for axis, size in enumerate(shape) if size == 1]
    return listed(draw, "axes", None if draw.chance(0.3) or not ones else ones[:: draw.pick(1, -1)], 13, [Free(shape)])


def unsqueeze(draw: Draw) -> Case:
    shape = draw.shape(0, 3)
    rank = len(shape) + draw.number(1, 2)
    axes = [axis - (rank if draw.version >= 11 and draw.chance() else 0) for axis in draw.random.permutation(rank)[: rank - len(shape)].tolist()]
    return listed(draw, "axes", axes, 13, [Free(shape)])


def expand(draw: Draw) -> Case:
    x, wanted = draw.operands(2)
    return Case([Free(x), ints(*wanted)])


def tile(draw: Draw) -> Case:
    shape = draw.shape()
    return Case([Free(shape), ints(*draw.numbers(len(shape), 0, 3))])


def pad(draw: Draw) -> Case:
    shape = draw.shape(1)
    modes = ("constant", "constant", "reflect", "edge", *(("wrap",) if draw.version >= 19 else ()))
    mode = draw.pick(*modes)
    axes = draw.axes(len(shape)) if draw.version >= 18 and draw.chance() else None
    count = 2 * len(axes if axes is not None else shape)
    pads = draw.numbers(count, -1 if mode == "constant" else 0, 2)
    attributes: dict[str, Any] = {} if mode == "constant" else {"mode": mode}
    if draw.version < 11:
        return Case([Free(shape)], attributes | {"pads": pads} | draw.some(value=1.5))
    return Case([Free(shape), ints(*pads), draw.pick(None, Free(())), None if axes is None else ints(*axes)], attributes)


def gather(draw: Draw) -> Case:
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    top = max(shape[axis] - 1, 0)
    indices = draw.shape(0, 2)
    fixed = draw.chance() and len(indices) <= 1
    low = -1 if draw.version >= 11 else 0
    return Case([Free(shape), ints(*draw.numbers(indices[0], low, top)) if fixed and indices else Free(indices, low, min(top, 1), INT64)], draw.some(axis=axis))


def gather_elements(draw: Draw) -> Case:
    shape = draw.shape(1)
    indices = tuple(draw.pick(size, max(size - 1, 0)) for size in shape)
    return Case([Free(shape), Free(indices, 0, 0, draw.pick(INT32, INT64))], {"axis": draw.axis(len(shape))} if draw.chance() else {})


def gather_nd(draw: Draw) -> Case:
    shape = draw.shape(1)
    batch = draw.number(0, len(shape) - 1) if draw.version >= 12 and draw.chance() else 0
    depth = draw.number(1, len(shape) - batch)
    return Case([Free(shape), Free((*shape[:batch], *draw.shape(0, 2), depth), 0, 0, INT64)], {"batch_dims": batch} if batch else {})


def scatter(draw: Draw) -> Case:
    shape = draw.shape(1)
    indices = tuple(draw.pick(size, max(size - 1, 0)) for size in shape)
    return Case([Free(shape), Free(indices, 0, 0, draw.pick(INT32, INT64)), Free(indices)], draw.some(axis=draw.axis(len(shape)), reduction=("add", "mul")))


def scatter_nd(draw: Draw) -> Case:
    shape = draw.shape(1)
    depth = draw.number(1, len(shape))
    places = draw.shape(0, 2)
    return Case([Free(shape), Free((*places, depth), 0, 0, INT64), Free((*places, *shape[depth:]))], draw.some(reduction=("add", "mul")))


def tensor_scatter(draw: Draw) -> Case:
    batch, length, width = draw.number(1, 3), draw.number(2, 5), draw.number(1, 4)
    attributes = draw.some(mode=("linear", "circular")) | draw.some(axis=(-2, 1))
    return Case([Free((batch, length, width)), Free((batch, draw.number(1, 2), width)), draw.pick(None, Free((batch,), 0, 0, INT64))], attributes)


def top_k(draw: Draw) -> Case:
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    k = draw.number(0, shape[axis])
    if draw.version < 10:
        return Case([Free(shape)], {"k": k, "axis": axis}, 2)
    return Case([Free(shape), ints(k)], draw.some(largest=0, sorted=0) | {"axis": axis}, 2)


def one_hot(draw: Draw) -> Case:
    shape = draw.shape(0, 3)
    depth = draw.number(1, 5)
    kind = draw.pick(np.int64, np.int32, np.float32)
    axis = draw.number(-len(shape) - 1, len(shape))
    return Case([Free(shape, -3, 5, INT64), Fixed(np.array(draw.pick(depth, [depth]), kind)), Free((2,))], draw.some(axis=axis))


def ranged(draw: Draw) -> Case:
    kind = draw.pick(np.int64, np.int32, np.float32)
    return Case([scalar(item, kind) for item in (draw.number(-3, 3), draw.number(-3, 9), draw.pick(1, 2, -1, 3))])


def filled(draw: Draw) -> Case:
    value = draw.pick(np.array([1.5], np.float32), np.array([3]), np.array([True]), np.array([2], np.int32))
    return Case([ints(*draw.shape(0, 3))], draw.some(value=numpy_helper.from_array(value)))


def shape_of(draw: Draw) -> Case:
    return Case([Free(draw.shape())], draw.some(start=draw.number(-5, 5), end=draw.number(-5, 5)))


def flatten(draw: Draw) -> Case:
    shape = draw.shape()
    return Case([Free(shape)], draw.some(axis=draw.number(-len(shape) if draw.version >= 11 else 0, len(shape))))


def space(deep: bool) -> Maker:
    def make(draw: Draw) -> Case:
        block = draw.number(1, 3)
        n, c, h, w = draw.size(), draw.number(1, 2), draw.number(1, 3), draw.number(1, 3)
        shape = (n, c * block * block, h, w) if deep else (n, c, h * block, w * block)
        return Case([Free(shape)], {"blocksize": block} | draw.some(mode=("DCR", "CRD")))

    return make


def crop(draw: Draw) -> Case:
    shape = draw.shape(1)
    axes = draw.axes(len(shape)) if draw.chance() else None
    count = len(shape if axes is None else axes)
    return Case([Free(shape), ints(*draw.numbers(count, 1, 6))], {} if axes is None else {"axes": axes})


def trilu(draw: Draw) -> Case:
    return Case([Free((*draw.shape(0, 1), draw.size(), draw.size())), draw.pick(None, scalar(draw.number(-2, 2)))], draw.some(upper=0))


def eye(draw: Draw) -> Case:
    return Case([Free((draw.size(), draw.size()))], draw.some(dtype=(INT64, FLOAT), k=draw.number(-2, 2)))


def compress(draw: Draw) -> Case:
    shape = draw.shape(1)
    axis = draw.axis(len(shape)) if draw.chance() else None
    length = draw.number(0, int(np.prod(shape)) if axis is None else shape[axis])
    return Case([Free(shape), Free((length,), dtype=BOOL)], {} if axis is None else {"axis": axis})


def unique(draw: Draw) -> Case:
    shape = draw.shape(1)
    return Case([Free(shape, 0, 2)], draw.some(sorted=0, axis=draw.axis(len(shape))), draw.number(1, 4))


def reverse(draw: Draw) -> Case:
    time = draw.number(0, 1)
    shape = (draw.number(1, 4), draw.number(1, 4), *draw.shape(0, 2))
    return Case([Free(shape), Free((shape[1 - time],), 1, 1, INT64)], {"time_axis": time, "batch_axis": 1 - time} if time or draw.chance() else {})


def cumulative(draw: Draw) -> Case:
    shape = draw.shape(1)
    return Case([Free(shape), scalar(draw.axis(len(shape)))], draw.some(exclusive=1, reverse=1))


MOVES: dict[str, Maker] = {
    **dict.fromkeys("Scatter ScatterElements".split(), scatter),
    **dict.fromkeys("CumSum CumProd".split(), cumulative),
    "CenterCropPad": crop,
    "Compress": compress,
    "Concat": concat,
    "ConstantOfShape": filled,
    "DepthToSpace": space(True),
    "Expand": expand,
    "EyeLike": eye,
    "Flatten": flatten,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "OneHot": one_hot,
    "Pad": pad,
    "Range": ranged,
    "Reshape": reshape,
    "ReverseSequence": reverse,
    "ScatterND": scatter_nd,
    "Shape": shape_of,
    "Slice": sliced,
    "SpaceToDepth": space(False),
    "Split": split,
    "Squeeze": squeeze,
    "TensorScatter": tensor_scatter,
    "Tile": tile,
    "TopK": top_k,
    "Transpose": transpose,
    "Trilu": trilu,
    "Unique": unique,
    "Unsqueeze": unsqueeze,
}
