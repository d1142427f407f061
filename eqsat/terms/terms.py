"""The vocabulary of the e-graph: a signature for each operator in use, and handles for data.

egglog sees only numbers. Attributes and facts are interned here, equal ones under equal handles. So
callbacks and tables are cheap, and Python's own equality (1 == True, NaN != NaN) never matters.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Hashable
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import onnx
from onnx import defs, helper

from eqsat.facts.dims import Dim
from eqsat.facts.element_bytes import decoded
from eqsat.facts.fact import Array, Fact, from_array
from eqsat.frozen import frozen
from eqsat.model.model import FunctionKey
from eqsat.operators import AttributeValue, Operator, outputs_matter

Item = TypeVar("Item")


@frozen
class Link:
    """The fact of a list: the handles of the facts of its head and its tail."""

    head: int
    tail: int


# The fact of a class: of a value, of a node's outputs, or of a list. None is an absent input and
# the end of a list.
Knowledge: TypeAlias = Fact | tuple[Fact, ...] | Link | None

# Terms without an operator: a value from outside, a stored constant, an integer literal, one output
# of a node, an absent input, a list's cons and nil, a constant to be folded and stored, and two
# neighbors that a runtime fuses.
INPUT, CONSTANT, LITERAL, PROJECTION, ABSENT, CONS, NIL, FOLDED, FUSED = range(-1, -10, -1)

OUTPUTS = "#outputs"  # the outputs that a node names, if they change its meaning
IDENTITY = "#identity"  # makes an impure node differ from every other node


class Handles(Generic[Item]):
    """Handles for items: equal keys get equal handles, counted from 0 in the order of first use."""

    def __init__(self) -> None:
        self._handles: dict[Hashable, int] = {}
        self._items: list[Item] = []

    def intern(self, key: Hashable, item: Item) -> int:
        """Return the handle of `key`; `get` returns `item` for it."""
        handle = self._handles.get(key)
        if handle is None:
            handle = self._handles[key] = len(self._items)
            self._items.append(item)
        return handle

    def find(self, key: Hashable) -> int | None:
        """Return the handle of `key`, or None if it has none yet."""
        return self._handles.get(key)

    def get(self, handle: int) -> Item:
        """Return the item behind a handle."""
        return self._items[handle]


def attribute_key(value: AttributeValue | None) -> Hashable:
    """Return a key that is equal exactly for equal values: floats by bits, messages by bytes."""
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    if isinstance(value, tuple) and value and isinstance(value[0], float):
        return ("floats", struct.pack(f"<{len(value)}d", *value))
    if isinstance(value, onnx.AttributeProto):
        return ("message", value.SerializeToString(deterministic=True))
    return (type(value).__name__, value)


@frozen
class Term:
    """An e-node. `head` is the number of a signature or one of the kinds above.

    `data` are handles of attributes, a content, a literal or an index. Children and `eclass` are
    references in an encoding and classes in an e-graph. A list is the last child.
    """

    head: int
    data: tuple[int, ...]
    children: tuple[int, ...]
    eclass: int


@frozen
class Signature:
    """The form of an operator's terms: attribute columns, inputs, one list of the rest."""

    operator: Operator
    attributes: tuple[str, ...]
    inputs: int  # single inputs; absent ones are the absent term
    rest: bool  # a list of further inputs follows: variadic ones, and captured values
    single: bool  # a term is the value itself; otherwise values are projections of it
    opaque: bool = False  # has bodies or calls a function: only encoding knows the facts
    function: FunctionKey | None = None
    raw: bool = False  # a node as its model spells it, beside its normal form

    @classmethod
    def of(cls, operator: Operator) -> Signature:
        """Return the form of terms of a pure operator with a schema."""
        schema = operator.schema
        assert schema is not None
        variadic = bool(schema.inputs) and schema.inputs[-1].option == defs.OpSchema.FormalParameterOption.Variadic
        hidden = (OUTPUTS,) if outputs_matter(operator) else ()
        return cls(operator, (*sorted(schema.attributes), *hidden), len(schema.inputs) - variadic, variadic, schema.max_output == 1)

    @property
    def lawless(self) -> bool:
        """Tell whether no law and no rule applies to a term, except congruence."""
        return self.opaque or self.raw or (self.operator.schema is None and not self.operator.pure)


