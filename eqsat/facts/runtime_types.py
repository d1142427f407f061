"""Types of the results of ONNX Runtime's own operators, which no schema here describes.

The table has the operators that exported, quantized and fused models hold. A function returns the
fact of the first result; further results stay unknown. A type is correct wherever the runtime runs
the node, and sizes keep their names. Most operators have the sizes of an operator of the standard
that reads some of their inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from eqsat.facts.dims import floordiv
from eqsat.facts.fact import UNKNOWN, Fact
from eqsat.facts.node import Node, Shape
from eqsat.facts.shapes import SHAPES
from eqsat.operators import find_operator

TypeFunction = Callable[[Node], Fact]

_MICROSOFT: Final = "com.microsoft"
# Of this opset, pools that round up have a size only where all versions of the standard agree.
_OPSET: Final = 13


def runtime_types(node: Node) -> tuple[Fact, ...]:
    """Return a fact for each result of a node without a schema."""
    function = TYPES.get(node.operator.full_name)
    first = UNKNOWN if function is None else function(node)
    return ((first if first.dtype else UNKNOWN), *(UNKNOWN,) * (node.outputs - 1))[: node.outputs]


def _like(name: str, *places: int, typed: int = 0) -> TypeFunction:
    """Return the function of an operator whose result has the sizes of another one's of some inputs,
    and the elements of input `typed`.
    """

    def function(node: Node) -> Fact:
        alike = node._replace(operator=find_operator("", name, _OPSET), inputs=tuple(map(node.fact, places)) if places else node.inputs)
        shapes = SHAPES[name](alike)
        return Fact(node.dtype(typed), shapes[0] if shapes else None)

    return function


def _same(typed: int = 0) -> TypeFunction:
    """Return the function of an operator whose result has the sizes of its first input, and the
    elements of input `typed`.
    """
    return lambda node: Fact(node.dtype(typed), node.shape(0))


def _channels_last(moved: TypeFunction) -> TypeFunction:
    """Return the function of an operator that may have its channels on the last axis, where only the
    data type is known.
    """
    return lambda node: Fact(node.dtype(0)) if node.integer("channels_last", 0) else moved(node)


def _joined(node: Node) -> Fact:
    """QLinearConcat: each part has a scale and a zero point beside it."""
    parts = node._replace(operator=find_operator("", "Concat", _OPSET), inputs=node.inputs[2::3], attributes={"axis": node.integer("axis", 0)})
    shapes = SHAPES["Concat"](parts)
    return Fact(node.dtype(1), shapes[0] if shapes else None)


def _quantized_gemm(node: Node) -> Fact:
    """QGemm: quantized if it has the zero point of its result, else float."""
    return Fact(node.dtype(1 if node.fact(8) is None else 8), _like("Gemm", 0, 3)(node).shape)


def _packed_product(node: Node) -> Fact:
    """MatMulNBits and MatMulBnb4: an attribute has the width of the packed matrix."""
    shape = node.shape(0)
    return Fact(node.dtype(0), (*shape[:-1], node.integer("N", 0) or None) if shape else None)


def _embedded(node: Node) -> Fact:
    """EmbedLayerNormalization: a row of the table of words for each index."""
    indices, table = node.shape(0), node.shape(2)
    return Fact(node.dtype(2), (*indices, table[1]) if indices is not None and table is not None and len(table) == 2 else None)


def _projected_attention(node: Node) -> Fact:
    """Attention and QAttention: batch and length of the input, in the width of the values."""
    data, weights, sizes = node.shape(0), node.shape(1), node.integers("qkv_hidden_sizes")
    typed = 3 if node.operator.name == "QAttention" else 0
    if data is None or len(data) != 3:
        return Fact(node.dtype(typed))
    width = sizes[2] if sizes is not None and len(sizes) == 3 else floordiv(weights[1], 3) if weights is not None and len(weights) == 2 else None
    return Fact(node.dtype(typed), (*data[:2], width))


def _grouped_attention(node: Node) -> Fact:
    """GroupQueryAttention: like its queries, unless they hold keys and values as well."""
    shape: Shape | None = node.shape(0)
    if node.fact(1) is None and shape:
        shape = (*shape[:-1], None)
    return Fact(node.dtype(0), shape)


TYPES: Final[dict[str, TypeFunction]] = {
    "SimplifiedLayerNormalization": _same(),
    **{
        f"{_MICROSOFT}.{name}": function
        for names, function in {
            """BiasAdd BiasGelu BiasSoftmax FastGelu Gelu Inverse QLinearLeakyRelu QLinearSigmoid QLinearSoftmax QuickGelu
            RotaryEmbedding SkipLayerNormalization SkipSimplifiedLayerNormalization Trilu""": _same(),
            "QuantizeLinear": _same(2),
            "DequantizeLinear": _same(1),
            "QLinearAdd QLinearMul": _like("Add", 0, 3),
            "QLinearWhere": _like("Where", 0, 1, 4, typed=1),
            "QLinearConcat": _joined,
            "QLinearConv": _channels_last(_like("Conv", 0, 3, typed=7)),
            "QLinearAveragePool": _channels_last(_like("AveragePool", 0)),
            "QLinearGlobalAveragePool": _channels_last(_like("GlobalAveragePool", 0)),
            "QGemm": _quantized_gemm,
            "FusedConv": _like("Conv"),
            "FusedGemm": _like("Gemm"),
            "GemmFastGelu": _like("MatMul"),
            "FusedMatMul TransposeMatMul": _like("FusedMatMul"),
            "QLinearReduceMean": _like("ReduceMean", 0),
            "MatMulNBits MatMulBnb4": _packed_product,
            "EmbedLayerNormalization": _embedded,
            "Attention QAttention": _projected_attention,
            "GroupQueryAttention": _grouped_attention,
        }.items()
        for name in names.split()
    },
}
