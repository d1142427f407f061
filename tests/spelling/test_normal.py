"""The normal form of a node computes the same, and nodes of one meaning have one form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from onnx import helper

from eqsat.facts.dims import symbol
from eqsat.facts.fact import Fact, from_array
from eqsat.operators import attribute_default, find_operator, read_attributes
from eqsat.spelling.normal import normal_form
from eqsat.spelling.opsets import read, write
from eqsat.terms.attribute_meaning import AXIS_ATTRIBUTES, axis_span, is_default
from eqsat.terms.forms import Form
from eqsat.terms.terms import Literal, fact_of
from eqsat.traits import NEWEST
from tests.support.node_cases import feeds_of, node_cases
from tests.support.parameters import spread
from tests.support.spelled import ELEMENTS, NAMES, NOT_RUN, SIZES, fault, known, show

FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def ints(*items: int) -> Any:
    return np.array(items, np.int64)


def form_of(name: str, attributes: Mapping[str, Any], inputs: Sequence[Any], outputs: int = 1, opset: int = NEWEST) -> Form:
    """Returns the normal form of a node.

    An input is an array, a fact, a shape (of floats), or None if absent.
    """
    operator = find_operator("", name, opset)
    given_attributes = [helper.make_attribute(key, value) for key, value in attributes.items()]
    facts = [item if item is None or isinstance(item, Fact) else Fact(FLOAT, item) if isinstance(item, tuple) else from_array(item) for item in inputs]
    form = normal_form(operator, read_attributes(operator, given_attributes), facts, outputs)
    assert form is not None
    return form


def check(name: str, attributes: Mapping[str, Any], values: Sequence[Any], outputs: int = 1, opset: int = NEWEST) -> None:
    """Checks that the node's normal form computes the same, whatever the facts of its data.

    Its opset must be able to express the form.
    """
    operator = find_operator("", name, opset)
    read_in = read_attributes(operator, [helper.make_attribute(key, value) for key, value in attributes.items()])
    for degree in (SIZES, NAMES):
        arrays = [None if value is None else np.asarray(value) for value in values]
        facts = [known(arrays[0], 0, degree), *map(known, arrays[1:])]
        form = read(operator, read_in, facts, outputs)
        assert form is not None
        assert fault(operator, read_in, form, facts, arrays, [f"output{place}" for place in range(outputs)], back=True) is None


# --- the node tests of onnx ---

# The reference runs these types only without attributes.
NOT_JUDGED = ("test_castlike_FLOAT4E2M1_to", "test_castlike_FLOAT_to_FLOAT4E2M1", "test_castlike_FLOAT16_to_FLOAT4E2M1")


# No engine runs these operators. Some of their nodes have no normal form, because eqsat leaves them
# as they are.
NEVER_RUN = {"ImageDecoder"}
OPAQUE = set(
    """Bernoulli BitShift CausalConvWithState Celu Compress Einsum If LinearAttention Loop Mod Range ReverseSequence Scan SpaceToDepth
    SwiGLU Unique Upsample""".split()
)


def is_judged(case: Any) -> bool:
    """Tells whether a case is one standard node whose inputs are tensors."""
    nodes = case.model.graph.node
    inputs = feeds_of(case.model, case.data_sets[0][0]).values()
    return len(nodes) == 1 and not nodes[0].domain and not case.name.startswith(NOT_JUDGED) and all(isinstance(value, np.ndarray) for value in inputs)


JUDGED = [case for case in node_cases().values() if is_judged(case)]


@pytest.mark.parametrize("case", spread(JUDGED, lambda case: case.name.removeprefix("test_"), every=5))
def test_a_node_case(case: Any) -> None:
    """Checks every node of one operator in onnx's own tests, with full and partial facts."""
    (node,), imports = case.model.graph.node, {entry.domain: entry.version for entry in case.model.opset_import}
    operator = find_operator("", node.op_type, imports[""])
    attributes = read_attributes(operator, node.attribute)
    feeds = feeds_of(case.model, case.data_sets[0][0])
    values = [feeds.get(name) for name in node.input]
    for degree in (ELEMENTS, NAMES):
        facts = [known(value, place, degree) for place, value in enumerate(values)]
        form = read(operator, attributes, facts, len(node.output))
        if form is None:
            assert operator.name in OPAQUE
        else:
            wrong = fault(operator, attributes, form, facts, values, node.output, back=degree != NAMES)
            assert wrong is None or (wrong == NOT_RUN and operator.name in NEVER_RUN), wrong


def test_most_node_cases_are_judged() -> None:
    assert len(JUDGED) > 1300


