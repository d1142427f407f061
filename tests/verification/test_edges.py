"""Verification draws the edges that users meet.

These are sizes of 0, 1 and beyond the model's constants, and integers at the limits of their type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest

from eqsat.errors import InputError
from eqsat.runtime.worker import RemoteError, WorkerDied, WorkerTimeout, shared
from eqsat.verification import judge as judging
from eqsat.verification.planning import make_edges, make_plan
from eqsat.verification.request import Judgement
from eqsat.verification.sample_plan import Draw, Edge
from eqsat.verification.samples import draw
from eqsat.verification.steering import size_bounds, steering
from eqsat.verification.verify import DIFFERENT, EQUAL, UNVERIFIED, LoadedModel, Verdict, verify
from tests.support.models import weighted


def check(a: onnx.ModelProto, b: onnx.ModelProto, **options: Any) -> Verdict:
    return verify(LoadedModel(a), LoadedModel(b), **options)


def bounds(proto: onnx.ModelProto) -> set[int]:
    return set(size_bounds(proto, steering(proto)))


HEAD = "g (float[B, S] x) => (float[B, T] y)"
SLICE = {"zero": np.array([0]), "end": np.array([512]), "last": np.array([-1])}


@pytest.mark.parametrize(
    ("opset", "nodes", "weights"),
    [
        (10, "u = Slice (x, zero, end, last) y = Relu (u)", SLICE),
        (13, "u = Slice (x, zero, end, last) y = Relu (u)", SLICE),
        (9, "u = Slice <starts = [0], ends = [512], axes = [-1]> (x) y = Relu (u)", {}),
        (
            13,
            "s = Shape (x) t = Min (s, most) i = Gather (t, n) u = Slice (x, zero, i, n) y = Relu (u)",
            {**SLICE, "most": np.array([512]), "n": np.array([1])},
        ),
    ],
)
def test_a_slice_that_ends_beyond_all_usual_sizes_is_missed(opset: int, nodes: str, weights: dict[str, Any]) -> None:
    a, b = weighted(f"{HEAD} {{ {nodes} }}", opset, **weights), weighted(f"{HEAD} {{ y = Relu (x) }}", opset)
    verdict = check(a, b)
    assert verdict.status == DIFFERENT and "S=513" in verdict.reason
    assert check(b, a).status == DIFFERENT  # only the optimized model has this bound
    same = weighted(f"{HEAD} {{ {nodes.replace('y = Relu (u)', 'v = Relu (u) y = Abs (v)')} }}", opset, **weights)
    verdict = check(a, same)
    assert verdict.status == EQUAL and 513 in verdict.sizes["S"] and 513 in verdict.sizes["B"]


def test_a_size_of_0_and_of_1_is_drawn_for_each_free_dimension() -> None:
    a = weighted("g (float[B, S] x, float[B, S] z) => (float[B, S] y) { t = Neg (x) y = Add (t, z) }")
    b = weighted("g (float[B, S] x, float[B, S] z) => (float[B, S] y) { y = Sub (z, x) }")
    verdict = check(a, b)
    drawn = set(zip(verdict.sizes["B"], verdict.sizes["S"], strict=True))
    first = (verdict.sizes["B"][0], verdict.sizes["S"][0])
    assert verdict.status == EQUAL and verdict.edges == 4 and verdict.runs == 7
    assert drawn >= {(0, first[1]), (1, first[1]), (first[0], 0), (first[0], 1)}


def row_where_empty(least: int) -> onnx.ModelProto:
    """Returns a model that adds a row to an empty tensor, if `least` is 1."""
    return weighted(
        "g (float[N, 4] x) => (float[M, 4] y) { s = Shape (x) t = Max (s, k) d = Sub (t, s) e = Add (d, u)"
        " r = ConstantOfShape (e) y = Concat <axis = 0> (x, r) }",
        k=np.array([least, 4]),
        u=np.array([0, 4]),
    )


def test_what_goes_wrong_at_0_alone_is_found() -> None:
    a = weighted("g (float[N, 4] x) => (float[M, 4] y) { y = Identity (x) }")
    verdict = check(a, row_where_empty(1))
    assert verdict.status == DIFFERENT and "N=0" in verdict.reason
    assert check(a, row_where_empty(0)).status == EQUAL
    verdict = check(a, row_where_empty(1), no_empty_inputs=True)
    assert verdict.status == EQUAL and 0 not in verdict.sizes["N"] and 1 in verdict.sizes["N"]


def test_a_computed_size_is_not_0_where_none_is_promised() -> None:
    a, b = (
        weighted(f"g (float[N] x, float[M] z) => (float[K] y) {{ c = Concat <axis = 0> (x, z) {body} }}")
        for body in ("y = Neg (c)", "d = Abs (c) e = Neg (c) y = Identity (e)")
    )
    for model in (a, b):
        model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "N - 1"
    assert 0 in check(a, b).sizes["N - 1"]
    verdict = check(a, b, no_empty_inputs=True)
    assert verdict.status == EQUAL and min(verdict.sizes["N - 1"]) > 0


def test_given_inputs_keep_the_promise() -> None:
    model = weighted("g (float[N, 0] x, float[N] z) => (float[N, 0] a, float[N] b) { a = Neg (x) b = Neg (z) }")
    other = weighted("g (float[N, 0] x, float[N] z) => (float[N, 0] a, float[N] b) { c = Abs (x) a = Neg (c) d = Neg (z) b = Identity (d) }")
    full, empty = ({"x": np.zeros((size, 0), np.float32), "z": np.zeros(size, np.float32)} for size in (2, 0))
    assert check(model, other, inputs=full, no_empty_inputs=True).status == EQUAL == check(model, other, inputs=empty).status
    with pytest.raises(InputError, match=r"input 'x' of shape \[0, 0\] is empty, and --no-empty-inputs promises that none is"):
        check(model, other, inputs=empty, no_empty_inputs=True)


def test_broadcasting_at_1_alone_is_found() -> None:
    text = "g (float[N, M] x, float[N, 1] z) => (float[A, C] y) {{ s = Shape (x) {0} }}"
    a = weighted(text.format("y = Add (x, z)"))
    b = weighted(text.format("n = Gather (s, one) r = Slice (z, zero, n, one) y = Add (x, r)"), one=np.array([1]), zero=np.array([0]))
    c = weighted(text.format("k = Gather (s, one) e = Equal (k, one) f = Cast <to = 1> (e) g2 = Add (z, f) y = Add (x, g2)"), one=np.array([1]))
    assert check(a, b).status == EQUAL
    verdict = check(a, c)
    assert verdict.status == DIFFERENT and "M=1" in verdict.reason


def test_what_the_original_does_not_take_is_not_asked() -> None:
    a = weighted("g (float[N, 4] x) => (float[4] y) { y = Reshape (x, s) }", s=np.array([4]))
    b = weighted("g (float[N, 4] x) => (float[4] y) { z = Squeeze (x, k) y = Identity (z) }", s=np.array([4]), k=np.array([0]))
    verdict = check(a, b)
    assert verdict.status == EQUAL and set(verdict.sizes["N"]) == {1}


def test_integers_at_the_ends_of_their_type() -> None:
    head = "g (int32[N] i, int32[N] k) => (int32[N] y)"
    a = weighted(f"{head} {{ t = Add (i, i) y = Sub (t, k) }}")
    assert check(a, weighted(f"{head} {{ t = Sub (i, k) y = Add (t, i) }}")).status == EQUAL
    wide = weighted(
        f"{head} {{ j = Cast <to = 7> (i) l = Cast <to = 7> (k) t = Add (j, j) u = Sub (t, l) v = Clip (u, low, high) y = Cast <to = 6> (v) }}",
        low=np.int64(-(2**31)),
        high=np.int64(2**31 - 1),
    )
    verdict = check(a, wide)
    assert verdict.status == DIFFERENT and "the ends of their type in i, k" in verdict.reason


def test_indices_and_counts_are_never_extreme() -> None:
    table = np.arange(12, dtype=np.float32).reshape(6, 2)
    head = "g (int64[N] i, int64 k, int64[N] j) => (float[N, 2] y, int64[M] r, int64[N] z)"
    a = weighted(f"{head} {{ y = Gather (e, i) h = Add (k, one) r = Range (zero, h, one) z = Neg (j) }}", e=table, zero=np.int64(0), one=np.int64(1))
    plan = make_plan(a)
    edges = make_edges(plan, (), plan.inputs.keys() - steering(a).constants)
    assert [edge.extremes for edge in edges if edge.extremes] == [{"j"}]


def test_floats_made_of_extreme_integers_are_not_compared() -> None:
    """Beside 2 to the 63 floats lose digits to rounding.

    Only the integers beside them are compared.
    """
    head = "g (int64[N] i) => (float[N] y, int64[N] z)"
    a = weighted(f"{head} {{ f = Cast <to = 1> (i) t = Add (f, k) y = Sub (t, f) z = Neg (i) }}", k=np.float32(1.5))
    b = weighted(f"{head} {{ f = Cast <to = 1> (i) o = Sub (f, f) y = Add (o, k) z = Sub (n, i) }}", k=np.float32(1.5), n=np.int64(0))
    verdict = check(a, b)
    assert verdict.status == EQUAL and verdict.edges == 4


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "uint16", "uint32", "uint64"])
def test_extremes_are_the_ends(dtype: str) -> None:
    plan = make_plan(weighted(f"g ({dtype}[64] i, float[64] x) => (y, z) {{ y = Identity (i) z = Identity (x) }}"))
    feeds = draw(plan, Draw({}, "normal", 0, frozenset({"i"})))
    limits = np.iinfo(dtype)
    assert {limits.min, limits.max, limits.max - 1, 0, 1} <= set(feeds["i"].tolist()) and feeds["i"].dtype == np.dtype(dtype)
    assert np.array_equal(feeds["x"], draw(plan, Draw({}, "normal", 0))["x"])


def test_bounds_are_what_limits_an_axis() -> None:
    found = bounds(
        weighted(
            "g (float[B, S] x) => (y, z, w) { u = Slice (x, zero, end, last) y = Relu (u) z = Add (x, plain) r = Reshape (x, s) w = Mul (r, factor) }",
            plain=np.float32(3),
            factor=np.array([777]).astype(np.float32),
            s=np.array([-1, 96]),
            **SLICE,
        )
    )
    assert {512, 96} <= found and 777 not in found and 1 not in found
    assert bounds(weighted("g (int64[N] i) => (y) { y = Add (i, k) }", k=np.array([300]))) == set()
    assert bounds(weighted("g (float[N] x) => (y) { y = Slice (x, zero, end, zero) }", zero=np.array([0]), end=np.array([2**63 - 1]))) == set()
    inside = "t () => (float[M] a) { a = Slice (x, zero, end) }, else_branch = e () => (float[M] b) { b = Neg (x) }"
    assert bounds(weighted(f"g (float[N] x, bool c) => (y) {{ y = If (c) <then_branch = {inside}> }}", zero=np.array([0]), end=np.array([40]))) == {40}


def test_edges_of_many_dimensions_are_few() -> None:
    inputs = ", ".join(f"float[D{number}] x{number}" for number in range(20))
    plan = make_plan(weighted(f"g ({inputs}) => (y) {{ y = Concat <axis = 0> (x0, x1) }}"))
    assert len(make_edges(plan, {8, 3}, ())) == 3 * 7
    assert make_edges(plan, {8, 3}, (), together=True) == (Edge(plan.symbols, (0,)), Edge(plan.symbols, (1,)), Edge(plan.symbols, (9, 4)))


class Fragile:
    """A worker that raises `failure` when its chosen model runs on inputs of size 0."""

    def __init__(self, failure: Exception, breaks: Callable[[Any], bool]) -> None:
        self.failure, self.breaks, self.calls = failure, breaks, 0

    def call(self, function: str, request: Any, **limits: Any) -> Any:
        self.calls += 1
        if any(0 in edge.sizes for edge in request.edges) and self.breaks(request):
            raise self.failure
        return judging.judge(request)


NEGATION = "g (float[N] x) => (float[N] y) { y = Neg (x) }", "g (float[N] x) => (float[N] y) { t = Neg (x) y = Identity (t) }"


@pytest.mark.parametrize("failure", [WorkerDied(-8), WorkerTimeout(1), RemoteError("MemoryError", "")])
def test_a_crash_of_the_original_at_an_edge_costs_that_edge_alone(failure: Exception) -> None:
    a, b = map(weighted, NEGATION)
    verdict = check(a, b, worker=Fragile(failure, lambda request: True))
    assert verdict.status == EQUAL and set(verdict.sizes["N"]) == {3, 2, 1}


def test_a_crash_of_the_optimized_model_at_an_edge_is_a_difference() -> None:
    a, b = map(weighted, NEGATION)
    verdict = check(a, b, worker=Fragile(WorkerDied(-8), lambda request: request.optimized is not None))
    assert verdict.status == DIFFERENT and verdict.reason == "the runtime crashed (signal 8) on the optimized model (sizes N=0)"


def test_models_that_take_too_long_are_not_run_again_and_again() -> None:
    """Each region of eight would take the time limit up twice."""

    class Late:
        calls = 0

        def call(self, function: str, request: Any, **limits: Any) -> Any:
            self.calls += 1
            raise WorkerTimeout(60)

    late = Late()
    rows = ", ".join(f"float[N] x{i}" for i in range(8)), ", ".join(f"float[N] y{i}" for i in range(8))
    a, b = (
        weighted(f"g ({rows[0]}) => ({rows[1]}) {{ {' '.join(text.format(i) for i in range(8))} }}")
        for text in ("y{0} = Neg (x{0})", "t{0} = Neg (x{0}) y{0} = Identity (t{0})")
    )
    verdict = check(a, b, worker=late)
    assert verdict.status == UNVERIFIED and late.calls == 3


def test_models_that_take_too_long_with_values_inside_run_without_edges_next() -> None:
    """The models took the time limit up once more, with edges and without values inside."""

    class Late:
        def __init__(self) -> None:
            self.asked: list[tuple[int, int]] = []

        def call(self, function: str, request: Any, **limits: Any) -> Any:
            self.asked.append((len(request.inside), len(request.edges)))
            if request.inside:
                raise WorkerTimeout(60)
            return judging.judge(request)

    late = Late()
    head, tail = "g (float[N] x) => (float[N] y) {", "u = Exp (t) w = Identity (u) y = Sin (w) }"
    a, b = (weighted(f"{head} {text}") for text in (f"t = Neg (x) {tail}", "s = Neg (x) t = Identity (s) u = Exp (t) y = Sin (u) }"))
    verdict = check(a, b, worker=late)
    (inside, edges), *others = late.asked
    assert verdict.status == EQUAL and set(verdict.sizes["N"]) == {0, 1, 2, 3}
    assert inside and edges > 1 and others[: 1 + edges] == [(0, 0), *[(0, 1)] * edges]


def test_a_slow_reference_does_not_hide_why_the_runtime_refuses() -> None:
    class Slow:
        def call(self, function: str, request: Any, **limits: Any) -> Any:
            if request.refusal:
                raise WorkerTimeout(60)
            return Judgement(UNVERIFIED, "the original model does not run: no kernel", refusal="no kernel")

    a, b = map(weighted, NEGATION)
    verdict = check(a, b, worker=Slow())
    reason = "the runtime refuses the original model (no kernel), and the reference of onnx took longer than 60 s"
    assert verdict.status == UNVERIFIED and verdict.reason.startswith(f"{reason}; ")


LARGE = np.random.default_rng(0).standard_normal((1024, 512), dtype=np.float32)  # with 4,097 rows the whole model is too large to be tried at once


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ("u = Slice (h, zero, end, zero) y = Relu (u)", "y = Relu (h)", DIFFERENT),
        ("u = Relu (h) y = Slice (u, zero, end, zero)", "u = Slice (h, zero, end, zero) y = Relu (u)", EQUAL),
    ],
)
def test_sizes_that_cost_too_much_are_tried_where_the_models_differ(before: str, after: str, status: str) -> None:
    """The weights make 4,097 rows too slow for the whole model.

    The differing part has no weights.
    """
    weights = {"zero": np.array([0]), "end": np.array([4096]), "q": np.ones((16, 1024), np.float32), "w": LARGE}
    head = "g (float[S, 16] x) => (float[T, 512] y) { p = MatMul (x, q) h = MatMul (p, w)"
    a, b = (weighted(f"{head} {rest} }}", **weights) for rest in (before, after))
    verdict = check(a, b)
    assert verdict.status == status and ("S=4097" in verdict.reason) == (status == DIFFERENT)
    assert 4097 not in verdict.sizes["S"]


@pytest.mark.parametrize(
    ("after", "status"),
    [("v = Relu (h) u = Slice (v, zero, end, zero)", EQUAL), ("u = Relu (h)", DIFFERENT)],
)
def test_a_part_that_differs_at_usual_sizes_too_does_not_run_the_whole_at_costly_ones(after: str, status: str) -> None:
    """A rectified sigmoid is the sigmoid, but on arbitrary values the two differ. The whole models took
    seconds at a size at which they were too costly.
    """
    weights = {"zero": np.array([0]), "end": np.array([4096]), "q": np.ones((16, 1024), np.float32), "w": LARGE}
    head = "g (float[S, 16] x) => (float[A, B] y, float[T, 512] u) { p = MatMul (x, q) h = MatMul (p, w) s = Sigmoid (h)"
    before, after = "t = Relu (s) v = Slice (h, zero, end, zero) u = Relu (v)", f"t = Identity (s) {after}"
    a, b = (weighted(f"{head} {rest} y = ReduceMax (t) }}", **weights) for rest in (before, after))
    worker = Recording()
    verdict = check(a, b, worker=worker)
    assert verdict.status == status and ("S=4097" in verdict.reason) == (status == DIFFERENT)
    assert any(not request.work for request in worker.requests) == (status == DIFFERENT)


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ("u = Slice (m, zero, end, last) y = Relu (u)", "y = Relu (m)", DIFFERENT),
        ("u = Relu (m) y = Slice (u, zero, end, last)", "u = Slice (m, zero, end, last) y = Relu (u)", EQUAL),
    ],
)
def test_axes_that_are_too_long_together_are_long_one_at_a_time(before: str, after: str, status: str) -> None:
    """The weights make a size of 769 too slow for the whole model, and squares of 769 rows by 769 columns are
    too large for the part that differs. The difference went unseen.
    """
    weights = {"zero": np.array([0]), "end": np.array([768]), "last": np.array([-1]), "one": np.array([1]), "q": np.ones((1, 1024), np.float32), "w": LARGE}
    head = "g (float[B, S] x) => (float[B, S, T] y, float[B, S, 512] z) { c = Unsqueeze (x, last) r = Unsqueeze (x, one) m = Mul (c, r)"
    tail = "p = MatMul (c, q) z = MatMul (p, w)"
    a, b = (weighted(f"{head} {rest} {tail} }}", **weights) for rest in (before, after))
    worker = Recording()
    verdict = check(a, b, worker=worker)
    assert verdict.status == status and ("S=769" in verdict.reason) == (status == DIFFERENT)
    assert 769 not in verdict.sizes["S"] or status == DIFFERENT
    drawn = [sizes for judgement in worker.judgements for sizes in zip(*judgement.sizes.values(), strict=True)]
    assert {(769, 4), (3, 769)} <= set(drawn) and (769, 769) not in drawn


def test_results_that_grow_more_than_their_inputs_are_not_made_at_sizes_that_are_too_long() -> None:
    """A mask of each row: 769 rows of 769 elements make 454 million, which took 4 GB. The weights make a
    size of 769 too slow for the whole model.
    """
    weights = {
        "zero": np.array([0]),
        "end": np.array([768]),
        "axes": np.array([1, 2]),
        "three": np.array([1, 3]),
        "q": np.ones((1, 1024), np.float32),
        "w": LARGE,
    }
    head = "g (float[B, S] x) => (float[B, 1, S, S] y, float[B, S, 512] z, float[B, N] n)"
    rest = "d = Unsqueeze (x, last) p = MatMul (d, q) z = MatMul (p, w) n = Slice (x, zero, end, last)"
    texts = ("c = Unsqueeze (x, three) r = Unsqueeze (x, axes) y = Mul (c, r)", "c = Unsqueeze (x, three) r = Unsqueeze (x, axes) y = Mul (r, c)")
    a, b = (weighted(f"{head} {{ {text} {rest} }}", 15, last=np.array([-1]), **weights) for text in texts)
    worker = Recording()
    verdict = check(a, b, worker=worker)
    drawn = [sizes for judgement in worker.judgements for sizes in zip(*judgement.sizes.values(), strict=True)]
    assert verdict.status == EQUAL and {(769, 4), (3, 769)} <= set(drawn) and (769, 769) not in drawn


BOUND = {"zero": np.array([0]), "end": np.array([2048])}


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ("u = Slice (u80, zero, end, zero) y = Relu (u)", "y = Relu (u80)", DIFFERENT),
        ("u = Relu (u80) y = Slice (u, zero, end, zero)", "u = Slice (u80, zero, end, zero) y = Relu (u)", EQUAL),
    ],
)
def test_sizes_at_which_many_nodes_touch_many_elements_are_tried_where_the_models_differ(before: str, after: str, status: str) -> None:
    """One node may touch 2,049 rows, but the 80 nodes of the whole model may not."""
    chain = " ".join(f"u{place + 1} = Neg (u{place})" for place in range(80))
    a, b = (weighted(f"g (float[S, 1024] u0) => (float[T, 1024] y) {{ {chain} {rest} }}", **BOUND) for rest in (before, after))
    verdict = check(a, b)
    assert verdict.status == status and ("S=2049" in verdict.reason) == (status == DIFFERENT)
    assert 2049 not in verdict.sizes["S"]


class Recording:
    """A worker that records the requests and the judgements."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.judgements: list[Judgement] = []

    def call(self, function: str, *arguments: Any, **options: Any) -> Any:
        self.requests.append(arguments[0])
        found = shared().call(function, *arguments, **options)
        self.judgements += [found] if isinstance(found, Judgement) else []
        return found


