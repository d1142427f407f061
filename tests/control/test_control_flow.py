"""Known control flow, sequences and optionals become plain nodes, and compute the same bits."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest

import eqsat
from eqsat.control.flow import simplify
from tests.support.models import assert_same, operators, parse, random_feeds

EXP_OR_SIN = "then_branch = t () => (float[2] u) { u = Exp(x) }, else_branch = e () => (float[2] u) { u = Sin(x) }"
BODY = "b (int64 i, bool c, float[2] v{inputs}) => (bool d, float[2] w{outputs}) {{ {nodes} }}"


def loop(nodes: str, trips: int | None = 3, inputs: str = "", outputs: str = "", starts: str = "s", results: str = "y", condition: str = "go") -> str:
    count = "int64 m" if trips is None else f"int64 m = {{{trips}}}"
    given, stored = ("float[2] s, float[2] k, int64 m, bool free", "") if trips is None else ("float[2] s, float[2] k, bool free", f"{count}, ")
    body = BODY.format(nodes=nodes, inputs=inputs, outputs=outputs)
    declared = {"y": "float[2] y", "z": "float[2] z", "scan": "float[t, 2] scan"}
    shown = ", ".join(declared[name] for name in results.split(", ") if name in declared)
    return f"g ({given}) => ({shown}) <{stored}bool go = {{1}}> {{ {results} = Loop(m, {condition}, {starts}) <body = {body}> }}"


def feeds(model: onnx.ModelProto, seed: int) -> dict[str, np.ndarray]:
    return {name: np.asarray(array) for name, array in random_feeds(model, {"N": 3}, seed).items()}


CASES = {
    "then": (
        f"g (float[2] x) => (float[2] y) <bool c = {{1}}> {{ a = If(c) <{EXP_OR_SIN}> y = Abs(a) }}",
        {"Exp": 1, "Abs": 1},
    ),
    "else, a captured value as the result": (
        """g (float[2] x) => (float[2] y) <bool c = {0}> { a = Neg(x)
            y = If(c) <then_branch = t () => (float[2] u) { u = Exp(x) }, else_branch = e () => (float[2] v) { v = Identity(a) }> }""",
        {"Neg": 1, "Identity": 1},
    ),
    "branches in branches": (
        """g (float[2] x, bool free) => (float[2] y) <bool c = {1}, bool n = {0}> { y = If(c) <
            then_branch = t () => (float[2] u) { u = If(free) <
                then_branch = p () => (float[2] w) { w = If(n) <
                    then_branch = p1 () => (float[2] w1) { w1 = Exp(x) }, else_branch = p2 () => (float[2] w1) { w1 = Sin(x) }> },
                else_branch = q () => (float[2] w) { a = Neg(x) w = Cos(a) }> },
            else_branch = e () => (float[2] v) { v = Tan(x) }> }""",
        {"If": 1, "Sin": 1, "Neg": 1, "Cos": 1},
    ),
    "equal names in branches and around": (
        """g (float[2] x) => (float[2] y) <bool c = {1}> {
            p = If(c) <then_branch = t () => (float[2] u) <float[2] k = {1, 2}> { a = Exp(x) u = Add(a, k) }, else_branch = e () => (float[2] u) { u = Sin(x) }>
            q = If(c) <then_branch = t () => (float[2] u) <float[2] k = {3, 4}> { a = Cos(x) u = Mul(a, k) }, else_branch = e () => (float[2] u) { u = Sin(x) }>
            y = Add(p, q) }""",
        {"Exp": 1, "Add": 2, "Cos": 1, "Mul": 1},
    ),
    "outputs of If that nobody reads": (
        """g (float[2] x, bool free) => (float[2] y) { y, z = If(free) <
            then_branch = t () => (float[2] u, float[2] v) { u = Exp(x) v = Abs(x) },
            else_branch = e () => (float[2] u, float[2] v) { u = Sin(x) v = Cos(x) }> }""",
        {"If": 1, "Exp": 1, "Abs": 1, "Sin": 1, "Cos": 1},
    ),
    "a Loop that runs once": (
        loop("d = Identity(c) w = Mul(v, k) e = Exp(w)", 1, outputs=", float[2] e", results="y, scan"),
        {"Mul": 1, "Exp": 1, "Unsqueeze": 1, "Identity": 1},
    ),
    "a Loop that stops at once": (
        loop("d = Constant<value = bool {0}>() w = Mul(v, k)", 5),
        {"Mul": 1},
    ),
    "what does not change is computed before": (
        loop("d = Identity(c) a = Exp(k) b = Add(a, k) w = Mul(v, b)"),
        {"Loop": 1, "Identity": 1, "Exp": 1, "Add": 1, "Mul": 1},
    ),
    "a carried value that nobody reads": (
        loop("d = Identity(c) w = Mul(v, k) q = Add(p, w)", inputs=", float[2] p", outputs=", float[2] q", starts="s, k", results="y, unread"),
        {"Loop": 1, "Identity": 1, "Mul": 1},
    ),
    "a carried value that another needs": (
        loop("d = Identity(c) w = Mul(v, p) q = Add(p, k)", inputs=", float[2] p", outputs=", float[2] q", starts="s, k", results="y, unread"),
        {"Loop": 1, "Identity": 1, "Mul": 1, "Add": 1},
    ),
    "a carried value that never changes": (
        loop("d = Identity(c) w = Mul(v, p) q = Identity(p)", inputs=", float[2] p", outputs=", float[2] q", starts="s, k", results="y, z"),
        {"Loop": 1, "Identity": 3, "Mul": 1},
    ),
    "a scanned output that nobody reads": (
        loop("d = Identity(c) w = Mul(v, k) e = Exp(w)", outputs=", float[2] e", results="y, unread"),
        {"Loop": 1, "Identity": 1, "Mul": 1},
    ),
    "Scan": (
        """g (float[2] s, float[2] r, float[N, 2] x, float[2] k) => (float[2] y, float[N, 2] z) {
            y, o, z, u = Scan<num_scan_inputs = 1, scan_output_axes = [0, 1],
                body = b (float[2] v, float[2] p, float[2] e) => (float[2] w, float[2] q, float[2] f, float[2] h) {
                a = Exp(k) w = Add(v, e) q = Mul(p, w) f = Mul(w, a) h = Sin(q) }>(s, r, x) }""",
        {"Scan": 1, "Exp": 1, "Add": 1, "Mul": 1},
    ),
    "elements of sequences": (
        """g (float[2] x, float[2] z) => (float[2] y, int64 n, float[4] c) <int64 i = {1}, int64 last = {-1}> {
            s = SequenceConstruct(x, z) t = SequenceInsert(s, x, i) u = SequenceErase(t) n = SequenceLength(t) a = SequenceAt(t, last) b = SequenceAt(u, i)
            y = Add(a, b) c = ConcatFromSequence<axis = 0>(u) }""",
        {"SequenceConstruct": 1, "SequenceInsert": 1, "SequenceErase": 1, "Identity": 2, "Add": 1, "Concat": 1},
    ),
    "parts of sequences": (
        """g (float[5, 2] x) => (float[2, 2] a, float[1, 2] b, float[5] c, float[5, 2] d)
        <int64[3] n = {2, 2, 1}, int64 two = {2}, int64 i = {1}, int64 last = {2}> {
            s = SplitToSequence(x, n) a = SequenceAt(s, i) t = SplitToSequence(x, two) b = SequenceAt(t, last)
            u = SplitToSequence<axis = 1, keepdims = 0>(x) c = SequenceAt(u, i) d = ConcatFromSequence<axis = 1, new_axis = 1>(u) }""",
        {"SplitToSequence": 3, "Slice": 2, "Gather": 1, "Identity": 1},
    ),
    "several parts become a Split": (
        """g (float[5, 2] x) => (float[2, 2] a, float[1, 2] b, int64 n, float[5, 2] c)
        <int64[3] k = {2, 2, 1}, int64 zero = {0}, int64 last = {-1}> {
            s = SplitToSequence(x, k) a = SequenceAt(s, zero) b = SequenceAt(s, last) n = SequenceLength(s) c = ConcatFromSequence<axis = 0>(s) }""",
        {"Split": 1, "SequenceConstruct": 1, "Identity": 2, "Concat": 1},
    ),
    "parts joined along another axis": (
        """g (float[4, 2] x) => (float[2, 4] y) <int64[2] k = {2, 2}> { s = SplitToSequence(x, k) y = ConcatFromSequence<axis = -1>(s) }""",
        {"Split": 1, "SequenceConstruct": 1, "Concat": 1},
    ),
    "elements joined along a new axis": (
        """g (float[2] x, float[2] z) => (float[2, 3] y) { s = SequenceConstruct(x, z, x) y = ConcatFromSequence<axis = -1, new_axis = 1>(s) }""",
        {"SequenceConstruct": 1, "Unsqueeze": 3, "Concat": 1},
    ),
    "a part at a place that nobody knows": (
        """g (float[5, 2] x, int64 i) => (float[1, 2] a, float[5] b) {
            two = Constant<value = int64 {2}>() j = Mod(i, two)
            s = SplitToSequence(x) a = SequenceAt(s, j) t = SplitToSequence<axis = 1, keepdims = 0>(x) b = SequenceAt(t, j) }""",
        {"SplitToSequence": 2, "Mod": 1, "Reshape": 2, "Gather": 2},
    ),
    "how many parts there are": (
        """g (float[N, 4] x) => (int64 n, int64 m) <int64[2] k = {1, 3}> {
            s = SplitToSequence(x) n = SequenceLength(s) t = SplitToSequence<axis = -1>(x, k) m = SequenceLength(t) }""",
        {"SplitToSequence": 2, "Shape": 1, "Gather": 1},
    ),
    "a Loop that never runs": (
        loop("d = Identity(c) w = Mul(v, k)", 0),
        {"Identity": 1},
    ),
    "optionals": (
        """g (float[2] x) => (float[2] y, bool h) { o = Optional(x) y = OptionalGetElement(o) h = OptionalHasElement(o) }""",
        {"Optional": 1, "Identity": 1},
    ),
}

LEFT = {
    "parts of which some are passed on": """g (float[4, 2] x) => (float[2, 2] y, seq(float[2, 2]) s) <int64[2] k = {2, 2}> {
        s = SplitToSequence(x, k) y = ConcatFromSequence<axis = 1>(s) }""",
    "parts that another sequence has, too": """g (float[4, 2] x) => (float[2, 4] y, int64 n, seq(float[N, 2]) t) <int64[2] k = {2, 2}> {
        s = SplitToSequence(x, k) t = SequenceInsert(s, x) y = ConcatFromSequence<axis = 1>(s) n = SequenceLength(t) }""",
    "parts that a body reads": """g (float[4, 2] x, bool c) => (float[2, 2] y) <int64[2] k = {2, 2}, int64 i = {0}> { s = SplitToSequence(x, k) y = If(c) <
        then_branch = p () => (float[2, 2] u) { t = SequenceInsert(s, x) u = ConcatFromSequence<axis = 1>(t) },
        else_branch = q () => (float[2, 2] u) { u = Neg(x) }> }""",
    "a place beyond the last part": """g (float[4, 2] x) => (float[2, 2] y) <int64[2] k = {2, 2}, int64 i = {2}> {
        s = SplitToSequence(x, k) y = SequenceAt(s, i) }""",
    "parts of sizes that nobody knows": """g (float[4, 2] x, int64[2] k, int64 i) => (float[N, 2] y, int64 n) {
        s = SplitToSequence(x, k) y = SequenceAt(s, i) t = SplitToSequence(x, i) n = SequenceLength(t) }""",
    "a Loop that never runs, of which a stack is left": loop("d = Identity(c) w = Mul(v, k) e = Exp(w)", 0, outputs=", float[2] e", results="y, scan"),
    "an axis that is missing": "g (float[2] x) => (float[4] y) { s = SequenceConstruct(x, x) y = ConcatFromSequence(s) }",
    "a condition that is not known": f"g (float[2] x, bool c) => (float[2] y) {{ y = If(c) <{EXP_OR_SIN}> }}",
    "a condition that is a default": f"g (float[2] x, bool c) => (float[2] y) <bool c = {{1}}> {{ y = If(c) <{EXP_OR_SIN}> }}",
    "a Loop that may not run computes nothing that may fail": loop("d = Identity(c) a = Add(k, k) w = Mul(v, a)", None),
    "what is drawn is drawn in every run": loop("d = Identity(c) a = RandomNormalLike(k) b = IsNaN(a) f = Cast<to = 1>(b) w = Add(v, f)"),
    "a Loop that may stop at once": loop("d = Identity(c) w = Mul(v, k)", 1, condition="free"),
}


@pytest.mark.parametrize("opset", (13, 17, 21))
@pytest.mark.parametrize(("text", "left"), CASES.values(), ids=CASES)
def test_what_is_known_is_gone(text: str, left: dict[str, int], opset: int) -> None:
    if opset < 16 and "Optional" in text:
        pytest.skip("Optional came later")
    model = parse(text, f'<ir_version: 8, opset_import: ["" : {opset}]>')
    before = model.SerializeToString()
    result = simplify(model)
    assert model.SerializeToString() == before
    assert simplify(result) is result
    onnx.checker.check_model(result, full_check=True)
    assert operators(result) == Counter(left)
    for seed in range(2):
        assert_same(model, result, feeds(model, seed))


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_what_is_not_known_stays(text: str) -> None:
    model = parse(text)
    assert simplify(model) is model


def test_what_can_not_fail_moves_out_of_a_loop_that_may_not_run() -> None:
    model = parse(loop("d = Identity(c) a = Exp(k) two = Constant<value_float = 2.0>() e = Mul(a, two) w = Mul(v, e)", None))
    result = simplify(model)
    assert [node.op_type for node in result.graph.node if node.op_type != "Constant"] == ["Exp", "Mul", "Loop"]
    for trips in range(3):
        assert_same(model, result, feeds(model, trips) | {"m": np.array(trips)})


def test_bodies_in_bodies_and_functions() -> None:
    model = parse(
        """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
        g (float[2] s, float[2] k) => (float[2] y) <int64 m = {3}, bool go = {1}> {
          r = Loop(m, go, s) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w) {
            d = Identity(c)
            w = Loop(m, go, v) <body = b2 (int64 i2, bool c2, float[2] v2) => (bool d2, float[2] w2) { d2 = Identity(c2) a = Exp(k) w2 = Mul(v2, a) }> }>
          y = local.f(r) }
        <domain: "local", opset_import: ["" : 17]> f (x) => (y) {
            c = Constant<value = bool {1}>()
            y = If(c) <then_branch = t () => (float[2] u) { u = Neg(x) }, else_branch = e () => (float[2] u) { u = Sin(x) }> }"""
    )
    result = simplify(model)
    assert [node.op_type for node in result.graph.node] == ["Exp", "Loop", "f"]
    assert operators(result) == Counter({"Exp": 1, "Loop": 2, "Identity": 2, "Mul": 1, "f": 1, "Neg": 1})
    assert_same(model, result, feeds(model, 0))


def test_a_model_without_control_flow_is_not_copied() -> None:
    model = parse("g (float[2] x) => (float[2] y) { y = Exp(x) }")
    assert simplify(model) is model


@pytest.mark.parametrize(
    "text",
    [
        f"g (float[2] x, bool c) => (float[2] y) {{ y, z = If(c) <{EXP_OR_SIN}> }}",
        "g (float[2] x) => (float[2] y) <bool c = {1}> { y, z = If(c) <" + EXP_OR_SIN + "> }",
        loop("d = Identity(c) w = Mul(v, k)", 1, results="y, scan"),
        loop("d = Identity(c) w = Mul(v, k)", 1, inputs=", float[2] more"),
        loop("d = Identity(c) w = Mul(v, k)", 1, starts="s, k"),
    ],
)
def test_bodies_that_do_not_fit_their_node_stay(text: str) -> None:
    model = parse(text)
    assert simplify(model) is model


def test_what_a_body_hid_stays_hidden_where_no_runtime_takes_it_in_the_open() -> None:
    """Range needs scalars, and nobody knows whether the output of an If is one."""
    model = parse("""g (float[2] x) => (float[2] y) <bool c = {1}, int32[1] n = {2}, int32[1] m = {3}, int32 zero = {0}, int32 one = {1}> {
        r = If(c) <then_branch = t () => (u) { u = Identity(n) }, else_branch = e () => (v) { v = Identity(m) }>
        i = Range(zero, r, one)  f = Cast<to = 1>(i)  a = Add(x, f)  b = Identity(a)  y = Exp(b) }""")
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    result = eqsat.optimize(model, verify=False).model
    onnx.shape_inference.infer_shapes(result, check_type=True, strict_mode=True, data_prop=True)
    assert operators(result)["If"] == 1
    assert_same(model, result, feeds(model, 0))


@pytest.mark.parametrize("state", ["v", "w"])
def test_a_loop_of_an_old_opset_keeps_what_it_has_to_carry(state: str) -> None:
    """Up to opset 10 a Loop must carry a value, even an unread one.

    Dropping it made an illegal node.
    """
    model = parse(
        f"""g (float[2] x, int64 n) => (float[S, 2] y) {{
            z, y = Loop (n, "", x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] {state}, float[2] s) {{
                d = Identity (c)
                w = Relu (x)
                s = Neg (x)
            }}>
        }}""",
        header='<ir_version: 5, opset_import: ["": 10]>',
    )
    result = eqsat.optimize(model, verify=False).model
    onnx.checker.check_model(result)
    assert_same(model, result, {"x": np.array([1, -2], np.float32), "n": np.array(3)})
