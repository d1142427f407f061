"""Past defects, each as the smallest model that showed it."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import eqsat
from eqsat.runtime.session import open_runtime
from eqsat.settings import Settings
from tests.support.models import assert_same, initializers, operators, parse, weighted


def optimize(model: onnx.ModelProto, **options: object) -> onnx.ModelProto:
    import eqsat

    return eqsat.optimize(model, verify=False, **options).model  # type: ignore[arg-type]


def test_a_loop_may_feed_its_body_other_shapes_than_the_body_declares() -> None:
    model = parse(
        """g (float[2] x, int64 n) => (float[K] y, int64[S, 1] s) {
            c = Constant <value_int = 1> ()
            t = Cast <to = 9> (c)
            y, s = Loop (n, t, x) <body = b (int64 i, bool ci, float[2] v) => (bool co, float[M] vo, int64[1] sh) {
                co = Identity (ci)
                vo = Concat <axis = 0> (v, v)
                sh = Shape (v)
            }>
        }""",
        header='<ir_version: 8, opset_import: ["": 16]>',
    )
    assert_same(model, optimize(model), {"x": np.ones(2, np.float32), "n": np.array(3)})


def test_a_symbol_that_a_body_declares_is_not_that_of_the_model() -> None:
    model = parse(
        """g (float[N] x, int64 n) => (float[K] y, int64[S, 1] s) {
            c = Constant <value_int = 1> ()
            t = Cast <to = 9> (c)
            y, s = Loop (n, t, x) <body = b (int64 i, bool ci, float[N] v) => (bool co, float[M] vo, int64[1] sh) {
                co = Identity (ci)
                vo = Concat <axis = 0> (v, v)
                p = Shape (v)
                q = Shape (x)
                sh = Sub (p, q)
            }>
        }""",
        header='<ir_version: 8, opset_import: ["": 16]>',
    )
    assert_same(model, optimize(model), {"x": np.ones(2, np.float32), "n": np.array(3)})


def test_equal_sequences_are_not_copied_by_an_identity_that_knows_none() -> None:
    model = parse(
        "g (float[2] x) => (seq(float[2]) a, seq(float[2]) b) { a = SequenceConstruct (x)  b = SequenceConstruct (x) }",
        header='<ir_version: 8, opset_import: ["": 11]>',
    )
    assert operators(optimize(model))["Identity"] == 0


@pytest.mark.parametrize("parameter", ["folded", "value", "nz"])
def test_names_inside_functions_are_taken(parameter: str) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17, "local": 1]>
        g (float[N] x, float[N] u) => (int64[M, 1] y) {{ y = local.f (x, u) }}
        <domain: "local", opset_import: ["": 17]>
        f (a, {parameter}) => (r) {{
            m = Constant <value_ints = [-1]> ()
            one = Constant <value_ints = [1]> ()
            flat = Reshape (a, m)
            found = NonZero (flat)
            s = Shape (found)
            both = Concat <axis = 0> (m, one)
            r = Reshape (found, both)
        }}""")
    result = optimize(model)
    onnx.checker.check_model(result)
    assert_same(model, result, {"x": np.array([1, 0, 2], np.float32), "u": np.zeros(3, np.float32)})


def test_statistics_of_a_training_node_share_their_constants_with_nothing() -> None:
    model = parse(
        """g (float[2, 3] x) => (float[2, 3] y, float[3] m, float[3] v)
        <float[3] scale = {1, 1, 1}, float[3] bias = {0, 0, 0}, float[3] mean = {0, 0, 0}, float[3] variance = {1, 1, 1}> {
            y, m, v = BatchNormalization <training_mode = 1> (x, scale, bias, mean, variance)
        }""",
        header='<ir_version: 8, opset_import: ["": 15]>',
    )
    result = optimize(model)
    assert len(set(result.graph.node[0].input)) == 5
    assert_same(model, result, {"x": np.arange(6, dtype=np.float32).reshape(2, 3)})


def test_weights_standardized_by_a_batchnormalization_in_training_mode_are_folded() -> None:
    """As PyTorch's exporter writes those of BiT: statistics of constants are constants."""
    model = parse(
        """g (float[1, 2, 3] x) => (float[1, 2, 3] y)
        <float[1, 2, 3] w = {1, 2, 3, 4, 6, 8}, float[2] scale = {1, 1}, float[2] bias = {0, 0}, float[2] mean = {2, 6}, float[2] variance = {1, 1}> {
            s, m, v = BatchNormalization <training_mode = 1, momentum = 1.0> (w, scale, bias, mean, variance)
            y = Mul (x, s)
        }""",
        header='<ir_version: 8, opset_import: ["": 15]>',
    )
    result = optimize(model)
    assert operators(result) == {"Mul": 1}
    assert_same(model, result, {"x": np.ones((1, 2, 3), np.float32)})


def test_a_dropout_that_trained_by_default_once_is_not_merged() -> None:
    model = parse("g (float[4] x) => (float[4] y) { a = Dropout (x)  b = Dropout (x)  y = Sub (a, b) }", header='<ir_version: 8, opset_import: ["": 6]>')
    assert operators(optimize(model))["Dropout"] == 2