# --- parameters, drawn ---

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def filled(shape: Sequence[int]) -> Any:
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


@settings(max_examples=40)
@given(data=st.data(), shape=SHAPES)
def test_slices(data: st.DataObject, shape: tuple[int, ...]) -> None:
    axes = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True, min_size=1))
    bounds = st.one_of(st.integers(-6, 6), st.sampled_from([2**31 - 1, 2**63 - 1, -(2**31), -(2**63) + 1]))
    starts, ends = ([data.draw(bounds) for _ in axes] for _ in range(2))
    steps = data.draw(st.one_of(st.none(), st.lists(st.sampled_from([1, 1, 2, -1, -2, 3]), min_size=len(axes), max_size=len(axes))))
    # Engines disagree on the greatest integer as the end of a backward slice.
    assume(all(step > 0 or end < 2**31 - 1 for end, step in zip(ends, steps or [1] * len(axes), strict=True)))
    signed = [axis - len(shape) if data.draw(st.booleans()) else axis for axis in axes]
    given_axes = None if axes == list(range(len(axes))) and data.draw(st.booleans()) else ints(*signed)
    values = [filled(shape), ints(*starts), ints(*ends), given_axes, None if steps is None else ints(*steps)]
    check("Slice", {}, values)


@settings(max_examples=40)
@given(data=st.data(), shape=SHAPES, value=st.sampled_from([None, 0.0, -0.0, 2.0]), mode=st.sampled_from(["constant", "edge", "reflect", "wrap"]))
def test_pads(data: st.DataObject, shape: tuple[int, ...], value: float | None, mode: str) -> None:
    axes = data.draw(st.one_of(st.none(), st.lists(st.sampled_from(range(len(shape))), unique=True, min_size=1)))
    padded = list(range(len(shape))) if axes is None else axes
    room = [shape[axis] - 1 if mode != "constant" else 2 for axis in padded] * 2
    pads = [data.draw(st.integers(-1 if mode == "constant" and shape[axis] > 2 else 0, most)) for axis, most in zip(padded * 2, room, strict=True)]
    signed = None if axes is None else ints(*(axis - len(shape) if data.draw(st.booleans()) else axis for axis in axes))
    check("Pad", {"mode": mode}, [filled(shape), ints(*pads), None if value is None else np.float32(value), signed])


@settings(max_examples=40)
@given(
    data=st.data(), shape=SHAPES, keep=st.integers(0, 1), noop=st.integers(0, 1), name=st.sampled_from(["ReduceSum", "ReduceMax", "ReduceL2", "ReduceLogSum"])
)
def test_reduced_axes(data: st.DataObject, shape: tuple[int, ...], keep: int, noop: int, name: str) -> None:
    axes = data.draw(st.one_of(st.none(), st.lists(st.sampled_from(range(len(shape))), unique=True)))
    signed = None if axes is None else ints(*(axis - len(shape) if data.draw(st.booleans()) else axis for axis in axes))
    check(name, {"keepdims": keep, "noop_with_empty_axes": noop}, [filled(shape), signed])


@settings(max_examples=40)
@given(data=st.data(), shape=st.lists(st.sampled_from([1, 1, 2, 3]), min_size=1, max_size=4).map(tuple))
def test_squeezed_axes(data: st.DataObject, shape: tuple[int, ...]) -> None:
    single = [axis for axis, size in enumerate(shape) if size == 1]
    axes = data.draw(st.one_of(st.none(), st.permutations(single))) or None
    check("Squeeze", {}, [filled(shape), None if axes is None else ints(*(axis - len(shape) if data.draw(st.booleans()) else axis for axis in axes))])
    rank = len(shape) + data.draw(st.integers(1, 2))
    added = data.draw(st.permutations(range(rank)))[: rank - len(shape)]
    check("Unsqueeze", {}, [filled(shape), ints(*(axis - rank if data.draw(st.booleans()) else axis for axis in added))])


