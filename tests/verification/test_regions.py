"""Region by region: equal parts never run, each region is judged alone, and memory stays small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from eqsat.errors import InputError
from eqsat.verification import verify as stage
from eqsat.verification.loaded_model import LoadedModel, load_model, same_content
from eqsat.verification.region import Region
from eqsat.verification.regions import Cut
from eqsat.verification.verify import DIFFERENT, EQUAL, UNVERIFIED, Verdict, verify

NEEDS_REGIONS = 1 << 16  # a memory limit that each region below meets, but no whole model


def model(graph: str, functions: str = "", **weights: Any) -> LoadedModel:
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {graph} {functions}')
    bulk = np.zeros((256, 256), np.float32)
    proto.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in {**weights, "bulk": bulk}.items())
    return LoadedModel(proto)


HEAD = "g (float[N, 256] x) => (float[N, 256] y)"
START = "p = Sin(x) q = Add(p, x)"  # nodes that run from the inputs on, without large values
BEHIND = "p = MatMul(x, bulk) q = Add(p, x)"


def judge(a: LoadedModel, b: LoadedModel) -> tuple[str, int | None]:
    verdict = verify(a, b, memory_limit=NEEDS_REGIONS)
    return verdict.status, verdict.regions


def test_what_does_not_differ_is_not_run() -> None:
    a, b = model(f"{HEAD} {{ {START} y = Relu(q) }}"), model(f"{HEAD} {{ {START} y = Relu(q) }}")
    b.proto.graph.node[0].name = "other"
    verdict = verify(a, b, memory_limit=NEEDS_REGIONS)
    assert (verdict.status, verdict.regions, verdict.runs) == (EQUAL, 0, 0)


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ("a = Neg(q) y = Neg(a)", "y = Identity(q)", EQUAL),
        ("a = Neg(q) y = Neg(a)", "y = Neg(q)", DIFFERENT),
        ("a = Relu(q) b = Neg(a) y = Exp(b)", "a = Abs(q) b = Neg(a) y = Exp(b)", DIFFERENT),
        ("a = Relu(q) y = Relu(a)", "a = Relu(q) y = Identity(a)", EQUAL),
        ("a = Mul(q, k) y = Neg(a)", "k = Constant<value_float = 2.0>() a = Add(q, q) y = Neg(a)", EQUAL),
        ("k2 = Add(k, k) a = Mul(q, k2) y = Neg(a)", "a = Mul(q, k2) y = Neg(a)", EQUAL),
        ("s = Shape(q) r = Reshape(q, s) y = Neg(r)", "y = Neg(q)", EQUAL),
        ("s = Shape(q) r = Reshape(q, s) y = Neg(r)", "s = Shape(q) r = Reshape(q, s) y = Abs(r)", DIFFERENT),
    ],
)
def test_a_changed_node_is_found_or_allowed(before: str, after: str, status: str) -> None:
    scalar = np.float32(2)
    weights: dict = {"k": scalar} if "k = " not in after else {}
    if "k2" in after:
        weights["k2"] = np.float32(4)
    b = model(f"{HEAD} {{ {START} {after} }}", **weights)
    assert judge(model(f"{HEAD} {{ {START} {before} }}", k=scalar), b)[0] == status


def test_a_wrongly_folded_constant_is_found_though_its_user_is_the_same() -> None:
    a = model(f"{HEAD} {{ {START} c = Add(k, k) y = Mul(q, c) }}", k=np.float32(2))
    assert judge(a, model(f"{HEAD} {{ {START} y = Mul(q, c) }}", c=np.float32(4)))[0] == EQUAL
    assert judge(a, model(f"{HEAD} {{ {START} y = Mul(q, c) }}", c=np.float32(4.01)))[0] == DIFFERENT


def test_a_weight_of_the_same_name_with_other_content_is_found() -> None:
    text = f"{HEAD} {{ {START} y = Mul(q, k) }}"
    assert judge(model(text, k=np.float32(2)), model(text, k=np.float32(2)))[0] == EQUAL
    assert judge(model(text, k=np.float32(2)), model(text, k=np.float32(2.001)))[0] == DIFFERENT


def test_a_weight_that_is_a_result_is_compared() -> None:
    text = "g (float[N, 256] x) => (float[N, 256] y, float[1] k) { y = MatMul(x, bulk) }"
    assert judge(model(text, k=np.array([2], np.float32)), model(text, k=np.array([3], np.float32)))[0] == DIFFERENT


def test_a_function_with_other_content_is_found() -> None:
    proto = '<domain: "f", opset_import: ["": 18]> double (a) => (b) { b = %s }'
    loaded = [model(f"{HEAD} {{ {START} y = f.double(q) }}", proto % body) for body in ("Add(a, a)", "Add(a, a)", "Mul(a, a)")]
    for one in loaded:
        one.proto.opset_import.add(domain="f", version=1)
    loaded[1].proto.graph.node[0].name = "other"
    assert judge(loaded[0], loaded[1])[0] == EQUAL
    assert judge(loaded[0], loaded[2])[0] == DIFFERENT


def test_a_body_that_captures_a_changed_weight_is_found() -> None:
    text = (
        f"g (float[N, 256] x, bool c) => (float[N, 256] y) {{ {START} y = If(c)"
        "<then_branch = t () => (float[N, 256] a) { a = Mul(q, k) }, else_branch = e () => (float[N, 256] b) { b = Neg(q) }> }"
    )
    assert judge(model(text, k=np.float32(2)), model(text, k=np.float32(3)))[0] == DIFFERENT
    assert judge(model(text, k=np.float32(2)), model(text, k=np.float32(2)))[0] == EQUAL


def test_a_name_that_was_given_to_another_value_is_given_up_as_cut_point() -> None:
    a = model(f"{HEAD} {{ {START} h = Add(q, k) y = Mul(h, h) z = Neg(q) }}", k=np.float32(1))
    b = model(f"{HEAD} {{ {START} h = Sub(n, q) y = Mul(h, h) }}", n=np.float32(-1))
    assert judge(a, b)[0] == EQUAL
    assert judge(a, model(f"{HEAD} {{ {START} h = Sub(n, q) y = Mul(h, q) }}", n=np.float32(-1)))[0] == DIFFERENT


def test_what_is_known_of_values_before_a_region_counts() -> None:
    a = model(f"{HEAD} {{ {START} p2 = Abs(q) r = Relu(p2) y = Neg(r) }}")
    assert judge(a, model(f"{HEAD} {{ {START} p2 = Abs(q) y = Neg(p2) }}"))[0] == EQUAL


def test_what_differs_on_arbitrary_values_only_is_not_said_to_differ() -> None:
    a, b = (model(f"{HEAD} {{ {BEHIND} n = Abs(q) e = Exp(n) m = MatMul(e, bulk) {rest} }}") for rest in ("r = Relu(m) y = Neg(r)", "y = Neg(m)"))
    verdict = verify(a, b, memory_limit=NEEDS_REGIONS)
    assert verdict.status == UNVERIFIED and "may hold on those that arise" in verdict.reason


@pytest.mark.parametrize("start", [START, BEHIND])
def test_a_region_that_nothing_moves_is_not_equal(start: str) -> None:
    # No drawn value exceeds the bound, so both models return the bound. From the inputs on, this
    # settles it.
    a = model(f"{HEAD} {{ {start} r = Neg(q) y = Max(r, k) }}", k=np.float32(1e9))
    b = model(f"{HEAD} {{ {start} n = Abs(q) s = Neg(n) y = Max(s, k) }}", k=np.float32(1e9))
    assert judge(a, b)[0] == (UNVERIFIED if start == BEHIND else EQUAL)


def test_a_region_that_runs_at_ones_only_is_not_equal() -> None:
    # The number of kept columns must be 1, and the sizes that make it 1 make the other sizes 1 too.
    head = f"g (float[N, 256] x, bool[256] c) => (float[N, 4] y) {{ {BEHIND} t = Compress<axis = 1>(q, c)"
    a, b = (model(f"{head} {rest} }}", w=np.ones((1, 4), np.float32)) for rest in ("m = MatMul(t, w) y = Neg(m)", "n = Neg(t) y = MatMul(n, w)"))
    assert judge(a, b)[0] == UNVERIFIED


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("k = Constant<value_float = 2.0>() a = Mul(q, k) y = Mul(a, k)", "k = Constant<value_float = 2.0>() a = Add(q, q) y = Mul(a, k)"),
        ("a = Add(q, q) y = Mul(a, k)", "k = Neg(n) a = Mul(q, k) y = Mul(a, k)"),
    ],
)
def test_a_small_constant_is_never_drawn(before: str, after: str) -> None:
    a, b = (model(f"{HEAD} {{ q = MatMul(x, bulk) {text} }}", n=np.float32(-2)) for text in (before, after))
    if "k = " not in before:
        a.proto.graph.initializer.append(numpy_helper.from_array(np.array(2, np.float32), "k"))
    assert judge(a, b)[0] == EQUAL


def test_a_stored_output_that_its_region_uses_is_made_once() -> None:
    rest = f"{START} r = Mul(q, c) s = Mul(q, d) y = Add(r, s)"
    a = model(f"{HEAD} {{ u = Add(k, k) c = Sqrt(u) d = Neg(u) {rest} }}", k=np.float32(2))
    b = model(f"{HEAD} {{ d = Mul(c, n) {rest} }}", c=np.float32(2), n=np.float32(-2))
    verdict = verify(a, b, memory_limit=NEEDS_REGIONS)
    assert verdict.status == EQUAL, verdict.reason


def test_a_node_of_two_outputs_that_the_other_model_splits() -> None:
    head = "g (float[N, 4] x) => (float[N, 2] y, float[N, 2] z)"
    a = model(f"{head} {{ p = Sin(x) s, t = Split<axis = 1, num_outputs = 2>(p) y = Neg(s) z = Exp(t) }}")
    b = model(f"{head} {{ p = Sin(x) s = Slice(p, i0, i2, i1) t = Slice(p, i2, i4, i1) y = Neg(s) z = Exp(t) }}")
    b.proto.graph.initializer.extend(numpy_helper.from_array(np.array([value]), name) for name, value in (("i0", 0), ("i1", 1), ("i2", 2), ("i4", 4)))
    assert judge(a, b)[0] == EQUAL


def test_a_region_that_is_too_large_is_said_to_be_so() -> None:
    a, b = model(f"{HEAD} {{ p = MatMul(x, bulk) y = Neg(p) }}"), model(f"{HEAD} {{ n = Neg(x) y = MatMul(n, bulk) }}")
    verdict = verify(a, b, memory_limit=NEEDS_REGIONS)
    assert verdict.status == UNVERIFIED and "memory limit" in verdict.reason


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns sixteen layers of 4 MB each, in external data."""
    folder = tmp_path_factory.mktemp("large")
    layers = 16
    body = " ".join(f"m{n} = MatMul(h{n}, w{n}) h{n + 1} = Relu(m{n})" for n in range(layers))
    graph = f"g (float[N, 1024] x) => (float[N, 1024] y) {{ h0 = Neg(x) {body} y = Add(h{layers}, h{layers}) }}"
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {graph}')
    generator = np.random.default_rng(0)
    proto.graph.initializer.extend(numpy_helper.from_array(generator.standard_normal((1024, 1024), dtype=np.float32), f"w{n}") for n in range(layers))
    onnx.save(proto, folder / "a.onnx", save_as_external_data=True, location="a.bin")
    return folder


