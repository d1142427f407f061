"""The price of a model is that of its target's graph, and no result is worse than the original."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import eqsat
from eqsat.cost.target import load_target
from eqsat.model.file_bytes import written_bytes
from eqsat.rewriting.valuation import Valuation
from eqsat.runtime.own_graph import NoGraph, own_graph
from eqsat.runtime.worker import shared
from tests.support.models import operators, parse, weighted

RANDOM = np.random.default_rng(0)


def weights(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def valuation(target: str = "onnxruntime-cpu", objective: str = "time") -> Valuation:
    return Valuation(load_target(target), objective, {}, None, shared())  # pyright: ignore[reportArgumentType]


# The product of the two kernels has eleven times the multiplications.
NARROW = weighted("g (float[1, 16, 32, 32] x) => (float[1, 64, 30, 30] y) { h = Conv (x, v)  y = Conv (h, w) }", v=weights(4, 16, 3, 3), w=weights(64, 4, 1, 1))
# The product of the two kernels is smaller than either.
WIDE = weighted("g (float[1, 8, 32, 32] x) => (float[1, 8, 32, 32] y) { h = Conv (x, v)  y = Conv (h, w) }", v=weights(64, 8, 1, 1), w=weights(8, 64, 1, 1))


@pytest.mark.parametrize(("model", "target", "convs"), [(NARROW, "onnxruntime-cpu", 2), (NARROW, "launches", 1), (WIDE, "onnxruntime-cpu", 1)])
def test_convs_merge_where_it_pays(model: onnx.ModelProto, target: str, convs: int) -> None:
    result = eqsat.optimize(model, target=target, max_growth=1 << 20)
    assert operators(result.model)["Conv"] == convs
    cost = result.report["cost"]
    assert cost["after"]["launches"] <= cost["before"]["launches"]
    if target != "launches":
        assert cost["after"]["operations"] <= cost["before"]["operations"] and cost["after"]["seconds"] <= cost["before"]["seconds"]


def test_a_batch_normalization_of_a_conv_goes_on_every_target() -> None:
    channels = {name: np.abs(weights(8)) + 0.5 for name in ("s", "b", "m", "v")}
    model = weighted(
        "g (float[1, 4, 16, 16] x) => (float[1, 8, 14, 14] y) { h = Conv (x, w)  n = BatchNormalization (h, s, b, m, v)  y = Relu (n) }",
        w=weights(8, 4, 3, 3),
        **channels,
    )
    for target in ("onnxruntime-cpu", "launches", "generic-gpu"):
        assert operators(eqsat.optimize(model, target=target).model) == {"Conv": 1, "Relu": 1}


def test_one_node_is_preferred_to_two_that_the_runtime_fuses() -> None:
    """ONNX Runtime folds the normalization when it loads the model, so both cost the same."""
    channels = {name: np.abs(weights(3)) + 0.5 for name in ("s", "b", "m", "v")}
    model = weighted(
        "g (float[5, 2, 28, 28] x) => (float[5, 3, 24, 24] y) { h = Conv (x, w)  y = BatchNormalization (h, s, b, m, v) }", w=weights(3, 2, 5, 5), **channels
    )
    assert operators(eqsat.optimize(model).model) == {"Conv": 1}


def test_a_model_in_which_the_runtime_loses_sizes_is_not_cheap() -> None:
    """In old opsets the runtime does not know the rank behind such a Reshape. There the original
    would seem to compute scalars.
    """
    model = weighted(
        """<ir_version: 6, opset_import: ["": 11]>
        g (float[A, B, 64] x) => (float[C, D, 64] y) <int64 zero = {0}, int64 one = {1}, int64[1] rest = {64}>
        {
            s = Shape (x)
            n = Gather (s, zero)
            m = Gather (s, one)
            i = Unsqueeze <axes = [0]> (n)
            j = Unsqueeze <axes = [0]> (m)
            k = Concat <axis = 0> (i, j, rest)
            p = Mul (n, m)
            u = Unsqueeze <axes = [0]> (p)
            t = Concat <axis = 0> (u, rest)
            q = Reshape (x, t)
            h = Tanh (q)
            r = Reshape (h, k)
            b = Mul (r, v)
            y = Mul (b, w)
        }
        """,
        v=weights(64),
        w=weights(64),
    )
    result = eqsat.optimize(model)
    assert operators(result.model) == {"Tanh": 1, "Mul": 1} and result.report["verify"]["status"] == "equal"


def test_a_few_nanoseconds_do_not_outweigh_nodes() -> None:
    """The runtime folds the zeros, and its Add is measured a little faster than its Identity."""
    model = parse("g (float[4, 6] x, float[4, 6] z) => (float[4, 6] y) { a = Shape (x)  b = ConstantOfShape (a)  y = Add (z, b) }")
    assert operators(eqsat.optimize(model).model) == {"Identity": 1}


def test_a_dearer_model_is_worse_and_a_cheaper_one_better() -> None:
    one = parse("g (float[512, 512] x) => (float[512, 512] y) { y = Exp (x) }")
    two = parse("g (float[512, 512] x) => (float[512, 512] y) { h = Exp (x)  y = Tanh (h) }")
    for target in ("onnxruntime-cpu", "launches", "generic-gpu"):
        of = valuation(target)
        assert of.is_better(one, two, None) and of.is_worse(two, one, None)
        assert not of.is_better(one, one, None) and not of.is_worse(one, one, None)


def test_the_runtimes_own_fusions_count() -> None:
    """ONNX Runtime fuses a Conv and a Relu into one kernel."""
    model = weighted("g (float[1, 16, 8, 8] x) => (float[1, 16, 6, 6] y) { h = Conv (x, w)  y = Relu (h) }", w=weights(16, 16, 3, 3))
    asked, counted = valuation().figures(model, None), valuation("launches").figures(model, None)
    assert asked.asked and not counted.asked
    assert not any(row.operator == "Relu" for row in valuation().rows(model, None)) and counted.totals.launches == 2


STRANGE = parse("""<ir_version: 8, opset_import: ["": 17, "nowhere": 1]> g (float[2] x) => (float[2] y) { y = nowhere.Strange (x) }""", "")
PLAIN = parse("g (float[2] x) => (float[2] y) { h = Relu (x)  i = Exp (h)  y = Tanh (i) }")


def test_where_the_runtime_refuses_the_original_all_models_count_as_they_stand() -> None:
    of = valuation()
    first, second = of.both(STRANGE, PLAIN, None)
    assert not of.asks and not first.asked and not second.asked and not first.refused
    assert [row.known for row in of.rows(STRANGE, None)] == [False]


def test_a_model_that_the_runtime_does_not_take_is_worse_than_one_that_it_takes() -> None:
    of = valuation()
    of.verified = False
    assert of.is_worse(STRANGE, PLAIN, None) and not of.is_better(STRANGE, PLAIN, None)
    assert of.asks and of.figures(STRANGE, None).refused
    of.verified = True
    assert of.is_better(STRANGE, PLAIN, None) and not of.is_worse(STRANGE, PLAIN, None), "verification will mend it"


def test_the_report_prices_both_as_written_where_the_runtime_refuses_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_the_original(message: bytes, *rest: Any) -> bytes:
        if len(onnx.ModelProto.FromString(message).graph.node) < 3:
            raise NoGraph("sizes do not fit")
        return own_graph(message, *rest)

    monkeypatch.setattr("eqsat.rewriting.valuation.own_graph", of_the_original)
    result = eqsat.optimize(parse("g (float[64, 64] x) => (float[64, 64] y) { t = Transpose (x)  u = Transpose (t)  y = Relu (u) }"))
    cost = result.report["cost"]
    assert operators(result.model) == {"Relu": 1} and not cost["asked"]
    assert 0 < cost["after"]["seconds"] < cost["before"]["seconds"]


def test_of_an_if_the_dearest_branch_counts() -> None:
    text = """g (float[256, 256] x, bool c) => (float[256, 256] y) {{
        y = If (c) <then_branch = t () => (float[256, 256] a) {{ {then} }}, else_branch = f () => (float[256, 256] b) {{ b = Neg (x) }}> }}"""
    cheap, dear = (parse(text.format(then=then)) for then in ("a = Neg (x)", "h = Exp (x)  i = Tanh (h)  a = Exp (i)"))
    of = valuation("generic-gpu")
    assert of.is_better(cheap, dear, None)
    assert of.figures(dear, None).totals.launches == of.figures(cheap, None).totals.launches + 2


@pytest.mark.parametrize("objective", ["time", "launches", "bytes", "size"])
def test_each_objective_makes_its_figure_small(objective: str) -> None:
    model = weighted(
        "g (float[64, 64] x) => (float[64, 64] y) { a = Add (x, c)  b = Add (a, d)  t = Transpose (b)  u = Transpose (t)  y = Relu (u) }",
        c=weights(64, 64),
        d=weights(64, 64),
    )
    result = eqsat.optimize(model, objective=objective)  # pyright: ignore[reportArgumentType]
    assert operators(result.model) == {"Add": 1, "Relu": 1}
    assert result.report["cost"]["objective"] == objective


def test_a_kernel_that_the_target_lacks_is_not_used(tmp_path: Path) -> None:
    model = weighted("g (float[64, 64] x) => (float[64, 64] y) { h = MatMul (x, w)  y = Add (h, b) }", w=weights(64, 64), b=weights(64))
    target = tmp_path / "mine.toml"
    for missing, left in (("false", {"Gemm": 1}), ("true", {"MatMul": 1, "Add": 1})):
        target.write_text(f'base = "launches"\n[operators.Gemm]\nmissing = {missing}\n')
        assert operators(eqsat.optimize(model, target=target).model) == left


def test_models_that_differ_in_names_alone_are_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def counted(message: bytes, *rest: Any) -> bytes:
        asked.append(message)
        return own_graph(message, *rest)

    monkeypatch.setattr("eqsat.rewriting.valuation.own_graph", counted)
    one = parse("g (float[512] x) => (float[512] y) { h = Exp (x)  y = Tanh (h) }")
    other = parse("g (float[512] u) => (float[512] longer_than_before) { v = Exp (u)  longer_than_before = Tanh (v) }")
    dearer = parse("g (float[512] x) => (float[512] y) { h = Exp (x)  i = Exp (h)  y = Tanh (i) }")
    of = valuation()
    first, second, third = (of.figures(model, None) for model in (one, other, dearer))
    assert len(asked) == 2
    assert first.totals == second.totals != third.totals
    assert first.stored == written_bytes(one.graph) < second.stored == written_bytes(other.graph)


def test_a_refusal_holds_for_models_that_differ_in_names_alone() -> None:
    of = valuation()
    of.figures(PLAIN, None)
    other = parse("""<ir_version: 8, opset_import: ["": 17, "nowhere": 1]> g (float[2] u) => (float[2] v) { v = nowhere.Strange (u) }""", "")
    assert of.figures(STRANGE, None).refused and of.figures(other, None).refused


def test_multiply_adds_are_those_of_the_model_and_do_not_rise() -> None:
    """A block of MobileNetV2, of 20 and 36 channels: ONNX Runtime fills them up to whole vectors. A
    bias that a normalization leaves adds no product either.
    """
    channels = {name: np.abs(weights(36)) + 0.5 for name in ("s", "b", "m", "v")}
    model = weighted(
        """g (float[1, 20, 16, 16] x) => (float[1, 20, 16, 16] y)
        {
            e = Conv (x, expand)
            n = BatchNormalization (e, s, b, m, v)
            r = Clip (n, zero, six)
            d = Conv <group = 36, pads = [1, 1, 1, 1]> (r, deep)
            i = Identity (d)
            p = Conv (i, project)
            y = Add (x, p)
        }""",
        expand=weights(36, 20, 1, 1),
        deep=weights(36, 1, 3, 3),
        project=weights(20, 36, 1, 1),
        zero=np.float32(0),
        six=np.float32(6),
        **channels,
    )
    result = eqsat.optimize(model)
    cost = result.report["cost"]
    counted = 16 * 16 * (20 * 36 + 36 * 9 + 36 * 20)
    assert operators(result.model) == {"Conv": 3, "Clip": 1, "Add": 1}
    assert cost["asked"] and cost["before"]["multiply_adds"] == cost["after"]["multiply_adds"] == counted
    filled = sum(row.price.multiply_adds for row in valuation().rows(result.model, None))
    assert filled > counted, "the runtime's own graph has more"


def multiply_adds(model: onnx.ModelProto) -> float:
    """Returns the multiply-adds of a model, which are the same whether the runtime is asked or not."""
    asked, alone = valuation(), valuation()
    alone.asks = False
    found = asked.multiply_adds(model, asked.figures(model, None))
    assert alone.multiply_adds(model, alone.figures(model, None)) == found
    return found


def test_multiply_adds_of_attention_are_those_of_its_products() -> None:
    """Softmax has none, so they stay the same when one operator takes the place of all."""
    one = weighted("g (float[2, 4, 10, 16] q, float[2, 4, 12, 16] k, float[2, 4, 12, 16] v) => (y) { y = Attention (q, k, v) }", opset=24)
    many = parse(
        """g (float[2, 4, 10, 16] q, float[2, 4, 12, 16] k, float[2, 4, 12, 16] v) => (y)
        { t = Transpose <perm = [0, 1, 3, 2]> (k)  s = MatMul (q, t)  p = Softmax <axis = -1> (s)  y = MatMul (p, v) }"""
    )
    assert multiply_adds(one) == multiply_adds(many) == 2 * 4 * 10 * 12 * (16 + 16)


def test_multiply_adds_of_an_operator_that_onnx_can_not_type_behind_a_product() -> None:
    """The facts know the types where onnx's inference knows none."""
    text = "g (float[5, 6] x, float[6, 7] w, float[7, 8] v) => (y) {{ h = MatMul (x, w)  a = {domain}Gelu (h)  y = MatMul (a, v) }}"
    header = '<ir_version: 10, opset_import: ["": 20, "com.microsoft": 1]>'
    for domain in ("", "com.microsoft."):
        assert multiply_adds(parse(text.format(domain=domain), header)) == 5 * 6 * 7 + 5 * 7 * 8