def test_a_part_of_fixed_sizes_is_asked_about_no_other_sizes() -> None:
    """A request for sizes of nothing ended in an exception of the worker."""
    head = "g (float[S, 16] x, float[4] z) => (float[T, 512] y, float[4] n) { p = MatMul (x, q) h = MatMul (p, w) u = Relu (h) y = Slice (u, zero, end, zero)"
    weights = {"zero": np.array([0]), "end": np.array([4096]), "q": np.ones((16, 1024), np.float32), "w": LARGE}
    a, b = (weighted(f"{head} {rest} }}", **weights) for rest in ("n = Add (z, z)", "m = Neg (z) n = Sub (z, m)"))
    recording: Any = Recording()
    assert check(a, b, worker=recording).status == EQUAL
    assert all(edge.symbols or edge.extremes for request in recording.requests for edge in request.edges)


class Faulty:
    """A session of ONNX Runtime that adds an axis to the result of inputs without elements."""

    engine = "onnxruntime"

    def __init__(self, session: Any) -> None:
        self.session = session

    def run(self, feeds: Mapping[str, Any], names: Sequence[str] | None = None) -> list[Any]:
        found = self.session.run(feeds, names)
        return found if all(value.size for value in feeds.values()) else [value[..., None] for value in found]


def test_a_fault_of_the_runtime_without_elements_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX Runtime's faults over empty axes depend on the spelling of a node.

    The reference decides.
    """
    usual = judging.open_runtime

    def opened(model: bytes, *others: Any) -> Any:
        session = usual(model, *others)
        return Faulty(session) if b"Identity" in model else session

    monkeypatch.setattr(judging, "open_runtime", opened)
    verdict = check(*map(weighted, NEGATION), worker=Fragile(WorkerDied(-8), lambda request: False))
    assert verdict.status == EQUAL
    assert "at sizes N=0 the runtime tells the models apart, and the reference of ONNX does not" in verdict.notes


def test_a_comparison_that_memory_does_not_allow_goes_region_by_region(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ran twice again before it was given up. Attention over 1,500 positions took 50 s more."""
    usual, asked = judging.tolerance.differences, []

    class Narrow(Fragile):
        def call(self, function: str, request: Any, **limits: Any) -> Any:
            found = super().call(function, request, **limits)
            asked.append((request.nodes, len(request.edges), found.too_much))
            return found

    def compared(original: Any, optimized: Any) -> Any:
        if original.size > 50:
            raise MemoryError("Unable to allocate 1 GiB")
        return usual(original, optimized)

    monkeypatch.setattr(judging.tolerance, "differences", compared)
    head = "g (float[N, 4, 9] x) => (float[N, 4, 9] a, float[N, 1, 9] y) { a = Exp (x) s = ReduceSum (a, axis)"
    a, b = (weighted(f"{head} {rest} }}", axis=np.array([1])) for rest in ("t = Neg (s) y = Abs (t)", "y = Abs (s)"))
    verdict = check(a, b, worker=Narrow(WorkerDied(-8), lambda request: False))
    assert verdict.status == EQUAL and verdict.regions == 1 and "to compare the results takes more memory than the limit allows" in verdict.notes[0]
    assert [too_much for _, _, too_much in asked].count(True) == 1 and asked[0][2]


