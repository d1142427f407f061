"""The work of a node: its operations, bytes and passes, counted before a target turns them into
time.

Counters (`contractions`, `sliding`, `passes`, `movement`) take a `PricedNode` and return its
`Work`. They never fail: an unknown size counts as `USUAL_SIZE`, and a missing output as the inputs
imply it. Counts are floats because products of large sizes exceed every machine integer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

import onnx
from onnx import TensorProto

from eqsat.cost.shaped import USUAL_SIZE, PricedNode, Shaped
from eqsat.facts.fact import packed_bytes

Shape: TypeAlias = tuple[int, ...]


class Work(NamedTuple):
    """The work of a kernel for one node. A target turns its class `kind` into seconds."""

    kind: str
    bytes: float  # bytes read and written
    operations: float = 0.0  # operations; a multiply-add counts as two
    elements: float = 0.0  # elements that the kernel passes over; of a product, its results
    rows: float = 0.0  # starts of an inner loop: rows of a norm, contiguous runs of a move
    weights: float = 0.0  # elements of the second factor of a product
    columns: float = 0.0  # columns of the second factor, which kernels pad to whole vectors
    multiply_adds: float = 0.0  # of sums of products alone: no bias, scale, softmax or activation
    inner: float = 0.0  # multiply-adds of each result of a product of matrices
    stored: float = 0.0  # elements of a factor or of filters that are constant
    whole: float = 0.0  # bytes of a larger move of which these are a part: they move no faster


Counter: TypeAlias = Callable[[PricedNode], Work]


def constant_elements(node: PricedNode, *places: int) -> float:
    """Returns the elements of those inputs that are constant."""
    tensors = (at(node.inputs, place) for place in places)
    return float(sum(tensor.elements for tensor in tensors if tensor is not None and tensor.constant))


def passed(done: Work, depth: int) -> float:
    """Returns the elements that a kernel passes over if it adds up `depth` products of a result at a
    time, or any number if that is 0: a product goes over its results once for each time.
    """
    if depth == 0 or done.inner <= depth:
        return done.elements
    return done.elements + done.multiply_adds / done.inner * (math.ceil(done.inner / depth) - 1)


_STRING_BYTES = 32.0
_UNKNOWN_BYTES = 4.0  # bytes of an element whose data type is unknown


def _bytes_of_dtypes() -> dict[int, float]:
    sizes: dict[int, float] = {TensorProto.UNDEFINED: _UNKNOWN_BYTES, TensorProto.STRING: _STRING_BYTES}
    for dtype in TensorProto.DataType.values():
        if dtype not in sizes:
            sizes[int(dtype)] = packed_bytes(int(dtype), 64) / 64
    return sizes


_BYTES = _bytes_of_dtypes()


def moved(tensors: Iterable[Shaped | None]) -> float:
    """Returns the bytes of all tensors together."""
    total = 0.0
    for tensor in tensors:
        if tensor is not None:
            total += tensor.elements * _BYTES.get(tensor.dtype, _UNKNOWN_BYTES)
    return total


def element_size(tensor: Shaped) -> float:
    """Returns the bytes of one element."""
    return _BYTES.get(tensor.dtype, _UNKNOWN_BYTES)


def at(tensors: Sequence[Shaped | None], index: int) -> Shaped | None:
    """Returns the tensor at a position, or None if it is absent."""
    return tensors[index] if index < len(tensors) else None


def shape_at(tensors: Sequence[Shaped | None], index: int) -> Shape | None:
    """Returns the shape of the tensor at a position, or None if it is absent or of unknown rank."""
    tensor = tensors[index] if index < len(tensors) else None
    return None if tensor is None else tensor.shape


def largest(tensors: Iterable[Shaped | None]) -> Shaped:
    """Returns the tensor of most elements, or a usual one if there is none."""
    present = [tensor for tensor in tensors if tensor is not None]
    return max(present, key=lambda tensor: tensor.elements) if present else Shaped(TensorProto.FLOAT, (USUAL_SIZE,))


def size_of(shape: Sequence[int]) -> float:
    """Returns the number of elements of a shape."""
    return float(math.prod(shape))


def integer(node: PricedNode, name: str, default: int) -> int:
    """Returns an integer attribute. An attribute of another type counts as absent."""
    value = node.attributes.get(name, default)
    return value if isinstance(value, int) else default


def integers(node: PricedNode, name: str) -> tuple[int, ...] | None:
    """Returns a list of integers, or None if it is absent, empty or of another type."""
    value = node.attributes.get(name)
    if not isinstance(value, tuple) or not value:
        return None
    found = tuple(item for item in value if isinstance(item, int))
    return found if len(found) == len(value) else None


def text(node: PricedNode, name: str, default: str) -> str:
    """Returns a string attribute."""
    value = node.attributes.get(name)
    if isinstance(value, onnx.AttributeProto):
        value = value.s
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else default


def length(node: PricedNode, name: str) -> int:
    """Returns the length of an attribute that is a list."""
    value = node.attributes.get(name)
    return len(value) if isinstance(value, tuple) else 0


def axis_of(node: PricedNode, default: int, rank: int) -> int:
    """Returns the attribute `axis` as a position from the front, within the rank."""
    axis = integer(node, "axis", default)
    return min(max(axis + rank if axis < 0 else axis, 0), max(rank - 1, 0))


def broadcast(tensors: Iterable[Shaped | None]) -> float:
    """Returns the number of elements of the common shape, or of the largest tensor if a rank is
    unknown.
    """
    shapes: list[Shape] = []
    fallback = 0
    for tensor in tensors:
        if tensor is not None:
            if tensor.shape is None:
                fallback = max(fallback, USUAL_SIZE)
            else:
                shapes.append(tensor.shape)
    rank = max(map(len, shapes), default=0)
    sizes = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            sizes[axis] = size if sizes[axis] == 1 or size == 0 else max(sizes[axis], size) if sizes[axis] else 0
    return max(float(math.prod(sizes)) if shapes else 0.0, float(fallback))


def broadcast_runs(outputs: Sequence[Shaped | None], inputs: Sequence[Shaped | None], elements: float) -> float:
    """Returns the number of runs of a kernel whose inputs broadcast. Within a run no input starts
    again.
    """
    output = shape_at(outputs, 0)
    if output is None:
        return 0.0
    runs = 0.0
    for tensor in inputs:
        shape = tensor.shape if tensor is not None else None
        if shape is None or shape == output or not shape:
            continue
        # A run is the longest stretch of last axes that the input has in full, or along which it
        # repeats.
        run, repeated = 1, None
        for have, want in zip_longest(reversed(shape), reversed(output), fillvalue=1):
            if want != 1:
                if repeated is None:
                    repeated = have != want
                if repeated != (have != want):
                    break
                run *= want
        runs = max(runs, elements / max(run, 1))
    return 0.0 if runs <= 1.0 else runs


def steps_singly(shapes: Sequence[Sequence[object]]) -> bool:
    """Tells whether a kernel that broadcasts operands of these shapes takes the elements one by one.

    Kernels put axes of size 1 together with those before them, but ONNX Runtime's look no further than
    the rank of the operand that has fewest axes, or the last axis if that is a number.
    """
    least = min(map(len, shapes))
    return least < max(map(len, shapes)) and all(size == 1 for shape in shapes for size in shape[-max(least, 1) :])


def single_steps(node: PricedNode, elements: float) -> float:
    """Returns the steps of a kernel of operands that broadcast, if each step is one element."""
    output = shape_at(node.outputs, 0)
    if output is None or elements <= 1.0:
        return 0.0
    fixed = (tensor for tensor in node.inputs if tensor is not None and not (node.free_numbers and tensor.constant and tensor.elements == 1))
    return elements if steps_singly([output, *(tensor.shape for tensor in fixed if tensor.shape is not None)]) else 0.0


def result(node: PricedNode) -> float:
    """Returns the elements of the first output. If it is missing, the broadcast inputs give them."""
    output = node.outputs[0] if node.outputs else None
    return float(output.elements) if output is not None else broadcast(node.inputs)


def traffic(node: PricedNode) -> float:
    """Returns the bytes of all inputs and outputs. Where no output is known, the broadcast inputs count
    as one.
    """
    total = moved(node.inputs) + moved(node.outputs)
    if all(output is None for output in node.outputs):
        total += broadcast(node.inputs) * element_size(largest(node.inputs))
    return total