def changed(folder: Path, name: str, inputs: list[str]) -> LoadedModel:
    loaded = load_model(folder / "a.onnx")
    node = loaded.proto.graph.node[-1]
    node.op_type = name
    node.input[:] = inputs
    return loaded


def test_a_model_of_64_megabytes_in_16(large: Path) -> None:
    a = load_model(large / "a.onnx")
    right, wrong = changed(large, "Sum", ["h16", "h16"]), changed(large, "Mul", ["h16", "h16"])
    assert verify(a, right, memory_limit=16 << 20).status == EQUAL
    verdict = verify(a, wrong, memory_limit=16 << 20)
    assert verdict.status == UNVERIFIED and "arbitrary values" in verdict.reason and verdict.regions == 1
    assert verify(a, wrong).status == DIFFERENT


def test_a_copy_of_the_weights_is_compared_in_pieces(large: Path) -> None:
    a = load_model(large / "a.onnx")
    (large / "b.bin").write_bytes((large / "a.bin").read_bytes())
    b = load_model(large / "a.onnx")
    for tensor in b.proto.graph.initializer:
        next(entry for entry in tensor.external_data if entry.key == "location").value = "b.bin"
    assert len(Cut(a, b)) == 0
    with (large / "b.bin").open("r+b") as file:
        file.seek(5 << 20)
        file.write(b"\x01\x02\x03\x04")
    assert len(Cut(a, b)) == 1


