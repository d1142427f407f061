"""The memory of activations, and the order of a model's nodes that lowers it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from hypothesis import given, settings
from hypothesis import strategies as st

import eqsat
from eqsat.rewriting.node_order import memory, reordered
from tests.support.models import parse, run, same, weighted

KILO = 4 * 256  # the bytes of a float[256]


def peak(text: str, **sizes: int) -> int:
    return memory(parse(text), None, sizes)


def test_the_peak_is_what_is_alive_at_once() -> None:
    """Inputs and outputs stay alive to the end. Views and overwritten values take nothing."""
    assert peak("g (float[256] x) => (float[256] y) { y = Exp (x) }") == 2 * KILO
    assert peak("g (float[256] x) => (float[256] y) { a = Exp (x) y = Exp (a) }") == 3 * KILO
    assert peak("g (float[256] x) => (float[256] y) { a = Exp (x) b = Relu (a) y = Exp (b) }") == 3 * KILO, "Relu writes over its input"
    assert peak("g (float[256] x) => (float[256] y) { a = Exp (x) b = Sqrt (a) y = Exp (b) }") == 3 * KILO
    assert peak("g (float[256] x) => (float[256] y) { a = Exp (x) b = Relu (a) c = Add (a, b) y = Exp (c) }") == 4 * KILO, "Add needs the input as it was"
    assert peak("g (float[256] x) => (float[256] y) { a = Exp (x) b = Identity (a) y = Add (a, b) }") == 3 * KILO
    assert peak("g (float[256] x) => (float[256] y) { a = Relu (x) y = Exp (a) }") == 3 * KILO, "the input is the caller's"
    assert peak("g (float[256] x) => (float[256] y) { a = Exp (x) y = Relu (a) }") == 3 * KILO, "a result has memory of its own"
    assert peak("g (float[256] x) => (float[256] y) { a = Exp (x) y = Identity (a) }") == 3 * KILO


def test_constants_do_not_count_and_dimensions_have_the_assumed_size() -> None:
    model = weighted("g (float[1, 256] x) => (float[1, 4] y) { y = MatMul (x, w) }", w=np.ones((256, 4), np.float32))
    assert memory(model, None, {}) == KILO + 16
    text = "g (float[S, 4] x) => (float[S, 4] y) { y = Exp (x) }"
    assert peak(text) == 2 * 64 * 16 and peak(text, S=3) == 2 * 3 * 16


def test_functions_are_seen_inside() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "own": 1]> g (float[256] x) => (float[256] y) { y = own.f (x) }
    <domain: "own", opset_import: ["": 17]> f (a) => (c) { b = Exp (a) c = Exp (b) }"""
    model = onnx.parser.parse_model(text)
    assert memory(model, None, {}) == 3 * KILO
    assert reordered(model, None, {}) is model


# The file has all large values of the branches first, then the small ones.
WIDE = "\n".join(f"l{number} = Expand (x, s)" for number in range(6))
NARROW = "\n".join(f"n{number} = ReduceSum <keepdims = 0> (l{number}, z)" for number in range(6))
BRANCHES = f"g (float[1] x) => (float y) <int64[1] s = {{1000}}, int64[1] z = {{0}}> {{ {WIDE} {NARROW} y = Sum ({', '.join(f'n{n}' for n in range(6))}) }}"


def test_branches_run_one_after_the_other() -> None:
    model = parse(BRANCHES)
    found = reordered(model, None, {})
    assert memory(model, None, {}) > 6 * 4000 and memory(found, None, {}) < 4000 + 64
    onnx.checker.check_model(found)
    assert sorted(node.output[0] for node in found.graph.node) == sorted(node.output[0] for node in model.graph.node)


def test_constants_stay_in_front_of_their_readers() -> None:
    text = BRANCHES.replace("<int64[1] s = {1000}, int64[1] z = {0}> {", "{ s = Constant <value = int64[1] {1000}> () z = Constant <value = int64[1] {0}> ()")
    model = parse(text)
    found = reordered(model, None, {})
    assert found is not model and memory(found, None, {}) < 4000 + 64
    onnx.checker.check_model(found)


def test_bodies_are_ordered_too() -> None:
    text = f"""g (float[1] x, bool c) => (float y) <int64[1] s = {{1000}}, int64[1] z = {{0}}> {{
        y = If (c) <then_branch = t () => (float r) {{ {WIDE} {NARROW} r = Sum ({", ".join(f"n{n}" for n in range(6))}) }},
                    else_branch = e () => (float q) {{ q = ReduceSum <keepdims = 0> (x, z) }}> }}"""
    model = parse(text)
    found = reordered(model, None, {})
    assert memory(model, None, {}) > 6 * 4000 and memory(found, None, {}) < 4000 + 64
    feeds = {"x": np.ones(1, np.float32), "c": np.array(True)}
    assert same(run(model, feeds), run(found, feeds))


