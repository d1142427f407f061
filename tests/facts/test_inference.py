"""Inference as a whole: ONNX's node tests at three degrees of knowledge, and hostile nodes."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, defs, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from eqsat.facts import inference, onnx_inference
from eqsat.facts.dims import Dim, add, evaluate, mul, sub, symbol
from eqsat.facts.fact import UNKNOWN, Fact, from_array, from_type, merge
from eqsat.facts.inference import infer, rejection
from eqsat.operators import AttributeValue, find_operator, normal_domain, read_attributes
from tests.support.models import weighted
from tests.support.node_cases import node_cases

N, M, H = symbol("N"), symbol("M"), symbol("H")


def through(model: onnx.ModelProto, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Returns the facts of all values of a model, given those of its inputs."""
    imports = {normal_domain(entry.domain): entry.version for entry in model.opset_import}
    facts = dict(known)
    facts.update({tensor.name: from_array(numpy_helper.to_array(tensor)) for tensor in model.graph.initializer})
    for node in model.graph.node:
        operator = find_operator(node.domain, node.op_type, imports.get(normal_domain(node.domain), 1))
        inputs = tuple(facts.get(name, UNKNOWN) if name else None for name in node.input)
        outputs = infer(operator, read_attributes(operator, node.attribute), inputs, len(node.output))
        assert len(outputs) == len(node.output)
        facts.update(zip(node.output, outputs, strict=True))
    return facts


def told(declared: Fact, array: Any, position: int, degree: str, sizes: dict[str, int]) -> Fact:
    """Returns the fact of a test's input at a degree of knowledge.

    "all is known" leaves out only that it is constant. The other degrees know named sizes, with or
    without the elements of small parameters.
    """
    if not isinstance(array, np.ndarray) or not declared.dtype:
        return declared
    actual = from_array(array)
    if degree == "parameters are known" and array.ndim <= 1 and (actual.ints is not None or actual.floats is not None):
        return Fact(declared.dtype, array.shape, ints=actual.ints, floats=actual.floats)
    if degree == "all is known":
        return merge(declared, actual._replace(const=False))
    names = [f"s{position}_{axis}" for axis in range(array.ndim)]
    sizes.update(zip(names, array.shape, strict=True))
    return Fact(declared.dtype, tuple(map(symbol, names)))


@pytest.mark.parametrize(("degree", "least"), [("all is known", 1800), ("parameters are known", 1450), ("only types are known", 1050)])
def test_nothing_inferred_contradicts_the_node_tests_of_onnx(degree: str, least: int) -> None:
    complete = 0
    for test in node_cases().values():
        inputs, expected = test.data_sets[0]
        sizes: dict[str, int] = {}
        declared = zip(test.model.graph.input, inputs, strict=False)
        known = {value.name: told(from_type(value.type, value.name), array, position, degree, sizes) for position, (value, array) in enumerate(declared)}
        facts = through(test.model, known)
        for value, array in zip(test.model.graph.output, expected, strict=False):
            if isinstance(array, np.ndarray):
                complete += agrees(facts.get(value.name, UNKNOWN), array, sizes, test.name)
    assert complete >= least


def agrees(fact: Fact, array: np.ndarray[Any, Any], sizes: dict[str, int], name: str) -> bool:
    """Fails if a fact is not true of the array.

    Tells whether the fact has the array's full type.
    """
    actual = from_array(array)
    assert fact.dtype in (0, actual.dtype), name
    assert fact.other is None, name
    for dims, values in ((fact.shape, array.shape), (fact.ints, actual.ints)):
        if dims is not None and values is not None:
            assert len(dims) == len(values), name
            assert all(dim is None or evaluate(dim, sizes) == value for dim, value in zip(dims, values, strict=True)), (name, dims, values)
    assert fact.uniform is None or fact.uniform == actual.uniform, name
    assert not fact.doubled or np.array_equal(*np.split(array, 2, axis=-1), equal_nan=True), name
    assert not fact.paired or np.array_equal(array[..., ::2], array[..., 1::2], equal_nan=True), name
    return bool(fact.dtype) and fact.shape is not None and None not in fact.shape


