"""Values of rules: what is decided with symbolic sizes and what is not, what has no value, and the
functions that ask types.
"""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from eqsat.facts import dims
from eqsat.facts.fact import Fact, from_array
from eqsat.language.functions import FUNCTIONS
from eqsat.language.values import DType, Tensor, Value
from tests.support.expressions import BOOL, CODES, DIMS, FLOAT, SIZES, M, N, indices, reason, tensor, value

# --- what must be known, and what must not ---

X = tensor((N, 4, dims.mul(N, M), 1))
DECIDED: list[tuple[str, Value | None]] = [
    ("0 <= N", True),
    ("N < 0", False),
    ("0 < N", None),
    ("0 <= N < N + 1 <= 2 * N + 1", True),
    ("0 < 5 < 3", False),
    ("N == M", None),
    ("N + 1 == N", False),
    ("not N == M", None),
    ("N == M and 1 == 2", False),
    ("N == M or 1 == 1", True),
    ("N == M or 1 == 2", None),
    ("N * 4 % 4 == 0", True),
    ("N % 4 < 4", True),
    ("N * 6 // 4", dims.floordiv(dims.mul(N, 6), 4)),
    ("N // (M + 1) <= N", None),
    ("[N, 2] == [N, 3]", False),
    ("[N, 2] == [M, 2]", None),
    ("[N, 2] == [N, 2, 1]", False),
    ("[N] + [M]", (N, M)),
    ("[0, *shape(x), 1][1:-1]", (N, 4, dims.mul(N, M), 1)),
    ("2 in [N, 2]", True),
    ("2 in [N, 3]", None),
    ("2 not in [N + 3, 1]", True),
    ("[i for i in [N, 4, N + 5] if i != 4]", None),
    ("[i for i in [N + 5, 4] if i != 4]", (dims.add(N, 5),)),
    ("[N, 1] if N == M else [N, 2]", (N, None)),
    ("1 if N == M else 1", 1),
    ("1 if N == M else 1.0", None),
    ("0.0 if N == M else -0.0", None),
    ("N ** 2", dims.mul(N, N)),
    ("2 ** N", None),
    ("(-1) ** 10 ** 15", 1),
    ("10 ** 10 ** 10", None),
    ("9223372036854775807 + 1", None),
    ("9223372036854775808", None),
    ("N + 0.5", None),
    ("3 / 2", 1.5),
    ("-7 // 2", -4),
    ("-7 % 3", 2),
    ("1e308 * 10", math.inf),
    ("1.0 / 0.0", math.inf),
    ("0.0 / 0.0 == 0.0 / 0.0", False),
    ("2.0 ** 10000", math.inf),
    ("(-8.0) ** 0.5 == 0", False),
    ("0.0 ** -1", math.inf),
    ("elements(x)", dims.mul(dims.mul(N, N), dims.mul(M, 4))),
    ("dim(x, -2) == N * M", True),
    ("rank(x)", 4),
    ("dtype(x) == float", True),
    ("float16 == float", False),
    ("T", DType(FLOAT)),
    ("abs(N)", N),
    ("abs(-N - 1)", dims.add(N, 1)),
    ("min(N, N + 1)", N),
    ("max([N, M, N + M])", dims.add(N, M)),
    ("min(3, 1.5)", 1.5),
    ("max(1.0, 0.0 / 0.0) == 1", False),
    ("min(N, 1.5)", None),
    ("min(u, 1)", None),
    ("sum([9223372036854775807, 1, -1])", 9223372036854775807),
    ("sum([0.5, 1])", 1.5),
    ("prod([u, 0])", 0),
    ("prod([])", 1),
    ("prod([N, 0.5])", None),
    ("sorted([2 * N + 1, N, 0])", (0, N, dims.add(dims.mul(N, 2), 1))),
    ("sorted([N, M])", (None, None)),
    ("sorted([2, 0.5])", (0.5, 2)),
    ("range(N, N + 2)", (N, dims.add(N, 1))),
    ("range(5, -1, -2)", (5, 3, 1)),
    ("range(N, 0)", ()),
    ("range(N)", None),
    ("len(range(N))", None),
    ("repeat(N, 2)", (N, N)),
    ("repeat(0, N)", None),
    ("ones(shape(x))", (1, 1, 1, 1)),
    ("unique([N, 2, N, 2])", None),
    ("unique([N, N + 1, N])", (N, dims.add(N, 1))),
    ("index([N + 1, 0, N], 0)", 1),
    ("index([N, 0], 0)", None),
    ("count([N + 1, 0, 0], 0)", 2),
    ("count([N, 0], 0)", None),
    ("all([])", True),
    ("any([N == M, 1 == 1])", True),
    ("all([N == M, 1 == 2])", False),
    ("bound(-1, N + 1)", N),
    ("bound(-1, N)", dims.maximum(0, dims.sub(N, 1))),
    ("bound(9223372036854775807, N)", N),
    ("bound(0, N)", 0),
    ("bound(N - M, 3)", None),
    ("broadcast([N, 1, 3], [M, 1])", (N, M, 3)),
    ("broadcast([], [])", ()),
    ("broadcasts_to([1, 4], [N, 4])", True),
    ("broadcasts_to([N, 4], [N, 4])", True),
    ("broadcasts_to([N], [4])", None),
    ("broadcasts_to([3], [4])", False),
    ("broadcasts_to([1, 4], [4])", False),
    ("same_without_ones([1, N, 4], [N, 1, 1, 4])", True),
    ("same_without_ones([N, 4], [4])", None),
    ("same_without_ones([N + 2, 4], [4])", False),
    ("same_without_ones([2, 3], [3, 2])", False),
    ("moves_only_ones([1, 0, 2], [1, N, 4])", True),
    ("moves_only_ones([1, 0, 2], [N, 1, 4])", True),
    ("moves_only_ones([1, 0], [N, M])", None),
    ("moves_only_ones([1, 0, 2], [2, 3, N])", False),
    ("regroup([N, 2, 3], [2 * N, 3])", ((2, 1), (1, 1))),
    ("regroup([N, 4], [4, N])", ((2, 2),)),
    ("regroup([4, 3, 5], [6, 2, 5])", ((2, 2), (1, 1))),
    ("regroup([N, 1, 3], [1, 1, N, 3])", ((0, 1), (0, 1), (1, 1), (1, 0), (1, 1))),
    ("regroup([0, 2], [0, 3])", ((2, 2),)),
    ("regroup([], [1])", ((0, 1),)),
    ('letters("ab, bc -> ca", 1, 2)', (1, 2)),
    ('letters("ab,bc->ca", -1, 2)', (2, 0)),
    ('letters("ba...,bC", -1, 4)', (-2, -1, 28, 0)),
    ('letters("a...b", 0, 4)', (0, -2, -1, 1)),
    ("equation([[0, 1], [1, 2]], [2, 0])", "ab,bc->ca"),
    ("equation([[1, -2, -1], [-1]], [-2, 1])", "bac,c->ab"),
    ("equation([[]], [])", "->"),
    ("inverse([2, 0, 1])", (1, 2, 0)),
    ("is_permutation([0, u, 2], 3)", None),
    ("is_permutation([0, u, 0], 3)", False),
    ("normalized([-1, 0], 3)", (2, 0)),
    ("normalized(-1, rank(x))", 3),
    ("floor(-0.5)", -1),
    ("ceil(0.5)", 1),
    ("[round(i) for i in [0.5, 1.5, 2.5]]", (0, 2, 2)),
    ("floor(N)", N),
    ("floor(1e300)", None),
    ("round(0.0 / 0.0)", None),
    ("sqrt(4)", 2.0),
    ("sqrt(-1) == sqrt(-1)", False),
    ("log(0)", -math.inf),
    ("exp(1000)", math.inf),
    ("sqrt(N)", None),
    ("float(3)", 3.0),
    ("known(N)", True),
    ("known(u)", False),
    ("known([N, u])", False),
    ("not known(N == M)", True),
    ("floating(bfloat16) and not floating(int8) and not floating(bool)", True),
    ("integral(uint4) and not integral(bool) and not integral(double)", True),
    ("signed(int4) and signed(float) and not signed(uint8) and not signed(float8e8m0) and not signed(bool)", True),
    ("[bits(int4), bits(bool), bits(bfloat16), bits(double), bits(float6e2m3), bits(complex128)]", (4, 8, 16, 64, 6, 128)),
    ("[lowest(int8), highest(uint4), lowest(int64), highest(uint64)]", (-128, 15, -(2**63), None)),
    ("[highest(float16), lowest(float16), highest(double)]", (65504.0, -65504.0, float(np.finfo(np.float64).max))),
    ('"a" == "b"', False),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), DECIDED, ids=[text for text, _ in DECIDED])
