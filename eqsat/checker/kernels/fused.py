"""Operators of a runtime's own domain, each as the steps of the standard that define it.

The input is a `Call`; the output is its results. Each step is one of our own kernels, so a rule
between such an operator and its steps holds to the bits here; ONNX Runtime's own kernels have the
last word on a run (`judging/runtime_sides.py`).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from onnx import TensorProto, helper

from eqsat.checker.kernels import attention, casts, normalizations, pointwise
from eqsat.checker.kernels.call import Array, Call, Illegal, Kernel, Unsupported
from eqsat.checker.kernels.products import matmul
from eqsat.operators import AttributeValue, find_operator, read_attributes
from eqsat.traits import NEWEST

_STANDARD: Final[dict[str, Kernel]] = {**attention.KERNELS, **casts.KERNELS, **normalizations.KERNELS, **pointwise.KERNELS}
_FLOAT: Final = int(TensorProto.FLOAT)


def _step(name: str, inputs: list[Array | None], *results: int, **attributes: AttributeValue) -> list[Array]:
    """The results of an operator of the standard, of the data types `results`."""
    operator = find_operator("", name, NEWEST)
    dtypes = tuple(0 if x is None else int(helper.np_dtype_to_tensor_dtype(x.dtype)) for x in inputs)
    return [np.asarray(x) for x in _STANDARD[name](Call(operator, {**read_attributes(operator, ()), **attributes}, tuple(inputs), dtypes, results))]


def _fused_matmul(call: Call) -> list[Array]:
    """alpha * A * B, the last two axes of either exchanged. The factor is one of each product: the sum
    of none is 0 whatever the factor.
    """
    a, b = call.input(0), call.input(1)
    if min(a.ndim, b.ndim) < 2:
        raise Illegal("FusedMatMul of a vector")
    product = matmul(a.swapaxes(-1, -2) if call.integer("transA") else a, b.swapaxes(-1, -2) if call.integer("transB") else b)
    empty = not a.shape[-2 if call.integer("transA") else -1]
    return [product if empty else np.asarray(product * np.asarray(call.number("alpha", 1)).astype(product.dtype))]


def _quick_gelu(call: Call) -> list[Array]:
    """x * Sigmoid(alpha * x)."""
    return _step("Swish", [call.input(0)], call.results[0], alpha=call.number("alpha", 1.702))


def _multi_head_attention(call: Call) -> list[Array]:
    """Attention of three axes, as many heads of keys as of queries."""
    if call.given(3) is not None or call.given(4) is not None or call.input(0).ndim != 3:
        raise Unsupported("biases, key masks and heads apart are left to the runtime")
    query, heads = call.input(0), call.integer("num_heads")
    if heads <= 0 or not query.shape[2] or query.shape[2] % heads:
        raise Illegal("MultiHeadAttention of a width that does not split into heads")
    scale = call.number("scale") or 1 / math.sqrt(query.shape[2] // heads)
    attributes: dict[str, AttributeValue] = {"scale": scale, "q_num_heads": heads, "kv_num_heads": heads, "is_causal": call.integer("unidirectional")}
    return _step("Attention", [query, call.input(1), call.input(2), call.given(5)], call.results[0], **attributes)


def _normalized_sum(call: Call, bias: int, name: str, inputs: list[Array | None]) -> list[Array]:
    total = np.asarray(call.input(0) + call.input(1))
    extra = call.given(bias)
    total = total if extra is None else np.asarray(total + extra)
    made = _step(name, [total, *inputs], *call.results[:1], epsilon=call.number("epsilon", 1e-12))[0]
    # ONNX Runtime's kernels do not write the statistics.
    unwritten = np.full((*total.shape[:-1], 1), np.nan, np.float32)
    return [made, unwritten, unwritten, total][: len(call.results)]


def _skip_layer_normalization(call: Call) -> list[Array]:
    """LayerNormalization of a sum; the sum is the fourth output."""
    return _normalized_sum(call, 4, "LayerNormalization", [call.input(2), call.given(3)])


def _skip_root_mean_square(call: Call) -> list[Array]:
    """RMSNormalization of a sum; the sum is the fourth output."""
    return _normalized_sum(call, 3, "RMSNormalization", [call.input(2)])


def _rescaled(call: Call, inputs: list[Array | None], factor: Array, bias: Array | None) -> list[Array]:
    """A product of integers, times a factor, plus a bias."""
    sums = _step("MatMulInteger", inputs, int(TensorProto.INT32))[0]
    result = np.asarray(sums.astype(factor.dtype) * factor)
    return [result if bias is None else np.asarray(result + bias)]


def _integer_product_as_float(call: Call) -> list[Array]:
    """(A - a_zero_point) * (B - b_zero_point) * (a_scale * b_scale) + bias."""
    factor = np.asarray(call.input(2) * call.input(3))
    return _rescaled(call, [call.input(0), call.input(1), call.given(4), call.given(5)], factor, call.given(6))


def _dynamically_quantized_product(call: Call) -> list[Array]:
    """The product above, with A from DynamicQuantizeLinear."""
    steps, scale, zero = _step("DynamicQuantizeLinear", [call.input(0)], int(TensorProto.UINT8), _FLOAT, int(TensorProto.UINT8))
    return _rescaled(call, [steps, call.input(1), zero, call.given(3)], np.asarray(scale * call.input(2)), call.given(4))


def _quantized(name: str, *attributes: str) -> Kernel:
    """An activation of dequantized integers, quantized again."""

    def compute(call: Call) -> list[Array]:
        given = {attribute: call.number(attribute) for attribute in attributes}
        x = _step("DequantizeLinear", [call.input(0), call.input(1), call.given(2)], _FLOAT)
        return _step("QuantizeLinear", [*_step(name, [*x], _FLOAT, **given), call.input(3), call.given(4)], call.results[0])

    return compute


KERNELS: dict[str, Kernel] = {
    "DynamicQuantizeMatMul": _dynamically_quantized_product,
    "FusedMatMul": _fused_matmul,
    "MatMulIntegerToFloat": _integer_product_as_float,
    "MultiHeadAttention": _multi_head_attention,
    "QLinearLeakyRelu": _quantized("LeakyRelu", "alpha"),
    "QLinearSigmoid": _quantized("Sigmoid"),
    "QuickGelu": _quick_gelu,
    "SkipLayerNormalization": _skip_layer_normalization,
    "SkipSimplifiedLayerNormalization": _skip_root_mean_square,
}