@pytest.mark.parametrize(("first", "status"), [("open", EQUAL), ("rows", DIFFERENT)])
def test_a_size_that_is_left_open_beside_0_is_not_compared(first: str, status: str) -> None:
    """ONNX Runtime infers a -1 beside a 0 from the other sizes; ONNX forbids it with `allowzero`.

    Without `allowzero`, the 0 asks for the 4 of the same axis.
    """
    shapes = "b = Shape <end = 1> (x) rows = Mul (b, four) s = Shape <start = 2> (x)"
    a, b = (
        weighted(
            f"g (float[B, 4, S] x) => (float[C, D] y) {{ {shapes} e = Concat <axis = 0> ({size}, s) y = Reshape <allowzero = {allows}> (x, e) }}",
            18,
            open=np.array([-1]),
            four=np.array([4]),
        )
        for size, allows in ((first, 1), ("rows", 0))
    )
    verdict = check(a, b)
    assert verdict.status == status and any("ONNX does not define the original there" in note for note in verdict.notes) == (status == EQUAL)


def test_a_difference_without_elements_that_the_reference_sees_counts() -> None:
    head = "g (float[N, 4] x) => (int64 y)"
    a = weighted(f"{head} {{ s = Shape (x) y = Gather (s, first) }}", first=np.int64(0))
    b = weighted(f"{head} {{ s = Shape (x) t = Gather (s, first) y = Max (t, one) }}", first=np.int64(0), one=np.int64(1))
    verdict = check(a, b)
    assert verdict.status == DIFFERENT and "N=0" in verdict.reason


