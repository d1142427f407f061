"""Traps that graph optimizers have fallen into, one test each.

A test has a model as ONNX text, and what must hold afterwards.
"""

import numpy as np
import onnx
import pytest

from tests.support.models import assert_same, nodes, operators, parse, run, run_reference, same, signature


def optimize(model: onnx.ModelProto, **options: object) -> onnx.ModelProto:
    import eqsat

    result = eqsat.optimize(model, **options)  # type: ignore[arg-type]
    assert result.report["verify"]["status"] != "different"
    assert eqsat.count_nodes(result.model) <= eqsat.count_nodes(model)
    assert signature(result.model.graph.input) == signature(model.graph.input)
    assert signature(result.model.graph.output) == signature(model.graph.output)
    return result.model


def test_two_random_nodes_stay_two() -> None:
    model = parse("""g () => (float[1000] y) {
        a = RandomNormal <shape = [1000]> ()
        b = RandomNormal <shape = [1000]> ()
        y = Sub (a, b)
    }""")
    optimized = optimize(model)
    assert operators(optimized) == {"RandomNormal": 2, "Sub": 1}
    assert np.std(run(optimized)[0]) > 1


@pytest.mark.parametrize("operator", ["RandomUniformLike", "RandomNormalLike", "Bernoulli", "Multinomial"])
def test_random_nodes_of_a_constant_stay(operator: str) -> None:
    model = parse(f"""g () => (y, z) {{
        c = Constant <value = float[1, 4] {{0.25, 0.25, 0.25, 0.25}}> ()
        y = {operator} (c)
        z = {operator} (c)
    }}""")
    for output in model.graph.output:
        output.type.tensor_type.elem_type = onnx.TensorProto.INT32 if operator == "Multinomial" else onnx.TensorProto.FLOAT
    assert operators(optimize(model)) == {operator: 2}


def test_a_random_node_in_a_body_does_not_fold() -> None:
    model = parse("""g () => (float[4] y) {
        c = Constant <value = bool {1}> ()
        y = If (c) <
            then_branch = t () => (float[4] a) { a = RandomNormal <shape = [4]> () },
            else_branch = e () => (float[4] b) { b = RandomNormal <shape = [4]> () }
        >
    }""")
    assert operators(optimize(model))["RandomNormal"] >= 1


def test_value_float_stays_float32() -> None:
    model = parse("""g (float[2] x) => (float[2] y, float z, float[2] w, int64 i, int64[2] j) {
        c = Constant <value_float = 0.1> ()
        y = Mul (x, c)
        z = Identity (c)
        w = Constant <value_floats = [0.1, 0.2]> ()
        i = Constant <value_int = 3> ()
        j = Constant <value_ints = [4, 5]> ()
    }""")
    assert_same(model, optimize(model), {"x": np.array([1, 3], np.float32)})


def test_value_string_stays_a_string() -> None:
    model = parse("""g () => (string y, string[2] z) {
        y = Constant <value_string = "one"> ()
        z = Constant <value_strings = ["two", ""]> ()
    }""")
    assert_same(model, optimize(model), {})


def test_dropout_whose_mask_is_used() -> None:
    model = parse("""g (float[2, 3] x) => (float[2, 3] y, bool[2, 3] mask) {
        ratio = Constant <value_float = 0.5> ()
        y, mask = Dropout (x, ratio)
    }""")
    assert_same(model, optimize(model), {"x": np.ones((2, 3), np.float32)})


@pytest.mark.parametrize("opset", [7, 9, 11, 12, 13, 21])
def test_dropout_in_every_form_goes(opset: int) -> None:
    """Only training mode uses the ratio and the mask, so every form is removed."""
    forms = ["a = Dropout(x)", "a, m = Dropout(x)"] if opset >= 12 else ["a = Dropout<ratio = 0.5>(x)"]
    forms += ["a = Dropout(x, half)", "a = Dropout(x, half, no)", "a = Dropout(x, half, yes)", "a, m = Dropout(x, zero, yes)"] if opset >= 12 else []
    for form in forms:
        constants = "float half = {0.5}, float zero = {0}, bool no = {0}, bool yes = {1}"
        model = parse(f"g (float[2] x) => (float[2] y) <{constants}> {{ {form} y = Exp(a) }}", f'<ir_version: 8, opset_import: ["" : {opset}]>')
        assert operators(optimize(model)) == ({"Dropout": 1, "Exp": 1} if "yes" in form else {"Exp": 1}), form


