"""Instances of left sides: legal, faithful to the rule's patterns, the same for a seed, and full of
what authors overlook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from eqsat.checker.drawing.demands import broken_law
from eqsat.checker.drawing.domains import Domain
from eqsat.checker.drawing.dtypes import WEIGHTS
from eqsat.checker.drawing.elements import draw_elements
from eqsat.checker.drawing.instances import Instance, draw, from_test
from eqsat.checker.samplers import SAMPLERS
from eqsat.checker.samplers.leaf_shapes import ELEMENT_LIMIT, RANK_LIMIT, draw_shapes
from eqsat.facts.fact import INTEGERS, Fact
from eqsat.facts.node import Node
from eqsat.language.parse import parse
from eqsat.language.resolve import resolve
from eqsat.language.resolved import Resolved
from eqsat.operators import find_operator
from eqsat.runtime.session import open_session
from eqsat.traits import NEWEST
from tests.support.parameters import spread
from tests.support.rule_page import PAGE
from tests.support.single_operators import newest

RULES = f"""{PAGE}
real rule mul-one:
    Mul(x, 1) => x
    test x: T[2, 3]

real rule mul-root:
    Mul(x, ~sqrt(2)) => Mul(x, T(sqrt(2)))
    where x: T
    test x: T[2, 3]

exact rule clip-clip:
    Clip(Clip(x, a, b), c?) => Clip(x, a, b)
    where const a, const b
    test x: T[2, 3], a: T[], b: T[], c: T[]
    test x: T[2, 3], a: T[], b: T[]

real rule pool-pad:
    MaxPool<..p>(Pad(x, q)) => MaxPool<..p>(Pad(x, q))
    test x: T[1, 2, 5, 5], q = [0, 0, 1, 1, 0, 0, 1, 1]

real rule conv-bias:
    Add(Conv<..p>(x, w), b) => Add(b, Conv<..p>(x, w))
    test x: T[1, 2, 5, 5], w: T[4, 2, 3, 3], b: T[4, 1, 1]

exact rule slice:
    Slice(x, i, j, a, s) => Slice(x, i, j, a, s)
    test x: T[5, 4], i = [1], j = [4], a = [0], s = [1]

exact rule slice-slice:
    Slice(Slice(x, [i], [e], [a]), [j], [k], [a]) => Slice(Slice(x, [i], [e], [a]), [j], [k], [a])
    test x: T[9, 3], a = 0, i = 1, e = 6, j = 1, k = 3

exact rule reduce-reduce:
    ReduceSum<keepdims = k>(ReduceMax<keepdims = l>(x, a), b) => ReduceSum<keepdims = k>(ReduceMax<keepdims = l>(x, a), b)
    test x: T[2, 3, 4], a = [1], b = [0], k = 1, l = 0

exact rule softmax:
    Softmax<axis = a>(x) => Softmax<axis = a>(x)
    test x: T[2, 3, 4], a = 1

exact rule max:
    Max(x, ..xs) => Max(x, ..xs)
    test x: T[2, 3], xs: T[3] T[2, 1]

exact rule split:
    a, b = Split<axis = k>(x, [n, m])
    Concat<axis = k>(b, a)
 => Concat<axis = k>(b, a, Slice(x, [n + m], [n + m], [k]))
    test x: T[5, 3], n = 2, m = 3, k = 0

exact rule square:
    Mul(x, x) => Mul(x, x)
    test x: T[2, 3]

exact rule gather-reshaped:
    Gather<axis = a>(x, Reshape(i, s)) => Gather<axis = a>(x, Reshape(i, s))
    test x: T[3, 4], i: int64[2], s = [2, 1], a = 0

exact rule divide:
    Div(x, Transpose<perm = p>(y)) => Div(x, Transpose<perm = p>(y))
    test x: T[2, 3], y: T[3, 2], p = [1, 0]

exact rule cast-cast:
    Cast<to = U>(Cast<to = T>(x)) => Cast<to = U>(Cast<to = T>(x))
    test x: float[2, 3], U = int8, T = float16

exact rule reshape:
    Reshape(Reshape(x, _), s) => Reshape(x, s)
    test x: T[2, 6], s = [12]

exact rule slice-nothing:
    Slice(x, [i], [j], _, _) => Slice(x, [i], [j])
    test x: T[5, 4], i = 1, j = 4

exact rule any-attributes:
    Softmax<.._>(Softmax<.._>(x)) => Softmax(x)
    test x: T[2, 3]

exact rule slice-optional:
    Slice(x, i, j, a?, s?) => Slice(x, i, j, a, s)
    test x: T[5, 4], i = [1], j = [4], a = [1]
    test x: T[5, 4], i = [1], j = [4]

exact rule wildcards:
    Add(_, Concat<axis = 0>(Neg(_), x, .._)) => Concat<axis = 0>(x)
    test _: T[9, 3] T[2, 3] T[4, 3], x: T[3, 3]

exact rule where:
    Where(c, x, y) => Where(c, x, y)
    test c: bool[2, 1], x: T[2, 3], y: T[3]

exact rule counted:
    ScatterND(x, i, u) => ScatterND(x, i, u)
    where i: _[n, 1], first = values(i)[0]
          first >= 0, values(i) == range(first, first + n)
    test x: T[5, 3], i: int64[3, 1], u: T[3, 3]
