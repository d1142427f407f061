"""Rules in the e-graph: matches, firings, values that no rule may join, and wrong rules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import eqsat
from eqsat.language.library import built_in, load
from eqsat.pipeline import Result
from eqsat.verification.blame import guilty
from tests.support.growing_rules import ASSOCIATE, PAIRS
from tests.support.models import operators, parse

AFFINE = """
# Two additions of constants are one.
real rule sums:
    Add(Add(x, c1), c2) => Add(x, Add(c1, c2))
    where const c1, const c2
    test x: T[2, 3], c1: T[3], c2: T[]
"""

NEGATION = """
# Two signs are none.
exact rule signs:
    Neg(Neg(x)) => x
    test x: T[2, 3]
"""


def optimized(model: onnx.ModelProto, rules: str, **options: object) -> Result:
    """Returns the model optimized by these rules alone."""
    names = [resolved.rule.name for resolved in load([rules]).rules]
    return eqsat.optimize(model, rules=[rules], only=names, target="launches", **options)  # type: ignore[arg-type]


def fired(result: Result) -> dict[str, int]:
    return {rule["name"]: rule["matches"] for rule in result.report["rules"] if rule["matches"]}


def random(model: onnx.ModelProto, **shapes: tuple[int, ...]) -> onnx.ModelProto:
    """Returns the model with random initializers."""
    generator = np.random.default_rng(0)
    for name, shape in shapes.items():
        model.graph.initializer.append(numpy_helper.from_array(generator.uniform(0.5, 1.5, shape).astype(np.float32), name))
    return model


@pytest.mark.parametrize("text", ["a = Add(x, k) y = Add(a, l)", "a = Add(k, x) y = Add(a, l)", "a = Add(x, k) y = Add(l, a)", "a = Add(k, x) y = Add(l, a)"])
def test_operands_match_in_either_order(text: str) -> None:
    result = optimized(random(parse(f"g (float[2, 3] x) => (float[2, 3] y) {{ {text} }}"), k=(3,), l=(2, 3)), AFFINE)
    assert operators(result.model) == {"Add": 1}
    assert result.report["verify"]["status"] == "equal"


def test_long_chains_end_as_one_node() -> None:
    operands = [(f"v{i}", f"k{i}") if i % 2 else (f"k{i}", f"v{i}") for i in range(12)]
    lines = " ".join(f"v{i + 1} = Add({left}, {right})" for i, (left, right) in enumerate(operands))
    model = random(parse(f"g (float[N, 3] v0) => (y) {{ {lines} y = Relu(v12) }}"), **{f"k{i}": (3,) for i in range(12)})
    result = optimized(model, AFFINE)
    assert operators(result.model) == {"Add": 1, "Relu": 1}


def test_only_constants_are_merged_where_the_rule_says_so() -> None:
    result = optimized(parse("g (float[3] x, float[3] k, float[3] l) => (float[3] y) { a = Add(x, k) y = Add(a, l) }"), AFFINE)
    assert not fired(result)


def test_a_chain_whose_middle_is_an_output_keeps_it() -> None:
    model = random(parse("g (float[3] x) => (float[3] a, float[3] y) { a = Add(x, k) y = Add(a, l) }"), k=(3,), l=(3,))
    result = optimized(model, AFFINE)
    assert result.report["verify"]["status"] == "equal"
    assert [value.name for value in result.model.graph.output] == ["a", "y"]


def test_exact_lets_rules_of_real_arithmetic_fire_on_integers_only() -> None:
    floats = random(parse("g (float[3] x) => (float[3] y) { a = Add(x, k) y = Add(a, l) }"), k=(3,), l=(3,))
    integers = parse("g (int32[3] x) => (int32[3] y) <int32[3] k = {1, 2, 3}, int32[3] l = {4, 5, 2147483647}> { a = Add(x, k) y = Add(a, l) }")
    assert not fired(optimized(floats, AFFINE, exact=True))
    result = optimized(integers, AFFINE, exact=True)
    assert fired(result) == {"sums": 2} or fired(result) == {"sums": 1}
    assert result.report["verify"]["status"] == "equal"
    assert fired(optimized(parse("g (float[3] x) => (float[3] y) { a = Neg(x) y = Neg(a) }"), NEGATION, exact=True))


WRONG_VALUE = """
# Wrong on purpose.
real rule halves:
    Relu(Neg(x)) => Relu(x)
    test x: T[2, 3]
