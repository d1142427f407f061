"""Infer the facts of a node's outputs from the facts of its inputs.

`infer` takes an operator, its attributes and the facts of its inputs, and returns one fact per
output. The facts are true wherever the node runs; the node may refuse illegal sizes. Unknown
properties stay unknown. The result depends only on the arguments.

ONNX's own inference (`onnx_inference`) gives data types and rejects illegal nodes. It receives no
size names, because it would copy them to axes whose size changes, as it does for Slice-10. For
operators in the table of `shapes`, that table alone gives the sizes; where ONNX infers a different
number, the size is unknown. For other operators, the numbers from ONNX count. The table of
`integers` gives elements.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import numpy as np
from onnx import AttributeProto, TensorProto, helper

from eqsat.facts import onnx_inference
from eqsat.facts.arithmetic import moderate
from eqsat.facts.dims import Dim, equal
from eqsat.facts.doubling import with_doubled
from eqsat.facts.element_bytes import decoded
from eqsat.facts.fact import INTEGERS, NUMBERS, PACKED_BITS, UNKNOWN, Fact, element_count, from_array, from_tensor, type_of
from eqsat.facts.integers import INTEGER_FUNCTIONS, MOVES
from eqsat.facts.node import Node, Shape
from eqsat.facts.onnx_inference import TYPE_ALONE, Imports, Remembered, declared, standard
from eqsat.facts.ranges import with_ranges
from eqsat.facts.runtime_types import runtime_types
from eqsat.facts.shapes import SHAPES
from eqsat.operators import Attributes, AttributeValue, Operator


def infer(operator: Operator, attributes: Attributes, inputs: tuple[Fact | None, ...], outputs: int, opset_imports: Imports = ()) -> tuple[Fact, ...]:
    """Infer a fact for each of `outputs` outputs; an absent optional input is None.

    `opset_imports` are those of the model, by default the operator's own.
    """
    if any(_hidden(value) for value in attributes.values()):
        return (UNKNOWN,) * outputs
    return _infer(Node(operator, attributes, inputs, outputs), opset_imports)


@Remembered
def _infer(node: Node, opset_imports: Imports) -> tuple[Fact, ...]:
    operator, attributes, inputs, outputs = node
    const = operator.pure and operator.name != "DequantizeLinear" and all(fact is None or fact.const for fact in inputs)
    if operator.schema is None:
        return tuple(fact._replace(const=const) for fact in runtime_types(node))
    if operator.standard and operator.name == "Constant":
        constant = _constant(attributes)
        if constant is not None:
            return (constant,)
    if operator.name in TYPE_ALONE:
        bare = node._replace(inputs=tuple([fact and type_of(fact) for fact in inputs]))
        types = _types_alone(bare, opset_imports)
    else:
        types = _types(node, opset_imports)
    if types is None:
        return (UNKNOWN,) * outputs
    facts = list(types)
    if operator.ruled:
        facts = with_doubled(node, _with_elements(node, facts))
        facts = with_ranges(node, facts)
    return tuple(fact._replace(const=const) for fact in facts) if const else tuple(facts)


def _types(node: Node, opset_imports: Imports) -> tuple[Fact, ...] | None:
    """Return the types of a node's results; None if the node is illegal."""
    known, refusal = standard(node, opset_imports)
    facts = list(known)
    if refusal is not None and all(fact is None or fact.dtype or fact.other is not None for fact in node.inputs):
        return None
    if any(not fact.dtype and fact.other is None for fact in facts):
        facts = [typed if fact == UNKNOWN else fact for fact, typed in zip(facts, declared(node), strict=True)]
    return tuple(_with_shapes(node, facts) if node.operator.ruled else facts)


_types_alone = Remembered(_types)
"""The same for operators of `TYPE_ALONE`, whose nodes differ in what is known of elements and agree in types."""


def rejection(operator: Operator, attributes: Attributes, inputs: tuple[Fact | None, ...], outputs: int, opset_imports: Imports = ()) -> str | None:
    """Return ONNX's reason to reject every such node, or None if it has none."""
    if operator.schema is None or any(_hidden(value) for value in attributes.values()):
        return None
    if any(fact is not None and not fact.dtype and fact.other is None for fact in inputs):
        return None  # ONNX rejects unknown types as well
    return standard(Node(operator, attributes, inputs, outputs), opset_imports)[1]


def _hidden(value: AttributeValue) -> bool:
    """Tell whether a value is a body (a graph), or a parameter of the enclosing function."""
    return isinstance(value, AttributeProto) and bool(value.ref_attr_name or value.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS))


# --- facts from the tables ---


def _with_shapes(node: Node, facts: list[Fact]) -> list[Fact]:
    function = SHAPES.get(node.operator.name)
    if function is None:
        return facts
    ours = function(node) or []
    return [_sized(fact, ours[position] if position < len(ours) else None) for position, fact in enumerate(facts)]


