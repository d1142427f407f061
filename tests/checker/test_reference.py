"""Our own kernels against ONNX Runtime, and where it has none against the reference of onnx: the
same inputs, random attributes, equal within rounding.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from eqsat.checker.kernels import foreign, fused, pointwise
from eqsat.checker.kernels.call import Array, Call, Illegal, Unsupported, is_float
from eqsat.checker.kernels.reference import KERNELS, exact_where_short, rounds
from eqsat.checker.kernels.sums import largest, maximum, minimum, product, smallest, total
from eqsat.operators import find_operator, read_attributes
from eqsat.traits import NEWEST
from tests.support.drawn_elements import ELEMENTS
from tests.support.drawn_layers import LAYERS

DRAWS = {**ELEMENTS, **LAYERS}
INSTANCES = 40
OUTPUTS: Mapping[str, int] = {"DynamicQuantizeLinear": 3, "MaxPool": 2, "TopK": 2, "Dropout": 2, "LayerNormalization": 3, "GRU": 2, "LSTM": 3}


def make_call(name: str, inputs: Sequence[Array | None], attributes: dict[str, Any], outputs: int) -> Call | None:
    """The node, typed by ONNX's own inference; None where that refuses it."""
    operator = find_operator("", name, NEWEST)
    dtypes = tuple(0 if x is None else int(helper.np_dtype_to_tensor_dtype(x.dtype)) for x in inputs)
    node = helper.make_node(name, ["" if x is None else f"i{place}" for place, x in enumerate(inputs)], [f"o{place}" for place in range(outputs)], **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [],
        [onnx.ValueInfoProto(name=f"o{place}") for place in range(outputs)],
        [numpy_helper.from_array(x, f"i{place}") for place, x in enumerate(inputs) if x is not None],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", NEWEST)], ir_version=10)
    try:
        typed = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except onnx.shape_inference.InferenceError:
        return None
    results = tuple(output.type.tensor_type.elem_type for output in typed.graph.output)
    return Call(operator, read_attributes(operator, node.attribute), tuple(inputs), dtypes, results)


def outputs_of(name: str, attributes: dict[str, Any], inputs: Sequence[Array | None]) -> int:
    if name == "Split":
        return attributes.get("num_outputs") or inputs[1].size  # type: ignore[union-attr]
    return OUTPUTS.get(name, 1)


def apart(ours: Array, theirs: Array, unit: float = float(np.finfo(np.float32).eps)) -> float:
    """How many units the results are apart, measured by the largest element; 0 where equal, NaN
    included.
    """
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    with np.errstate(all="ignore"):
        error = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
    finite = np.abs(b[np.isfinite(b)])
    return float(np.max(np.nan_to_num(error, nan=np.inf), initial=0) / (unit * max(finite.max(initial=0), 1e-3)))


def _whole_pool(call: Call) -> Call:
    """No runtime has GlobalLpPool; it is an LpPool whose window is the image."""
    operator = find_operator("", "LpPool", NEWEST)
    return Call(operator, {**call.attributes, "kernel_shape": call.input(0).shape[2:]}, call.inputs, call.dtypes, call.results)


def test_every_kernel_is_drawn():
    """Those of runtimes' own operators have a test of their own."""
    assert set(DRAWS) == set(KERNELS) - set(fused.KERNELS)


@pytest.mark.parametrize("name", sorted(DRAWS))
def test_kernel_agrees_with_the_runtimes(name: str):
    random = np.random.default_rng([7, *name.encode()])
    compared = 0
    for _ in range(INSTANCES):
        inputs, attributes = DRAWS[name](random)
        call = make_call(name, inputs, attributes, outputs_of(name, attributes, inputs))
        if call is None:
            continue
        try:
            theirs = foreign.compute(_whole_pool(call) if name == "GlobalLpPool" else call)
        except (Illegal, Unsupported):
            continue
        try:
            with np.errstate(all="ignore"):
                ours = [np.asarray(x) for x in KERNELS[name](call)]
        except Illegal as refusal:
            # What ONNX forbids and ONNX Runtime lets pass, each in its own way.
            assert re.search("larger than its padded image|backwards to the largest", str(refusal)), f"{refusal}: {name} {attributes}"
            continue
        said = f"{name} {attributes} on {[None if x is None else (x.dtype.name, x.shape) for x in inputs]}"
        compared += 1
        for result, (a, b) in enumerate(zip(ours, theirs, strict=False)):
            assert a.shape == b.shape, said
            assert a.dtype == b.dtype, said
            if is_float(a) and rounds(name, call.attributes):
                # Sums of a few hundred terms in another order, and transcendental functions of a
                # few units.
                assert apart(a, b) < 64, f"{said}: result {result}\n{a}\n{b}"
            else:
                np.testing.assert_array_equal(a.astype(np.float64), b.astype(np.float64), said)
    assert compared >= INSTANCES // 3, f"only {compared} of {INSTANCES} could be compared"


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float64])
@pytest.mark.parametrize("name", sorted(DRAWS))
def test_kernel_computes_in_every_type_and_with_reals(name: str, kind: Any):
    """The declared type rounds what reals give, and nothing else: the two modes of evaluation."""
    random = np.random.default_rng([8, *name.encode()])
    unit = float(ml_dtypes.finfo(kind).eps)
    for _ in range(8):
        inputs, attributes = DRAWS[name](random)
        inputs = [x if x is None or not is_float(x) else x.astype(kind) for x in inputs]
        call = make_call(name, inputs, attributes, outputs_of(name, attributes, inputs))
        if call is None or not any(x is not None and is_float(x) for x in inputs):
            continue
        reals = tuple(x if x is None or not is_float(x) else x.astype(np.float64) for x in inputs)
        with np.errstate(all="ignore"):
            try:
                ours = [np.asarray(x) for x in KERNELS[name](call)]
                real = [np.asarray(x) for x in KERNELS[name](Call(call.operator, call.attributes, reals, call.dtypes, call.results))]
            except (Illegal, Unsupported):
                continue
        said = f"{name} {attributes} on {[None if x is None else (x.dtype.name, x.shape) for x in inputs]}"
        assert ours[0].dtype == helper.tensor_dtype_to_np_dtype(call.results[0]), said
        for a, b in zip(ours, real, strict=True):
            assert a.shape == b.shape, said
            if is_float(a) and np.isfinite(a.astype(np.float64)).all():
                assert b.dtype == np.float64 or name in ("Cast", "CastLike"), said
                assert apart(a, b, unit) < 64, f"{said}\n{a}\n{b}"