def test_what_is_decided(text: str, expected: Value | None) -> None:
    found = value(text, x=X, N=N, M=M, u=None, T=DType(FLOAT))
    assert found == expected
    assert type(found) is type(expected)


WITHOUT_VALUE = [
    ("1 // 0", "division by 0"),
    ("1 / 0", "division by 0"),
    ("1 % 0", "division by 0"),
    ("64 // N", "the divisor N may be 0"),
    ("N * 64 // N", "the divisor N may be 0"),
    ("1 // u", "the divisor ? may be 0"),
    ("2 ** -1", "an integer to the power -1, which may be below 0; a float has such powers"),
    ("2 ** (N - 2)", "an integer to the power N - 2, which may be below 0; a float has such powers"),
    ("[1][1]", "index 1 of a list of 1 items"),
    ("[1][-2]", "index -2 of a list of 1 items"),
    ("[1][N]", "the index is N, which is no number"),
    ("[1][u]", "the index is not known"),
    ("v[0]", "the list is not known"),
    ("N[0]", "only a list has items"),
    ("N[0:]", "only a list can be cut"),
    ("[1][0.5:]", "a list is cut at integers"),
    ("[*N]", "only a list can be spread"),
    ("[i for i in N]", "only a list can be gone through"),
    ("[i for i in v]", "the list that is gone through is not known"),
    ("[1 // i for i in v]", "the list that is gone through is not known"),
    ("[1 // i for i in [u] if i != 0]", "the divisor ? may be 0"),
    ("dim(x, 4)", "axis 4 of a tensor of rank 4"),
    ("dim(x, -5)", "axis -5 of a tensor of rank 4"),
    ("dim(z, 0)", "the rank of the tensor is not known"),
    ("dim(N, 0)", "dim takes a tensor, not an integer"),
    ("dim(x, u)", "an argument of dim is not known"),
    ("rank([1])", "rank takes a tensor, not a list"),
    ("(1 == 1) + 1", "`+` is not for a condition and an integer"),
    ("[1] + 1", "a list and an integer can not be added"),
    ("[1] * 2", "`*` is not for a list and an integer"),
    ('"a" + "b"', "`+` is not for a string and a string"),
    ("-[1]", "`-` is not for a list"),
    ("not 1", "an integer is no condition"),
    ("1 and 1 == 1", "an integer is no condition"),
    ("1 if 1 else 2", "an integer is no condition"),
    ('1 == "a"', "an integer and a string can not be compared"),
    ("(1 == 1) == 1", "a condition and an integer can not be compared"),
    ("x == x", "a tensor and a tensor can not be compared"),
    ('"a" < "b"', "a string and a string are in no order"),
    ("1 in 1", "an integer has no items"),
    ("N == M and 1 // 0 == 1", "division by 0"),
    ("y", "y has no value"),
    ("min([])", "min of no numbers, or of a list that is not known"),
    ("max(v)", "max of no numbers, or of a list that is not known"),
    ("sum([float])", "sum is of numbers, not of a data type"),
    ('prod([1, "a"])', "prod is of numbers, not of a string"),
    ("sorted([0.0 / 0.0])", "a NaN has no place in an order"),
    ("range(0, 1, 0)", "a range with the step 0"),
    ("range(0, 1, N)", "the step is N, which is no number"),
    ("len(1)", "len takes a list, not an integer"),
    ("ones(1.5)", "a float is no number of items"),
    ("all([1])", "an integer is no condition"),
    ("index([N, 1], 2)", "no item of the list is known to be this one"),
    ("broadcast([2], [3])", "sizes 2, 3 may not broadcast together"),
    ("broadcast([N], [3])", "sizes N, 3 may not broadcast together"),
    ("broadcast(v, [1])", "an argument of broadcast is not known"),
    ("sorted(v)", "an argument of sorted is not known"),
    ("broadcast([u], [u])", "sizes ? may not broadcast together"),
    ("broadcast([0.5], [1])", "sizes are integers"),
    ("inverse([1, 1])", "a list that is no permutation has no inverse"),
    ("inverse([0, u])", "the items of a permutation are not all known"),
    ("normalized(3, 3)", "axis 3 of 3"),
    ("normalized([u], 3)", "an axis is not known"),
    ("normalized(0.5, 3)", "a float is no axis"),
    ("moves_only_ones([0], [1, 1])", "this is no permutation of the axes"),
    ("regroup([2, 3], [5])", "the sizes are not known to make up as many elements"),
    ("regroup([N], [M])", "the sizes are not known to make up as many elements"),
    ('letters("ab,bc->ca", 2, 2)', "operand 2 of an equation of 2"),
    ('letters("ab->a", 0, 3)', "a tensor of 3 axes for the letters ab"),
    ('letters("a...b->a", 0, 1)', "a tensor of 1 axes for the letters a...b"),
    ("equation([1], [1])", "the letters of an operand are a list"),
    ("equation([[52]], [52])", "a letter is a number below 52"),
    ("equation([[u]], [u])", "a letter is a number below 52"),
    ("bits(string)", "a string has no fixed number of bits"),
    ("highest(bool)", "bool has no least or greatest number"),
]


