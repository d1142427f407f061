"""Sizes of inner values are declared where the runtime fuses more for it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

import eqsat
from eqsat.explain.explanation import explain
from eqsat.explain.law_names import SIZES
from eqsat.rewriting.declared_sizes import DECLARED, with_declared_sizes
from eqsat.settings import Settings
from tests.support.models import assert_same, parse, weighted

# The runtime follows the sizes of an image through Convs that pad as much as they take away, but not if they
# are dilated. So it adds this residual in a pass of its own.
RESIDUAL = """g (float[1, 16, {h}, {w}] x) => (float[1, 16, P, Q] y) {{
    a = Conv <pads = [1, 1, 1, 1]> (x, f)  b = Conv <pads = [2, 2, 2, 2], dilations = [2, 2]> (a, g)  c = Add (a, b)  y = Relu (c) }}"""


def residual(h: str = "H", w: str = "W") -> onnx.ModelProto:
    generator = np.random.default_rng(0)
    kernels = {name: generator.standard_normal((16, 16, 3, 3)).astype(np.float32) / 12 for name in "fg"}
    return weighted(RESIDUAL.format(h=h, w=w), **kernels)


def declared(model: onnx.ModelProto) -> dict[str, list[int | str]]:
    return {info.name: [size.dim_value or size.dim_param for size in info.type.tensor_type.shape.dim] for info in model.graph.value_info}


def test_a_residual_in_images_of_any_size_is_added_by_its_conv() -> None:
    model = residual()
    result = eqsat.optimize(model)
    assert declared(result.model) == {name: [1, 16, "H", "W"] for name in "abc"}
    assert DECLARED in result.report["notes"] and result.report["verify"]["status"] == "equal"
    launches = result.report["cost"]
    assert launches["after"]["launches"] < launches["before"]["launches"] and launches["after"]["seconds"] < launches["before"]["seconds"]
    assert_same(model, result.model, {"x": np.random.default_rng(1).standard_normal((1, 16, 7, 9)).astype(np.float32)})
    again = eqsat.optimize(result.model)
    assert again.model.SerializeToString() == result.model.SerializeToString() and DECLARED not in again.report["notes"]


def test_nothing_is_computed_of_sizes_that_are_negative() -> None:
    """Paddle writes -1 for a size that it does not know. onnx computed with it, and a detector of text was declared to
    have images of 0 by 0, and others of 16 by 16: the runtime refused to run it, and its result was given up.
    """
    text = """g (float[1, 16, H, W] x) => (float[1, 16, P, Q] y) {
        a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, f)  b = Conv <pads = [2, 2, 2, 2], dilations = [2, 2]> (a, g)  c = Add (a, b)  y = Relu (c) }"""
    model = weighted(text, **{name: np.full((16, 16, 3, 3), 0.05, np.float32) for name in "fg"})
    for size in model.graph.input[0].type.tensor_type.shape.dim[2:]:
        size.dim_value = -1
    result = eqsat.optimize(model)
    assert result.report["verify"]["status"] == "equal" and DECLARED in result.report["notes"]
    assert all(isinstance(size, str) for sizes in declared(result.model).values() for size in sizes[2:])
    assert_same(model, result.model, {"x": np.random.default_rng(1).standard_normal((1, 16, 12, 18)).astype(np.float32)})


@pytest.mark.parametrize("options", [{"exact": True}, {"target": "generic-gpu"}, {"target": "launches"}, {"max_growth": 0}, {"only": ("neg-number",)}])
def test_sizes_stay_undeclared(options: dict[str, object]) -> None:
    """Fused nodes may round differently, other targets fuse as prices tell, and a file may have no room."""
    result = eqsat.optimize(residual(), **options)  # type: ignore[arg-type]
    assert not declared(result.model) and DECLARED not in result.report["notes"]


def test_sizes_that_are_all_given_need_no_declaration() -> None:
    model = residual("7", "9")
    assert with_declared_sizes(model, lambda: model, 1e9) is model
    assert not declared(eqsat.optimize(model).model)


def test_sizes_that_make_no_better_graph_stay_undeclared() -> None:
    """A ReLU after a Conv needs no sizes."""
    text = "g (float[N, 16, H, W] x) => (float[N, 16, P, Q] y) { a = Conv <pads = [1, 1, 1, 1]> (x, f)  b = Relu (a)  y = MaxPool <kernel_shape = [2, 2]> (b) }"
    assert not declared(eqsat.optimize(weighted(text, f=np.ones((16, 16, 3, 3), np.float32))).model)


def test_declared_sizes_are_those_of_facts_and_declarations() -> None:
    model = parse(
        """g (float[N, C, ?, ?] x, float[N, C, K, L] w) => (float[P, Q, R, S] y) {
            t = Transpose <perm = [0, 1, 3, 2]> (x)  r = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (w)  u = NonZero (r)  v = Cast <to = 1> (u)
            y = Add (t, w) }"""
    )
    for size in model.graph.input[0].type.tensor_type.shape.dim[2:]:
        size.dim_param = "?"
    del model.graph.value_info[:]
    model.graph.value_info.extend([helper.make_tensor_value_info("u", 7, None), helper.make_tensor_value_info("gone", 1, [3])])
    found = declared(with_declared_sizes(model, lambda: model, 1e9))
    assert found["t"][:2] == ["N", "C"] and found["t"][2] != found["t"][3], "two unknown sizes are not equal"
    assert found["r"] == ["N", "C", "(K//2)", "(L//2)"] and found["gone"] == [3] and "y" not in found
    assert found["v"][0] == 4
    assert with_declared_sizes(model, lambda: model, 50) is model


def test_a_chain_names_the_step() -> None:
    text = RESIDUAL.format(h="H", w="W").replace("y = Relu (c)", "n = Neg (c) m = Neg (n) y = Relu (m)")
    model = weighted(text, **{name: np.ones((16, 16, 3, 3), np.float32) for name in "fg"})
    explained = explain(model, Settings(), seconds=0)
    assert explained.reached and explained.status == "equal"
    assert explained.steps[-1].change.laws == (SIZES,)
