"""Elements of small integer tensors against ONNX Runtime, symbolic and concrete."""

from random import Random

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from eqsat.facts.dims import Dim, add, floordiv, maximum, minimum, mul, sub, symbol, truncdiv
from eqsat.facts.fact import INT_LIMIT, Fact, from_array
from eqsat.facts.inference import infer
from eqsat.operators import find_operator
from tests.facts.test_shapes import SIZES, Case, Given, case, check, const, hold, inferred, of, one

N, M, H = symbol("N"), symbol("M"), symbol("H")
INT32, INT64, BOOL = int(TensorProto.INT32), int(TensorProto.INT64), int(TensorProto.BOOL)


def grid(*elements: Dim, shape: tuple[int, ...]) -> Given:
    return Given(Fact(INT64, shape, ints=elements))


SQUARE = grid(N, 2, M, 4, 5, H, shape=(2, 3))
FIVES = numpy_helper.from_array(np.array([5], np.int64))

# Nodes that run, and the elements of their results.
CASES: list[tuple[Case, tuple[Dim, ...]]] = [
    (case("Shape", of(N, 3, mul(M, 2))), (N, 3, mul(M, 2))),
    (case("Shape", of(N, 3, M), opset=15, start=-2), (3, M)),
    (case("Shape", of(N, 3, M), opset=15, start=-9, end=-1), (N, 3)),
    (case("Size", of(N, 3, M)), (mul(mul(N, 3), M),)),
    (case("Gather", hold(N, 3, M), one(-1)), (M,)),
    (case("Gather", SQUARE, const([[1, 0]]), axis=1), (2, N, 5, 4)),
    (case("GatherElements", SQUARE, const([[2, 0]]), axis=1), (M, N)),
    (case("Slice", hold(N, 3, M, 4), const([1]), const([-1])), (3, M)),
    (case("Slice", SQUARE, const([-1]), const([-(2**63)]), const([1]), const([-2])), (M, N, H, 4)),
    (case("Concat", hold(N), hold(-1), hold(M, 4), axis=0), (N, -1, M, 4)),
    (case("Concat", SQUARE, grid(7, N, shape=(2, 1)), axis=-1), (N, 2, M, 7, 4, 5, H, N)),
    (case("Split", hold(N, 3, M), const([1, 2]), outputs=2), (N,)),
    (case("Squeeze", hold(N), const([0])), (N,)),
    (case("Squeeze", hold(N), opset=11), (N,)),
    (case("Unsqueeze", one(N), const([0])), (N,)),
    (case("Unsqueeze", one(N), opset=11, axes=[0]), (N,)),
    (case("Reshape", SQUARE, const([3, -1])), (N, 2, M, 4, 5, H)),
    (case("Flatten", SQUARE, axis=0), (N, 2, M, 4, 5, H)),
    (case("Transpose", SQUARE), (N, 4, 2, 5, M, H)),
    (case("Identity", SQUARE), (N, 2, M, 4, 5, H)),
    (case("Expand", hold(N), const([2, 2])), (N, N, N, N)),
    (case("Tile", hold(N, 1), const([2])), (N, 1, N, 1)),
    (case("Cast", hold(N, -3), to=INT32), (N, -3)),
    (case("Cast", const([0, -3, 300]), to=TensorProto.UINT8), (0, 253, 44)),
    (case("Cast", hold(0, -3, add(N, 1), N), to=BOOL), (0, 1, 1, None)),
    (case("Cast", const([True, False], np.bool_), to=INT64), (1, 0)),
    (case("Add", hold(N, 1), one(3)), (add(N, 3), 4)),
    (case("Sub", hold(N, 1), hold(M, 1)), (sub(N, M), 0)),
    (case("Mul", grid(N, 2, shape=(2, 1)), hold(M, 3)), (mul(N, M), mul(N, 3), mul(M, 2), 6)),
    (
        case("Div", hold(mul(N, 64), N, -7, sub(N, 1), sub(N, 3)), hold(64, 2, 2, 2, -2)),
        (N, floordiv(N, 2), -3, floordiv(maximum(0, sub(N, 1)), 2), truncdiv(sub(3, N), 2)),
    ),
    (case("Div", hold(mul(N, 3), N), hold(N, M)), (3, floordiv(N, M))),
    (case("Mod", hold(mul(N, 64), N, -7, 7), hold(64, 2, 4, -4)), (0, sub(N, mul(floordiv(N, 2), 2)), 1, -1)),
    (case("Mod", hold(-7, 7), hold(4, -4), fmod=1), (-3, 3)),
    (case("Neg", hold(N, 3)), (mul(N, -1), -3)),
    (case("Abs", hold(N, -3, sub(N, 1))), (N, 3, None)),
    (case("Sign", hold(add(N, 1), -3, 0, N)), (1, -1, 0, None)),
    (case("Max", hold(N, 3), hold(M, 5)), (maximum(N, M), 5)),
    (case("Min", hold(N, 3), hold(5, 5), hold(M, 1)), (minimum(N, 5, M), 1)),
    (case("Equal", hold(N, 3, 4, N), hold(N, 3, 5, 1)), (1, 1, 0, None)),
    (case("Less", hold(N, 3, sub(N, 1)), hold(add(N, 1), 3, 3)), (1, 0, None)),
    (case("Greater", hold(add(N, 1), 3), hold(0, 3)), (1, 0)),
    (case("GreaterOrEqual", hold(N, 3, M), hold(0, 4, N), opset=16), (1, 0, None)),
    (case("LessOrEqual", hold(N, 3), hold(N, 2), opset=16), (1, 0)),
    (case("And", const([True, False], np.bool_), const([True, True], np.bool_)), (1, 0)),
    (case("Or", const([True, False], np.bool_), const([False, False], np.bool_)), (1, 0)),
    (case("Xor", const([True, True], np.bool_), const([False, True], np.bool_)), (1, 0)),
    (case("Not", const([True, False], np.bool_)), (0, 1)),
    (case("Where", const([True, False, True], np.bool_), hold(N, N, 1), hold(M, M, 2)), (N, M, 1)),
    (case("ReduceProd", hold(N, 3, M), opset=13, keepdims=0), (mul(mul(N, 3), M),)),
    (case("ReduceSum", SQUARE, const([-1]), keepdims=1), (add(N, M, 2), add(H, 9))),
    (case("ReduceMax", SQUARE, opset=13, axes=[0]), (maximum(N, 4), 5, maximum(M, H))),
    (case("ReduceMin", hold(N, 3), const([0]), opset=18), (minimum(N, 3),)),
    (case("ReduceSum", hold(N, 3), noop_with_empty_axes=1), (N, 3)),
    (case("ReduceSum", const([], np.int64)), (0,)),
    (case("CumSum", hold(N, 3, M), one(0)), (N, add(N, 3), add(N, M, 3))),
    (case("CumSum", hold(N, 3, M), one(0), exclusive=1, reverse=1), (add(M, 3), M, 0)),
    (case("ConstantOfShape", const([2, 2]), value=FIVES), (5, 5, 5, 5)),
    (case("Range", one(1), one(8), one(3)), (1, 4, 7)),
    (case("Range", one(N), one(add(N, 3)), one(1)), (N, add(N, 1), add(N, 2))),
    (case("NonZero", const([[0, 1], [2, 0]])), (0, 1, 1, 0)),
]