# --- one order, whatever the position ---

SINGLES = st.one_of(st.floats(width=32), st.sampled_from([0.0, -0.0, float("nan"), float("inf"), -float("inf")]))


@given(st.lists(SINGLES, max_size=40), st.integers(0, 30))
def test_sums_do_not_depend_on_position(numbers: list[float], before: int):
    terms = np.array(numbers, np.float32)
    filled = np.zeros((len(terms), before + 3), np.float32)
    filled[:, before] = terms
    expected = np.float32(0)
    with np.errstate(all="ignore"):
        for place, term in enumerate(terms):
            expected = term if place == 0 else np.float32(expected + term)
        np.testing.assert_array_equal(total(terms), expected)
        np.testing.assert_array_equal(total(filled)[before], expected)
        np.testing.assert_array_equal(total(np.asfortranarray(filled))[before], expected)
        np.testing.assert_array_equal(product(filled.copy(order="F"))[before], product(terms))


def test_sums_run_from_the_first_term_to_the_last():
    terms = np.random.default_rng(0).standard_normal((100, 5)).astype(np.float32)
    expected = terms[0]
    for term in terms[1:]:
        expected = expected + term
    np.testing.assert_array_equal(total(terms), expected)
    for place in range(5):
        assert total(np.ascontiguousarray(terms[:, place])) == expected[place]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8, np.int64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("rows", [1, 2, 9, 130])
@pytest.mark.parametrize("shape", [(31,), (40,), (3, 4, 5), (1000,)])
def test_many_sums_at_once_have_the_bits_of_running_sums(kind: type[Any], rows: int, shape: tuple[int, ...]):
    drawn = np.random.default_rng(rows).standard_normal((rows, *shape)) * 9
    terms = np.where(drawn > 3, -0.0, drawn).astype(kind)
    terms[:, ..., 0] = -np.zeros((), kind)
    expected = np.add.accumulate(terms, axis=0, dtype=terms.dtype)[-1]
    for layout in (terms, np.asfortranarray(terms), terms[..., ::-1].copy()[..., ::-1]):
        assert total(layout).tobytes() == expected.tobytes()


@given(st.lists(SINGLES, min_size=1, max_size=9), st.randoms(use_true_random=False))
def test_the_order_of_operands_never_matters_to_a_maximum(numbers: list[float], order: Any):
    values = np.array(numbers, np.float32)
    order.shuffle(numbers)
    for function in (largest, smallest):
        with np.errstate(all="ignore"):
            one, two = function(values), function(np.array(numbers, np.float32))
        assert np.array_equal(one, two, equal_nan=True)
        assert np.isnan(one) or np.signbit(one) == np.signbit(two)