@settings(max_examples=40)
@given(data=st.data(), shape=SHAPES, count=st.integers(1, 4))
def test_split_sizes(data: st.DataObject, shape: tuple[int, ...], count: int) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    part = -(-shape[axis] // count)
    assume(part * (count - 1) < shape[axis])
    check("Split", {"axis": axis, "num_outputs": count}, [filled(shape)], count)
    check("Split", {"axis": axis}, [filled(shape), ints(*([1] * (shape[axis] - 1)), 1)], shape[axis])


@settings(max_examples=40)
@given(data=st.data(), shape=SHAPES)
def test_reshaped_sizes(data: st.DataObject, shape: tuple[int, ...]) -> None:
    sizes = list(data.draw(st.permutations(shape)))
    place = data.draw(st.integers(0, len(sizes) - 1))
    if data.draw(st.booleans()):
        sizes[place] = -1
    elif sizes[place] == shape[place]:
        sizes[place] = 0
    check("Reshape", {}, [filled(shape), ints(*sizes)])
    check("Reshape", {"allowzero": 1}, [np.zeros((0, *shape), np.float32), ints(*sorted(shape), 0)])
    check("Expand", {}, [filled(shape), ints(2, *(1 if data.draw(st.booleans()) else size for size in shape))])


@settings(max_examples=40)
@given(data=st.data(), shape=SHAPES, name=st.sampled_from(["ArgMax", "Softmax", "LogSoftmax", "Hardmax", "LpNormalization", "Flatten"]))
def test_axes(data: st.DataObject, shape: tuple[int, ...], name: str) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - (name != "Flatten")))
    check(name, {"axis": axis}, [filled(shape)])
    check("CumSum", {}, [filled(shape), np.int64(min(axis, len(shape) - 1))])
    check("Shape", {"start": data.draw(st.integers(-6, 6)), "end": data.draw(st.integers(-6, 6))}, [filled(shape)])
    check("Transpose", {"perm": data.draw(st.permutations(range(len(shape))))}, [filled(shape)])
    check("Transpose", {}, [filled(shape)])


WINDOWS = st.tuples(st.integers(1, 9), st.integers(1, 4), st.integers(1, 4))
RULES = st.sampled_from(["SAME_UPPER", "SAME_LOWER", "VALID"])


@settings(max_examples=40)
@given(
    windows=st.lists(WINDOWS, min_size=1, max_size=2), rule=RULES, name=st.sampled_from(["Conv", "MaxPool", "AveragePool", "LpPool"]), count=st.integers(0, 1)
)
@example(windows=[(4, 3, 2), (5, 2, 1)], rule="SAME_LOWER", name="Conv", count=0)
def test_padding_is_explicit(windows: list[tuple[int, int, int]], rule: str, name: str, count: int) -> None:
    # Runtimes refuse windows that do not fit, and disagree on strides that exceed the kernel.
    assume(all(size >= kernel >= stride for size, kernel, stride in windows))
    sizes, kernel, strides = zip(*windows, strict=True)
    x, attributes = filled((1, 2, *sizes)), {"auto_pad": rule, "strides": strides, "kernel_shape": kernel}
    if name == "AveragePool":
        attributes["count_include_pad"] = count
    values = [x, filled((3, 2, *kernel))] if name == "Conv" else [x]
    check(name, attributes, values)
    form = form_of(name, attributes, values)
    assert form.attributes["auto_pad"] == b"NOTSET" and ("kernel_shape" in form.attributes) == (name != "Conv")


@settings(max_examples=40)
@given(windows=st.lists(WINDOWS, min_size=1, max_size=2), rule=st.one_of(RULES, st.none()), less=st.integers(0, 2))
def test_transposed_padding_is_explicit(windows: list[tuple[int, int, int]], rule: str | None, less: int) -> None:
    sizes, kernel, strides = zip(*windows, strict=True)
    attributes: dict[str, Any] = {"strides": strides, "auto_pad": rule or "NOTSET"}
    full = [(size - 1) * stride + length for size, length, stride in windows]
    if rule is None:
        attributes["output_shape"] = [size - less for size in full]
    assume(all(size > less for size in full) and all(length >= stride for _, length, stride in windows))
    values = [filled((1, 2, *sizes)), filled((2, 3, *kernel))]
    check("ConvTranspose", attributes, values)
    form = form_of("ConvTranspose", attributes, values)
    assert form.attributes["auto_pad"] == b"NOTSET" and "output_shape" not in form.attributes


# --- one form for what means the same ---