@pytest.mark.parametrize(("case", "elements"), CASES, ids=[str(case) for case, _ in CASES])
def test_elements_are_those_of_the_runtime(case: Case, elements: tuple[Dim, ...]) -> None:
    assert inferred(case)[0].ints == elements
    assert check(case) > 0


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint32, np.int64])
def test_arithmetic_wraps_as_the_type_does(kind: type[np.integer]) -> None:
    info = np.iinfo(kind)
    random = Random(3)
    values = [int(info.min), int(info.min) + 1, int(info.max), 0, 1, 2, 3, 100, *([-1, -2, -7] if info.min else [])]
    ran = 0
    for name in ("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Less", "Equal"):
        a = [random.choice(values) for _ in range(24)]
        # The least integer has no quotient by -1, and nothing has a quotient by 0.
        b = [random.choice([value for value in values if value not in (0, -1) or name not in ("Div", "Mod")]) for _ in range(24)]
        node = case(name, const(a, kind), const(b, kind))
        facts = inferred(node)
        wide = any(abs(value) >= 1 << 31 for value in (*a, *b))
        if name in ("Mod", "Max", "Min") and wide:
            assert facts[0].ints is None  # the runtime's kernels are not exact there
        else:
            assert facts[0].ints is not None
            assert None not in facts[0].ints or kind is np.int64  # eqsat computes no result that would wrap in int64
        try:
            ran += check(node, SIZES[:1])
        except Exception as error:
            assert "NotImplemented" in type(error).__name__, error
    assert ran >= 5 or kind in (np.int8, np.uint8)


@pytest.mark.parametrize("source", [np.int8, np.uint8, np.int32, np.int64, np.uint64, np.bool_])
@pytest.mark.parametrize("target", ["INT8", "UINT8", "INT16", "INT32", "UINT32", "INT64", "UINT64", "BOOL"])
def test_casts_wrap_as_the_runtime_does(source: type[np.generic], target: str) -> None:
    values = np.array([0, 1, 2, 127, 128, 255, 256, -1, -128, 2**31, -(2**31), 2**62 + 5]).astype(source)
    node = case("Cast", const(values, source), to=TensorProto.DataType.Value(target))
    assert inferred(node)[0].ints is not None
    assert check(node, SIZES[:1]) == 1


