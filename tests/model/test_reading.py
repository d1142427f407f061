"""eqsat reads every form in which ONNX can express a model, and writes the same function back."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import eqsat
from eqsat.settings import Settings
from tests.support.models import assert_same, nodes, operators, parse, random_feeds, run, run_reference, same, signature

ONE = np.array([1.5, -2.0], np.float32)


def optimize(model: object, **options: object) -> onnx.ModelProto:
    result = eqsat.optimize(model, **options)  # type: ignore[arg-type]
    assert result.report["verify"]["status"] == "equal", result.report["verify"]
    return result.model


def test_path_string_and_message_give_one_result(tmp_path: Path) -> None:
    model = parse("g (float[2] x) => (float[2] y) { a = Relu (x)  b = Relu (x)  y = Add (a, b) }")
    onnx.save(model, tmp_path / "m.onnx")
    results = [optimize(given) for given in (model, tmp_path / "m.onnx", str(tmp_path / "m.onnx"))]
    assert len({result.SerializeToString(deterministic=True) for result in results}) == 1


def test_onnx_ir_model() -> None:
    import onnx_ir

    model = parse("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = Add (x, w)  b = Add (x, w)  y = Mul (a, b) }")
    optimized = optimize(onnx_ir.from_proto(model))
    assert operators(optimized) == {"Add": 1, "Mul": 1}
    assert_same(model, optimized, {"x": ONE})


def test_initializer_that_is_an_input_stays_overridable() -> None:
    """From IR version 4 on, an initializer with an input of its name is a default."""
    model = parse("g (float[2] x, float[2] w) => (float[2] y) { a = Relu (w)  y = Add (x, a) }")
    model.graph.initializer.append(numpy_helper.from_array(ONE, "w"))
    optimized = optimize(model)
    assert signature(optimized.graph.input) == signature(model.graph.input)
    assert_same(model, optimized, {"x": ONE}, {"x": ONE, "w": np.array([7, -8], np.float32)})


def test_initializer_that_is_an_input_of_old_ir_is_a_constant() -> None:
    """Before IR version 4 every initializer had to be an input. Such inputs stay optional."""
    model = parse('<ir_version: 3, opset_import: ["" : 8]> g (float[2] x, float[2] w) => (float[2] y) { a = Relu (w)  y = Add (x, a) }')
    model.graph.initializer.append(numpy_helper.from_array(ONE, "w"))
    optimized = optimize(model)
    onnx.checker.check_model(optimized)
    assert_same(model, optimized, {"x": ONE})


def test_sparse_initializer() -> None:
    model = parse("g (float[2] x) => (float[3, 2] y) { y = Add (x, s) }")
    values = numpy_helper.from_array(np.array([5, 6], np.float32), "s")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([1, 4], np.int64), "i"), [3, 2]))
    assert_same(model, optimize(model), {"x": ONE})


def sparse_default(version: int) -> onnx.ModelProto:
    """Returns a model whose input `s` has a sparse initializer of its name."""
    head = f'<ir_version: {version}, opset_import: ["" : 17]>'
    model = parse(head + " g (float[2] x, float[3, 2] s) => (float[3, 2] y) { a = Add (x, s)  b = Add (x, s)  y = Mul (a, b) }")
    values = numpy_helper.from_array(np.array([5, 6], np.float32), "s")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([1, 4], np.int64), "i"), [3, 2]))
    return model


def test_sparse_initializer_that_is_an_input_stays_overridable() -> None:
    model = sparse_default(8)
    optimized = optimize(model)
    assert signature(optimized.graph.input) == signature(model.graph.input)
    assert operators(optimized) == {"Add": 1, "Mul": 1}
    assert_same(model, optimized, {"x": ONE}, {"x": ONE, "s": np.full((3, 2), 7, np.float32)})


def test_unused_sparse_default_stays() -> None:
    """Callers may feed an input that nothing reads, but need not."""
    model = sparse_default(8)
    del model.graph.node[:]
    model.graph.node.append(helper.make_node("Expand", ["x", "shape"], ["y"]))
    model.graph.initializer.append(numpy_helper.from_array(np.array([3, 2]), "shape"))
    assert_same(model, optimize(model), {"x": ONE}, {"x": ONE, "s": np.full((3, 2), 7, np.float32)})


def test_sparse_initializer_that_is_an_input_of_old_ir_is_a_constant() -> None:
    model = sparse_default(3)
    optimized = optimize(model)
    onnx.checker.check_model(optimized)
    assert_same(model, optimized, {"x": ONE})


@pytest.mark.parametrize("twin", ["dense", "sparse"])
def test_default_that_is_given_twice_is_refused(twin: str) -> None:
    import eqsat

    model = sparse_default(8)
    if twin == "dense":
        model.graph.initializer.append(numpy_helper.from_array(np.zeros((3, 2), np.float32), "s"))
    else:
        model.graph.sparse_initializer.append(model.graph.sparse_initializer[0])
    with pytest.raises(eqsat.InputError, match="'s' is defined twice"):
        eqsat.optimize(model)


def test_sparse_constant_node() -> None:
    model = parse("g (float[2] x) => (float[3, 2] y) { y = Add (x, s) }")
    values = numpy_helper.from_array(np.array([5, 6], np.float32), "s")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([1, 4], np.int64), "i"), [3, 2])
    model.graph.node.insert(0, helper.make_node("Constant", [], ["s"], sparse_value=sparse))
    assert_same(model, optimize(model), {"x": ONE})


def test_absent_optional_inputs() -> None:
    model = parse("""g (float[4] x, float high) => (float[4] y, float[4] z) {
        y = Clip (x, , high)
        z = Clip (x)
    }""")
    optimized = optimize(model)
    assert_same(model, optimized, {"x": np.array([-9, -1, 1, 9], np.float32), "high": np.array(2, np.float32)})


def test_outputs_without_names() -> None:
    model = parse("g (float[4] x) => (int64[4] inverse) { values, , inverse = Unique (x) }")
    assert_same(model, optimize(model), {"x": np.array([3, 1, 3, 2], np.float32)})


def test_duplicate_node_names() -> None:
    """ONNX Runtime refuses them, ONNX does not."""
    model = parse("g (float[2] x) => (float[2] y) { a = Relu (x)  y = Neg (a) }")
    for node in model.graph.node:
        node.name = "same"
    assert same(run_reference(model, {"x": ONE}), run_reference(optimize(model), {"x": ONE}))


def test_names_shadow_in_two_bodies_that_look_alike() -> None:
    """One name means two values in two bodies, and fresh names collide with neither."""
    model = parse("""g (float[2] x, bool c) => (float[2] y, float[2] z) {
        v_0 = Relu (x)
        y = If (c) <then_branch = t () => (float[2] r) { k = Neg (v_0)  r = Abs (k) }, else_branch = e () => (float[2] s) { k = Abs (v_0)  s = Neg (k) }>
        k2 = Neg (v_0)
        z = Abs (k2)
    }""")
    assert_same(model, optimize(model), *[{"x": ONE, "c": np.array(c)} for c in (True, False)])


FUNCTIONS = """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
g (float[2] x) => (float[2] y, float[2] z) {
    y = local.twice <scale = 2.0> (x)
    z = local.twice <scale = 3.0> (x)
}
<domain: "local", opset_import: ["" : 17]>
twice <scale> (a) => (b) {
    s = Constant <value_float : float = @scale> ()
    p = Mul (a, s)
    q = Mul (a, s)
    b = Add (p, q)
}"""


def test_functions_are_optimized_in_place() -> None:
    """A function stays where its calls gain nothing from the graph around them."""
    model = parse("""<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
    g (float[2] x) => (float[2] y) { a = local.twice (x)  b = local.twice (a)  c = local.twice (b)  y = local.twice (c) }
    <domain: "local", opset_import: ["" : 17]> twice (a) => (b) { p = Exp (a)  q = Exp (a)  r = Add (p, q)  s = Sin (r)  b = Cos (s) }""")
    optimized = optimize(model)
    assert [function.name for function in optimized.functions] == ["twice"]
    assert operators(optimized) == {"twice": 4, "Exp": 1, "Add": 1, "Sin": 1, "Cos": 1}
    assert_same(model, optimized, {"x": ONE})


def test_functions_are_inlined_where_their_arguments_tell_more() -> None:
    model = parse(FUNCTIONS)
    optimized = optimize(model)
    assert not optimized.functions and operators(optimized) == {"Mul": 2}
    assert_same(model, optimized, {"x": ONE})


def test_functions_are_inlined_on_request() -> None:
    model = parse(FUNCTIONS)
    optimized = optimize(model, inline=True)
    assert not optimized.functions
    assert not operators(optimized)["twice"]
    assert_same(model, optimized, {"x": ONE})


def test_a_function_that_nothing_calls_does_not_keep_a_model_from_another_opset() -> None:
    model = parse(FUNCTIONS)
    model.functions.append(helper.make_function("own", "Idle", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], [helper.make_opsetid("", 17)]))
    optimized = optimize(model, inline=True, opset=20)
    assert not optimized.functions and max(item.version for item in optimized.opset_import if not item.domain) == 20
    assert_same(model, optimized, {"x": ONE})


def nested(depth: int) -> onnx.ModelProto:
    """A function that calls another twice, which calls another twice, and so on."""
    inner = "".join(f'<opset_import: ["" : 18, "f" : 1], domain: "f"> F{i} (a) => (b) {{ c = f.F{i + 1}(a) b = f.F{i + 1}(c) }}' for i in range(depth))
    last = f'<opset_import: ["" : 18], domain: "f"> F{depth} (a) => (b) {{ b = Relu(a) }}'
    return parse(f'<ir_version: 9, opset_import: ["" : 18, "f" : 1]> g (float[2] x) => (float[2] y) {{ y = f.F0(x) }} {inner} {last}')


def test_calls_that_unfold_to_more_than_runtimes_load_are_refused() -> None:
    with pytest.raises(eqsat.InputError, match=r"^the calls of functions unfold to 16,777,216 nodes; .* at most 1,048,576$"):
        eqsat.optimize(nested(24))
    model = nested(5)
    assert_same(model, optimize(model), {"x": ONE})


def test_a_function_that_calls_itself_is_refused() -> None:
    text = '<ir_version: 9, opset_import: ["" : 18, "f" : 1]> g (float[2] x) => (float[2] y) { y = f.F(x) }'
    with pytest.raises(eqsat.InputError, match=r"^function f\.F calls itself$"):
        eqsat.optimize(parse(text + '<opset_import: ["" : 18, "f" : 1], domain: "f"> F (a) => (b) { c = f.F(a) b = Relu(c) }'))


def test_a_function_with_a_random_node_does_not_merge() -> None:
    model = parse("""<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
    g (float[100] x) => (float[100] y) { a = local.noise (x)  b = local.noise (x)  y = Sub (a, b) }
    <domain: "local", opset_import: ["" : 17]>
    noise (a) => (b) { b = RandomNormalLike (a) }""")
    import eqsat

    optimized = eqsat.optimize(model).model
    assert operators(optimized)["RandomNormalLike"] == 2
    assert np.std(run(optimized, {"x": np.ones(100, np.float32)})[0]) > 0.5


def test_sequences_and_optionals() -> None:
    model = parse("""g (float[2] x) => (float[2] y, seq(float[2]) s, bool h) {
        r = Relu (x)
        s = SequenceConstruct (x, r)
        i = Constant <value_int = 1> ()
        y = SequenceAt (s, i)
        o = Optional (x)
        h = OptionalHasElement (o)
    }""")
    assert_same(model, optimize(model), {"x": ONE})


def test_strings() -> None:
    model = parse("""<ir_version: 9, opset_import: ["" : 20]>
    g (string[2] x) => (string[2] y, bool[2] e) {
        c = Constant <value_string = "-"> ()
        a = StringConcat (x, c)
        b = StringConcat (x, c)
        y = StringConcat (a, b)
        e = Equal (x, c)
    }""")
    optimized = optimize(model)
    assert operators(optimized) == {"StringConcat": 2, "Equal": 1}
    assert_same(model, optimized, {"x": np.array(["One", "-"], object)})


def test_maps() -> None:
    model = parse("""<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 2]>
    g (float[1, 2] x) => (seq(map(int64, float)) y) { y = ai.onnx.ml.ZipMap <classlabels_int64s = [3, 4]> (x) }""")
    assert_same(model, optimize(model), {"x": ONE.reshape(1, 2)})


@pytest.mark.parametrize("name", ["FLOAT16", "BFLOAT16", "DOUBLE", "FLOAT8E4M3FN", "FLOAT8E5M2", "INT4", "UINT4"])
def test_constants_of_every_width(name: str) -> None:
    """A Cast of a narrow constant may be folded or stay, but never changes the value."""
    model = parse('<ir_version: 10, opset_import: ["" : 21]> g (float[5] x) => (float[5] y) { f = Cast <to = 1> (w)  y = Add (x, f) }')
    elements = [1, 2, 3, 4, 5] if "INT" in name else [0.1, -0.3, 1e-3, 2.5, 7]
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.DataType.Value(name), [5], elements))
    assert_same(model, optimize(model), {"x": np.array([1, 2, 3, 4, 5], np.float32)})


def test_quantized_weights_stay_quantized() -> None:
    model = parse("""g (float[N, 64] x) => (float[N, 64] y) <float scale = {0.1}, int8 zero = {3}> {
        w = DequantizeLinear (q, scale, zero)
        y = MatMul (x, w)
    }""")
    quantized = np.random.default_rng(0).integers(-128, 128, (64, 64)).astype(np.int8)
    model.graph.initializer.append(numpy_helper.from_array(quantized, "q"))
    optimized = optimize(model)
    assert operators(optimized) == {"DequantizeLinear": 1, "MatMul": 1}
    assert optimized.ByteSize() <= model.ByteSize() + Settings().growth(model.ByteSize())
    assert_same(model, optimized, random_feeds(model, {"N": 3}))


def test_tied_weights_stay_tied() -> None:
    """A transposed use of a weight does not store a copy."""
    model = parse("g (float[N, 32] x) => (float[N, 32] y) { a = MatMul (x, w)  t = Transpose <perm = [1, 0]> (w)  y = MatMul (a, t) }")
    weight = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    optimized = optimize(model, exact=True)
    assert len(optimized.graph.initializer) == 1
    assert optimized.ByteSize() <= model.ByteSize() + Settings().growth(model.ByteSize())
    assert_same(model, optimized, random_feeds(model, {"N": 3}))


def test_equal_weights_become_one() -> None:
    model = parse("g (float[N, 32] x) => (float[N, 32] y) { a = MatMul (x, w)  y = MatMul (a, v) }")
    weight = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    model.graph.initializer.extend([numpy_helper.from_array(weight, name) for name in ("w", "v")])
    optimized = optimize(model, exact=True)
    assert len(optimized.graph.initializer) == 1
    assert_same(model, optimized, random_feeds(model, {"N": 3}))


def test_the_file_does_not_grow_unless_allowed() -> None:
    model = parse("""g (float[1000] x) => (float[1000] y) {
        n = Constant <value = int64[1] {1000}> ()
        c = ConstantOfShape <value = float[1] {0.5}> (n)
        s = Sin (c)
        y = Add (x, s)
    }""")
    assert operators(optimize(model))["Sin"] == 1
    grown = optimize(model, max_growth=100_000)
    assert operators(grown) == {"Add": 1}
    assert_same(model, grown, random_feeds(model, {}))


def test_what_a_reader_of_the_file_sees_stays() -> None:
    model = parse("g (float[N, 2] x) => (float[N, 2] y) { a = Relu (x)  b = Relu (x)  s = Add (a, b)  y = Neg (s) }")
    model.producer_name, model.producer_version, model.model_version, model.doc_string = "maker", "1.2", 7, "what it is"
    model.graph.doc_string = "a graph"
    model.metadata_props.add(key="author", value="me")
    model.graph.node[2].name = "the sum"
    optimized = optimize(model)
    for field in ("ir_version", "producer_name", "producer_version", "model_version", "doc_string"):
        assert getattr(optimized, field) == getattr(model, field)
    assert (optimized.graph.name, optimized.graph.doc_string) == (model.graph.name, "a graph")
    assert [(entry.key, entry.value) for entry in optimized.metadata_props] == [("author", "me")]
    assert [(opset.domain, opset.version) for opset in optimized.opset_import] == [("", 17)]
    (total,) = [node for node in nodes(optimized) if node.op_type == "Add"]
    assert total.name == "the sum" and list(total.output) == ["s"]


def test_external_data_are_written_as_external_data(tmp_path: Path) -> None:
    import eqsat

    (tmp_path / "in" / "weights").mkdir(parents=True)
    model = parse("g (float[N, 64] x) => (float[N, 64] y) { a = MatMul (x, w)  b = MatMul (x, w)  y = Add (a, b) }")
    weight = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    onnx.save(model, tmp_path / "in" / "m.onnx", save_as_external_data=True, location="weights/w.bin", size_threshold=0)
    eqsat.optimize(tmp_path / "in" / "m.onnx").save(tmp_path / "m.opt.onnx")
    written = onnx.load(tmp_path / "m.opt.onnx", load_external_data=False)
    assert written.graph.initializer[0].data_location == TensorProto.EXTERNAL
    assert (tmp_path / "m.opt.onnx").stat().st_size < 2000
    onnx.checker.check_model(str(tmp_path / "m.opt.onnx"))
    assert_same(whole, onnx.load(tmp_path / "m.opt.onnx"), random_feeds(whole, {"N": 3}))


def test_new_weights_join_the_old_where_a_model_is_replaced(tmp_path: Path) -> None:
    import eqsat

    path = tmp_path / "m.onnx"
    model = parse("g (float[S, 64] x) => (float[S, 64] y, float[S, 64] z) { a = MatMul (x, w)  b = MatMul (x, w)  y = Add (a, b)  z = Mul (x, v) }")
    for name, shape in (("w", (64, 64)), ("v", (64,))):
        model.graph.initializer.append(numpy_helper.from_array(np.random.default_rng(0).standard_normal(shape).astype(np.float32), name))
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    onnx.save(model, path, save_as_external_data=True, location="old.bin", size_threshold=0)
    before = (tmp_path / "old.bin").read_bytes()
    eqsat.optimize(path).save(path)
    written = onnx.load(path, load_external_data=False)
    places = {tensor.name: {entry.key: entry.value for entry in tensor.external_data}["location"] for tensor in written.graph.initializer}
    assert places.pop("v") == "old.bin" and (tmp_path / "old.bin").read_bytes() == before
    assert [place.startswith("m.onnx.") and (tmp_path / place).stat().st_size == 64 * 64 * 4 for place in places.values()] == [True]
    assert_same(whole, onnx.load(path), random_feeds(whole, {"S": 3}))
