"""Dynamic shapes: the shape arithmetic of exporters folds, and the model stays dynamic."""

import numpy as np
import onnx
import pytest

from tests.support.models import assert_same, operators, parse, random_feeds, signature

SIZES = [{"batch": batch, "sequence": sequence} for batch, sequence in ((1, 1), (1, 7), (2, 3), (3, 16), (5, 4))]


def split_heads(name: str) -> str:
    """Returns a Reshape to [batch, sequence, heads, 16] as exporters write it.

    Each size comes from a chain of its own.
    """
    return f"""
        {name}_shape0 = Shape ({name})
        {name}_batch = Gather <axis = 0> ({name}_shape0, zero)
        {name}_shape1 = Shape ({name})
        {name}_sequence = Gather <axis = 0> ({name}_shape1, one)
        {name}_shape2 = Shape ({name})
        {name}_width = Gather <axis = 0> ({name}_shape2, two)
        {name}_head = Div ({name}_width, four)
        {name}_head_int = Cast <to = 7> ({name}_head)
        {name}_batch1 = Unsqueeze ({name}_batch, axis0)
        {name}_sequence1 = Unsqueeze ({name}_sequence, axis0)
        {name}_four1 = Unsqueeze (four, axis0)
        {name}_head1 = Unsqueeze ({name}_head_int, axis0)
        {name}_target = Concat <axis = 0> ({name}_batch1, {name}_sequence1, {name}_four1, {name}_head1)
        {name}_split = Reshape ({name}, {name}_target)
        {name}_heads = Transpose <perm = [0, 2, 1, 3]> ({name}_split)
    """


ATTENTION = f"""attention (float[batch, sequence, 64] x, float[batch, 1, 1, sequence] mask) => (float[batch, sequence, 64] y) {{
    zero = Constant <value = int64 {{0}}> ()
    one = Constant <value = int64 {{1}}> ()
    two = Constant <value = int64 {{2}}> ()
    four = Constant <value = int64 {{4}}> ()
    axis0 = Constant <value = int64[1] {{0}}> ()
    quarter = Constant <value = float {{0.25}}> ()
    q = MatMul (x, wq)
    k = MatMul (x, wk)
    v = MatMul (x, wv)
    {split_heads("q")}
    {split_heads("k")}
    {split_heads("v")}
    k_transposed = Transpose <perm = [0, 1, 3, 2]> (k_heads)
    products = MatMul (q_heads, k_transposed)
    scaled = Mul (products, quarter)
    masked = Add (scaled, mask)
    weights = Softmax <axis = -1> (masked)
    mixed = MatMul (weights, v_heads)
    back = Transpose <perm = [0, 2, 1, 3]> (mixed)
    back_shape0 = Shape (back)
    back_batch = Gather <axis = 0> (back_shape0, zero)
    back_shape1 = Shape (back)
    back_sequence = Gather <axis = 0> (back_shape1, one)
    back_shape2 = Shape (back)
    back_heads = Gather <axis = 0> (back_shape2, two)
    three = Constant <value = int64 {{3}}> ()
    back_shape3 = Shape (back)
    back_size = Gather <axis = 0> (back_shape3, three)
    back_width = Mul (back_heads, back_size)
    back_batch1 = Unsqueeze (back_batch, axis0)
    back_sequence1 = Unsqueeze (back_sequence, axis0)
    back_width1 = Unsqueeze (back_width, axis0)
    back_target = Concat <axis = 0> (back_batch1, back_sequence1, back_width1)
    merged = Reshape (back, back_target)
    y = MatMul (merged, wo)
}}"""


def attention() -> onnx.ModelProto:
    model = parse(ATTENTION)
    generator = np.random.default_rng(0)
    for name in ("wq", "wk", "wv", "wo"):
        model.graph.initializer.append(onnx.numpy_helper.from_array(generator.standard_normal((64, 64)).astype(np.float32) / 8, name))
    return model


def test_attention_loses_its_shape_arithmetic_and_stays_dynamic() -> None:
    import eqsat

    model = attention()
    onnx.checker.check_model(model, full_check=True)
    result = eqsat.optimize(model, target="launches")
    assert operators(result.model) == {"MatMul": 4, "Split": 1, "Reshape": 4, "Transpose": 4, "Add": 1, "Softmax": 1}
    assert signature(result.model.graph.input) == signature(model.graph.input)
    assert signature(result.model.graph.output) == signature(model.graph.output)
    assert result.report["verify"]["status"] == "equal"
    assert_same(model, result.model, *[random_feeds(model, sizes) for sizes in SIZES])