"""


@cache
def rules() -> Mapping[str, Resolved]:
    return {found.rule.name: found for found in resolve(parse(RULES, "test.rules"))}


NAMES = [line.split()[2].rstrip(":") for line in RULES.splitlines() if line.startswith(("exact rule", "real rule"))]


@cache
def drawn(name: str, count: int = 120) -> list[Instance]:
    return list(islice(draw(rules()[name], 7), count))


def node(instance: Instance, operator: str) -> onnx.NodeProto:
    return next(node for node in instance.model.graph.node if node.op_type == operator)


def attributes(instance: Instance, operator: str) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node(instance, operator).attribute}


def constants(instance: Instance) -> dict[str, np.ndarray]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in instance.model.graph.initializer}


def types(instance: Instance) -> dict[str, tuple[int, tuple[int, ...]]]:
    """Type and sizes of the leaves and the outputs by name."""
    found = {tensor.name: (tensor.data_type, tuple(tensor.dims)) for tensor in instance.model.graph.initializer}
    for info in (*instance.model.graph.input, *instance.model.graph.output):
        found[info.name] = info.type.tensor_type.elem_type, tuple(dim.dim_value for dim in info.type.tensor_type.shape.dim)
    return found


def operand(instance: Instance, operator: str, position: int) -> tuple[int, ...]:
    return types(instance)[node(instance, operator).input[position]][1]


def feeds(instance: Instance, seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    found = types(instance)
    return {info.name: draw_elements(generator, *found[info.name], instance.domains.get(info.name)) for info in instance.model.graph.input}


@pytest.mark.parametrize("name", NAMES)
def test_instances_are_legal_graphs_of_the_left_side(name: str) -> None:
    left = [line.value for line in rules()[name].rule.left]
    for instance in (*drawn(name), from_test(rules()[name], 0)):
        onnx.checker.check_model(instance.model)
        onnx.shape_inference.infer_shapes(instance.model, check_type=True, strict_mode=True, data_prop=True)
        assert instance.model.graph.node[-1].op_type == getattr(left[-1], "operator", None)
        assert instance.free <= constants(instance).keys()
        assert all(np.prod(shape) <= ELEMENT_LIMIT for _, shape in types(instance).values())


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_gives_the_same_instances_and_another_seed_others(name: str) -> None:
    def texts(seed: int) -> list[bytes]:
        return [instance.model.SerializeToString(deterministic=True) for instance in islice(draw(rules()[name], seed), 20)]

    first = texts(1)
    assert first == texts(1)
    assert first != texts(2)
    assert len(set(first)) > 15


def test_a_test_line_is_drawn_as_it_stands() -> None:
    found = types(from_test(rules()["slice-concat-head"], 0))
    assert found["x"] == (TensorProto.FLOAT, (5, 3))
    assert [found[name][1] for name in node(from_test(rules()["slice-concat-head"], 0), "Concat").input] == [(5, 3), (2, 3), (4, 3)]
    instance = from_test(rules()["slice-concat-head"], 0)
    assert [constants(instance)[name].tolist() for name in node(instance, "Slice").input[1:]] == [[1], [4], [0]]
    assert attributes(instance, "Concat") == {"axis": 0}
    assert not instance.free and instance.symbolic is None
    with_c, without = (from_test(rules()["clip-clip"], index) for index in (0, 1))
    assert len(with_c.model.graph.node[-1].input) == 2 and len(without.model.graph.node[-1].input) == 1
    batch = from_test(rules()["conv-batchnorm"], 0)
    assert attributes(batch, "BatchNormalization")["epsilon"] == 0.5 and attributes(batch, "Conv") == {}
    assert batch.free == {"w", "scale", "var"}


def test_instances_say_where_they_come_from() -> None:
    assert {instance.origin for instance in drawn("max")} == {"drawn"}
    assert from_test(rules()["clip-clip"], 1).origin == "test line 2"


WITHOUT_LINES = """
exact rule twice:
    Abs(Abs(x)) => Abs(x)

real rule product:
    MatMul(Add(x, b), w) => Add(MatMul(x, w), MatMul(b, w))
    where x: _[_, ..k], b: _[_, ..k], w: _[_, _]

exact rule joined:
    Concat<axis = a>([Transpose<perm = p>(x) for x in ..xs]) => Transpose<perm = p>(Concat<axis = p[a]>(..xs))

exact rule front:
    Concat<axis = a>(x, ..rest) => Concat<axis = a>(x, ..rest)

exact rule bounded:
    Clip(x, low?, high?) => Clip(x, low, high)

real rule convolution:
    Conv<..p>(x, w, b) => Conv<..p>(x, w, b)
    where w: _[m, ..k], b: _[m], len(k) > 2
