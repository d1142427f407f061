"""Finite rules: where they fire, the constants that prevent it, and the reports of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import eqsat
from eqsat.cli.summary import summary
from eqsat.language.library import built_in
from eqsat.language.syntax import Label
from eqsat.runtime.session import OnnxRuntimeSession

ONLY = ["conv-gather", "conv-zero-bias"]
FINITE = {found.rule.name for found in built_in().rules if found.rule.label is Label.FINITE}

MODEL = """<ir_version: 10, opset_import: ["" : 22]> g (float[2, 4, 5, 5] x) => (float[2, M, H, W] y) <int64[3] i = {0, 2, 3}>
{ z = Gather<axis = 1>(x, i) y = Conv(z, w) }"""


def model(shape: tuple[int, ...], special: float = 1.0) -> onnx.ModelProto:
    """Returns a Conv of three of four channels, with one special element in its weights."""
    weights = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    weights.flat[5] = special
    result = parser.parse_model(MODEL)
    result.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return result


def finite(source: onnx.ModelProto | Path, **settings: object) -> list[str]:
    return eqsat.optimize(source, max_growth=1 << 20, only=ONLY, **settings).report["finite"]  # pyright: ignore[reportArgumentType]


SHAPES = [(6, 3, 1, 1), (40, 3, 3, 3)]  # small weights, whose elements a fact holds, and large ones


@pytest.mark.parametrize("shape", SHAPES)
def test_it_fires_where_constants_are_finite(shape: tuple[int, ...]) -> None:
    assert finite(model(shape)) == ["conv-gather"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_it_does_not_where_one_holds_no_number(shape: tuple[int, ...], special: float) -> None:
    assert finite(model(shape, special)) == []


@pytest.mark.parametrize("special", [1.0, np.nan])
def test_elements_in_another_file_are_looked_at(special: float, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save_model(model((40, 3, 3, 3), special), path, save_as_external_data=True, size_threshold=0)
    assert finite(path) == ([] if np.isnan(special) else ["conv-gather"])


@pytest.mark.parametrize("setting", ["strict", "exact"])
def test_strict_and_exact_do_without(setting: str) -> None:
    original = model((6, 3, 1, 1))
    result = eqsat.optimize(original, **{setting: True})  # pyright: ignore[reportArgumentType]
    assert not FINITE & {rule["name"] for rule in result.report["rules"]} and result.report["finite"] == []
    # A value that nothing reads affects nothing.
    x = np.ones((2, 4, 5, 5), np.float32)
    x[0, 1] = np.nan
    before, after = (OnnxRuntimeSession(proto.SerializeToString()).run({"x": x})[0] for proto in (original, result.model))
    assert np.isfinite(before).all() and np.isfinite(after).all()


def test_the_report_and_the_terminal_name_those_that_fired() -> None:
    report = eqsat.optimize(model((6, 3, 1, 1))).report
    assert report["finite"] == ["conv-gather"]
    labels = {rule["name"]: rule["label"] for rule in report["rules"]}
    assert labels["conv-gather"] == "finite" and labels["conv-zero-bias[Conv]"] == "real"
    assert "finite  conv-gather: NaN or infinity may spread; --strict does without" in summary(report)
    assert not any(line.startswith("finite") for line in summary(eqsat.optimize(model((6, 3, 1, 1)), strict=True).report))


def test_rules_through_which_infinities_spread_are_finite() -> None:
    assert {"conv-gather", "conv-enlarge", "conv-merge-groups"} <= FINITE


def test_a_pool_that_loses_its_border_may_show_a_nan() -> None:
    """ONNX Runtime passes over a NaN in a window unless it comes first (seed 7801917)."""
    source = parser.parse_model("""<ir_version: 4, opset_import: ["" : 9]> g (double[1, 1, 3, 3] x) => (double[1, 1, 1, 2] y)
    { r = Relu(x) p = Pad<pads = [0, 0, 1, 1, 0, 0, 1, 2]>(r) y = MaxPool<strides = [3, 3], kernel_shape = [3, 3]>(p) }""")
    x = np.zeros((1, 1, 3, 3))
    x[0, 0, 0, 2] = np.nan
    strict = eqsat.optimize(source, strict=True, target="launches").model
    before, after = (OnnxRuntimeSession(proto.SerializeToString()).run({"x": x})[0] for proto in (source, strict))
    np.testing.assert_array_equal(before, after)
    assert eqsat.optimize(source, target="launches").report["finite"] == ["maxpool-pad-relu"]


MASKS = """
# A masked Softmax adds its mask.
finite rule mask:
    Softmax<axis = a>(Where(c, x, -inf)) => Softmax<axis = a>(Add(x, Where(c, T(0), T(-inf))))
    where x: T
    test c: bool[2, 3], x: T[2, 3], a = 1
"""


@pytest.mark.parametrize(("bias", "fires"), [(0.5, True), (-np.inf, False)])
def test_an_infinity_that_a_rule_names_is_no_obstacle_and_another_one_is(bias: float, fires: bool) -> None:
    source = parser.parse_model("""<ir_version: 10, opset_import: ["" : 22]> g (bool[4, 8] c, float[4, 8] x) => (float[4, 8] y) <float low = {-inf}>
    { z = Where(c, b, low) y = Softmax<axis = 1>(z) }""")
    source.graph.initializer.append(numpy_helper.from_array(np.full((4, 8), bias, np.float32), "b"))
    found = eqsat.optimize(source, rules=[MASKS], only=["mask"], verify=False).report["rules"]
    assert bool(found) is fires


def test_integers_are_finite() -> None:
    rules = """
# A choice by a mask is a product by it.
finite rule mask:
    Where(c, x, 0) => Mul(x, Cast<to = T>(c))
    where x: T
    test c: bool[2, 3], x: T[2, 3]
"""
    text = '<ir_version: 10, opset_import: ["" : 22]> g (bool[3] c, {0}[3] x) => ({0}[3] y) <{0} zero = {{0}}> {{ y = Where(c, x, zero) }}'
    for dtype, strict in (("int32", True), ("float", False)):
        found = eqsat.optimize(parser.parse_model(text.format(dtype)), rules=[rules], only=["mask"], strict=True).report
        assert bool(found["rules"]) is strict


POOLS = {
    "MaxPool<kernel_shape = [1]>(x)": (2, 3, 4),
    "GlobalMaxPool(x)": (2, 3, 4, 1),
    "MaxPool<kernel_shape = [2, 2]>(m)": (2, 3, 4, 4),
}


@pytest.mark.parametrize(("pool", "shape"), POOLS.items())
@pytest.mark.parametrize("special", [np.nan, -np.inf, np.inf])
def test_strict_keeps_a_maximum_that_begins_at_the_lowest_number(pool: str, shape: tuple[int, ...], special: float) -> None:
    """ONNX Runtime loses NaN and -inf in a pool of floats; without one both models agree."""
    text = f'<ir_version: 8, opset_import: ["" : 13]> g (float{list(shape)} x) => (float y) <float f = {{4}}> {{ m = Mul(x, f) y = {pool} }}'
    original = parser.parse_model(text)
    optimized = eqsat.optimize(original, strict=True, verify=False).model
    x = np.ones(shape, np.float32)
    x[0, 0, 0] = special
    before, after = (OnnxRuntimeSession(proto.SerializeToString()).run({"x": x})[0] for proto in (original, optimized))
    np.testing.assert_array_equal(np.isfinite(before), np.isfinite(after))