N = symbol("N")
SAME_FORMS: list[tuple[str, list[tuple[Mapping[str, Any], list[Any]]]]] = [
    ("Softmax", [({"axis": -1}, [(2, 3)]), ({"axis": 1}, [(2, 3)]), ({}, [(2, 3)])]),
    ("Transpose", [({}, [(2, N, 4)]), ({"perm": [2, 1, 0]}, [(2, N, 4)])]),
    ("Flatten", [({"axis": -3}, [(2, N, 4)]), ({"axis": 0}, [(2, N, 4)])]),
    ("OneHot", [({"axis": -1}, [Fact(INT64, (2, 3)), ints(5), (2,)]), ({"axis": 2}, [Fact(INT64, (2, 3)), ints(5), (2,)])]),
    ("Squeeze", [({}, [(1, 2, 1)]), ({}, [(1, 2, 1), ints(-1, 0)]), ({}, [(1, 2, 1), ints(0, 2)])]),
    ("Unsqueeze", [({}, [(N,), ints(-1, 0)]), ({}, [(N,), ints(2, 0)]), ({}, [(N,), ints(0, 2)])]),
    ("ReduceSum", [({}, [(2, N)]), ({}, [(2, N), ints()]), ({"noop_with_empty_axes": 1}, [(2, N), ints(-1, 0)])]),
    ("ReduceMax", [({"noop_with_empty_axes": 1}, [(2, N)]), ({"noop_with_empty_axes": 1}, [(2, N), ints()])]),
    (
        "Conv",
        [({}, [(1, 2, N, N), (3, 2, 1, 1)]), ({"strides": [1, 1], "kernel_shape": [1, 1], "auto_pad": "VALID"}, [(1, 2, N, N), (3, 2, 1, 1)])],
    ),
    ("Conv", [({"auto_pad": "SAME_UPPER"}, [(1, 2, 5), (3, 2, 2)]), ({"pads": [0, 1]}, [(1, 2, 5), (3, 2, 2)])]),
    ("Pad", [({}, [(2, N), ints(0, 1, 0, 2)]), ({}, [(2, N), ints(1, 2), np.float32(0), ints(-1)])]),
    ("Pad", [({"mode": "edge"}, [(2, N), ints(0, 1, 0, 2)]), ({"mode": "edge"}, [(2, N), ints(0, 1, 0, 2), np.float32(3)])]),
    ("Slice", [({}, [(N, 4), ints(1), ints(2**31 - 1)]), ({}, [(N, 4), ints(1), ints(2**63 - 1), ints(-2), ints(1)])]),
    ("Slice", [({}, [(N, 4), ints(-2), ints(9), ints(1)]), ({}, [(N, 4), np.array([2], np.int32), np.array([4], np.int32), np.array([-1], np.int32)])]),
    ("Split", [({"num_outputs": 1}, [(2, 6)]), ({}, [(2, 6), ints(2)])]),
    ("Reshape", [({}, [(N, 2, 3), ints(0, -1)]), ({}, [(N, 2, 3), ints(-1, 6)]), ({"allowzero": 1}, [(N, 2, 3), ints(-1, 6)])]),
    ("Expand", [({}, [(N, 3), ints(1)]), ({}, [(N, 3), ints(1, 1)])]),
    ("Cast", [({"to": 7}, [(2,)]), ({"to": 7, "saturate": 0, "round_mode": "down"}, [(2,)])]),
    ("Dropout", [({}, [(N,)]), ({"seed": 3}, [(N,), np.float32(0.1), np.array(False)])]),
    ("QuantizeLinear", [({}, [(2, N), ()]), ({"axis": 0}, [(2, N), ()])]),
    ("Shape", [({}, [(2, N)]), ({"start": -2, "end": 7}, [(2, N)])]),
    (
        "Resize",
        [
            ({"mode": "linear"}, [(1, N), None, np.array([1, 2], np.float32)]),
            ({"mode": "linear", "nearest_mode": "ceil", "axes": [0, -1]}, [(1, N), np.array([], np.float32), np.array([1, 2], np.float32)]),
        ],
    ),
]


@pytest.mark.parametrize(("name", "spellings"), SAME_FORMS)
def test_one_form(name: str, spellings: list[tuple[Mapping[str, Any], list[Any]]]) -> None:
    """Spellings of one meaning have one form.

    Their attributes are equal, and so are their constants, if any.
    """
    found: list[tuple[Any, ...]] = []
    for attributes, inputs in spellings:
        form = form_of(name, attributes, inputs)
        facts = [item if item is None or isinstance(item, Fact) else Fact(FLOAT, item) if isinstance(item, tuple) else from_array(item) for item in inputs]
        found.append((form.attributes, form.facts(facts)))
    assert all(other == found[0] for other in found[1:])