def test_content_is_compared_whatever_holds_it(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32)
    raw, typed = numpy_helper.from_array(array, "w"), onnx.helper.make_tensor("w", 1, [6], array.tolist())
    outside = onnx.TensorProto(name="w", data_type=1, dims=[6], data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", "w.bin"), ("offset", "4")):
        outside.external_data.add(key=key, value=value)
    (tmp_path / "w.bin").write_bytes(b"1234" + array.tobytes())
    assert same_content(raw, None, typed, None) and same_content(raw, None, outside, tmp_path)
    assert not same_content(raw, None, numpy_helper.from_array(array + 1, "w"), None)
    assert not same_content(raw, None, outside, tmp_path / "elsewhere")
    outside.external_data[0].value = "../w.bin"
    (tmp_path / "inner").mkdir()
    assert not same_content(raw, None, outside, tmp_path / "inner")


SMALL = "g (float[N, 4] x) => (float[N, 4] y)"


def small(nodes: str, opset: int = 18) -> LoadedModel:
    return LoadedModel(parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {SMALL} {{ {nodes} }}'))


def test_changes_are_judged_first_if_asked_for() -> None:
    a, b, c = (small(f"p = Sin(x) {nodes} r = Exp(q) y = Sin(r)") for nodes in ("n = Neg(p) q = Neg(n)", "q = Identity(p)", "q = Abs(p)"))
    proved: set[bytes] = set()
    first, again = verify(a, b, proved=proved), verify(a, b, proved=proved)
    assert (first.status, first.regions, again.status, again.regions, again.runs) == (EQUAL, 1, EQUAL, 1, 0)
    assert first.runs > 0 and {output.name for output in first.outputs} <= {"q", "r"}
    # What differs is settled by the whole models, each time anew.
    for verdict in (verify(a, c, proved=proved), verify(a, c, proved=proved)):
        assert (verdict.status, verdict.regions, verdict.output) == (DIFFERENT, None, "y")
        assert verdict.notes[-1].startswith("the whole models ran, for their regions did not tell")
    assert verify(a, b).regions is None


def test_whole_models_run_where_regions_do_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "by_regions", lambda *_: Verdict(UNVERIFIED, "no region tells", regions=1))
    verdict = verify(small("n = Neg(x) y = Neg(n)"), small("y = Identity(x)"), proved=set())
    assert (verdict.status, verdict.regions) == (EQUAL, None) and verdict.notes[-1].endswith("did not tell: no region tells")


def test_changes_are_judged_first_whatever_the_inputs() -> None:
    a, b, c = small("n = Neg(x) y = Neg(n)"), small("y = Identity(x)"), small("y = Abs(x)")
    ones = np.ones((2, 4), np.float32)
    assert verify(a, c, inputs={"x": ones}).status == EQUAL
    verdict = verify(a, b, inputs={"x": ones}, proved=set())
    assert (verdict.status, verdict.regions) == (EQUAL, 1) and verdict.runs > 1
    with pytest.raises(InputError):
        verify(a, b, inputs={"z": ones}, proved=set())


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("a = Sin(x) b = Cos(x) y = Mul(a, b)", "q = Cos(x) p = Sin(x) y = Mul(p, q)", True),
        ("a = Sin(x) b = Cos(x) y = Mul(a, b)", "q = Cos(x) p = Sin(x) y = Mul(q, p)", False),
        ("a = Elu<alpha = 2.0>(x) y = Neg(a)", "b = Elu<alpha = 2.0>(x) y = Neg(b)", True),
        ("a = Elu<alpha = 2.0>(x) y = Neg(a)", "b = Elu<alpha = 2.5>(x) y = Neg(b)", False),
        ("k = Constant<value_float = 2.0>() a = Mul(x, k) y = Neg(a)", "k = Constant<value_float = 2.0>() b = Mul(x, k) y = Neg(b)", True),
        ("a = Mul(x, x) y = Neg(a)", "b = Mul(x, x) c = Identity(b) y = Neg(c)", True),
    ],
)
def test_regions_that_differ_in_names_alone_need_no_run(before: str, after: str, same: bool) -> None:
    region = Cut(small(before), small(after)).region(0, 0, 1 << 20)
    assert isinstance(region, Region) and region.is_same() == same
    verdict = verify(small(before), small(after), proved=set())
    assert (verdict.status == EQUAL) == (same or "Cos" in before) and (verdict.runs == 0) == same
    assert not Region("y", small(before), small(before, opset=17), True).is_same()


