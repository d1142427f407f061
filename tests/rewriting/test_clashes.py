"""ONNX Runtime refuses names that its own optimizations give: such a result gets other ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import eqsat
from eqsat.rewriting.clashes import with_other_names
from tests.support.models import assert_same, loads, operators, weighted

WEIGHTS: dict[str, Any] = {
    "w": np.eye(8, dtype=np.float32),
    "b": np.ones(8, np.float32),
    "twice": np.full(8, 2, np.float32),
    "gemm_input_shape": np.array([8, 8], np.int64),
}
# The factor, which eqsat moves into the weights, keeps ONNX Runtime from making a Gemm, before and behind
# which it would put a Reshape.
MODEL = weighted("g (float[2, 4, 8] x) => (float[8, 8] y) { p = MatMul (x, w) m = Mul (p, twice) s = Add (m, b) y = Reshape (s, gemm_input_shape) }", **WEIGHTS)


@pytest.mark.parametrize("target", ["onnxruntime-cpu", "launches"])
def test_a_result_loads_whatever_its_sizes_are_called(target: str) -> None:
    assert loads(MODEL)
    result = eqsat.optimize(MODEL, target=target)
    assert loads(result.model)
    assert operators(result.model)["Mul"] == 0
    assert result.report["verify"]["status"] == "equal"
    assert "gemm_input_shape" not in {tensor.name for tensor in result.model.graph.initializer}


def test_a_result_that_does_not_load_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verification runs it without the optimizations that refuse it."""
    monkeypatch.setattr("eqsat.rewriting.beyond_rules.with_other_names", lambda model: model)
    result = eqsat.optimize(MODEL)
    assert loads(result.model)
    assert any("ONNX Runtime loads the original, and not the result" in note for note in result.report["notes"])


def test_a_result_that_does_not_fit_assumed_sizes_may_load() -> None:
    """Prices assume 64 for K. ONNX Runtime finds that this does not fit the MatMul that is left, but not
    that it does not fit a Gemm which it fuses with the Relu.
    """
    weights = {"v": np.zeros((5, 3), np.float32), "b": np.zeros(5, np.float32), "w": np.zeros((2, 5), np.float32), "c": np.zeros(2, np.float32)}
    model = weighted("g (float[A, K] x) => (float[C, D] y) { a = Gemm <transB = 1> (x, v, b) r = Relu (a) y = Gemm <transB = 1> (r, w, c) }", **weights)
    result = eqsat.optimize(model)
    assert not any("ONNX Runtime loads the original" in note for note in result.report["notes"])
    assert operators(result.model) == {"MatMul": 1}


def test_inputs_outputs_and_other_weights_keep_their_names() -> None:
    sizes = np.array([4], np.int64)
    model = weighted(
        """g (float[2, 2] x, int64[1] fed, bool c) => (float[4] y, int64[1] out) {
            a = Add (x, w)
            y = If (c) <then_branch = t () => (float[4] p) { p = Reshape (a, inner) }, else_branch = e () => (float[4] q) { q = Reshape (a, fed) }> }""",
        w=np.ones((2, 2), np.float32),
        fed=sizes,
        out=sizes,
        inner=sizes,
    )
    onnx.checker.check_model(model)
    result = with_other_names(model)
    onnx.checker.check_model(result, full_check=True)
    assert [tensor.name for tensor in result.graph.initializer] == ["w", "fed", "out", "sizes"]
    assert_same(model, result, {"x": np.ones((2, 2), np.float32), "c": np.array(True)})
