"""Facts: the laws of merging, and the facts of types and arrays."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, TypeProto, helper

from eqsat.facts.dims import Dim, add, mul, promised, symbol
from eqsat.facts.fact import INT_LIMIT, UNKNOWN, Contradiction, Fact, byte_size, element_count, from_array, from_tensor, from_type, merge, to_type, with_symbols
from eqsat.facts.intervals import Range

INT64 = int(TensorProto.INT64)
N, M = symbol("N"), symbol("M")
OURS = symbol("?x.0")

DIMS = st.sampled_from([2, 3, N, M, mul(N, 2), add(N, M), OURS, symbol("?y.1"), mul(OURS, N), None])
SHAPES = st.none() | st.lists(DIMS, max_size=2).map(tuple)
SEQUENCES = [
    helper.make_sequence_type_proto(helper.make_tensor_type_proto(dtype, shape)).SerializeToString(deterministic=True)
    for dtype, shape in ((1, None), (1, ["N"]), (1, [2]), (7, None), (1, ["M"]))
]
TENSORS = st.builds(
    Fact,
    dtype=st.sampled_from([0, 1, 7]),
    shape=SHAPES,
    const=st.booleans(),
    ints=SHAPES,
    uniform=st.sampled_from([None, b"\0", b"\1"]),
    other=st.none(),
    floats=st.sampled_from([None, b"\0", b"\1"]),
    doubled=st.booleans(),
    paired=st.booleans(),
    range=st.sampled_from([None, Range(0.0, 1.0, 0.0, 1.5, True), Range(-1.0, 0.5, -1.0, 0.5, False), Range(2.0, 3.0, 2.0, 3.0, True)]),
)
FACTS = TENSORS | st.sampled_from(SEQUENCES).map(lambda text: Fact(other=text)) | st.just(UNKNOWN)


def merged(*facts: Fact) -> Fact | None:
    """Returns all facts merged from the left; None if they contradict one another."""
    result = facts[0]
    for fact in facts[1:]:
        try:
            result = merge(result, fact)
        except Contradiction:
            return None
    return result


@given(FACTS, FACTS)
def test_merging_is_commutative(a: Fact, b: Fact) -> None:
    assert merged(a, b) == merged(b, a)


@given(FACTS, FACTS, FACTS)
def test_merging_is_associative(a: Fact, b: Fact, c: Fact) -> None:
    right = merged(b, c)
    assert merged(a, b, c) == (None if right is None else merged(a, right))


@given(FACTS)
def test_merging_is_idempotent_and_nothing_is_its_unit(a: Fact) -> None:
    assert merge(a, a) == a == merge(a, UNKNOWN) == merge(UNKNOWN, a)


@given(FACTS, FACTS)
def test_merging_again_adds_nothing(a: Fact, b: Fact) -> None:
    once = merged(a, b)
    if once is not None:
        assert merge(once, a) == once == merge(b, once)


def test_the_more_precise_wins() -> None:
    vague = Fact(0, (None, OURS, N, M))
    sharp = Fact(1, (None, mul(N, 2), 3, M), const=True, ints=None)
    assert merge(vague, sharp) == Fact(1, (None, mul(N, 2), 3, M), const=True)
    assert merge(Fact(7, (2,), ints=(None, N)), Fact(7, (2,), ints=(4, None))).ints == (4, N)


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        (Fact(1), Fact(7), "float and int64"),
        (Fact(1, (2,)), Fact(1, (3,)), r"\[2\] and \[3\]"),
        (Fact(1, (2,)), Fact(1, (2, N)), r"\[2\] and \[2, N\]"),
        (Fact(7, (2,), ints=(1, 2)), Fact(7, (2,), ints=(1, 3)), r"\[1, 2\] and \[1, 3\]"),
        (Fact(uniform=b"\0"), Fact(uniform=b"\1"), "00 and 01"),
        (Fact(1), Fact(other=SEQUENCES[0]), "tensor"),
        (Fact(other=SEQUENCES[0]), Fact(other=SEQUENCES[3]), "type"),
    ],
)
def test_contradictions_are_errors(a: Fact, b: Fact, text: str) -> None:
    with pytest.raises(Contradiction, match=text):
        merge(a, b)


def test_promised_sizes() -> None:
    """No name that a model may have carries a promise by itself."""
    proto = helper.make_tensor_type_proto(TensorProto.FLOAT, ["N", None, 4, "?N+"])
    assert from_type(proto, "x", promised) == Fact(1, (promised("N"), promised("?x.1"), 4, promised("?x.3")))
    assert from_type(proto, "x") == Fact(1, (N, symbol("?x.1"), 4, symbol("?x.3")))


@pytest.mark.parametrize("name", ["", "?", "None", "-1", "?x.0"])
def test_sizes_without_a_name_are_fresh(name: str) -> None:
    proto = helper.make_tensor_type_proto(TensorProto.FLOAT, [name, "N", 4])
    assert from_type(proto, "x") == Fact(1, (OURS, N, 4))
    assert from_type(proto, "y") == Fact(1, (symbol("?y.0"), N, 4))


def test_declared_types() -> None:
    assert from_type(helper.make_tensor_type_proto(1, [-1, None]), "x") == Fact(1, (OURS, symbol("?x.1")))
    assert from_type(helper.make_tensor_type_proto(1, None), "x") == Fact(1)
    assert from_type(helper.make_tensor_type_proto(1, []), "x") == Fact(1, ())
    assert from_type(TypeProto(), "x") == UNKNOWN
    assert from_type(TypeProto.FromString(SEQUENCES[1]), "x") == Fact(other=SEQUENCES[1])


@pytest.mark.parametrize("shape", [None, [], [1, "N", None], ["N", "N"]])
def test_types_survive_the_way_there_and_back(shape: list[int | str | None] | None) -> None:
    proto = helper.make_tensor_type_proto(TensorProto.FLOAT16, shape)
    names: tuple[Dim, ...] | None = None if shape is None else tuple(symbol(size) if isinstance(size, str) else size for size in shape)
    assert to_type(Fact(TensorProto.FLOAT16, names)) == proto
    assert to_type(UNKNOWN) is None
    assert to_type(Fact(other=SEQUENCES[2])) == TypeProto.FromString(SEQUENCES[2])


def test_counts_and_bytes() -> None:
    assert element_count(Fact(1, (N, 2, M))) == mul(mul(N, 2), M)
    assert element_count(Fact(1)) is None
    assert element_count(Fact(1, (None, 0))) == 0
    assert byte_size(Fact(1, (2, 3))) == 24
    assert byte_size(Fact(TensorProto.INT4, (3,))) == 2
    assert byte_size(Fact(TensorProto.UINT2, (5,))) == 2
    assert byte_size(Fact(TensorProto.FLOAT6E2M3, (4,))) == 3
    assert byte_size(Fact(TensorProto.BFLOAT16, (3,))) == 6
    assert byte_size(Fact(TensorProto.STRING, (3,))) is None
    assert byte_size(Fact(1, (N,))) is None
    assert byte_size(Fact(0, (2,))) is None


def test_unknown_sizes_get_names() -> None:
    assert with_symbols(Fact(7, (None, 2, None), ints=(None,)), "x") == Fact(7, (OURS, 2, symbol("?x.2")), ints=(None,))
    assert with_symbols(Fact(7), "x") == Fact(7)


def test_every_data_type_has_a_fact() -> None:
    for dtype in TensorProto.DataType.values():
        if dtype == TensorProto.UNDEFINED:
            continue
        kind = helper.tensor_dtype_to_np_dtype(dtype)
        fact = from_array(np.zeros((2, 3), kind))
        assert fact.dtype == dtype
        assert fact.shape == (2, 3)
        assert fact.const
        if dtype != TensorProto.STRING:
            assert fact.uniform == bytes(kind.itemsize)
            assert byte_size(fact) is not None


def test_elements_of_constants() -> None:
    assert from_array(np.array([[1, -2]], np.int32)).ints == (1, -2)
    assert from_array(np.array([True, False])).ints == (1, 0)
    assert from_array(np.array([1, -2], ml_dtypes.int4)).ints == (1, -2)
    assert from_array(np.array([], np.int64)) == Fact(7, (0,), True, ints=())
    assert from_array(np.array([2**64 - 1], np.uint64)).ints == (None,)
    assert from_array(np.zeros(INT_LIMIT, np.int64)).ints == (0,) * INT_LIMIT
    assert from_array(np.zeros(INT_LIMIT + 1, np.int64)).ints is None
    assert from_array(np.array([1.5, 2], np.float32)).floats == np.array([1.5, 2], "<f4").tobytes()
    assert from_array(np.array(["a"], object)) == Fact(TensorProto.STRING, (1,), True)


def test_tensors_whose_elements_are_not_there() -> None:
    good = helper.make_tensor("", INT64, [2], [1, 2])
    assert from_tensor(good) == from_array(np.array([1, 2]))
    external = TensorProto(data_type=INT64, dims=[2], data_location=TensorProto.EXTERNAL)
    short = TensorProto(data_type=INT64, dims=[2], raw_data=b"abc")
    assert from_tensor(external) == from_tensor(short) == Fact(7, (2,), True)
    assert from_tensor(TensorProto(data_type=INT64, dims=[-1])) == UNKNOWN


def test_uniform_compares_bits() -> None:
    assert from_array(np.array([0.0, -0.0])).uniform is None
    assert from_array(np.full((2, 2), np.nan, np.float32)).uniform == np.float32(np.nan).tobytes()
    assert from_array(np.array([1, 1], ">i4")).uniform == b"\1\0\0\0"
    assert from_array(np.array(7, np.int64)).uniform == b"\7" + bytes(7)
    assert from_array(np.ones((300, 500), np.float32).T).uniform == np.float32(1).tobytes()
    late = np.ones(200_000, np.float16)
    late[-1] = 2
    assert from_array(late).uniform is None
    assert from_array(late[::-1]).uniform is None
    late[-1], late[100] = 1, 2
    assert from_array(late).uniform is None


def test_doubled_compares_bits() -> None:
    row = np.array([1.5, -2.0, np.nan], np.float32)
    table = np.tile(np.concatenate([row, row]), (3, 1))
    assert from_array(table).doubled and from_array(table[None, :, ::1]).doubled and from_array(table[0]).doubled
    late = table.copy()
    late[-1, 0] = -1.5
    signs = np.array([0.0, 1.0, -0.0, 1.0])
    assert not any(from_array(array).doubled for array in (late, signs, table[:, :5], table.T, table[:, :0], np.array(1.5), table.astype(np.int32)[:0]))
    assert not from_array(np.array([1, 2, 1, 2])).doubled  # these are few integers, which are known
    assert not from_array(np.ones((2, 4), np.float32)).doubled  # all are equal, which says more
    assert merge(from_array(late), Fact(1, (3, 6))) == from_array(late)
    assert merge(Fact(1, (3, 6)), from_array(table)).doubled


def test_paired_compares_bits() -> None:
    table = np.repeat(np.array([[1.5, -2.0, np.nan], [3.0, 1.0, 0.0]], np.float32), 2, axis=-1)
    assert from_array(table).paired and from_array(table[None]).paired and from_array(table[0]).paired and not from_array(table).doubled
    late = table.copy()
    late[-1, -1] = -0.0
    assert not any(from_array(array).paired for array in (late, table[:, :5], table[:, 1:5], table.T, table[:, :0], np.array(1.5), table.astype(np.int32)[:0]))
    assert not from_array(np.ones((2, 4), np.float32)).paired  # all are equal, which says more
    assert merge(from_array(late), Fact(1, (2, 6))) == from_array(late)
    assert merge(Fact(1, (2, 6)), from_array(table)).paired