"""


def test_a_wrong_rule_is_found_named_and_dropped() -> None:
    model = parse("g (float[4] x) => (float[4] y, float[4] z) { a = Neg(x) y = Relu(a) b = Neg(y) c = Neg(b) z = Exp(c) }")
    result = optimized(model, WRONG_VALUE + NEGATION)
    assert result.report["verify"]["status"] == "equal"
    assert {rule["name"] for rule in result.report["rules"] if rule.get("dropped")} == {"halves"}
    assert any("halves" in note for note in result.report["notes"])
    # The correct rule still takes effect.
    assert operators(result.model) == {"Neg": 1, "Relu": 1, "Exp": 1}


def test_a_side_of_another_type_is_never_joined() -> None:
    rules = """
# Wrong on purpose: the right side has another rank.
real rule ranks:
    Relu(x) => Unsqueeze(Relu(x), [0])
    test x: T[2, 3]
"""
    result = optimized(parse("g (float[4] x) => (float[4] y) { y = Relu(x) }"), rules)
    assert any("ranks" in note and "wrong" in note for note in result.report["notes"])
    assert operators(result.model) == {"Relu": 1}


def test_a_side_that_onnx_rejects_does_not_fire() -> None:
    rules = """
# True, and legal only where the shift's type is: BitShift takes unsigned integers.
exact rule shifts:
    Mul(x, 2) => BitShift<direction = "LEFT">(x, T(1))
    where x: T
    test x: uint8[2, 3]
"""
    signed = optimized(parse("g (int32[4] x) => (int32[4] y) <int32 two = {2}> { y = Mul(x, two) }"), rules)
    unsigned = optimized(parse("g (uint32[4] x) => (uint32[4] y) <uint32 two = {2}> { y = Mul(x, two) }"), rules)
    assert not fired(signed) and not signed.report["notes"]
    assert fired(unsigned) == {"shifts": 1}


def test_guilty_rules_are_found_by_bisection() -> None:
    names = [f"r{i}" for i in range(20)]
    assert guilty(names, lambda kept: "r7" in kept) == ["r7"]
    assert guilty(names, lambda kept: "r3" in kept or ("r7" in kept and "r11" in kept)) == ["r3", "r11"]
    assert guilty(names, lambda kept: True) is None
    assert guilty([], lambda kept: False) == []


@pytest.mark.slow
def test_growth_is_bounded() -> None:
    """A rule that fires on its own results forever ends at a limit, with a valid result."""
    rules = PAIRS + ASSOCIATE
    outputs = ", ".join(f"float[2, 3] y{i}" for i in range(12))
    products = " ".join(f"y{i} = MatMul(x, w{i})" for i in range(12))
    sums = " ".join(f"s{i + 1} = Add({f's{i}' if i else 'y0'}, y{i + 1})" for i in range(11))
    model = random(parse(f"g (float[2, 4] x) => ({outputs}, s11) {{ {products} {sums} }}"), **{f"w{i}": (4, 3) for i in range(12)})
    result = optimized(model, rules)
    assert result.report["limits"]["hit"] in ("matches", "rounds")
    assert result.report["verify"]["status"] == "equal"
    assert result.report["saturation"]["nodes"] < 20_000
    again = optimized(model, rules)
    assert again.model.SerializeToString() == result.model.SerializeToString()


def test_rules_meet_operators_that_other_rules_make() -> None:
    """A rule enters the program once its operators are there.

    Here a size-preserving rule and a growing rule make them.
    """
    rules = """
# Turns of a sign.
real rule first:
    Neg(x) => Mul(x, T(-1.0))
    where x: T[.._]
    test x: T[2, 3]

# A product by a constant and its sum with the factor.
real rule second:
    Relu(Mul(x, c)) => Relu(Sub(Mul(x, c), T(0.0)))
    where x: T[.._], const c
    test x: T[2, 3], c: T[]

# No less.
real rule third:
    Relu(Sub(x, 0.0)) => Max(x, T(0.0))
    where x: T[.._]
    test x: T[2, 3]
