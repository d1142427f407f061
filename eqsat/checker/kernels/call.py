"""Calls: one application of an operator to arrays, as the kernels of this package take it.

The input is an operator, its attributes in normal form, its inputs as arrays, and the data types
that the model declares for inputs and outputs. The output is a `Call`, from which a kernel reads
inputs and attributes. A kernel computes in the data types of its arrays, so that it serves both
modes of evaluation. With arrays of the declared types it rounds as the model does; with all floats
as float64 it computes with reals. Declared types matter only for operators that exist to round:
casts and quantization.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from eqsat.frozen import frozen
from eqsat.operators import Attributes, Operator

Array: TypeAlias = np.ndarray[Any, Any]


class Illegal(Exception):
    """ONNX gives these values no meaning here: an index out of range, an integer divided by zero, a
    kernel larger than its image.
    """


class Undefined(Illegal):
    """A step has a value that ONNX leaves open. The step itself does not fail; only readers of the
    value do.
    """


class Unsupported(Exception):
    """No engine computes this node: the text says which and why."""


@frozen
class Call:
    """One node and its inputs; absent ones are None, with the data type 0.

    `results` are the data types of the outputs, 0 for an unused one.
    """

    operator: Operator
    attributes: Attributes
    inputs: tuple[Array | None, ...]
    dtypes: tuple[int, ...]
    results: tuple[int, ...]

    def given(self, position: int) -> Array | None:
        """An optional input; None if it is absent."""
        return self.inputs[position] if position < len(self.inputs) else None

    def input(self, position: int) -> Array:
        """A required input."""
        value = self.given(position)
        if value is None:
            raise Illegal(f"{self.operator.name} has no input {position}")
        return value

    def all_inputs(self) -> list[Array]:
        """The inputs of an operator that takes any number of them."""
        return [value for value in self.inputs if value is not None]

    def dtype(self, position: int) -> int:
        """The declared data type of an input; 0 if it is absent."""
        return self.dtypes[position] if position < len(self.dtypes) else 0

    def integer(self, name: str, default: int = 0) -> int:
        """An integer attribute."""
        value = self.attributes.get(name)
        return value if isinstance(value, int) else default

    def number(self, name: str, default: float = 0.0) -> float:
        """A floating-point attribute."""
        value = self.attributes.get(name)
        return float(value) if isinstance(value, (int, float)) else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        """A list of integers among the attributes; None if it is absent."""
        value = self.attributes.get(name)
        return tuple(int(item) for item in value) if isinstance(value, tuple) else None

    def text(self, name: str, default: str = "") -> str:
        """A string attribute."""
        value = self.attributes.get(name)
        return value.decode() if isinstance(value, bytes) else default

    def parameter(self, position: int) -> tuple[int, ...] | None:
        """The integers of an input that ONNX uses as a list; None if it is absent."""
        value = self.given(position)
        return None if value is None else tuple(int(item) for item in value.reshape(-1))


Kernel: TypeAlias = Callable[[Call], list[Array]]


def from_front(axis: int, rank: int) -> int:
    """An axis counted from the front; raises `Illegal` if there is no such axis."""
    if not -rank <= axis < rank:
        raise Illegal(f"axis {axis} of a tensor of rank {rank}")
    return axis % rank


def from_front_all(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Axes counted from the front, each named once; raises `Illegal` otherwise."""
    found = tuple(from_front(axis, rank) for axis in axes)
    if len(set(found)) != len(found):
        raise Illegal(f"axes {list(axes)} name one twice")
    return found


@functools.cache
def is_float_type(kind: np.dtype[Any]) -> bool:
    """Whether a type is floating-point of any width; the types that numpy lacks have a kind of
    their own.
    """
    return kind.kind == "f" or "float" in kind.name


def is_float(array: Array) -> bool:
    """Whether the elements are floating-point numbers."""
    return is_float_type(array.dtype)


def some(mask: Array) -> bool:
    """Whether a mask marks any element; several times as fast as `any` of a small array."""
    return bool(np.count_nonzero(mask))


def is_integer(array: Array) -> bool:
    """Whether the elements are integers of any width."""
    return array.dtype.kind in "iu" or "int" in array.dtype.name


def per_channel(vector: Array, rank: int, axis: int = 1) -> Array:
    """A vector laid along one axis, to broadcast over all others; other arrays broadcast as they
    are.
    """
    return vector.reshape((-1,) + (1,) * (rank - axis - 1)) if vector.ndim == 1 else vector
