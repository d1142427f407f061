"""`eqsat rules why`: its output, and the agreement of its matching in Python with egglog's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import onnx
import pytest
from hypothesis import HealthCheck, given, settings

from eqsat.egraph import admission
from eqsat.egraph.admission import RuleSet
from eqsat.egraph.encode import Encoding, encode
from eqsat.egraph.limits import Limits
from eqsat.egraph.outer import Outer
from eqsat.egraph.plain_matching import Assignments, Index
from eqsat.egraph.saturate import saturate
from eqsat.egraph.tables import EGraph
from eqsat.errors import InputError
from eqsat.facts.fact import UNKNOWN, Fact
from eqsat.language.compile import Compiled, compile_rule
from eqsat.language.firing import Firing
from eqsat.language.library import Group, Library
from eqsat.language.parse import parse as parse_rules
from eqsat.language.resolve import resolve
from eqsat.language.resolved import Resolved
from eqsat.language.syntax import RuleFile
from eqsat.model.model import Node
from eqsat.model.read import normalize
from eqsat.model.tensors import ContentIndex
from eqsat.terms.derivation import Derivation
from eqsat.terms.terms import Terms
from eqsat.why.why import Answer, why
from tests.support.models import parse
from tests.support.random_models import models

# All parts of patterns: nested and repeated operators, operands in either order, lists, outputs,
# several roots, absent and optional inputs, numbers, parameters, and attributes that are fixed,
# named, carried or open.
RULES = """
real rule nested:
    Add(Add(x, y), z) => Add(x, Add(y, z))
    test x: T[2], y: T[2], z: T[2]

real rule twice:
    Mul(Add(x, y), x) => Add(Mul(x, x), Mul(y, x))
    test x: T[2], y: T[2]

exact rule same-operands:
    Max(x, x) => x
    test x: T[2]

exact rule absorbed:
    Max(Min(x, _), x) => x
    where x: int64
    test x: int64[2], _: int64[2]

exact rule transposes:
    Transpose<perm = p>(Transpose<perm = q>(x)) => Transpose<perm = [q[i] for i in p]>(x)
    test x: T[2, 3], q = [1, 0], p = [1, 0]

exact rule shapes:
    Squeeze(Unsqueeze(x, axes), axes) => x
    test x: T[2], axes = [0]

exact rule front:
    Slice(Concat<axis = a>(x, .._), [i], [j], [a]) => Slice(x, [i], [j], [a])
    where 0 <= i <= j <= dim(x, a)
    test x: T[5, 3], _: T[2, 3], a = 0, i = 1, j = 4

exact rule joined:
    Concat<axis = a>(x, ..xs) => Concat<axis = a>(x, ..xs)
    test x: T[5, 3], xs: T[2, 3], a = 0

exact rule bounds:
    Clip(Clip(x, low?, high?), low?, high?) => Clip(x, low, high)
    test x: T[2], low: T[], high: T[]

exact rule open-bound:
    Clip(x, low) => Max(x, low)
    where x: _[2, 3]
    test x: T[2, 3], low: T[]

real rule siblings:
    y1 = Mul(x, a)
    y2 = Add(x, b)
 => y1 = Mul(a, x)
    y2 = Add(b, x)
    test x: T[2], a: T[2], b: T[2]

real rule carried:
    Softmax<..p>(Transpose<perm = _>(x)) => Softmax<..p>(Relu(x))
    where x: _[n, n]
    test x: T[2, 2]

exact rule copied:
    y, _ = Dropout<seed = _>(x) => y = Relu(x)
    test x: T[2]

exact rule second:
    _, y = Split<axis = 0>(x, [_, _]) => y = Relu(x)
    test x: T[3]

real rule through-lists:
    y = Relu(x)
    z = Concat<axis = a>(w, x, ..ws)
 => y = Relu(x)
    z = Concat<axis = a>(w, x, ..ws)
    test x: T[3], w: T[2], ws: T[2], a = 0

real rule number:
    Mul(x, 1) => x
    test x: T[2]

real rule sums:
    ReduceSum<keepdims = 0>(x, [0]) => ReduceSum<keepdims = 0>(x, [0])
    test x: T[2, 3]