"""
    result = optimized(parse("g (float[2, 3] x) => (float[2, 3] y) { a = Neg(x) y = Relu(a) }"), rules)
    assert set(fired(result)) == {"first", "second", "third"}


def test_a_class_that_holds_itself_is_not_taken_apart_without_end() -> None:
    """If x is the Concat of nothing and itself, flattening it never ends.

    It becomes the Concat of nothing, nothing and itself, and so on.
    """
    result = eqsat.optimize(parse("g (float[0] e, float[4] x) => (float[4] y) { a = Concat<axis = 0>(e, x) b = Concat<axis = 0>(e, a) y = Relu(b) }"))
    assert operators(result.model) == {"Relu": 1}
    assert result.report["saturation"]["iterations"] < 500


def parted(size: int, places: Sequence[int]) -> onnx.ModelProto:
    """A model that takes a tensor of `size` rows apart at each of the places, and puts it together."""
    stored = ", ".join(f"int64[1] i{place} = {{{place}}}" for place in (0, *places, size))
    nodes = "a0 = Abs(x)"
    for number, place in enumerate(places):
        nodes += f" f{number} = Slice(a{number}, i0, i{place}, i0) l{number} = Slice(a{number}, i{place}, i{size}, i0)"
        nodes += f" c{number} = Concat<axis = 0>(f{number}, l{number}) a{number + 1} = Exp(c{number})"
    return parse(f"g (float[{size}, 3] x) => (float[{size}, 3] y) <{stored}> {{ {nodes} y = Sin(a{len(places)}) }}")


def test_nodes_that_change_nothing_merge_with_nothing() -> None:
    """Indices of more elements than facts hold are never known to be all. A Gather by them is in the class
    of its own input. Merged with itself it would be another one, and each pair of those again.
    """
    result = eqsat.optimize(parted(785, (100, 200, 300, 400)))
    assert operators(result.model) == {"Abs": 1, "Exp": 4, "Sin": 1}
    assert result.report["limits"]["hit"] is None and result.report["verify"]["status"] == "equal"


def test_the_library_is_compiled_once() -> None:
    base = built_in()
    one, other = (base.select(("algebra",), ()), base.select((), ("algebra",)))
    assert load([], base) is base
    name = one.rules[0].rule.name
    (first, *_) = (compiled for compiled in one.compiled if compiled.rule.name == name)
    assert any(compiled is first for compiled in base.compiled) and not any(compiled is first for compiled in other.compiled)
    mine = load(["\n" + NEGATION], base)
    assert any(compiled is first for compiled in mine.compiled) and base.group_of.keys() < mine.group_of.keys()


@pytest.mark.parametrize("opset", [7, 9, 11, 12, 13, 17, 18, 21, 23])
def test_one_rule_works_on_models_of_every_opset(opset: int) -> None:
    """Old opsets have axes as attributes; in the e-graph, and to rules, they are inputs."""
    rules = """
# Adding axes and removing the same ones changes nothing.
exact rule there-and-back:
    Squeeze(Unsqueeze(x, axes), axes) => x
    test x: T[2, 3], axes = [1]

# A sum over two sets of axes, one after the other.
real rule sum-of-sums:
    ReduceSum<keepdims = 1>(ReduceSum<keepdims = 1>(x, a), b) => ReduceSum<keepdims = 1>(x, sorted(a + b))
    where all([not (i in a) for i in b]), len(a) > 0, len(b) > 0
    test x: T[2, 3, 4], a = [0], b = [2]
