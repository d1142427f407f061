"""Decoding writes what stays of the original as the original wrote it, but for what has no effect."""

from __future__ import annotations

import onnx

import eqsat
from tests.support.models import operators, parse

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def test_allowzero_goes_where_no_size_is_zero() -> None:
    text = "g (float[N, 4] x, int64[2] t) => (float[A, B] y, float[C, D] z) <int64[2] s = {-1, 2}> { r = Reshape<allowzero = 1>(x, s)  y = Relu(r)"
    model = parse(text + "  w = Reshape<allowzero = 1>(x, t)  z = Exp(w) }", HEAD)
    result = eqsat.optimize(model, verify=False).model
    assert sorted(map(_attributes, _reshapes(result))) == [[], ["allowzero"]]


def test_allowzero_stays_where_a_size_is_zero() -> None:
    model = parse("g (float[A, B] x) => (float[C, D] y) <int64[2] s = {0, 2}> { r = Reshape<allowzero = 1>(x, s)  y = Relu(r) }", HEAD)
    (reshape,) = _reshapes(eqsat.optimize(model, verify=False).model)
    assert _attributes(reshape) == ["allowzero"]


def test_outputs_that_nobody_reads_stay_where_the_runtime_fails_without_them() -> None:
    given = "float[1, 2, 1, 4] q, float[1, 2, 1, 4] k, float[1, 2, 1, 4] v, float[1, 2, 3, 4] i, float[1, 2, 3, 4] j"
    text = f"g ({given}) => (float[1, 2, 1, 4] z) {{ y, a, b = Attention(q, k, v, , i, j)  n = Relu(y)  z = Relu(n) }}"
    result = eqsat.optimize(parse(text, '<ir_version: 10, opset_import: ["" : 24]>'))
    assert result.report["verify"]["status"] == "equal"
    assert [len([name for name in node.output if name]) for node in result.model.graph.node] == [3, 1]


def _reshapes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [node for node in model.graph.node if node.op_type == "Reshape"]


def _attributes(node: onnx.NodeProto) -> list[str]:
    return [attribute.name for attribute in node.attribute]


def test_a_value_of_packed_elements_under_two_names_is_computed_twice() -> None:
    """ONNX Runtime has no Identity of them."""
    text = "g (uint4 z) => (uint4 a, uint4 b) <float x = {0.95}, float s = {1.46}> { a = QuantizeLinear (x, s, z)  b = QuantizeLinear (x, s, z) }"
    result = eqsat.optimize(parse(text, '<ir_version: 10, opset_import: ["": 26]>'))
    assert result.report["verify"]["status"] == "equal" and not result.report["notes"]
    assert operators(result.model) == {"QuantizeLinear": 2}