def test_divisions_by_zero_have_no_value() -> None:
    assert inferred(case("Div", hold(4, N), hold(0, 0)))[0].ints == (None, None)
    assert inferred(case("Mod", hold(4, N), hold(0, M)))[0].ints == (None, None)


def test_unknown_elements_stay_unknown() -> None:
    partly = Given(Fact(INT64, (3,), ints=(N, None, 2)))
    assert inferred(case("Mul", partly, one(2)))[0].ints == (mul(N, 2), None, 4)
    assert inferred(case("Gather", partly, one(1)))[0].ints == (None,)
    assert inferred(case("ReduceProd", partly, opset=13))[0].ints == (None,)
    assert inferred(case("Gather", of(3, dtype=INT64), one(1)))[0].ints is None
    assert inferred(case("Gather", hold(N, 1), Given(Fact(INT64, (), ints=(None,)))))[0].ints is None
    assert inferred(case("Shape", of(N, None)))[0].ints == (N, None)


def test_symbols_are_not_kept_in_narrow_or_unsigned_types() -> None:
    assert inferred(case("Cast", hold(N, 5), to=TensorProto.UINT8))[0].ints == (None, 5)
    assert inferred(case("Cast", hold(sub(N, 5), 5), to=TensorProto.UINT64))[0].ints == (None, 5)


def test_floats_carry_no_integers() -> None:
    assert inferred(case("Cast", hold(N, 3), to=TensorProto.FLOAT))[0].ints is None
    assert inferred(case("Cast", const([0.5], np.float32), to=TensorProto.BOOL))[0].ints is None


def test_a_cast_truncates_floats_that_the_type_holds() -> None:
    assert inferred(case("Cast", const([1.5, -1.5, 1e20, np.nan], np.float32), to=INT64))[0].ints == (1, -1, None, None)
    assert inferred(case("Cast", const([-1.5, 200.5, 300], np.float16), to=TensorProto.UINT8))[0].ints == (None, 200, None)


def test_large_tensors_carry_no_elements() -> None:
    assert inferred(case("Expand", hold(N), const([INT_LIMIT])))[0].ints == (N,) * INT_LIMIT
    assert inferred(case("Expand", hold(N), const([INT_LIMIT + 1])))[0].ints is None
    assert inferred(case("Concat", hold(*[N] * INT_LIMIT), hold(N), axis=0))[0].ints is None
    assert inferred(case("ConstantOfShape", const([2**40, 2**20]), value=FIVES))[0].ints is None
    assert inferred(case("Range", one(0), one(2**30), one(1)))[0].shape == (2**30,)
    assert inferred(case("Range", one(0), one(2**60), one(1)))[0].shape == (None,)  # the runtime counts this length wrongly
    assert inferred(case("Tile", hold(N), const([2**40])))[0].ints is None


@pytest.mark.parametrize(
    "node",
    [
        case("Gather", hold(N, 1), const(5)),
        case("Reshape", SQUARE, const([4, 2])),
        case("Reshape", SQUARE, const([-1, -1])),
        case("Reshape", SQUARE, const([-5, 2])),
        case("Slice", hold(1, 2), const([0]), const([1]), const([7])),
        case("Slice", hold(1, 2), const([0]), const([1]), const([0]), const([0])),
        case("Transpose", SQUARE, perm=[0, 0]),
        case("Concat", hold(1), SQUARE, axis=0),
        case("Concat", hold(1), hold(2), axis=3),
        case("Add", hold(1, 2), hold(1, 2, 3)),
        case("Split", hold(1, 2), const([5, -3]), outputs=2),
        case("Squeeze", hold(1, 2), const([0])),
        case("Expand", hold(1, 2), const([3])),
        case("Expand", hold(1, 2), const([-3, 2])),
        case("Tile", hold(1, 2), const([-3])),
        case("Tile", hold(), const([2**62])),
        case("Expand", hold(), hold(1, 2**62, 2**62, 0)),
        case("Reshape", hold(), hold(0, 2**62, 2**62), allowzero=1),
        case("Identity", grid(shape=(0, 2**40, 2**40))),
        case("Range", one(0), one(5), one(0)),
        case("ConstantOfShape", const([-3]), value=FIVES),
        case("ConstantOfShape", const([3]), value=helper.make_tensor("", INT64, [0], [])),
        case("ConstantOfShape", const([3]), value=helper.make_tensor("", INT64, [2], [1, 2])),
        case("CumSum", hold(1, 2), one(4)),
        case("GatherElements", SQUARE, const([[7]])),
        case("NonZero", one(0)),
        case("Div", hold(1), hold(0)),
        case("ReduceSum", SQUARE, const([9])),
        case("Cast", hold(1), to=99),
    ],
    ids=str,
)
def test_what_no_legal_node_has_is_no_error(node: Case) -> None:
    assert len(inferred(node)) == node.outputs


