"""Infer the facts of a node's outputs from the facts of its inputs.

`infer` takes an operator, its attributes and the facts of its inputs, and returns one fact per
output. The facts are true wherever the node runs; the node may refuse illegal sizes. Unknown
properties stay unknown. The result depends only on the arguments.

ONNX's own inference gives data types and rejects illegal nodes. It receives no size names, because
it would copy them to axes whose size changes, as it does for Slice-10. For operators in the table
of `shapes`, that table alone gives the sizes; where ONNX infers a different number, the size is
unknown. For other operators, the numbers from ONNX count. The table of `integers` gives elements.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Generic, TypeVar

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, TypeProto, defs, helper, numpy_helper
from onnx.shape_inference import InferenceError, infer_node_outputs

from eqsat.facts.arithmetic import moderate
from eqsat.facts.dims import Dim, equal
from eqsat.facts.fact import INTEGERS, UNKNOWN, Array, Fact, dtype_name, element_count, from_array, from_tensor, without_shapes
from eqsat.facts.integers import INTEGER_FUNCTIONS, MOVES, concrete_shape
from eqsat.facts.node import Node, Shape
from eqsat.facts.product_shapes import fused_matmul
from eqsat.facts.ranges import with_ranges
from eqsat.facts.shapes import SHAPES
from eqsat.operators import Attributes, AttributeValue, Operator, to_attribute

Imports = tuple[tuple[str, int], ...]
Part = TypeVar("Part")
_Items = tuple[tuple[str, AttributeValue], ...]

# ONNX's inference aborts the process on some nodes of these operators; `_fatal` finds them.
_FATAL = frozenset({"Einsum", "Expand", "GatherND", "Split"})

_RANK_LIMIT = 1 << 10  # the most axes of a tensor
_OPERAND = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")  # of an equation of Einsum, on either side

_DTYPES = {f"tensor({dtype_name(dtype)})": dtype for dtype in TensorProto.DataType.values() if dtype}

# The exceptions of ONNX's inference for nodes that are illegal or that it does not understand.
_REFUSALS = (InferenceError, onnx.checker.ValidationError, defs.SchemaError, KeyError, RuntimeError, ValueError, TypeError, IndexError, OverflowError)


def infer(operator: Operator, attributes: Attributes, inputs: tuple[Fact | None, ...], outputs: int, opset_imports: Imports = ()) -> tuple[Fact, ...]:
    """Infer a fact for each of `outputs` outputs; an absent optional input is None.

    `opset_imports` are those of the model, by default the operator's own.
    """
    if any(_hidden(value) for value in attributes.values()):
        return (UNKNOWN,) * outputs
    return _infer(Node(operator, attributes, inputs, outputs), opset_imports)


class _Remembered(Generic[Part]):
    """A function of nodes with a cache, for all nodes whose attributes have a hash.

    A model repeats its layers, and an optimization repeats its turns, so most calls hit it.
    """

    def __init__(self, compute: Callable[[Node, Imports], Part]) -> None:
        self._compute = compute
        self._cached = functools.lru_cache(maxsize=1 << 14)(self._of_items)

    def __call__(self, node: Node, opset_imports: Imports) -> Part:
        items = tuple(node.attributes.items())
        if any(isinstance(value, AttributeProto) for _, value in items):
            return self._compute(node, opset_imports)
        return self._cached(node.operator, items, _kinds(items), node.inputs, node.outputs, opset_imports)

    def forget(self) -> None:
        self._cached.cache_clear()

    def _of_items(
        self, operator: Operator, attributes: _Items, kinds: tuple[type, ...], inputs: tuple[Fact | None, ...], outputs: int, opset_imports: Imports
    ) -> Part:
        return self._compute(Node(operator, dict(attributes), inputs, outputs), opset_imports)


def _kinds(attributes: _Items) -> tuple[type, ...]:
    """Return the types of the values: 1 and 1.0 are equal to a cache, but not to ONNX."""
    return tuple(type(value[0] if isinstance(value, tuple) and value else value) for _, value in attributes)


@_Remembered
def _infer(node: Node, opset_imports: Imports) -> tuple[Fact, ...]:
    operator, attributes, inputs, outputs = node
    const = operator.pure and operator.name != "DequantizeLinear" and all(fact is None or fact.const for fact in inputs)
    if operator.schema is None:
        return tuple(fact._replace(const=const) for fact in _contributed(node))
    if operator.standard and operator.name == "Constant":
        constant = _constant(attributes)
        if constant is not None:
            return (constant,)
    known, refusal = _standard(node, opset_imports)
    facts = list(known)
    if refusal is not None and all(fact is None or fact.dtype or fact.other is not None for fact in inputs):
        return (UNKNOWN,) * outputs  # the node is illegal
    if any(not fact.dtype and fact.other is None for fact in facts):
        facts = [declared if fact == UNKNOWN else fact for fact, declared in zip(facts, _declared(node), strict=True)]
    if operator.ruled:
        facts = _with_shapes(node, facts)
        facts = _with_elements(node, facts)
        if not const:
            facts = with_ranges(node, facts)
    return tuple(fact._replace(const=const) for fact in facts) if const else tuple(facts)


def rejection(operator: Operator, attributes: Attributes, inputs: tuple[Fact | None, ...], outputs: int, opset_imports: Imports = ()) -> str | None:
    """Return ONNX's reason to reject every such node, or None if it has none."""
    if operator.schema is None or any(_hidden(value) for value in attributes.values()):
        return None
    if any(fact is not None and not fact.dtype and fact.other is None for fact in inputs):
        return None  # ONNX rejects unknown types as well
    return _standard(Node(operator, attributes, inputs, outputs), opset_imports)[1]


