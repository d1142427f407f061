"""Sizes: every operation agrees with integers, forms are normal, and work is bounded."""

import math
import pickle
from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eqsat.facts.dims import (
    INT64_MAX,
    TERM_LIMIT,
    Dim,
    Poly,
    add,
    bounds,
    ceildiv,
    equal,
    evaluate,
    exact_divide,
    floordiv,
    maximum,
    minimum,
    mul,
    negate,
    nonnegative,
    plain,
    precision,
    product,
    promised,
    render,
    structure,
    sub,
    substitute,
    symbol,
    symbols,
    truncdiv,
)

N, M, H = symbol("N"), symbol("M"), symbol("H")
NAMES = ("N", "M", "?x.0")


def extend(children: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
    pairs = st.tuples(children, children)
    return st.one_of(
        pairs.map(lambda ab: add(*ab)),
        pairs.map(lambda ab: sub(*ab)),
        pairs.map(lambda ab: mul(*ab)),
        pairs.map(lambda ab: minimum(*ab)),
        pairs.map(lambda ab: maximum(*ab)),
        st.tuples(children, st.integers(-4, 9)).map(lambda ab: floordiv(*ab)),
        st.tuples(children, st.integers(1, 9)).map(lambda ab: ceildiv(*ab)),
    )


LEAVES = st.one_of(st.integers(-9, 9), st.sampled_from([symbol(name) for name in NAMES]))
DIMS = st.recursive(LEAVES, extend, max_leaves=8)
SIZES = st.fixed_dictionaries({name: st.integers(0, 40) for name in NAMES})


def at(value: Dim, sizes: Mapping[str, int]) -> int:
    result = evaluate(value, sizes)
    assert result is not None
    return result


@given(DIMS, DIMS, SIZES)
def test_operations_agree_with_integers(a: Dim, b: Dim, sizes: dict[str, int]) -> None:
    if a is None or b is None:
        return
    x, y = at(a, sizes), at(b, sizes)
    results = {add(a, b): x + y, sub(a, b): x - y, mul(a, b): x * y, minimum(a, b): min(x, y), maximum(a, b): max(x, y), negate(a): -x}
    for found, expected in results.items():
        assert found is None or at(found, sizes) == expected


@given(DIMS, st.integers(-12, 12), SIZES)
def test_quotients_by_integers(a: Dim, b: int, sizes: dict[str, int]) -> None:
    if a is None:
        return
    found = floordiv(a, b)
    if b == 0:
        assert found is None
    elif found is not None:
        assert at(found, sizes) == at(a, sizes) // b
    up = ceildiv(a, b)
    if b and up is not None:
        assert at(up, sizes) == -(-at(a, sizes) // b)
    cut = truncdiv(a, b)
    assert b or cut is None
    if cut is not None:
        assert at(cut, sizes) == int(Fraction(at(a, sizes), b))


@given(DIMS, DIMS, SIZES)
def test_quotients_by_sizes(a: Dim, b: Dim, sizes: dict[str, int]) -> None:
    if a is None or b is None or at(b, sizes) == 0:
        return
    quotient = Fraction(at(a, sizes), at(b, sizes))
    for found, expected in ((floordiv(a, b), math.floor(quotient)), (ceildiv(a, b), math.ceil(quotient)), (truncdiv(a, b), int(quotient))):
        result = evaluate(found, sizes)
        assert result is None or result == expected
    exact = exact_divide(mul(a, b), b)
    assert exact is None or at(exact, sizes) == at(a, sizes)


def test_a_promised_size_is_a_size_above_0() -> None:
    size, made_up = promised("N"), promised("?x.0")
    assert bounds(size) == (1, None) and bounds(mul(size, M)) == (0, None) and bounds(sub(mul(size, made_up), 1)) == (0, None)
    assert minimum(size, 1) == 1 and equal(size, 0) is False and equal(size, 1) is None and minimum(N, 1) != 1
    assert render(add(mul(size, 64), M)) == "N*64 + M" and [plain(name) for name in symbols(add(made_up, size, N))] == ["?x.0", "N", "N"]
    assert precision(size)[0] == precision(N)[0] < precision(made_up)[0] == precision(symbol("?x.0"))[0]


@given(DIMS, SIZES)
def test_bounds_hold(a: Dim, sizes: dict[str, int]) -> None:
    if a is None:
        return
    lower, upper = bounds(a)
    assert lower is None or lower <= at(a, sizes)
    assert upper is None or upper >= at(a, sizes)


@given(DIMS, DIMS, SIZES)
def test_equality_is_three_valued(a: Dim, b: Dim, sizes: dict[str, int]) -> None:
    verdict = equal(a, b)
    if a is not None and b is not None and verdict is not None:
        assert verdict == (at(a, sizes) == at(b, sizes))


@given(DIMS, DIMS, SIZES)
def test_substitution_commutes_with_evaluation(a: Dim, b: Dim, sizes: dict[str, int]) -> None:
    replaced = substitute(a, {"N": b})
    if a is None or b is None or replaced is None:
        return
    assert at(replaced, sizes) == at(a, {**sizes, "N": at(b, sizes)})


@given(DIMS, DIMS, DIMS)
def test_sums_and_products_have_one_form(a: Dim, b: Dim, c: Dim) -> None:
    assert add(a, b) == add(b, a)
    assert mul(a, b) == mul(b, a)
    if None not in (add(a, b), add(b, c), add(a, b, c)):
        assert add(add(a, b), c) == add(a, add(b, c)) == add(a, b, c)
    if None not in (mul(a, b), mul(b, c)) and mul(mul(a, b), c) is not None and mul(a, mul(b, c)) is not None:
        assert mul(mul(a, b), c) == mul(a, mul(b, c))


@given(DIMS)
def test_a_constant_is_an_integer(a: Dim) -> None:
    assert isinstance(a, int | Poly | None)
    if isinstance(a, Poly):
        assert symbols(a)
        assert pickle.loads(pickle.dumps(a)) == a


@given(DIMS, DIMS)
def test_structure_and_precision_tell_values_apart(a: Dim, b: Dim) -> None:
    assert (structure(a) == structure(b)) == (a == b)
    assert (precision(a) == precision(b)) == (a == b)


@pytest.mark.parametrize("value", [7, N, mul(N, 64), None])
def test_unknown_is_infectious(value: Dim) -> None:
    for operation in (add, sub, mul, floordiv, ceildiv, exact_divide, minimum, maximum):
        assert operation(value, None) is None
        assert operation(None, value) is None
    assert product([value, None]) is None
    assert product([value, None, 0]) == 0


def test_exact_quotients() -> None:
    assert floordiv(mul(N, 64), 64) == N
    assert floordiv(mul(N, 64), N) == 64
    assert exact_divide(mul(add(N, M), add(N, 2)), add(N, 2)) == add(N, M)
    assert exact_divide(add(N, 1), N) is None
    assert exact_divide(mul(N, 3), 2) is None
    assert exact_divide(0, N) == 0
    assert exact_divide(N, 0) is None


def test_strided_sizes_compare_by_structure() -> None:
    half = floordiv(add(H, 1), 2)
    assert half == ceildiv(H, 2)
    assert floordiv(add(mul(H, 3), 1), 2) == add(H, half)
    assert floordiv(add(half, 1), 2) == floordiv(add(H, 3), 4)
    assert floordiv(add(mul(H, 2), 1), 4) == floordiv(H, 2)


def test_integer_division_has_one_part_where_the_sign_is_known() -> None:
    assert truncdiv(sub(H, 1), 32) == floordiv(maximum(0, sub(H, 1)), 32)
    assert truncdiv(truncdiv(sub(H, 1), 2), 2) == truncdiv(sub(H, 1), 4)
    assert truncdiv(H, 2) == floordiv(H, 2)
    assert truncdiv(negate(H), 2) == negate(floordiv(H, 2))
    assert truncdiv(sub(H, 5), 2) == sub(floordiv(maximum(0, sub(H, 5)), 2), floordiv(maximum(0, sub(5, H)), 2))
    assert floordiv(minimum(H, 3), 4) == 0
    assert floordiv(add(mul(H, 4), minimum(H, 3)), 4) == H


def test_extremes_are_simplified() -> None:
    assert minimum(N, add(N, 3)) == N
    assert maximum(0, minimum(5, N)) == minimum(N, 5)
    assert maximum(minimum(N, M), N) == N
    assert minimum(floordiv(add(H, 1), 2), floordiv(H, 2)) == floordiv(H, 2)
    assert maximum(N, maximum(M, 3)) == maximum(maximum(3, N), M)


def test_signs_are_known_only_where_proved() -> None:
    assert nonnegative(sub(N, floordiv(N, 2)))
    assert nonnegative(sub(N, minimum(5, N)))
    assert not nonnegative(sub(N, 1))
    assert equal(N, add(N, 1)) is False
    assert equal(N, M) is None
    assert equal(add(N, 2), 1) is False


def test_what_grows_too_large_is_unknown() -> None:
    assert add(INT64_MAX, 1) is None
    assert mul(mul(N, 2**40), 2**40) is None
    power: Dim = 1
    for _ in range(7):
        power = mul(power, N)
    assert power is None
    assert add(*(symbol(f"d{index}") for index in range(TERM_LIMIT))) is not None
    assert add(*(symbol(f"d{index}") for index in range(TERM_LIMIT + 1))) is None


def test_extremes_of_the_largest_integers_are_integers() -> None:
    assert maximum(0, -(2**63)) == 0
    assert minimum(INT64_MAX, -(2**63), 5) == -(2**63)
    assert evaluate(maximum(0, sub(N, 2**63 - 1)), {"N": 3}) == 0


def test_work_is_bounded_however_deep() -> None:
    value: Dim = N
    other: Dim = N
    for index in range(2000):
        value = floordiv(add(maximum(value, index % 7), 1), 2)
        other = minimum(maximum(add(other, M), 3), add(N, index))
    assert value is None
    assert other is None


def test_rendering() -> None:
    assert render(add(mul(N, 64), M)) == "M + N*64"
    assert render(sub(mul(N, M), 2)) == "M*N - 2"
    assert render(negate(N)) == "-N"
    assert render(floordiv(add(H, 1), 2)) == "((H + 1)//2)"
    assert render(maximum(0, sub(N, 5))) == "max(0, N - 5)"
    assert render(None) == "?"


def test_names_that_look_like_formulas_stay_apart() -> None:
    assert symbol("N*2") != mul(N, 2)
    assert structure(symbol("N*2")) != structure(mul(N, 2))


@settings(max_examples=20)
@given(st.permutations(["N", "M", "K", "H"]))
def test_the_order_of_operands_does_not_show(names: list[str]) -> None:
    dims = [symbol(name) for name in names]
    assert render(add(*dims)) == "H + K + M + N"
    assert minimum(*dims) == minimum(*sorted(dims, key=structure))