@pytest.mark.parametrize(("text", "expected"), WITHOUT_VALUE, ids=[text for text, _ in WITHOUT_VALUE])
def test_what_has_no_value(text: str, expected: str) -> None:
    assert reason(text, x=X, z=Tensor(Fact(FLOAT)), N=N, M=M, u=None, v=None) == expected


def test_elements_of_constants() -> None:
    def of(name: str, array: Any) -> Value | None:
        return value(f"{name}(c)", c=Tensor(from_array(np.asarray(array))))

    bfloat16 = np.array([1.5], helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16))
    assert of("uniform", np.full((2, 2), 0.1, np.float32)) == float(np.float32(0.1))
    assert of("uniform", np.array([1, 1], np.int32)) == 1
    assert of("uniform", np.array(True)) is True
    assert of("uniform", np.array([1, 2])) is None
    assert of("uniform", np.zeros((0,), np.float32)) is None
    assert of("uniform", np.array([2**64 - 1], np.uint64)) is None
    assert of("uniform", np.array([1 + 2j])) is None
    assert of("values", np.array([[1, 2], [3, -4]])) == (1, 2, 3, -4)
    assert of("values", np.array([True, False])) == (True, False)
    assert of("values", bfloat16) == (1.5,)
    assert of("values", np.zeros(1000)) is None
    assert of("constant", np.zeros(1000)) is True
    assert value("constant(x)", x=X) is False
    assert value("values(x)", x=X) is None
    assert value("values(k)", k=indices((N, None))) == (N, None)
    assert value("values(k)", k=Tensor(Fact(BOOL, (2,), ints=(1, None)))) == (True, None)
    assert value("dtype(k)", k=Tensor(Fact())) is None