"""
    attribute = opset < 13
    axes = "<axes = [1]>(x)" if attribute else "(x, ax)"
    back = "<axes = [-2]>(a)" if 11 <= opset < 13 else "<axes = [1]>(a)" if attribute else "(a, ax)"
    sums = "c = ReduceSum<axes = [0]>(b) y = ReduceSum<axes = [1]>(c)" if attribute else "c = ReduceSum(b, zero) y = ReduceSum(c, ax)"
    stored = "" if attribute else "<int64[1] ax = {1}, int64[1] zero = {0}>"
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[2, 3] x) => (float[1, 1] y) {stored} {{ a = Unsqueeze{axes} b = Squeeze{back} {sums} }}'
    result = optimized(onnx.parser.parse_model(text), rules)
    assert operators(result.model) == {"ReduceSum": 1}
    assert result.report["verify"]["status"] == "equal"
    assert result.model.opset_import[0].version == opset


def test_rules_come_from_files_and_are_chosen_by_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.rules"
    path.write_text(NEGATION)
    model = parse("g (float[4] x) => (float[4] y) { a = Neg(x) b = Neg(a) y = Relu(b) }")
    assert operators(eqsat.optimize(model, rules=[path], only=["mine"]).model) == {"Relu": 1}
    assert operators(eqsat.optimize(model, rules=[str(path)], only=["signs"]).model) == {"Relu": 1}
    assert "signs" not in fired(eqsat.optimize(model, rules=[path], skip=["mine"]))
    with pytest.raises(eqsat.InputError, match="did you mean signs"):
        eqsat.optimize(model, rules=[path], skip=["sings"])
    with pytest.raises(eqsat.InputError, match="can not read"):
        eqsat.optimize(model, rules=[tmp_path / "missing.rules"])


def test_needed_says_which_rules_the_result_needs() -> None:
    model = parse("g (float[4] x) => (float[4] y) { a = Neg(x) b = Neg(a) y = Relu(b) }")
    result = optimized(model, NEGATION, needed=True)
    assert [(rule["name"], rule["needed"]) for rule in result.report["rules"]] == [("signs", True)]
    assert optimized(model, NEGATION).report["rules"][0]["needed"] is None


def test_constants_that_rules_make_are_computed_in_double_and_rounded_once() -> None:
    rules = """
# A product of sums of constants.
real rule constants:
    Mul(Mul(Mul(x, c1), c2), c3) => Mul(x, Mul(Mul(c1, c2), c3))
    where const c1, const c2, const c3
    test x: T[2], c1: T[2], c2: T[2], c3: T[2]
"""
    model = random(parse("g (float[50] x) => (float[50] y) { a = Mul(x, p) b = Mul(a, q) y = Mul(b, r) }"), p=(50,), q=(50,), r=(50,))
    stored = {tensor.name: numpy_helper.to_array(tensor).astype(np.float64) for tensor in model.graph.initializer}
    result = optimized(model, rules)
    (tensor,) = result.model.graph.initializer
    expected = (stored["p"] * stored["q"] * stored["r"]).astype(np.float32)
    np.testing.assert_array_equal(numpy_helper.to_array(tensor), expected)


def test_rules_see_named_sizes() -> None:
    rules = """
# Two shapes are the last one.
exact rule shapes:
    Reshape(Reshape(x, _), t) => Reshape(x, t)
    where not (-1 in t)
    test x: T[2, 6], t = [12]
"""
    text = "g (float[N, 6] x) => (y) <int64[3] s = {0, 2, 3}, int64[2] t = {0, 6}> { a = Reshape(x, s) b = Reshape(a, t) y = Relu(b) }"
    result = optimized(parse(text), rules)
    assert result.report["verify"]["status"] == "equal"
    assert operators(result.model)["Reshape"] == 1


def test_the_rest_of_a_list_has_a_length_and_types() -> None:
    """A condition on `..rest` never held, because nothing bound the name."""
    rule = (
        "exact rule concat-three:\n    Concat<axis = a>(x, ..rest) => Neg(Neg(Concat<axis = a>(x, ..rest)))\n"
        "    where len(rest) == 2, all([dim(y, 0) == 1 for y in rest])\n    test x: T[2, 3], rest: T[1, 3] T[1, 3], a = 0\n"
    )
    joined = "g (float[2, 3] x, float[1, 3] y, float[{0}, 3] z) => (float[N, 3] w) {{ j = Concat<axis = 0>(x, y, z)  w = Relu(j) }}"
    for size, fired in ((1, True), (2, False)):
        report = eqsat.optimize(parse(joined.format(size)), rules=[rule]).report
        assert ("concat-three" in {found["name"] for found in report["rules"]}) is fired


@pytest.mark.parametrize(
    "text",
    [
        """angles (float[1, N, 4] x) => (float[1, N, 4] y) {
            one = Constant <value = float {1.0}> ()
            c = Cos (x)
            factor = CastLike (one, x)
            y = Mul (c, factor)
        }""",
        """halves (float[N, 40] x) => (float[N, 80] y) {
            one = Constant <value = float {1.0}> ()
            twice = Concat <axis = 1> (x, x)
            y = Mul (twice, one)
        }""",
    ],
)
def test_a_factor_of_one_is_known_however_it_is_written(text: str) -> None:
    """A factor of unknown value would make x = x * c, then x = x * (c * c), and so on."""
    assert eqsat.optimize(parse(text)).report["saturation"]["nodes"] < 100
