"""Random inputs: right types, right ranges, the same for the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import numpy_helper, parser

from eqsat.verification.planning import make_plan
from eqsat.verification.sample_plan import CALM, NORMAL, ONES, POSITIVE, ZEROS, Draw, Plan
from eqsat.verification.samples import draw


def plan_of(graph: str, header: str = 'ir_version: 8, opset_import: ["": 18]', **weights: Any) -> Plan:
    model = parser.parse_model(f"<{header}> {graph}")
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items())
    return make_plan(model)


def first(plan: Plan, style: str = NORMAL, seed: int = 0) -> dict[str, Any]:
    return draw(plan, Draw(next(plan.size_choices()), style, seed))


def test_equal_names_are_equal_sizes_and_different_ones_differ() -> None:
    plan = plan_of("g (float[N, M, 4] x, int8[M, N] y, float[?] z) => (float[N] o) { o = Identity(z) }")
    for sizes in plan.size_choices():
        feeds = draw(plan, Draw(sizes, NORMAL, 0))
        n, m, four = feeds["x"].shape
        assert feeds["y"].shape == (m, n) and four == 4
    feeds = first(plan)
    assert len({*feeds["x"].shape[:2], *feeds["z"].shape}) == 3
    assert feeds["y"].dtype == np.int8 and feeds["x"].dtype == np.float32


def test_a_batch_stays_small_where_the_rest_is_large() -> None:
    plan = plan_of("g (float[N, 3, H, W] x) => (y) { y = Identity(x) }")
    assert any(sizes["N"] == 2 and sizes["H"] >= 64 for sizes in plan.size_choices())


@given(st.integers(0, 1000), st.sampled_from([NORMAL, CALM, ONES, ZEROS]))
def test_indices_stay_within_the_table(seed: int, style: str) -> None:
    plan = TABLE
    feeds = first(plan, style, seed)
    assert feeds["i"].min() >= -10 and feeds["i"].max() < 10


TABLE = plan_of(
    "g (int32[N, S] i) => (y) { c = Cast<to = 7>(i) u = Unsqueeze(c, a) y = Gather(e, u) }", a=np.array([0], np.int64), e=np.zeros((10, 4), np.float32)
)


def test_an_index_into_an_input_is_bounded_by_its_symbol() -> None:
    plan = plan_of("g (float[4, N] x, int64[K] i) => (y) { y = Gather<axis = 1>(x, i) }")
    for sizes in plan.size_choices():
        assert draw(plan, Draw(sizes, NORMAL, 5))["i"].max() < sizes["N"]


def test_the_tighter_of_two_tables_counts() -> None:
    plan = plan_of("g (int64[64] i) => (y, z) { y = Gather(a, i) z = Gather(b, i) }", a=np.zeros((100, 1), np.float32), b=np.zeros((3, 1), np.float32))
    assert np.abs(first(plan)["i"]).max() <= 3 and first(plan)["i"].max() < 3


def test_an_index_that_a_body_uses_is_seen() -> None:
    plan = plan_of(
        "g (bool c, int64[50] i) => (y) { y = If(c)"
        "<then_branch = t () => (float[50] a) { a = Gather(e, i) }, else_branch = f () => (float[50] b) { b = Gather(e, i) }> }",
        e=np.zeros(3, np.float32),
    )
    assert first(plan)["i"].max() < 3


def test_parameters_are_sane() -> None:
    plan = plan_of(
        "g (float[2, 3] x, int64[2] s, int64[1] a, int64[1] k, int64[4] d) => (y, z, v, w)"
        "{ y = Reshape(x, s) z = ReduceSum(x, a) v, i = TopK(x, k) w = Div(d, d) }"
    )
    feeds = first(plan)
    assert feeds["s"].tolist() == [1, -1] and feeds["a"].tolist() == [0] and feeds["k"].tolist() == [1] and (feeds["d"] > 0).all()


def test_every_kind_of_input_can_be_drawn() -> None:
    plan = plan_of("g (seq(float[N]) s, optional(float[N]) o, map(int64, float) m, string[N] t, bool b) => (y) { y = Identity(s) }")
    feeds = first(plan)
    assert [part.dtype for part in feeds["s"]] == [np.float32] * 3 and feeds["o"].dtype == np.float32
    assert set(feeds["m"]) == {0, 1, 2} and isinstance(feeds["m"][0], float)
    assert feeds["t"].dtype == object and feeds["b"].dtype == np.bool_
    assert draw(plan, Draw(next(plan.size_choices()), ZEROS, 0))["o"] is None


@pytest.mark.parametrize("code", [code for code in onnx.TensorProto.DataType.values() if code != 0])
def test_every_element_type_can_be_drawn(code: int) -> None:
    model = parser.parse_model('<ir_version: 8, opset_import: ["": 18]> g (float[5] x) => (y) { y = Identity(x) }')
    model.graph.input[0].type.tensor_type.elem_type = code
    for style in (NORMAL, CALM, POSITIVE, ONES, ZEROS):
        x = draw(make_plan(model), Draw({}, style, 1))["x"]
        assert x.shape == (5,) and (code == onnx.TensorProto.STRING or x.dtype == onnx.helper.tensor_dtype_to_np_dtype(code))


def test_the_same_seed_gives_the_same_bits_whatever_else_is_drawn() -> None:
    one = plan_of("g (float[3] x) => (y) { y = Identity(x) }")
    two = plan_of("g (float[7] w, float[3] x) => (y) { y = Identity(x) }")
    assert np.array_equal(first(one)["x"], first(two)["x"]) and not np.array_equal(first(one)["x"], first(one, seed=1)["x"])


def test_a_type_that_can_not_be_drawn_is_named() -> None:
    model = parser.parse_model('<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (y) { y = Identity(x) }')
    model.graph.input[0].type.sparse_tensor_type.elem_type = 1
    with pytest.raises(NotImplementedError, match="'x'"):
        make_plan(model)


def test_a_model_of_any_length_is_planned_without_recursion() -> None:
    model = parser.parse_model('<ir_version: 8, opset_import: ["": 18]> g (int64[3] i) => (y) { y = Gather(e, t20000) }')
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(3, np.float32), "e"))
    nodes = [onnx.helper.make_node("Identity", [f"t{n}" if n else "i"], [f"t{n + 1}"]) for n in range(20000)]
    nodes.append(model.graph.node[0])
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    assert first(make_plan(model))["i"].max() < 3


def test_a_single_value_takes_turns_between_the_ways_that_a_comparison_opens() -> None:
    """Of 64-bit integers drawn at random none is 16,000: one branch of a model ran in no draw."""
    plan = plan_of("g (int64 r) => (y) { c = Cast<to = 6>(r) y = Equal(rate, c) }", rate=np.array(16000, np.int32))
    assert {first(plan, seed=seed)["r"].item() == 16000 for seed in (0, 1)} == {True, False}
    order = plan_of("g (int32 n, int32 m) => (y, z) { y = Less(n, k) z = GreaterOrEqual(k, m) }", k=np.array(100, np.int32))
    drawn = [first(order, seed=seed) for seed in range(8)]
    assert {99, 100, 101} < {feeds["n"].item() for feeds in drawn} and len({(feeds["n"].item(), feeds["m"].item()) for feeds in drawn}) > 4
    plain = first(plan, CALM)["r"]
    assert plain in (0, 1), "other styles take no turns"


def test_truth_values_take_turns() -> None:
    plan = plan_of("g (bool a, bool[1] b, bool[64] c) => (y) { y = And(a, b) }")
    drawn = [first(plan, seed=seed) for seed in range(4)]
    assert {(feeds["a"].item(), feeds["b"].item()) for feeds in drawn} == {(True, True), (True, False), (False, True), (False, False)}
    assert 0 < drawn[0]["c"].sum() < 64


def test_elements_that_a_comparison_tells_apart_are_among_others() -> None:
    plan = plan_of("g (int64[99] i, float[99] x) => (y, m, n) { y = Gather(e, i) m = Equal(i, pad) n = Equal(x, zero) }",
        e=np.zeros((40, 2), np.float32), pad=np.array(33), zero=np.array(0, np.float32))  # fmt: skip
    feeds = first(plan)
    assert 20 < (feeds["i"] == 33).sum() < 80 and -40 <= feeds["i"].min() and feeds["i"].max() < 40
    assert 20 < (feeds["x"] == 0).sum() < 80
    far = plan_of("g (int64[99] i) => (y, m) { y = Gather(e, i) m = Equal(i, pad) }", e=np.zeros((5, 2), np.float32), pad=np.array(33))
    assert np.abs(first(far)["i"]).max() <= 5, "an index stays within its table"


@pytest.mark.parametrize("compared", ["y = Equal(x, x)", "y = Less(x, c)", "y = Equal(x, w)", "y = Equal(x, s)"])
def test_no_other_comparison_tells_values(compared: str) -> None:
    """They are of two values that are not constant, of floats by their order, with many constants, or of texts."""
    kind = "string" if " s" in compared else "float"
    plan = plan_of(f"g ({kind}[N] x) => (y) {{ {compared} }}", c=np.float32(3), w=np.arange(9, dtype=np.float32), s=np.array(["a"], dtype=object))
    want = plan.inputs["x"].want
    assert want is None or not want.telling


def test_sizes_for_windows_over_signals_come_last_and_are_bounded() -> None:
    signal = plan_of("g (float[N, S] x) => (y) { y = Identity(x) }")
    assert list(signal.long_choices()) == [{"N": 2, "S": 1024}, {"N": 2, "S": 16384}, {"N": 1, "S": 1024}], "some take one signal alone"
    image = plan_of("g (float[N, 3, H, W] x) => (y) { y = Identity(x) }")
    assert not list(image.long_choices()), "images that large are costly"
    assert [sizes["N"] for sizes in plan_of("g (float[N] x) => (y) { y = Identity(x) }").long_choices()] == [1024, 16384]
    assert not list(plan_of("g (float[4] x) => (y) { y = Identity(x) }").long_choices())


@pytest.mark.parametrize("text", ["?", "None", ""])
def test_a_text_that_names_no_size_makes_no_sizes_equal(text: str) -> None:
    """PaddlePaddle writes "?" for each size that it does not know. Images were drawn as squares alone."""
    model = parser.parse_model('<ir_version: 8, opset_import: ["": 18]> g (float[1, 3, H, W] x) => (y) { y = Identity(x) }')
    for size in model.graph.input[0].type.tensor_type.shape.dim[2:]:
        size.dim_param = text
    assert make_plan(model).symbols == ("?x.2", "?x.3")
