"""Steering: values that decide a shape, an index or a bound are no weights.

Verification never nudges them, and excuses integers only where a float is near a tie.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from eqsat.verification.steering import Decided, Steering, steered, steering
from eqsat.verification.verify import DIFFERENT, EQUAL, LoadedModel, Verdict, verify
from tests.support.models import weighted

SCALES = np.array([1, 1, 0.7, 1], np.float32)


def check(a: onnx.ModelProto, b: onnx.ModelProto, **options: Any) -> Verdict:
    return verify(LoadedModel(a), LoadedModel(b), **options)


@pytest.mark.parametrize("operator", ["Resize (x, , k)", 'Resize <coordinate_transformation_mode = "asymmetric"> (x, , k)'])
def test_a_size_that_scales_decide_is_no_near_tie(operator: str) -> None:
    """ONNX Runtime resizes 10 rows by 0.7 to 7. Nudged scales gave 6 and excused it."""
    a = weighted(f"g (float[1, 1, 10, 4] x) => (int64[4] y) {{ r = {operator} y = Shape (r) }}", k=SCALES)
    b = weighted("g (float[1, 1, 10, 4] x) => (int64[4] y) { y = Identity (s) }", s=np.array([1, 1, 6, 4]))
    assert check(a, b).status == DIFFERENT
    assert check(a, weighted("g (float[1, 1, 10, 4] x) => (int64[4] y) { y = Identity (s) }", s=np.array([1, 1, 7, 4]))).status == EQUAL


@pytest.mark.parametrize(
    "scales",
    [
        "k = Concat <axis = 0> (one, part, one_too)",
        "h = Mul (half, half_too) k = Concat <axis = 0> (one, h, one_too)",
        "f = Cast <to = 11> (part) h = Cast <to = 1> (f) k = Concat <axis = 0> (one, h, one_too)",
        "h = Where (true, part, one_too) k = Concat <axis = 0> (one, h, one_too)",
    ],
)
def test_what_flows_into_scales_decides_them(scales: str) -> None:
    parts: dict[str, Any] = {"one": np.ones(2, np.float32), "one_too": np.ones(1, np.float32), "true": np.array([True])}
    root = np.array([0.7], np.float32)
    parts |= {"part": root, "half": root, "half_too": np.array([1.0], np.float32)}
    a = weighted(f"g (float[1, 1, 10, 4] x) => (int64[4] y) {{ {scales} r = Resize (x, , k) y = Shape (r) }}", **parts)
    b = weighted("g (float[1, 1, 10, 4] x) => (int64[4] y) { y = Identity (s) }", s=np.array([1, 1, 6, 4]))
    assert check(a, b).status == DIFFERENT


def test_scales_inside_a_body_or_a_function_decide_a_size() -> None:
    wrong = weighted("g (float[1, 1, 10, 4] x, bool c) => (int64[4] y) { y = Identity (s) }", s=np.array([1, 1, 6, 4]))
    body = "t () => (int64[4] a) { r = Resize (x, , k) a = Shape (r) }, else_branch = e () => (int64[4] b) { q = Resize (x, , k) b = Shape (q) }"
    inside = weighted(f"g (float[1, 1, 10, 4] x, bool c) => (int64[4] y) {{ y = If (c) <then_branch = {body}> }}", k=SCALES)
    assert check(inside, wrong).status == DIFFERENT
    function = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18, "f": 1]> g (float[1, 1, 10, 4] x, bool c) => (int64[4] y) { r = f.scaled (x, k) y = Shape (r) }'
        '<domain: "f", opset_import: ["": 18]> scaled (a, s) => (b) { b = Resize (a, , s) }'
    )
    function.graph.initializer.append(numpy_helper.from_array(SCALES, "k"))
    assert check(function, wrong).status == DIFFERENT


def test_an_input_that_holds_scales_is_not_nudged() -> None:
    a = weighted("g (float[1, 1, 10, 4] x, float[4] k) => (int64[4] y) { r = Resize (x, , k) y = Shape (r) }")
    b = weighted("g (float[1, 1, 10, 4] x, float[4] k) => (int64[4] y) { y = Identity (s) }", s=np.array([1, 1, 6, 4]))
    inputs = {"x": np.ones((1, 1, 10, 4), np.float32), "k": SCALES}
    assert check(a, b, inputs=inputs).status == DIFFERENT


@pytest.mark.parametrize("given", [False, True])
def test_a_number_made_of_a_size_is_no_near_tie(given: bool) -> None:
    """A float that rounds to the output would excuse it, if nudged scales moved that float."""
    head = f"g (float[1, 1, 10, 4] x{', float[4] k' if given else ''}) => (int64[4] y)"
    end = "f = Cast <to = 1> (s) h = Mul (f, one) y = Cast <to = 7> (h)"
    stored: dict[str, Any] = {"one": np.float32(1)} | ({} if given else {"k": SCALES})
    inputs = {"x": np.ones((1, 1, 10, 4), np.float32)} | ({"k": SCALES} if given else {})
    a = weighted(f"{head} {{ r = Resize (x, , k) s = Shape (r) {end} }}", **stored)
    b = weighted(f"{head} {{ {end} }}", one=np.float32(1), s=np.array([1, 1, 6, 4]))
    assert check(a, b, inputs=inputs).status == DIFFERENT


def test_the_count_of_a_range_is_no_near_tie() -> None:
    a = weighted("g (float[3] x) => (int64[1] y) { r = Range (zero, end, step) y = Shape (r) }", zero=np.float32(0), end=np.float32(0.7), step=np.float32(0.1))
    right, wrong = (weighted("g (float[3] x) => (int64[1] y) { y = Identity (s) }", s=np.array([size])) for size in (7, 8))
    assert {check(a, right).status, check(a, wrong).status} == {EQUAL, DIFFERENT}


def test_an_index_that_floats_decide_is_not_between_two_others() -> None:
    """If near ties move an ArgMax from 0 to 9, that does not explain a 5.

    Nor do its neighbors explain an entry of a table.
    """
    scores = np.zeros(10, np.float32)
    scores[[0, 9]] = 1
    a = weighted("g (float[10] x) => (int64[1] y) { n = Mul (x, k) y = ArgMax (n) }", k=np.float32(0.3))
    other = weighted("g (float[10] x) => (int64[1] y) { n = Mul (x, k) m = Mul (n, w) y = ArgMax (m) }", k=np.float32(0.3), w=np.eye(10, dtype=np.float32)[9])
    assert check(a, other, inputs={"x": scores}).status == EQUAL
    wrong = weighted("g (float[10] x) => (int64[1] y) { n = Mul (x, k) m = Add (n, w) y = ArgMax (m) }", k=np.float32(0.3), w=np.eye(10, dtype=np.float32)[5])
    assert check(a, wrong, inputs={"x": scores}).status == DIFFERENT


def test_an_entry_that_a_near_tie_chooses_is_one_of_the_two() -> None:
    table = np.array([5, 100, 9, 40])
    head = "g (float[1] x) => (int64[1] y) { t = Div (x, k) f = Floor (t) i = Cast <to = 7> (f) y = Gather (e, i) }"
    a = weighted(head, k=np.float32(10), e=table)
    inputs = {"x": np.array([20], np.float32)}
    near = weighted(head.replace("Div", "Mul"), k=np.nextafter(np.float32(0.1), np.float32(0)), e=table)
    assert check(a, near, inputs=inputs).status == EQUAL
    wrong = weighted("g (float[1] x) => (int64[1] y) { y = Identity (s) }", s=np.array([50]))
    assert check(a, wrong, inputs=inputs).status == DIFFERENT


def test_integers_that_no_float_decides_are_never_excused() -> None:
    a = weighted("g (float[N] x, int64[N] i) => (int64[N] y) { y = Mul (i, i) }")
    b = weighted("g (float[N] x, int64[N] i) => (int64[N] y) { t = Mul (i, i) o = Sub (t, t) z = Abs (o) y = Sub (t, k) }", k=np.array([1]))
    assert check(a, b).status == DIFFERENT


def test_a_shape_that_differs_is_different() -> None:
    head = "g (float[10] x) => (int64[1, M] y)"
    a = weighted(f"{head} {{ t = Mul (x, k) f = Floor (t) y = NonZero (f) }}", k=np.float32(0.1))
    b = weighted(f"{head} {{ t = Div (x, k) f = Floor (t) y = NonZero (f) }}", k=np.nextafter(np.float32(10), np.float32(20)))
    verdict = check(a, b, inputs={"x": np.full(10, 10, np.float32)})
    assert verdict.status == DIFFERENT and "int64[1,0]" in verdict.reason


def found(graph: str, opset: int = 18, **weights: Any) -> Steering:
    return steering(weighted(graph, opset, **weights))


@pytest.mark.parametrize(
    ("nodes", "steers"),
    [
        ("y = Resize (x, , k)", {"k"}),
        ("y = Resize (x, k, s)", {"k", "s"}),
        ("y = Mul (x, k)", set()),
        ("m = MatMul (x, k) i = Cast <to = 7> (m) y = Gather (x, i)", set()),
        ("t = Mul (x, k) f = Floor (t) i = Cast <to = 7> (f) y = Gather (x, i)", {"k"}),
        ("a = Less (x, k) i = Cast <to = 7> (a) y = Gather (x, i)", {"k"}),
        ("m = Shape (k) y = Reshape (x, m)", set()),
        ("y = NonMaxSuppression (x, x, n, k, s)", {"n", "k", "s"}),
        ("r = Range (k, s, k) y = Add (x, r)", {"k", "s"}),
        ("c = Greater (k, s) y = Compress (x, c)", {"k", "s"}),
        ("c = Greater (k, s) y = Where (c, x, x)", set()),
    ],
)
def test_what_steers(nodes: str, steers: set[str]) -> None:
    constants = found(f"g (float[a, b, c] x) => (y) {{ {nodes} }}", k=np.float32(0.3), s=np.float32(0.7), n=np.array([1])).constants
    assert constants & {"k", "s", "n"} == steers


def test_an_input_that_becomes_an_index_is_data_and_one_that_becomes_a_size_is_not() -> None:
    seen = found("g (float[N] x, float f, float[4] s) => (y, z) { t = Floor (x) i = Cast <to = 7> (t) y = Gather (x, i) r = Resize (x, , s) z = Add (r, f) }")
    assert seen.inputs & {"x", "f", "s"} == {"s"}


def test_what_a_loop_carries_steers_if_its_body_says_so() -> None:
    seen = found(
        "g (float[1, 1, 10, 4] x, int64 m, bool o, float[4] a, float[4] b, float[4] e) => (y) { s, z, r, y = Loop (m, o, a, b, e)"
        "<body = t (int64 n, bool c, float[4] p, float[4] q, float[4] h) => (bool d, float[4] u, float[4] v, float[4] j, float[o, o, o, o] w)"
        "{ d = Identity (c) u = Mul (q, k) v = Identity (q) j = Identity (h) w = Resize (x, , p) }> }",
        k=np.float32(0.3),
    )
    assert seen.inputs & {"a", "b", "e", "m", "o", "x"} == {"a", "b", "m", "o"} and "k" in seen.constants


def test_what_a_scan_carries_steers_if_its_body_says_so() -> None:
    seen = found(
        "g (float[1, 1, 10, 4] x, float[4] a, float[3, 4] b, float[3, 4] e) => (y) { s, y, z = Scan (a, b, e)"
        "<num_scan_inputs = 2, body = t (float[4] p, float[4] q, float[4] h) => (float[4] u, float[o, o, o, o] w, float[4] j)"
        "{ u = Mul (p, q) w = Resize (x, , p) j = Neg (h) }> }"
    )
    assert seen.inputs & {"a", "b", "e", "x"} == {"a", "b"}


@pytest.mark.parametrize(
    ("nodes", "how"),
    [
        ("y = Cast <to = 7> (x)", Decided.ROUNDED),
        ("y = Cast <to = 9> (x)", Decided.CHOSEN),
        ("y = Cast <to = 7> (i)", Decided.NOT),
        ("y = Add (i, i)", Decided.NOT),
        ("y = Shape (x)", Decided.NOT),
        ("t = Cast <to = 7> (x) y = Shape (t)", Decided.NOT),
        ("t = Cast <to = 7> (x) y = Add (t, i)", Decided.ROUNDED),
        ("t = Cast <to = 7> (x) y = Gather (t, i)", Decided.ROUNDED),
        ("t = Cast <to = 7> (x) y = Gather (i, t)", Decided.CHOSEN),
        ("y = ArgMax <axis = 0> (x)", Decided.CHOSEN),
        ("y = ArgMax <axis = 0> (i)", Decided.NOT),
        ("v, y = TopK (x, i)", Decided.CHOSEN),
        ("v, y = TopK (i, i)", Decided.NOT),
        ("y = Less (x, x)", Decided.CHOSEN),
        ("y = Less (i, i)", Decided.NOT),
        ("c = Less (x, x) y = Where (c, i, i)", Decided.CHOSEN),
        ("y = QuantizeLinear (x, x)", Decided.ROUNDED),
        ("q = QuantizeLinear (x, x) y = MatMulInteger (q, q)", Decided.ROUNDED),
        ("y = NonZero (x)", Decided.CHOSEN),
        ("f = Cast <to = 1> (i) y = Cast <to = 7> (f)", Decided.ROUNDED),
        ("y = Relu (x)", None),
        ("y = Constant <value_int = 3> ()", Decided.NOT),
        ("y = If (c) <then_branch = t () => (int64[N] a) { a = Identity (i) }, else_branch = e () => (int64[N] b) { b = Neg (i) }>", Decided.CHOSEN),
    ],
)
def test_how_floats_decide_an_integer(nodes: str, how: Decided | None) -> None:
    assert found(f"g (float[N] x, int64[N] i, bool c) => (y) {{ {nodes} }}").decided.get("y") == how


def test_integer_inputs_steer_by_their_schema() -> None:
    assert steered("Slice", 13) == ((1, 2, 3, 4), ())
    assert steered("Gather", 13) == ((), (1,))
    assert steered("Resize", 10)[0][0] == 1 and steered("Upsample", 9) == ((1,), ())
    assert steered("Add", 14) == ((), ())
