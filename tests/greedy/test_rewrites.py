"""Single rewrites of the greedy engine: what it may do, what it has to look at again, and the laws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eqsat.language.library import built_in
from tests.greedy.test_greedy import fired, greedily, matrix
from tests.support.models import operators, parse, weighted

NOTHING: dict[str, Any] = {"skip": [group.name for group in built_in().groups]}
# A second turn would begin with every match anew.
ONE_TURN = {"effort": "low"}
SETTLES = '[[normal]]\nname = "all"\nsettle = ["*"]\nrounds = 1\n'
FUSES = """
base = "launches"
[operators."com.acme.Fused"]
class = "elementwise"
launches = 1
[[fusions]]
first = ["Elu"]
second = ["Exp"]
becomes = "com.acme.Fused"
"""
CELU = """
real rule celu:
    Elu(x) => Celu(x)
    test x: T[2]
"""
NEGATED = """
real rule negated-sum:
    Add(Neg(a), Neg(b)) => Neg(Add(a, b))
    test a: T[2], b: T[2]

real rule absolute:
    Abs(Neg(x)) => Abs(x)
    test x: T[2]
"""
ROOTS = """
real rule absolute-relu:
    Relu(Abs(x)) => Abs(x)
    test x: T[2]

real rule root:
    Sqrt(Mul(x, x)) => Abs(x)
    test x: T[2]
"""
# The second root is complete only after the second rule.
UNLIKE = """
real rule unlike-chains:
    y = Sin(Cos(Exp(Neg(a))))
    z = Tanh(Cos(Exp(Neg(b))))
 => u, v = Split<axis = 0>(Cos(Exp(Neg(Concat<axis = 0>(a, b)))), [n, n])
    y = Sin(u)
    z = Tanh(v)
    where a: T[n], b: T[n]
    test a: T[2], b: T[2]

real rule even:
    Cos(Neg(x)) => Cos(x)
    test x: T[2]
"""


@pytest.fixture
def settling(tmp_path: Path) -> Path:
    """Phases in which every rule that keeps the number of nodes runs at equal cost."""
    path = tmp_path / "phases.toml"
    path.write_text(SETTLES)
    return path


# --- the price of a rewrite ---


def test_a_rule_that_shrinks_does_not_fire_where_it_costs_more() -> None:
    shared = "g (float[8] a, float[8] b) => (float[8] y, float[8] s, float[8] t) { s = Neg (a)  t = Neg (b)  y = Add (s, t) }"
    assert fired(greedily(shared, NEGATED)) == {}
    alone = "g (float[8] a, float[8] b) => (float[8] y) { s = Neg (a)  t = Neg (b)  y = Add (s, t) }"
    assert operators(greedily(alone, NEGATED).model) == {"Add": 1, "Neg": 1}


def test_a_match_that_was_too_dear_is_looked_at_again() -> None:
    text = "g (float[8] a, float[8] b) => (float[8] y, float[8] u, float[8] v) { s = Neg (a)  t = Neg (b)  y = Add (s, t)  u = Abs (s)  v = Abs (t) }"
    assert operators(greedily(text, NEGATED, **ONE_TURN).model) == {"Add": 1, "Neg": 1, "Abs": 2}


def test_a_fusion_of_the_runtime_counts(settling: Path, tmp_path: Path) -> None:
    target = tmp_path / "fuses.toml"
    target.write_text(FUSES)
    alone = "g (float[8] x) => (float[8] y) { h = Elu (x)  y = Exp (h) }"
    assert fired(greedily(alone, CELU, target=target, phases=settling)) == {}
    shared = "g (float[8] x) => (float[8] y, float[8] z) { h = Elu (x)  y = Exp (h)  z = Tanh (h) }"
    assert fired(greedily(shared, CELU, target=target, phases=settling)) == {"celu": 1}


def test_constants_stay_within_the_growth_that_is_allowed() -> None:
    rules = """
real rule product:
    MatMul(MatMul(x, a), b) => MatMul(x, MatMul(a, b))
    where const a, const b, a: _[_, _], b: _[_, _]
    test x: T[2, 3], a: T[3, 1], b: T[1, 3]