"""


@pytest.mark.parametrize("rule", resolve(parse(WITHOUT_LINES, "lines.rules")), ids=lambda rule: rule.rule.name)
def test_a_rule_needs_no_test_line(rule: Resolved) -> None:
    instances = list(islice(draw(rule, 1), 60))
    assert len(instances) == 60
    for instance in instances:
        onnx.shape_inference.infer_shapes(instance.model, check_type=True, strict_mode=True, data_prop=True)
    ranks = {name: {len(types(instance)[name][1]) for instance in instances} for name in ("x", "w") if all(name in types(one) for one in instances)}
    match rule.rule.name:
        case "twice" | "bounded":
            assert ranks["x"] >= {0, 1, 2, 3, 4}, "tensors of all usual ranks"
        case "product":
            assert len(ranks["x"]) >= 2 and 0 not in ranks["x"] and ranks["w"] == {2}, "ranks that the rule states"
        case "convolution":
            assert len(ranks["w"]) >= 2 and min(ranks["w"]) > 3, "ranks that conditions leave"
        case _:
            counts = {len(node(instance, "Concat").input) for instance in instances}
            assert counts >= {1, 2, 3} and max(counts) <= 5, "lists of several lengths"


@pytest.mark.parametrize("term", ["Gather<axis = a>(x, i)", "ArgMax<axis = a, ..p>(Gather(x, i))"])
def test_a_test_line_with_an_axis_that_is_not_there_is_illegal(term: str) -> None:
    text = f"exact rule far:\n    Abs({term}) => {term}\n    test x: T[2, 3], i: int64[2], a = 7\n"
    (rule,) = resolve(parse(text, "far.rules"))
    with pytest.raises(ValueError, match="no legal instance"):
        from_test(rule, 0)


def test_a_rule_without_legal_instances_has_none() -> None:
    text = "exact rule none:\n    And(Add(x, y), z) => And(z, Add(x, y))\n    test x: float[2], y: float[2], z: bool[2]\n"
    (rule,) = resolve(parse(text, "none.rules"))
    assert list(draw(rule, 1)) == []
    with pytest.raises(ValueError, match="no legal instance"):
        from_test(rule, 0)


def test_roots_are_outputs_in_order() -> None:
    instance = drawn("matmul-matmul")[0]
    assert [info.name for info in instance.model.graph.output] == ["y1", "y2"]
    assert {value for node in instance.model.graph.node for value in node.output} == {"y1", "y2"}
    assert [info.name for info in drawn("split")[0].model.graph.output] == [drawn("split")[0].model.graph.node[-1].output[0]]


def test_names_keep_one_value() -> None:
    for instance in drawn("squeeze-unsqueeze"):
        rank = len(types(instance)["x"][1]) + len(instance.bindings["axes"])  # type: ignore[arg-type]
        found = constants(instance)
        first, second = (found[each.input[1]] if len(each.input) > 1 else None for each in instance.model.graph.node)
        assert first is not None
        if second is not None:
            assert sorted(first % rank) == sorted(second % rank) == sorted(instance.bindings["axes"])  # type: ignore[arg-type]
    for instance in drawn("conv-batchnorm"):
        assert instance.bindings["e"] == pytest.approx(attributes(instance, "BatchNormalization").get("epsilon", 1e-5))
        assert types(instance)["b"][1] == (types(instance)["w"][1][0],)
    for instance in drawn("square"):
        assert list(node(instance, "Mul").input) == ["x", "x"]


def test_any_attributes_are_any_at_each_node() -> None:
    def axes(instance: Instance) -> set[int]:
        rank = len(types(instance)["x"][1])
        return {attribute.i % rank for each in instance.model.graph.node for attribute in each.attribute if attribute.name == "axis"}

    assert any(len(axes(instance)) > 1 for instance in drawn("any-attributes"))


def test_optional_parameters_come_and_go() -> None:
    lengths = {len(node(instance, "Slice").input) for instance in drawn("slice-optional")}
    assert lengths == {3, 4, 5}
    assert [len(node(from_test(rules()["slice-optional"], index), "Slice").input) for index in (0, 1)] == [4, 3]


def test_wildcards_have_the_types_of_the_test_line_in_the_order_of_the_text() -> None:
    instance = from_test(rules()["wildcards"], 0)
    assert operand(instance, "Add", 0) == (9, 3)
    assert operand(instance, "Neg", 0) == (2, 3)
    assert [types(instance)[node(instance, "Concat").input[position]][1] for position in (1, 2)] == [(3, 3), (4, 3)]


def test_conditions_hold() -> None:
    for instance in drawn("slice-concat-head"):
        a, i, j = (instance.bindings[name] for name in "aij")
        assert 0 <= i <= j <= types(instance)["x"][1][a]  # type: ignore[operator, index]
    for instance in drawn("matmul-matmul"):
        assert len(types(instance)["w1"][1]) == len(types(instance)["w2"][1]) == 2
        assert {"w1", "w2"} <= instance.free


def test_a_list_may_count_on_from_an_element_of_its_own() -> None:
    lists = [constants(instance)["i"].ravel().tolist() for instance in drawn("counted")]
    assert all(items == list(range(items[0], items[0] + len(items))) for items in lists)
    assert len({len(items) for items in lists}) > 3 and len({items[0] for items in lists}) > 3


def test_numbers_are_constants_of_the_type() -> None:
    for name, value in (("mul-one", 1.0), ("mul-root", 2**0.5)):
        for instance in drawn(name):
            number = node(instance, "Mul").input[1]
            array = constants(instance)[number]
            assert number not in instance.free
            assert array.dtype == helper.tensor_dtype_to_np_dtype(types(instance)["x"][0])
            assert np.all(array == np.asarray(value).astype(array.dtype))
    assert {types(instance)["x"][0] for instance in drawn("mul-root")}.isdisjoint(INTEGERS)
    assert {operand(instance, "Mul", 1) for instance in drawn("mul-one")} >= {(), (1,)}


def test_symbolic_models_are_the_same_graph() -> None:
    pairs = [(instance, instance.symbolic) for name in NAMES for instance in drawn(name) if instance.symbolic is not None]
    assert 0.15 < len(pairs) / sum(len(drawn(name)) for name in NAMES) < 0.35
    for instance, symbolic in pairs:
        copy = onnx.ModelProto()
        copy.CopyFrom(symbolic)
        named = [dim for info in copy.graph.input for dim in info.type.tensor_type.shape.dim if dim.dim_param]
        unranked = [place for place, info in enumerate(copy.graph.input) if not info.type.tensor_type.HasField("shape")]
        assert (named or unranked) and {dim.dim_param for dim in named} == instance.sizes.keys()
        assert len(unranked) <= 1
        for place in unranked:
            copy.graph.input[place].CopyFrom(instance.model.graph.input[place])
        for dim in named:
            dim.dim_value = instance.sizes[dim.dim_param]
        del copy.graph.output[:]
        copy.graph.output.extend(instance.model.graph.output)
        assert copy == instance.model


def run(instance: Instance) -> list[Any]:
    return open_session(instance.model.SerializeToString()).run(feeds(instance))


def plain(instance: Instance) -> bool:
    """Whether both engines surely have kernels."""
    return all(dtype in (TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL) for dtype, _ in types(instance).values())


SPELLED: Mapping[str, Callable[[Any, Mapping[str, Any]], np.ndarray]] = {
    "slice": lambda x, b: x[tuple(_slices(x, b))],
    "transpose-transpose": lambda x, b: x.transpose(b["q"]).transpose(b["p"]),
    "squeeze-unsqueeze": lambda x, b: x,
    "reshape": lambda x, b: x.reshape(b["s"]),
    "reduce-reduce": lambda x, b: x.max(tuple(b["a"]), keepdims=bool(b["l"])).sum(tuple(b["b"]), keepdims=bool(b["k"])),
}


def _slices(x: np.ndarray, b: Mapping[str, Any]) -> list[slice]:
    found = [slice(None)] * x.ndim
    for start, end, axis, step in zip(b["i"], b["j"], b["a"], b["s"], strict=True):
        found[axis] = slice(start, None if end < -x.shape[axis] else end, step)
    return found


@pytest.mark.parametrize("name", SPELLED)
def test_every_spelling_computes_what_the_bindings_say(name: str) -> None:
    """Axes from the end, ends beyond the end, inferred sizes: the graph may be written in many
    ways, the names of the rule see one.
    """
    spellings: set[str] = set()
    for instance in filter(plain, drawn(name)):
        bindings = dict(instance.bindings)
        if name == "reduce-reduce" and not (bindings["a"] and bindings["b"]):
            continue  # no axes mean all of them, which numpy writes otherwise
        x = (constants(instance) | feeds(instance))["x"]
        if name == "reduce-reduce" and 0 in x.shape:
            continue  # ONNX Runtime has no largest of nothing
        expected = SPELLED[name](x, bindings)
        (found,) = run(instance)
        assert found.shape == expected.shape, onnx.printer.to_text(instance.model.graph)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        spellings.add("".join(str(len(each.input)) for each in instance.model.graph.node))
    assert len(spellings) > 1 or name in ("transpose-transpose", "reshape")


SINGLE = {
    "Add": "x: T[2, 3], y: T[3]",
    "ArgMax": "x: T[2, 3]",
    "AveragePool": "x: T[1, 2, 5, 5]",
    "BatchNormalization": "x: T[2, 3, 4], a: T[3], b: T[3], c: T[3], d: T[3]",
    "Clip": "x: T[2, 3], a: T[], b: T[]",
    "Concat": "x: T[2, 3], y: T[4, 3]",
    "Conv": "x: T[1, 4, 5, 5], w: T[4, 2, 3, 3], b: T[4]",
    "ConvTranspose": "x: T[1, 4, 5, 5], w: T[4, 2, 3, 3], b: T[2]",
    "DepthToSpace": "x: T[1, 8, 2, 3]",
    "Div": "x: T[2, 3], y: T[2, 3]",
    "Gather": "x: T[3, 4], i: int64[2]",
    "GatherElements": "x: T[3, 4], i: int64[2, 4]",
    "GatherND": "x: T[3, 4], i: int64[2, 1]",
    "Gemm": "a: T[2, 3], b: T[3, 4], c: T[4]",
    "GlobalMaxPool": "x: T[1, 2, 4, 4]",
    "GroupNormalization": "x: T[1, 4, 3], a: T[4], b: T[4]",
    "InstanceNormalization": "x: T[1, 4, 3], a: T[4], b: T[4]",
    "LRN": "x: T[1, 4, 3, 3]",
    "LayerNormalization": "x: T[2, 3, 4], a: T[4], b: T[4]",
    "LeakyRelu": "x: T[2, 3]",
    "LogSoftmax": "x: T[2, 3]",
    "LpPool": "x: T[1, 2, 5, 5]",
    "MatMul": "x: T[2, 3], y: T[3, 4]",
    "MaxPool": "x: T[1, 2, 5, 5]",
    "Mod": "x: T[2, 3], y: T[3]",
    "PRelu": "x: T[2, 3], y: T[3]",
    "ReverseSequence": "x: T[3, 4], i: int64[4]",
    "ScatterElements": "x: T[3, 4], i: int64[1, 4], y: T[1, 4]",
    "ScatterND": "x: T[3, 4], i: int64[1, 1], y: T[1, 4]",
    "SpaceToDepth": "x: T[1, 2, 4, 4]",
    "Where": "c: bool[2, 3], x: T[2, 3], y: T[3]",
}


@pytest.mark.parametrize("operator", SINGLE)
def test_instances_run(operator: str) -> None:
    """What inference lets pass must run as well: agreeing channels, indices in range, windows that
    fit.
    """
    names = ", ".join(part.split(":")[0] for part in SINGLE[operator].split(", ") if ":" in part)
    text = f"exact rule one:\n    {operator}<..p>({names}) => {operator}<..p>({names})\n    test {SINGLE[operator]}\n"
    if not find_operator("", operator, NEWEST).schema.attributes:  # type: ignore[union-attr]
        text = text.replace("<..p>", "")
    (rule,) = resolve(parse(text, "one.rules"))
    instances = list(islice(filter(plain, draw(rule, 3)), 60))
    assert len(instances) == 60
    failed = 0
    for instance in instances:
        try:
            empty = any(0 in shape for _, shape in types(instance).values())
            for found, info in zip(run(instance), instance.model.graph.output, strict=True):
                # Of empty tensors ONNX Runtime reduces axes of size 0 to size 0.
                assert empty or list(found.shape) == [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        except Exception as error:
            # What ONNX Runtime lacks is legal all the same.
            if not any(word in str(error) for word in ("not supported", "Unsupported", "NOT_IMPLEMENTED", "MutableData", "operand cannot broadcast", "lrn.cc")):
                raise AssertionError(onnx.printer.to_text(instance.model.graph)) from error
            failed += 1
    assert failed <= 12


def test_domains_follow_tensors_through_moves() -> None:
    for instance in drawn("gather-reshaped"):
        size = types(instance)["x"][1][instance.bindings["a"]]  # type: ignore[index]
        if size:
            assert instance.domains.get("i", Domain(-size, size - 1)) == Domain(-size, size - 1)
            assert "i" in instance.domains or "i" not in types(instance) or "i" in constants(instance)
        if "i" in constants(instance):
            assert np.all((constants(instance)["i"] >= -size) & (constants(instance)["i"] < size))
    for instance in drawn("divide"):
        integers = types(instance)["x"][0] in INTEGERS
        assert ("y" in instance.domains) == integers
        if integers and "y" in constants(instance):
            assert np.all(constants(instance)["y"] != 0)


@given(st.sampled_from(sorted(WEIGHTS)), st.integers(-9, 9), st.integers(0, 9), st.booleans(), st.integers(0, 2**32))
def test_elements_keep_to_their_domain(dtype: int, low: int, width: int, zero: bool, seed: int) -> None:
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    if kind == np.bool_ or (kind.kind == "u" and low < 0) or (not zero and low <= 0 <= low + width):
        low, zero = max(low, 1), True
    array = draw_elements(np.random.default_rng(seed), dtype, (3, 4), None if kind == np.bool_ else Domain(low, low + width, zero))
    assert array.dtype == kind and array.shape == (3, 4)
    if kind != np.bool_:
        # Floats are rounded to the type, at most up to a bound.
        assert np.all((array.astype(np.float64) >= low) & (array.astype(np.float64) <= low + width))


@given(st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(0, 70), max_size=5).map(tuple), max_size=4), st.integers(0, 2**32))
def test_shapes_stay_small(shapes: dict[str, tuple[int, ...]], seed: int) -> None:
    found = draw_shapes(Random(seed), shapes)
    assert found.keys() == shapes.keys()
    assert all(len(shape) <= RANK_LIMIT and np.prod(shape) <= ELEMENT_LIMIT and min(shape, default=0) >= 0 for shape in found.values())


def fact(dtype: int, *shape: int) -> Fact:
    return Fact(dtype, shape)


FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
LAWLESS = [
    ("Conv", {}, (fact(FLOAT, 1, 4, 5, 5), fact(FLOAT, 4, 3, 3, 3))),
    ("Conv", {"group": 2}, (fact(FLOAT, 1, 4, 5, 5), fact(FLOAT, 3, 2, 3, 3))),
    ("Conv", {}, (fact(FLOAT, 1, 4, 5, 5), fact(FLOAT, 4, 4, 3, 3), fact(FLOAT, 1))),
    ("ConvTranspose", {}, (fact(FLOAT, 1, 4, 5, 5), fact(FLOAT, 3, 4, 3, 3))),
    ("ConvTranspose", {"output_padding": (1, 0)}, (fact(FLOAT, 1, 4, 5, 5), fact(FLOAT, 4, 4, 3, 3))),
    ("BatchNormalization", {}, (fact(FLOAT, 1, 4), *[fact(FLOAT, 4)] * 3, fact(FLOAT, 1))),
    ("MaxPool", {"kernel_shape": (2,), "pads": (2, 0)}, (fact(FLOAT, 1, 1, 5),)),
    ("AveragePool", {"kernel_shape": (1,), "strides": (3,), "auto_pad": b"SAME_UPPER"}, (fact(FLOAT, 1, 1, 6),)),
    ("Mod", {"fmod": 0}, (fact(FLOAT, 2), fact(FLOAT, 2))),
    ("ArgMax", {"axis": 0}, (fact(FLOAT, 0, 3),)),
    ("Conv", {"strides": (3,), "auto_pad": b"SAME_UPPER"}, (fact(FLOAT, 1, 1, 6), fact(FLOAT, 1, 1, 1))),
    ("Reshape", {}, (fact(FLOAT, 2, 3), Fact(INT64, (1,), True, (5,)))),
    ("Squeeze", {}, (fact(FLOAT, 1), Fact(INT64, (0,), True, ()))),
    ("Transpose", {"perm": (1, 0)}, (fact(FLOAT, 1, 2, 3),)),
    ("Gather", {}, (fact(FLOAT, 0, 3), fact(INT64, 1))),
    ("ScatterElements", {"reduction": b"none"}, (fact(FLOAT, 3), fact(INT64, 2), fact(FLOAT, 2))),
    ("PRelu", {}, (fact(FLOAT, 3), fact(FLOAT, 2, 3))),
    ("InstanceNormalization", {}, (fact(FLOAT, 1, 2, 0), fact(FLOAT, 2), fact(FLOAT, 2))),
    ("Attention", {}, (fact(FLOAT, 2, 6, 4, 5), *[fact(FLOAT, 2, 4, 3, 5)] * 2)),
    ("Attention", {}, (*[fact(FLOAT, 2, 6, 1, 5)] * 3, fact(FLOAT, 4, 1))),
    ("Attention", {"q_num_heads": 4, "kv_num_heads": 3}, (fact(FLOAT, 2, 4, 20), *[fact(FLOAT, 2, 4, 15)] * 2)),
]


@pytest.mark.parametrize(("operator", "settings", "inputs"), LAWLESS)
def test_laws_that_inference_does_not_know(operator: str, settings: dict[str, Any], inputs: tuple[Fact, ...]) -> None:
    assert broken_law(Node(find_operator("", operator, NEWEST), settings, inputs, 1))


LAWFUL = [
    ("ReduceMax", {}, (fact(FLOAT, 0, 3),)),
    ("Attention", {}, (fact(FLOAT, 2, 6, 4, 5), *[fact(FLOAT, 2, 3, 1, 5)] * 2, fact(FLOAT, 6, 1, 3), *[fact(FLOAT, 2, 3, 2, 5)] * 2)),
    ("Attention", {"q_num_heads": 4, "kv_num_heads": 2}, (fact(FLOAT, 2, 3, 20), *[fact(FLOAT, 2, 4, 10)] * 2, fact(FLOAT, 1, 4))),
    ("Conv", {"strides": (2,), "auto_pad": b"SAME_UPPER"}, (fact(FLOAT, 1, 1, 6), fact(FLOAT, 1, 1, 1))),
]


@pytest.mark.parametrize(("operator", "settings", "inputs"), LAWFUL)
def test_what_every_implementation_computes_alike_is_lawful(operator: str, settings: dict[str, Any], inputs: tuple[Fact, ...]) -> None:
    assert not broken_law(Node(find_operator("", operator, NEWEST), settings, inputs, 1))


def test_constants_whose_elements_the_rule_reads_are_drawn_as_it_reads_them() -> None:
    text = "real rule uniform:\n    Mul(x, c) => Mul(c, x)\n    where 0 < uniform(c) <= 2\n    test x: T[2, 3], c: T[3]\n"
    (rule,) = resolve(parse(text, "uniform.rules"))
    for instance in (*islice(draw(rule, 1), 60), from_test(rule, 0)):
        elements = constants(instance)["c"].astype(np.float64)
        assert "c" not in instance.free
        assert ((elements > 0) & (elements <= 2)).all()
        assert len(set(elements.reshape(-1).tolist())) <= 1


def test_every_sampler_is_of_an_operator() -> None:
    assert all(newest(name).schema is not None for name in SAMPLERS)


# --- what wrong rules overlook ---


def conv(instance: Instance, trap: Callable[[dict[str, Any], tuple[int, ...], tuple[int, ...]], bool]) -> bool:
    return trap(attributes(instance, "Conv"), operand(instance, "Conv", 0), operand(instance, "Conv", 1))


def grows(instance: Instance, operator: str, wide: int, narrow: int) -> bool:
    return len(operand(instance, operator, wide)) < len(operand(instance, operator, narrow))


TRAPS: Mapping[str, tuple[str, Callable[[Instance], bool]]] = {
    "depthwise": ("conv-zero-bias", lambda i: conv(i, lambda a, x, w: a.get("group", 1) == x[1] > 1)),
    "depthwise with several outputs a channel": ("conv-zero-bias", lambda i: conv(i, lambda a, x, w: a.get("group", 1) == x[1] > 1 and w[0] > x[1])),
    "groups with unequal channels": ("conv-zero-bias", lambda i: conv(i, lambda a, x, w: 1 < a.get("group", 1) < x[1] and w[0] != x[1])),
    "SAME_UPPER, stride 2, even size": (
        "conv-zero-bias",
        lambda i: conv(
            i, lambda a, x, w: a.get("auto_pad") == b"SAME_UPPER" and any(s == 2 and n % 2 == 0 for s, n in zip(a.get("strides", ()), x[2:], strict=False))
        ),
    ),
    "SAME_LOWER": ("pool-pad", lambda i: attributes(i, "MaxPool").get("auto_pad") == b"SAME_LOWER"),
    "uneven pads": ("conv-zero-bias", lambda i: conv(i, lambda a, x, w: (p := a.get("pads", [])) != p[len(p) // 2 :] + p[: len(p) // 2])),
    "dilations": ("conv-zero-bias", lambda i: conv(i, lambda a, x, w: max(a.get("dilations", [1])) > 1)),
    "convolution over one axis": ("conv-zero-bias", lambda i: conv(i, lambda a, x, w: len(x) == 3)),
    "convolution over three axes": ("conv-zero-bias", lambda i: conv(i, lambda a, x, w: len(x) == 5)),
    "explicit kernel_shape": ("conv-zero-bias", lambda i: conv(i, lambda a, x, w: "kernel_shape" in a)),
    "ceil_mode": ("pool-pad", lambda i: attributes(i, "MaxPool").get("ceil_mode") == 1),
    "negative pads": ("pool-pad", lambda i: bool((constants(i)[node(i, "Pad").input[1]] < 0).any())),
    "a bias that broadcasts over space": ("conv-bias", lambda i: bool(b := operand(i, "Add", 1)) and len(b) < 3 and max(b) > 1),
    "a bias that is larger than the result": ("conv-bias", lambda i: len(operand(i, "Add", 1)) > len(operand(i, "Conv", 0))),
    "a scalar bias": ("conv-bias", lambda i: operand(i, "Add", 1) == ()),
    "an empty tensor": ("add-add-const", lambda i: 0 in types(i)["x"][1]),
    "a scalar": ("add-add-const", lambda i: types(i)["x"][1] == ()),
    "one element of rank 1": ("add-add-const", lambda i: types(i)["c1"][1] == (1,)),
    "broadcasting one way": ("add-add-const", lambda i: np.prod(types(i)["c1"][1]) < np.prod(types(i)["x"][1])),
    "broadcasting the other way": ("add-add-const", lambda i: np.prod(types(i)["x"][1]) < np.prod(types(i)["c1"][1])),
    "rank growth by broadcasting": ("add-add-const", lambda i: len(types(i)["x"][1]) < len(types(i)["c2"][1])),
    "a condition that makes the result larger": ("where", lambda i: len(types(i)["c"][1]) > max(len(types(i)[n][1]) for n in "xy")),
    "a first operand of one axis": ("matmul-assoc", lambda i: len(types(i)["x"][1]) == 1),
    "a last operand of one axis": ("matmul-assoc", lambda i: len(types(i)["z"][1]) == 1),
    "batches on the right": ("matmul-assoc", lambda i: len(types(i)["z"][1]) > 2),
    "batches that broadcast": ("matmul-assoc", lambda i: len(types(i)["x"][1]) > 2 and types(i)["x"][1][0] != types(i)[i.model.graph.output[0].name][1][0]),
    "nothing to sum over": ("matmul-assoc", lambda i: types(i)["y"][1][0] == 0),
    "negative axes": ("softmax", lambda i: attributes(i, "Softmax").get("axis", 0) < 0),
    "negative axes as a parameter": ("squeeze-unsqueeze", lambda i: bool((constants(i)[node(i, "Unsqueeze").input[1]] < 0).any())),
    "several axes": ("squeeze-unsqueeze", lambda i: len(constants(i)[node(i, "Unsqueeze").input[1]]) > 1),
    "an end of -1": ("slice", lambda i: -1 in constants(i)[node(i, "Slice").input[2]]),
    "an end far beyond": ("slice", lambda i: 2**63 - 1 in constants(i)[node(i, "Slice").input[2]]),
    "a step of -1": ("slice", lambda i: len(node(i, "Slice").input) > 4 and -1 in constants(i)[node(i, "Slice").input[4]]),
    "a step of 2": ("slice", lambda i: len(node(i, "Slice").input) > 4 and 2 in constants(i)[node(i, "Slice").input[4]]),
    "an empty slice": ("slice", lambda i: 0 in types(i)[i.model.graph.output[0].name][1] and 0 not in types(i)["x"][1]),
    "an end of -1 and a named size": ("slice", lambda i: i.symbolic is not None and -1 in constants(i)[node(i, "Slice").input[2]]),
    "an end of a second cut beyond the first one, and named sizes": (
        "slice-slice",
        lambda i: i.symbolic is not None and i.bindings["k"] > i.bindings["e"] - i.bindings["i"] > 0 < i.bindings["e"] < types(i)["x"][1][i.bindings["a"]],  # type: ignore[operator, index]
    ),
    "a start before the first element, and named sizes": (
        "slice-slice",
        lambda i: i.symbolic is not None and i.bindings["i"] < -types(i)["x"][1][i.bindings["a"]],  # type: ignore[operator, index]
    ),
    "an axis of size 0 that is reduced": ("reduce-reduce", lambda i: i.bindings["l"] == 1 and any(types(i)["x"][1][a] == 0 for a in i.bindings["a"])),  # type: ignore[index, union-attr]
    "SAME_UPPER with a stride above the kernel, even size": (
        "conv-zero-bias",
        lambda i: conv(
            i,
            lambda a, x, w: (
                a.get("auto_pad") == b"SAME_UPPER"
                and any(s == 2 and n % 2 == 0 and k == 1 for s, n, k in zip(a.get("strides", ()), x[2:], w[2:], strict=False))
            ),
        ),
    ),
    "a Concat of one": ("slice-concat-head", lambda i: len(node(i, "Concat").input) == 1),
    "a Concat of four": ("slice-concat-head", lambda i: len(node(i, "Concat").input) == 4),
    "a size that is inferred": ("reshape", lambda i: -1 in constants(i)[node(i, "Reshape").input[1]]),
    "a size that is copied": ("reshape", lambda i: attributes(i, "Reshape").get("allowzero", 0) == 0 and 0 in constants(i)[node(i, "Reshape").input[1]]),
    "an empty shape": ("reshape", lambda i: attributes(i, "Reshape").get("allowzero", 0) == 1 and 0 in constants(i)[node(i, "Reshape").input[1]]),
    "axes that go": ("reduce-reduce", lambda i: attributes(i, "ReduceSum").get("keepdims", 1) == 0),
    "all axes, by leaving them out": ("reduce-reduce", lambda i: len(node(i, "ReduceSum").input) == 1),
    "an order that is not its own inverse": ("transpose-transpose", lambda i: (q := i.bindings["q"]) != tuple(np.argsort(q))),  # type: ignore[arg-type]
    "lower bound above upper": ("clip-clip", lambda i: bool(constants(i)["a"] > constants(i)["b"])),
    "an absent optional input": ("clip-clip", lambda i: len(i.model.graph.node[-1].input) == 1),
    "one tensor of a list": ("max", lambda i: len(node(i, "Max").input) == 1),
    "a constant where none is asked for": ("add-add-const", lambda i: "x" in i.free),
    "float16": ("add-add-const", lambda i: types(i)["x"][0] == TensorProto.FLOAT16),
    "bfloat16": ("add-add-const", lambda i: types(i)["x"][0] == TensorProto.BFLOAT16),
    "double": ("add-add-const", lambda i: types(i)["x"][0] == TensorProto.DOUBLE),
    "integers": ("add-add-const", lambda i: types(i)["x"][0] == TensorProto.INT64),
    "unsigned integers": ("add-add-const", lambda i: types(i)["x"][0] == TensorProto.UINT8),
    "bool": ("transpose-transpose", lambda i: types(i)["x"][0] == TensorProto.BOOL),
    "types that go narrow and wide": (
        "cast-cast",
        lambda i: attributes(i, "Cast")["to"] == TensorProto.INT8 and types(i)[i.model.graph.output[0].name][0] == TensorProto.FLOAT,
    ),
    "an empty part": ("split", lambda i: 0 in (i.bindings["n"], i.bindings["m"])),
    "a number that is a full tensor": ("mul-one", lambda i: operand(i, "Mul", 1) == types(i)["x"][1] != ()),
    "a number that makes the other larger": ("mul-one", lambda i: len(operand(i, "Mul", 1)) > len(types(i)["x"][1])),
}


@cache
def source(name: str) -> tuple[list[Instance], Iterator[Instance]]:
    """Returns the instances of a rule that tests have drawn, and those that are left."""
    return [], islice(draw(rules()[name], 11), 1200)


def many(name: str) -> Iterator[Instance]:
    """Yields instances of a rule, always the same. Each is drawn when a test first asks for it."""
    known, left = source(name)
    yield from known
    for instance in left:
        known.append(instance)
        yield instance


@pytest.mark.parametrize("trap", spread(TRAPS, every=20))
def test_what_wrong_rules_overlook_occurs(trap: str) -> None:
    name, occurs = TRAPS[trap]
    assert len(list(islice(filter(occurs, many(name)), 3))) == 3


def test_types_are_mixed_where_onnx_allows_it() -> None:
    text = (
        "real rule mixed:\n    BatchNormalization(x, a, b, c, d) => BatchNormalization(x, a, b, c, d)\n"
        "    test x: T[2, 3], a: T[3], b: T[3], c: T[3], d: T[3]\n"
    )
    (rule,) = resolve(parse(text, "mixed.rules"))
    found = {tuple(types(instance)[name][0] for name in "xabcd") for instance in islice(draw(rule, 2), 300)}
    assert all(a == b and c == d for _, a, b, c, d in found)
    assert (TensorProto.FLOAT16, *[TensorProto.FLOAT] * 4) in found
    assert any(len(set(mixed)) == 3 for mixed in found)


def test_a_tensor_that_must_not_be_constant_never_is() -> None:
    text = "exact rule swapped:\n    Add(x, y) => Add(y, x)\n    where {}\n"
    guarded = "rank(x) > 0, not constant(x)"
    (rule,), (free,) = (resolve(parse(text.format(where), "constants.rules")) for where in (guarded, "rank(x) > 0"))
    found = [set(constants(instance)) & {"x", "y"} for instance in islice(draw(rule, 3), 200)]
    assert {"x"} not in found and {"x", "y"} not in found and {"y"} in found
    assert any("x" in constants(instance) for instance in islice(draw(free, 3), 200))