@pytest.mark.parametrize(
    "text",
    [
        "c = Constant <value = int64[3] {-1, -1, 4611686018427387904}> ()  y = ReduceSum <keepdims = 0> (c)",
        "c = Constant <value = int64[2] {7, 2147483648}> ()  z = Constant <value_int = 0> ()  y = Max (c, z)",
        "c = Constant <value = int64[1] {2147483648}> ()  y = Sign (c)",
    ],
)
def test_integers_are_folded_to_what_the_kernels_give(text: str) -> None:
    rank = "[2]" if "Max" in text else "[1]" if "Sign" in text else ""
    model = parse(f"g () => (int64{rank} y) {{ {text} }}", header='<ir_version: 8, opset_import: ["": 17]>')
    assert_same(model, optimize(model), {})


def test_quantized_weights_stay_quantized_inside_functions() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "local": 1]>
        g (float[2] x) => (float[2] y) <uint8[2] w = {1, 2}, float s = {0.5}, uint8 z = {0}> { d = local.dq (w, s, z)  y = Mul (x, d) }
        <domain: "local", opset_import: ["": 17]> dq (w, s, z) => (d) { d = DequantizeLinear (w, s, z) }""")
    result = optimize(model)
    assert operators(result)["DequantizeLinear"] == 1 and initializers(result)["w"].dtype == np.uint8


def test_two_outputs_that_are_equal_constants() -> None:
    model = parse("g (float[2] x) => (float[2] a, float[2] b, float[2] y) <float[2] a = {1, 2}, float[2] b = {1, 2}> { c = Relu (x)  y = Tanh (c) }")
    result = optimize(model)
    assert [node.op_type for node in result.graph.node] == ["Relu", "Tanh"]
    assert_same(model, result, {"x": np.ones(2, np.float32)})


def test_reshape_whose_zeros_are_sizes_takes_a_literal_whose_zeros_copy() -> None:
    model = parse("""g (float[N, 6] x) => (float[N, 2, 3] y) {
        s = Shape <end = 1> (x)
        t = Constant <value_ints = [2, 3]> ()
        u = Concat <axis = 0> (s, t)
        y = Reshape <allowzero = 1> (x, u)
    }""")
    result = optimize(model)
    assert operators(result) == {"Reshape": 1}
    assert_same(model, result, *({"x": np.ones((size, 6), np.float32)} for size in (1, 4)))


@pytest.mark.parametrize(
    "text",
    [
        "g (float[4611686018427387904, 4611686018427387904, 9] x) => (float[a, b, c] y) { y = Relu (x) }",
        "g (float[2] x) => (float[2] y) { y = Relu (x)  z = Relu (x) }",
        "g (float[1, 5, 3, 3] x) => (float[1, 5, a, b] y) <int64[8] p = {0, 0, -100, 0, 0, 0, 0, 0}> { z = Pad (x, p)  y = Relu (z) }",
    ],
)
def test_strange_sizes(text: str) -> None:
    assert operators(optimize(parse(text)))["Relu"] == 1


def test_strange_constants() -> None:
    model = parse("g (float[2] x) => (float[2] y) { y = Relu (x) }")
    model.graph.initializer.append(TensorProto(name="empty", data_type=1, dims=[0, 1 << 62], raw_data=b""))
    model.graph.initializer.append(TensorProto(name="deep", data_type=1, dims=[1] * 100, raw_data=bytes(4)))
    assert operators(optimize(model))["Relu"] == 1


def test_nodes_without_outputs_compute_nothing() -> None:
    model = parse("g (float[2] x) => (float[2] y) { y = Relu (x) }")
    model.graph.node.append(helper.make_node("Relu", ["x"], []))
    model.graph.node.append(helper.make_node("Add", ["x", "x"], [""]))
    assert operators(optimize(model)) == {"Relu": 1}


def test_hundreds_of_operators_that_nobody_knows() -> None:
    nodes = [helper.make_node(f"Op{index}", [f"v{index}"], [f"v{index + 1}"], domain="strange") for index in range(400)]
    ends = [helper.make_tensor_value_info(name, 1, [2]) for name in ("v0", "v400")]
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("strange", 1)]
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=imports, ir_version=8)
    assert len(optimize(model).graph.node) == 400


def external(path: Path, sizes: dict[str, tuple[int, int]]) -> onnx.ModelProto:
    """Returns y = x + the sum of weights at (offset, elements) in `w.bin` beside the model."""
    model = parse("g (float[1] x) => (float[1] y) { y = Relu (x) }")
    total = max(offset + 4 * count for offset, count in sizes.values())
    (path.parent / "w.bin").write_bytes(np.arange(total // 4, dtype=np.float32).tobytes())
    del model.graph.node[:]
    value = "x"
    for name, (offset, count) in sizes.items():
        tensor = model.graph.initializer.add(name=name, data_type=1, dims=[count], data_location=TensorProto.EXTERNAL)
        for key, entry in (("location", "w.bin"), ("offset", str(offset)), ("length", str(4 * count))):
            tensor.external_data.add(key=key, value=entry)
        model.graph.node.append(helper.make_node("ReduceSum", [name], [f"{name}_sum"], keepdims=0))
        model.graph.node.append(helper.make_node("Add", [value, f"{name}_sum"], [f"{name}_out"]))
        value = f"{name}_out"
    model.graph.node.append(helper.make_node("Identity", [value], ["y"]))
    path.write_bytes(model.SerializeToString())
    return model


def test_saving_removes_no_other_file(tmp_path: Path) -> None:
    import eqsat

    source = tmp_path / "a.onnx"
    external(source, {"w": (0, 8)})
    other = tmp_path / "b.onnx.weights_fp16.data"
    other.write_bytes(b"precious")
    result = eqsat.optimize(source, verify=False)
    result.save(tmp_path / "b.onnx")
    result.save(tmp_path / "b.onnx")
    assert other.read_bytes() == b"precious"


def test_an_empty_weight_behind_another(tmp_path: Path) -> None:
    import eqsat

    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    model = parse("g (float[1] x) => (float[1] y, float[0] e) { y = Relu (x) }")
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(0, np.float32), "e"))
    model.graph.initializer.append(numpy_helper.from_array(np.ones(1, np.float32), "w"))
    model.graph.node[0].CopyFrom(helper.make_node("Add", ["x", "w"], ["y"]))
    onnx.save_model(model, source, save_as_external_data=True, location="w.bin", size_threshold=0)
    eqsat.optimize(source, verify=False).save(target)
    eqsat.optimize(target, verify=False)
    assert {t.name: list(t.dims) for t in onnx.load(target).graph.initializer} == {"e": [0], "w": [1]}


def test_the_output_may_be_a_link(tmp_path: Path) -> None:
    import eqsat

    (tmp_path / "real").mkdir()
    (tmp_path / "links").mkdir()
    source = tmp_path / "real" / "m.onnx"
    external(source, {"w": (0, 8)})
    link = tmp_path / "links" / "m.onnx"
    link.symlink_to(source)
    eqsat.optimize(source, verify=False).save(link)
    assert link.is_symlink()
    onnx.load(source)  # loads the external data too


def test_weights_that_share_their_bytes_count_once(tmp_path: Path) -> None:
    import eqsat

    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    model = external(source, {f"w{index}": (0, 4096) for index in range(6)})
    for index, node in enumerate([node for node in model.graph.node if node.op_type == "ReduceSum"]):
        node.op_type, node.input[0] = "ReduceSum", f"w{index}"
    source.write_bytes(model.SerializeToString())
    eqsat.optimize(source, verify=False).save(target)
    after = sum(path.stat().st_size for path in tmp_path.iterdir() if path.name.startswith("b.onnx"))
    before = source.stat().st_size + (tmp_path / "w.bin").stat().st_size
    assert after <= before + Settings().growth(before)


def test_growth_is_one_budget_for_all_functions() -> None:
    functions = "\n".join(
        f"""<domain: "local", opset_import: ["": 17]> f{index} (a) => (r) {{
            start = Constant <value_int = {index}> ()
            stop = Constant <value_int = {index + 100}> ()
            step = Constant <value_int = 1> ()
            row = Range (start, stop, step)
            r = Add (a, row)
        }}"""
        for index in range(20)
    )
    calls = "\n".join(f"v{index + 1} = local.f{index} (v{index})" for index in range(20))
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17, "local": 1]> g (int64[100] v0) => (int64[100] v20) {{ {calls} }} {functions}')
    result = optimize(model)
    assert result.ByteSize() <= model.ByteSize() + Settings().growth(model.ByteSize())
    assert_same(model, result, {"v0": np.zeros(100, np.int64)})


def test_the_report_goes_over_no_other_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from eqsat.cli.main import main

    source = tmp_path / "m.onnx"
    source.write_bytes(parse("g (float[2] x) => (float[2] y) { y = Relu (x) }").SerializeToString())
    before = source.read_bytes()
    assert main(["optimize", str(source), "-o", str(tmp_path / "o.onnx"), "--report", str(source)]) == 2
    assert main(["optimize", str(source), "-o", str(tmp_path / "o.onnx"), "--report", str(tmp_path / "o.onnx")]) == 2
    assert main(["optimize", str(source), "--dim", "a=1", "--dim", "a=2"]) == 2
    assert main(["optimize", str(source), "--assume-dim", "nosuch=2"]) == 2
    assert source.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx"]


def test_a_function_of_another_opset_than_the_model_stays_as_it_is() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "local": 1]>
        g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = local.f (x) }
        <domain: "local", opset_import: ["": 11]> f (a) => (r) { b = Identity (a)  r = Softmax (b) }""")
    result = optimize(model)
    assert result.functions[0] == model.functions[0]
    assert result.graph.node[0].op_type == "f"