def test_constants_stay_constant_through_pure_operators() -> None:
    def const_of(name: str, *facts: Fact | None, domain: str = "") -> bool:
        return infer(find_operator(domain, name, 17), {}, facts, 1)[0].const

    known, unknown = from_array(np.ones(3, np.float32)), Fact(1, (3,))
    assert const_of("Add", known, known)
    assert not const_of("Add", known, unknown)
    assert const_of("Clip", known, None, known)
    assert not const_of("RandomNormalLike", known)
    assert not const_of("DequantizeLinear", from_array(np.ones(3, np.uint8)), from_array(np.array(1, np.float32)))
    assert not const_of("DequantizeLinear", known, known, domain="com.microsoft")
    assert not const_of("Mystery", known, domain="some.domain")


def test_uniform_tensors_stay_uniform_where_elements_move() -> None:
    ones = from_array(np.ones((4, 6), np.float32))
    for name, facts in {"Transpose": (ones,), "Reshape": (ones, const([24]).fact), "Expand": (ones, const([2, 4, 6]).fact), "Identity": (ones,)}.items():
        fact = infer(find_operator("", name, 17), {}, facts, 1)[0]
        assert fact.uniform == ones.uniform
        assert fact.const
    empty = infer(find_operator("", "Slice", 17), {}, (ones, const([0]).fact, const([0]).fact), 1)[0]
    assert empty.shape == (0, 6)
    assert empty.uniform is None
    assert infer(find_operator("", "Expand", 17), {}, (ones, hold(N, 4, 6).fact), 1)[0].uniform is None
    assert infer(find_operator("", "Relu", 17), {}, (ones,), 1)[0].uniform is None
    assert inferred(case("ConstantOfShape", const([2, 2]), value=FIVES))[0].uniform == b"\5" + bytes(7)
    assert inferred(case("ConstantOfShape", const([2, 0]), value=FIVES))[0].uniform is None


@pytest.mark.parametrize(
    ("dtype", "factor", "known"), [(INT64, 2**31, True), (INT64, 2**31 + 1, False), (INT64, -(2**62), False), (INT32, 2**16, True), (INT32, 2**30, False)]
)
def test_products_that_sizes_make_overflow_are_not_kept(dtype: int, factor: int, known: bool) -> None:
    """`N * 2**62` is negative even for N = 2."""
    (fact,) = inferred(case("Mul", hold(N, dtype=dtype), hold(factor, dtype=dtype)))
    assert fact.ints == (mul(N, factor) if known else None,)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (np.float32(0.5), np.float64(0.5)),
        (np.float64(0.1), np.float32(0.1)),
        (np.int64(3), np.float32(3)),
        (np.int64(2**24 + 1), np.float32(2**24)),
        (np.float32(-2), np.int32(-2)),
        (np.float32(2.5), np.int32(2)),
        (np.float32(-0.0), np.int64(0)),
        (np.float32(np.inf), np.int64(0)),
        (np.int64(2), np.bool_(True)),
        (np.bool_(True), np.float32(1)),
    ],
    ids=repr,
)
def test_a_cast_number_is_known_if_both_types_hold_it(number: np.generic, expected: np.generic) -> None:
    fact = from_array(np.array(number))
    like = from_array(np.array(expected))
    exact = number == expected and number.tobytes() == expected.astype(number.dtype).tobytes()
    for name, attributes, inputs in (("Cast", {"to": like.dtype}, (fact,)), ("CastLike", {}, (fact, of(N, dtype=like.dtype).fact))):
        assert infer(find_operator("", name, 19), attributes, inputs, 1)[0].uniform == (like.uniform if exact else None)


def test_what_overflows_inside_a_quotient_is_not_kept() -> None:
    (wide,) = inferred(case("Div", hold(mul(N, 2**31 - 1)), hold(5)))
    (narrow,) = inferred(case("Cast", Given(wide), to=INT32))
    assert wide.ints == (floordiv(mul(N, 2**31 - 1), 5),)
    assert narrow.ints == (None,)


def test_the_greater_of_what_may_be_wide_is_not_known() -> None:
    """Some kernels of ONNX Runtime compare 64-bit integers as if they had 32 bits."""
    (fact,) = inferred(case("Max", hold(mul(N, 2**31 - 1)), hold(M)))
    assert fact.ints is None
