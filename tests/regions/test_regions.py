"""A large graph is cut into regions, equal ones are solved once, and the result is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import eqsat
from eqsat.egraph.encode import Encoding, encode
from eqsat.egraph.outer import Outer
from eqsat.extract import Choice, Graph, extract
from eqsat.model.names import FreshNames, all_names
from eqsat.model.read import normalize
from eqsat.model.tensors import ContentIndex
from eqsat.regions.cut import Barrier, Cutter, Region, Sizes
from eqsat.regions.excerpt import Excerpter
from eqsat.terms.derivation import Derivation
from eqsat.terms.terms import Terms
from tests.support.models import operators, parse, weighted

HEADER = '<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1]>'
PLAN = Path(__file__).parents[1] / "fuzz" / "small_regions.toml"
RANDOM = np.random.default_rng(0)


def weights(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def layers(count: int, **changed: np.ndarray) -> onnx.ModelProto:
    """Returns equal layers with weights of their own.

    A layer has a product, its bias as a node, and a residual.
    """
    lines = ["x0 = Identity (x)"]
    constants: dict[str, np.ndarray] = {}
    for layer in range(count):
        lines += [
            f"p{layer} = MatMul (x{layer}, w{layer})",
            f"s{layer} = Mul (p{layer}, k{layer})",
            f"b{layer} = Add (s{layer}, c{layer})",
            f"t{layer} = Tanh (b{layer})",
            f"q{layer} = MatMul (t{layer}, v{layer})",
            f"x{layer + 1} = Add (q{layer}, x{layer})",
        ]
        constants |= {f"w{layer}": weights(16, 24), f"v{layer}": weights(24, 16), f"k{layer}": weights(24), f"c{layer}": weights(24)}
    constants |= changed
    return weighted(f"g (float[1, 8, 16] x) => (float[1, 8, 16] y) {{ {' '.join(lines)} y = Relu (x{count}) }}", **constants)


def encoded(model: onnx.ModelProto) -> Encoding:
    terms = Terms()
    graph = normalize(model, None, None).graph
    return encode(graph, terms, Derivation(terms), ContentIndex(), Outer(main=True), lambda names: {}, lambda node, outer: (node, ()))


def pieces(model: onnx.ModelProto, least: int, most: int, shifted: bool = False) -> tuple[Cutter, list[Region | Barrier]]:
    cutter = Cutter(encoded(model))
    return cutter, cutter.cut(Sizes(least, most), shifted)


def kinds(model: onnx.ModelProto, least: int, most: int) -> list[int]:
    """Returns how often each kind of region occurs."""
    cutter, found = pieces(model, least, most)
    excerpter = Excerpter(cutter.definitions)
    excerpt = excerpter.excerpt(excerpter.kinds(found), FreshNames(all_names(model.graph)))
    return [len(same) for same in excerpt.kinds]


def test_a_cut_is_made_where_one_value_crosses() -> None:
    cutter, found = pieces(layers(4), 4, 8)
    regions = [piece for piece in found if isinstance(piece, Region)]
    assert [node for region in regions for node in region.own] == cutter.run
    assert len(regions) == 4
    assert all(len(region.inputs) <= 2 and len(region.outputs) <= 2 for region in regions)


def test_a_shifted_cut_is_made_elsewhere() -> None:
    ends = [{region.own[-1] for region in pieces(layers(6), 9, 14, shifted)[1] if isinstance(region, Region)} for shifted in (False, True)]
    assert ends[0] != ends[1]


@pytest.mark.parametrize("shifted", [False, True])
def test_no_region_ends_within_a_quantized_kernel(shifted: bool) -> None:
    layer = "q{n} = QuantizeLinear (x{n}, s, z)  a{n} = DequantizeLinear (q{n}, s, z)  w{n} = Add (a{n}, a{n})  x{m} = Mul (w{n}, a{n})"
    layers = "  ".join(layer.format(n=number, m=number + 1) for number in range(30))
    cutter, found = pieces(parse(f"g (float[8] x0) => (float[8] y) <float s = {{0.5}}, uint8 z = {{3}}> {{ {layers}  y = Exp (x30) }}", HEADER), 3, 8, shifted)
    nodes = cutter.definitions.encoding.nodes
    given = [{nodes[value].operator.name for value in piece.inputs if value in nodes} for piece in found if isinstance(piece, Region)]
    assert len(found) > 10
    assert given[1:] == [{"QuantizeLinear"}] * (len(found) - 1)


def test_layers_that_differ_in_weights_are_alike() -> None:
    assert kinds(layers(9), 5, 7) == [8, 1]


def test_a_layer_whose_weights_are_uniform_is_none_of_the_others() -> None:
    """Rules see that all elements are one, so a choice for the others may not hold here."""
    assert kinds(layers(9, k4=np.ones(24, np.float32)), 5, 7) == [7, 1, 1]


def test_a_layer_that_shares_a_weight_is_none_of_the_others() -> None:
    """Folding a weight that other layers need stores more, and does not replace it."""
    shared = layers(9)
    for node in shared.graph.node:
        if "w6" in node.input:
            node.input[1] = "w2"
    assert kinds(shared, 5, 7) == [6, 2, 1]


def test_layers_with_short_vectors_are_alike() -> None:
    """Vectors of 5 numbers may be the scales of a Resize, which rules read. Longer ones are weights."""
    short = {f"c{layer}": weights(6) for layer in range(9)}
    narrow = layers(
        9, **short, **{name: weights(*shape) for layer in range(9) for name, shape in ((f"w{layer}", (16, 6)), (f"v{layer}", (6, 16)), (f"k{layer}", (6,)))}
    )
    assert kinds(narrow, 5, 7) == [8, 1]


def test_the_last_layer_that_reads_a_mask_ends_like_the_others() -> None:
    """A value that is not read any more made a later end look better, so a layer lay in two regions."""
    model = layers(12)
    adds = [node for node in model.graph.node if node.output[0].startswith("b")]
    for node in adds[:10]:
        node.input[1] = "mask"
    model.graph.node.insert(1, onnx.helper.make_node("MatMul", ["x", "m"], ["mask"]))
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights(16, 24), "m"))
    _, found = pieces(model, 5, 16)
    sizes = [len(piece.own) for piece in found if isinstance(piece, Region)]
    assert len(sizes) == 11
    assert set(sizes[2:-1]) == {6}


def test_the_nodes_of_an_excerpt_have_the_names_of_its_values() -> None:
    """The outputs of a Split are values of their own, which follow the node."""
    lines = [f"p{i}, q{i} = Split <axis = 1, num_outputs = 2> (x{i}) t{i} = Tanh (p{i}) x{i + 1} = Concat <axis = 1> (t{i}, q{i})" for i in range(4)]
    cutter, found = pieces(parse(f"g (float[4, 8] x0) => (float[4, 8] x4) {{ {' '.join(lines)} }}", HEADER), 2, 4)
    excerpter = Excerpter(cutter.definitions)
    encoding = excerpter.excerpt(excerpter.kinds(found), FreshNames([])).encoding
    assert {name for node in encoding.graph.nodes for name in (*node.inputs, *node.outputs) if name} == set(encoding.values)


def test_depth_costs_no_search(tmp_path: Path) -> None:
    """Each layer has its own weights, and rules fire as often for few layers as for many."""
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.read_text(encoding="utf-8").replace("[1, 3]", "[5, 7]"), encoding="utf-8")
    few, many = (eqsat.optimize(layers(count), phases=plan, target="generic-gpu") for count in (8, 24))
    fired = [[(rule["name"], rule["matches"]) for rule in result.report["rules"]] for result in (few, many)]
    assert fired[0] and fired[0] == fired[1]
    for result, count in ((few, 8), (many, 24)):
        assert result.report["verify"]["status"] == "equal"
        # The scale of each layer is now in its weights.
        assert operators(result.model)["Mul"] == 0
        assert operators(result.model)["MatMul"] + operators(result.model)["Gemm"] == 2 * count


def test_an_infinite_weight_of_one_layer_counts_for_all() -> None:
    """`conv-enlarge` multiplies unread elements by zero, which needs finite numbers.

    The solved layer has finite weights; another one does not.
    """
    model = layers(9, w7=np.full((16, 24), np.inf, np.float32))
    result = eqsat.optimize(model, phases=PLAN, target="generic-gpu")
    assert result.report["verify"]["status"] in ("equal", "unverified")
    assert not result.report["finite"]


@pytest.mark.parametrize(
    "text",
    [
        # A region only passes one value on, and two outputs share another.
        """g (float[4, 4] x) => (float[4, 4] y, float[4, 4] z, float[4, 4] u) {
            zero = Constant <value = float {0}> ()
            a = Add (x, zero)  b = Relu (a)  c = Neg (b)  d = Neg (c)  e = Tanh (d)  y = Add (e, zero)  z = Tanh (b)  u = Exp (y) }""",
        # A node with a body is between regions, and reads values of both.
        """g (float[4, 4] x, bool f) => (float[4, 4] y) {
            a = Relu (x)  b = Neg (a)  c = Neg (b)  s = Shape (c)  k = Constant <value = float {1}> ()  m = Add (k, k)
            d = If (f) <then_branch = t () => (float[4, 4] p) { p = Mul (c, m) }, else_branch = e () => (float[4, 4] q) { q = Reshape (a, s) }>
            e = Relu (d)  h = Neg (e)  i = Neg (h)  y = Add (i, c) }""",
        # Several regions need the nodes that compute sizes from a much earlier value.
        """g (float[N, 4] x) => (float[M, 8] y) {
            s = Shape (x)  zero = Constant <value = int64[1] {0}> ()  n = Gather <axis = 0> (s, zero)
            eight = Constant <value = int64[1] {8}> ()  minus = Constant <value = int64[1] {-1}> ()  t = Concat <axis = 0> (n, minus)
            a = Relu (x)  b = Reshape (a, t)  c = Tanh (b)  d = Reshape (c, t)  e = Exp (d)  r = Concat <axis = 0> (minus, eight)
            f = Reshape (e, r)  h = Neg (f)  y = Neg (h) }""",
        # One output is a constant, and one is an input.
        """g (float[2] x) => (float[2] y, float[2] k, float[2] o) {
            k = Constant <value = float[2] {1, 2}> ()  a = Relu (x)  b = Relu (a)  c = Tanh (b)  d = Tanh (c)  y = Add (d, k)  o = Identity (x) }""",
        # A node of several outputs crosses a cut, and nothing needs one of them.
        """g (float[4, 6] x) => (float[4, 2] y) {
            a = Relu (x)  p, q, r = Split <axis = 1, num_outputs = 3> (a)  b = Tanh (p)  c = Exp (b)  d = Neg (c)  e = Neg (d)  y = Add (e, r) }""",
        # A value of unknown type, which no Identity could copy, crosses a cut.
        """g (float[4, 4] x) => (float[4, 4] y) {
            o = Constant <value = float {0}> ()  a = Relu (x)  b = Neg (a)  c = Neg (b)  p = com.microsoft.CDist <metric = "sqeuclidean"> (c, a)
            q = com.microsoft.CDist <metric = "sqeuclidean"> (p, a)  d = Add (q, o)  e = Neg (d)  y = Neg (e) }""",
    ],
)
@pytest.mark.parametrize("target", ["generic-gpu", "onnxruntime-cpu"])
def test_regions_of_a_few_nodes_make_an_equal_model(text: str, target: str) -> None:
    result = eqsat.optimize(parse(text, HEADER), phases=PLAN, target=target)
    assert result.report["verify"]["status"] == "equal"
    assert not [note for note in result.report["notes"] if "stays as it is:" in note]
    assert result.report["nodes"]["after"] <= result.report["nodes"]["before"]


@pytest.mark.parametrize("target", ["generic-gpu", "onnxruntime-cpu", "launches"])
def test_a_value_that_becomes_an_output_needs_no_copy(target: str) -> None:
    """The Cos of another region turns out to be the output: its node writes the output itself."""
    text = """g (float[4, 4] x) => (float[4, 4] y, float[4, 4] z) {
        zero = Constant <value = float {0}> ()  a = Tanh (x)  b = Sin (a)  c = Add (b, zero)  d = Cos (c)
        e = Sin (d)  f = Tanh (e)  z = Exp (f)  y = Cos (b) }"""
    result = eqsat.optimize(parse(text, HEADER), phases=PLAN, target=target)
    assert operators(result.model) == {"Tanh": 2, "Sin": 2, "Cos": 1, "Exp": 1}
    assert result.report["verify"]["status"] == "equal"


def test_a_region_sees_no_twins_of_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    """One e-graph holds all regions, and equal constants of theirs are in one class."""
    lines = ["x0 = Identity (x)"]
    constants: dict[str, Any] = {"k": np.int64(1)}
    for layer in range(4):
        lines += [f"p{layer} = MatMul (x{layer}, w{layer})", f"s{layer} = CumSum (p{layer}, k)", f"x{layer + 1} = Tanh (s{layer})"]
        constants[f"w{layer}"] = weights(16 + layer, 17 + layer)
    model = weighted(f"g (float[1, 8, 16] x) => (float[1, 8, 20] y) {{ {' '.join(lines)} y = Relu (x4) }}", **constants)
    seen: list[Graph] = []

    def watched(graph: Graph, **settings: Any) -> Choice:
        seen.append(graph)
        return extract(graph, **settings)

    monkeypatch.setattr("eqsat.choose.extractions.extract", watched)
    eqsat.optimize(model, phases=PLAN, verify=False)
    leaves = [[node for node in graph.nodes if not node.children] for graph in seen]
    assert len(leaves) > 4 and all(len(set(nodes)) == len(nodes) for nodes in leaves)


@pytest.mark.parametrize(("number", "thresholds"), [("-3.4028235e38", 0), ("-inf", 8)])
def test_guards_of_all_layers_know_the_mask(number: str, thresholds: int) -> None:
    """No layer guards against NaN if the mask has numbers, although it is made before the first. Of
    minus infinity, a threshold is left for the rows that it hides as a whole.
    """
    layers = "".join(
        f"""t{i} = Transpose <perm = [0, 2, 1]> (x{i}) s{i} = MatMul (x{i}, t{i}) a{i} = Add (s{i}, m) p{i} = Softmax (a{i})
        n{i} = IsNaN (p{i}) g{i} = Where (n{i}, zero, p{i}) r{i} = MatMul (g{i}, x{i}) x{i + 1} = Add (r{i}, x{i})
        """
        for i in range(8)
    )
    model = weighted(
        f"g (float[2, 16, 8] x0, bool[16, 16] c) => (float[2, 16, 8] x8) {{ m = Where (c, zero, least) {layers} }}",
        zero=np.float32(0),
        least=np.float32(number),
    )
    left = operators(eqsat.optimize(model).model)
    assert (left["IsNaN"], left["ThresholdedRelu"]) == (0, thresholds)