def some_values(code: int) -> Any:
    """All values of a data type of up to 16 bits, many of a wider one."""
    found = helper.tensor_dtype_to_np_dtype(code)
    bits = FUNCTIONS["bits"].apply((DType(code),))
    assert isinstance(bits, int)
    if code == BOOL:
        return np.array([False, True])
    if bits > 16:
        stored = np.random.default_rng(0).integers(0, 2**bits - 1, 300, np.uint64, True).astype(f"uint{bits}")
        return np.append(stored.view(found), np.array([0, 1], found))
    if FUNCTIONS["integral"].apply((DType(code),)):
        low, high = (value(f"{end}(t)", t=DType(code)) for end in ("lowest", "highest"))
        assert isinstance(low, int) and isinstance(high, int)
        return np.arange(low, high + 1).astype(found)
    return np.arange(2**bits, dtype=np.uint16 if bits == 16 else np.uint8).view(found)


@pytest.mark.parametrize("source", CODES)
def test_a_lossless_cast_keeps_every_value(source: int) -> None:
    before = some_values(source)
    for target in CODES:
        with np.errstate(all="ignore"):
            found = helper.tensor_dtype_to_np_dtype(target)
            # There are no casts between two data types that numpy lacks; double has all their
            # values.
            after = (before.astype(np.float64) if before.dtype.isbuiltin == found.isbuiltin == 2 else before).astype(found)
        pairs = zip(before.tolist(), after.tolist(), strict=True)
        kept = all(math.isnan(b) if math.isnan(a) else a == b and math.copysign(1, a) == math.copysign(1, b) for a, b in pairs)
        lossless = FUNCTIONS["lossless"].apply((DType(source), DType(target)))
        assert kept or not lossless, target
        if target != BOOL and (value("integral(t)", t=DType(target)) or target in (FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)):
            assert kept == lossless, target


# --- groupings hold at all sizes, though there may be finer ones at some ---


@settings(max_examples=400, deadline=None)
@given(st.lists(DIMS, max_size=4), st.lists(DIMS, max_size=4), st.randoms(use_true_random=False), SIZES)
def test_groups_make_up_as_many_elements(a: list[Any], b: list[Any], random: Any, sizes: dict[str, int]) -> None:
    if random.random() < 0.8:
        # What has as many elements: sizes split, joined, moved, and ones put in.
        b = [1, *a, 1][: random.choice([-1, 4, 9])]
        if len(b) > 2:
            b[1:3] = [dims.mul(b[1], b[2])]
        random.shuffle(b)
    try:
        groups: Any = FUNCTIONS["regroup"].apply((tuple(a), tuple(b)))
    except ValueError:
        return
    assert [sum(column) for column in zip(*groups, strict=True)] == ([len(a), len(b)] if a or b else [])
    left, right = list(a), list(b)
    for m, n in groups:
        assert m or n
        products = dims.product(left[:m]), dims.product(right[:n])
        assert dims.equal(*products) is True
        del left[:m], right[:n]


def test_the_table_of_functions() -> None:
    for name, function in FUNCTIONS.items():
        assert function.name == name
        assert "\n" not in function.documentation and function.documentation
        assert function.optional < max(len(function.parameters), 1)
        assert function.parameters
