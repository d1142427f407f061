"""The body of a loop stores the constants that it alone reads."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import eqsat
from eqsat.explain.explanation import explain
from eqsat.explain.law_names import PLACES
from eqsat.model.model import all_graphs
from eqsat.rewriting.own_constants import OWNED, with_own_constants
from eqsat.settings import Settings
from tests.support.models import assert_same, weighted

# A cell of Keras, whose weights go from trip to trip.
CELL = """g (float[2, 4] x, int64 n) => (float[2, 4] y) <bool on = {{1}}> {{
    y, u, w = Loop (n, on, x, p, q) <body = b (int64 i, bool c, float[2, 4] h, float[4, 4] v, float[4] k)
        => (bool d, float[2, 4] z, float[4, 4] v, float[4] k) {{
        d = Identity (c)  m = MatMul (h, v)  a = Add (m, k)  t = Tanh (a)  {inner} }}> {outer} }}"""
FEEDS = {"x": np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4), "n": np.array(3)}


def cell(inner: str = "z = Neg (t)", outer: str = "") -> onnx.ModelProto:
    generator = np.random.default_rng(0)
    weights = {name: generator.standard_normal(size).astype(np.float32) for name, size in (("p", (4, 4)), ("q", 4))}
    return weighted(CELL.format(inner=inner, outer=outer), **weights)


def stored(model: onnx.ModelProto) -> list[int]:
    """Returns the number of constants that each graph of a model stores, the outermost first."""
    return [sum(tensor.data_type == TensorProto.FLOAT for tensor in graph.initializer) for graph in all_graphs(model.graph)]


def test_weights_of_a_cell_are_stored_in_the_body() -> None:
    """ONNX Runtime handed them to the body in each trip: a Keras LSTM took 1.13 times as long as before."""
    model = cell()
    result = eqsat.optimize(model)
    assert stored(model) == [2, 0] and stored(result.model) == [0, 2]
    assert OWNED in result.report["notes"] and result.report["verify"]["status"] == "equal"
    assert_same(model, result.model, FEEDS)
    again = eqsat.optimize(result.model)
    assert again.model.SerializeToString() == result.model.SerializeToString() and OWNED not in again.report["notes"]


@pytest.mark.parametrize("options", [{"exact": True}, {"target": "generic-gpu"}, {"only": ("neg-number",)}])
def test_weights_stay_outside(options: dict[str, object]) -> None:
    result = eqsat.optimize(cell(), **options)  # type: ignore[arg-type]
    assert OWNED not in result.report["notes"]


SCAN = """g (float[3, 4] x, float[4] s) => (float[4] y, float[3, 4] z) {{
    y, z = Scan <num_scan_inputs = 1, body = b (float[4] h, float[4] e) => (float[4] j, float[4] o) {{
        a = Add (h, p)  j = Mul (a, e)  o = Add (j, q) }}> (s, x) {more} }}"""


def scan(more: str = "") -> onnx.ModelProto:
    return weighted(SCAN.format(more=more), p=np.array([1, 2, 3, 4.5], np.float32), q=np.array([0.5, 2, 3, 4], np.float32))


def test_a_constant_that_others_read_stays() -> None:
    assert stored(with_own_constants(scan())) == [0, 2]
    model = scan("w = Neg (p)")
    assert stored(with_own_constants(model)) == [1, 1]
    model.graph.output.extend([onnx.ValueInfoProto(name="q")])
    assert with_own_constants(model) is model


def test_a_constant_that_a_caller_may_replace_stays() -> None:
    model = scan()
    model.graph.input.append(onnx.helper.make_tensor_value_info("p", TensorProto.FLOAT, [4]))
    assert stored(with_own_constants(model)) == [1, 1]
    model.ir_version = 3
    assert with_own_constants(model) is model


def test_a_constant_in_another_file_stays() -> None:
    model = scan()
    model.graph.initializer[0].data_location = TensorProto.EXTERNAL
    assert stored(with_own_constants(model)) == [1, 1]


def test_a_constant_reaches_the_innermost_loop() -> None:
    model = weighted(
        """g (float[4] x, int64 n) => (float[4] y) <bool on = {1}> {
            y = Loop (n, on, x) <body = b (int64 i, bool c, float[4] h) => (bool d, float[4] z) {
                d = Identity (c)  z = Loop (n, on, h) <body = e (int64 j, bool f, float[4] k) => (bool g1, float[4] o) {
                    g1 = Identity (f)  o = If (g1) <then_branch = t () => (float[4] r) { r = Add (k, p) },
                        else_branch = l () => (float[4] s) { s = Mul (k, p) }> }> }> }""",
        p=np.array([1, 2, 3, 4.5], np.float32),
    )
    moved = with_own_constants(model)
    assert stored(moved) == [0, 0, 1, 0, 0], "both branches read it"
    assert_same(model, moved, {"x": np.ones(4, np.float32), "n": np.array(2)})


def test_branches_read_constants_from_outside() -> None:
    """They run once, which takes as long either way."""
    model = weighted(
        """g (bool c, float[4] x) => (float[4] y) {
            y = If (c) <then_branch = t () => (float[4] r) { r = Add (x, p) }, else_branch = l () => (float[4] s) { s = Identity (x) }> }""",
        p=np.ones(4, np.float32),
    )
    assert with_own_constants(model) is model


def test_a_chain_names_the_step() -> None:
    explained = explain(cell("e = Neg (t)  z = Neg (e)"), Settings(), seconds=0)
    assert explained.reached and explained.status == "equal"
    assert explained.steps[-1].change.laws == (PLACES,)
