"""The target `onnxruntime-cuda`: the runtime's fusions count, its layouts for CPUs do not, and few launches are worth a longer search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import eqsat
from eqsat.choose.writable import asked
from eqsat.cost.target import load_target
from eqsat.deadline import Deadline
from eqsat.egraph.phases import load
from eqsat.facts.fact import Fact
from eqsat.rewriting.job import Job
from eqsat.rewriting.valuation import Valuation
from eqsat.runtime.worker import shared
from eqsat.settings import Settings
from tests.rules.examples_attention import EXAMPLES
from tests.support.models import operators, parse, weighted

CUDA = "onnxruntime-cuda"
RANDOM = np.random.default_rng(0)


def weight(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def test_a_decomposed_gelu_stays_one_kernel() -> None:
    """The runtime fuses these nodes, whatever their order, but not a form with another constant."""
    model = parse("""g (float[8, 64] x) => (float[8, 64] y) {
        s = Constant <value_float = 1.4142135> ()  one = Constant <value_float = 1.0> ()  half = Constant <value_float = 0.5> ()
        a = Div (x, s)  e = Erf (a)  p = Add (e, one)  m = Mul (x, p)  y = Mul (m, half)
    }""")
    result = eqsat.optimize(model, target=CUDA)
    assert result.report["cost"]["after"]["launches"] == 1


def test_a_norm_and_the_sum_before_it_stay_one_kernel() -> None:
    """Of a sum of three, ONNX Runtime makes no SkipLayerNormalization."""
    text = "g (float[1, 16, 64] x, float[1, 16, 64] r) => (float[1, 16, 64] y) { a = Add (x, b)  c = Add (a, r)  y = LayerNormalization <axis = -1> (c, s, t) }"
    model = weighted(text, b=weight(64), s=weight(64), t=weight(64))
    result = eqsat.optimize(model, target=CUDA)
    assert result.report["cost"]["after"]["launches"] <= 2 and result.report["cost"]["after"]["seconds"] <= result.report["cost"]["before"]["seconds"]


@pytest.mark.parametrize(("target", "rounds"), [(CUDA, 4), ("generic-gpu", 4), ("onnxruntime-cpu", 2)])
def test_regions_get_more_rounds_where_launches_are_dear(target: str, rounds: int) -> None:
    assert load().in_regions(load_target(target).launch_bound).phases[-1].rounds == rounds


@pytest.mark.parametrize(("target", "again"), [(CUDA, {"growth", "rounds"}), ("onnxruntime-cpu", {"growth"})])
def test_a_cut_model_gets_a_new_turn_after_the_rounds_where_launches_are_dear(target: str, again: set[str]) -> None:
    job = Job(Settings(), load(), Valuation(load_target(target), "time", {}, None, shared()), Deadline())
    small = parse("g (float[4] x) => (float[4] y) { y = Neg (x) }")
    large = onnx.ModelProto.FromString(small.SerializeToString())
    large.graph.node.extend(helper.make_node("Neg", ["x"], [f"z{place}"]) for place in range(100))
    assert set(job.unfinished(large)) == again and set(job.unfinished(small)) == {"growth", "rounds"}
    greedy = replace(job, settings=Settings(engine="greedy"))
    assert set(greedy.unfinished(large)) == {None}


def test_convs_are_not_priced_in_the_blocked_layout() -> None:
    text = "g (float[1, 32, 14, 14] x) => (float[1, 32, 14, 14] y) { c = Conv (x, w)  y = Conv (c, v) }"
    model = weighted(text, w=weight(32, 32, 1, 1), v=weight(32, 32, 1, 1))
    cost = eqsat.optimize(model, target=CUDA, verify=False, only=["nothing"]).report["cost"]
    assert cost["before"]["launches"] == 2  # no node changes the layout before them or behind them


@pytest.mark.parametrize(("opset", "thresholds"), [(17, 2), (21, 2), (22, 0)])
def test_a_guard_is_a_threshold_where_there_is_a_kernel_for_it(opset: int, thresholds: int) -> None:
    model = EXAMPLES["guards of layers become thresholds"].model(opset)
    assert operators(eqsat.optimize(model, target=CUDA).model)["ThresholdedRelu"] == thresholds


@pytest.mark.parametrize("half", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_halves_run_as_float32_does(half: int) -> None:
    """The CPU provider has no kernels for them, puts Casts around nodes, and fuses less."""
    text = """g (float[1, 16, 64] x, float[1, 16, 64] r) => (float[1, 16, 64] y)
    {
        a = Add (x, r)  n = LayerNormalization <axis = -1> (a, s, t)  m = MatMul (n, w)  b = Softmax <axis = -1> (m)  y = Neg (b)
    }"""
    single = weighted(text, s=weight(64), t=weight(64), w=weight(64, 64))
    other = onnx.ModelProto.FromString(single.SerializeToString())
    for info in (*other.graph.input, *other.graph.output):
        info.type.tensor_type.elem_type = half
    for tensor in other.graph.initializer:
        halves = numpy_helper.to_array(tensor).astype(helper.tensor_dtype_to_np_dtype(half))
        tensor.CopyFrom(numpy_helper.from_array(halves, tensor.name))
    first, second = (Valuation(load_target(CUDA), "time", {}, None, shared()).figures(model, None).totals for model in (single, other))
    assert second.launches == first.launches == 4
    assert second.bytes == first.bytes / 2 and second.seconds <= first.seconds


@pytest.mark.parametrize(("opset", "kept"), [(23, {"RMSNormalization": 1}), (17, None)])
def test_a_norm_of_halves_in_single_precision_is_one_kernel(opset: int, kept: dict[str, int] | None) -> None:
    text = f"""<ir_version: 8, opset_import: ["": {opset}]>
    g (float16[2, 16, 64] x) => (float16[2, 16, 64] y) <float two = {{2}}, float tiny = {{0.00001}}, int64[1] last = {{-1}}>
    {{
        w = Cast <to = 1> (x)  p = Pow (w, two)  m = {"ReduceMean (p, last)" if opset > 17 else "ReduceMean <axes = [-1]> (p)"}
        e = Add (m, tiny)  r = Sqrt (e)  i = Reciprocal (r)  n = Mul (w, i)  h = Cast <to = 10> (n)  y = Mul (s, h)
    }}"""
    model = weighted(text)
    model.graph.initializer.append(numpy_helper.from_array(weight(64).astype(np.float16), "s"))
    result = eqsat.optimize(model, target=CUDA)
    assert result.report["cost"]["after"]["launches"] == 1 < result.report["cost"]["before"]["launches"]
    assert kept is None or operators(result.model) == kept


def test_a_cpu_is_asked_about_the_kernels_of_a_gpu_in_float32() -> None:
    halves = [Fact(dtype=TensorProto.BFLOAT16), None, Fact(dtype=TensorProto.FLOAT16), Fact(dtype=TensorProto.INT64)]
    single = [Fact(dtype=TensorProto.FLOAT), None, Fact(dtype=TensorProto.FLOAT), Fact(dtype=TensorProto.INT64)]
    assert asked(halves, load_target(CUDA)) == single
    assert asked(halves, load_target("onnxruntime-cpu")) == halves


def test_attention_of_bfloat16_is_one_kernel() -> None:
    sizes = "[1, 2, 64, 64]"
    model = parse(f"""<ir_version: 10, opset_import: ["": 23]>
    g (bfloat16{sizes} q, bfloat16{sizes} k, bfloat16{sizes} v) => (bfloat16{sizes} y)
    {{
        t = Transpose <perm = [0, 1, 3, 2]> (k)  s = MatMul (q, t)  p = Softmax <axis = -1> (s)  y = MatMul (p, v)
    }}""")
    assert operators(eqsat.optimize(model, target=CUDA, verify=False).model) == {"Attention": 1}


def test_silu_keeps_to_the_kernel_that_the_runtime_makes_of_it() -> None:
    model = parse("""<ir_version: 10, opset_import: ["": 24]>
    g (float[8, 64] x) => (float[8, 64] y) { a = Neg (x)  s = Sigmoid (a)  m = Mul (a, s)  y = Neg (m) }""")
    result = eqsat.optimize(model, target=CUDA)
    assert "Swish" not in operators(result.model) and result.report["cost"]["after"]["launches"] <= 3