def test_small_constants_that_nodes_compute_are_not_drawn() -> None:
    # A drawn value of `c` may be negative, the computed one is not.
    a, b = (
        small(f"k = Constant<value_floats = [1.0, 2.0, -3.0, 4.0]>() c = Exp(k) d = CastLike(c, x) {rest}")
        for rest in ("e = Relu(d) y = Mul(x, e)", "y = Mul(x, d)")
    )
    region = Cut(a, b).region(0, 0, 1 << 20)
    assert isinstance(region, Region) and [info.name for info in region.original.proto.graph.input] == ["x"]
    assert {"Exp", "CastLike"} <= {node.op_type for node in region.optimized.proto.graph.node}
    assert verify(a, b, proved=set()).regions == 1


def test_a_region_knows_sizes_that_the_optimized_model_alone_tells() -> None:
    lost = "s = Shape(x) g = Where(c, s, s)"
    known = "g = Constant<value_ints = [4, 2]>()"
    head = '<ir_version: 8, opset_import: ["": 18]> g (float[2, 4] x, bool[2] c) => (float[M, K] y)'
    texts = (f"{lost} t = Reshape(x, g) n = Neg(t) y = Neg(n)", f"{known} t = Reshape(x, g) y = Identity(t)")
    a, b = (LoadedModel(parser.parse_model(f"{head} {{ {text} }}")) for text in texts)
    inputs = {
        info.name: info.type.tensor_type.shape
        for number in range(2)
        if isinstance(region := Cut(a, b).region(number, 0, 1 << 20), Region)
        for info in region.original.proto.graph.input
    }
    assert [size.dim_value for size in inputs["t"].dim] == [4, 2]
    # Here `t` is another size in the original: the region that computes it tells.
    assert verify(a, b, proved=set()).status == DIFFERENT


