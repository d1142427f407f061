"""Raising: a Softmax makes no subnormal numbers, and nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import eqsat
from eqsat.cost.subnormals import faint_values
from eqsat.explain.explanation import explain
from eqsat.explain.law_names import RAISING
from eqsat.rewriting.finished import RAISED
from eqsat.rewriting.raising import raised
from eqsat.settings import Settings
from tests.support.models import operators, run, weighted

SIZE = 64
MASK = np.triu(np.full((SIZE, SIZE), -100, np.float32), 1)
IMAGE = f"float[2, {SIZE}, {SIZE}]"


def attention(nodes: str = "s = Add (x, m) p = Softmax (s) y = MatMul (p, v)", mask: np.ndarray = MASK) -> onnx.ModelProto:
    return weighted(f"g ({IMAGE} x, {IMAGE} v) => ({IMAGE} y) {{ {nodes} }}", m=mask)


def feeds(scale: float = 1.0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    return {name: (generator.standard_normal((2, SIZE, SIZE)) * scale).astype(np.float32) for name in "xv"}


def subnormal(array: np.ndarray) -> np.ndarray:
    return (array != 0) & (np.abs(array) < np.finfo(np.float32).tiny)


def test_a_masked_softmax_makes_no_subnormal_numbers() -> None:
    result = eqsat.optimize(attention())
    assert operators(result.model) == {"Add": 1, "ReduceMax": 1, "Sub": 1, "Max": 1, "Softmax": 1, "MatMul": 1}
    assert result.report["verify"]["status"] == "equal" and RAISED in result.report["notes"]
    before, after = (result.report["cost"][when]["seconds"] for when in ("before", "after"))
    assert after < before / 2
    product = next(node for node in result.model.graph.node if node.op_type == "MatMul")
    result.model.graph.output.add(name=product.input[0], type=result.model.graph.output[0].type)
    assert not subnormal(run(result.model, feeds())[1]).any()


@pytest.mark.parametrize(("opset", "axis"), [(8, -1), (11, -1), *((opset, axis) for opset in (13, 18, 23) for axis in (None, 0, 1, 2, -1))])
def test_scores_of_every_size(opset: int, axis: int | None) -> None:
    """Shares of a row stay as they are but for the last place, whatever the scores. So do NaN and
    infinity.
    """
    softmax = "Softmax (s)" if axis is None else f"Softmax <axis = {axis}> (s)"
    model = weighted(f"g (float[2, 6, 64] x) => (float[2, 6, 64] p) {{ s = Add (x, m) p = {softmax} }}", opset, m=np.tile(MASK[0], (6, 1)) + MASK[:6])
    changed = raised(model, {"p": 1.0})
    onnx.checker.check_model(changed, full_check=True)
    assert operators(changed) == {"Add": 1, "ReduceMax": 1, "Sub": 1, "Max": 1, "Softmax": 1}
    for scale in (1e-3, 1.0, 40.0, 1e30):
        values = (np.random.default_rng(0).standard_normal((2, 6, 64)) * scale).astype(np.float32)
        for special in (None, np.nan, np.inf, -np.inf):
            if special is not None:
                values[0, 1, 3] = special
            (one,), (other,) = run(model, {"x": values}), run(changed, {"x": values})
            np.testing.assert_allclose(other, one, rtol=1e-6, atol=2.0**-80)
    hidden = np.full((2, 6, 64), -np.inf, np.float32)
    assert np.isnan(run(changed, {"x": hidden})[0]).all()


@pytest.mark.parametrize(("opset", "axis"), [(7, -1), (8, 1), (12, 1)])
def test_old_versions_that_stay(opset: int, axis: int) -> None:
    """Max does not broadcast there, or a row may have several axes."""
    model = weighted(f"g (float[2, 6] x) => (float[2, 6] p) {{ s = Add (x, m) p = Softmax <axis = {axis}> (s) }}", opset, m=np.full((2, 6), -100, np.float32))
    assert raised(model, {"p": 1.0}) is model


def test_a_second_run_changes_nothing() -> None:
    once = eqsat.optimize(attention())
    again = eqsat.optimize(once.model)
    assert again.model.SerializeToString() == once.model.SerializeToString()


@pytest.mark.parametrize("settings", [{"exact": True}, {"only": ["algebra"]}, {"target": "launches"}, {"target": "generic-gpu"}, {"objective": "bytes"}])
def test_where_nothing_is_raised(settings: dict[str, Any]) -> None:
    assert operators(eqsat.optimize(attention(), **settings).model) == {"Add": 1, "Softmax": 1, "MatMul": 1}


@pytest.mark.parametrize("mask", [np.triu(np.full((SIZE, SIZE), -1e9, np.float32), 1), np.zeros((SIZE, SIZE), np.float32)])
def test_other_masks(mask: np.ndarray) -> None:
    assert "Sub" not in operators(eqsat.optimize(attention(mask=mask)).model)


@pytest.mark.parametrize(("kind", "code", "left"), [("float", 1, 1), ("float16", 10, 0), ("double", 11, 0)])
@pytest.mark.parametrize("cast", [True, False])
def test_only_scores_of_float32(kind: str, code: int, left: int, cast: bool) -> None:
    image = f"{kind}[2, {SIZE}, {SIZE}]"
    nodes = (f"c = Cast <to = {code}> (m)" if cast else "c = Identity (m)") + " s = Add (x, c) p = Softmax (s) z = MatMul (p, v) w = Neg (z) y = Neg (w)"
    mask = MASK.astype(np.int64 if cast else onnx.helper.tensor_dtype_to_np_dtype(code))
    result = eqsat.optimize(weighted(f"g ({image} x, {image} v) => ({image} y) {{ {nodes} }}", m=mask))
    counts = operators(result.model)
    assert counts["Max"] == left and counts["Neg"] == 0 and result.report["verify"]["status"] == "equal"


def test_only_the_softmax_that_is_slow() -> None:
    model = attention("q = Softmax (x) s = Add (q, m) p = Softmax (s) y = Mul (p, v)")
    changed = raised(model, faint_values(model.graph, None))
    assert [node.op_type for node in changed.graph.node] == ["Softmax", "Add", "ReduceMax", "Sub", "Max", "Softmax", "Mul"]
    assert raised(model, {}) is model


def test_old_versions_get_a_constant_node() -> None:
    model = attention()
    model.ir_version = 3
    model.graph.input.add(name="m", type=onnx.helper.make_tensor_type_proto(1, MASK.shape))
    changed = raised(model, faint_values(model.graph, None))
    assert changed.graph.node[0].op_type == "Constant"
    onnx.checker.check_model(changed)


@pytest.mark.parametrize(("number", "left"), [(-100.0, "MatMul"), (-1e9, "Attention")])
def test_no_kernel_hides_a_softmax_that_makes_subnormal_numbers(number: float, left: str) -> None:
    image = "float[1, 4, 64, 32]"
    text = f"""<ir_version: 10, opset_import: ["" : 23]> g ({image} q, {image} k, {image} v) => ({image} y) {{
        t = Transpose <perm = [0, 1, 3, 2]> (k) z = MatMul (q, t) s = Add (z, m) p = Softmax (s) y = MatMul (p, v) }}"""
    result = eqsat.optimize(weighted(text, m=np.triu(np.full((64, 64), number, np.float32), 1)))
    assert left in operators(result.model)
    own = eqsat.optimize(weighted(text, m=MASK), only=["attention"])
    assert "Attention" in operators(own.model)


def test_layers_without_such_a_mask_become_attention() -> None:
    image = "float[1, 4, 64, 32]"
    text = f"""<ir_version: 10, opset_import: ["" : 23]> g ({image} q, {image} k, {image} v) => ({image} y) {{
        t = Transpose <perm = [0, 1, 3, 2]> (k) z = MatMul (q, t) s = Add (z, m) p = Softmax (s) h = MatMul (p, v)
        w = MatMul (h, t) e = Add (w, n) o = Softmax (e) y = MatMul (o, v) }}"""
    left = operators(eqsat.optimize(weighted(text, m=MASK, n=-MASK / 100)).model)
    assert left["Attention"] == left["Softmax"] == left["Max"] == 1


def test_a_chain_names_the_step() -> None:
    model = attention("s = Add (x, m) p = Softmax (s) z = MatMul (p, v) w = Neg (z) y = Neg (w)")
    explained = explain(model, Settings(), seconds=0)
    assert explained.reached and explained.steps[-1].change.laws == (RAISING,)