def _hidden(value: AttributeValue) -> bool:
    """Tell whether a value is a body (a graph), or a parameter of the enclosing function."""
    return isinstance(value, AttributeProto) and bool(value.ref_attr_name or value.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS))


# --- ONNX's own inference ---


@_Remembered
def _standard(node: Node, opset_imports: Imports) -> tuple[tuple[Fact, ...], str | None]:
    schema = node.operator.schema
    assert schema is not None
    if node.operator.name in _FATAL and _fatal(node):
        return (UNKNOWN,) * node.outputs, "an attribute or a size is out of range"
    types: dict[str, TypeProto] = {}
    data: dict[str, TensorProto] = {}
    for position, fact in enumerate(node.inputs):
        if fact is None:
            continue
        name = f"i{position}"
        types[name] = _type(fact.dtype, _numbers(fact.shape), fact.other)
        elements = _data(fact.dtype, fact.shape, fact.ints, fact.floats)
        if elements is not None:
            data[name] = elements
    present = tuple(fact is not None for fact in node.inputs)
    try:
        proto = _node_proto(node, present)
        imports = opset_imports or ((node.operator.domain, node.operator.opset),)
        found = infer_node_outputs(schema, proto, types, data, opset_imports=_imports(imports))
    except _REFUSALS as error:
        return (UNKNOWN,) * node.outputs, str(error)
    facts = [_fact(found.get(f"o{position}")) for position in range(node.outputs)]
    if node.operator.name == "Attention" and any(not isinstance(dim, int) for fact in node.inputs if fact for dim in fact.shape or ()):
        # ONNX's inference for Attention treats a symbolic size as 0.
        facts = [fact._replace(shape=None if fact.shape is None else (None,) * len(fact.shape)) for fact in facts]
    return tuple(facts), None


def _declared(node: Node) -> list[Fact]:
    """Return the output types that the schema alone gives: fixed ones, or the type of an input."""
    schema = node.operator.schema
    assert schema is not None
    known: dict[str, int] = {}
    for position, formal in enumerate(schema.inputs):
        if node.dtype(position):
            known[formal.type_str] = node.dtype(position)
    facts = [Fact(known.get(formal.type_str) or _DTYPES.get(formal.type_str, 0)) for formal in schema.outputs]
    return (facts + [UNKNOWN] * node.outputs)[: node.outputs]


def _fatal(node: Node) -> bool:
    """Tell whether ONNX's inference aborts the process or never ends.

    All such nodes are illegal. Trials of many unusual nodes found them.
    """
    if node.operator.name == "Einsum":
        return not is_equation(node.text("equation", ""))
    if node.operator.name == "GatherND":
        return node.integer("batch_dims", 0) < 0
    if node.operator.name == "Expand":
        return any(isinstance(size, int) and size > _RANK_LIMIT for size in node.shape(1) or ())
    return node.integer("num_outputs", node.outputs) < node.outputs


def is_equation(text: str) -> bool:
    """Tell whether Einsum accepts this equation: letters, and at most one ellipsis in each term."""
    left, _, right = text.replace(" ", "").partition("->")
    return all(_OPERAND.fullmatch(operand) for operand in (*left.split(","), right))


def _numbers(shape: Shape | None) -> Shape | None:
    return None if shape is None else tuple(dim if isinstance(dim, int) else None for dim in shape)