def test_memory_that_nothing_wrote_is_no_difference() -> None:
    """ONNX Runtime accepts a Concat of parts with different rows if one part has none.

    It leaves the elements between them as they were.
    """
    text = """g (bool[N, 1] x, bool[M, K] z) => (bool[A, B] y) {{
        c = Concat <axis = 1> (x, z)
        {rest}
    }}"""
    bounds = {"start": np.array([1, -1]), "end": np.array([512, 2**40]), "axes": np.array([1, 0])}
    a = weighted(text.format(rest="y = Slice (c, start, end, axes)"), **bounds)
    b = weighted(text.format(rest="r = Not (c)  t = Slice (r, start, end, axes)  y = Not (t)"), **bounds)
    # What the memory held is chance: now and then both models show the same.
    verdicts = [check(a, b) for _ in range(20)]
    assert all(verdict.status == EQUAL for verdict in verdicts)
    assert any("shows memory that nothing wrote" in note for verdict in verdicts for note in verdict.notes)


@pytest.mark.parametrize(("factor", "status"), [(1, EQUAL), (2, DIFFERENT)])
def test_at_extreme_integers_the_reference_decides(factor: int, status: str) -> None:
    """ONNX Runtime multiplies int64 in double precision in reductions."""
    a = weighted("g (int64[N, 1] x) => (int64[N, 1] y) { y = ReduceProd (x, axis) }", axis=np.array([1]))
    b = weighted("g (int64[N, 1] x) => (int64[N, 1] y) { y = Mul (x, factor) }", factor=np.int64(factor))
    assert check(a, b).status == status


