"""A node for inference: an operator, its attributes and its input facts, with typed access."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from eqsat.facts.dims import Dim, equal, minimum, precision
from eqsat.facts.element_bytes import decoded
from eqsat.facts.fact import Fact
from eqsat.operators import Attributes, Operator

Shape: TypeAlias = tuple[Dim, ...]


class Node(NamedTuple):
    """One application of an operator; absent optional inputs are None."""

    operator: Operator
    attributes: Attributes
    inputs: tuple[Fact | None, ...]
    outputs: int

    def fact(self, position: int) -> Fact | None:
        """Return the fact of an input; None if the input is absent."""
        return self.inputs[position] if position < len(self.inputs) else None

    def dtype(self, position: int) -> int:
        """Return the data type of an input; 0 if it is absent or unknown."""
        fact = self.fact(position)
        return 0 if fact is None else fact.dtype

    def shape(self, position: int) -> Shape | None:
        """Return the shape of an input; None if it is absent or its rank is unknown."""
        fact = self.fact(position)
        return None if fact is None else fact.shape

    def ints(self, position: int) -> Shape | None:
        """Return the elements of an integer input; None if it is absent or unknown."""
        fact = self.fact(position)
        return None if fact is None else fact.ints

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        value = self.attributes.get(name)
        return value if isinstance(value, int) else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Return an attribute that is a list of integers; None if it is absent."""
        value = self.attributes.get(name)
        return tuple(int(item) for item in value) if isinstance(value, tuple) else None

    def text(self, name: str, default: str) -> str:
        """Return a string attribute."""
        value = self.attributes.get(name)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else default

    def given(self, name: str, position: int) -> bool:
        """Tell whether a parameter is given, as an attribute (old opsets) or as an input."""
        return name in self.attributes or self.fact(position) is not None

    def parameter(self, name: str, position: int) -> Shape | None:
        """Return the integers of a parameter, given as an attribute or an input.

        If only their number is known, each is None.
        """
        given = self.integers(name)
        if given is not None:
            return given
        elements = self.ints(position)
        if elements is not None:
            return elements
        shape = self.shape(position)
        length = shape[0] if shape is not None and len(shape) == 1 else None
        return (None,) * length if isinstance(length, int) and 0 <= length <= 64 else None

    def axis(self, rank: int, default: int, name: str = "axis") -> int | None:
        """Return the axis attribute counted from the front; None if it is out of range."""
        return from_front(self.integer(name, default), rank)

    def axes(self, rank: int, position: int) -> tuple[int, ...] | None:
        """Return the parameter `axes` counted from the front; None if unknown or out of range."""
        values = self.parameter("axes", position)
        if values is None:
            return None
        found = tuple(from_front(value, rank) for value in values)
        return tuple(axis for axis in found if axis is not None) if None not in found else None


def from_front(axis: Dim, rank: int) -> int | None:
    """Return an axis counted from the front, if it is a number in range."""
    if not isinstance(axis, int) or not -rank <= axis < rank:
        return None
    return axis + rank if axis < 0 else axis


def float_number(fact: Fact | None) -> Any:
    """Return the element of a floating-point scalar constant as a numpy number, or None."""
    if fact is None or fact.floats is None:
        return None
    elements = decoded(fact.floats, fact.dtype)
    return elements[0] if len(elements) == 1 else None


def alike(*dims: Dim) -> Dim:
    """Return the most precise of sizes that every legal node requires to be equal."""
    return min(dims, key=precision)


def broadcast(*shapes: Shape) -> Shape:
    """Return the broadcast shape; a size is None if it depends on which operand is 1."""
    if len(set(shapes)) == 1:
        return shapes[0]
    rank = max(map(len, shapes))
    return tuple(_broadcast_dim([shape[axis - rank] for shape in shapes if axis >= rank - len(shape)]) for axis in range(rank))


def _broadcast_dim(dims: list[Dim]) -> Dim:
    others = list(dict.fromkeys(dim for dim in dims if dim != 1))
    if not others:
        return 1
    # A size that is never 1 is the size of the result, whatever the other sizes are.
    fixed = [dim for dim in others if equal(dim, 1) is False]
    if fixed:
        return alike(*fixed)
    # Sizes that are 1 at the same values of their names never stretch one another: S and min(256, S).
    return alike(*others) if len(others) == 1 or len({minimum(dim, 2) for dim in others}) == 1 else None
