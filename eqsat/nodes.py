"""A node as inference sees it: an operator, its attributes, and the facts of its inputs, with the questions that tables of operators ask."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from onnx import helper

from eqsat.dims import Dim, equal, precision
from eqsat.facts import Fact
from eqsat.operators import Attributes, Operator

Shape: TypeAlias = tuple[Dim, ...]


class Node(NamedTuple):
    """One application of an operator; absent optional inputs are None."""

    operator: Operator
    attributes: Attributes
    inputs: tuple[Fact | None, ...]
    outputs: int

    def fact(self, position: int) -> Fact | None:
        """The fact of an input; None where the input is absent."""
        return self.inputs[position] if position < len(self.inputs) else None

    def dtype(self, position: int) -> int:
        """The data type of an input; 0 where it is absent or unknown."""
        fact = self.fact(position)
        return 0 if fact is None else fact.dtype

    def shape(self, position: int) -> Shape | None:
        """The shape of an input; None where it is absent or its rank is unknown."""
        fact = self.fact(position)
        return None if fact is None else fact.shape

    def ints(self, position: int) -> Shape | None:
        """The elements of an integer input; None where it is absent or unknown."""
        fact = self.fact(position)
        return None if fact is None else fact.ints

    def integer(self, name: str, default: int) -> int:
        """An integer attribute."""
        value = self.attributes.get(name)
        return value if isinstance(value, int) else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        """A list of integers among the attributes; None where it is absent."""
        value = self.attributes.get(name)
        return tuple(int(item) for item in value) if isinstance(value, tuple) else None

    def text(self, name: str, default: str) -> str:
        """A string attribute."""
        value = self.attributes.get(name)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else default

    def given(self, name: str, position: int) -> bool:
        """Whether a parameter is given, as the attribute `name` (older operators) or as the input at `position`."""
        return name in self.attributes or self.fact(position) is not None

    def parameter(self, name: str, position: int) -> Shape | None:
        """The integers of a parameter that is given one way or the other; where only their number is known each is None."""
        stated = self.integers(name)
        if stated is not None:
            return stated
        elements = self.ints(position)
        if elements is not None:
            return elements
        shape = self.shape(position)
        length = shape[0] if shape is not None and len(shape) == 1 else None
        return (None,) * length if isinstance(length, int) and 0 <= length <= 64 else None

    def axis(self, rank: int, default: int, name: str = "axis") -> int | None:
        """The axis attribute, counted from the front; None where it is out of range."""
        return from_front(self.integer(name, default), rank)

    def axes(self, rank: int, position: int) -> tuple[int, ...] | None:
        """The parameter `axes`, counted from the front; None where it is unknown or out of range."""
        values = self.parameter("axes", position)
        if values is None:
            return None
        found = tuple(from_front(value, rank) for value in values)
        return tuple(axis for axis in found if axis is not None) if None not in found else None


def from_front(axis: Dim, rank: int) -> int | None:
    """An axis counted from the front, where it is a number in range."""
    if not isinstance(axis, int) or not -rank <= axis < rank:
        return None
    return axis + rank if axis < 0 else axis


def float_number(fact: Fact | None) -> Any:
    """The one element of a floating-point constant, as a number of its type; None where it is unknown."""
    if fact is None or fact.floats is None:
        return None
    kind = helper.tensor_dtype_to_np_dtype(fact.dtype)
    return np.frombuffer(fact.floats, kind.newbyteorder("<"))[0] if len(fact.floats) == kind.itemsize else None


def alike(*dims: Dim) -> Dim:
    """The size that all of `dims` are, in a node that is legal only where they are equal: the most precise."""
    return min(dims, key=precision)


def broadcast(*shapes: Shape) -> Shape:
    """The shape that tensors broadcast to together; a size that depends on which of two is 1 is None."""
    rank = max(map(len, shapes))
    return tuple(_broadcast_dim([shape[axis - rank] for shape in shapes if axis >= rank - len(shape)]) for axis in range(rank))


def _broadcast_dim(dims: list[Dim]) -> Dim:
    others = list(dict.fromkeys(dim for dim in dims if dim != 1))
    if not others:
        return 1
    # A size that is never 1 is the result's, whatever the others are.
    fixed = [dim for dim in others if equal(dim, 1) is False]
    if fixed:
        return alike(*fixed)
    return others[0] if len(others) == 1 else None