def test_dropout_in_training_mode_stays() -> None:
    model = parse("""g (float[1000] x) => (float[1000] y, float[1000] z) {
        ratio = Constant <value_float = 0.5> ()
        training = Constant <value = bool {1}> ()
        y = Dropout (x, ratio, training)
        z = Dropout (x, ratio, training)
    }""")
    optimized = optimize(model)
    assert operators(optimized)["Dropout"] == 2
    y, z = run(optimized, {"x": np.ones(1000, np.float32)})
    assert set(np.unique(y)) == {0, 2} and not same(y, z)


def test_output_that_is_an_initializer() -> None:
    model = parse("""g (float[2] x) => (float[2] y, float[2] w)
    <float[2] w = {1, 2}> { y = Add (x, w) }""")
    assert_same(model, optimize(model), {"x": np.array([3, 4], np.float32)})


def test_output_that_is_an_input() -> None:
    model = parse("g (float[2] x) => (float[2] x) { unused = Relu (x) }")
    optimized = optimize(model)
    assert_same(model, optimized, {"x": np.array([3, -4], np.float32)})
    assert not operators(optimized)


def test_two_outputs_of_one_value() -> None:
    model = parse("""g (float[2] x) => (float[2] y, float[2] z, float[2] w) {
        y = Relu (x)
        z = Relu (x)
        w = Identity (y)
    }""")
    optimized = optimize(model, target="launches")
    assert_same(model, optimized, {"x": np.array([3, -4], np.float32)})
    assert operators(optimized)["Relu"] == 1


def test_if_on_a_constant_with_captured_initializers() -> None:
    model = parse("""g (float[2] x) => (float[2] y)
    <float[2] w = {1, 2}, float[2] v = {5, 6}> {
        c = Constant <value = bool {1}> ()
        y = If (c) <
            then_branch = t () => (float[2] a) { a = Add (x, w) },
            else_branch = e () => (float[2] b) { b = Add (x, v) }
        >
    }""")
    assert_same(model, optimize(model), {"x": np.array([3, 4], np.float32)})


def test_if_on_an_input_with_captured_values() -> None:
    model = parse("""g (float[2] x, bool c) => (float[2] y)
    <float[2] w = {1, 2}> {
        d = Relu (x)
        e = Relu (x)
        y = If (c) <
            then_branch = t () => (float[2] a) { k = Add (d, w)  a = Identity (k) },
            else_branch = f () => (float[2] b) { k = Add (e, w)  l = Add (d, w)  b = Mul (k, l) }
        >
    }""")
    optimized = optimize(model)
    feeds = [{"x": np.array([3, -4], np.float32), "c": np.array(value)} for value in (True, False)]
    assert_same(model, optimized, *feeds)
    assert operators(optimized)["Relu"] == 1
    assert operators(optimized)["Add"] == 2


def test_loop_without_carried_values() -> None:
    model = parse("""g (int64 n) => (float[trips, 1] y) {
        always = Constant <value = bool {1}> ()
        y = Loop (n, always) <body = b (int64 i, bool c) => (bool d, float[1] s) {
            d = Identity (c)
            f = Cast <to = 1> (i)
            axes = Constant <value = int64[1] {0}> ()
            s = Unsqueeze (f, axes)
        }>
    }""")
    assert_same(model, optimize(model), *[{"n": np.array(n, np.int64)} for n in (0, 1, 3)])


def test_loop_with_carried_values() -> None:
    model = parse("""g (int64 n, float[2] x) => (float[2] y)
    <float[2] w = {1, 2}> {
        y = Loop (n, , x) <body = b (int64 i, bool c, float[2] carried) => (bool d, float[2] next) {
            d = Identity (c)
            p = Mul (carried, w)
            q = Mul (carried, w)
            next = Add (p, q)
        }>
    }""")
    optimized = optimize(model)
    assert_same(model, optimized, *[{"n": np.array(n, np.int64), "x": np.array([3, 4], np.float32)} for n in (0, 1, 3)])
    assert operators(optimized)["Mul"] == 1


