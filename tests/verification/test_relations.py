"""Sizes that depend on others are drawn as the model's own arithmetic wants them."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest

import eqsat
from eqsat.facts.dims import render
from eqsat.verification.planning import make_plan
from eqsat.verification.relations import related_plans, with_fixed_sizes
from tests.support.models import parse, weighted

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
ATTENTION = """g (float[B, {s}, 4] x, float[B, P, 4] past, float[B, 1, T] mask) => (float[B, {s}, 4] y) {{
    all = Concat<axis = 1>(past, x)  k = Transpose<perm = [0, 2, 1]>(all)  s = MatMul(x, k)
    m = {mask}  p = Softmax<axis = -1>(m)  y = MatMul(p, all) }}"""


def attention(mask: str = "Add(s, mask)", s: str = "S") -> onnx.ModelProto:
    return parse(ATTENTION.format(mask=mask, s=s), HEAD)


def relations(model: onnx.ModelProto) -> list[dict[str, str]]:
    return [{name: render(size) for name, size in plan.computed.items()} for plan in related_plans(model, make_plan(model))]


@pytest.mark.parametrize("s, total", [("S", "P + S"), ("2", "P + 2")])
def test_a_mask_is_as_long_as_past_and_present(s: str, total: str) -> None:
    assert relations(attention(s=s))[0] == {"T": total}
    verdict = eqsat.verify(attention(s=s), attention("Add(mask, s)", s))
    assert verdict.status == "equal" and f"ran where T is {total}" in verdict.notes
    assert any(size > 1 for size in verdict.sizes["P"]) and 0 in verdict.sizes["P"], "also without a past"
    present = verdict.sizes.get("S", [2] * verdict.runs)
    assert verdict.sizes["T"] == [past + now for past, now in zip(verdict.sizes["P"], present, strict=True)]


def test_a_difference_shows_at_such_sizes() -> None:
    verdict = eqsat.verify(attention(), attention("Sub(s, mask)"))
    assert verdict.status == "different" and verdict.output == "y"


def test_two_sizes_may_depend_on_others() -> None:
    text = """g (float[A, 4] a, float[B, 4] b, float[C, 4] c, float[D, 4] d) => (y, z) {
        e = Concat<axis = 0>(a, b, b)  y = Add(c, e)  f = Concat<axis = 0>(b, b, b)  z = Sub(f, d) }"""
    verdict = eqsat.verify(parse(text, HEAD), parse(text.replace("Add(c, e)", "Add(e, c)"), HEAD))
    assert verdict.status == "equal" and {"ran where C is A + B*2", "ran where D is B*3"} <= set(verdict.notes)


def test_computed_sizes_are_never_negative() -> None:
    model = parse("g (float[A] a, float[B] b, float[C] c) => (y, z) { s = Slice(a, i, j) z = Concat<axis = 0>(a, b, c) y = Identity(s) }", HEAD)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.array([k]), name) for k, name in ((3, "i"), (9, "j")))
    for plan in related_plans(model, make_plan(model)):
        assert all(size >= 0 for sizes in plan.size_choices() for size in sizes.values())


def test_a_model_that_runs_at_no_sizes_stays_unverified() -> None:
    text = """g (float[A, B] a, float[C, D] b) => (y) <int64[1] s = {7}> { r = Reshape(a, s)  t = Reshape(b, s)  q = Concat<axis = 0>(r, t)
        z = Shape(a)  n = ReduceProd<keepdims = 1>(z)  y = Reshape(q, n) }"""
    verdict = eqsat.verify(parse(text, HEAD), parse(text.replace("(r, t)", "(t, r)"), HEAD))
    assert verdict.status == "unverified" and verdict.reason.startswith("the original model does not run")


TRACED = """g (float[B, S, 8] x) => (float[B, 10, 4, 2] y) {{
    shape = Shape(x)  first = Constant<value = int64 {{0}}>()  b = Gather(shape, first)  axis = Constant<value = int64[1] {{0}}>()
    b1 = Unsqueeze(b, axis)  rest = Constant<value = int64[3] {{10, 4, 2}}>()  sizes = Concat<axis = 0>(b1, rest)
    twice = {twice}  y = Reshape(twice, sizes) }}"""


def traced(twice: str = "Add(x, x)") -> onnx.ModelProto:
    return parse(TRACED.format(twice=twice), HEAD)


def test_a_size_of_the_trace_is_the_one_that_a_reshape_wants() -> None:
    assert relations(traced())[0] == {"S": "10"}
    verdict = eqsat.verify(traced(), traced("Sum(x, x)"))
    assert verdict.status == "equal" and "ran where S is 10" in verdict.notes and len(set(verdict.sizes["B"])) > 1
    assert eqsat.verify(traced(), traced("Mul(x, x)")).status == "different"


def test_prices_assume_the_size_of_the_trace() -> None:
    assert with_fixed_sizes({}, traced()) == {"S": 10}
    assert with_fixed_sizes({"S": 7, "B": 2}, traced()) == {"S": 7, "B": 2}, "but not where the user knows better"
    result = eqsat.optimize(traced())
    assert result.report["cost"]["sizes"] == {"B": 1, "S": 10} and result.report["verify"]["status"] == "equal"


@pytest.mark.parametrize("target", [(-10, 4, 2), (0, 4, 2), (10**12, 4, 2), (7, 1, 1)])
def test_a_size_that_no_input_has_is_not_wanted(target: tuple[int, ...]) -> None:
    model = traced()
    rest = next(node for node in model.graph.node if "rest" in node.output)
    rest.attribute[0].t.CopyFrom(onnx.numpy_helper.from_array(np.array(target)))
    assert with_fixed_sizes({}, model) == {}
    assert eqsat.optimize(model).report["verify"]["status"] in ("unverified", "equal")


def test_a_state_as_wide_as_the_batch_beside_a_window_that_is_longer_than_usual_sizes() -> None:
    """A detector of voices takes some chunks of a signal, and a state of each. It runs at no usual sizes."""
    graph = """g (float[A, S] x, float[2, B, 4] state) => (float[A, 5] y) {{
        r = Unsqueeze (x, one)  c = Conv (r, w)  m = ReduceMean <keepdims = 0> (c, two)  h = ReduceMax <keepdims = 0> (state, zero)
        t = Concat <axis = 1> (m, h)  y = {last} }}"""
    weights = {"w": np.ones((1, 1, 100), np.float32), "zero": np.array([0]), "one": np.array([1]), "two": np.array([2])}
    original = weighted(graph.format(last="Neg (t)"), **weights)
    verdict = eqsat.verify(original, weighted(graph.format(last="Neg (t)").replace("Neg (t)", "Neg (u)").replace("t = C", "u = C"), **weights))
    assert verdict.status == "equal" and "ran where B is A" in verdict.notes and 224 in verdict.sizes["S"]
    assert eqsat.verify(original, weighted(graph.format(last="Abs (t)"), **weights)).status == "different"


@pytest.mark.parametrize(
    ("inputs", "sizes"),
    [
        ("float[unk__12, 5] x, float[unk__13, unk__14, 5] y", {"unk__12": 1, "unk__13": 1}),
        ("float[DynamicDimension.0, 3, DynamicDimension.1] x, float[p2o.DynamicDimension.4, 3] y", {"DynamicDimension.0": 1, "p2o.DynamicDimension.4": 1}),
        ("float[s0, s1] x, float[input_dynamic_axes_1, 3] y", {"s0": 1, "input_dynamic_axes_1": 1}),
        ("float[s0, 4] x, float[2, s0] y", {}),  # also a second axis
        ("float[s0] x", {}),  # the only axis
        ("float[time, 4] x", {}),  # a name that tells
    ],
)
def test_a_batch_without_a_name_of_its_own_is_one(inputs: str, sizes: dict[str, int]) -> None:
    """Models were priced as if they answered 64 requests at once."""
    names = {}
    for name in sorted({part for part in re.split(r"[^\w.]+", inputs) if "." in part}):
        names[f"d{len(names)}"] = name
        inputs = inputs.replace(name, f"d{len(names) - 1}")
    model = parse(f"g ({inputs}) => (z) {{ z = Neg (x) }}", HEAD)
    for info in model.graph.input:
        for size in info.type.tensor_type.shape.dim:
            if size.dim_param:
                size.dim_param = names.get(size.dim_param, size.dim_param)
    assert with_fixed_sizes({}, model) == sizes
    assert with_fixed_sizes(dict.fromkeys(sizes, 7), model) == dict.fromkeys(sizes, 7), "but not where the user knows better"


def test_a_batch_without_a_name_is_one() -> None:
    model = parse("g (float[A, 3, C] x, float[D] v) => (z) { z = Neg (x) }", HEAD)
    for info in model.graph.input:
        for size in info.type.tensor_type.shape.dim:
            if size.dim_param:
                size.dim_value = -1
    assert with_fixed_sizes({}, model) == {"?x.0": 1}
    assert eqsat.optimize(model).report["cost"]["sizes"] == {}, "which no reader knows"


REQUIRED = [
    ("float[A, B, C, D] x", {"w": (4, 17, 3, 3)}, "y = Conv(x, w)", {"B": 17}),
    ("float[A, B, C] x", {"w": (4, 7, 3)}, "z = Relu(x)  y = Conv<group = 2>(z, w)", {"B": 14}),
    ("float[A, B, C, D] x", {"w": (4, 17, 3, 3)}, "z = Transpose<perm = [0, 3, 1, 2]>(x)  y = Conv(z, w)", {"D": 17}),
    ("float[A, B, C] x", {"w": (17, 4, 3)}, "y = ConvTranspose(x, w)", {"B": 17}),
    ("float[A, B] x", {"w": (70, 4)}, "y = MatMul(x, w)", {"B": 70}),
    ("float[A, B] x, float[A, 3] t", {"w": (70, 4)}, "z = Concat<axis = 1>(x, t, t)  y = MatMul(z, w)", {"B": 64}),
    ("float[A, B] x", {"w": (4, 70)}, "y = Gemm<transB = 1>(x, w)", {"B": 70}),
    ("float[A, B] x", {"w": (70, 4)}, "y = Gemm<transA = 1>(x, w)", {"A": 70}),
    ("float[A, B, C] x", {"w": (70,)}, "y = BatchNormalization(x, w, w, w, w)", {"B": 70}),
    ("float[A, B, C] x", {"w": (70,)}, "y = LayerNormalization(x, w)", {"C": 70}),
    ("float[A, B, C] x", {"w": (1, 12, 70), "r": (1, 12, 3)}, "y = LSTM<hidden_size = 3>(x, w, r)", {"C": 70}),
    ("float[A, B, C] x", {"w": (70,)}, "y = Add(x, w)", {"C": 70}),
    ("float[A, B] x", {"w": (70, 4), "c": (1,)}, "t = Mul(x, c)  y = MatMul(t, w)", {"B": 70}),
]


@pytest.mark.parametrize("inputs, constants, body, sizes", REQUIRED)
def test_constants_decide_sizes_whatever_their_names(inputs: str, constants: dict[str, tuple[int, ...]], body: str, sizes: dict[str, int]) -> None:
    """Exporters may name all axes, that of the channels too; no draw at arbitrary sizes runs then."""
    weights = {name: np.full(shape, 0.5, np.float32) for name, shape in constants.items()}
    texts = (body, f"{body.replace('y =', 'u =')}  y = Identity(u)")
    before, after = (weighted(f"g ({inputs}) => (float y) {{ {text} }}", 17, **weights) for text in texts)
    assert relations(before)[0] == {name: str(size) for name, size in sizes.items()}
    assert with_fixed_sizes({}, before) == sizes
    verdict = eqsat.verify(before, after)
    assert verdict.status == "equal" and verdict.runs


def test_sizes_without_a_name_are_decided_as_well() -> None:
    model = weighted("g (float[?, ?] x) => (float y) { y = MatMul(x, w) }", 17, w=np.zeros((70, 4), np.float32))
    assert with_fixed_sizes({}, model) == {"?x.0": 1, "?x.1": 70}
