"""Operators between DequantizeLinear and QuantizeLinear are one kernel of a target that has such kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

import eqsat
from tests.support.models import operators, parse

KERNELS = """
base = "launches"
[operators."com.acme.QuantizedMul"]
class = "quantize"
[[quantized]]
operators = ["Mul", "Concat"]
becomes = "com.acme.QuantizedMul"
dtypes = ["uint8"]
"""
CONSTANTS = "<float s = {0.5}, uint8 z = {3}, float t = {0.25}>"


def optimized(text: str, folder: Path, **options: Any) -> eqsat.Result:
    target = folder / "kernels.toml"
    target.write_text(KERNELS)
    return eqsat.optimize(parse(text), target=target, **options)


def cost(result: eqsat.Result) -> float:
    return result.report["extraction"]["cost"]


@pytest.mark.parametrize("node", ["Mul (a, b)", "Concat <axis = 0> (a, b)"])
def test_the_whole_costs_one_kernel(node: str, tmp_path: Path) -> None:
    text = f"""g (uint8[8] p, uint8[8] q) => (uint8[m] y) {CONSTANTS} {{
        a = DequantizeLinear (p, s, z)  b = DequantizeLinear (q, s, z)  c = {node}  y = QuantizeLinear (c, t, z) }}"""
    result = optimized(text, tmp_path, only=["dropout-nothing"])
    assert cost(result) == 1
    assert operators(result.model) == operators(parse(text)), "the nodes stay as they are"


def test_what_is_dequantized_may_have_other_readers(tmp_path: Path) -> None:
    text = f"""g (uint8[8] p) => (uint8[8] y, float[8] e) {CONSTANTS} {{
        a = DequantizeLinear (p, s, z)  c = Mul (a, a)  y = QuantizeLinear (c, t, z)  e = Exp (a) }}"""
    assert cost(optimized(text, tmp_path, only=["dropout-nothing"])) == 3, "the kernel, DequantizeLinear and Exp"


def test_a_result_that_is_read_elsewhere_is_no_part_of_a_kernel(tmp_path: Path) -> None:
    text = f"""g (uint8[8] p) => (uint8[8] y, float[8] c) {CONSTANTS} {{
        a = DequantizeLinear (p, s, z)  c = Mul (a, a)  y = QuantizeLinear (c, t, z) }}"""
    assert cost(optimized(text, tmp_path, only=["dropout-nothing"])) == 3


SLOW = (
    KERNELS
    + """
[operators."com.acme.SlowExp"]
class = "quantize"
launches = 9
[[quantized]]
operators = ["Exp"]
becomes = "com.acme.SlowExp"
dtypes = ["uint8"]
"""
)
# The same exponential, in a form that has no quantized kernel.
POW = """
real rule pow:
    Exp(x) => Pow(T(2.718281828459045), x)
    where x: T
    test x: float[2]
"""


def test_a_dearer_kernel_is_avoided(tmp_path: Path) -> None:
    target = tmp_path / "slow.toml"
    target.write_text(SLOW)
    model = parse(f"g (uint8[8] p) => (uint8[8] y) {CONSTANTS} {{ a = DequantizeLinear (p, s, z)  c = Exp (a)  y = QuantizeLinear (c, t, z) }}")
    result = eqsat.optimize(model, target=target, rules=[POW])
    assert operators(result.model) == {"DequantizeLinear": 1, "Pow": 1, "QuantizeLinear": 1}


def test_a_product_whose_result_gets_another_type_is_no_kernel(tmp_path: Path) -> None:
    target = tmp_path / "floats.toml"
    target.write_text(KERNELS + 'floats = "com.acme.QuantizedMul"\n')
    text = """g (uint8[8] p) => (int8[8] y) <float s = {0.5}, uint8 z = {3}, int8 v = {3}> {
        a = DequantizeLinear (p, s, z)  c = Mul (a, a)  y = QuantizeLinear (c, s, v) }"""
    assert cost(eqsat.optimize(parse(text), target=target, only=["dropout-nothing"])) == 3
    alone = text.replace("int8[8] y", "float[8] y").replace("c = Mul (a, a)  y = QuantizeLinear (c, s, v)", "y = Mul (a, a)")
    assert cost(eqsat.optimize(parse(alone), target=target, only=["dropout-nothing"])) == 1


def test_a_sign_is_removed_where_that_makes_a_kernel(tmp_path: Path) -> None:
    text = """g (float[8] x) => (float[8] y, float[8] e) <float s = {0.5}, int8 z = {-3}, float t = {0.25}> {
        q = QuantizeLinear (x, s, z)  a = DequantizeLinear (q, s, z)  c = Mul (a, a)
        r = QuantizeLinear (c, t, z)  d = DequantizeLinear (r, t, z)  y = Exp (d)  e = Tanh (d) }"""
    result = optimized(text, tmp_path)
    assert cost(result) == 5, "QuantizeLinear, the kernel, DequantizeLinear, Exp and Tanh"
    assert result.report["verify"]["status"] == "equal"
    assert {tensor.data_type for tensor in result.model.graph.initializer if not tensor.dims} == {onnx.TensorProto.FLOAT, onnx.TensorProto.UINT8}


def test_a_kernel_holds_no_node_that_does_nothing(tmp_path: Path) -> None:
    """A product with ones is one class with its operand, so the kernel would be made of its own result."""
    text = """g (uint8[8] p) => (uint8[8] y, float[8] e) <float s = {0.5}, uint8 z = {3}, uint8[8] one = {5,5,5,5,5,5,5,5}> {
        a = DequantizeLinear (p, s, z)  b = DequantizeLinear (one, s, z)  c = Mul (a, b)
        y = QuantizeLinear (c, s, z)  f = DequantizeLinear (y, s, z)  e = Exp (f) }"""
    result = optimized(text, tmp_path)
    assert result.report["notes"] == []
    assert "Mul" not in operators(result.model)