"""
    model = weighted("g (float[2, 64] x) => (float[2, 64] y) { h = MatMul (x, a)  y = MatMul (h, b) }", a=matrix(64, 1), b=matrix(1, 64))
    assert fired(greedily(model, rules)) == {}
    assert fired(greedily(model, rules, max_growth=1 << 16)) == {"product": 1}


def test_an_operator_that_the_opset_lacks_is_not_made() -> None:
    rules = "real rule made-swish:\n    Mul(x, Sigmoid(x)) => Swish(x)\n    test x: T[2]\n"
    text = "g (float[8] x) => (float[8] y) { s = Sigmoid (x)  y = Mul (x, s) }"
    result = greedily(parse(text, '<ir_version: 8, opset_import: ["" : 17]>'), rules)
    assert fired(result) == {}
    assert operators(result.model) == {"Sigmoid": 1, "Mul": 1}
    assert operators(greedily(parse(text, '<ir_version: 11, opset_import: ["" : 24]>'), rules, verify=False).model) == {"Swish": 1}


def test_a_constant_of_a_named_size_is_not_folded() -> None:
    # The library has Less(x, x) => Expand(bool(0), shape(x)), and no list of numbers is that shape.
    result = greedily("g (float[N, 3] x) => (bool[N, 3] y) { y = Less (x, x) }", target="onnxruntime-cpu")
    assert operators(result.model) == {"Less": 1}
    assert not [note for note in result.report["notes"] if "no better" not in note]


# --- where a match begins ---


def test_a_rewrite_makes_a_match_above_it_possible() -> None:
    text = "g (float[8] x) => (float[8] y) { s = Mul (x, x)  r = Sqrt (s)  y = Relu (r) }"
    assert operators(greedily(text, ROOTS, **ONE_TURN).model) == {"Abs": 1}


def test_a_match_begins_at_each_of_its_roots() -> None:
    text = """g (float[8] x, float[8] t) => (float[8] y, float[8] z) {
        a = Neg (x) b = Exp (a) c = Cos (b) y = Sin (c)
        d = Neg (t) e = Exp (d) f = Neg (e) h = Cos (f) z = Tanh (h)
    }"""
    result = greedily(text, UNLIKE, **ONE_TURN)
    assert fired(result) == {"unlike-chains": 1, "even": 1}
    assert result.report["verify"]["status"] == "equal"


def test_lists_are_read_and_made_item_by_item() -> None:
    joined = """
real rule sums:
    Concat<axis = a>([Add(x, b) for x, b in ..xs, ..bs])
 => Add(Concat<axis = a>(..xs), Concat<axis = a>([Reshape(Neg(Neg(b)), [dim(x, a)]) for x, b in ..xs, ..bs]))
    where const bs
    test xs: T[2] T[1], bs: T[2] T[1], a = 0
"""
    model = parse("""g (float[4] p, float[5] q, float[6] r) => (float[15] y)
        <float[4] b = {1, 2, 3, 4}, float[5] c = {5, 6, 7, 8, 9}, float[6] d = {10, 11, 12, 13, 14, 15}> {
        s = Add (p, b)  t = Add (q, c)  u = Add (r, d)  y = Concat <axis = 0> (s, t, u)
    }""")
    result = greedily(model, joined)
    assert operators(result.model) == {"Concat": 1, "Add": 1}
    assert result.report["verify"]["status"] == "equal"


def test_a_node_in_an_older_spelling_is_replaced() -> None:
    text = "g (float[2, 3] x) => (float[2, 3] y) { a = Relu (x)  b = Unsqueeze <axes = [0]> (a)  c = Squeeze <axes = [0]> (b)  y = Exp (c) }"
    model = parse(text, '<ir_version: 8, opset_import: ["" : 11]>')
    assert operators(greedily(model).model) == {"Relu": 1, "Exp": 1}
    # Without a rule it stays as it was written.
    kept = greedily(model, **NOTHING).model
    assert [node.attribute[0].name for node in kept.graph.node if node.attribute] == ["axes", "axes"]


def test_a_node_in_an_older_spelling_makes_room_for_another_one() -> None:
    text = "g (float[9, 3] x) => (float[4, 3] y) { a = Slice <starts = [2], ends = [8]> (x)  y = Slice <starts = [1], ends = [5]> (a) }"
    result = greedily(parse(text, '<ir_version: 8, opset_import: ["" : 9]>'))
    assert operators(result.model) == {"Slice": 1}


# --- laws ---


def test_values_of_equal_sizes_become_one() -> None:
    text = """g (float[N, M] x) => (float[2] y, float[2] z) {
        size = Shape (x)  zero = Constant <value = int64[1] {0}> ()  one = Constant <value = int64[1] {1}> ()
        n = Gather (size, zero)  m = Gather (size, one)  both = Concat <axis = 0> (n, m)
        y = Cast <to = 1> (both)  a = Cast <to = 1> (size)  z = Neg (a)
    }"""
    result = greedily(text, **NOTHING)
    assert operators(result.model) == {"Shape": 1, "Cast": 1, "Neg": 1}
    assert result.report["saturation"]["matches"]["literal"] > 0


def test_a_computed_shape_becomes_a_list_in_which_a_zero_copies_a_size() -> None:
    text = """g (float[N, 2, 8] x) => (float[N, 16] y) {
        size = Shape (x)  zero = Constant <value = int64[1] {0}> ()  batch = Gather (size, zero)
        rest = Constant <value = int64[1] {16}> ()  flat = Concat <axis = 0> (batch, rest)
        y = Reshape <allowzero = 1> (x, flat)
    }"""
    result = greedily(text, **NOTHING)
    assert operators(result.model) == {"Reshape": 1}
    assert result.report["verify"]["status"] == "equal"
    assert result.report["saturation"]["matches"]["parameter"] == 1
