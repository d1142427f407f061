"""Rows that a mask of minus infinity hides as a whole are 0 behind a guard against NaN, in whatever form it is left."""

from __future__ import annotations

import numpy as np
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
