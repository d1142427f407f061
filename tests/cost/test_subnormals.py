"""Subnormal numbers: which masks make them, where they go, and what they cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from eqsat.cost.graph_price import node_prices
from eqsat.cost.price import PricedNode
from eqsat.cost.shaped import Shaped
from eqsat.cost.subnormals import delay, faint_values
from eqsat.cost.target import load_target
from tests.support.models import run, weighted

CPU = load_target("onnxruntime-cpu")
HALF = np.triu(np.ones((8, 8), np.float32), 1)  # 28 of 64


def masked(mask: float | np.ndarray, scores: str = "s = Add (x, m)", **other: np.ndarray) -> onnx.ModelProto:
    text = f"g (float[2, 8, 8] x, float[2, 8, 4] v) => (float[2, 8, 4] y) {{ {scores} p = Softmax (s) y = MatMul (p, v) }}"
    return weighted(text, m=HALF * mask if isinstance(mask, float) else mask, **other)


def shares(model: onnx.ModelProto, folder: Path | None = None) -> dict[str, float]:
    return faint_values(model.graph, folder)


@pytest.mark.parametrize("mask", [-85.0, -95.0, -100.0, -105.0])
def test_a_mask_that_makes_subnormal_numbers(mask: float) -> None:
    assert shares(masked(mask)) == {"p": 28 / 64 / 2}


@pytest.mark.parametrize("mask", [0.0, -10.0, -60.0, -1e4, -3e38, float("-inf")])
def test_a_mask_that_makes_none(mask: float) -> None:
    with np.errstate(invalid="ignore"):
        assert shares(masked(np.where(HALF > 0, np.float32(mask), np.float32(0)))) == {}


def test_numbers_that_a_softmax_really_makes() -> None:
    """A share is an estimate. Where it says 0, the runtime makes none; where it says more, the exact
    result has some, which the runtime rounds to 0 on some processors.
    """
    x = np.random.default_rng(0).standard_normal((2, 8, 8)).astype(np.float32)
    for mask in (-10.0, -60.0, -95.0, -1e4):
        model = masked(mask)
        model.graph.output.add(name="p", type=model.graph.output[0].type)
        probabilities = run(model, {"x": x, "v": np.ones((2, 8, 4), np.float32)})[1]
        powers = np.exp((x + HALF * mask).astype(np.float64))
        exact = (powers / powers.sum(-1, keepdims=True)).astype(np.float32)
        made, expected = (((found > 0) & (found < np.finfo(np.float32).tiny)).any() for found in (probabilities, exact))
        assert expected == bool(shares(model)), mask
        assert expected or not made, mask


def test_the_greatest_element_of_a_row_counts_as_0() -> None:
    """Softmax subtracts it: a row of -100 is a row of zeros."""
    assert shares(masked(np.full((8, 8), -100, np.float32))) == {}
    assert shares(masked(np.float32(-100) * (1 - HALF) + 7)) == {"p": 28 / 64 / 2}  # but for the last row
    assert shares(masked(np.array(-100, np.float32))) == {}


@pytest.mark.parametrize(
    "scores",
    [
        "a = Add (m, b) s = Add (x, a)",
        "s = Sum (b, x, m)",
        "a = Add (x, m) c = Reshape (a, shape) d = Add (c, b) s = Identity (d)",
        "a = Unsqueeze (m, axis) c = Expand (a, shape) s = Add (x, c)",
    ],
)
def test_masks_on_their_way_to_scores(scores: str) -> None:
    other = {"b": np.ones((8, 8), np.float32), "shape": np.array([2, 8, 8]), "axis": np.array([0])}
    assert list(shares(masked(-100.0, scores, **other))) == ["p"]


def test_a_number_that_where_chooses() -> None:
    where = "a = Where (c, m, zero) s = Add (x, a)"
    other = {"c": HALF > 0, "zero": np.array(0, np.float32)}
    assert shares(masked(np.array(-100, np.float32), where, **other)) == {"p": 0.25}
    assert shares(masked(np.array(-1e9, np.float32), where, **other)) == {}
    cast = "d = CastLike (m, x) a = Where (c, d, zero) s = Add (x, a)"
    assert shares(masked(np.array(-100), cast, **other)) == {"p": 0.25}


@pytest.mark.parametrize(
    "scores", ["s = Mul (x, m)", "a = Exp (m) s = Add (x, a)", "a = Cast <to = 10> (m) b = Cast <to = 1> (a) c = Mul (b, b) s = Add (x, c)"]
)
def test_no_masks(scores: str) -> None:
    assert shares(masked(-100.0, scores)) == {}


def test_moves_of_a_softmax_are_faint_too() -> None:
    text = "g (float[8, 8] x) => (float[4, 16] y) { s = Add (x, m) p = Softmax (s) t = Transpose (p) y = Reshape (t, shape) z = Exp (y) }"
    assert list(shares(weighted(text, m=HALF * -100, shape=np.array([4, 16])))) == ["p", "t", "y"]


def test_external_masks_are_read(tmp_path: Path) -> None:
    onnx.save(masked(-100.0), tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    model = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    assert list(shares(model, tmp_path)) == ["p"]
    (tmp_path / "m.data").unlink()
    assert shares(model, tmp_path) == {}


def test_a_delay_counts_vectors() -> None:
    first, second = Shaped(1, (4, 8, 8)), Shaped(1, (4, 8, 20))
    product = PricedNode("", "MatMul", {}, [first, second], [Shaped(1, (4, 8, 20))])
    assert delay(product, 0.25, 1e-8) == pytest.approx(64 * 2 * 1e-8)  # 20 columns are two vectors
    assert delay(PricedNode("", "Add", {}, [first, first], [first]), 0.25, 1e-8) == pytest.approx(64 / 16 * 1e-8)
    assert delay(PricedNode("", "Reshape", {}, [first, second], [first]), 0.25, 1e-8) == 0


def test_a_price_has_the_delay() -> None:
    model = onnx.shape_inference.infer_shapes(masked(-100.0))
    plain, slow = (node_prices(model, CPU, {}, faint=faint) for faint in (None, shares(model)))
    longer = {one.node.name: other.price.seconds - one.price.seconds for one, other in zip(plain, slow, strict=True)}
    assert longer.pop("MatMul") == pytest.approx(128 * 28 / 64 / 2 * CPU.subnormal)
    assert longer.pop("Softmax") == pytest.approx(128 * 28 / 64 / 2 / 16 * 10 * CPU.subnormal) and set(longer.values()) == {0.0}