def test_floor_of_a_product_in_float32_stays_seven() -> None:
    model = parse("""g (float[7, 2] x) => (float[a, b] y, float f) {
        s = Constant <value_float = 0.7> ()
        t = Constant <value_float = 10.0> ()
        p = Mul (s, t)
        f = Floor (p)
        i = Cast <to = 7> (f)
        minus = Constant <value = int64[1] {-1}> ()
        one = Constant <value = int64[1] {1}> ()
        j = Reshape (i, one)
        shape = Concat <axis = 0> (j, minus)
        y = Reshape (x, shape)
    }""")
    optimized = optimize(model)
    feeds = {"x": np.arange(14, dtype=np.float32).reshape(7, 2)}
    assert_same(model, optimized, feeds)
    assert run(optimized, feeds)[1] == 7


def test_pad_with_zero_before_a_maximum_of_negative_values() -> None:
    model = parse("""g (float[1, 1, 4, 4] x) => (float[1, 1, 3, 3] y)
    <int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}> {
        p = Pad (x, pads)
        y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (p)
    }""")
    optimized = optimize(model)
    feeds = {"x": -np.ones((1, 1, 4, 4), np.float32)}
    assert_same(model, optimized, feeds)
    assert run(optimized, feeds)[0][0, 0, 0, 0] == 0


def test_custom_nodes_that_look_equal_stay_two() -> None:
    model = parse("""<ir_version: 8, opset_import: ["" : 17, "acme" : 1]>
    g (float[2] x) => (float[2] y) {
        a = acme.Draw (x)
        b = acme.Draw (x)
        y = Sub (a, b)
    }""")
    assert operators(optimize(model)) == {"Draw": 2, "Sub": 1}


def test_custom_node_of_constants_stays() -> None:
    model = parse("""<ir_version: 8, opset_import: ["" : 17, "acme" : 1]>
    g () => (float[2] y) <float[2] w = {1, 2}> { y = acme.Draw (w) }""")
    assert operators(optimize(model)) == {"Draw": 1}


def test_two_unknown_dimensions_are_not_equal() -> None:
    model = parse("""g (bool[6] a, bool[6] b) => (bool[k] same, int64[2] p, int64[2] q) {
        s = NonZero (a)
        t = NonZero (b)
        p = Shape (s)
        q = Shape (t)
        same = Equal (p, q)
    }""")
    a, b = np.array([1, 1, 0, 0, 1, 0], bool), np.array([1, 0, 0, 0, 0, 0], bool)
    assert_same(model, optimize(model), {"a": a, "b": b}, {"a": a, "b": a})


def test_two_undeclared_dimensions_are_not_equal() -> None:
    model = parse("""g (float[?] a, float[?] b) => (bool[1] same, float[?] c) {
        p = Shape (a)
        q = Shape (b)
        same = Equal (p, q)
        c = Expand (a, q)
    }""")
    one, two = np.ones(1, np.float32), np.ones(2, np.float32)
    assert_same(model, optimize(model), {"a": one, "b": two}, {"a": one, "b": one})


@pytest.mark.parametrize("target", ["0, -1", "-1, 3", "0, 3", "-1, 1, 3", "0, 1, -1"])
def test_zero_size_dimension_through_reshape(target: str) -> None:
    """With 0 and -1 together the runtime refuses an empty input. There the sizes begin at 1."""
    rank = target.count(",") + 1
    model = parse(f"""g (float[N, 3] x) => (y)
    <int64[{rank}] shape = {{{target}}}> {{
        r = Relu (x)
        y = Reshape (r, shape)
    }}""")
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    assert_same(model, optimize(model), *[{"x": np.ones((size, 3), np.float32)} for size in range("0" in target and "-1" in target, 3)])


def test_zero_that_is_a_size() -> None:
    model = parse("""g (float[2, 0, 3] x) => (float[0, 2, 3] y)
    <int64[3] shape = {0, 2, 3}> { y = Reshape <allowzero = 1> (x, shape) }""")
    assert_same(model, optimize(model), {"x": np.ones((2, 0, 3), np.float32)})


