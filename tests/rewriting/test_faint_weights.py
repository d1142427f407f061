"""Subnormal weights of products become zeros."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import eqsat
from eqsat.explain.explanation import explain
from eqsat.explain.law_names import WEIGHTS
from eqsat.rewriting.faint_weights import FLUSHED, without_faint_weights
from eqsat.settings import Settings
from tests.support.models import initializers, operators, run, weighted

LEAST = np.finfo(np.float32).tiny
FAINT = np.array([[1e-40, -1e-45, LEAST, -LEAST], [2.0, 3.0, -0.0, np.nextafter(LEAST, np.float32(0), dtype=np.float32)]], np.float32)
FLUSHED_FAINT = np.array([[0, 0, LEAST, -LEAST], [2, 3, -0.0, 0]], np.float32)
PRODUCT = "g (float[3, 2] x) => (float[3, 4] y) { y = MatMul (x, w) }"


def test_no_other_number_changes() -> None:
    special = np.array([[np.nan, np.inf, -np.inf, 1e-40]], np.float32)
    found = without_faint_weights(weighted("g (float[3, 2] x, float[3, 3] z) => (float[3, 4] y) { p = MatMul (x, w) q = MatMul (z, u) y = Add (p, q) }",
        w=FAINT, u=np.concatenate([special, special, np.ones((1, 4), np.float32)])), None)  # fmt: skip
    kept = initializers(found)
    assert kept["w"].tobytes() == FLUSHED_FAINT.tobytes(), "also the sign of zero"
    assert kept["u"].tobytes() == np.array([[np.nan, np.inf, -np.inf, 0]] * 2 + [[1] * 4], np.float32).tobytes()


@pytest.mark.parametrize(
    "nodes",
    [
        "y = Add (x, w)",  # as a number it may be what a model is about
        "l = Log (w) y = MatMul (x, l)",
        "m = MatMul (x, w) s = Sign (w) y = Add (m, s)",
        "m = MatMul (x, w) y = If (c) <then_branch = t () => (a) { a = Identity (w) }, else_branch = e () => (b) { b = Neg (m) }>",
    ],
)
def test_weights_that_anything_else_reads_stay(nodes: str) -> None:
    model = weighted(f"g (float[2, 2] x, bool c) => (y) {{ {nodes} }}", w=np.full((2, 2), 1e-40, np.float32))
    assert without_faint_weights(model, None) is model


def test_weights_that_a_caller_replaces_or_reads_stay() -> None:
    model = weighted(PRODUCT, w=FAINT)
    model.graph.input.append(onnx.helper.make_tensor_value_info("w", 1, [2, 4]))
    assert without_faint_weights(model, None) is model
    shown = weighted("g (float[3, 2] x) => (float[3, 4] y, float[2, 4] w) { y = MatMul (x, w) }", w=FAINT)
    assert without_faint_weights(shown, None) is shown


@pytest.mark.parametrize(
    ("node", "faint", "dead"),
    [
        ("MatMul (x, w)", (slice(None), 1), (slice(None), 2)),
        ("MatMul (w, x)", (1, slice(None)), (2, slice(None))),
        ("Gemm (x, w)", (slice(None), 1), (slice(None), 2)),
        ("Gemm <transB = 1> (x, w)", (1, slice(None)), (2, slice(None))),
        ("Conv (i, k)", (1, slice(None)), (2, slice(None))),
        ("ConvTranspose (i, k)", (slice(None), 1), (slice(None), 2)),
        ("ConvTranspose <group = 2> (i, k)", (slice(0, 2), 1), (slice(2, 4), 0)),
    ],
)
def test_weights_of_a_sum_that_is_as_small_stay(node: str, faint: tuple[Any, ...], dead: tuple[Any, ...]) -> None:
    """All weights of one sum but one are faint, and all of another."""
    array = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    array[faint] *= np.array([1, *[1e-40] * (len(array[faint]) - 1)], np.float32)
    array[dead] *= np.float32(1e-40)
    model = weighted(f"g (float[4, 4] x, float[1, 4, 5, 5] i) => (y) {{ y = {node} }}", w=array, k=array[..., None, None])
    read = "k" if "(i" in node else "w"
    found = initializers(without_faint_weights(model, None))[read].reshape(4, 4)
    wanted = np.where(np.abs(array) < LEAST, np.float32(0), array)
    wanted[dead] = array[dead]
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize(("bias", "flushes"), [(0.5, True), (1e-41, False)])
def test_a_bias_keeps_a_sum_alive(bias: float, flushes: bool) -> None:
    model = weighted("g (float[1, 2, 5, 5] x) => (y) { y = Conv (x, w, b) }", w=np.full((3, 2, 1, 1), 1e-40, np.float32), b=np.full(3, bias, np.float32))
    assert (without_faint_weights(model, None) is not model) == flushes


def test_bodies_and_nodes_hold_weights_too() -> None:
    inside = "t () => (float[3, 4] a) { u = Constant <value = float[2, 4] {1, 1, 1, 1, 1, 1, 1, 1}> () a = MatMul (x, u) }"
    other = "e () => (float[3, 4] b) { b = MatMul (x, w) }"
    model = weighted(f"g (float[3, 2] x, bool c) => (float[3, 4] y) {{ y = If (c) <then_branch = {inside}, else_branch = {other}> }}", w=FAINT)
    body = next(item.g for item in model.graph.node[0].attribute if item.name == "then_branch")
    body.node[0].attribute[0].t.CopyFrom(numpy_helper.from_array(FAINT, ""))
    found = without_faint_weights(model, None)
    constant = next(item.g for item in found.graph.node[0].attribute if item.name == "then_branch").node[0].attribute[0].t
    assert np.array_equal(numpy_helper.to_array(constant), FLUSHED_FAINT) and np.array_equal(initializers(found)["w"], FLUSHED_FAINT)


def test_bodies_beside_one_another_may_use_a_name_twice() -> None:
    both = ", ".join(
        f"{branch} = {branch} () => (float[3, {width}] {branch[0]}) {{ w = Constant <value = float[2, {width}] {{{', '.join(['1'] * 2 * width)}}}> () "
        f"{branch[0]} = MatMul (x, w) }}"
        for branch, width in (("then_branch", 4), ("else_branch", 5))
    )
    model = weighted(f"g (float[3, 2] x, bool c) => (y) {{ y = If (c) <{both}> }}")
    for body in (item.g for item in model.graph.node[0].attribute):
        tensor = body.node[0].attribute[0].t
        tensor.CopyFrom(numpy_helper.from_array(np.array([[1e-40] * tensor.dims[1], [1] * tensor.dims[1]], np.float32), ""))
    assert without_faint_weights(model, None) is model


def convolution() -> onnx.ModelProto:
    kernel = np.random.default_rng(0).standard_normal((16, 16, 3, 3)).astype(np.float32)
    kernel[3:9, 2:] *= np.float32(1e-40)
    return weighted("g (float[1, 16, 9, 9] x) => (float[1, 16, 7, 7] y) { c = Conv (x, w, b) y = Relu (c) }", w=kernel, b=np.ones(16, np.float32))


@pytest.mark.parametrize(
    ("options", "flushes"),
    [({}, True), ({"exact": True}, False), ({"target": "generic-gpu"}, False), ({"objective": "launches"}, False), ({"only": ("neg-number",)}, False)],
)
def test_results_have_none_where_the_target_is_slow_with_them(options: dict[str, object], flushes: bool) -> None:
    """Two thirds of the time of a text recognizer by PaddleOCR went into products with such weights."""
    model = convolution()
    result = eqsat.optimize(model, **options)  # type: ignore[arg-type]
    faint = sum(int(((np.abs(array) < LEAST) & (array != 0)).sum()) for array in initializers(result.model).values())
    assert (faint == 0) == flushes and (FLUSHED in result.report["notes"]) == flushes
    assert result.report["verify"]["status"] == "equal" and operators(result.model) == {"Conv": 1, "Relu": 1}
    x = np.random.default_rng(1).standard_normal((1, 16, 9, 9)).astype(np.float32)
    (before,), (after,) = run(model, {"x": x}), run(result.model, {"x": x})
    assert np.abs(before - after).max() < 1e-37


def test_weights_that_are_scaled_up_again_are_taken_back() -> None:
    """Where nothing comes in for the other weights, the root of 1e-40 counts. Verification sees it."""
    weights = np.full((2, 4), 1e-40, np.float32)
    weights[0] = 1
    model = weighted(
        "g (float[3, 1] x) => (float[3, 4] y) { z = Sub (x, x) c = Concat <axis = 1> (z, x) m = MatMul (c, w) a = Abs (m) r = Sqrt (a) y = Mul (r, k) }",
        w=weights,
        k=np.full(4, 1e20, np.float32),
    )
    result = eqsat.optimize(model)
    assert result.report["verify"]["status"] == "equal" and not result.report["notes"] and not result.report["left"]
    assert any(np.float32(1e-40) in array for array in initializers(result.model).values())


def test_large_weights_that_are_apart_are_read(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    weights = generator.standard_normal((512, 1024)).astype(np.float32)
    weights[5:, :7] *= np.float32(1e-39)
    path = tmp_path / "m.onnx"
    onnx.save(weighted("g (float[3, 512] x) => (float[3, 1024] y) { y = MatMul (x, w) }", w=weights), path)
    result = eqsat.optimize(path)
    (kept,) = initializers(result.model).values()
    assert FLUSHED in result.report["notes"] and np.array_equal(kept, np.where(np.abs(weights) < LEAST, np.float32(0), weights))


def test_a_chain_names_the_step() -> None:
    explained = explain(convolution(), Settings(), seconds=0)
    assert explained.reached and explained.status == "equal" and explained.steps[-1].change.laws == (WEIGHTS,)