def test_a_part_that_nobody_reads_is_an_output_of_split_all_the_same() -> None:
    """A Split that a rule made lost an unread last output, and was no legal node any more."""
    rule = """
# A part that is split again was split into three at once.
exact rule three:
    z, y3 = Split<axis = a>(x, [_, n3])
    y1, y2 = Split<axis = a>(z, [n1, n2])
 => y1, y2, y3 = Split<axis = a>(x, [n1, n2, n3])
    test x: T[9, 3], a = 0, n1 = 2, n2 = 3, n3 = 4
"""
    model = parse("""g (float[9, 3] x) => (float[2, 3] y, float[3, 3] w) <int64[2] s = {5, 4}, int64[2] r = {2, 3}> {
        z, t = Split<axis = 0>(x, s)  y, u = Split<axis = 0>(z, r)  w = Relu(u) }""")
    result = eqsat.optimize(model, rules=[rule], only=["three"])
    (split,) = [node for node in result.model.graph.node if node.op_type == "Split"]
    assert len(split.output) == 3 and all(split.output)
    assert result.report["verify"]["status"] == "equal"


@pytest.mark.parametrize("first", ["z", "x"])
def test_what_is_empty_makes_no_concat_longer_without_end(first: str) -> None:
    """A Concat of empty parts is equal to each of its parts.

    It was unrolled into itself up to the limit of nodes.
    """
    model = parse(f"""g (float[N] x, float[N] y) => (float[M] r) <int64[1] zero = {{0}}> {{
        z = Slice (x, zero, zero, zero)
        a = Concat <axis = 0> ({first}, z)
        b = Concat <axis = 0> (a, z, a)
        c = Concat <axis = 0> (z, b)
        r = Concat <axis = 0> (y, c)
    }}""")
    result = eqsat.optimize(model, verify=False)
    assert result.report["saturation"]["nodes"] < 60
    assert_same(model, result.model, {"x": np.ones(3, np.float32), "y": np.zeros(3, np.float32)})


