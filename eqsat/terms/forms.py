"""Nodes in another spelling: the data that reading, normalizing and writing exchange.

A `Form` is one operator application in the newest opset, a `Written` one in the opset of a model.
Both are plain data that compare by value. Their inputs refer to the inputs of the node they were
made from. A `Draft` is a mutable working copy between the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from onnx import TensorProto, helper

from eqsat.facts.element_bytes import decoded
from eqsat.facts.fact import Fact
from eqsat.facts.node import Node, Shape
from eqsat.frozen import frozen
from eqsat.operators import AttributeValue, Operator
from eqsat.terms.terms import Literal, fact_of

# The source of an input: the position of an input of the original node, a constant, or nothing.
Source: TypeAlias = "int | Literal | None"


@frozen(slots=False)
class Form:
    """A node of the newest opset with the meaning and the outputs of an original node."""

    operator: Operator
    attributes: dict[str, AttributeValue]
    inputs: tuple[Source, ...]

    def facts(self, original: Sequence[Fact | None]) -> tuple[Fact | None, ...]:
        """Return the fact of each input, from the facts of the original node's inputs."""
        return tuple(source_fact(source, original) for source in self.inputs)


@frozen(slots=False)
class Written:
    """A node in a model's opset with the meaning of a node of the newest opset.

    `operator` may have an older name.
    """

    operator: Operator
    attributes: dict[str, AttributeValue]
    inputs: tuple[Source, ...]


@frozen(slots=False)
class Definition:
    """Nodes in a model's opset that together mean one node of the newest opset.

    The last node makes the result. The inputs of the original node have the first places, and the
    nodes have the places after them, each of which later nodes may read.
    """

    nodes: tuple[Written, ...]


def source_fact(source: Source, original: Sequence[Fact | None]) -> Fact | None:
    """Return the fact of an input; None if it is absent."""
    if source is None:
        return None
    return original[source] if isinstance(source, int) else fact_of(source)


def vector(elements: Sequence[int]) -> Literal:
    """Make a list of integers, as ONNX passes axes, sizes and bounds."""
    return Literal(TensorProto.INT64, (len(elements),), tuple(elements))


def scalar(element: int) -> Literal:
    """Make an integer scalar, as ONNX passes an axis."""
    return Literal(TensorProto.INT64, (), (element,))


def floats(dtype: int, shape: tuple[int, ...], elements: Sequence[float]) -> Literal:
    """Make a tensor of floating-point elements. Those beyond the type become infinite."""
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    with np.errstate(over="ignore"):
        array = np.array(elements, np.float64).astype(kind)
    return Literal(dtype, shape, array.astype(kind.newbyteorder("<")).tobytes())


class Draft:
    """A node under conversion: its operator, attributes and inputs can be changed."""

    def __init__(self, operator: Operator, attributes: dict[str, AttributeValue], inputs: Sequence[Source], facts: Sequence[Fact | None], outputs: int) -> None:
        self.operator = operator
        self.attributes = attributes
        self.inputs = list(inputs)
        self.outputs = outputs
        self._original = facts
        self.trim()

    @property
    def facts(self) -> tuple[Fact | None, ...]:
        """Return the current fact of each input."""
        return tuple(source_fact(source, self._original) for source in self.inputs)

    @property
    def node(self) -> Node:
        """Return the node for inference."""
        return Node(self.operator, self.attributes, self.facts, self.outputs)

    def fact(self, position: int) -> Fact | None:
        """Return the fact of an input; None if it is absent."""
        return source_fact(self.inputs[position], self._original) if position < len(self.inputs) else None

    def shape(self, position: int) -> Shape | None:
        """Return the shape of an input; None if it is absent or its rank is unknown."""
        fact = self.fact(position)
        return None if fact is None else fact.shape

    def rank(self, position: int) -> int | None:
        """Return the rank of an input; None if it is absent or unknown."""
        shape = self.shape(position)
        return None if shape is None else len(shape)

    def numbers(self, position: int) -> tuple[int, ...] | None:
        """Return the elements of an integer input if all are numbers."""
        fact = self.fact(position)
        if fact is None or fact.ints is None:
            return None
        known = tuple(element for element in fact.ints if isinstance(element, int))
        return known if len(known) == len(fact.ints) else None

    def reals(self, position: int) -> tuple[float, ...] | None:
        """Return the elements of a small floating-point constant."""
        fact = self.fact(position)
        if fact is None or fact.floats is None:
            return None
        return tuple(decoded(fact.floats, fact.dtype).astype(np.float64).tolist())

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        return self.node.integer(name, default)

    def put(self, position: int, source: Source) -> None:
        """Make `source` the input at `position`.

        A literal that equals the current input changes nothing.
        """
        if isinstance(source, Literal):
            known = self.fact(position)
            if known is not None and (known.dtype, known.shape) == (source.dtype, source.shape) and source.elements in (known.ints, known.floats):
                return
        self.inputs += [None] * (position + 1 - len(self.inputs))
        self.inputs[position] = source
        self.trim()

    def trim(self) -> None:
        """Remove absent inputs at the end."""
        while self.inputs and self.inputs[-1] is None:
            self.inputs.pop()
