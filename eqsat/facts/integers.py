"""The elements of small integer tensors: a table from operator names to functions of a `Node`.

A function returns the shape and the row-major elements of each of the first outputs, or None. An
element that is not None is correct at all sizes at which the node runs; integers wrap as their type
does. A symbolic element is assumed to fit int32 or int64 if its factors are moderate. Otherwise,
and in narrower or unsigned types, it becomes unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from onnx import AttributeProto

from eqsat.facts.arithmetic import BOOL, C_REMAINDER, ELEMENT_FUNCTIONS, TRUTHS, cast, wrap
from eqsat.facts.dims import Dim, add, maximum, minimum, mul, product
from eqsat.facts.element_bytes import decoded
from eqsat.facts.fact import INT_LIMIT, INTEGERS, Fact, from_tensor
from eqsat.facts.node import Node
from eqsat.facts.shapes import SHAPES, range_length, slice_axes, split_sizes

Elements: TypeAlias = "tuple[tuple[int, ...], tuple[Dim, ...]]"
Results: TypeAlias = "list[Elements] | None"
_EXACT = 1 << 31  # floats below are cast alike by all kernels, if they fit the target
# Operators that move elements are computed on element positions, so they serve every data type.
Positions: TypeAlias = npt.NDArray[np.int64]


def concrete_shape(fact: Fact | None) -> tuple[int, ...] | None:
    """Return the shape if all sizes are numbers; None if numpy cannot hold such an array."""
    if fact is None or fact.shape is None or len(fact.shape) > 32:
        return None
    sizes = tuple(size for size in fact.shape if isinstance(size, int) and size >= 0)
    return sizes if len(sizes) == len(fact.shape) and math.prod(size or 1 for size in sizes) < 2**31 else None


def _input(node: Node, position: int) -> Elements | None:
    fact = node.fact(position)
    shape = concrete_shape(fact)
    if fact is None or fact.ints is None or shape is None or math.prod(shape) != len(fact.ints):
        return None
    return shape, fact.ints


def _concrete(node: Node, position: int) -> list[int] | None:
    elements = node.ints(position)
    if elements is None:
        return None
    known = [element for element in elements if isinstance(element, int)]
    return known if len(known) == len(elements) else None


def _picked(elements: tuple[Dim, ...], positions: Positions) -> tuple[Dim, ...]:
    return tuple(elements[position] for position in positions.ravel().tolist())


# --- operators that move elements ---

MoveFunction = Callable[[Node, Positions], "list[Positions] | None"]


def _concrete_shape_of(node: Node) -> tuple[int, ...] | None:
    """Return the output shape if it consists of numbers."""
    found = SHAPES[node.operator.name](node)
    return None if not found else concrete_shape(Fact(0, found[0]))


def _reshaped(node: Node, x: Positions) -> list[Positions] | None:
    shape = _concrete_shape_of(node)
    return None if shape is None or math.prod(shape) != x.size else [x.reshape(shape)]


def _expanded(node: Node, x: Positions) -> list[Positions] | None:
    shape = _concrete_shape_of(node)
    return None if shape is None or math.prod(shape) > INT_LIMIT else [np.broadcast_to(x, shape)]


def _squeezed(node: Node, x: Positions) -> list[Positions] | None:
    if node.given("axes", 1):
        return _reshaped(node, x)
    return [x.reshape([size for size in x.shape if size != 1])]


def _transposed(node: Node, x: Positions) -> list[Positions] | None:
    order = node.integers("perm")
    if order is not None and sorted(order) != list(range(x.ndim)):
        return None
    return [x.transpose(order)]


def _gathered(node: Node, x: Positions) -> list[Positions] | None:
    axis, shape, wanted = node.axis(x.ndim, 0) if x.ndim else None, concrete_shape(node.fact(1)), _concrete(node, 1)
    if axis is None or shape is None or wanted is None or not all(-x.shape[axis] <= index < x.shape[axis] for index in wanted):
        return None
    return [np.take(x, np.array(wanted, np.int64).reshape(shape), axis)]


def _gathered_elements(node: Node, x: Positions) -> list[Positions] | None:
    axis, shape, wanted = node.axis(x.ndim, 0) if x.ndim else None, concrete_shape(node.fact(1)), _concrete(node, 1)
    if axis is None or shape is None or wanted is None or len(shape) != x.ndim:
        return None
    fits = all(size <= limit for position, (size, limit) in enumerate(zip(shape, x.shape, strict=True)) if position != axis)
    if not fits or not all(-x.shape[axis] <= index < x.shape[axis] for index in wanted):
        return None
    trimmed = x[tuple(slice(None) if position == axis else slice(size) for position, size in enumerate(shape))]
    return [np.take_along_axis(trimmed, np.array(wanted, np.int64).reshape(shape), axis)]


def _sliced(node: Node, x: Positions) -> list[Positions] | None:
    for axis, start, end, step in slice_axes(node, x.ndim) or [(0, None, None, 1)]:
        if not isinstance(start, int) or not isinstance(end, int):
            return None
        size = x.shape[axis]
        first = start + size if start < 0 else start
        last = end + size if end < 0 else end
        # In a backward slice, a negative end that still lies before the front means "through the
        # front".
        if step < 0 and first < 0:
            return None  # engines differ, see eqsat/facts/shapes.py
        if step > 0:
            positions = range(min(max(first, 0), size), min(max(last, 0), size), step)
        else:
            positions = range(min(first, size - 1), min(max(last, -1), size - 1), step)
        x = np.take(x, np.array(list(positions), np.int64), axis)
    return [x]


def _tiled(node: Node, x: Positions) -> list[Positions] | None:
    repeats = _concrete(node, 1)
    shape = _concrete_shape_of(node)
    return None if repeats is None or shape is None or math.prod(shape) > INT_LIMIT else [np.tile(x, repeats)]


def _split_up(node: Node, x: Positions) -> list[Positions] | None:
    axis = node.axis(x.ndim, 0) if x.ndim else None
    sizes = None if axis is None else split_sizes(node, x.shape[axis])
    if axis is None or sizes is None:
        return None
    known = [size for size in sizes if isinstance(size, int) and size >= 0]
    if len(known) != len(sizes) or sum(known) != x.shape[axis]:
        return None
    return list(np.split(x, np.cumsum(known)[:-1], axis))


MOVES: dict[str, MoveFunction] = {
    "Expand": _expanded,
    "Flatten": _reshaped,
    "Gather": _gathered,
    "GatherElements": _gathered_elements,
    "Identity": lambda node, x: [x],
    "Reshape": _reshaped,
    "Slice": _sliced,
    "Split": _split_up,
    "Squeeze": _squeezed,
    "Tile": _tiled,
    "Transpose": _transposed,
    "Unsqueeze": _reshaped,
}


def _move(node: Node) -> Results:
    source = _input(node, 0)
    if source is None:
        return None
    shape, elements = source
    moved = MOVES[node.operator.name](node, np.arange(len(elements), dtype=np.int64).reshape(shape))
    return None if moved is None else [(x.shape, _picked(elements, x)) for x in moved]


def _concat(node: Node) -> Results:
    parts = [_input(node, position) for position in range(len(node.inputs))]
    known = [part for part in parts if part is not None]
    total = sum(len(elements) for _, elements in known)
    if not known or len(known) != len(parts) or total > INT_LIMIT:
        return None
    axis = node.axis(len(known[0][0]), 0)
    outer = {(len(shape), *(size for position, size in enumerate(shape) if position != axis)) for shape, _ in known}
    if axis is None or len(outer) != 1:
        return None
    pool = tuple(element for _, elements in known for element in elements)
    starts = np.cumsum([0, *(len(elements) for _, elements in known)])
    positions: list[Positions] = [np.arange(len(elements)).reshape(shape) + start for (shape, elements), start in zip(known, starts, strict=False)]
    joined: Positions = np.concatenate(positions, axis)
    return [(joined.shape, _picked(pool, joined))]


# --- operators that compute element by element ---


def _elementwise(node: Node) -> Results:
    parts = [_input(node, position) for position in range(len(node.inputs))]
    known = [part for part in parts if part is not None]
    if not known or len(known) != len(parts):
        return None
    shapes = [shape for shape, _ in known]
    if node.operator.version < 7 and "broadcast" in node.attributes and len(set(shapes)) > 1:
        return None  # the broadcasting of old opsets aligns axes differently
    positions: list[Positions] = [np.arange(len(elements)).reshape(shape) for shape, elements in known]
    try:
        aligned: tuple[Positions, ...] = np.broadcast_arrays(*positions)
    except ValueError:
        return None
    if aligned[0].size > INT_LIMIT:
        return None
    name = node.operator.name
    function = C_REMAINDER if name == "Mod" and node.integer("fmod", 0) == 1 else ELEMENT_FUNCTIONS[name]
    dtype = BOOL if name in TRUTHS else node.dtype(len(node.inputs) - 1)
    columns = [_picked(elements, places) for places, (_, elements) in zip(aligned, known, strict=True)]
    rows = (tuple(column[position] for column in columns) for position in range(aligned[0].size))
    return [(aligned[0].shape, tuple(wrap(dtype, function(operands)) for operands in rows))]


def _cast(node: Node) -> Results:
    source = _input(node, 0)
    target = node.dtype(1) if node.operator.name == "CastLike" else node.integer("to", 0)
    if target not in INTEGERS:
        return None
    if source is None:
        return _truncated(node.fact(0), target)
    return [(source[0], tuple(cast(node.dtype(0), target, value) for value in source[1]))]


def _truncated(source: Fact | None, target: int) -> Results:
    """Return the elements of a floating-point constant cast to integers, towards 0."""
    shape = concrete_shape(source)
    if source is None or source.floats is None or shape is None or target == BOOL:
        return None
    numbers = decoded(source.floats, source.dtype).astype(np.float64)
    whole = [int(number) if abs(number) < _EXACT else None for number in numbers.tolist()]
    return [(shape, tuple(number if number == wrap(target, number) else None for number in whole))]


# --- operators that reduce, count and generate ---


_REDUCTIONS: dict[str, Callable[[list[Dim]], Dim]] = {
    "ReduceMax": lambda values: maximum(*values) if values else None,
    "ReduceMin": lambda values: minimum(*values) if values else None,
    "ReduceProd": product,
    "ReduceSum": lambda values: add(*values),
}


def _reduce(node: Node) -> Results:
    source = _input(node, 0)
    if source is None:
        return None
    shape, elements = source
    rank = len(shape)
    axes = node.axes(rank, 1) if node.given("axes", 1) else ()
    if axes is None:
        return None
    if not axes:
        if node.integer("noop_with_empty_axes", 0):
            return [source]
        axes = tuple(range(rank))
    kept = [axis for axis in range(rank) if axis not in axes]
    groups = np.arange(len(elements)).reshape(shape).transpose([*kept, *sorted(set(axes))])
    outer = tuple(shape[axis] for axis in kept)
    rows = groups.reshape(math.prod(outer), math.prod(shape[axis] for axis in set(axes)))
    function = _REDUCTIONS[node.operator.name]
    values = tuple(wrap(node.dtype(0), function([elements[position] for position in row])) for row in rows.tolist())
    keep = node.integer("keepdims", 1) == 1
    return [(tuple(1 if axis in axes else size for axis, size in enumerate(shape)) if keep else outer, values)]


def _cumulative_sum(node: Node) -> Results:
    source, wanted = _input(node, 0), _concrete(node, 1)
    if source is None or len(source[0]) != 1 or wanted is None or len(wanted) != 1 or wanted[0] not in (0, -1):
        return None
    shape, elements = source
    order = list(reversed(elements)) if node.integer("reverse", 0) else list(elements)
    sums: list[Dim] = []
    total: Dim = 0
    for element in order:
        before, total = total, add(total, element)
        sums.append(before if node.integer("exclusive", 0) else total)
    if node.integer("reverse", 0):
        sums.reverse()
    return [(shape, tuple(wrap(node.dtype(0), value) for value in sums))]


def _shape(node: Node) -> Results:
    shape = node.shape(0)
    if shape is None:
        return None
    start, end = node.integer("start", 0), node.integer("end", len(shape))
    part = shape[max(start + len(shape), 0) if start < 0 else start : max(end + len(shape), 0) if end < 0 else end]
    return [((len(part),), part)] if len(part) <= INT_LIMIT else None


def _size(node: Node) -> Results:
    shape = node.shape(0)
    return None if shape is None else [((), (product(shape),))]


def _constant_of_shape(node: Node) -> Results:
    shape, value = _concrete(node, 0), node.attributes.get("value")
    if shape is None or min(shape, default=0) < 0 or math.prod(shape) > INT_LIMIT or not isinstance(value, AttributeProto):
        return None
    fact = from_tensor(value.t)
    if fact.ints is None or len(fact.ints) != 1:
        return None
    return [(tuple(shape), fact.ints * math.prod(shape))]


def _range(node: Node) -> Results:
    parts = [_input(node, position) for position in range(3)]
    known = [part[1][0] for part in parts if part is not None and len(part[1]) == 1]
    if len(known) != 3:
        return None
    start, limit, delta = known
    length = range_length(start, limit, delta)
    if not isinstance(length, int) or length > INT_LIMIT:
        return None
    return [((length,), tuple(wrap(node.dtype(0), add(start, mul(delta, step))) for step in range(length)))]


def _non_zero(node: Node) -> Results:
    source, values = _input(node, 0), _concrete(node, 0)
    if source is None or values is None or not source[0]:
        return None
    found = np.array(np.nonzero(np.array(values, object).reshape(source[0])), np.int64)
    return [(found.shape, tuple(found.ravel().tolist()))] if found.size <= INT_LIMIT else None


IntegerFunction = Callable[[Node], Results]

INTEGER_FUNCTIONS: dict[str, IntegerFunction] = {
    **dict.fromkeys(MOVES, _move),
    **dict.fromkeys(ELEMENT_FUNCTIONS, _elementwise),
    **dict.fromkeys(_REDUCTIONS, _reduce),
    "Cast": _cast,
    "CastLike": _cast,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "CumSum": _cumulative_sum,
    "NonZero": _non_zero,
    "Range": _range,
    "Shape": _shape,
    "Size": _size,
}