def test_no_rule_makes_what_the_runtime_has_no_kernel_for() -> None:
    """Rules replaced nodes that ran by nodes without a kernel.

    These were SpaceToDepth and DepthToSpace of integers, and a ScatterElements that adds float16.
    """
    slices = parse("""g (int32[1, 2, 4, 4] x) => (int32[1, 8, 2, 2] y)
        <int64[2] s = {2, 2}, int64[2] t = {2, 3}, int64[2] e = {4, 4}, int64[2] a = {0, 0}, int64[2] b = {0, 1}, int64[2] c = {1, 0}, int64[2] d = {1, 1}> {
        p = Slice (x, a, e, t, s)  q = Slice (x, b, e, t, s)  u = Slice (x, c, e, t, s)  v = Slice (x, d, e, t, s)
        y = Concat <axis = 1> (p, q, u, v) }""")
    chosen = parse("""g (float16[1, 3, 4, 4] x) => (float16[1, 2, 4, 4] y) <int64[2] i = {-2, -2}> {
        w = Constant <value = float16[2, 2, 1, 1] {15360, 0, 16384, 15360}> ()
        z = Gather <axis = 1> (x, i)
        y = Conv (z, w)
    }""")
    generator = np.random.default_rng(0)
    assert_same(slices, optimize(slices), {"x": np.arange(32, dtype=np.int32).reshape(1, 2, 4, 4)})
    assert_same(chosen, optimize(chosen), {"x": generator.integers(-3, 3, (1, 3, 4, 4)).astype(np.float16)})
    blocks = parse("""g (int32[1, 4, 2, 2] x) => (int32[1, 1, 4, 4] y) <int64[6] s = {1, 1, 2, 2, 2, 2}, int64[4] t = {1, 1, 4, 4}> {
        z = Reshape (x, s)
        w = Transpose <perm = [0, 1, 4, 2, 5, 3]> (z)
        y = Reshape (w, t)
    }""")
    assert_same(blocks, optimize(blocks), {"x": np.arange(16, dtype=np.int32).reshape(1, 4, 2, 2)})


def test_an_old_clip_is_made_of_single_floats_alone() -> None:
    """Clip with its bounds as attributes runs only in single precision.

    Such Clips of other types in a model stay as they are.
    """
    header = '<ir_version: 4, opset_import: ["": 9]>'
    bounds = parse("g (double[3] x) => (double[3] y) <double low = {-1}, double high = {1}> { a = Max (x, low)  y = Min (a, high) }", header)
    assert_same(bounds, optimize(bounds), {"x": np.array([-2, 0.5, 3])})
    clip = parse("g (double[3] x) => (double[3] y, double[3] z) { a = Identity (x)  y = Clip <min = -1.0> (a)  z = Clip <min = -1.0> (x) }", header)
    assert operators(optimize(clip)) == {"Clip": 1, "Identity": 1}


def test_a_slope_larger_than_what_it_slopes_stays() -> None:
    """The engines broadcast the first input of PRelu too.

    LeakyRelu in its place gave the size of that input.
    """
    model = parse("g (float[1, 2] x) => (float[3, 2] y) <float[3, 1] s = {0.5, 0.5, 0.5}> { a = Relu (x)  b = Sub (x, a)  y = PRelu (b, s) }")
    optimized = optimize(model)
    assert operators(optimized)["PRelu"] == 1
    assert_same(model, optimized, {"x": np.array([[-1, 2]], np.float32)})


def _load(model: onnx.ModelProto) -> None:
    """Raises ONNX Runtime's exception if it refuses the model as written."""
    open_runtime(model.SerializeToString())


@pytest.mark.parametrize(("kind", "opset"), [("float", 24), ("float", 25), ("float", 26), ("double", 26), ("float16", 26)])
def test_swish_is_made_only_where_the_runtime_takes_it(kind: str, opset: int) -> None:
    """ONNX Runtime knows Swish by the function that defines it, and only at one opset."""
    model = parse(f"g ({kind}[3] x) => ({kind}[3] y) {{ s = Sigmoid (x)  y = Mul (x, s) }}", f'<ir_version: 10, opset_import: ["": {opset}]>')
    optimized = optimize(model)
    _load(optimized)
    assert_same(model, optimized, {"x": np.linspace(-2, 2, 3).astype({"float": "float32", "double": "float64"}.get(kind, kind))})


