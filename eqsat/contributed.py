"""Contributed operators: those of a runtime's own domain that rules may use, as schemas.

onnx has no schemas for them. Each schema here says what the runtime's documentation says of the
operator in version 1 of its domain: inputs, outputs, attributes with defaults, and types. An
attribute that no rule can use is left out (`transBatchA` and `transBatchB` of FusedMatMul); it must
be 0, its default. No operator here has the name of an operator of the standard, so that a name is
enough in tables.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from onnx import TensorProto, TensorShapeProto, TypeProto, defs, helper, shape_inference

MICROSOFT: Final = "com.microsoft"
DOMAINS: Final = (MICROSOFT,)
"""The domains with contributed operators."""
VERSION: Final = 1
"""The version of each domain."""

_Formal = defs.OpSchema.FormalParameter
_OPTIONAL: Final = defs.OpSchema.FormalParameterOption.Optional
_SINGLE: Final = defs.OpSchema.FormalParameterOption.Single

_FLOATS: Final = ("float16", "float", "double", "bfloat16")
_BYTES: Final = ("int8", "uint8")


def _formal(text: str) -> defs.OpSchema.FormalParameter:
    """Return the formal parameter `name: type`; a name that ends in `?` is optional."""
    name, _, kind = text.partition(":")
    known = kind if len(kind) <= 2 else f"tensor({kind})"
    return _Formal(name.removesuffix("?"), known, param_option=_OPTIONAL if name.endswith("?") else _SINGLE)


def _schema(name: str, inputs: str, outputs: str, types: Mapping[str, Sequence[str]], required: str = "", **attributes: float | int) -> defs.OpSchema:
    constraints = [(variable, [f"tensor({dtype})" for dtype in dtypes], "") for variable, dtypes in types.items()]
    return defs.OpSchema(
        name,
        MICROSOFT,
        VERSION,
        inputs=[_formal(text) for text in inputs.split()],
        outputs=[_formal(text) for text in outputs.split()],
        type_constraints=constraints,
        attributes=[
            *(defs.OpSchema.Attribute(key, defs.OpSchema.AttrType.INT, required=True) for key in required.split()),
            *(defs.OpSchema.Attribute(key, helper.make_attribute(key, value)) for key, value in attributes.items()),
        ],
    )


def _infer_product(typed: int, context: Any) -> None:
    """Infer the type of a product, and reject operands that do not fit, as onnx does for MatMul.

    The elements are of the type of input `typed`. onnx passes the context of its own inference.
    """
    types: dict[str, TypeProto] = {}
    for position, name in enumerate("AB"):
        flip = context.get_attribute(f"trans{name}")
        types[name] = _operand(context.get_input_type(position), flip is not None and flip.i != 0)
    node = helper.make_node("MatMul", list(types), ["Y"])
    (result,) = shape_inference.infer_node_outputs(defs.get_schema("MatMul"), node, types).values()
    result.tensor_type.elem_type = context.get_input_type(typed).tensor_type.elem_type
    context.set_output_type(0, result)


def _operand(given: TypeProto, flip: bool) -> TypeProto:
    """Return the type of an operand of MatMul in place of one whose last two axes may be exchanged."""
    result = TypeProto()
    result.CopyFrom(given)
    result.tensor_type.elem_type = TensorProto.FLOAT
    dims = result.tensor_type.shape.dim
    if flip and len(dims) > 1:
        last = TensorShapeProto.Dimension.FromString(dims[-1].SerializeToString())
        dims[-1].CopyFrom(dims[-2])
        dims[-2].CopyFrom(last)
    return result


def _infer_attention(context: Any) -> None:
    """Infer the type of MultiHeadAttention: the queries, in the width of the values."""
    result = TypeProto()
    result.CopyFrom(context.get_input_type(0))
    values = context.get_input_type(2).tensor_type
    if len(result.tensor_type.shape.dim) == len(values.shape.dim) == 3:
        result.tensor_type.shape.dim[2].CopyFrom(values.shape.dim[2])
    else:
        result.tensor_type.ClearField("shape")
    context.set_output_type(0, result)


@functools.cache
def _schemas() -> dict[tuple[str, str], defs.OpSchema]:
    normalized = "output:T mean?:U inv_std_var?:U input_skip_bias_sum?:T"
    halves = {"T": ("float", "float16"), "U": ("float",)}
    bytes_ = {"T": _BYTES}
    one = "X:T X_scale:float X_zero_point?:T Y_scale:float Y_zero_point?:T"
    found = [
        _schema("FusedMatMul", "A:T B:T", "Y:T", {"T": _FLOATS}, alpha=1.0, transA=0, transB=0),
        _schema(
            "MultiHeadAttention",
            "query:T key:T value:T bias?:T key_padding_mask?:int32 attention_bias?:T",
            "output:T",
            {"T": ("float",)},
            "num_heads",
            mask_filter_value=-10000.0,
            scale=0.0,
            unidirectional=0,
        ),
        _schema("QuickGelu", "X:T", "Y:T", {"T": _FLOATS}, alpha=1.702),
        _schema("SkipLayerNormalization", "input:T skip:T gamma:T beta?:T bias?:T", normalized, halves, epsilon=1e-12),
        _schema("SkipSimplifiedLayerNormalization", "input:T skip:T gamma:T bias?:T", normalized, halves, epsilon=1e-12),
        _schema(
            "MatMulIntegerToFloat",
            "A:T1 B:T2 a_scale:T3 b_scale:T3 a_zero_point?:T1 b_zero_point?:T2 bias?:T3",
            "Y:T3",
            {"T1": _BYTES, "T2": _BYTES, "T3": ("float", "float16")},
        ),
        _schema("DynamicQuantizeMatMul", "A:T1 B:T2 b_scale:T1 b_zero_point?:T2 bias?:T1", "Y:T1", {"T1": ("float",), "T2": _BYTES}),
        _schema("QLinearSigmoid", one, "Y:T", bytes_),
        _schema("QLinearLeakyRelu", one, "Y:T", bytes_, alpha=0.01),
    ]
    schemas = {(schema.domain, schema.name): schema for schema in found}
    for name, typed in {"DynamicQuantizeMatMul": 0, "FusedMatMul": 0, "MatMulIntegerToFloat": 2}.items():
        schemas[MICROSOFT, name].set_type_and_shape_inference_function(functools.partial(_infer_product, typed))
    schemas[MICROSOFT, "MultiHeadAttention"].set_type_and_shape_inference_function(_infer_attention)
    return schemas


def contributed_schema(domain: str, name: str) -> defs.OpSchema | None:
    """Return the schema of an operator; None if its domain contributes no such operator."""
    return _schemas().get((domain, name)) if domain in DOMAINS else None


def contributed_names(domain: str) -> tuple[str, ...]:
    """Return the names of the operators of a domain."""
    return tuple(sorted(name for own, name in _schemas() if own == domain))


@functools.cache
def register() -> None:
    """Let onnx know the schemas from now on, so that its inference gives types in this process."""
    for schema in _schemas().values():
        defs.register_schema(schema)