@functools.lru_cache(maxsize=1 << 14)
def _type(dtype: int, shape: Shape | None, other: bytes | None) -> TypeProto:
    if other is not None:
        return TypeProto.FromString(other)
    proto = TypeProto()
    if not dtype and shape is None:
        return proto
    proto.tensor_type.elem_type = dtype
    if shape is not None:
        dims = proto.tensor_type.shape.dim
        proto.tensor_type.shape.SetInParent()
        for dim in shape:
            slot = dims.add()
            if isinstance(dim, int):
                slot.dim_value = dim
    return proto


@functools.lru_cache(maxsize=1 << 14)
def _data(dtype: int, shape: Shape | None, ints: tuple[Dim, ...] | None, floats: bytes | None) -> TensorProto | None:
    sizes = concrete_shape(Fact(dtype, shape))
    if sizes is None:
        return None
    if floats is None and (ints is None or not all(isinstance(element, int) for element in ints)):
        return None
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    array: Array = np.array(ints, np.object_).astype(kind) if floats is None else np.frombuffer(floats, kind.newbyteorder("<"))
    return numpy_helper.from_array(array.reshape(sizes))


@functools.lru_cache(maxsize=1 << 10)
def _imports(imports: Imports) -> list[onnx.OperatorSetIdProto]:
    return [helper.make_opsetid(domain, version) for domain, version in imports]


def _node_proto(node: Node, present: tuple[bool, ...]) -> onnx.NodeProto:
    items = tuple(node.attributes.items())
    if any(isinstance(value, AttributeProto) for _, value in items):
        return _build(node.operator, items, present, _outputs(node))
    return _build_cached(node.operator, items, present, _outputs(node), _kinds(items))


def _outputs(node: Node) -> int:
    """Return the number of outputs to ask ONNX for.

    ONNX rejects the training outputs of a BatchNormalization that is not in training mode.
    """
    infers = node.operator.name == "BatchNormalization" and not node.attributes.get("training_mode")
    return 1 if infers else node.outputs


def _build(operator: Operator, attributes: _Items, present: tuple[bool, ...], outputs: int) -> onnx.NodeProto:
    proto = onnx.NodeProto(
        op_type=operator.name,
        domain=operator.domain,
        input=[f"i{position}" if here else "" for position, here in enumerate(present)],
        output=[f"o{position}" for position in range(outputs)],
    )
    proto.attribute.extend(to_attribute(operator, name, value) for name, value in attributes)
    return proto


@functools.lru_cache(maxsize=1 << 13)
def _build_cached(operator: Operator, attributes: _Items, present: tuple[bool, ...], outputs: int, _kinds: tuple[type, ...]) -> onnx.NodeProto:
    return _build(operator, attributes, present, outputs)


def _fact(found: TypeProto | None) -> Fact:
    kind = None if found is None else found.WhichOneof("value")
    if found is None or kind is None:
        return UNKNOWN
    if kind != "tensor_type":
        return Fact(other=without_shapes(found.SerializeToString()))
    tensor = found.tensor_type
    if not tensor.HasField("shape"):
        return Fact(tensor.elem_type)
    return Fact(tensor.elem_type, tuple(_number(dim) for dim in tensor.shape.dim))


def _number(found: onnx.TensorShapeProto.Dimension) -> int | None:
    return found.dim_value if found.HasField("dim_value") and found.dim_value >= 0 else None


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
    if node.operator.name == "ConstantOfShape":
        value = node.attributes.get("value")
        element = from_tensor(value.t).uniform if isinstance(value, AttributeProto) else bytes(4)
    elif node.operator.name in MOVES:
        source = node.fact(0)
        element = None if source is None else source.uniform
    else:
        return facts
    return facts if element is None else [_with_element(fact, element) for fact in facts]


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


# --- operators of ONNX Runtime that no schema describes ---


_LIKE_FIRST = frozenset(
    f"com.microsoft.{name}" for name in ("BiasGelu", "FastGelu", "Gelu", "QuickGelu", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
) | {"SimplifiedLayerNormalization"}
"""The operators whose first output has the type of their first input."""


def _contributed(node: Node) -> tuple[Fact, ...]:
    first = node.fact(0)
    if first is None or not first.dtype:
        return (UNKNOWN,) * node.outputs
    rest = (UNKNOWN,) * (node.outputs - 1)
    if node.operator.full_name in _LIKE_FIRST:
        return (Fact(first.dtype, first.shape), *rest)
    if node.operator.full_name == "com.microsoft.FusedMatMul":
        shapes = fused_matmul(node)
        return (Fact(first.dtype, None if shapes is None else shapes[0]), *rest)
    return (UNKNOWN,) * node.outputs


def forget() -> None:
    """Empty the caches, which a test has to do that changes what the functions read."""
    _infer.forget()
    _standard.forget()
