"""The work of a node: counted operations, bytes and passes, before any machine gives them a time.

Counters (`contractions`, `sliding`, `passes`, `movement`) take a `PricedNode` and give its `Work`.
They never fail: an unknown size counts as `USUAL_SIZE`, a missing output as what the inputs make
of it. Counts are floats, because products of large sizes leave every integer of a machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

import onnx
from onnx import TensorProto

from eqsat.cost.shaped import USUAL_SIZE, PricedNode, Shaped
from eqsat.facts.fact import packed_bytes

Shape: TypeAlias = tuple[int, ...]


class Work(NamedTuple):
    """The work of a kernel for one node. Its class `kind` decides how a target turns it into
    seconds.
    """

    kind: str
    bytes: float  # read and written
    operations: float = 0.0  # multiply-adds count as two
    elements: float = 0.0  # through which the kernel passes; results, of a product
    rows: float = 0.0  # starts of an inner loop: rows of a norm, contiguous runs of a move
    weights: float = 0.0  # elements of the second factor of a product
    columns: float = 0.0  # of the second factor, which kernels fill up to whole vectors


Counter: TypeAlias = Callable[[PricedNode], Work]

_STRING_BYTES = 32.0
_UNKNOWN_BYTES = 4.0  # of an element whose data type is unknown


def _bytes_of_dtypes() -> dict[int, float]:
    sizes: dict[int, float] = {TensorProto.UNDEFINED: _UNKNOWN_BYTES, TensorProto.STRING: _STRING_BYTES}
    for dtype in TensorProto.DataType.values():
        if dtype not in sizes:
            sizes[int(dtype)] = packed_bytes(int(dtype), 64) / 64
    return sizes


_BYTES = _bytes_of_dtypes()


def moved(tensors: Iterable[Shaped | None]) -> float:
    """The bytes of all tensors together."""
    total = 0.0
    for tensor in tensors:
        if tensor is not None:
            total += tensor.elements * _BYTES.get(tensor.dtype, _UNKNOWN_BYTES)
    return total


def element_size(tensor: Shaped) -> float:
    """The bytes of one element."""
    return _BYTES.get(tensor.dtype, _UNKNOWN_BYTES)


def at(tensors: Sequence[Shaped | None], index: int) -> Shaped | None:
    """The tensor at a position, None if it is absent."""
    return tensors[index] if index < len(tensors) else None


def shape_at(tensors: Sequence[Shaped | None], index: int) -> Shape | None:
    """The shape of the tensor at a position, None if it is absent or of unknown rank."""
    tensor = tensors[index] if index < len(tensors) else None
    return None if tensor is None else tensor.shape


def largest(tensors: Iterable[Shaped | None]) -> Shaped:
    """The tensor of most elements; a usual one if there is none."""
    present = [tensor for tensor in tensors if tensor is not None]
    return max(present, key=lambda tensor: tensor.elements) if present else Shaped(TensorProto.FLOAT, (USUAL_SIZE,))


def size_of(shape: Sequence[int]) -> float:
    """The number of elements of a shape."""
    return float(math.prod(shape))


def integer(node: PricedNode, name: str, default: int) -> int:
    """An integer attribute; an attribute of another type counts as absent."""
    value = node.attributes.get(name, default)
    return value if isinstance(value, int) else default


def integers(node: PricedNode, name: str) -> tuple[int, ...] | None:
    """A list of integers, None if it is absent, empty or something else."""
    value = node.attributes.get(name)
    if not isinstance(value, tuple) or not value:
        return None
    found = tuple(item for item in value if isinstance(item, int))
    return found if len(found) == len(value) else None


def text(node: PricedNode, name: str, default: str) -> str:
    """A string attribute."""
    value = node.attributes.get(name)
    if isinstance(value, onnx.AttributeProto):
        value = value.s
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else default


def length(node: PricedNode, name: str) -> int:
    """How many items an attribute has that is a list."""
    value = node.attributes.get(name)
    return len(value) if isinstance(value, tuple) else 0


def axis_of(node: PricedNode, default: int, rank: int) -> int:
    """The attribute `axis` as a position from the front, within the rank."""
    axis = integer(node, "axis", default)
    return min(max(axis + rank if axis < 0 else axis, 0), max(rank - 1, 0))


def broadcast(tensors: Iterable[Shaped | None]) -> float:
    """The number of elements of the common shape, or of the largest tensor if a rank is unknown."""
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
    """How many runs a kernel makes whose inputs broadcast: within a run, none of them starts again."""
    output = shape_at(outputs, 0)
    if output is None:
        return 0.0
    runs = 0.0
    for tensor in inputs:
        shape = tensor.shape if tensor is not None else None
        if shape is None or shape == output or not shape:
            continue
        # Axes from the end, as long as all of them are there, or all of them are repeated.
        run, repeated = 1, None
        for have, want in zip(reversed(shape), reversed(output), strict=False):
            if want != 1:
                if repeated is None:
                    repeated = have != want
                if repeated != (have != want):
                    break
                run *= want
        runs = max(runs, elements / max(run, 1))
    return 0.0 if runs <= 1.0 else runs


def result(node: PricedNode) -> float:
    """The elements of the first output; where it is missing, of the broadcast inputs."""
    output = node.outputs[0] if node.outputs else None
    return float(output.elements) if output is not None else broadcast(node.inputs)


def traffic(node: PricedNode) -> float:
    """The bytes of all inputs and outputs; a missing first output counts as the broadcast inputs."""
    total = moved(node.inputs) + moved(node.outputs)
    if not node.outputs or node.outputs[0] is None:
        total += broadcast(node.inputs) * element_size(largest(node.inputs))
    return total