def test_what_is_not_known_stays() -> None:
    for name, attributes, inputs in [
        ("Softmax", {"axis": -1}, [Fact(FLOAT)]),
        ("ReduceSum", {}, [Fact(FLOAT)]),
        ("ReduceSum", {"noop_with_empty_axes": 1}, [(2, 3), Fact(INT64, (symbol("K"),))]),
        ("Squeeze", {}, [(1, N)]),
        ("Slice", {}, [(N, 4), Fact(onnx.TensorProto.INT32, (1,)), Fact(onnx.TensorProto.INT32, (1,)), np.array([1], np.int32)]),
        ("Conv", {"auto_pad": "SAME_UPPER"}, [(1, 2, N), (3, 2, 2)]),
        ("MaxPool", {"auto_pad": "VALID", "ceil_mode": 1, "kernel_shape": [2]}, [(1, 2, 5)]),
        ("MaxPool", {"auto_pad": "SAME_UPPER", "strides": [3], "kernel_shape": [1]}, [(1, 2, 8)]),
        ("Pad", {}, [(2, N), ints(0, 1, 0, 2), np.float32(-0.0)]),
        ("Pad", {}, [(2, N), Fact(INT64, (2,)), None, ints(-1)]),
        ("DequantizeLinear", {"axis": 0}, [Fact(onnx.TensorProto.INT8, (2, 3)), (2,)]),
        ("Split", {"num_outputs": 2}, [(N,)]),
        ("Split", {"num_outputs": 4}, [(5,)]),
        ("Reshape", {}, [Fact(FLOAT), ints(0, -1)]),
        ("Dropout", {}, [(2,), np.float32(0.5), Fact(onnx.TensorProto.BOOL, ())]),
    ]:
        form = form_of(name, attributes, inputs, attributes.get("num_outputs", 1))
        operator = find_operator("", name, NEWEST)
        given_attributes = read_attributes(operator, [helper.make_attribute(key, value) for key, value in attributes.items()])
        assert form == Form(operator, dict(sorted(given_attributes.items())), tuple(None if item is None else place for place, item in enumerate(inputs))), (
            show(form)
        )


def test_named_sizes_are_written_as_names() -> None:
    form = form_of("Reshape", {}, [(N, 2, 3), ints(0, -1)])
    assert form.inputs == (0, Literal(INT64, (2,), (N, 6))) and form.attributes["allowzero"] == 0
    assert form_of("Reshape", {"allowzero": 1}, [(0, 3), ints(3, 0)]).attributes["allowzero"] == 1


# --- what attributes mean ---


def test_every_axis_is_in_the_table() -> None:
    """An attribute called an axis counts from the front, or its text tells why not."""
    others = {("ConcatFromSequence", "axis"), ("ConcatFromSequence", "new_axis"), ("ReverseSequence", "batch_axis"), ("ReverseSequence", "time_axis")}
    declared = {
        (schema.name, name)
        for schema in (find_operator("", schema.name, NEWEST).schema for schema in onnx.defs.get_all_schemas())
        if schema is not None and schema.domain == ""
        for name in schema.attributes
        if name.endswith(("axis", "axes")) and name != "noop_with_empty_axes" and schema.name != "Scan"
    }
    assert declared == {*AXIS_ATTRIBUTES, *others} - {("Shape", "start"), ("Shape", "end")}


def test_axis_span() -> None:
    x = Fact(FLOAT, (2, N, 4))
    assert axis_span(find_operator("", "Concat", NEWEST), "axis", (Fact(FLOAT), x)) == 3
    assert axis_span(find_operator("", "OneHot", NEWEST), "axis", (x, None, None)) == 4
    assert axis_span(find_operator("", "Softmax", NEWEST), "axis", (Fact(FLOAT),)) is None
    assert axis_span(find_operator("", "Conv", NEWEST), "group", (x,)) is None


def test_defaults() -> None:
    conv, clip = find_operator("", "Conv", NEWEST), find_operator("", "LeakyRelu", NEWEST)
    assert is_default(conv, "strides", (1, 1)) and is_default(conv, "pads", (0, 0)) and is_default(conv, "strides", None)
    assert is_default(conv, "group", 1) and is_default(conv, "auto_pad", b"NOTSET") and is_default(clip, "alpha", attribute_default(clip, "alpha"))
    assert not is_default(conv, "strides", (1, 2)) and not is_default(conv, "pads", (1, 0)) and not is_default(conv, "kernel_shape", (1, 1))
    assert not is_default(conv, "strides", ()) and not is_default(conv, "group", 2) and not is_default(clip, "alpha", 0.0)


def test_reduced_sizes_of_a_written_form_are_attributes_again() -> None:
    form = form_of("ReduceMean", {"axes": [-1]}, [(2, N)], opset=13)
    assert fact_of(form.inputs[1]).ints == (1,) if isinstance(form.inputs[1], Literal) else False
    written = write(form.operator, form.attributes, form.facts([Fact(FLOAT, (2, N))]), 1, 13)
    assert written is not None and (written.attributes, written.inputs) == ({"axes": (1,)}, (0,))