def test_a_reshape_of_what_the_runtime_does_not_reshape_is_not_made() -> None:
    """At opset 21 ONNX Runtime quantizes to 4-bit integers but cannot reshape these.

    So a Reshape stays before the QuantizeLinear.
    """
    model = parse(
        "g (float16[3, 2] x) => (uint4[K, L] y) <float16 s = {16196}, uint4 z = {0}, int64[2] n = {2, 3}> { r = Reshape (x, n)  y = QuantizeLinear (r, s, z) }",
        '<ir_version: 10, opset_import: ["": 21]>',
    )
    optimized = optimize(model)
    _load(optimized)
    _load(model)


def test_swish_is_made_where_the_runtime_takes_it_and_where_it_took_nothing_before() -> None:
    """At opset 24 ONNX Runtime knows Swish by its function.

    In bfloat16 it runs neither spelling, so the shorter one is for other runtimes.
    """
    known = parse("g (float[3] x) => (float[3] y) { s = Sigmoid (x)  y = Mul (x, s) }", '<ir_version: 10, opset_import: ["": 24]>')
    assert operators(optimize(known, target="launches")) == {"Swish": 1}
    foreign = parse("g (bfloat16[3] x) => (bfloat16[3] y) { s = Sigmoid (x)  y = Mul (x, s) }", '<ir_version: 10, opset_import: ["": 26]>')
    assert operators(optimize(foreign, target="launches")) == {"Swish": 1}


@pytest.mark.parametrize(("made", "read"), [("Optional", "OptionalHasElement"), ("Cast <to = 22>", "Cast <to = 1>")])
def test_an_argument_that_a_function_no_longer_reads_is_not_passed(made: str, read: str) -> None:
    """ONNX Runtime refuses some types for a parameter that no node reads.

    Optionals and tensors of 4-bit integers are among them.
    """
    header = '<ir_version: 10, opset_import: ["": 21, "here": 1]>'
    function = f'<domain: "here", opset_import: ["": 21]> part (a, b) => (c) {{ d = {read} (b)  e = Exp (a)  f = Sin (e)  h = Cos (f)  c = Tanh (h) }}'
    calls = "p = here.part (x, b)  q = here.part (p, b)  r = here.part (q, b)  y = here.part (r, b)"
    model = parse(f"g (float[6] x) => (float[6] y) {{ b = {made} (x)  {calls} }} {function}", header)
    optimized = optimize(model)
    assert operators(optimized) == {"part": 4, "Exp": 1, "Sin": 1, "Cos": 1, "Tanh": 1}
    assert_same(model, optimized, {"x": np.arange(6, dtype=np.float32) - 3})


def test_an_argument_goes_that_is_passed_on_to_where_nobody_reads_it() -> None:
    model = parse(
        """g (float[6] x, bool c) => (float[6] y) {
            b = Exp (x)
            y = If (c) <then_branch = t () => (float[6] u) { m = Neg (b)  u = here.part (m, x) }, else_branch = e () => (float[6] v) { v = here.part (b, x) }>
        }
        <domain: "here", opset_import: ["": 21]> inner (a, b) => (c) { d = Shape (a)  c = Abs (b) }
        <domain: "here", opset_import: ["": 21, "here": 1]> part (a, b) => (c) { d = Sin (a)  c = here.inner (d, b) }""",
        '<ir_version: 10, opset_import: ["": 21, "here": 1]>',
    )
    optimized = optimize(model)
    assert not {"Exp", "Neg", "Sin", "Shape"} & set(operators(optimized))
    assert_same(model, optimized, *({"x": np.arange(6, dtype=np.float32) - 3, "c": np.array(way)} for way in (True, False)))


def test_no_slice_is_made_whose_result_onnx_gives_the_name_of_another_size() -> None:
    """ONNX's inference for Slice of opset 10 keeps the name N.

    ONNX Runtime then assumes that both results have equal sizes.
    """
    model = parse(
        """g (float[N, M, 4] x) => (float[A, B, C] y, float[D, E, F] z) {
            t = ThresholdedRelu (x)
            u = Tanh (t)
            v, w = Split <axis = 0, split = [4, 1]> (u)
            y = Shrink (v)
            z = Neg (w)
        }""",
        header='<ir_version: 8, opset_import: ["": 10]>',
    )
    assert_same(model, optimize(model), {"x": np.ones((5, 7, 4), np.float32)})


def test_a_sequence_that_becomes_slices_may_take_more_bytes_at_first() -> None:
    """Slices take more bytes than the sequence. No choice seemed small enough, though the result is
    smaller than both.
    """
    model = weighted(
        """
        g (float[N, 6] x, int64[N] i) => (float[N, 2] y) <int64 two = {2}, int64 zero = {0}, int64 one = {1}>
        {
            s = SplitToSequence <axis = 1> (x, two)
            a = SequenceAt (s, zero)
            b = SequenceAt (s, one)
            c = SequenceAt (s, two)
            w = Gather (table, i)
            d = Add (a, b)
            e = Mul (d, c)
            y = Sub (e, w)
        }
        """,
        table=np.random.default_rng(0).standard_normal((40, 2)).astype(np.float32),
    )
    result = eqsat.optimize(model, max_growth=0)
    assert operators(result.model) == {"Split": 1, "Gather": 1, "Add": 1, "Mul": 1, "Sub": 1}
    assert result.model.graph.ByteSize() < model.graph.ByteSize()