def test_a_branch_for_one_value_is_compared() -> None:
    """A sampling rate chooses a branch. The one for 16,000 ran in no draw, and two models with different ones were equal."""
    graph = """g (float[4] x, int64 rate) => (float[4] y) {{ c = Equal (rate, most) y = If (c)
        <then_branch = t () => (float[4] a) {{ a = {name} (x) }}, else_branch = e () => (float[4] b) {{ b = Neg (x) }}> }}"""
    a, b, c = (weighted(graph.format(name=name), most=np.array(16000)) for name in ("Relu", "Abs", "Neg"))
    assert check(a, b).status == DIFFERENT and check(b, c).status == DIFFERENT
    twin = weighted(graph.format(name="Relu").replace("a = Relu (x)", "z = Relu (x) a = Identity (z)"), most=np.array(16000))
    assert check(a, twin).status == EQUAL


WINDOW = (
    "g (float[N, 1, S] x) => (float[N, 1, T] y) { c = Conv (x, w) y = Relu (c) }",
    "g (float[N, 1, S] x) => (float[N, 1, T] y) { c = Conv (x, w) y = Abs (c) }",
)


def test_a_window_longer_than_usual_sizes_runs() -> None:
    a, b = (weighted(graph, w=np.ones((1, 1, 400), np.float32)) for graph in WINDOW)
    assert check(a, b).status == DIFFERENT
    same = weighted(WINDOW[0].replace("y = Relu (c)", "d = Relu (c) y = Identity (d)"), w=np.ones((1, 1, 400), np.float32))
    verdict = check(a, same)
    assert verdict.status == EQUAL and set(verdict.sizes["S"]) >= {1024}


