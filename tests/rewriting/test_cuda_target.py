"""The target `onnxruntime-cuda`: the runtime's fusions count, its layouts for CPUs do not, and few launches are worth a longer search."""

from __future__ import annotations

import numpy as np
import pytest

import eqsat
from eqsat.cost.target import load_target
from eqsat.egraph.phases import load
from tests.rules.examples_attention import EXAMPLES
from tests.support.models import operators, parse, weighted

CUDA = "onnxruntime-cuda"
RANDOM = np.random.default_rng(0)


def weight(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def test_a_decomposed_gelu_stays_one_kernel() -> None:
    """The runtime fuses these nodes, whatever their order, but not a form with another constant."""
    model = parse("""g (float[8, 64] x) => (float[8, 64] y) {
        s = Constant <value_float = 1.4142135> ()  one = Constant <value_float = 1.0> ()  half = Constant <value_float = 0.5> ()
        a = Div (x, s)  e = Erf (a)  p = Add (e, one)  m = Mul (x, p)  y = Mul (m, half)
    }""")
    result = eqsat.optimize(model, target=CUDA)
    assert result.report["cost"]["after"]["launches"] == 1


def test_a_norm_and_the_sum_before_it_stay_one_kernel() -> None:
    """Of a sum of three, ONNX Runtime makes no SkipLayerNormalization."""
    text = "g (float[1, 16, 64] x, float[1, 16, 64] r) => (float[1, 16, 64] y) { a = Add (x, b)  c = Add (a, r)  y = LayerNormalization <axis = -1> (c, s, t) }"
    model = weighted(text, b=weight(64), s=weight(64), t=weight(64))
    result = eqsat.optimize(model, target=CUDA)
    assert result.report["cost"]["after"]["launches"] <= 2 and result.report["cost"]["after"]["seconds"] <= result.report["cost"]["before"]["seconds"]


@pytest.mark.parametrize(("target", "rounds"), [(CUDA, 4), ("generic-gpu", 4), ("onnxruntime-cpu", 2)])
def test_regions_get_more_rounds_where_launches_are_dear(target: str, rounds: int) -> None:
    assert load().in_regions(load_target(target).launch_bound).phases[-1].rounds == rounds


def test_convs_are_not_priced_in_the_blocked_layout() -> None:
    text = "g (float[1, 32, 14, 14] x) => (float[1, 32, 14, 14] y) { c = Conv (x, w)  y = Conv (c, v) }"
    model = weighted(text, w=weight(32, 32, 1, 1), v=weight(32, 32, 1, 1))
    cost = eqsat.optimize(model, target=CUDA, verify=False, only=["nothing"]).report["cost"]
    assert cost["before"]["launches"] == 2  # no node changes the layout before them or behind them


@pytest.mark.parametrize(("opset", "thresholds"), [(17, 2), (21, 2), (22, 0)])
def test_a_guard_is_a_threshold_where_there_is_a_kernel_for_it(opset: int, thresholds: int) -> None:
    model = EXAMPLES["guards of layers become thresholds"].model(opset)
    assert operators(eqsat.optimize(model, target=CUDA).model)["ThresholdedRelu"] == thresholds
