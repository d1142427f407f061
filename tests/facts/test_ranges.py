"""Ranges: their arithmetic, those of operators, and proof that the fuzzer finds wrong ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto

from eqsat.facts import inference, product_ranges, quantized_ranges
from eqsat.facts.element_ranges import ELEMENT_RANGES
from eqsat.facts.fact import Fact, from_array, merge
from eqsat.facts.intervals import Range, add, everything, hull, made, meet, multiply, outward
from eqsat.facts.known_ranges import known_range
from eqsat.facts.node import Node
from eqsat.facts.ranges import RANGES
from tests.fuzz import facts
from tests.fuzz.facts import stated
from tests.fuzz.facts_draw import Draw
from tests.fuzz.facts_models import Drawn
from tests.fuzz.facts_products import product_program
from tests.fuzz.facts_ranges import ranged_program
from tests.support.models import parse, run

FLOAT, FLOAT16, BFLOAT16, DOUBLE = (int(TensorProto.DataType.Value(name)) for name in ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE"))
INT8, INT64, UINT8, BOOL = (int(TensorProto.DataType.Value(name)) for name in ("INT8", "INT64", "UINT8", "BOOL"))
INF = math.inf

ENDS = st.sampled_from([-INF, -3.5, -1.0, -0.0, 0.0, 0.25, 1.0, 7.0, INF])
INTERVALS = st.tuples(ENDS, ENDS).map(lambda ends: (min(ends), max(ends)))


def ranges(text: str) -> dict[str, Range | None]:
    """Returns the known range of each value of a model."""
    found = stated(parse(text))
    assert not isinstance(found, str), found
    return {name: known_range(fact) for name, fact in found.items()}


@given(INTERVALS, INTERVALS, st.floats(0, 1), st.floats(0, 1))
def test_sums_and_products_stay_within_their_ends(a: tuple[float, float], b: tuple[float, float], s: float, t: float) -> None:
    x, y = (min(max(low, -9.0) + share * (min(high, 9.0) - max(low, -9.0)), high) for (low, high), share in ((a, s), (b, t)))
    if not (a[0] <= x <= a[1] and b[0] <= y <= b[1]):
        return
    for transfer, value in ((add, x + y), (multiply, x * y)):
        found = made(FLOAT, transfer([a, b]), None, True)
        assert math.isnan(value) or found is None or found.low <= np.float32(value) <= found.high


@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16, FLOAT, DOUBLE])
@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_is_outward(dtype: int, value: float) -> None:
    low, high = outward(dtype, value, -INF), outward(dtype, value, INF)
    assert low <= value <= high
    assert outward(dtype, low, -INF) == low
    assert outward(dtype, high, INF) == high


def test_a_bound_beyond_all_floats_is_rounded_outward() -> None:
    huge = Fraction(2) ** 5000
    assert (outward(DOUBLE, huge, INF), outward(DOUBLE, -huge, -INF)) == (INF, -INF)
    assert (outward(FLOAT, huge, -INF), outward(FLOAT, -huge, INF)) == (float(np.finfo(np.float32).max), float(np.finfo(np.float32).min))


def test_integers_that_may_wrap_have_no_bounds() -> None:
    assert made(INT8, (100, 130), (100, 130), False) is None
    assert made(INT8, (100, 120), (100, 120), False) == Range(100, 120, 100, 120, False)
    assert made(UINT8, (0, 255), (0, 255), False) is None


def test_a_merged_range_is_in_both() -> None:
    a, b = Fact(FLOAT, range=Range(0.0, INF, 0.0, INF, True)), Fact(FLOAT, range=Range(-1.0, 1.0, -1.5, 1.5, False))
    assert merge(a, b).range == merge(b, a).range == Range(0.0, 1.0, 0.0, 1.5, False) == meet(b.range or a.range, a.range or b.range)  # type: ignore[arg-type]
    assert merge(a, Fact(FLOAT)).range == a.range


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (np.array([1, -2], np.int64), Range(-2, 1, -2, 1, False)),
        (np.full((100,), 3, np.uint8), Range(3, 3, 3, 3, False)),
        (np.array([1, np.nan], np.float32), Range(1.0, 1.0, 1.0, 1.0, True)),
        (np.array([np.nan], np.float32), Range(-INF, INF, -INF, INF, True)),
        (np.array([True]), Range(1, 1, 1, 1, False)),
        (np.zeros((0,), np.float32), Range(-INF, INF, -INF, INF, True)),
    ],
)
def test_constants_have_the_range_of_their_elements(array: np.ndarray, wanted: Range) -> None:
    assert known_range(from_array(array)) == wanted


MOST = float(np.finfo(np.float32).max)
TINY = float(np.finfo(np.float32).tiny)
HALF = float(np.finfo(np.float16).max)


@pytest.mark.parametrize("count", [5, 8, 64, 65, 1 << 13])
@pytest.mark.parametrize(
    ("ends", "dtype", "wanted"),
    [
        ((0.25, 0.5), np.float32, Range(TINY, 1.0, TINY, 1.0, False)),
        ((-0.3, 0.0), np.float32, Range(-1.0, 0.0, -1.0, 0.0, False)),
        ((0.0, 7.0), np.float32, Range(0.0, MOST, 0.0, MOST, False)),
        ((-2.0, 1.0), np.float16, Range(-HALF, 1.0, -HALF, 1.0, False)),
        ((1.0, INF), np.float32, Range(1.0, INF, 1.0, INF, False)),
        ((-INF, INF), np.float32, Range(-INF, INF, -INF, INF, False)),
        ((1e-40, np.nan), np.float32, Range(0.0, TINY, 0.0, TINY, True)),
    ],
)
def test_larger_constants_have_a_coarse_range(count: int, ends: tuple[float, float], dtype: type, wanted: Range) -> None:
    """Its ends are of few kinds, so that most layers of a network have equal facts."""
    assert known_range(from_array(np.resize(np.array(ends, dtype), count))) == wanted


def test_no_elements_are_searched_for_the_range_of_large_weights() -> None:
    assert known_range(from_array(np.resize(np.array([0.25, 0.5], np.float32), (1 << 13) + 1))) == everything(FLOAT)


def test_what_has_no_numbers_has_no_range() -> None:
    assert known_range(from_array(np.array(["a"], object))) is None
    assert known_range(Fact()) is None
    assert everything(int(TensorProto.STRING)) is None


def test_kernels_that_leave_the_mathematical_range_have_a_wider_one() -> None:
    found = ranges("g (float[N, 4] x) => (float[N, 4] y) { y = Sigmoid(x)  c = Ceil(y)  t = Tanh(x) }")
    assert found["y"] is not None and found["y"].real == (0, 1) and found["y"].least == 0 and 1 < found["y"].most < 1.001
    assert found["c"] is not None and found["c"].real == (0, 1) and found["c"].most == 2
    assert found["t"] is not None and found["t"].least < -1


def test_ranges_pass_what_only_moves_elements() -> None:
    found = ranges(
        """g (float[N, 4] x, float[2, 2] z) => (float[N, 4] y) <int64[2] s = {4, -1}, float[2] c = {0.5, 2}> {
        r = Relu(x)  t = Transpose(r)  u = Reshape(t, s)  v = Concat<axis = 0>(u, u)  k = Exp(z)  p = Mul(k, c)  y = Neg(r) }"""
    )
    assert all(found[name] == Range(0.0, INF, 0.0, INF, True) for name in "rtuvp")
    assert found["y"] == Range(-INF, 0.0, -INF, 0.0, True)


def test_nan_is_known_to_be_absent_behind_casts_of_integers_only() -> None:
    found = ranges(
        """g (float[N, 4] x, int8[N, 4] i) => (float[N, 4] y) {
        y = Cast<to = 1>(i)  t = Tanh(y)  q = Div(t, y)  z = Relu(x)  k = Cast<to = 7>(t)  l = Cast<to = 7>(z) }"""
    )
    assert found["y"] == Range(-128.0, 127.0, -128.0, 127.0, False)
    assert found["t"] is not None and not found["t"].nan
    assert found["q"] is not None and found["q"].nan
    assert found["k"] is not None and found["k"].real == (-1, 1)
    assert found["l"] == everything(INT64)


def test_comparisons_are_as_sure_as_their_operands() -> None:
    found = ranges(
        """g (float[N, 4] x, int64[N, 4] i) => (bool[N, 4] a) <float two = {2}, int64 zero = {0}> {
        s = Sigmoid(x)  a = Less(s, two)  b = Greater(s, two)  k = Abs(i)  c = Less(k, zero)  m = ArgMax<axis = 1>(x)  d = Less(m, zero) }"""
    )
    assert found["b"] == found["d"] == Range(0, 0, 0, 0, False)
    assert found["a"] == found["c"] == everything(BOOL)  # NaN is not less, and the least integer has no opposite


def test_a_clip_without_a_bound_may_cut_infinities_off() -> None:
    text = """g (float16[N] x) => (float16[N] y, float16[N] z) <float16 i = {31744}, float16 m = {64512}> { y = Clip (x, i)  z = Clip (x, , m) }"""
    found, values = ranges(text), run(parse(text), {"x": np.ones(1, np.float16)})
    assert found["y"] == Range(65504.0, INF, 65504.0, INF, True) and found["z"] == Range(-INF, -INF, -INF, -INF, True)
    assert all(bounds is not None and bounds.least <= value.item() <= bounds.most for bounds, value in zip((found["y"], found["z"]), values, strict=True))


# --- the fuzzer ---


def test_a_window_whose_gaps_are_where_the_tensor_is_has_the_least_number() -> None:
    text = """g (float[1, 1, 1] x) => (float[1, 1, 1] y, int64[1, 1, 1] i) {
        s = Sigmoid (x)
        y, i = MaxPool <kernel_shape = [2], dilations = [2], pads = [1, 1]> (s)
    }"""
    found = ranges(text)
    assert found["s"] is not None
    for name, value in zip("yi", run(parse(text), {"x": np.ones((1, 1, 1), np.float32)}), strict=True):
        bounds = found[name]
        assert bounds is None or bounds.least <= value.item() <= bounds.most, name


def programs(seeds: range, monkeypatch: pytest.MonkeyPatch, program: Callable[[Drawn, Draw], None] = ranged_program) -> facts.Tally:
    """Fuzzes programs of one kind alone: of bounded values, or of sums of products."""

    def drawn(seed: int, names: object = ()) -> tuple[Drawn, Draw]:
        draw = Draw([seed])
        found = Drawn(draw.number(19 if program is product_program else 18, 26))
        program(found, draw)
        return found, draw

    monkeypatch.setattr(facts, "draw_graph", drawn)
    return facts.fuzz(seeds)


@pytest.mark.slow
def test_no_element_is_outside_of_its_range(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = programs(range(50_000, 50_300), monkeypatch)
    assert not tally.wrong, "\n\n".join(f"seed {wrong.seed}: {wrong.text}\n{wrong.model}" for wrong in tally.wrong)
    assert tally.ran["the runtime"] > 280


def as_inputs(dtype: int, inputs: Sequence[Range]) -> Range | None:
    """States the range of all inputs together, NaN included."""
    return hull(dtype, inputs)


def as_sure(true: Callable[..., Range | None]) -> Callable[..., Range | None]:
    """States that no element is NaN unless one of the inputs is."""
    return lambda dtype, inputs: (true(dtype, inputs) or Range(-INF, INF, -INF, INF, True))._replace(nan=any(one.nan for one in inputs))


def as_moved(node: Node, found: tuple[Fact, ...]) -> Range | None:
    return RANGES["Expand"](node, found)


def sign_of_nan(dtype: int, inputs: Sequence[Range]) -> Range | None:
    """Forgets that a NaN in 16 bits has the sign 0."""
    low, high = (float((end > 0) - (end < 0)) for end in inputs[0].rounded)
    return Range(low, high, low, high, inputs[0].nan) if dtype == FLOAT16 else None


def without_margin(dtype: int, inputs: Sequence[Range]) -> Range | None:
    return Range(-1.0, 1.0, -1.0, 1.0, True)


LIES: dict[str, tuple[int, dict[str, Callable[..., Range | None]], Callable[..., Range | None]]] = {
    "Tanh": (275, ELEMENT_RANGES, without_margin),
    "Acos": (66, ELEMENT_RANGES, lambda dtype, inputs: Range(0.0, 3.15, 0.0, 3.15, inputs[0].nan)),
    "Sign": (223, ELEMENT_RANGES, sign_of_nan),
    "Mean": (140, ELEMENT_RANGES, as_inputs),
    "Mul": (42, ELEMENT_RANGES, as_sure(ELEMENT_RANGES["Mul"])),
    "Add": (191, ELEMENT_RANGES, as_sure(ELEMENT_RANGES["Add"])),
    "Sub": (102, ELEMENT_RANGES, as_sure(ELEMENT_RANGES["Sub"])),
    "Div": (97, ELEMENT_RANGES, as_sure(ELEMENT_RANGES["Div"])),
    "Sqrt": (17, ELEMENT_RANGES, as_sure(ELEMENT_RANGES["Sqrt"])),
    "AveragePool": (18, RANGES, as_moved),
    "ReduceMean": (22, RANGES, as_moved),
    "Pad": (156, RANGES, as_moved),
    "MaxPool": (499, RANGES, as_moved),
    "ReduceMax": (18, RANGES, as_moved),
}


@pytest.mark.parametrize("name", LIES)
def test_a_wrong_range_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, table, lie = LIES[name]
    inference.forget()
    monkeypatch.setitem(table, name, lie)
    try:
        assert programs(range(first, first + 3), monkeypatch).wrong
    finally:
        inference.forget()


def test_sums_of_products_have_the_bounds_of_their_coefficients() -> None:
    found = ranges(
        """g (float[N, 2] x, float[1, 1, 4, 4] i, uint8[N, 2] q) => (float[N, 3] y)
        <float[2, 3] w = {1, -2, 0, 3, 4, -0.5}, float[3] b = {1, 2, 3}, float[1, 1, 2, 2] k = {1, 1, 1, -1}, float s = {0.5}, uint8 z = {4}> {
        t = Sigmoid(x)  y = MatMul(t, w)  g = Gemm<alpha = 2.0>(t, w, b)  u = Sigmoid(i)  c = Conv(u, k)  p = Conv<pads = [1, 0, 0, 0]>(c, k)
        d = DequantizeLinear(q, s, z)  m = MatMul(t, d)  l = QuantizeLinear(t, s, z) }"""
    )
    real = {name: None if bounds is None else bounds.real for name, bounds in found.items()}
    assert real["y"] == (-2.0, 4.0) and real["g"] == (-3.0, 11.0)
    assert real["c"] == (-1.0, 3.0) and real["p"] == (-6.0, 10.0)
    assert real["d"] == (-2.0, 125.5) and found["d"] is not None and not found["d"].nan
    assert real["l"] == (0, 255)  # a Sigmoid may be NaN, which becomes any integer
    assert found["y"] is not None and -2.1 < found["y"].least < -2.0 and found["y"].nan


def test_a_sum_that_may_overflow_or_meet_an_infinity_has_no_bounds_of_what_is_computed() -> None:
    found = ranges(
        """g (int8[N, 2] i, float[N, 2] x) => (float[N, 1] y) <float[2, 1] w = {3e38, -3e38}, float[2, 1] v = {1, 1}> {
        c = Cast<to = 1>(i)  y = MatMul(c, w)  r = Relu(x)  z = MatMul(r, v)  s = MatMul(c, v) }"""
    )
    assert found["y"] is None or (found["y"].nan and found["y"].rounded == (-INF, INF))
    assert found["z"] is not None and found["z"].nan and found["z"].rounded == (-INF, INF)
    assert found["s"] is not None and not found["s"].nan and found["s"].real == (-256.0, 254.0)


@pytest.mark.slow
def test_no_sum_of_products_is_outside_of_its_range(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = programs(range(60_000, 60_300), monkeypatch, product_program)
    assert not tally.wrong, "\n\n".join(f"seed {wrong.seed}: {wrong.text}\n{wrong.model}" for wrong in tally.wrong)
    assert tally.ran["the runtime"] > 280


NUMBERS = Range(-INF, INF, -INF, INF, False)

# By name: the seed of a program that shows the lie, the module, its function, and the lie.
LIES_OF_PRODUCTS: dict[str, tuple[int, object, str, Callable[..., object]]] = {
    "signs": (1, product_ranges, "_weighted", lambda weights, ends: (ends[0] * float(weights.sums[0][0]), ends[1] * float(weights.sums[0][0]))),
    "padding": (13, product_ranges, "_with_zero", lambda ends: ends),
    "term": (2, product_ranges, "_term", lambda node, position: Range(0.0, 0.0, 0.0, 0.0, False)),
    "NaN": (14, product_ranges, "_with_margin", lambda dtype, real, *rest: (made(dtype, real, None, True) or NUMBERS)._replace(nan=False)),
    "margin": (86, product_ranges, "_with_margin", lambda dtype, real, rounded, size, terms, finite: made(dtype, real, real, not finite)),
    "length": (7, product_ranges, "_length", lambda fact, axis: 1),
    "zero point": (2, quantized_ranges, "_zero_point", lambda node: Range(0, 0, 0, 0, False)),
    "rounding": (391, quantized_ranges, "_rounded", lambda end, scale, margin: int(end / scale)),
}


@pytest.mark.parametrize("name", LIES_OF_PRODUCTS)
def test_a_wrong_range_of_products_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seed, module, function, lie = LIES_OF_PRODUCTS[name]
    inference.forget()
    monkeypatch.setattr(module, function, lie)
    try:
        assert programs(range(seed, seed + 1), monkeypatch, product_program).wrong
    finally:
        inference.forget()


def test_ends_beyond_all_floats_are_added_and_multiplied() -> None:
    large: Any = Fraction(10) ** 400
    assert add([(-large, large), (1.0, INF)]) == (1 - large, INF) and add([(-large, large), (-large, large)]) == (-2 * large, 2 * large)
    assert multiply([(large, large), (1.0, INF)]) == (large, INF) and multiply([(-large, large), (2.0, 3.0)]) == (-3 * large, 3 * large)


def test_products_beyond_all_floats_have_no_bounds() -> None:
    """A product of ends of doubles may be a fraction that no float holds. It ended runs with a traceback."""
    found = ranges(
        """g (double[2, 2] x, double[2, 2] y) => (double[2, 2] z, double[2, 2] u) <double low = {-1e300}, double high = {1e300}> {
        a = Clip(x, low, high)  b = Clip(y, low, high)  z = MatMul(a, b)  u = Gemm<alpha = 3e38, beta = 3e38>(a, b, a) }"""
    )
    for name in "zu":
        bounds = found[name]
        assert bounds is None or bounds.real == (-INF, INF)