def test_zeros_have_an_order():
    zero, below = np.array(0.0), np.array(-0.0)
    assert not np.signbit(maximum(below, zero))
    assert np.signbit(minimum(zero, below))
    assert np.signbit(maximum(below, below))


@pytest.mark.parametrize("count", [1, 40])
def test_a_scalar_function_has_a_value_where_python_raises(count: int):
    far = np.array([0.0, -1.0, 1e3, math.inf, -math.inf, math.nan])
    for function, expected in (
        ("exp", [1, math.exp(-1), math.inf, math.inf, 0, math.nan]),
        ("log", [-math.inf, math.nan, math.log(1e3), math.inf, *2 * [math.nan]]),
    ):
        with np.errstate(all="ignore"):
            found = pointwise.elementwise(getattr(pointwise, function), np.tile(far, count))
        np.testing.assert_array_equal(found, np.tile(np.array(expected), count))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_integers_wrap(dtype: Any):
    information = np.iinfo(dtype)
    ends = np.array([information.max, 2], dtype)
    assert total(ends) == np.array(information.max, dtype) + np.array([2], dtype)
    assert int(product(ends)) == int(information.max) * 2 % (1 << information.bits) - (1 << information.bits if information.min else 0)


def test_statistics_are_computed_in_their_stated_type():
    x = np.array([[300, -300, 299, 301]], np.float16)  # squares of these are no float16
    call = make_call("LayerNormalization", [x, np.ones(4, np.float16)], {}, 1)
    assert call is not None
    np.testing.assert_allclose(KERNELS["LayerNormalization"](call)[0].astype(np.float64), [[0.579, -1.732, 0.575, 0.583]], atol=0.01)


@pytest.mark.parametrize("name", ["Exp", "Softmax", "BatchNormalization", "LeakyRelu"])
def test_what_is_neither_arithmetic_nor_a_move_is_never_exact(name: str):
    assert rounds(name, {})
    assert not exact_where_short(name, {})


@pytest.mark.parametrize("a", [-7, -1, 0, 5, 7])
@pytest.mark.parametrize("b", [-3, -1, 2, 7])
def test_integer_division_rounds_towards_zero(a: int, b: int):
    call = make_call("Div", [np.array([a], np.int32), np.array([b], np.int32)], {}, 1)
    assert call is not None
    assert KERNELS["Div"](call)[0].tolist() == [int(a / b)]


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("size", "kernel", "stride"), [(6, 1, 2), (4, 1, 2), (2, 1, 2), (6, 2, 4), (5, 1, 3), (7, 1, 2)])
def test_a_stride_above_the_kernel_asks_for_no_padding(mode: str, size: int, kernel: int, stride: int):
    random = np.random.default_rng(size)
    x, w = random.standard_normal((2, 4, size, size)).astype(np.float32), random.standard_normal((3, 2, kernel, kernel)).astype(np.float32)
    call = make_call("Conv", [x, np.concatenate([w, w[:1]])], {"auto_pad": mode, "strides": [stride, stride], "group": 2}, 1)
    assert call is not None
    (ours,), (theirs,) = KERNELS["Conv"](call), foreign.compute(call)
    assert ours.shape == theirs.shape
    assert apart(ours, theirs) < 64


@pytest.mark.parametrize(
    ("name", "dtype", "value"),
    [
        ("ReduceMax", np.float32, -np.inf),
        ("ReduceMin", np.float16, np.inf),
        ("ReduceMax", np.int8, -128),
        ("ReduceMin", np.uint8, 255),
        ("ReduceSum", np.int32, 0),
        ("ReduceProd", np.float32, 1),
    ],
)
def test_what_is_made_of_nothing(name: str, dtype: Any, value: float):
    call = make_call(name, [np.zeros((2, 0), dtype), np.array([1])], {}, 1)
    assert call is not None
    np.testing.assert_array_equal(KERNELS[name](call)[0], np.full((2, 1), value, dtype))


def test_bounds_of_clip_are_scalars():
    call = make_call("Clip", [np.zeros((2, 3), np.float32), np.zeros(3, np.float32)], {}, 1)
    assert call is not None
    with pytest.raises(Illegal, match="no scalar"):
        KERNELS["Clip"](call)


def test_a_rotary_embedding_of_no_positions_has_none() -> None:
    call = make_call("RotaryEmbedding", [np.zeros((1, 0, 4), np.float32), *(np.zeros((1, 0, 1), np.float32),) * 2], {"num_heads": 2}, 1)
    assert call is not None
    (found,) = KERNELS["RotaryEmbedding"](call)
    assert found.shape == (1, 0, 4)
