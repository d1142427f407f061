"""Decoding writes what stays of the original as the original wrote it, but for what has no effect."""

from __future__ import annotations

import onnx

import eqsat
from tests.support.models import parse

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


def _reshapes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [node for node in model.graph.node if node.op_type == "Reshape"]


def _attributes(node: onnx.NodeProto) -> list[str]:
    return [attribute.name for attribute in node.attribute]