@pytest.mark.parametrize("ir_version, given", [(3, {"s"}), (8, {"s", "w"})])
def test_a_large_constant_of_equal_elements_is_not_drawn(ir_version: int, given: set[str]) -> None:
    # Before IR version 4, the input `sizes` is no default that a caller may replace.
    a, b = (
        parser.parse_model(
            f'<ir_version: {ir_version}, opset_import: ["": 18]> g (float[4, 256] x, int64[2] sizes) => (float[4, 256] y) <int64[2] sizes = {{256, 256}}> '
            f"{{ s = Sin(x) w = ConstantOfShape<value = float[1] {{0.5}}>(sizes) {rest} }}"
        )
        for rest in ("p = Relu(w) q = Add(s, p) y = MatMul(q, w)", "q = Add(s, w) y = MatMul(q, w)")
    )
    region = Cut(LoadedModel(a), LoadedModel(b)).region(0, 0, 1 << 20)
    assert isinstance(region, Region) and {info.name for info in region.original.proto.graph.input} == given


def test_constants_of_one_name_are_the_latest() -> None:
    """ONNX Runtime loads such a model, and takes the latest one wherever the name is read."""
    header = '<ir_version: 8, opset_import: ["": 17]>'
    twice = parser.parse_model(
        header + "g (float[2] x) => (float[2] y) { c = Constant <value_float = 1.0> ()  h = Exp (x)  y = Mul (h, c)  d = Constant <value_float = 2.0> () }"
    )
    twice.graph.node[-1].output[0] = "c"
    other = parser.parse_model(header + "g (float[2] x) => (float[2] y) { c = Constant <value_float = 3.0> ()  h = Exp (x)  z = Mul (c, h)  y = Identity (z) }")
    cut = Cut(LoadedModel(twice), LoadedModel(other))
    regions = [cut.region(number, 0, 1 << 20) for number in range(len(cut))]
    assert regions and all(isinstance(region, Region) for region in regions)
    kept = [node for region in regions if isinstance(region, Region) for node in region.original.proto.graph.node if node.op_type == "Constant"]
    assert {node.attribute[0].f for node in kept} == {2.0}


def test_a_region_computes_a_constant_of_unknown_size() -> None:
    """A drawn one would have another size, with which no runtime runs the nodes that read it."""
    weights = {"k": np.ones(256, np.float32), "kept": np.ones(256, bool)}
    text = f"{HEAD} {{ {BEHIND} c = Compress <axis = 0> (k, kept) a = Mul(q, c) y = Sin(a) }}"
    a, b = model(text, **weights), model(text.replace("Mul(q, c)", "Add(q, c)"), **weights)
    region = Cut(a, b).region(0, 0, 1 << 20)
    assert isinstance(region, Region) and [value.name for value in region.original.proto.graph.input] == ["q"]


@pytest.mark.parametrize(("settled", "compared"), [((), ["p", "q"]), (("p", "x"), ["q"]), (("p", "q"), ["p", "q"])])
def test_outputs_that_are_settled_are_left_out_unless_all_are(settled: tuple[str, ...], compared: list[str]) -> None:
    a, b = (small(f"{t} = Mul(x, x) p = Neg({t}) q = Exp({t}) y = Add(p, q)") for t in ("t", "u"))
    region = Cut(a, b).region(0, 0, 1 << 20, settled)
    assert isinstance(region, Region) and [[info.name for info in model.proto.graph.output] for model in (region.original, region.optimized)] == [compared] * 2
