"""Drawing of operators by name that move, pick or join elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .scope import Emitter, Scope, Value

_FAR = (2**63 - 1, 2**31 - 1, 512, 100)


def _axis(s: Scope, rank: int) -> int:
    return s.chance.number(0 if s.opset < 11 else -rank, rank - 1)


def transpose(s: Scope, x: Value, operator: str) -> list[Value] | None:
    return s.node(operator, [x], **({"perm": s.chance.shuffled(range(x.rank))} if x.rank and s.chance.often(0.9) else {}))


def reshape(s: Scope, x: Value, operator: str) -> list[Value] | None:
    """Draws sizes that are merged, split, copied by a zero, or left open."""
    if operator == "Flatten":
        return s.node(operator, [x], axis=s.chance.number(-x.rank if s.opset >= 11 else 0, x.rank))
    target = list(x.shape)
    for _ in range(s.chance.number(1, 2)):
        kind = s.chance.number(0, 3)
        at = s.chance.number(0, max(len(target) - 1, 0))
        if kind == 0 and len(target) > 1:
            at = min(at, len(target) - 2)
            target[at : at + 2] = [target[at] * target[at + 1]]
        elif kind == 1 and target and target[at] > 1:
            factors = [factor for factor in range(2, target[at] + 1) if target[at] % factor == 0]
            factor = s.chance.pick(factors)
            target[at : at + 1] = [factor, target[at] // factor] if s.chance.often() else [target[at] // factor, factor]
        elif kind == 2:
            target.insert(at, 1)
        elif 1 in target:
            target.remove(1)
    if 0 in x.shape and s.opset < 14:
        target = list(x.shape)
    named = [place for place, size in enumerate(target) if size not in (1, 2, 3, 4)]
    settings: dict[str, Any] = {}
    if 0 in target and s.opset >= 14:
        settings["allowzero"] = 1
    else:
        target = [0 if place < x.rank and size == x.shape[place] and s.chance.often(0.5) else size for place, size in enumerate(target)]
        if target and s.chance.often(0.75):
            target[s.chance.pick(named) if named else s.chance.number(0, len(target) - 1)] = -1
    if s.chance.often(0.2) and not settings:
        return _computed_reshape(s, x, target)
    return s.node(operator, [x], shape=np.array(target, np.int64), **settings)


def _computed_reshape(s: Scope, x: Value, target: list[int]) -> list[Value] | None:
    """Adds a Reshape whose sizes the graph computes, as exporters write them."""
    sizes = s.node("Shape", [x])
    if not sizes:
        return None
    parts: list[Value] = []
    for place, size in enumerate(target):
        if size == 0:
            picked = s.node("Gather", [sizes[0], s.literal(np.array([place], np.int64))], axis=0)
            parts += picked or []
        else:
            parts.append(s.literal(np.array([size], np.int64)))
    joined = s.node("Concat", parts, axis=0) if parts else None
    return s.node("Reshape", [x, joined[0]]) if joined else None


def squeeze(s: Scope, x: Value, operator: str) -> list[Value] | None:
    ones = [axis for axis, size in enumerate(x.shape) if size == 1]
    if not ones:
        return None
    if s.chance.often(0.15):
        return s.node(operator, [x])
    axes = [axis - (x.rank if s.opset >= 11 and s.chance.often(0.3) else 0) for axis in s.chance.some(ones, 1)]
    return s.node(operator, [x], axes=axes)


def unsqueeze(s: Scope, x: Value, operator: str) -> list[Value] | None:
    rank = x.rank + s.chance.number(1, 2)
    axes = s.chance.shuffled(range(rank))[: rank - x.rank]
    return s.node(operator, [x], axes=[axis - (rank if s.opset >= 11 and s.chance.often(0.3) else 0) for axis in axes])


def expand(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if s.chance.often(0.25):
        other = s.operand(x)
        sizes = s.node("Shape", [other])
        return s.node(operator, [x, sizes[0]]) if sizes else None
    shape = [s.chance.pick([1, 2, 3]) if size == 1 else 1 if s.chance.often() else size for size in x.shape]
    return s.node(operator, [x], shape=np.array([*s.chance.pick([[], [2], [1]]), *shape], np.int64))


def tile(s: Scope, x: Value, operator: str) -> list[Value] | None:
    return s.node(operator, [x], repeats=np.array([s.chance.pick([1, 1, 2, 3, 0] if s.chance.often(0.1) else [1, 1, 2]) for _ in x.shape], np.int64))


def concat(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if not x.rank:
        return None
    axis = _axis(s, x.rank)
    parts = [x]
    for _ in range(s.chance.pick([0, 1, 1, 1, 2, 3])):
        shape = list(x.shape)
        alike = [
            value
            for value in s.known
            if value.is_tensor and value.dtype == x.dtype and value.rank == x.rank and _without(value.shape, axis) == _without(x.shape, axis)
        ]
        if alike and s.chance.often(0.7):
            parts.append(s.chance.pick(alike))
        else:
            shape[axis] = s.size()
            parts.append(s.new(x.dtype, shape))
    return s.node(operator, s.chance.shuffled(parts), axis=axis)


def _without(shape: tuple[int, ...], axis: int) -> list[int]:
    sizes = list(shape)
    del sizes[axis]
    return sizes


def split(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if not x.rank:
        return None
    axis, parts = _axis(s, x.rank), s.chance.pick([1, 2, 2, 3])
    if s.chance.often(0.35):
        return s.node(operator, [x], parts, axis=axis, num_outputs=parts if s.opset >= 18 else None)
    return s.node(operator, [x], parts, axis=axis, split=s.chance.split(x.shape[axis], parts))


def slice_(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if not x.rank:
        return None
    axes = s.chance.some(range(x.rank), 1)[:2]
    starts, ends, steps = [], [], []
    for axis in axes:
        size, step = x.shape[axis], s.chance.pick([1, 1, 1, 1, 2, -1, -2, 3]) if s.opset >= 10 else 1
        start = s.chance.pick([0, 0, 1, -1, -2, s.chance.number(-size - 1, size + 1)])
        end = s.chance.pick([*_FAR, size, -1, s.chance.number(-size - 1, size + 1)])
        if step < 0:
            start, end = s.chance.pick([-1, size, 2**31 - 1, start]), s.chance.pick([-(2**63), -(2**31), -size - 1, 0, end])
        starts.append(start)
        ends.append(end)
        steps.append(step)
    named = [axis - (x.rank if s.opset >= 10 and s.chance.often(0.4) else 0) for axis in axes]
    kind = np.int64 if s.opset < 10 or s.chance.often(0.85) else np.int32
    bounds = {"starts": starts, "ends": ends, "axes": None if axes == list(range(len(axes))) and s.chance.often() else named}
    if s.opset >= 10 and (set(steps) != {1} or s.chance.often(0.3)):
        bounds["steps"] = steps
    if kind is np.int32:
        bounds = {name: None if items is None else np.clip(items, -(2**31), 2**31 - 1).astype(kind) for name, items in bounds.items()}
    if s.opset >= 10 and s.chance.often(0.12):
        return _computed_slice(s, x, axes[0])
    return s.node(operator, [x], **bounds)


def _computed_slice(s: Scope, x: Value, axis: int) -> list[Value] | None:
    """Adds a Slice up to a size of the graph."""
    sizes = s.node("Shape", [s.chance.pick([value for value in s.known if value.is_tensor and value.rank])])
    if not sizes:
        return None
    place = s.chance.number(0, sizes[0].shape[0] - 1)
    end = s.node("Gather", [sizes[0], s.literal(np.array([place], np.int64))], axis=0)
    if end and s.chance.often(0.4):
        end = s.node("Sub", [end[0], s.literal(np.array([1], np.int64))])
    return s.node("Slice", [x, s.literal(np.array([0], np.int64)), end[0], s.literal(np.array([axis], np.int64))]) if end else None


def _indices(s: Scope, size: int, shape: tuple[int, ...]) -> Value | None:
    if not size:
        return None
    array = s.chance.generator.integers(-size if s.opset >= 11 else 0, size, shape).astype(s.chance.pick([np.int64, np.int64, np.int32]))
    return s.literal(array) if s.chance.often(0.7) else s.given(array, high=size)


def gather(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if not x.rank:
        return None
    axis = _axis(s, x.rank)
    if operator == "GatherElements":
        indices = _indices(s, x.shape[axis], tuple(s.chance.number(1, 3) if place == axis % x.rank else size for place, size in enumerate(x.shape)))
        return s.node(operator, [x, indices], axis=axis) if indices else None
    size = x.shape[axis]
    if size and s.chance.often(0.3):
        kept = s.literal(np.arange(size)[:: s.chance.pick([1, -1, 2])].copy())
        return s.node(operator, [x, kept], axis=axis)
    indices = _indices(s, size, s.chance.pick([(), (1,), (2,), (3,), (2, 2), (0,)]))
    return s.node(operator, [x, indices], axis=axis) if indices else None


def gather_nd(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if not x.rank or 0 in x.shape:
        return None
    depth, batch = s.chance.number(1, x.rank), 0
    if s.opset >= 12 and x.rank > 1 and s.chance.often(0.25) and x.shape[0] not in s.symbols:
        batch, depth = 1, s.chance.number(1, x.rank - 1)
    columns = [s.chance.generator.integers(0, x.shape[batch + place], ((x.shape[0],) if batch else ()) + (3,)) for place in range(depth)]
    indices = s.literal(np.stack(columns, -1).astype(np.int64))
    return s.node(operator, [x, indices], batch_dims=batch or None)


def scatter(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if not x.rank or 0 in x.shape:
        return None
    reductions = [None, None, *(["add", "mul"] if s.opset >= 16 else []), *(["max", "min"] if s.opset >= 18 else [])]
    settings = {"reduction": s.chance.pick(reductions)}
    if operator == "ScatterND":
        rows = s.chance.number(1, 2)
        indices = s.literal(np.array(s.chance.shuffled(range(x.shape[0]))[:rows], np.int64).reshape(-1, 1))
        return s.node(operator, [x, indices, s.tensor(x.dtype, (indices.shape[0], *x.shape[1:]))], **settings)
    axis = _axis(s, x.rank)
    shape = tuple(1 if place == axis % x.rank else min(size, 2) for place, size in enumerate(x.shape))
    indices = s.literal(np.full(shape, s.chance.number(0, x.shape[axis] - 1), np.int64))
    return s.node(operator, [x, indices, s.tensor(x.dtype, shape)], axis=axis, **(settings if operator == "ScatterElements" else {}))


def pad(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if not x.rank:
        return None
    mode = s.chance.pick(["constant", "constant", "constant", "edge", "reflect", *(["wrap"] if s.opset >= 19 else [])])
    low = -1 if s.chance.often(0.2) else 0
    axes = s.chance.some(range(x.rank), 1) if s.opset >= 18 and s.chance.often(0.3) else None
    pads = [s.chance.pick([0, 0, 1, 2, low]) for _ in range(2 * (x.rank if axes is None else len(axes)))]
    value: Any = None
    if mode == "constant" and s.chance.often(0.5):
        value = s.chance.pick([0.0, 1.5, -1.0]) if s.opset < 11 else s.literal(s.chance.constant(x.dtype, ()))
    operands: list[Value | None] = [x]
    if s.opset >= 11:
        operands += [s.parameter(np.array(pads, np.int64)), value]
        return s.node(operator, operands, mode=mode, axes=axes)
    return s.node(operator, operands, mode=mode, pads=pads, value=value)


def blocks(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if x.rank != 4:
        return None
    return s.node(operator, [x], blocksize=s.chance.pick([1, 2]), mode=s.chance.pick(["DCR", "CRD"]) if operator == "DepthToSpace" and s.opset >= 11 else None)


def trilu(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if x.rank < 2:
        return None
    k = s.literal(np.array(s.chance.number(-2, 2), np.int64)) if s.chance.often(0.6) else None
    return s.node(operator, [x, k], upper=s.chance.pick([None, 0, 1]))


def compress(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if not x.rank:
        return None
    condition = s.tensor(np.bool_, (s.chance.number(1, 3),), 0.3)
    return s.node(operator, [x, condition], axis=_axis(s, x.rank) if s.chance.often(0.7) else None)


def reverse(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if x.rank < 2 or 0 in x.shape or x.shape[0] in s.symbols:
        return None
    batch = s.chance.number(0, 1)
    lengths = s.chance.generator.integers(1, x.shape[1 - batch] + 1, x.shape[batch]).astype(np.int64)
    return s.node(operator, [x, s.literal(lengths)], batch_axis=batch, time_axis=1 - batch)


def crop(s: Scope, x: Value, operator: str) -> list[Value] | None:
    axes = s.chance.some(range(x.rank), 1)
    return s.node(operator, [x], shape=np.array([s.chance.number(1, 4) for _ in axes], np.int64), axes=axes) if axes else None


def nonzero(s: Scope, x: Value, operator: str) -> list[Value] | None:
    return s.node(operator, [x])


def one_hot(s: Scope, x: Value, operator: str) -> list[Value] | None:
    indices = x if x.dtype in (np.int64, np.int32, np.float32) else s.given(s.chance.whole(np.int64, s.sizes(0, 2), 0, 3))
    values = s.literal(s.chance.ordinary(s.chance.pick([np.float32, np.int64]), (2,)))
    return s.node(operator, [indices, s.literal(np.array(s.chance.number(1, 4), np.int64)), values], axis=s.chance.pick([None, 0, -1]))


def unique(s: Scope, x: Value, operator: str) -> list[Value] | None:
    return s.node(operator, [x], s.chance.number(1, 4), axis=_axis(s, x.rank) if x.rank and s.chance.often(0.4) else None, sorted=s.chance.number(0, 1))


def interpolate(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if x.rank not in (3, 4) or 0 in x.shape:
        return None
    plain = [1.0] * (x.rank - 2)
    scales = np.array([*plain, *(s.chance.pick([1, 2, 1.5, 0.5, 2, 3, 0.7]) for _ in range(2))], np.float32)
    if operator == "Upsample":
        scales = np.maximum(scales, 1)
        return s.node(operator, [x], mode=s.chance.pick(["nearest", "linear"]), scales=scales)
    if s.opset < 11:
        return s.node(operator, [x, s.literal(scales)], mode=s.chance.pick(["nearest", "linear"]))
    settings = {
        "mode": s.chance.pick(["nearest", "linear", "cubic"]),
        "coordinate_transformation_mode": s.chance.pick([None, "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]),
        "nearest_mode": s.chance.pick([None, "floor", "ceil", "round_prefer_ceil"]),
        "antialias": s.chance.pick([None, None, 1]) if s.opset >= 18 else None,
        "keep_aspect_ratio_policy": None,
    }
    empty = s.literal(np.zeros(0, np.float32)) if s.opset < 13 else None
    if s.chance.often():
        return s.node(operator, [x, empty, s.literal(scales)], **settings)
    if s.opset >= 18 and s.chance.often(0.4):
        settings["keep_aspect_ratio_policy"] = s.chance.pick([None, "not_larger", "not_smaller"])
        return s.node(operator, [x, None, None, s.parameter(np.array([s.chance.number(1, 6) for _ in range(2)]))], axes=[x.rank - 2, x.rank - 1], **settings)
    sizes = np.array([*x.shape[:-2], *(s.chance.number(1, 6) for _ in range(2))], np.int64)
    return s.node(operator, [x, empty, s.literal(np.zeros(0, np.float32)) if s.opset < 13 else None, s.parameter(sizes)], **settings)


def sample(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if x.rank != 4 or 0 in x.shape:
        return None
    grid = s.tensor(x.dtype, (x.shape[0], s.chance.number(1, 3), 2, 2), 0.2)
    modes = ["bilinear", "nearest", "bicubic"] if s.opset < 20 else ["linear", "nearest", "cubic"]
    padding = s.chance.pick([None, "zeros", "border", "reflection"])
    return s.node(operator, [x, grid], mode=s.chance.pick([None, *modes]), padding_mode=padding, align_corners=s.chance.pick([None, 1]))


MOVES: dict[str, Emitter] = {
    **dict.fromkeys(("Reshape", "Flatten"), reshape),
    **dict.fromkeys(("Gather", "GatherElements"), gather),
    **dict.fromkeys(("Scatter", "ScatterElements", "ScatterND"), scatter),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), blocks),
    **dict.fromkeys(("Resize", "Upsample"), interpolate),
    "CenterCropPad": crop,
    "Compress": compress,
    "Concat": concat,
    "Expand": expand,
    "GatherND": gather_nd,
    "GridSample": sample,
    "NonZero": nonzero,
    "OneHot": one_hot,
    "Pad": pad,
    "ReverseSequence": reverse,
    "Slice": slice_,
    "Split": split,
    "Squeeze": squeeze,
    "Tile": tile,
    "Transpose": transpose,
    "Trilu": trilu,
    "Unique": unique,
    "Unsqueeze": unsqueeze,
}
