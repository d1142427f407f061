"""Nodes in another spelling: what reading, normalizing and writing hand on.

A `Form` is one application of an operator of the newest opset, a `Written` one in the opset of a model: plain data
that compare by value. Their inputs say where the inputs of the node that they were made from went. A `Draft` is the
working copy between the two; tables of operators ask it questions and change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from onnx import TensorProto, helper

from eqsat.facts import Fact
from eqsat.nodes import Node, Shape
from eqsat.operators import AttributeValue, Operator
from eqsat.terms import Literal, fact_of

# What stands at an input: the input of the original node at that position, a constant, or nothing.
Source: TypeAlias = "int | Literal | None"


@dataclass(frozen=True)
class Form:
    """A node of the newest opset that means what an original node means; its outputs are the original's, in their order."""

    operator: Operator
    attributes: dict[str, AttributeValue]
    inputs: tuple[Source, ...]

    def facts(self, original: Sequence[Fact | None]) -> tuple[Fact | None, ...]:
        """What is known of each input, given what is known of the inputs of the original node."""
        return tuple(source_fact(source, original) for source in self.inputs)


@dataclass(frozen=True)
class Written:
    """A node in the opset of a model that means what a node of the newest opset means; `operator` may have an older name."""

    operator: Operator
    attributes: dict[str, AttributeValue]
    inputs: tuple[Source, ...]


def source_fact(source: Source, original: Sequence[Fact | None]) -> Fact | None:
    """What is known of an input; None where it is absent."""
    if source is None:
        return None
    return original[source] if isinstance(source, int) else fact_of(source)


def vector(elements: Sequence[int]) -> Literal:
    """A list of integers as ONNX passes axes, sizes and bounds."""
    return Literal(TensorProto.INT64, (len(elements),), tuple(elements))


def scalar(element: int) -> Literal:
    """One integer as ONNX passes an axis."""
    return Literal(TensorProto.INT64, (), (element,))


def floats(dtype: int, shape: tuple[int, ...], elements: Sequence[float]) -> Literal:
    """A tensor of floating-point elements."""
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    return Literal(dtype, shape, np.array(elements, np.float64).astype(kind).astype(kind.newbyteorder("<")).tobytes())


class Draft:
    """A node that is being respelled: one operator, attributes that can be set and dropped, inputs that can be put elsewhere."""

    def __init__(self, operator: Operator, attributes: dict[str, AttributeValue], inputs: Sequence[Source], facts: Sequence[Fact | None], outputs: int) -> None:
        self.operator = operator
        self.attributes = attributes
        self.inputs = list(inputs)
        self.outputs = outputs
        self._original = facts
        self.trim()

    @property
    def facts(self) -> tuple[Fact | None, ...]:
        """What is known of each input as it stands now."""
        return tuple(source_fact(source, self._original) for source in self.inputs)

    @property
    def node(self) -> Node:
        """The node as inference sees it."""
        return Node(self.operator, self.attributes, self.facts, self.outputs)

    def fact(self, position: int) -> Fact | None:
        """What is known of an input; None where it is absent."""
        return source_fact(self.inputs[position], self._original) if position < len(self.inputs) else None

    def shape(self, position: int) -> Shape | None:
        """The shape of an input; None where it is absent or its rank is unknown."""
        fact = self.fact(position)
        return None if fact is None else fact.shape

    def rank(self, position: int) -> int | None:
        """The rank of an input; None where it is absent or unknown."""
        shape = self.shape(position)
        return None if shape is None else len(shape)

    def numbers(self, position: int) -> tuple[int, ...] | None:
        """The elements of an integer input that all are numbers."""
        fact = self.fact(position)
        if fact is None or fact.ints is None:
            return None
        known = tuple(element for element in fact.ints if isinstance(element, int))
        return known if len(known) == len(fact.ints) else None

    def reals(self, position: int) -> tuple[float, ...] | None:
        """The elements of a small constant of a floating-point type."""
        fact = self.fact(position)
        if fact is None or fact.floats is None:
            return None
        kind = helper.tensor_dtype_to_np_dtype(fact.dtype).newbyteorder("<")
        return tuple(np.frombuffer(fact.floats, kind).astype(np.float64).tolist())

    def integer(self, name: str, default: int) -> int:
        """An integer attribute."""
        return self.node.integer(name, default)

    def put(self, position: int, source: Source) -> None:
        """Lets `source` stand at an input; a literal that says what stands there already changes nothing."""
        if isinstance(source, Literal):
            known = self.fact(position)
            if known is not None and (known.dtype, known.shape) == (source.dtype, source.shape) and source.elements in (known.ints, known.floats):
                return
        self.inputs += [None] * (position + 1 - len(self.inputs))
        self.inputs[position] = source
        self.trim()

    def trim(self) -> None:
        """Forgets absent inputs at the end."""
        while self.inputs and self.inputs[-1] is None:
            self.inputs.pop()