def test_zero_and_minus_one_of_a_constant() -> None:
    model = parse("""g (float[2] x) => (float[2] x2, float[0, 4] y)
    <float[0, 4] empty = {}, int64[2] shape = {0, 4}> {
        x2 = Relu (x)
        e = Relu (empty)
        y = Reshape (e, shape)
    }""")
    assert_same(model, optimize(model), {"x": np.ones(2, np.float32)})


def test_unknown_operator_in_the_default_domain() -> None:
    model = parse("""g (float[2] x) => (float[2] y) {
        a = NoSuchOperator <mode = "fast"> (x)
        b = NoSuchOperator <mode = "fast"> (x)
        i = Identity (b)
        y = Add (a, i)
    }""")
    optimized = optimize(model)
    assert operators(optimized) == {"NoSuchOperator": 2, "Add": 1}
    assert [node.attribute[0].s for node in nodes(optimized) if node.op_type == "NoSuchOperator"] == [b"fast", b"fast"]


def test_opset_6() -> None:
    model = parse("""<ir_version: 3, opset_import: ["" : 6]>
    g (float[2, 3] x, float[3] w) => (float[2, 3] y) {
        a = Relu (x)
        b = Relu (x)
        i = Identity (b)
        s = Sum (a, i)
        y = Add <broadcast = 1, axis = 1> (s, w)
    }""")
    optimized = optimize(model)
    assert optimized.ir_version == 3
    assert [(opset.domain, opset.version) for opset in optimized.opset_import] == [("", 6)]
    assert operators(optimized) == {"Relu": 1, "Sum": 1, "Add": 1}


def test_opset_6_that_runs() -> None:
    model = parse("""<ir_version: 3, opset_import: ["" : 6]>
    g (float[2, 3] x) => (float[2, 3] y) {
        a = Sigmoid (x)
        b = Sigmoid (x)
        i = Identity (b)
        j = Tanh (i)
        k = Tanh (a)
        y = Sum (j, k)
    }""")
    optimized = optimize(model)
    feeds = {"x": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)}
    assert same(run_reference(model, feeds), run_reference(optimized, feeds))
    assert operators(optimized) == {"Sigmoid": 1, "Tanh": 1, "Sum": 1}


def test_bounds_that_contradict_each_other_do_not_become_the_attributes_of_a_clip() -> None:
    # ONNX Runtime refuses a Clip of opsets 6 to 10 whose lower bound is above the upper one (seed 7711967).
    model = parse("""<ir_version: 4, opset_import: ["" : 8]>
    g (float[2, 3] x) => (float[2, 3] y) <float low = {0}, float high = {-2}> {
        a = Max (x, low)
        y = Min (high, a)
    }""")
    optimized = optimize(model, verify=False, target="launches")
    feeds = {"x": np.linspace(-4, 4, 6, dtype=np.float32).reshape(2, 3)}
    assert same(run(model, feeds), run(optimized, feeds))


def test_a_guard_behind_its_product_still_guards_masked_rows() -> None:
    model = parse("""g (float[1, 2, 96, 96] x, float[1, 2, 96, 8] v) => (float[1, 2, 96, 8] y) <float zero = {0}> {
        p = Softmax <axis = -1> (x)
        n = IsNaN (p)
        w = Where (n, zero, p)
        y = MatMul (w, v)
    }""")
    optimized = optimize(model)
    (guard,) = (node for node in nodes(optimized) if node.op_type == "ThresholdedRelu")
    (product,) = (node for node in nodes(optimized) if node.op_type == "MatMul")
    assert guard.input[0] == product.output[0]
    generator = np.random.default_rng(0)
    x, v = (generator.standard_normal(shape).astype(np.float32) for shape in ((1, 2, 96, 96), (1, 2, 96, 8)))
    x[0, 0, 5] = -np.inf  # a row that is masked as a whole
    x[0, 1, 7, :90] = -np.inf
    (before,), (after,) = run(model, {"x": x, "v": v}), run(optimized, {"x": x, "v": v})
    assert (before[0, 0, 5] == 0).all() and np.isfinite(before).all()
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