@pytest.mark.parametrize("engine", ["saturation", "greedy"])
@pytest.mark.parametrize(
    "nodes",
    [
        "m = Mul (x, x)  y = ReduceSum <keepdims = 0> (m, last)",
        "m = Abs (x)  y = ReduceSum <keepdims = 0> (m, last)",
        "y = ReduceSumSquare <keepdims = 0, axes = [-1]> (x)",
        "m = ReduceSum <keepdims = 0> (x, last)  y = ReduceSum <keepdims = 0> (m, last)",
        "m = ReduceProd <keepdims = 0, axes = [-1]> (x)  y = ReduceProd <keepdims = 0, axes = [-1]> (m)",
    ],
)
def test_the_runtime_cuts_sums_of_integers_off_where_others_wrap(nodes: str, engine: str) -> None:
    sizes = "A" if nodes.count("Reduce") == 2 else "A, B"
    model = parse(f"g (int32[2, 3, 4] x) => (int32[{sizes}] y) <int64[1] last = {{-1}}> {{ {nodes} }}")
    extremes = np.array([np.iinfo(np.int32).max, np.iinfo(np.int32).min, 65537, -1], np.int32)
    for seed in range(20):
        feeds = {"x": np.random.default_rng(seed).choice(extremes, (2, 3, 4))}
        assert_same(model, optimize(model, engine=engine, target="launches"), feeds)


def test_exact_leaves_bodies_alone_where_bits_depend_on_neighbors() -> None:
    """ONNX Runtime computes neighbors of 16 bits in 32, and rounds at the border of a body."""
    model = parse(
        """g (float16[2] x, float16[2] w) => (float16[2] y) <int64 once = {1}> {
            s = Sub (x, w)
            y = Loop (once, "", s) <body = b (int64 i, bool go, float16[2] v) => (bool on, float16[2] each) { on = Identity (go)  each = Add (v, v) }>
        }""",
        header='<ir_version: 10, opset_import: ["": 21]>',
    )
    assert operators(optimize(model, exact=True)) == operators(model)
    assert "Loop" not in operators(optimize(model))


def test_the_runtime_refuses_pools_of_images_without_pixels() -> None:
    """LRN of such an image is one, so it stays where a size may be 0."""
    model = parse("g (float[2, 64, 28, W] x) => (float[2, 64, 28, W] y) { y = LRN <size = 5> (x) }")
    assert operators(optimize(model)) == {"LRN": 1}
    assert "AveragePool" in operators(optimize(model, dims={"W": 28}))
    power = parse("g (float[2, 64, 28, W] x) => (float[2, 64, 28, W] y) { y = LRN <size = 5, beta = 0.6> (x) }")
    assert operators(optimize(power)) == {"LRN": 1}


def test_what_follows_from_the_sizes_of_an_input_is_constant_in_the_same_run() -> None:
    """The sizes are known, but their own nodes read the input, so these cannot compute them."""
    model = parse(
        """g (float[3] z) => (float[3] y, float[6] w) <float one = {1}> {
            s = Shape (z)  k = ConstantOfShape (s)  a = Add (z, k)  y = Exp (a)
            t = Add (s, s)  u = ConstantOfShape (t)  w = Add (u, one)
        }"""
    )
    result = optimize(model, target="launches")
    assert operators(result) == {"Exp": 1} and [tensor.name for tensor in result.graph.initializer] == ["w"]


def test_a_model_that_fails_at_each_run_loads_as_before() -> None:
    """The sizes say that nothing is left, which no Expand takes. ONNX Runtime looks at a constant when it
    loads the model. onnx cannot tell, for it refuses the original, which does not import all domains.
    """
    model = parse(
        """g (float[3] x) => (float[1, 3] y) {
            s = Shape (x)  k = ConstantOfShape (s)  i = NonZero (k)  e = Expand (i, s)  f = Cast <to = 1> (e)  y = com.microsoft.Gelu (f)
        }"""
    )
    open_runtime(model.SerializeToString())
    open_runtime(optimize(model, target="launches").SerializeToString())


def test_factors_of_zeros_make_no_matches_without_end() -> None:
    """The bias is a vector of zeros, which is a multiple of everything."""
    model = parse(
        """g (float[1, 3] x) => (float[1, 3] y)
        <float[3, 3] w = {1, 0, 0, 0, 1, 0, 0, 0, 1}, float[3] b = {0, 0, 0}, float[3] s = {1, 1, 1}, int64[2] k = {1, 3}> {
            g = Gemm (x, w, b)  r = Reshape (g, k)  y = Mul (r, s)
        }"""
    )
    result = eqsat.optimize(model, target="launches")
    assert operators(result.model) == {"MatMul": 1}
    assert sum(rule["matches"] for rule in result.report["rules"]) < 200


def test_a_power_of_one_is_not_exact_where_the_reference_rounds() -> None:
    """With AVX-512, numpy's powers by 1 err in the last place of a few numbers in 100,000."""
    model = parse("g (float[64] x) => (float[64] y) { one = Constant <value_float = 1.0> ()  p = Pow (x, one)  y = Tanh (p) }")
    assert operators(optimize(model)) == {"Tanh": 1}
    assert operators(optimize(model, exact=True))["Pow"] == 1


