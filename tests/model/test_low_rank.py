"""Low rank: two thinner weights take the place of one, and no product changes by more than the bound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eqsat
from eqsat.model.low_rank import Factored, factor
from eqsat.settings import silent
from tests.support.models import operators, weighted

Matrix = np.ndarray[Any, Any]


def matrix(rows: int, columns: int, rank: int, noise: float = 0.0, seed: int = 0) -> Matrix:
    """Returns a matrix of singular values 1 up to a rank, and `noise` beyond it."""
    generator = np.random.default_rng(seed)
    left, _ = np.linalg.qr(generator.standard_normal((rows, min(rows, columns))))
    right, _ = np.linalg.qr(generator.standard_normal((columns, min(rows, columns))))
    values = np.where(np.arange(min(rows, columns)) < rank, 1.0, noise)
    return (left * values) @ right.T


def factored(model: onnx.ModelProto, bound: float, folder: Path | None = None) -> tuple[onnx.ModelProto, list[Factored]]:
    result = onnx.ModelProto()
    result.CopyFrom(model)
    found = factor(result, folder, bound, silent)
    onnx.checker.check_model(result, full_check=True)
    return result, found


def computed(model: onnx.ModelProto, x: Matrix) -> Matrix:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


PRODUCTS = {
    "MatMul": "g (float[N, 24] x) => (float[N, 32] y) { y = MatMul (x, w) }",
    "MatMul of more axes": "g (float[2, N, 24] x) => (float[2, N, 32] y) { y = MatMul (x, w) }",
    "Gemm": "g (float[N, 24] x) => (float[N, 32] y) { y = Gemm <alpha = 0.5, beta = 2.0> (x, w, b) }",
    "Gemm without bias": "g (float[N, 24] x) => (float[N, 32] y) { y = Gemm (x, w) }",
    "twice": "g (float[N, 24] x) => (float[N, 32] y) { a = MatMul (x, w)  c = Gemm (x, w, b)  y = Add (a, c) }",
}


TURNED = [pytest.param(text, True, id=f"{name}, transB") for name, text in PRODUCTS.items() if "MatMul" not in text]


@pytest.mark.parametrize(("text", "turned"), [*(pytest.param(text, False, id=name) for name, text in PRODUCTS.items()), *TURNED])
def test_products_change_within_the_bound(text: str, turned: bool) -> None:
    weight = matrix(24, 32, 3, noise=0.04).astype(np.float32)
    text = text.replace("alpha", "transB = 1, alpha").replace("Gemm (", "Gemm <transB = 1> (") if turned else text
    model = weighted(text, w=np.ascontiguousarray(weight.T) if turned else weight, b=np.ones(32, np.float32))
    result, (found,) = factored(model, 0.05)
    assert (found.weight, found.shape, found.rank) == ("w", (24, 32), 3) and 0.039 < found.error <= 0.05
    sizes = sorted(tuple(tensor.dims) for tensor in result.graph.initializer if len(tensor.dims) == 2)
    assert sizes == [(3, 32), (24, 3)]
    x = np.random.default_rng(1).standard_normal((2, 7, 24) if "2, N" in text else (7, 24)).astype(np.float32)
    change = np.linalg.norm(computed(result, x) - computed(model, x), axis=-1)
    most = 2 if "twice" in text or "Add" in text else 1
    assert (change <= most * 0.05 * np.linalg.norm(x, axis=-1) + 1e-5).all() and change.max() > 1e-3


@given(
    rows=st.integers(2, 40), columns=st.integers(2, 40), rank=st.integers(1, 8), noise=st.sampled_from([0.0, 1e-4, 0.02, 0.2]),
    bound=st.sampled_from([1e-6, 1e-3, 0.1]), dtype=st.sampled_from(["float32", "float64", "float16"]), seed=st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_the_error_is_a_bound_and_the_rank_saves_multiplications(rows: int, columns: int, rank: int, noise: float, bound: float, dtype: str, seed: int) -> None:
    weight = matrix(rows, columns, rank, noise, seed).astype(dtype)
    kind = {"float32": "float", "float64": "double"}.get(dtype, dtype)
    model = weighted(f"g ({kind}[N, {rows}] x) => ({kind}[N, {columns}] y) {{ y = MatMul (x, w) }}", w=weight)
    result, found = factored(model, bound)
    if not found:
        assert result == model
        return
    first, second = (onnx.numpy_helper.to_array(tensor).astype(np.float64) for tensor in result.graph.initializer)
    given = weight.astype(np.float64)
    error = np.linalg.norm(first @ second - given, 2) / np.linalg.norm(given, 2)
    assert error <= found[0].error + 1e-14 and found[0].error <= bound
    assert first.size + second.size < weight.size and found[0].rank == first.shape[1]


KEPT = {
    "a result of the model": "g (float[N, 24] x) => (float[N, 32] y, float[24, 32] w) { y = MatMul (x, w) }",
    "the caller's": "g (float[N, 24] x, float[24, 32] w) => (float[N, 32] y) { y = MatMul (x, w) }",
    "read by another node": "g (float[N, 24] x) => (float[N, 32] y, float[24, 32] z) { y = MatMul (x, w)  z = Relu (w) }",
    "the left side": "g (float[32, N] x) => (float[24, N] y) { y = MatMul (w, x) }",
    "columns of a turned product": "g (float[24, N] x) => (float[N, 32] y) { y = Gemm <transA = 1> (x, w) }",
    "another operator of the same name": "g (float[N, 24] x) => (y) { y = com.example.MatMul (x, w) }",
    "in both orientations": "g (float[N, 24] x) => (float[N, 24] y) { a = Gemm (x, w)  y = Gemm <transB = 1> (a, w) }",
    "integers": "g (int32[N, 24] x) => (int32[N, 32] y) { y = MatMul (x, w) }",
    "read in a body": """g (float[N, 24] x, bool b) => (float[N, 32] y) {
        a = MatMul (x, w)
        c = If (b) <then_branch = t () => (float[N, 32] d) { d = MatMul (x, w) }, else_branch = e () => (float[N, 32] d) { d = Identity (a) }>
        y = Add (a, c) }""",
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_other_weights_stay(text: str) -> None:
    weight = matrix(24, 24 if "transB" in text else 32, 2)
    kept(weighted(text, w=np.rint(9 * weight).astype(np.int32) if "int32" in text else weight.astype(np.float32)))


def kept(model: onnx.ModelProto) -> None:
    result = onnx.ModelProto()
    result.CopyFrom(model)
    assert factor(result, None, 0.1, silent) == [] and result == model


ALONE = weighted("g (float[N, 24] x) => (float[N, 32] y) { y = MatMul (x, w) }", w=matrix(24, 32, 2).astype(np.float32))


def test_weights_that_are_trained_annotated_or_stripped_stay() -> None:
    assert factored(ALONE, 0.1)[1]
    trained, annotated, stripped = onnx.ModelProto(), onnx.ModelProto(), onnx.ModelProto()
    for model in (trained, annotated, stripped):
        model.CopyFrom(ALONE)
    trained.training_info.add()
    annotated.graph.quantization_annotation.add(tensor_name="w")
    stripped.graph.initializer[0].ClearField("raw_data")
    for model in (trained, annotated, stripped):
        kept(model)


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_the_rank_is_the_lowest_within_the_bound_whatever_the_scale(scale: float) -> None:
    values = {"w": (scale * matrix(24, 32, 3, noise=0.04)).astype(np.float32)}
    model = weighted("g (float[N, 24] x) => (float[N, 32] y) { y = MatMul (x, w) }", **values)
    assert [found.rank for found in factored(model, 0.05)[1]] == [3]
    assert factored(model, 0.03)[1] == []


def test_one_rank_more_is_tried_where_rounding_takes_the_error_beyond_the_bound() -> None:
    weight = (matrix(64, 64, 3) + 0.04 * matrix(64, 64, 1, seed=1)).astype(np.float32)
    values = np.linalg.svd(weight.astype(np.float64), compute_uv=False)
    model = weighted("g (float[N, 64] x) => (float[N, 64] y) { y = MatMul (x, w) }", w=weight)
    assert [found.rank for found in factored(model, float(values[3] / values[0]) * (1 + 1e-9))[1]] == [4]


@pytest.mark.parametrize("strange", [np.nan, np.inf, 0.0])
def test_a_weight_without_a_largest_singular_value_stays(strange: float) -> None:
    model = weighted("g (float[N, 24] x) => (float[N, 32] y) { y = MatMul (x, w) }", w=np.full((24, 32), strange, np.float32))
    assert factored(model, 0.1)[1] == []


def test_old_models_list_their_constants_among_the_inputs() -> None:
    model = weighted("g (float[N, 24] x, float[24, 32] w) => (float[N, 32] y) { y = MatMul (x, w) }", w=matrix(24, 32, 2).astype(np.float32))
    model.ir_version = 3
    del model.opset_import[:]
    model.opset_import.extend([onnx.helper.make_opsetid("", 8)])
    result, found = factored(model, 0.1)
    assert len(found) == 1 and {info.name for info in result.graph.input} == {"x", "w_in", "w_out"}


def test_an_optimization_keeps_two_products_where_they_are_faster() -> None:
    text = "g (float[512, 1024] x) => (float[512, 1024] y) { y = MatMul (x, w) }"
    result, _ = factored(weighted(text, w=matrix(1024, 1024, 16).astype(np.float32)), 1e-3)
    found = eqsat.optimize(result)
    assert operators(found.model) == {"MatMul": 2} and found.report["verify"]["status"] == "equal"