def test_the_inference_by_types_alone_reads_no_elements_in_any_version(monkeypatch: pytest.MonkeyPatch) -> None:
    versions: dict[str, list[int]] = {}
    for schema in defs.get_all_schemas_with_history():
        if not schema.domain and not schema.deprecated and schema.name in onnx_inference.TYPE_ALONE:
            versions.setdefault(schema.name, []).append(schema.since_version)
    compared: set[str] = set()
    for case in node_cases().values():
        (node, *others), inputs = case.model.graph.node, case.data_sets[0][0]
        if others or node.op_type not in versions or node.domain or not all(isinstance(array, np.ndarray) for array in inputs):
            continue
        facts = dict(zip([value.name for value in case.model.graph.input], map(from_array, inputs), strict=True))
        if not any(fact.ints or fact.floats for fact in facts.values()):
            continue
        for version in versions[node.op_type]:
            operator = find_operator("", node.op_type, version)
            assert operator.schema is not None
            attributes = {name: value for name, value in read_attributes(operator, node.attribute).items() if name in operator.schema.attributes}
            asked = operator, attributes, tuple(facts[name] if name else None for name in node.input), len(node.output)
            inference.forget()
            found = infer(*asked)
            inference.forget()
            with monkeypatch.context() as patch:
                patch.setattr(inference, "TYPE_ALONE", frozenset[str]())
                assert infer(*asked) == found, (node.op_type, version)
            if found[0] != UNKNOWN:
                compared.add(node.op_type)
    assert len(compared) > 0.6 * len(onnx_inference.TYPE_ALONE)


DIMS: list[Dim] = [0, 1, 2, 3, 8, 2**40, N, M, mul(N, 2), add(N, M), sub(N, 1), None]
INTEGERS: list[Dim] = [0, 1, -1, 2, -5, 7, 2**63 - 1, -(2**63), N, sub(M, 3), None]


def random_fact(random: Random) -> Fact | None:
    shape = tuple(random.choice(DIMS) for _ in range(random.randint(0, 5)))
    kind = random.randint(0, 9)
    if kind == 0:
        return None
    if kind == 1:
        return random.choice([UNKNOWN, Fact(1), Fact(0, shape), Fact(TensorProto.STRING, shape)])
    if kind == 2:
        return Fact(other=helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None)).SerializeToString())
    if kind <= 5:
        length = random.randint(0, 4)
        dtype = random.choice([TensorProto.INT32, TensorProto.INT64])
        pool = INTEGERS if dtype == TensorProto.INT64 else INTEGERS[:6] + INTEGERS[8:]
        return Fact(dtype, (length,), ints=tuple(random.choice(pool) for _ in range(length)))
    if kind == 6:
        return Fact(random.choice([6, 7, 9]), (), ints=(random.choice(INTEGERS[:2]),))
    return Fact(random.choice([1, 10, 7, 9]), shape)


def random_attribute(random: Random, declared: defs.OpSchema.Attribute) -> AttributeValue | None:
    kinds = defs.OpSchema.AttrType
    numbers = [random.choice([0, 1, -1, 2, 3, -7, 100]) for _ in range(random.randint(0, 5))]
    if declared.type == kinds.INT:
        return random.choice([0, 1, -1, 2, -9, 7, 2**62])
    if declared.type == kinds.INTS:
        return tuple(numbers)
    if declared.type == kinds.FLOAT:
        return random.choice([0.0, 1.5, float("nan"), float("inf")])
    if declared.type == kinds.FLOATS:
        return tuple(float(number) for number in numbers)
    if declared.type == kinds.STRING:
        return random.choice([b"", b"NOTSET", b"SAME_UPPER", b"ij,jk->ik", b"\xff", b"reflect"])
    if declared.type == kinds.TENSOR:
        return helper.make_attribute(declared.name, helper.make_tensor("", 7, [len(numbers)], numbers))
    return None