def test_attention_is_found_where_no_input_is_empty() -> None:
    """ONNX Runtime refuses an empty Attention, so the promise is needed, and the result keeps it."""
    import eqsat

    model = attention()
    assert "Softmax" in operators(eqsat.optimize(model, opset="latest").model)
    result = eqsat.optimize(model, opset="latest", no_empty_inputs=True)
    found = operators(result.model)
    assert found["Attention"] == 1 and "Softmax" not in found and found["Expand"] == 1
    assert signature(result.model.graph.input) == signature(model.graph.input)
    assert result.report["verify"]["status"] == "equal" and 0 not in result.report["verify"]["sizes"]["batch"]
    assert result.report["no_empty_inputs"] is True
    verdict = eqsat.verify(model, result.model)
    assert verdict.status == "different" and "=0" in verdict.reason
    assert eqsat.verify(model, result.model, no_empty_inputs=True).status == "equal"


def test_attention_with_empty_batch_stays_equal() -> None:
    import eqsat

    model = attention()
    assert_same(model, eqsat.optimize(model, verify=False).model, random_feeds(model, {"batch": 0, "sequence": 3}))


def test_a_size_that_is_needed_at_run_time_stays_dynamic() -> None:
    """Position embeddings are cut to the length of the sequence.

    The cut needs the size, the nodes around it do not.
    """
    import eqsat

    model = parse("""g (int64[batch, sequence] ids) => (float[batch, sequence, 2] y)
    <float[4, 2] table = {0, 1, 2, 3, 4, 5, 6, 7}, float[1, 8, 2] positions = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}> {
        one = Constant <value = int64 {1}> ()
        start = Constant <value = int64[1] {0}> ()
        words = Gather <axis = 0> (table, ids)
        shape0 = Shape (ids)
        length0 = Gather <axis = 0> (shape0, one)
        stop0 = Unsqueeze (length0, start)
        axes = Constant <value = int64[1] {1}> ()
        part0 = Slice (positions, start, stop0, axes)
        shape1 = Shape (words)
        length1 = Gather <axis = 0> (shape1, one)
        stop1 = Unsqueeze (length1, start)
        part1 = Slice (positions, start, stop1, axes)
        sum0 = Add (words, part0)
        y = Add (sum0, part1)
    }""")
    result = eqsat.optimize(model, target="launches")
    assert operators(result.model)["Slice"] == 1, "both lengths are one symbol"
    short = [sizes for sizes in SIZES if sizes["sequence"] <= 8]
    assert_same(model, result.model, *[random_feeds(model, sizes) for sizes in short])


def test_products_of_symbols() -> None:
    """[batch, sequence, 6] is flattened and restored.

    batch * sequence is a polynomial, not an unknown.
    """
    import eqsat

    model = parse("""g (float[batch, sequence, 6] x) => (float[batch, sequence, 6] y) {
        minus = Constant <value = int64[2] {-1, 6}> ()
        shape = Shape (x)
        flat = Reshape (x, minus)
        r = Relu (flat)
        again = Reshape (r, shape)
        shape2 = Shape (again)
        flat2 = Reshape (again, minus)
        s = Sigmoid (flat2)
        y = Reshape (s, shape2)
    }""")
    result = eqsat.optimize(model)
    found = operators(result.model)
    assert found["Relu"] == found["Sigmoid"] == 1
    assert found["Shape"] <= 1, "the shape of `again` is the shape of `x`"
    assert_same(model, result.model, *[random_feeds(model, sizes) for sizes in SIZES])


@pytest.mark.parametrize("opset", [9, 10, 11, 13])
@pytest.mark.parametrize("cut", [(0, 512), (1, 2**63 - 1), (0, -1), (0, 2), (-3, 2**31 - 1)], ids=str)
def test_a_slice_of_an_axis_of_any_size_stays(opset: int, cut: tuple[int, int]) -> None:
    """ONNX's inference for Slice-10 gives the result the name of the input's size.

    eqsat deleted the Slice, and verification called the model equal.
    """
    bounds = f"<axes = [-1], starts = [{cut[0]}], ends = [{cut[1]}]> (x)" if opset < 10 else "(x, starts, ends, axes, steps)"
    stored = "" if opset < 10 else f"<int64[1] starts = {{{cut[0]}}}, int64[1] ends = {{{cut[1]}}}, int64[1] axes = {{-1}}, int64[1] steps = {{1}}>"
    model = parse(f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[B, S] x) => (float[B, T] y) {stored} {{ u = Slice {bounds}  y = Relu(u) }}')
    import eqsat

    result = eqsat.optimize(model, verify=False).model
    assert "Slice" in operators(result)
    for sizes in ((1, 0), (2, 1), (3, 600)):
        x = np.linspace(-1, 1, sizes[0] * sizes[1], dtype=np.float32).reshape(sizes)
        assert_same(model, result, {"x": x})
