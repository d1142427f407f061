"""The judge of the rule checker: right rules are equal whatever the seed, wrong ones are refuted
whatever the seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import numpy_helper

from eqsat.checker.judging import runtime_sides, sides, specials
from eqsat.checker.judging.differences import Difference
from eqsat.checker.judging.rule_judge import judge
from eqsat.checker.judging.sides import Sides
from eqsat.checker.judging.verdict import Case, Kind, Outcome, explain
from eqsat.checker.kernels import foreign
from eqsat.checker.kernels.call import Unsupported
from eqsat.checker.kernels.noise import FixedNumberNoise
from tests.support.judged_rules import EXACT, FINITE, OUT, REAL, RIGHT, WRONG, Rule, floats, model
from tests.support.parameters import spread

SEEDS = range(10)


@pytest.mark.parametrize("name", spread(RIGHT, every=3))
def test_right_rules_are_equal(name: str):
    case = RIGHT[name].case
    for seed in SEEDS:
        verdict = judge(case, RIGHT[name].label, seed)
        assert verdict.outcome is Outcome.EQUAL, f"seed {seed}: {explain(verdict)}"


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rules_are_refuted(name: str):
    case = WRONG[name].case
    for seed in SEEDS:
        verdict = judge(case, WRONG[name].label, seed)
        assert verdict.outcome is Outcome.DIFFERENT, f"seed {seed}: {explain(verdict)}"


@pytest.mark.parametrize("name", [name for name in RIGHT if RIGHT[name].label is EXACT])
def test_exact_is_real(name: str):
    verdict = judge(RIGHT[name].case, REAL, 0)
    assert verdict.outcome is Outcome.EQUAL, explain(verdict)


@pytest.mark.parametrize("name", [name for name in RIGHT if RIGHT[name].label is REAL])
def test_no_side_differs_from_itself(name: str):
    case = RIGHT[name].case
    for side in (case.left, case.right):
        for label in (EXACT, REAL):
            verdict = judge(Case(side, side, case.free, case.domains), label, 3)
            assert verdict.outcome is Outcome.EQUAL, explain(verdict)


def test_a_verdict_can_be_repeated():
    one, two = (judge(WRONG["another epsilon"].case, REAL, 5) for _ in range(2))
    assert explain(one) == explain(two)
    for name, array in one.inputs.items():
        assert array.tobytes() == two.inputs[name].tobytes()


# --- what a verdict says ---


def alike(model: onnx.ModelProto) -> Case:
    return Case(model, model)


def test_a_difference_is_shown_with_its_inputs():
    verdict = judge(Rule(REAL, floats("x"), OUT, "o = Neg(x)", "o = Abs(x)").case, REAL, 0)
    assert verdict.kind is Kind.VALUE
    assert verdict.output == "o"
    assert verdict.left == -verdict.inputs["x"][verdict.position]
    assert verdict.right == abs(verdict.left)
    assert explain(verdict).startswith(
        f"different: o[{verdict.position[0]}, {verdict.position[1]}] is {verdict.left} on the left and {verdict.right} on the right"
    )
    assert "x = float32[2,3] [[" in explain(verdict)


def test_another_data_type_is_a_difference():
    case = Case(model(floats("x"), OUT, "o = Identity(x)"), model(floats("x"), "double[2,3] o", "o = Cast<to = 11>(x)"))
    verdict = judge(case, REAL, 0)
    assert (verdict.outcome, verdict.kind) == (Outcome.DIFFERENT, Kind.TYPE)
    assert explain(verdict) == "different: o is float on the left and double on the right"


def test_another_shape_is_a_difference():
    case = Case(model(floats("x"), OUT, "o = Identity(x)"), model(floats("x"), "float[1,2,3] o", "a = Constant<value = int64[1] {0}>() o = Unsqueeze(x, a)"))
    verdict = judge(case, EXACT, 0)
    assert (verdict.outcome, verdict.kind) == (Outcome.DIFFERENT, Kind.TYPE)
    assert explain(verdict) == "different: o has the shape [2, 3] on the left and [1, 2, 3] on the right"


def test_an_illegal_right_side_is_a_difference():
    case = Case(model(floats("x"), OUT, "o = Identity(x)"), model(floats("x"), OUT, "o = Transpose<perm = [0, 1, 2]>(x)"))
    verdict = judge(case, REAL, 0)
    assert (verdict.outcome, verdict.kind) == (Outcome.DIFFERENT, Kind.FAILS)


def test_a_right_side_that_fails_is_a_difference():
    inputs, output = "int32[2,3] x, int32[2,3] y", "int32[2,3] o"
    case = Case(model(inputs, output, "o = Mul(x, y)"), model(inputs, output, "a = Mul(x, y) b = Div(y, y) o = Mul(a, b)"))
    verdict = judge(case, REAL, 0)
    assert (verdict.outcome, verdict.kind) == (Outcome.DIFFERENT, Kind.FAILS)
    assert explain(verdict) == "different: the right side fails where the left one does not: an integer is divided by zero"


def test_an_instance_that_means_nothing_is_invalid():
    body = "z = Sub(x, x) o = Div(x, z)"
    case = alike(model("int32[2] x", "int32[2] o", body))
    assert judge(case, EXACT, 0).outcome is Outcome.INVALID
    assert judge(Case(model("float[2] x", "float[2] o", "o = Transpose<perm = [0, 1]>(x)"), case.right), EXACT, 0).outcome is Outcome.INVALID


def test_what_is_random_is_undecided():
    case = alike(model(floats("x"), OUT, "o = RandomNormalLike(x)"))
    verdict = judge(case, EXACT, 0)
    assert verdict.outcome is Outcome.UNDECIDED
    assert explain(verdict) == "undecided: RandomNormalLike is random, has a body, or is not known"


def test_what_is_never_a_number_is_undecided():
    verdict = judge(alike(model(floats("x"), OUT, "a = Abs(x) b = Neg(a) c = Sub(b, u) o = Log(c)", "float u = {1}")), REAL, 0)
    assert explain(verdict) == "undecided: no values decide anything of o"


def test_strings_are_undecided():
    verdict = judge(alike(model("string[2] x", "string[2] o", "o = Identity(x)")), EXACT, 0)
    assert explain(verdict) == "undecided: no values are drawn of the type string"


def test_what_no_engine_computes_is_undecided(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise Unsupported("no runtime takes it")

    monkeypatch.setattr(foreign, "compute", refuse)
    case = alike(model("float[1,1,4,4] x, float[1,2,2,2] g", "float[1,1,2,2] o", "o = GridSample(x, g)"))
    assert judge(case, EXACT, 0).outcome is Outcome.UNDECIDED


def test_numbers_too_small_to_be_held_decide_nothing():
    inputs, output = "double[4,4] x", "double[1,1] o"
    body = "a = Exp(x) o = ReduceProd(a)"
    right = Case(model(inputs, output, body), model(inputs, output, "s = ReduceSum(x) o = Exp(s)"))
    wrong = Case(right.left, model(inputs, output, "a = Exp(x) o = ReduceSum(a)"))
    for seed in range(60):
        verdict = judge(right, REAL, seed)
        assert verdict.outcome is Outcome.EQUAL, f"seed {seed}: {explain(verdict)}"
        assert judge(wrong, REAL, seed).outcome is Outcome.DIFFERENT


def test_a_number_that_an_overflow_made_zero_decides_nothing():
    """Exp(y) overflows in double precision where y is far from x, and the quotient is 0."""
    fixed = "x = Constant<value_float = 88.38788>()"
    quotient, power = (model("float[1] y", "float[1] o", f"{fixed} {text}") for text in ("a = Exp(x) b = Exp(y) o = Div(a, b)", "d = Sub(x, y) o = Exp(d)"))
    case = Case(quotient, power)
    for seed in range(100):
        verdict = judge(case, REAL, seed)
        assert verdict.outcome is Outcome.EQUAL, f"seed {seed}: {explain(verdict)}"


@pytest.mark.parametrize("factor", [np.inf, -np.inf, np.nan])
def test_an_infinite_factor_of_an_empty_sum_decides_nothing(factor: float):
    """It is read outside of the sum, and not in its terms."""
    texts = ("z = MatMul(a, b) o = Mul(z, f)", "s = Mul(a, f) o = MatMul(s, b)")
    left, right = (model("float[2, 0] a, float[0, 3] b", "float[2, 3] o", text) for text in texts)
    for side in (left, right):
        side.graph.initializer.append(numpy_helper.from_array(np.array(factor, np.float32), "f"))
    for case in (Case(left, right), Case(right, left)):
        assert judge(case, REAL, 0).outcome is Outcome.UNDECIDED


def test_a_nan_is_no_number_that_vanished():
    """A number beside elements that are no number on either side decides, and so does a number
    where the other side has none.
    """
    case = Rule(REAL, floats("x"), OUT, "a = Log(x) o = Exp(a)", "o = Identity(x)").case
    for seed in SEEDS:
        for label in (REAL, FINITE):
            verdict = judge(case, label, seed)
            assert (verdict.outcome, verdict.kind) == (Outcome.DIFFERENT, Kind.VALUE), explain(verdict)


def test_the_largest_of_nothing_is_less_than_any_number():
    for dtype in ("float", "float16", "int32", "uint8"):
        inputs, output = f"{dtype}[2,0] x, {dtype} c", f"{dtype}[2,1] o"
        axes = "axes = Constant<value = int64[1] {1}>()"
        left, other = (model(inputs, output, f"{axes} {text}") for text in ("a = Max(x, c) o = ReduceMax(a, axes)", "a = ReduceMax(x, axes) o = Max(a, c)"))
        verdict = judge(Case(left, other), EXACT, 0)
        assert (verdict.outcome, verdict.kind) == (Outcome.DIFFERENT, Kind.VALUE)


# --- polynomials: the judge against arithmetic of unbounded integers ---

Expression: TypeAlias = "str | tuple[str, Expression, Expression]"

LEAVES = ["x", "y", "z"]
EXPRESSIONS: st.SearchStrategy[Expression] = st.recursive(
    st.sampled_from(LEAVES), lambda inner: st.tuples(st.sampled_from(["Add", "Sub", "Mul"]), inner, inner), max_leaves=7
)
POINTS = [(3, 5, 7), (-2, 11, 4), (6, -1, -9), (13, 8, 2)]


def value(expression: Expression, point: tuple[int, ...]) -> int:
    if isinstance(expression, str):
        return point[LEAVES.index(expression)]
    operator, left, right = expression
    a, b = value(left, point), value(right, point)
    return a + b if operator == "Add" else a - b if operator == "Sub" else a * b


def body(expression: Expression, lines: list[str]) -> str:
    if isinstance(expression, str):
        return expression
    operator, left, right = expression
    operands = body(left, lines), body(right, lines)
    lines.append(f"t{len(lines)} = {operator}({', '.join(operands)})")
    return f"t{len(lines) - 1}"


def side(expression: Expression) -> str:
    lines: list[str] = []
    root = body(expression, lines)
    return " ".join([*lines, f"o = Identity({root})"])


def rewritten(expression: Expression, choose: st.DataObject) -> Expression:
    """An expression that is equal for all integers."""
    if isinstance(expression, str):
        return expression
    operator, left, right = expression[0], rewritten(expression[1], choose), rewritten(expression[2], choose)
    forms: list[Expression] = [(operator, left, right)]
    if operator != "Sub":
        forms.append((operator, right, left))
        if isinstance(left, tuple) and left[0] == operator:
            forms.append((operator, left[1], (operator, left[2], right)))
    if operator == "Mul" and isinstance(left, tuple) and left[0] != "Mul":
        forms.append((left[0], ("Mul", left[1], right), ("Mul", left[2], right)))
    return choose.draw(st.sampled_from(forms))


@given(EXPRESSIONS, st.data(), st.sampled_from(["float", "double", "int8", "uint16", "int64"]))
@settings(max_examples=60)
def test_equal_polynomials_are_equal(expression: Expression, choose: st.DataObject, dtype: str):
    other = rewritten(expression, choose)
    inputs, output = floats(*LEAVES, dtype=dtype), f"{dtype}[2,3] o"
    verdict = judge(Case(model(inputs, output, side(expression)), model(inputs, output, side(other))), REAL, 1)
    assert verdict.outcome is Outcome.EQUAL, f"{expression} and {other}: {explain(verdict)}"


@given(EXPRESSIONS, EXPRESSIONS, st.sampled_from(["float", "double", "int32"]))
@settings(max_examples=60)
def test_other_polynomials_are_refuted(one: Expression, two: Expression, dtype: str):
    assume(any(value(one, point) != value(two, point) for point in POINTS))
    inputs, output = floats(*LEAVES, dtype=dtype), f"{dtype}[2,3] o"
    verdict = judge(Case(model(inputs, output, side(one)), model(inputs, output, side(two))), REAL, 1)
    assert verdict.outcome is Outcome.DIFFERENT, f"{one} and {two}"


def test_a_subnormal_number_is_disturbed_by_its_own_units() -> None:
    """The last place of 1e-5 in float16 is far more than a share of the number."""
    number = np.array([1e-5, 1.0], np.float16)
    moves = [FixedNumberNoise(np.random.default_rng(seed), 4.0).constant(number) - number.astype(np.float64) for seed in range(50)]
    subnormal, usual = np.abs(moves).max(axis=0)
    assert 2 * 2**-24 < subnormal <= 4 * 2**-24
    assert 2 * 2**-10 < usual <= 4 * 2**-10


def test_no_disturbance_follows_the_last_one_that_is_needed(monkeypatch: pytest.MonkeyPatch):
    explain_all, disturbed, open_then = Sides.explain, sides.outputs, list[bool]()
    differences: list[Difference] = []

    def noted(program: Any, feeds: Any, noise: Any) -> Any:
        open_then.append(any(difference.unexplained.any() for difference in differences))
        return disturbed(program, feeds, noise)

    def explained(both: Sides, feeds: Any, found: Sequence[Difference], seed: Any) -> None:
        differences[:] = found
        explain_all(both, feeds, found, seed)

    monkeypatch.setattr(sides, "outputs", noted)
    monkeypatch.setattr(Sides, "explain", explained)
    for name in REALS:
        assert judge(RIGHT[name].case, REAL, 0).outcome is Outcome.EQUAL
    assert open_then and all(open_then)


def test_values_without_special_ones_run_only_where_special_ones_tell_the_sides_apart(monkeypatch: pytest.MonkeyPatch):
    tried, runs = _counted(monkeypatch, specials, "refuting"), _counted(monkeypatch, specials, "run_both")
    for name in REALS:
        assert judge(RIGHT[name].case, REAL, 0).outcome is Outcome.EQUAL
    assert 0 < len(tried) <= len(runs) < 1.5 * len(tried)


def test_runtimes_run_what_may_round_and_no_moves(monkeypatch: pytest.MonkeyPatch):
    opened = _counted(monkeypatch, runtime_sides, "_both")
    moved = Rule(EXACT, "float[2,3] x", "float[3,2] o", "o = Transpose(x)", "t = Transpose(x) o = Identity(t)")
    turned = Rule(EXACT, "float[2,3] x", "float[3,2] o", "n = Neg(x) o = Transpose(n)", "t = Transpose(x) o = Neg(t)")
    for rule, sessions in ((moved, 0), (turned, 1)):
        assert judge(rule.case, EXACT, 0).outcome is Outcome.EQUAL
        assert len(opened) == sessions


REALS = [name for name in RIGHT if RIGHT[name].label is REAL]


def _counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[None]:
    """One item for each call of a function from now on."""
    function, calls = getattr(owner, name), list[None]()

    def noted(*arguments: Any) -> Any:
        calls.append(None)
        return function(*arguments)

    monkeypatch.setattr(owner, name, noted)
    return calls