@pytest.mark.parametrize("domain", ["", "ai.onnx.ml"])
def test_no_node_however_strange_is_an_exception(domain: str) -> None:
    random = Random(5)
    for schema in defs.get_all_schemas_with_history():
        if schema.domain != domain or schema.deprecated:
            continue
        operator = find_operator(domain, schema.name, schema.since_version)
        for _ in range(4):
            attributes = read_attributes(operator, [])
            for name, declared in sorted(schema.attributes.items()):
                value = random_attribute(random, declared)
                if value is not None and random.random() < 0.6:
                    attributes[name] = value
            count = random.randint(schema.min_input, min(schema.max_input, schema.min_input + 3)) if random.random() < 0.9 else random.randint(0, 6)
            outputs = random.randint(max(1, schema.min_output), max(1, min(schema.max_output, 3)))
            facts = infer(operator, attributes, tuple(random_fact(random) for _ in range(count)), outputs)
            assert len(facts) == outputs
            assert all(size is None or not isinstance(size, int) or size >= 0 for fact in facts for size in fact.shape or ()), (schema.name, facts)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "attributes", "inputs", "outputs"),
    [
        ("GatherND", {"batch_dims": -9}, (Fact(1, (N, 2)), Fact(7, (1,), ints=(N,))), 1),  # crashes with a segmentation fault
        ("Split", {"axis": 0, "num_outputs": 1}, (Fact(1, (8, 0)),), 2),  # aborts
        ("Einsum", {"equation": b"\xff"}, (Fact(1, (2,)), Fact(1, (2,))), 1),  # never ends, as all that follow
        *(("Einsum", {"equation": text}, (Fact(1, (2, 3)),), 1) for text in (b"....ij->ij", b"..ij->ij", b"i.j->ij", b"i..j->ij", b"...ij...", b"....->")),
        ("Expand", {}, (Fact(1, (2,)), Fact(7, (2**40,))), 1),  # takes all memory
    ],
)
def test_nodes_that_are_fatal_to_onnx_are_refused(name: str, attributes: dict[str, AttributeValue], inputs: tuple[Fact, ...], outputs: int) -> None:
    operator = find_operator("", name, 12 if name == "Expand" else 18)
    assert infer(operator, attributes, inputs, outputs) == (UNKNOWN,) * outputs
    assert rejection(operator, attributes, inputs, outputs)


def test_bodies_and_parameters_of_functions_are_not_looked_at() -> None:
    body = helper.make_graph([], "body", [], [])
    branch = find_operator("", "If", 17)
    attributes = {"then_branch": helper.make_attribute("then_branch", body), "else_branch": helper.make_attribute("else_branch", body)}
    assert infer(branch, attributes, (from_array(np.array(True)),), 2) == (UNKNOWN, UNKNOWN)
    softmax = find_operator("", "Softmax", 17)
    reference = AttributeProto(name="axis", ref_attr_name="axis", type=AttributeProto.INT)
    assert infer(softmax, {"axis": reference}, (Fact(1, (N, 3)),), 1) == (UNKNOWN,)


