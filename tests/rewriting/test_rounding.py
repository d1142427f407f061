"""Rounding: products read no subnormal numbers, and nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import eqsat
from eqsat.cost.subnormals import faint_values
from eqsat.explain.explanation import explain
from eqsat.explain.law_names import ROUNDING
from eqsat.rewriting.finished import ROUNDED
from eqsat.rewriting.rounding import rounded
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


def test_a_masked_product_reads_no_subnormal_numbers() -> None:
    result = eqsat.optimize(attention())
    assert operators(result.model) == {"Add": 2, "Softmax": 1, "Sub": 1, "MatMul": 1}
    assert result.report["verify"]["status"] == "equal" and ROUNDED in result.report["notes"]
    before, after = (result.report["cost"][when]["seconds"] for when in ("before", "after"))
    assert after < before / 2
    product = next(node for node in result.model.graph.node if node.op_type == "MatMul")
    result.model.graph.output.add(name=product.input[0], type=result.model.graph.output[0].type)
    read = run(result.model, feeds())[1]
    assert not ((read != 0) & (np.abs(read) < np.finfo(np.float32).tiny)).any() and (read == 0).any()


def test_what_is_not_tiny_keeps_its_bits() -> None:
    """So do NaN and infinity."""
    model = attention("p = Softmax (x) a = Add (x, m) q = Softmax (a) y = MatMul (q, v)")
    changed = rounded(model, faint_values(model.graph, None))
    sums = [node for node in changed.graph.node if node.op_type in ("Add", "Sub")]
    small = onnx.numpy_helper.to_array(next(tensor for tensor in changed.graph.initializer if tensor.name in sums[1].input))
    powers = np.float32(2.0) ** np.arange(-75, 1, dtype=np.float32)
    values = np.concatenate([powers * np.float32(1 + 2**-23), np.array([np.nan, np.inf, -np.inf, 0], np.float32)])
    alone = weighted("g (float[N] x) => (float[N] y) { a = Add (x, c) y = Sub (a, c) }", c=small)
    assert run(alone, {"x": values})[0].tobytes() == values.tobytes()
    tiny = np.array([1e-45, 1e-40, 1e-38, -1e-40], np.float32)
    assert not run(alone, {"x": tiny})[0].any()


def test_a_second_run_changes_nothing() -> None:
    once = eqsat.optimize(attention())
    again = eqsat.optimize(once.model)
    assert again.model.SerializeToString() == once.model.SerializeToString()


@pytest.mark.parametrize("settings", [{"exact": True}, {"only": ["algebra"]}, {"target": "launches"}, {"target": "generic-gpu"}, {"objective": "bytes"}])
def test_where_nothing_is_rounded(settings: dict[str, Any]) -> None:
    assert operators(eqsat.optimize(attention(), **settings).model) == {"Add": 1, "Softmax": 1, "MatMul": 1}


@pytest.mark.parametrize("mask", [np.triu(np.full((SIZE, SIZE), -1e9, np.float32), 1), np.zeros((SIZE, SIZE), np.float32)])
def test_other_masks(mask: np.ndarray) -> None:
    assert "Sub" not in operators(eqsat.optimize(attention(mask=mask)).model)


def test_a_softmax_that_is_moved_before_the_product() -> None:
    model = attention("s = Add (x, m) p = Softmax (s) t = Transpose <perm = [1, 0, 2]> (p) u = Transpose <perm = [1, 0, 2]> (v) y = MatMul (t, u)")
    changed = rounded(model, faint_values(model.graph, None))
    assert [node.op_type for node in changed.graph.node] == ["Add", "Softmax", "Add", "Sub", "Transpose", "Transpose", "MatMul"]
    assert next(node.input[0] for node in changed.graph.node if node.op_type == "Transpose") == changed.graph.node[3].output[0]


def test_a_softmax_that_no_product_reads_stays() -> None:
    model = attention("s = Add (x, m) p = Softmax (s) y = Mul (p, v)")
    assert rounded(model, faint_values(model.graph, None)) is model


def test_an_output_keeps_what_softmax_gives() -> None:
    model = attention()
    model.graph.output.add(name="p", type=model.graph.output[0].type)
    changed = rounded(model, faint_values(model.graph, None))
    assert run(changed, feeds())[1].tobytes() == run(model, feeds())[1].tobytes()


def test_old_versions_get_a_constant_node() -> None:
    model = attention()
    model.ir_version = 3
    model.graph.input.add(name="m", type=onnx.helper.make_tensor_type_proto(1, MASK.shape))
    changed = rounded(model, faint_values(model.graph, None))
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


def test_a_chain_names_the_step() -> None:
    model = attention("s = Add (x, m) p = Softmax (s) z = MatMul (p, v) w = Neg (z) y = Neg (w)")
    explained = explain(model, Settings(), seconds=0)
    assert explained.reached and explained.steps[-1].change.laws == (ROUNDING,)
