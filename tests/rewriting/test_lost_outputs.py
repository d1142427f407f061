"""ONNX Runtime loses some outputs when it loads a model: such a result gets an Identity."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model
from onnx.reference import ReferenceEvaluator

import eqsat
from eqsat.rewriting.lost_outputs import with_outputs_kept
from tests.support.models import loads, operators

HEAD = '<ir_version: 8, opset_import: ["": 18]>'
LOST = "t = Transpose (b) q = Gemm (a, t) p = Transpose (q)"
KEPT = [
    "t = Transpose (b) q = Gemm (a, t, c) p = Transpose (q)",
    "q = Gemm <transB = 1> (a, b) p = Transpose (q)",
    "t = Transpose (b) q = Gemm (a, t) r = Relu (q) p = Transpose (r)",
    "t = Transpose (b) q = Gemm (a, t) s = Neg (q) r = Transpose (q) p = Mul (r, r)",
    "t = Transpose (b) q = MatMul (a, t) p = Transpose (q)",
]


def model_of(text: str) -> onnx.ModelProto:
    other = ", float[N, 5] s" if "s =" in text else ""
    return parse_model(f"{HEAD} g (float[N, 8] a, float[5, 8] b) => (float[5, N] p, float[N, 5] q{other}) <float[5] c = {{1, 2, 3, 4, 5}}> {{ {text} }}")


def test_an_output_that_would_be_lost_is_kept() -> None:
    model = model_of(LOST)
    assert not loads(model)  # should ONNX Runtime be mended, the module can go
    result = with_outputs_kept(model)
    assert loads(result) and operators(result)["Identity"] == 1 and operators(model)["Identity"] == 0


@pytest.mark.parametrize("target", ["onnxruntime-cpu", "launches"])
@pytest.mark.parametrize("skipped", [(), ("gemm-transpose-first", "gemm-transpose-second", "transpose-gemm")])
def test_a_result_loads_whether_or_not_its_gemm_absorbs_the_transpose(target: str, skipped: tuple[str, ...]) -> None:
    model = with_outputs_kept(model_of(LOST))
    result = eqsat.optimize(model, target=target, skip=skipped)
    assert result.report["verify"]["status"] == "equal" and loads(result.model)
    assert operators(result.model)["Transpose"] == (2 if skipped else 1)


@pytest.mark.parametrize("text", KEPT)
def test_a_model_that_loses_nothing_stays_as_it_is(text: str) -> None:
    model = model_of(text)
    assert with_outputs_kept(model) is model and loads(model)


def test_several_outputs_of_bodies_are_kept() -> None:
    body = "t = Transpose (a) u = Gemm (a, t) v = Transpose (u) w = Gemm (v, outside) x = Transpose (w)"
    types = "float[5, 5] {}, float[5, 5] {}, float[5, 5] {}"
    model = parse_model(
        f"""{HEAD} g (float[5, 5] a, bool c) => ({types.format(*"pqr")}) {{
            outside = Transpose (a)
            p, q, r = If (c) <then_branch = y () => ({types.format(*"uwx")}) {{ {body} }},
                else_branch = z () => ({types.format(*"def")}) {{ d = Neg (a) e = Neg (a) f = Neg (a) }}> }}"""
    )
    result = with_outputs_kept(model)
    (branch,) = [attribute.g for attribute in result.graph.node[1].attribute if attribute.name == "then_branch"]
    assert [node.op_type for node in branch.node] == ["Transpose", "Gemm", "Identity", "Transpose", "Gemm", "Identity", "Transpose"]
    onnx.checker.check_model(result, full_check=True)
    assert loads(result)
    feeds = {"a": np.arange(25, dtype=np.float32).reshape(5, 5), "c": np.array(True)}
    for expected, found in zip(ReferenceEvaluator(model).run(None, feeds), ReferenceEvaluator(result).run(None, feeds), strict=True):
        np.testing.assert_array_equal(expected, found)