def test_the_objective_lowers_the_peak_and_others_keep_the_order() -> None:
    model = parse(BRANCHES.replace("float[1] x", "float[N] x"))
    result = eqsat.optimize(model, objective="memory", effort="low")
    cost = result.report["cost"]
    assert cost["objective"] == "memory" and cost["after"]["memory"] <= cost["before"]["memory"]
    assert result.report["verify"]["status"] == "equal"
    assert {"seconds", "launches", "bytes", "operations", "multiply_adds", "size", "memory"} == set(cost["before"])


def test_a_unet_needs_less_where_its_skips_are_made_late() -> None:
    """Six branches of the encoder end in small values.

    In the order of the file, all their large values are alive together.
    """
    branches = range(6)
    wide = " ".join(f"a{n} = Conv <pads = [1, 1, 1, 1]> (x, w)" for n in branches)
    pooled = " ".join(f"b{n} = MaxPool <kernel_shape = [4, 4], strides = [4, 4]> (a{n})" for n in branches)
    text = f"""g (float[1, 4, 32, 32] x) => (float[1, 4, 32, 32] y) {{
        {wide} {pooled} d = Sum ({", ".join(f"b{n}" for n in branches)})
        u = Resize <mode = "nearest"> (d, , k)
        s = Conv <pads = [1, 1, 1, 1]> (x, v)
        e = Concat <axis = 1> (u, s)
        y = Conv <pads = [1, 1, 1, 1]> (e, o) }}"""
    shapes = {"w": (16, 4, 3, 3), "v": (8, 4, 3, 3), "o": (4, 24, 3, 3)}
    constants = {name: np.random.default_rng(0).standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    model = weighted(text, k=np.array([1, 1, 4, 4], np.float32), **constants)
    found = reordered(model, None, {})
    assert memory(found, None, {}) < 0.6 * memory(model, None, {})
    x = {"x": np.random.default_rng(1).standard_normal((1, 4, 32, 32)).astype(np.float32)}
    assert same(run(model, x), run(found, x))


@st.composite
def graphs(draw: st.DrawFn) -> str:
    """Draws graphs of Concats, Relus, reductions and Identities over many sizes, as text."""
    sizes = {"x": 4}
    lines: list[str] = []
    for number in range(draw(st.integers(1, 9))):
        name, kind = f"v{number}", draw(st.sampled_from(("Concat", "Relu", "Identity", "ReduceSum", "Exp")))
        sources = [draw(st.sampled_from(list(sizes))) for _ in range(3 if kind == "Concat" else 1)]
        attribute = {"Concat": "<axis = 0>", "ReduceSum": "<keepdims = 1>"}.get(kind, "")
        lines.append(f"{name} = {kind} {attribute} ({', '.join(sources)})")
        sizes[name] = {"Concat": sum(sizes[source] for source in sources), "ReduceSum": 1}.get(kind, sizes[sources[0]])
    outputs = draw(st.lists(st.sampled_from([name for name in sizes if name != "x"]), min_size=1, max_size=2, unique=True))
    return f"g (float[4] x) => ({', '.join(f'float[{sizes[name]}] {name}' for name in outputs)}) {{ {' '.join(lines)} }}"


def topological(nodes: list[onnx.NodeProto]) -> Iterator[list[onnx.NodeProto]]:
    """Yields all topological orders of the nodes."""
    if not nodes:
        yield []
    made = {name for node in nodes for name in node.output}
    for place, node in enumerate(nodes):
        if made.isdisjoint(node.input):
            for rest in topological([*nodes[:place], *nodes[place + 1 :]]):
                yield [node, *rest]


def written(model: onnx.ModelProto, nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


@given(graphs())
@settings(max_examples=40, deadline=None)
def test_no_written_order_needs_less(text: str) -> None:
    model = parse(text)
    found = reordered(model, None, {})
    onnx.checker.check_model(found)
    assert memory(found, None, {}) <= memory(model, None, {})
    orders = [nodes for _, nodes in zip(range(200), topological(list(model.graph.node)), strict=False)]
    assert memory(found, None, {}) <= min(memory(written(model, nodes), None, {}) for nodes in orders)