@frozen
class Literal:
    """A tensor of known elements.

    Integers are numbers or symbolic sizes; other elements are little-endian bytes.
    """

    dtype: int
    shape: tuple[int, ...]
    elements: tuple[Dim, ...] | bytes

    @property
    def concrete(self) -> bool:
        """Tell whether all elements are numbers, so that it can be written as a constant."""
        return isinstance(self.elements, bytes) or all(isinstance(element, int) for element in self.elements)

    @property
    def array(self) -> Array:
        """Return the elements of a concrete literal."""
        kind = helper.tensor_dtype_to_np_dtype(self.dtype)
        if isinstance(self.elements, bytes):
            return decoded(self.elements, self.dtype).astype(kind).reshape(self.shape)
        return np.array(self.elements, dtype=kind).reshape(self.shape)


@functools.lru_cache(maxsize=1 << 14)
def fact_of(literal: Literal) -> Fact:
    """Return the full fact of a literal."""
    if literal.concrete:
        return from_array(literal.array)
    assert not isinstance(literal.elements, bytes)
    return Fact(literal.dtype, literal.shape, ints=literal.elements)  # sizes are known only when the model runs


def literal_of(fact: Fact) -> Literal | None:
    """Return the literal of a fact, if every element is known."""
    if fact.ints is None or fact.shape is None or not fact.dtype or None in fact.ints:
        return None
    sizes = tuple(size for size in fact.shape if isinstance(size, int))
    return Literal(fact.dtype, sizes, fact.ints) if len(sizes) == len(fact.shape) else None


class Terms:
    """The signatures and handles of one run.

    `domains` are the runtimes' own domains whose operators the run may read, and `written` those
    that its result may have: the same by default.
    """

    def __init__(self, domains: frozenset[str] = frozenset(), written: frozenset[str] | None = None) -> None:
        self.domains = domains
        self.written = domains if written is None else written
        self.signatures: list[Signature] = []
        self._signature_index: dict[Signature, int] = {}
        self.attributes: Handles[AttributeValue | None] = Handles()
        self.facts: Handles[Knowledge] = Handles()
        self.literals: Handles[Literal] = Handles()
        self.absent = self.fact(None)

    def signature(self, signature: Signature) -> int:
        """Return the number of a signature; its first use assigns one."""
        index = self._signature_index.get(signature)
        if index is None:
            index = self._signature_index[signature] = len(self.signatures)
            self.signatures.append(signature)
        return index

    def attribute(self, value: AttributeValue | None) -> int:
        """Return the handle of an attribute's value.

        None stands for an absent attribute without a default.
        """
        return self.attributes.intern(attribute_key(value), value)

    def fact(self, knowledge: Knowledge) -> int:
        """Return the handle of a class's fact."""
        # A fact is a tuple too, so the type is a part of the key.
        return self.facts.intern((type(knowledge).__name__, knowledge), knowledge)

    def value_fact(self, handle: int) -> Fact | None:
        """Return the fact of a value; None for a class of another kind."""
        knowledge = self.facts.get(handle)
        return knowledge if isinstance(knowledge, Fact) else None

    def value_facts(self, handle: int) -> tuple[Fact, ...]:
        """Return the facts of the values of a class: of the one value, or of a node's outputs."""
        knowledge = self.facts.get(handle)
        return (knowledge,) if isinstance(knowledge, Fact) else knowledge if isinstance(knowledge, tuple) else ()

    def chain(self, handle: int) -> list[int]:
        """Return the handles of the facts in a list, from the handle of the list."""
        heads: list[int] = []
        while isinstance(link := self.facts.get(handle), Link):
            heads.append(link.head)
            handle = link.tail
        return heads

    def literal(self, literal: Literal) -> int:
        """Return the handle of a literal."""
        return self.literals.intern(literal, literal)
