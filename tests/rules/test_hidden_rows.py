"""Rows that a mask hides as a whole keep their result, in whatever form the mask is left: 0 behind a guard against NaN where
the mask is minus infinity, and the mean of the values where it is the least number, which absorbs all scores.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import eqsat
from eqsat.runtime.session import OnnxRuntimeSession
from tests.rules.examples_attention import EXAMPLES
from tests.support.models import operators

GUARDS = [
    ("guards of layers become thresholds", "ThresholdedRelu", 13),
    ("guards of layers become thresholds", "ThresholdedRelu", 21),
    ("guards of layers read the mask", "IsInf", 17),
    ("guards of layers read the condition of the mask", "ReduceMax", 21),
]


@pytest.mark.parametrize(("name", "sign", "opset"), GUARDS)
@pytest.mark.parametrize("hidden", [[], [0], [3, 4, 63], list(range(64))])
def test_a_hidden_row_is_zero(name: str, sign: str, opset: int, hidden: list[int]) -> None:
    example = EXAMPLES[name]
    model = example.model(opset)
    result = eqsat.optimize(model, target=example.target).model
    left = operators(result)
    assert sign in left and "IsNaN" not in left
    generator = np.random.default_rng(0)
    feeds: dict[str, np.ndarray] = {
        item.name: generator.standard_normal([size.dim_value for size in item.type.tensor_type.shape.dim]).astype(np.float32) for item in model.graph.input
    }
    feeds["c"] = np.tril(np.ones((1, 1, 64, 64), bool))
    feeds["c"][..., hidden, :] = False
    (before,), (after,) = (OnnxRuntimeSession(one.SerializeToString()).run(feeds) for one in (model, result))
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
    assert not after[..., hidden, :].any()


HEADS_APART = "t = Transpose<perm = [0, 1, 3, 2]>(k)  s = MatMul(q, t)  a = Add(s, m)  p = Softmax<axis = -1>(a)  y = MatMul(p, v)"
HEADS_IN_THE_BATCH = """q3 = Reshape(q, many)  k3 = Reshape(k, many)  v3 = Reshape(v, many)  t = Transpose<perm = [0, 2, 1]>(k3)
    s3 = MatMul(q3, t)  s = Reshape(s3, apart)  a = Add(s, m)  a3 = Reshape(a, scores)  p = Softmax<axis = -1>(a3)  y3 = MatMul(p, v3)
    y = Reshape(y3, heads)"""


@pytest.mark.parametrize("hidden", [[0], [3, 6], list(range(7))])
@pytest.mark.parametrize("scores", [HEADS_APART, HEADS_IN_THE_BATCH], ids=["apart", "in the batch"])
@pytest.mark.parametrize("mask", ["m = Where(c, z, n)", "i = Cast<to = 1>(c)  j = Sub(o, i)  m = Mul(j, n)", "w = Where(c, z, n)  m = Add(b, w)"])
def test_a_row_that_the_least_number_hides_is_the_mean(mask: str, scores: str, hidden: list[int]) -> None:
    """As a part of a batch that is padding alone."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 23]>
        g (float[1, 2, 7, 8] q, float[1, 2, 7, 8] k, float[1, 2, 7, 8] v, float[1, 2, 7, 7] b, bool[7, 7] c) => (float[1, 2, 7, 8] y)
        <float z = {{0}}, float o = {{1}}, float n = {{-3.4028235e38}}, int64[3] many = {{2, 7, 8}}, int64[4] apart = {{1, 2, 7, 7}},
         int64[3] scores = {{2, 7, 7}}, int64[4] heads = {{1, 2, 7, 8}}> {{ {mask}  {scores} }}"""
    )
    result = eqsat.optimize(model, target="onnxruntime-cpu").model
    assert "Attention" in operators(result)
    generator = np.random.default_rng(0)
    feeds = {name: generator.standard_normal((1, 2, 7, 8 if name != "b" else 7)).astype(np.float32) for name in "qkvb"}
    feeds["c"] = np.tril(np.ones((7, 7), bool))
    feeds["c"][hidden] = False
    (before,), (after,) = (OnnxRuntimeSession(one.SerializeToString()).run(feeds) for one in (model, result))
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(after[..., hidden, :], np.broadcast_to(feeds["v"].mean(2, keepdims=True), (1, 2, len(hidden), 8)), rtol=1e-5, atol=1e-6)