@pytest.mark.parametrize(
    ("attribute", "fact"),
    [
        ({"value": numpy_helper.from_array(np.array([1, 2]))}, from_array(np.array([1, 2]))),
        ({"value_float": 1.5}, from_array(np.array(1.5, np.float32))),
        ({"value_floats": [1.0, 2.0]}, from_array(np.array([1, 2], np.float32))),
        ({"value_int": 3}, from_array(np.array(3))),
        ({"value_ints": [3, 4]}, from_array(np.array([3, 4]))),
        ({"value_string": "a"}, Fact(TensorProto.STRING, (), True)),
        ({"value_strings": ["a", "b"]}, Fact(TensorProto.STRING, (2,), True)),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_constant_nodes(attribute: dict[str, Any], fact: Fact) -> None:
    operator = find_operator("", "Constant", 17)
    attributes = read_attributes(operator, [helper.make_attribute(name, value) for name, value in attribute.items()])
    assert infer(operator, attributes, (), 1) == (fact,)


def test_a_known_choice_is_as_uniform_as_what_it_chooses() -> None:
    where, x, zero = find_operator("", "Where", 16), Fact(1, (2, 3)), from_array(np.zeros((), np.float32))
    for condition, uniform in ((b"\0", bytes(4)), (b"\1", None), (None, None)):
        (found,) = infer(where, {}, (Fact(TensorProto.BOOL, (1, 3), uniform=condition), x, zero), 1)
        assert (found.shape, found.uniform) == ((2, 3), uniform)


def test_operators_without_a_schema() -> None:
    def known(name: str, *facts: Fact, domain: str = "com.microsoft", **attributes: int) -> Fact:
        return infer(find_operator(domain, name, 1), attributes, facts, 1)[0]

    assert known("Gelu", Fact(10, (N, 4))) == Fact(10, (N, 4))
    assert known("BiasGelu", Fact(1, (N, 4)), Fact(1, (4,))) == Fact(1, (N, 4))
    assert known("FusedMatMul", Fact(1, (N, 4, M)), Fact(1, (4, H)), transA=1) == Fact(1, (N, M, H))
    assert known("FusedMatMul", Fact(1, (N, 4, M)), Fact(1, (4, H)), transBatchA=1) == Fact(1)
    assert known("Gelu", UNKNOWN) == UNKNOWN
    assert known("Gelu", Fact(1, (N,)), domain="someone.else") == UNKNOWN
    assert known("NoSuchOperator", Fact(1, (N,)), domain="") == UNKNOWN


def test_the_result_does_not_depend_on_what_was_asked_before() -> None:
    concat = find_operator("", "Concat", 17)
    inputs = (Fact(1, (N, 2)), Fact(1, (N, 3)))
    assert infer(concat, {"axis": 1}, inputs, 1) == (Fact(1, (N, 5)),)
    assert infer(concat, {"axis": 1.0}, inputs, 1) == (UNKNOWN,)
    assert infer(concat, {"axis": 1}, inputs, 1) == (Fact(1, (N, 5)),)


def test_illegal_nodes_are_unknown_and_say_why() -> None:
    add_, matmul = find_operator("", "Add", 17), find_operator("", "MatMul", 17)
    three, four = Fact(1, (3,), const=True), Fact(1, (4,), const=True)
    assert infer(add_, {}, (three, four), 1) == (UNKNOWN,)
    assert rejection(add_, {}, (three, four), 1)
    assert rejection(add_, {}, (three, Fact(7, (3,))), 1)
    assert rejection(add_, {}, (Fact(1, (N,)), Fact(1, (M,))), 1) is None
    assert rejection(add_, {}, (Fact(1, (N,)), UNKNOWN), 1) is None
    assert rejection(matmul, {}, (Fact(1, (2, 3)), Fact(1, (4, 5))), 1)
    assert rejection(find_operator("com.microsoft", "Gelu", 1), {}, (three, four), 1) is None


def test_what_can_be_said_of_unknown_inputs_is_said() -> None:
    def known(name: str, *facts: Fact) -> Fact:
        return infer(find_operator("", name, 17), {}, facts, 1)[0]

    assert known("Add", UNKNOWN, Fact(1, (3,))).dtype == 1
    assert known("Shape", UNKNOWN).dtype == TensorProto.INT64
    assert known("Equal", UNKNOWN, UNKNOWN).dtype == TensorProto.BOOL
    assert known("Reshape", Fact(1), Fact(7, (2,), ints=(3, N))) == Fact(1, (3, None))
    assert known("Relu", UNKNOWN) == UNKNOWN


def test_a_chain_of_shape_computations_folds() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[N, M, 768] x) => (float[a, b, c, d] y) <int64[1] heads = {12}, int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64[1] front = {0}>
        {
            s = Shape(x)  n = Gather(s, zero)  m = Gather(s, one)  c = Gather(s, two)
            n1 = Unsqueeze(n, front)  m1 = Unsqueeze(m, front)  c1 = Unsqueeze(c, front)
            d = Div(c1, heads)
            t = Concat<axis = 0>(n1, m1, heads, d)
            r = Reshape(x, t)
            y = Transpose<perm = [0, 2, 1, 3]>(r)
        }"""
    )
    facts = through(model, {"x": from_type(model.graph.input[0].type, "x")})
    assert facts["y"] == Fact(1, (N, 12, M, 64))
    assert facts["t"].ints == (N, M, 12, 64)


def test_a_batch_normalization_that_does_not_train_has_a_type() -> None:
    """Inference asked for the training outputs too, and ONNX refused."""
    channels = Fact(TensorProto.FLOAT, (2,))
    for version in (9, 14, 15):
        (y, *_) = infer(find_operator("", "BatchNormalization", version), {}, (Fact(TensorProto.FLOAT, (4, 2, 3)), *[channels] * 4), 3)
        assert (y.dtype, y.shape) == (TensorProto.FLOAT, (4, 2, 3))


def spied(monkeypatch: pytest.MonkeyPatch, *claims: Any) -> list[onnx.TypeProto]:
    """Returns the input types that ONNX's inference receives.

    If there are `claims`, it answers with these.
    """
    told: list[onnx.TypeProto] = []
    real = onnx_inference.infer_node_outputs

    def spy(schema: Any, node: Any, types: dict[str, onnx.TypeProto], *rest: Any, **options: Any) -> Any:
        told.extend(types.values())
        return {"o0": helper.make_tensor_type_proto(TensorProto.FLOAT, claims)} if claims else real(schema, node, types, *rest, **options)

    inference.forget()
    monkeypatch.setattr(onnx_inference, "infer_node_outputs", spy)
    return told


def test_onnx_never_learns_the_name_of_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX's inference copies names to axes whose size changes.

    It did so for Slice-10, and eqsat deleted the Slice.
    """
    told = spied(monkeypatch)
    one = Fact(TensorProto.INT64, (1,), ints=(0,))
    assert infer(find_operator("", "Slice", 10), {}, (Fact(1, (N, M)), one, one, one), 1)[0].shape == (0, M)
    assert infer(find_operator("", "Relu", 17), {}, (Fact(1, (N, add(M, 1), 3)),), 1)[0].shape == (N, add(M, 1), 3)
    assert told
    assert not any(dim.dim_param for proto in told for dim in proto.tensor_type.shape.dim)


@pytest.mark.parametrize(
    ("claims", "shape"),
    [
        ((None, 4), (N, 4)),
        ((None, 7), (N, None)),  # a number that differs from ours
        ((5, 4), (N, 4)),  # a number in place of our name
        (("X", 4), (N, 4)),
        ((1, 1, 1), None),  # another rank
    ],
)
def test_what_onnx_claims_of_sizes_can_only_contradict(claims: tuple[Any, ...], shape: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told = spied(monkeypatch, *claims)
    try:
        assert infer(find_operator("", "MatMul", 13), {}, (Fact(1, (N, 3)), Fact(1, (3, 4))), 1) == (Fact(1, shape),)
        assert told
    finally:
        inference.forget()


def test_nothing_is_known_of_the_sizes_inside_a_sequence() -> None:
    """ONNX, its reference and the runtime disagree on the axis that SplitToSequence keeps."""
    (parts,) = infer(find_operator("", "SplitToSequence", 13), {"keepdims": 0}, (Fact(1, (2, 3)), from_array(np.array([1, 1]))), 1)
    assert parts.other is not None
    assert onnx.TypeProto.FromString(parts.other) == helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None))


