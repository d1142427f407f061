"""Moves: operators that move elements, or make them from shapes, and compute nothing.

The input is a `Call`; the output is its results, in which every element keeps its bits. Indices out
of range, and shapes that do not fit, are `Illegal`.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from onnx import AttributeProto, numpy_helper

from eqsat.checker.kernels.call import Array, Call, Illegal, Kernel, from_front, from_front_all
from eqsat.facts.shapes import TO_THE_END


def _reshape(call: Call) -> list[Array]:
    x, shape = call.input(0), list(call.parameter(1) or ())
    if not call.integer("allowzero"):
        for axis, size in enumerate(shape):
            if size == 0:
                if axis >= x.ndim:
                    raise Illegal("Reshape copies a size that is not there")
                shape[axis] = x.shape[axis]
    known = math.prod(size for size in shape if size != -1)
    if shape.count(-1) > 1 or any(size < -1 for size in shape) or (-1 in shape and (known == 0 or x.size % known)) or (-1 not in shape and known != x.size):
        raise Illegal(f"Reshape of {list(x.shape)} to {shape}")
    return [x.reshape(shape)]


def _flatten(call: Call) -> list[Array]:
    x, axis = call.input(0), call.integer("axis", 1)
    if not -x.ndim <= axis <= x.ndim:
        raise Illegal(f"Flatten at axis {axis} of a tensor of rank {x.ndim}")
    # At rank 0 the only axis is 0, however it is counted.
    front = axis + x.ndim if axis < 0 else axis
    return [x.reshape(math.prod(x.shape[:front]), math.prod(x.shape[front:]))]


def _squeeze(call: Call) -> list[Array]:
    x, axes = call.input(0), call.parameter(1)
    chosen = tuple(axis for axis, size in enumerate(x.shape) if size == 1) if axes is None else from_front_all(axes, x.ndim)
    if any(x.shape[axis] != 1 for axis in chosen):
        raise Illegal("Squeeze of an axis that is not 1")
    return [np.squeeze(x, chosen)]


def _unsqueeze(call: Call) -> list[Array]:
    x, axes = call.input(0), call.parameter(1) or ()
    return [np.expand_dims(x, from_front_all(axes, x.ndim + len(axes)))]


def _transpose(call: Call) -> list[Array]:
    x = call.input(0)
    order = call.integers("perm") or tuple(reversed(range(x.ndim)))
    if sorted(order) != list(range(x.ndim)):
        raise Illegal("perm is no permutation")
    return [x.transpose(order)]


def _concat(call: Call) -> list[Array]:
    parts = call.all_inputs()
    return [np.concatenate(parts, from_front(call.integer("axis"), parts[0].ndim))]


def _split(call: Call) -> list[Array]:
    x, sizes = call.input(0), call.parameter(1)
    axis = from_front(call.integer("axis"), x.ndim)
    if sizes is None:
        count = call.integer("num_outputs", len(call.results))
        each = -(-x.shape[axis] // count)
        sizes = (*((each,) * (count - 1)), x.shape[axis] - each * (count - 1))
    if sum(sizes) != x.shape[axis] or min(sizes) < 0 or len(sizes) != len(call.results):
        raise Illegal(f"Split of {x.shape[axis]} into {list(sizes)}")
    return list(np.split(x, list(itertools.accumulate(sizes))[:-1], axis))


def _slice(call: Call) -> list[Array]:
    x, starts, ends = call.input(0), call.parameter(1) or (), call.parameter(2) or ()
    axes = call.parameter(3)
    axes = tuple(range(len(starts))) if axes is None else from_front_all(axes, x.ndim)
    steps = call.parameter(4) or (1,) * len(starts)
    chosen = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step == 0:
            raise Illegal("a step of 0")
        if step < 0 and end in TO_THE_END:
            raise Illegal("Slice backwards to the largest integer, which ONNX reads as the end and ONNX Runtime as the beginning")
        size = x.shape[axis]
        # ONNX clamps where Python would count from the end a second time.
        low, high = (0, size) if step > 0 else (-1, size - 1)
        first = min(max(start + size if start < 0 else start, 0), high)
        last = min(max(end + size if end < 0 else end, low), size)
        chosen[axis] = slice(first, None if last < 0 else last, step)
    return [x[tuple(chosen)]]


def _in_range(indices: Array, size: int) -> Array:
    if ((indices < -size) | (indices >= size)).any():
        raise Illegal("an index is out of range")
    return np.where(indices < 0, indices + size, indices).astype(np.int64)


def _gather(call: Call) -> list[Array]:
    x, axis = call.input(0), from_front(call.integer("axis"), call.input(0).ndim)
    return [np.take(x, _in_range(call.input(1), x.shape[axis]), axis)]


def _gather_elements(call: Call) -> list[Array]:
    x, indices = call.input(0), call.input(1)
    axis = from_front(call.integer("axis"), x.ndim)
    if indices.ndim != x.ndim or any(a > b for place, (a, b) in enumerate(zip(indices.shape, x.shape, strict=True)) if place != axis):
        raise Illegal("GatherElements beyond its data")
    places: list[Array] = list(np.ix_(*map(np.arange, indices.shape)))
    places[axis] = _in_range(indices, x.shape[axis])
    return [x[tuple(places)]]


def _expand(call: Call) -> list[Array]:
    x, shape = call.input(0), call.parameter(1) or ()
    try:
        return [np.broadcast_to(x, np.broadcast_shapes(x.shape, shape))]
    except ValueError as error:
        raise Illegal(str(error)) from None


def _tile(call: Call) -> list[Array]:
    x, repeats = call.input(0), call.parameter(1) or ()
    if len(repeats) != x.ndim or any(count < 0 for count in repeats):
        raise Illegal("Tile wants a count for each axis")
    return [np.tile(x, repeats)]


def _pad(call: Call) -> list[Array]:
    x, pads, axes = call.input(0), call.parameter(1) or (), call.parameter(3)
    axes = tuple(range(x.ndim)) if axes is None else from_front_all(axes, x.ndim)
    if len(pads) != 2 * len(axes):
        raise Illegal("Pad wants two numbers for each axis")
    amounts = [(0, 0)] * x.ndim
    for place, axis in enumerate(axes):
        amounts[axis] = (pads[place], pads[place + len(axes)])
    x = x[tuple(slice(max(-head, 0), size - max(-tail, 0)) for (head, tail), size in zip(amounts, x.shape, strict=True))]
    if any(size + head + tail < 0 for (head, tail), size in zip(amounts, call.input(0).shape, strict=True)):
        raise Illegal("Pad removes more than there is")
    grown = [(max(head, 0), max(tail, 0)) for head, tail in amounts]
    mode = call.text("mode", "constant")
    if mode == "constant":
        value = call.given(2)
        element = np.zeros((), x.dtype) if value is None else value.reshape(())
        result = np.full([size + head + tail for size, (head, tail) in zip(x.shape, grown, strict=True)], element, x.dtype)
        result[tuple(slice(head, head + size) for size, (head, _) in zip(x.shape, grown, strict=True))] = x
        return [result]
    if any((head or tail) and size <= (max(head, tail) if mode == "reflect" else 0) for (head, tail), size in zip(grown, x.shape, strict=True)):
        raise Illegal("Pad reaches beyond what it copies from")
    places = [_padded_places(size, head, tail, mode) for size, (head, tail) in zip(x.shape, grown, strict=True)]
    return [x[np.ix_(*places)]]


def _padded_places(size: int, head: int, tail: int, mode: str) -> Array:
    """For each index of a padded axis, the index that it copies."""
    places = np.arange(-head, size + tail)
    if mode == "edge":
        return np.clip(places, 0, max(size - 1, 0))
    if mode == "wrap":
        return places % max(size, 1)
    return np.where(places < 0, -places, np.where(places >= size, 2 * (size - 1) - places, places))


def _shape(call: Call) -> list[Array]:
    shape = call.input(0).shape
    end = call.attributes.get("end")
    return [np.array(shape[call.integer("start") : end if isinstance(end, int) else None], np.int64)]


def _constant_of_shape(call: Call) -> list[Array]:
    value = call.attributes.get("value")
    element = numpy_helper.to_array(value.t) if isinstance(value, AttributeProto) else np.zeros(1, np.float32)
    return [np.full(call.parameter(0) or (), element.reshape(()), element.dtype)]


def _constant(call: Call) -> list[Array]:
    ((name, value),) = call.attributes.items()
    if isinstance(value, AttributeProto) and name == "value":
        return [numpy_helper.to_array(value.t)]
    if name in ("value_float", "value_floats"):
        return [np.array(value, np.float32)]
    if name in ("value_int", "value_ints"):
        return [np.array(value, np.int64)]
    raise Illegal(f"a Constant that holds {name}")


def _triangle(call: Call) -> list[Array]:
    x, diagonal = call.input(0), call.parameter(1) or (0,)
    places: list[Array] = [np.arange(size) for size in x.shape[-2:]]
    right = places[1] - places[0][:, None]
    keep = right >= diagonal[0] if call.integer("upper", 1) else right <= diagonal[0]
    return [np.where(keep, x, np.zeros((), x.dtype))]


def _depth_to_space(call: Call) -> list[Array]:
    x, block = call.input(0), call.integer("blocksize")
    batch, depth, height, width = x.shape
    if depth % (block * block):
        raise Illegal("DepthToSpace of channels that the block does not divide")
    inner = depth // (block * block)
    if call.text("mode", "DCR") == "DCR":
        parts = x.reshape(batch, block, block, inner, height, width).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = x.reshape(batch, inner, block, block, height, width).transpose(0, 1, 4, 2, 5, 3)
    return [parts.reshape(batch, inner, height * block, width * block)]


def _space_to_depth(call: Call) -> list[Array]:
    x, block = call.input(0), call.integer("blocksize")
    batch, depth, height, width = x.shape
    if height % block or width % block:
        raise Illegal("SpaceToDepth of a size that the block does not divide")
    parts = x.reshape(batch, depth, height // block, block, width // block, block).transpose(0, 3, 5, 1, 2, 4)
    return [parts.reshape(batch, depth * block * block, height // block, width // block)]


def _dropout(call: Call) -> list[Array]:
    training = call.given(2)
    if training is not None and training.any():
        raise Illegal("Dropout that trains")
    x = call.input(0)
    return [x, np.ones(x.shape, np.bool_)]


def _one_hot(call: Call) -> list[Array]:
    indices, depth, values = call.input(0), int(call.input(1).reshape(())), call.input(2)
    axis = from_front(call.integer("axis", -1), indices.ndim + 1)
    wrapped = np.where(indices < 0, indices + depth, indices)
    places = np.arange(depth).reshape((-1,) + (1,) * (indices.ndim - axis))
    return [np.where(np.expand_dims(wrapped, axis) == places, values[1], values[0])]


KERNELS: dict[str, Kernel] = {
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "DepthToSpace": _depth_to_space,
    "Dropout": _dropout,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "Identity": lambda call: [call.input(0)],
    "OneHot": _one_hot,
    "Pad": _pad,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": lambda call: [np.array(call.input(0).size, np.int64)],
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Trilu": _triangle,
    "Unsqueeze": _unsqueeze,
}