@pytest.mark.parametrize("outputs", ["y", "y, u", ", u", "y, u, v", ", u, v", ", , v"])
@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("start", [0.0, 0.5])
def test_a_recurrence_that_begins_with_zeros_needs_no_state(outputs: str, operator: str, start: float) -> None:
    """Exporters make the state for each batch: Shape, Slice, Concat and Expand remained, and onnxsim dropped them."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[operator]
    if operator != "LSTM":
        outputs = outputs.removesuffix(", v")
    names = [name for name in outputs.replace(" ", "").split(",") if name]
    states = "h, h" if operator == "LSTM" else "h"
    if not names:
        return
    generator = np.random.default_rng(0)
    model = weighted(
        f"""g (float[T, B, 3] x) => ({", ".join(f"float[{'T, 1, B, 4' if name == 'y' else '1, B, 4'}] {name}" for name in names)}) {{
            s = Shape (x) n = Slice (s, one, two, zero) d = Concat <axis = 0> (n, four) e = Expand (start, d) h = Unsqueeze (e, zero)
            {outputs} = {operator} <hidden_size = 4> (x, w, r, , , {states}) }}""",
        14,
        w=generator.standard_normal((1, gates * 4, 3)).astype(np.float32),
        r=generator.standard_normal((1, gates * 4, 4)).astype(np.float32),
        start=np.float32(start),
        **{name: np.array([value]) for name, value in (("zero", 0), ("one", 1), ("two", 2), ("four", 4))},
    )
    optimized = optimize(model)
    assert (operators(optimized) == {operator: 1}) == (start == 0)
    assert_same(model, optimized, {"x": generator.standard_normal((5, 2, 3)).astype(np.float32)})


LISTED = "the weights, which the model lists as inputs, became constants: nobody can replace them now; --constant-defaults none leaves them"
REPLACEABLE = "a default value that a caller may replace; --constant-defaults all makes constants of such inputs"


def conv_of_listed_weights() -> onnx.ModelProto:
    graph = "g (float[1, 2, 5, 5] x) => (float[1, 3, 3, 3] y) { c = Conv (x, w) y = BatchNormalization (c, s, b, m, v) }"
    ones = {name: np.full(3, 1 + number, np.float32) for number, name in enumerate("sbmv")}
    model = weighted(graph, w=np.ones((3, 2, 3, 3), np.float32), **ones)
    model.graph.input.extend(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims) for tensor in model.graph.initializer)
    return model


def test_weights_that_an_old_exporter_lists_as_inputs_become_constants() -> None:
    """A Conv and a BatchNormalization of such weights remained two nodes. Face detectors ran 2.4 times as long as peers' results."""
    model = conv_of_listed_weights()
    result = eqsat.optimize(model)
    assert [info.name for info in result.model.graph.input] == ["x"] and operators(result.model) == {"Conv": 1}
    assert result.report["verify"]["status"] == "equal" and result.report["notes"] == [LISTED]
    assert eqsat.verify(model, result.model).status == "equal"
    # The runtime folds no input, so the original runs both nodes.
    assert result.report["cost"]["before"]["seconds"] > result.report["cost"]["after"]["seconds"]
    kept = eqsat.optimize(model, constant_defaults="none")
    assert [info.name for info in kept.model.graph.input] == ["x", *"wsbmv"] and operators(kept.model)["BatchNormalization"] == 1
    assert f"5 inputs have {REPLACEABLE}" in kept.report["notes"]
    assert eqsat.verify(model, kept.model).status == "equal"
    model.ir_version = 3
    assert not eqsat.optimize(model).report["notes"], "before IR version 4 no initializer was a default"


def test_weights_of_listed_ones_count_where_they_are_compared() -> None:
    model = conv_of_listed_weights()
    other = eqsat.optimize(model).model
    next(tensor for tensor in other.graph.initializer if len(tensor.dims) == 4).raw_data = np.full(54, 2, np.float32).tobytes()
    assert eqsat.verify(model, other).status == "different"


@pytest.mark.parametrize("chosen", ["some of the weights", "no weight"])
def test_inputs_stay_where_somebody_chose_which_have_a_default_value(chosen: str) -> None:
    """As adapters (LoRA) that a caller may replace beside weights that nobody can, or the options of a pipeline."""
    if chosen == "no weight":
        model = weighted("g (float[2, 3] x) => (float[2, 3] y) { y = Mul (x, s) }", s=np.full((2, 3), 2, np.float32))
    else:
        model = weighted(
            "g (float[2, 3] x) => (float[2, 3] y) { a = MatMul (x, w) b = MatMul (x, s) y = Add (a, b) }", **dict.fromkeys("sw", np.eye(3, dtype=np.float32))
        )
    model.graph.input.extend(
        helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims) for tensor in model.graph.initializer if tensor.name == "s"
    )
    result = eqsat.optimize(model)
    assert [info.name for info in result.model.graph.input] == ["x", "s"]
    assert f"input 's' has {REPLACEABLE}" in result.report["notes"]
    fixed = eqsat.optimize(model, constant_defaults="all")
    assert [info.name for info in fixed.model.graph.input] == ["x"] and not fixed.report["notes"]
    assert eqsat.verify(model, fixed.model).status == "different"