TABLE = np.tile(np.random.default_rng(0).standard_normal((1, 3, 4)).astype(np.float32), 2)
KEEPS_DOUBLES = {
    "c = Cos (t)": True,
    "c = Cast <to = 11> (t)": True,
    "c = Mul (t, v)": True,
    "c = Mul (t, k)": True,
    "c = Mul (t, t)": True,
    "c = Add (t, r)": False,
    "c = Unsqueeze (t, one)": True,
    "c = Reshape (t, same)": True,
    "c = Reshape (t, other)": False,
    "c = Gather <axis = 1> (t, i)": True,
    "c = Gather <axis = 2> (t, i)": False,
    "c = Gather <axis = -1> (t, i)": False,
    "c = Transpose <perm = [0, 2, 1]> (t)": False,
    "c = Softmax (t)": False,
    "c = Expand (t, wide)": True,
    "u = Squeeze (t, zero) c = Expand (u, wide)": True,
}


def told_and_computed(model: onnx.ModelProto, feeds: dict[str, np.ndarray[Any, Any]]) -> tuple[Fact, np.ndarray[Any, Any]]:
    """Returns the fact of the output `c`, with only types known of the inputs that `feeds` has, and its value."""
    known = {name: Fact(from_array(array).dtype, array.shape) for name, array in feeds.items()}
    known |= {tensor.name: from_array(numpy_helper.to_array(tensor)) for tensor in model.graph.initializer}
    (result,) = ReferenceEvaluator(model).run(None, feeds)
    return through(model, known)["c"], np.asarray(result)