def test_a_runtime_that_crashes_at_usual_sizes_runs_at_longer_ones() -> None:
    """A kernel divides by a number of windows, which is 0."""

    class Brittle(Fragile):
        def call(self, function: str, request: Any, **limits: Any) -> Any:
            if not request.only_long:
                self.calls += 1
                raise self.failure
            return super().call(function, request, **limits)

    a, b = map(weighted, NEGATION)
    verdict = check(a, b, worker=Brittle(WorkerDied(-8), lambda request: False))
    assert verdict.status == EQUAL and set(verdict.sizes["N"]) >= {1024}
    other = weighted(NEGATION[0].replace("Neg", "Abs"))
    assert check(a, other, worker=Brittle(WorkerDied(-8), lambda request: False)).status == DIFFERENT
    fixed = weighted(NEGATION[0].replace("[N]", "[4]")), weighted(NEGATION[1].replace("[N]", "[4]"))
    verdict = check(*fixed, worker=Brittle(WorkerDied(-8), lambda request: False))
    assert verdict.status == UNVERIFIED and verdict.reason == "the runtime crashed (signal 8) on the original model"


@pytest.mark.parametrize("inside", [0.0, 1e9])
def test_differences_that_take_long_to_explain_go_region_by_region(monkeypatch: pytest.MonkeyPatch, inside: float) -> None:
    """Some twenty nudges of a network of large images took the whole time limit, and then again without values inside."""
    usual = judging._Comparison._unexplained  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(judging, "_NUDGING", -1)
    monkeypatch.setattr(judging._Comparison, "_unexplained", lambda self, found: found if self._request.brief is False else usual(self, found))  # pyright: ignore
    asked: list[tuple[int, int]] = []

    class Counting(Recording):
        def call(self, function: str, request: Any, **limits: Any) -> Any:
            self.requests.append(request)
            found = judging.judge(request)
            asked.append((request.nodes, len(request.inside)))
            if found.too_much:
                found.seconds_inside = inside
            return found

    head = "g (float[64, 64] x) => (float[64, 1] y) { h = MatMul (x, w) t = Abs (h)"
    weights = {"w": np.random.default_rng(0).standard_normal((64, 1)).astype(np.float32), "k": np.float32(3), "third": np.float32(1 / 3)}
    a, b = (weighted(f"{head} {rest} y = Neg (u) }}", **weights) for rest in ("u = Div (t, k)", "u = Mul (t, third)"))
    verdict = check(a, b, worker=Counting())
    assert verdict.status == EQUAL and verdict.regions and "to explain a difference by rounding takes long" in verdict.notes[0]
    whole = [values for count, values in asked if count == len(a.graph.node)]
    assert (0 in whole) == bool(inside)
