"""The vocabulary of the e-graph: one signature for each operator in use, and numbers for what terms carry.

egglog sees only numbers: attributes and facts are interned here, equal things under equal handles, so that
callbacks and tables are cheap and Python's own notion of equality (1 == True, NaN != NaN) decides nothing.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import onnx
from onnx import defs, helper

from eqsat.dims import Dim
from eqsat.facts import Array, Fact, from_array
from eqsat.model import FunctionKey
from eqsat.operators import AttributeValue, Operator, outputs_matter

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Link:
    """What is known of a list: the handles of its head's fact and of its tail's."""

    head: int
    tail: int


# What a class is known to be: a value's fact, the facts of a node's outputs, or of a list; None is an absent input and the end of a list.
Knowledge: TypeAlias = Fact | tuple[Fact, ...] | Link | None

# What a term is, where it is no operator's: a value from outside, a stored constant, an integer literal, one output of
# a node, an absent input, a list's link and end, and a constant that is evaluated and then stored.
INPUT, CONSTANT, LITERAL, PROJECTION, ABSENT, CONS, NIL, FOLDED = range(-1, -9, -1)

OUTPUTS = "#outputs"  # which outputs a node has, where that is part of what it computes
IDENTITY = "#identity"  # makes an impure node equal to no other


class Handles(Generic[Item]):
    """Numbers things: equal keys get equal handles, counted from 0 in the order of their first use."""

    def __init__(self) -> None:
        self._handles: dict[Hashable, int] = {}
        self._items: list[Item] = []

    def intern(self, key: Hashable, item: Item) -> int:
        """The handle of `key`; `item` is what `get` gives back for it."""
        handle = self._handles.get(key)
        if handle is None:
            handle = self._handles[key] = len(self._items)
            self._items.append(item)
        return handle

    def get(self, handle: int) -> Item:
        """The item behind a handle."""
        return self._items[handle]


def attribute_key(value: AttributeValue | None) -> Hashable:
    """A key under which equal attribute values, and only those, are equal: floats by their bits, messages by their bytes."""
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    if isinstance(value, tuple) and value and isinstance(value[0], float):
        return ("floats", struct.pack(f"<{len(value)}d", *value))
    if isinstance(value, onnx.AttributeProto):
        return ("message", value.SerializeToString(deterministic=True))
    return (type(value).__name__, value)


@dataclass(frozen=True, slots=True)
class Term:
    """An e-node. `head` is a signature's number or one of the kinds above; `data` are handles of attributes, a content, a literal or an index.

    In an encoding children and `eclass` are references; in an e-graph they are classes. A list is the last child.
    """

    head: int
    data: tuple[int, ...]
    children: tuple[int, ...]
    eclass: int


@dataclass(frozen=True, slots=True)
class Signature:
    """The form of an operator's terms: attribute columns, then inputs, then one list of the rest."""

    operator: Operator
    attributes: tuple[str, ...]
    inputs: int  # single inputs; absent ones are the absent term
    rest: bool  # whether a list of further inputs follows: variadic ones, and what bodies capture
    single: bool  # whether a term is the value itself; otherwise values are projections of it
    opaque: bool = False  # has bodies or calls a function: encoding alone knows the facts
    function: FunctionKey | None = None
    raw: bool = False  # a node as its model spells it, beside its normal form

    @classmethod
    def of(cls, operator: Operator) -> Signature:
        """The form of the terms of a pure operator that a schema describes."""
        schema = operator.schema
        assert schema is not None
        variadic = bool(schema.inputs) and schema.inputs[-1].option == defs.OpSchema.FormalParameterOption.Variadic
        hidden = (OUTPUTS,) if outputs_matter(operator) else ()
        return cls(operator, (*sorted(schema.attributes), *hidden), len(schema.inputs) - variadic, variadic, schema.max_output == 1)

    @property
    def lawless(self) -> bool:
        """Whether no law and no rule can say anything of a term but that it is equal to its like."""
        return self.opaque or self.raw or (self.operator.schema is None and not self.operator.pure)


@dataclass(frozen=True, slots=True)
class Literal:
    """A tensor whose elements are known: integers as numbers or as sizes that have names, others as their little-endian bytes."""

    dtype: int
    shape: tuple[int, ...]
    elements: tuple[Dim, ...] | bytes

    @property
    def concrete(self) -> bool:
        """Whether all elements are numbers, so that it can be written as a constant."""
        return isinstance(self.elements, bytes) or all(isinstance(element, int) for element in self.elements)

    @property
    def array(self) -> Array:
        """The elements of a concrete literal."""
        kind = helper.tensor_dtype_to_np_dtype(self.dtype)
        if isinstance(self.elements, bytes):
            return np.frombuffer(self.elements, kind.newbyteorder("<")).astype(kind).reshape(self.shape)
        return np.array(self.elements, dtype=kind).reshape(self.shape)


@functools.lru_cache(maxsize=1 << 14)
def fact_of(literal: Literal) -> Fact:
    """All that is known of a literal."""
    if literal.concrete:
        return from_array(literal.array)
    assert not isinstance(literal.elements, bytes)
    return Fact(literal.dtype, literal.shape, True, literal.elements)


def literal_of(fact: Fact) -> Literal | None:
    """The literal that a fact amounts to, where every element is known."""
    if fact.ints is None or fact.shape is None or not fact.dtype or None in fact.ints:
        return None
    sizes = tuple(size for size in fact.shape if isinstance(size, int))
    return Literal(fact.dtype, sizes, fact.ints) if len(sizes) == len(fact.shape) else None


class Terms:
    """The signatures and handles of one run."""

    def __init__(self) -> None:
        self.signatures: list[Signature] = []
        self._signature_index: dict[Signature, int] = {}
        self.attributes: Handles[AttributeValue | None] = Handles()
        self.facts: Handles[Knowledge] = Handles()
        self.literals: Handles[Literal] = Handles()
        self.absent = self.fact(None)

    def signature(self, signature: Signature) -> int:
        """The number of a signature, a new one on its first use."""
        index = self._signature_index.get(signature)
        if index is None:
            index = self._signature_index[signature] = len(self.signatures)
            self.signatures.append(signature)
        return index

    def attribute(self, value: AttributeValue | None) -> int:
        """The handle of an attribute's value; None stands for an attribute that is absent and has no default."""
        return self.attributes.intern(attribute_key(value), value)

    def fact(self, knowledge: Knowledge) -> int:
        """The handle of what is known of a class."""
        # A fact is a tuple too: the type keeps the two apart.
        return self.facts.intern((type(knowledge).__name__, knowledge), knowledge)

    def chain(self, handle: int) -> list[int]:
        """The handles of the facts in a list, given the handle of the list."""
        heads: list[int] = []
        while isinstance(link := self.facts.get(handle), Link):
            heads.append(link.head)
            handle = link.tail
        return heads

    def literal(self, literal: Literal) -> int:
        """The handle of a literal."""
        return self.literals.intern(literal, literal)