"""


def rule(text: str) -> Resolved:
    """Returns the one rule of a text."""
    return resolve(parse_rules(text.strip() + "\n", "some.rules"))[0]


COMPILED = [compiled for text in RULES.split("\n\n") for compiled in compile_rule(rule(text))]


def encoded(model: onnx.ModelProto) -> Encoding:
    """Returns the encoding of a main graph, without facts about the outputs of bodies."""

    def descend(node: Node, outer: Outer) -> tuple[Node, tuple[Fact, ...]]:
        return node, (UNKNOWN,) * len(node.outputs)

    terms = Terms()
    return encode(normalize(model, None, None).graph, terms, Derivation(terms), ContentIndex(), Outer(main=True), lambda names: {}, descend)


class Spy(Firing):
    """A firing that keeps the columns of its calls, and whether it fired."""

    seen: ClassVar[dict[str, dict[tuple[int, ...], bool]]] = {}

    def __call__(self, *handles: int) -> int:
        number = super().__call__(*handles)
        Spy.seen.setdefault(self.compiled.title, {})[handles] = number >= 0
        return number


def by_engine(encoding: Encoding, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, set[tuple[int, ...]]], dict[str, dict[tuple[int, ...], bool]]]:
    """Returns the matches of egglog's queries in a graph that no rule has changed, by rule.

    They are the roots of firings, and the columns of all matches.
    """
    Spy.seen = {}
    plain, _ = saturate(encoding, Limits(), RuleSet())
    fired: dict[str, set[tuple[int, ...]]] = {}
    # In a trial the shrinking rules run before the growing ones, which would see their results.
    for group in ([each for each in COMPILED if each.growth < 0], [each for each in COMPILED if each.growth >= 0]):
        with monkeypatch.context() as patched:
            patched.setattr(admission, "Firing", Spy)
            trial, record = saturate(encoding, Limits(), RuleSet(group, trial=True))
        assert record.hit is None
        same = dict(zip(trial.class_of, plain.class_of, strict=True))
        for number, left, _ in trial.trials:
            fired.setdefault(group[number].title, set()).add(tuple(same[root] for root in left))
    return fired, Spy.seen


def in_python(encoding: Encoding, egraph: EGraph, compiled: Compiled) -> tuple[dict[tuple[int, ...], bool], set[tuple[int, ...]]]:
    """Returns the columns with whether the rule fires on them, and the roots of its firings."""
    assignments = Assignments(compiled.pattern, Index(encoding.terms, egraph), 10_000_000, 1_000_000)
    firing = Firing(compiled, encoding.terms, encoding.derivation, trial=True)
    columns: dict[tuple[int, ...], bool] = {}
    roots: set[tuple[int, ...]] = set()
    for eclass in range(len(egraph.facts)):
        for found in assignments.complete(eclass):
            handles = assignments.handles(found)
            columns[handles] = firing.refusal(handles) is None
            if columns[handles]:
                roots.add(tuple(found.bindings[variable] for variable in compiled.pattern.roots.values()))
    assert not assignments.cut
    return columns, roots


def check_matches(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Checks that both ways agree. Returns the number of firings by rule."""
    encoding = encoded(model)
    expected, seen = by_engine(encoding, monkeypatch)
    egraph, _ = saturate(encoding, Limits(), RuleSet())
    fired: dict[str, int] = {}
    for compiled in COMPILED:
        columns, roots = in_python(encoding, egraph, compiled)
        assert roots == expected.get(compiled.title, set()), compiled.title
        assert columns == seen.get(compiled.title, {}), compiled.title
        fired[compiled.title] = len(roots)
    return fired


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(model=models())
def test_python_and_egglog_match_alike(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> None:
    check_matches(model, monkeypatch)


ALL_FORMS = """
g (float[2,3] x, float[2,3] y, float[3] z, int64[4] k, float[3,3] s) => (a, b, c, d, e, f, h, i, j, l, m, o, p, q, r, s1, s2)
    <float low = {0.0}, float high = {1.0}, float[1] one = {1.0}, int64[1] first = {0}, int64[1] to = {2}, int64[2] parts = {1, 1}> {
  xy = Add(y, x)
  a = Add(z, xy)
  b = Mul(x, xy)
  c = Max(y, y)
  least = Min(k, k)
  d = Max(least, k)
  turned = Transpose<perm = [1, 0]>(x)
  e = Transpose<perm = [1, 0]>(turned)
  wide = Unsqueeze(x, first)
  f = Squeeze(wide, first)
  joined = Concat<axis = 0>(x, y, x)
  h = Slice(joined, first, to, first)
  clipped = Clip(x, low, high)
  i = Clip(clipped, low, high)
  j = Clip(x, low)
  l = Mul(x, z)
  m = Mul(one, y)
  square = Transpose(s)
  o = Softmax(square)
  p = Dropout(x)
  q = ReduceSum<keepdims = 0>(x, first)
  r = Mul(z, y)
  positive = Relu(y)
  s1, s2 = Split(positive, parts)
}
"""


def test_every_form_of_pattern_matches_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    fired = check_matches(parse(ALL_FORMS), monkeypatch)
    assert {name for name, count in fired.items() if not count} == set(), fired


# --- what it says ---

CONSTANTS = "real rule constants:\n    Add(Add(x, c), d) => Add(x, Add(c, d))\n    where const c, const d\n    test x: T[2], c: T[2], d: T[2]"
FUSED = "real rule fused:\n    Relu(Gemm<beta = _>(a, b)) => Relu(Gemm(a, b))\n    where a: float[_, _]\n    test a: T[2, 3], b: T[3, 4]"
SPLIT = "exact rule split:\n    y, z = Split<axis = 0>(x, [n, m])\n => y, z = Split<axis = 0>(x, [n, m])\n    where n < m\n    test x: T[3], n = 1, m = 2"
PARTS = "exact rule parts:\n    Relu(Concat<axis = 0>(x, y)) => Relu(Concat<axis = 0>(x, y))\n    test x: T[3], y: T[2]"
SQUARE = "real rule square:\n    Mul(x, x) => Pow(x, T(2))\n    where x: T\n    test x: T[3]"
PAIR = "real rule pair:\n    y = MatMul(x, w)\n    z = Relu(x)\n => y = MatMul(x, w)\n    z = Relu(x)\n    test x: T[2, 2], w: T[2, 2]"
HEAD = "exact rule head:\n    Slice(x, [i], [j], [0]) => Slice(x, [i], [j], [0])\n    where 0 <= i <= j <= dim(x, 0)\n    test x: T[5], i = 1, j = 4"
SUMS = "real rule sums:\n    Add(Neg(Sin(x)), Relu(y)) => Sub(Relu(y), Sin(x))\n    test x: T[2], y: T[2]"
JOINED = "exact rule joined:\n    Neg(x) => Concat<axis = 1>(Neg(x))\n    test x: T[2, 2]"
TURNED = "exact rule turned:\n    Neg(x) => Transpose<perm = [1, 0]>(Neg(x))\n    test x: T[2, 2]"

# By rule and model: the place, how far the match gets, and the text at the caret with the reason;
# None if it fires.
CASES: list[tuple[str, str, str, tuple[int, int], tuple[str, str] | None]] = [
    (CONSTANTS, "g (float[2] x) => (y) <float[2] c = {1, 2}> { t = Add(c, x)  y = Add(c, t) }", "Add 'y'", (2, 2), None),
    (CONSTANTS, "g (float[2] x) => (y) <float[2] c = {1, 2}> { t = Add(x, x)  y = Add(c, t) }", "Add 'y'", (2, 2), ("const c", "c is no constant")),
    (
        CONSTANTS,
        "g (float[2] x) => (y) <float[2] c = {1, 2}> { t = Relu(x)  y = Add(t, c) }",
        "Add 'y'",
        (1, 2),
        ("Add(x, c)", "the inputs of Add 'y' are made by Relu 't' and the constant 'c'; the rule wants an Add at one of them"),
    ),
    (CONSTANTS, "g (float[2] x, float[2] z) => (y) <float[2] c = {1, 2}> { t = Add(c, x)  y = Add(t, z) }", "Add 'y'", (2, 2), ("const d", "d is no constant")),
    (
        SUMS,
        "g (float[2] x) => (y) { s = Tanh(x)  t = Neg(x)  y = Add(s, t) }",
        "Add 'y'",
        (2, 4),
        ("Sin", "input X of Neg 't' is the input 'x'; the rule wants a Sin"),
    ),
    (
        SUMS,
        "g (float[2] x) => (y) { s = Sin(x)  t = Neg(s)  u = Tanh(x)  y = Add(u, t) }",
        "Add 'y'",
        (3, 4),
        ("Relu(y)) =>", "the other input of Add 'y' is made by Tanh 'u'; the rule wants a Relu"),
    ),
    (
        FUSED,
        "g (float[2,3] a, float[3,4] b) => (y) { t = MatMul(a, b)  [last] y = Relu(t) }",
        "Relu 'last'",
        (1, 2),
        ("Gemm<", "input X of Relu 'last' is made by MatMul 't'; the rule wants a Gemm"),
    ),
    (
        FUSED,
        "g (float[3,2] a, float[3,4] b) => (y) { t = Gemm<transA = 1>(a, b)  y = Relu(t) }",
        "Relu 'y'",
        (1, 2),
        ("Gemm<", "the attribute transA of Gemm 't' is 1; the rule has its default, 0"),
    ),
    (
        FUSED,
        "g (float[2,3] a, float[3,4] b, float[4] c) => (y) { t = Gemm(a, b, c)  y = Relu(t) }",
        "Relu 'y'",
        (1, 2),
        ("Gemm<", "input C of Gemm 't' is present, 'c': float[4]; the rule wants it absent"),
    ),
    (
        FUSED,
        "g (double[2,3] a, double[3,4] b) => (y) { t = Gemm<beta = 0.5>(a, b)  y = Relu(t) }",
        "Relu 'y'",
        (2, 2),
        ("a: float", "the type of a is not known to be that"),
    ),
    (SPLIT, "g (float[3] x) => (y, z) <int64[2] s = {1, 2}> { y, z = Split(x, s) }", "Split 'y'", (1, 1), None),
    (SPLIT, "g (float[3] x) => (y, z) <int64[2] s = {2, 1}> { y, z = Split(x, s) }", "Split 'y'", (1, 1), ("n < m", "the condition is false")),
    (
        SPLIT,
        "g (float[3] x) => (y, z, t) <int64[3] s = {1, 1, 1}> { y, z, t = Split(x, s) }",
        "Split 'y'",
        (0, 1),
        ("Split<", "Split 'y' has 3 outputs; the rule has 2"),
    ),
    (
        PARTS,
        "g (float[3] x) => (y) { t = Concat<axis = 0>(x, x, x)  y = Relu(t) }",
        "Relu 'y'",
        (1, 2),
        ("Concat<", "Concat 't' has 3 inputs; the rule has 2"),
    ),
    (
        PARTS,
        "g (float[2,3] x) => (y) { t = Concat<axis = -1>(x, x)  y = Relu(t) }",
        "Relu 'y'",
        (2, 2),
        ("0>(x, y)) =>", "the attribute axis is 1"),
    ),
    (SQUARE, "g (float[3] x) => (y) { y = Mul(x, x) }", "Mul 'y'", (1, 1), None),
    (SQUARE, "g (float[3] x, float[3] z) => (y) { y = Mul(x, z) }", "Mul 'y'", (0, 1), ("x) =>", "no input of Mul 'y' is 'x': float[3], as elsewhere")),
    (PAIR, "g (float[2,2] x, float[2,2] w) => (y, z) { y = MatMul(x, w)  z = Relu(x) }", "MatMul 'y'", (2, 2), None),
    (PAIR, "g (float[2,2] x, float[2,2] w) => (y, z) { y = MatMul(x, w)  z = Relu(y) }", "MatMul 'y'", (1, 2), ("Relu(x)", "no Relu uses 'x': float[2, 2]")),
    (
        HEAD,
        "g (float[N] x) => (y) <int64[1] i = {1}, int64[1] j = {2}, int64[1] o = {0}> { y = Slice(x, i, j, o) }",
        "Slice 'y'",
        (1, 1),
        ("0 <= i", "not known"),
    ),
    (JOINED, "g (float[2] x) => (y) { y = Neg(x) }", "Neg 'y'", (1, 1), ("Concat<", "ONNX rejects Concat here")),
    (TURNED, "g (float[2,3] x) => (y) { y = Neg(x) }", "Neg 'y'", (1, 1), ("turned:", "the right side is of another type than the left")),
]


def asked(resolved: Resolved, model: onnx.ModelProto, folder: Path, *others: Resolved) -> Answer:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return why(resolved, path, Library((Group.of(RuleFile("others", (), tuple(other.rule for other in others)), others),)) if others else None)


@pytest.mark.parametrize(("text", "model", "node", "nodes", "stop"), CASES)
def test_a_place_says_how_far_the_rule_gets(text: str, model: str, node: str, nodes: tuple[int, int], stop: tuple[str, str] | None, tmp_path: Path) -> None:
    answer = asked(rule(text), parse(model), tmp_path)
    place = next(place for place in answer.to_json()["places"] if place["node"] == node)
    assert (place["matched"], place["of"], place["fires"]) == (*nodes, stop is None)
    if stop is not None:
        line = text.splitlines()[place["stopped"]["line"] - 1]
        assert line[place["stopped"]["column"] - 1 :].startswith(stop[0]), place
        assert stop[1] in place["stopped"]["reason"], place
    assert answer.fires == (stop is None)


def test_the_terminal_shows_the_line_a_caret_and_what_was_seen(tmp_path: Path) -> None:
    model = parse("g (float[N] x) => (y, z) <int64[1] i = {1}, int64[1] j = {2}, int64[1] o = {0}> { [cut] y = Slice(x, i, j, o)  z = Slice(x, o, o, o) }")
    assert (
        "\n".join(asked(rule(HEAD), model, tmp_path).lines())
        == """\
rule head: fires at 1 place, nearly matches at 1; 2 nodes looked at (Slice)

Slice 'z' (output 'z'): fires
    x = 'x': float[N]
    i = 0
    j = 0

Slice 'cut' (output 'y'): 1 of 1 node
    some.rules:3:11: rule head: the condition is not known to hold
            where 0 <= i <= j <= dim(x, 0)
                  ^
    x = 'x': float[N]
    i = 1
    j = 2
    dim(x, 0) = N"""
    )


def test_values_are_shown_of_what_is_computed_alone(tmp_path: Path) -> None:
    scalar = rule("real rule scalar:\n    Mul(x, c) => Mul(c, x)\n    where shape(c) == [] or rank(c) == 2 * 4\n    test x: T[2], c: T[]")
    (spot,) = asked(scalar, parse("g (float[2] x, float[2] c) => (y) { y = Mul(x, c) }"), tmp_path).spots
    assert spot.stop is not None and spot.stop.seen[1:] == ("shape(c) = [2]", "rank(c) = 1")


def test_a_parameter_that_is_another_is_shown(tmp_path: Path) -> None:
    model = parse("g (float[2,5] x) => (y) <int64[1] i = {1}, int64[1] j = {2}> { y = Slice(x, i, j, i) }")
    (spot,) = asked(rule(HEAD), model, tmp_path).spots
    assert spot.stop is not None and spot.stop.seen == ("the input = 'i': constant int64[1] of [1]",)


def test_bodies_and_functions_are_looked_at(tmp_path: Path) -> None:
    model = parse("""<ir_version: 8, opset_import: ["" : 17, "own" : 1, "old" : 1]>
    g (float[3] x, bool c) => (y, z, t) {
      y = If(c) <then_branch = a () => (float[3] p) { p = Mul(x, x) }, else_branch = b () => (float[3] q) { q = Relu(x) }>
      z = own.square(x)
      t = old.square(x)
    }
    <domain: "own", opset_import: ["" : 17]> square (x) => (y) { y = Mul(x, x) }
    <domain: "old", opset_import: ["" : 11]> square (x) => (y) { y = Mul(x, x) }""")
    answer = asked(rule(SQUARE), model, tmp_path)
    assert [(spot.graph, spot.output, spot.stop is None) for spot in answer.spots] == [
        ("then_branch of If 'y'", "p", True),
        ("function own.square", "y", False),  # only a call knows the type of x
    ]
    assert answer.notes == ["function old.square imports other opsets than the model: a run leaves it as it is"]


@pytest.mark.parametrize(
    ("text", "model", "reason"),
    [
        (
            "real rule r:\n    Softmax(x) => Relu(x)\n    test x: T[2]",
            '<ir_version: 8, opset_import: ["" : 9]> g (float[2,3,4] x) => (y) { y = Softmax(x) }',
            "version 1",
        ),
        (
            "real rule r:\n    Dropout(x) => Relu(x)\n    test x: T[2]",
            "g (float[2] x, bool t) => (y) <float r = {0.5}> { y = Dropout(x, r, t) }",
            "in training mode, or may be",
        ),
        ("real rule r:\n    Identity(x) => Relu(x)\n    test x: T[2]", "g (float[2] x) => (y) { y = Identity(x) }", "the value that it copies"),
    ],
)
def test_forms_that_rules_do_not_see(text: str, model: str, reason: str, tmp_path: Path) -> None:
    (spot,) = asked(rule(text), parse(model), tmp_path).spots
    assert spot.matched == 0 and spot.stop is not None and reason in spot.stop.reason


def test_a_model_without_the_operator(tmp_path: Path) -> None:
    answer = asked(rule(CONSTANTS), parse("g (float[2] x) => (y) { y = Relu(x) }"), tmp_path)
    assert answer.lines() == ["rule constants: the model has no Add"]
    assert answer.to_json()["places"] == []


def test_nodes_that_compute_the_same_are_one_place(tmp_path: Path) -> None:
    answer = asked(rule(SQUARE), parse("g (float[3] x) => (y, z) { y = Mul(x, x)  z = Mul(x, x) }"), tmp_path)
    assert [(spot.node, spot.more) for spot in answer.spots] == [("Mul 'y'", 1)]
    assert answer.lines()[0] == "rule square: fires at 1 place, nearly matches at 0; 2 nodes looked at (Mul)"


def test_both_directions_are_looked_at(tmp_path: Path) -> None:
    resolved = rule(
        "real rule assoc:\n    MatMul(MatMul(x, y), z) <=> MatMul(x, MatMul(y, z))\n    where y: _[_, _]\n    test x: T[2, 2], y: T[2, 2], z: T[2, 2]"
    )
    answer = asked(resolved, parse("g (float[2,2] x, float[2,2] y, float[2,2] z) => (p) { t = MatMul(x, y)  p = MatMul(t, z) }"), tmp_path)
    assert [(spot.output, spot.reverse, spot.stop is None) for spot in answer.spots] == [
        ("t", False, False),
        ("p", False, True),
        ("t", True, False),
        ("p", True, False),
    ]


def test_other_rules_may_make_what_a_rule_needs(tmp_path: Path) -> None:
    model = parse("g (float[3] x) => (y) { t = Max(x, x)  y = Mul(t, x) }")
    idempotent = rule("exact rule same:\n    Max(x, x) => x\n    test x: T[2]")
    assert asked(rule(SQUARE), model, tmp_path).others is None
    answer = asked(rule(SQUARE), model, tmp_path, rule(SQUARE), idempotent)
    assert (answer.fires, answer.others) == (0, 1)
    assert "with the other rules applied as well it fires once" in answer.lines()


def test_many_ways_to_match_are_cut_short_and_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = """real rule hub:
        y = Mul(x, c)
        z = Add(t, c)
     => y = Mul(x, c)
        z = Add(t, c)
        where x: int64
        test x: int64[2], c: int64[2], t: int64[2]"""
    steps = "  ".join(f"a{number} = Add(x, c)  x{number} = Relu(a{number})  b{number} = Add(x{number}, c)" for number in range(30))
    model = parse(f"g (float[2] x, float[2] c) => (y, {', '.join(f'b{number}' for number in range(30))}) {{ y = Mul(x, c)  {steps} }}")
    monkeypatch.setattr("eqsat.why.why.SHARE", 1)
    stop = asked(rule(hub), model, tmp_path).spots[0].stop
    assert stop is not None and stop.reason == "the search ended here: there are too many ways to go on"
    monkeypatch.undo()
    complete = asked(rule(hub), model, tmp_path)
    assert complete.notes == []
    for name, bound in (("MATCHES", 2), ("SHARE", 2), ("BUDGET", 2)):
        monkeypatch.setattr(f"eqsat.why.why.{name}", bound)
        assert asked(rule(hub), model, tmp_path).notes == ["the graph: there were too many ways to match; not all were tried"], name
        monkeypatch.undo()


def test_long_answers_are_short_on_the_terminal_and_whole_in_json(tmp_path: Path) -> None:
    squares = "  ".join(f"y{number} = Mul(x{number}, {'x0' if number % 2 else f'x{number}'})  x{number + 1} = Relu(y{number})" for number in range(20))
    answer = asked(rule(SQUARE), parse(f"g (float[3] x0) => (x20) {{ {squares} }}"), tmp_path)
    lines = answer.lines()
    assert sum("fires" in line for line in lines[1:]) == 3 and sum("0 of 1 node" in line for line in lines) == 2
    assert lines[-1] == "and 15 more; --json shows all"
    assert len(json.loads(json.dumps(answer.to_json()))["places"]) == 20


def test_a_promise_lets_a_rule_fire(tmp_path: Path) -> None:
    some = "exact rule some:\n    Neg(x) => Mul(x, T(-1))\n    where x: T, min(shape(x)) > 0\n    test x: T[2]\n"
    path = tmp_path / "model.onnx"
    onnx.save(parse("g (float[N, 3] x) => (float[N, 3] y) { y = Neg(x) }"), path)
    assert [why(rule(some), path, no_empty_inputs=promise).fires for promise in (False, True)] == [0, 1]


def test_a_bad_model_is_an_input_error(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(InputError, match="not an ONNX model"):
        why(rule(SQUARE), path)