@pytest.mark.parametrize(("nodes", "doubled"), KEEPS_DOUBLES.items())
def test_which_operators_keep_doubles(nodes: str, doubled: bool) -> None:
    """Each that is said to keep them does, as ONNX's reference shows."""
    model = weighted(
        f"g (float[3, 1] k, int64[2] i) => (float[A, B, C] c) {{ {nodes} }}",
        t=TABLE,
        v=np.array([2.5], np.float32),
        r=np.arange(8, dtype=np.float32),
        one=np.array([1]),
        zero=np.array([0]),
        same=np.array([3, 1, 8]),
        other=np.array([2, 12]),
        wide=np.array([5, 3, 8]),
    )
    feeds = {"k": np.array([[1], [2], [3]], np.float32), "i": np.array([0, 2])}
    fact, result = told_and_computed(model, feeds)
    assert fact.doubled is doubled
    if doubled:
        np.testing.assert_allclose(*np.split(result, 2, axis=-1), rtol=1e-6)


PAIRS = np.repeat(np.random.default_rng(1).standard_normal((1, 3, 4)).astype(np.float32), 2, axis=-1)
KEEPS_PAIRS = {
    "c = Cos (t)": True,
    "c = Mul (t, k)": True,
    "c = Add (t, r)": False,
    "c = Reshape (t, even)": True,
    "c = Reshape (t, odd)": False,
    "c = Gather <axis = 1> (t, i)": True,
    "c = Gather <axis = 2> (t, i)": False,
    "c = Transpose <perm = [0, 2, 1]> (t)": False,
    "c = Softmax (t)": False,
    "c = Slice (t, zero, five, two)": False,
    "u = Unsqueeze (q, three) w = Expand (u, twice) c = Reshape (w, even)": True,
    "u = Unsqueeze (q, three) w = Tile (u, ones) c = Reshape (w, even)": True,
    "u = Unsqueeze (q, two) w = Tile (u, across) c = Reshape (w, even)": False,
}


@pytest.mark.parametrize(("nodes", "paired"), KEEPS_PAIRS.items())
def test_which_operators_keep_and_make_pairs(nodes: str, paired: bool) -> None:
    """Each that is said to do so does, as ONNX's reference shows."""
    model = weighted(
        f"g (float[3, 1] k, float[1, 3, 4] q, int64[2] i) => (float[A, B, C] c) {{ {nodes} }}",
        t=PAIRS,
        r=np.arange(8, dtype=np.float32),
        zero=np.array([0]),
        two=np.array([2]),
        three=np.array([3]),
        five=np.array([5]),
        even=np.array([2, 2, 6]),
        odd=np.array([8, 1, 3]),
        twice=np.array([1, 3, 4, 2]),
        ones=np.array([1, 1, 1, 2]),
        across=np.array([1, 1, 2, 1]),
    )
    generator = np.random.default_rng(2)
    feeds = {"k": np.array([[1], [2], [3]], np.float32), "q": generator.standard_normal((1, 3, 4)).astype(np.float32), "i": np.array([0, 2])}
    fact, result = told_and_computed(model, feeds)
    assert fact.paired is paired
    if paired:
        np.testing.assert_allclose(result[..., ::2], result[..., 1::2], rtol=1e-6)