@pytest.mark.parametrize(("dtype", "fired"), [("float", True), ("double", False)])
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_the_scale_of_attention_in_double_precision_stays(dtype: str, fired: bool, factor: float) -> None:
    """ONNX Runtime multiplies by its root in single precision: results were off by 1e-8, a fuzzer found."""
    model = parse(
        f"""g ({dtype}[1, 2, 7, 7] q, {dtype}[1, 2, 3, 7] k, {dtype}[1, 2, 3, 7] v) => ({dtype}[1, 2, 7, 7] y) {{
            f = Constant <value_float = {factor}> () c = Cast <to = {1 if dtype == "float" else 11}> (f)
            p = Mul (q, c) y = Attention <scale = {factor}> (p, k, v) }}""",
        '<ir_version: 10, opset_import: ["": 23]>',
    )
    rules = ["attention-scale", "attention-apart"]
    assert {rule["name"] for rule in eqsat.optimize(model, only=rules).report["rules"]} == (set(rules) if fired else set())


@pytest.mark.parametrize("operator", ["Mul", "Div"])
def test_a_factor_that_may_give_scores_an_axis_stays_behind_their_product(operator: str) -> None:
    """A product by a vector has three axes, and its factor a fourth, along which Softmax goes: the checker refuted the rule."""
    model = parse(
        f"""g (float[2, 3, 4, 5] q, float[5] t, float[3, 4] m) => (float[1, 2, 3, 4] y) <float[1, 1, 1, 1] c = {{0.3}}> {{
            p = MatMul (q, t)  s = {operator} (p, c)  a = Add (s, m)  y = Softmax <axis = 3> (a) }}"""
    )
    model.graph.input[1].type.tensor_type.ClearField("shape")
    result = eqsat.optimize(model, only=[f"attention-factor[{operator}]"], verify=False)
    assert not result.report["rules"] and operators(result.model)[operator] == 1


def test_a_reshape_of_an_old_opset_has_its_shape_as_an_attribute() -> None:
    """Writing it looked for a second input, a model of opset 1 showed."""
    nodes = [
        helper.make_node("Reshape", ["x"], ["a"], shape=[2, 3]),
        helper.make_node("Transpose", ["a"], ["t"], perm=[1, 0]),
        helper.make_node("Reshape", ["t"], ["b"], shape=[6]),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, [6])], [value("y", TensorProto.FLOAT, [6])])
    result = eqsat.optimize(helper.make_model(graph, ir_version=3, opset_imports=[helper.make_opsetid("", 4)]))
    assert [list(attribute.ints) for node in result.model.graph.node for attribute in node.attribute if attribute.name == "shape"] == [[2, 3], [6]]


def test_a_model_that_was_stripped_of_its_weights_is_not_verified() -> None:
    """Comparing the weights read elements that are not there."""
    model = weighted("g (float[1, 512] x) => (float[1, 512] y) { a = Relu (x)  b = Relu (a)  y = MatMul (b, w) }", w=np.ones((512, 512), np.float32))
    model.graph.initializer[0].ClearField("raw_data")
    result = eqsat.optimize(model)
    assert operators(result.model) == {"Relu": 1, "MatMul": 1}
    assert result.report["verify"]["status"] == "unverified" and "the original model does not run" in result.report["verify"]["reason"]


def test_a_bound_of_shape_1_that_becomes_constant_is_a_scalar() -> None:
    """ONNX Runtime takes a computed bound of shape [1], and refused the constant one: the result of a function of AffineGrid did not load."""
    model = parse(
        """g (int64[4] d) => (float[M] y, int64[L] z) <int64 a = {0}, int64 s = {1}, int64 f = {4}, int64[1] k = {3}> {
            n = Size (d) c = Equal (n, f)
            w = If (c) <then_branch = t () => (int64[A] p) { p = Identity (k) }, else_branch = e () => (int64[B] q) { q = Add (d, k) }>
            r = Range (a, w, s) u = Cast <to = 1> (r) y = Relu (u)
            v = Neg (w) z = Range (v, w, s) }"""
    )
    result = eqsat.optimize(model)
    assert result.report["verify"]["status"] == "equal" and not operators(result.model)
    feeds = {"d": np.arange(4)}
    assert_same(model, result.model, feeds)


def test_a_mended_model_is_no_worse_than_the_original() -> None:
    """What ONNX Runtime refuses has no price, so what is made of it is compared with the original: the sizes of a branch make it dearer."""
    model = parse(
        """g (int64[4] d, float[A, B, C, D] x) => (float[M] z, float[P, Q, R, S] y) <int64 a = {0}, int64 s = {1}, int64 f = {4}, int64[1] k = {3}> {
            n = Size (d) c = Equal (n, f)
            w = If (c) <then_branch = t () => (int64[E] p) { p = Identity (k) }, else_branch = e () => (int64[F] q) { q = Add (d, k) }>
            r = Range (a, w, s) z = Cast <to = 1> (r)
            i = If (c) <then_branch = t2 () => (o) { o = Relu (x) }, else_branch = e2 () => (o2) { o2 = ReduceSum <keepdims = 0> (x) }>
            j = Exp (i) u = Sin (j) y = Cos (u) }"""
    )
    model.graph.output[1].type.tensor_type.ClearField("shape")
    result = eqsat.optimize(model)
    assert result.model == model and result.report["verify"]["status"] == "equal"
    assert result.report["notes"] == ["the rewritten model was no better than the original, which stays as it is"]
