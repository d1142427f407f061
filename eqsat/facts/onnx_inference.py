"""ONNX's own inference for a node: the types of its outputs, or the reason to reject the node.

It receives no size names (eqsat/facts/inference.py tells why). On some illegal nodes it would abort
the process or never end; they are rejected before.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, TypeProto, defs, helper, numpy_helper
from onnx.shape_inference import InferenceError, infer_node_outputs

from eqsat.facts.dims import Dim
from eqsat.facts.elementwise_types import elementwise_type
from eqsat.facts.fact import DTYPES_OF_SCHEMAS, UNKNOWN, Array, Fact, without_shapes
from eqsat.facts.integers import concrete_shape
from eqsat.facts.moved_types import moved_type
from eqsat.facts.node import Node, Shape
from eqsat.operators import AttributeValue, Operator, to_attribute

Imports = tuple[tuple[str, int], ...]
Part = TypeVar("Part")
_Items = tuple[tuple[str, AttributeValue], ...]

# ONNX's inference aborts the process on some nodes of these operators; `_fatal` finds them.
_FATAL = frozenset({"Einsum", "Expand", "GatherND", "Split"})

TYPE_ALONE = frozenset(
    """
    Abs Acos Acosh Add And Asin Asinh Atan Atanh Attention AveragePool BatchNormalization BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast
    CastLike Ceil Celu Clip Conv ConvInteger Cos Cosh DequantizeLinear Div Elu Equal Erf Exp Floor Gather GatherElements GatherND Gelu Gemm
    GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual GroupNormalization HardSigmoid HardSwish Identity InstanceNormalization IsInf IsNaN
    LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax MatMul MatMulInteger Max MaxPool Mean Min Mish Mod Mul Neg Not Or PRelu Pow
    QuantizeLinear RMSNormalization Reciprocal Relu Round ScatterElements ScatterND Selu Shape Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Sub
    Sum Swish Tan Tanh ThresholdedRelu Transpose Where Xor
    """.split()
)
"""Operators whose output types follow from the types of their inputs: neither ONNX's inference nor
ours reads elements, in any version."""

# The operators whose inference reads floating-point elements. ONNX's others read integers alone.
_READS_FLOATS = frozenset({"Range", "Resize", "Upsample"})

_RANK_LIMIT = 1 << 10  # the most axes of a tensor
_OPERAND = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")  # of an equation of Einsum, on either side

# The exceptions of ONNX's inference for nodes that are illegal or that it does not understand.
_REFUSALS = (InferenceError, onnx.checker.ValidationError, defs.SchemaError, KeyError, RuntimeError, ValueError, TypeError, IndexError, OverflowError)


class Remembered(Generic[Part]):
    """A function of nodes with a cache, for all nodes whose attributes have a hash.

    A model repeats its layers, and an optimization repeats its turns, so most calls hit it.
    """

    def __init__(self, compute: Callable[[Node, Imports], Part]) -> None:
        self._compute = compute
        self._cached = functools.lru_cache(maxsize=1 << 14)(self._of_items)

    def __call__(self, node: Node, opset_imports: Imports) -> Part:
        if not node.attributes:
            return self._cached(node.operator, (), (), node.inputs, node.outputs, opset_imports)
        items = tuple(node.attributes.items())
        kinds = _kinds(items)
        if AttributeProto in kinds:
            return self._compute(node, opset_imports)
        return self._cached(node.operator, items, kinds, node.inputs, node.outputs, opset_imports)

    def forget(self) -> None:
        """Empty the cache."""
        self._cached.cache_clear()

    def _of_items(
        self, operator: Operator, attributes: _Items, kinds: tuple[type, ...], inputs: tuple[Fact | None, ...], outputs: int, opset_imports: Imports
    ) -> Part:
        return self._compute(Node(operator, dict(attributes), inputs, outputs), opset_imports)


def _kinds(attributes: _Items) -> tuple[type, ...]:
    """Return the types of the values: 1 and 1.0 are equal to a cache, but not to ONNX."""
    return tuple([type(value[0] if type(value) is tuple and value else value) for _, value in attributes])


def standard(node: Node, opset_imports: Imports) -> tuple[tuple[Fact, ...], str | None]:
    """Return a fact for each output, and the reason to reject the node if there is one."""
    if (plain := elementwise_type(node) or moved_type(node)) is not None:
        return (plain,), None
    reads = node.operator.name in _READS_FLOATS or bool(node.operator.domain)
    return _standard(node._replace(inputs=tuple([None if fact is None else _visible(fact, reads) for fact in node.inputs])), opset_imports)


def _visible(fact: Fact, floats: bool) -> Fact:
    """Return what ONNX's inference can see of a fact, so that nodes that it can not tell apart are one
    to the cache. `floats`: whether it reads floating-point elements.
    """
    ints = fact.ints if fact.ints is not None and all(isinstance(element, int) for element in fact.ints) else None
    return Fact(fact.dtype, _numbers(fact.shape), False, ints, None, fact.other, fact.floats if floats else None)


@Remembered
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
        types[name] = _type(fact.dtype, fact.shape, fact.other)
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


def forget() -> None:
    """Empty the cache of `standard`."""
    _standard.forget()


def declared(node: Node) -> list[Fact]:
    """Return the output types that the schema alone gives: fixed ones, or the type of an input."""
    schema = node.operator.schema
    assert schema is not None
    known: dict[str, int] = {}
    for position, formal in enumerate(schema.inputs):
        if node.dtype(position):
            known[formal.type_str] = node.dtype(position)
    facts = [Fact(known.get(formal.type_str) or DTYPES_OF_SCHEMAS.get(formal.type_str, 0)) for formal in schema.outputs]
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
    return None if shape is None else tuple([dim if isinstance(dim, int) else None for dim in shape])


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
    return Fact(tensor.elem_type, tuple([_number(dim) for dim in tensor.shape.dim]))


def _number(found: onnx.TensorShapeProto.Dimension) -> int | None:
    size = found.dim_value
    return size if size > 0 or (not size and found.HasField("dim_value")) else None