def _sized(fact: Fact, found: Shape | None) -> Fact:
    """Add the sizes of our table to a fact from ONNX, whose own sizes may only contradict them."""
    if fact.other is not None:
        return fact
    if found is None:
        return fact if fact.shape is None else fact._replace(shape=(None,) * len(fact.shape))
    if fact.shape is None:
        return fact._replace(shape=tuple(map(_legal, found)))
    if len(fact.shape) != len(found):
        return fact._replace(shape=None)
    return fact._replace(shape=tuple(_legal(a) if equal(a, b) is not False else None for a, b in zip(found, fact.shape, strict=True)))


def _legal(size: Dim) -> Dim:
    """Return None for a negative size, which no legal node has."""
    return None if isinstance(size, int) and size < 0 else size


def _with_elements(node: Node, facts: list[Fact]) -> list[Fact]:
    facts = _with_uniform(node, facts)
    function = INTEGER_FUNCTIONS.get(node.operator.name)
    results = None if function is None else function(node)
    if node.operator.name in _NARROW and _is_wide(chain(*(fact.ints or () for fact in node.inputs if fact is not None), *(part for _, part in results or ()))):
        return [fact._replace(shape=(None,)) if node.operator.name == "Range" else fact for fact in facts]
    if results is None:
        return facts
    return [_with_ints(fact, *results[position]) if position < len(results) else fact for position, fact in enumerate(facts)]


# ONNX Runtime's kernels compute these operators in floating point or in 32 bits. Beyond 31 bits
# their results are not predictable.
_NARROW = frozenset({"Max", "Min", "Mod", "Range", "ReduceProd", "ReduceSum", "Sign"})


def _is_wide(elements: Iterable[Dim]) -> bool:
    return any(element == -(1 << 31) or not moderate(TensorProto.INT32, element) for element in elements)


def _with_ints(fact: Fact, shape: tuple[int, ...], elements: tuple[Dim, ...]) -> Fact:
    if fact.dtype not in INTEGERS:
        return fact
    known = (None,) * len(shape) if fact.shape is None else fact.shape
    if len(known) != len(shape) or any(isinstance(a, int) and a != b for a, b in zip(known, shape, strict=True)):
        return fact
    return fact._replace(shape=shape, ints=elements)


def _with_uniform(node: Node, facts: list[Fact]) -> list[Fact]:
    name = node.operator.name
    if name == "ConstantOfShape":
        value = node.attributes.get("value")
        element = from_tensor(value.t).uniform if isinstance(value, AttributeProto) else bytes(4)
    elif name in MOVES:
        source = node.fact(0)
        element = None if source is None else source.uniform
    elif name == "Where":
        condition = node.fact(0)
        source = None if condition is None or condition.uniform is None else node.fact(1 if any(condition.uniform) else 2)
        element = None if source is None else source.uniform
    elif name in ("Cast", "CastLike"):
        element = _cast_element(node.fact(0), facts[0].dtype)
    else:
        return facts
    return facts if element is None else [_with_element(fact, element) for fact in facts]


def _cast_element(source: Fact | None, target: int) -> bytes | None:
    """Return the element of a uniform tensor cast to another type, if both types hold the number."""
    if source is None or source.uniform is None or not {source.dtype, target} <= NUMBERS - PACKED_BITS.keys():
        return None
    element = decoded(source.uniform, source.dtype)
    with np.errstate(all="ignore"):
        cast = element.astype(helper.tensor_dtype_to_np_dtype(target))
        return from_array(cast).uniform if cast.astype(element.dtype).tobytes() == source.uniform else None


def _with_element(fact: Fact, element: bytes) -> Fact:
    count = element_count(fact)
    return fact._replace(uniform=element) if isinstance(count, int) and count > 0 else fact


def _constant(attributes: Attributes) -> Fact | None:
    for name, value in attributes.items():
        if name == "value" and isinstance(value, AttributeProto):
            return from_tensor(value.t)
        if name == "value_float" and isinstance(value, float):
            return from_array(np.array(value, np.float32))
        if name == "value_floats" and isinstance(value, tuple):
            return from_array(np.array(value, np.float32))
        if name == "value_int" and isinstance(value, int):
            return from_array(np.array(value, np.int64))
        if name == "value_ints" and isinstance(value, tuple):
            return from_array(np.array(value, np.int64))
        if name == "value_string":
            return Fact(TensorProto.STRING, (), const=True)
        if name == "value_strings" and isinstance(value, tuple):
            return Fact(TensorProto.STRING, (len(value),), const=True)
    return None


def forget() -> None:
    """Empty the caches, which a test has to do that changes what the functions read."""
    _infer.forget()
    _types_alone.forget()
    onnx_inference.forget()
