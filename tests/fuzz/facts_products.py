"""Programs of sums of products and of quantized values, for the fuzzer of facts.

A program begins with a value whose bounds are known and often reached, so that a sum whose bound is
too narrow passes it. Weights are few, since facts hold the elements of small constants only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from .facts_draw import FLOAT, Array, Draw
from .facts_models import Drawn

INT8, UINT8, FLOAT16, DOUBLE = (int(TensorProto.DataType.Value(name)) for name in "INT8 UINT8 FLOAT16 DOUBLE".split())
_KINDS = {FLOAT: np.float32, FLOAT16: np.float16, DOUBLE: np.float64, INT8: np.int8, UINT8: np.uint8}
_NUMBERS = (-2, -1, -0.5, -0.1, 0, 0.25, 0.3, 1, 3)
_HUGE = (3e4, -3e4)


def product_program(drawn: Drawn, draw: Draw) -> None:
    """Adds a bounded input, and nodes that multiply, add, quantize and restore it."""
    drawn.base["N"] = draw.number(1, 3)
    value, dtype = _bounded(drawn, draw)
    for _ in range(draw.number(1, 4)):
        value = draw.pick(*_STEPS)(drawn, draw, value, dtype)
        if draw.chance(0.4):
            drawn.add(draw.pick("Relu", "Sign", "Abs"), [value])


def _bounded(drawn: Drawn, draw: Draw) -> tuple[str, int]:
    """Adds a value of the sizes N, 2, 3, 3: clipped, restored from integers, or of any numbers."""
    x = drawn.fresh("x")
    dtype = draw.pick(FLOAT, FLOAT, FLOAT, FLOAT16, DOUBLE)
    kind = INT8 if draw.chance() else dtype
    drawn.inputs[x] = kind, ["N", 2, 3, 3]
    drawn.bounds[x] = (-4, 4)
    drawn.wild.add(x)
    if kind == INT8:
        return drawn.add("Cast", [x], {"to": dtype})[0], dtype
    if draw.chance(0.8):
        low = draw.pick(-2, -0.3, 0, 0.1, 1)
        ends = [drawn.constant(np.array(end).astype(_KINDS[dtype])) for end in (low, low + draw.pick(0.2, 1, 3))]
        x = drawn.add("Clip", [x, *ends])[0]
        # Only a tensor without NaN has a range without NaN.
        isnan = drawn.add("IsNaN", [x])[0]
        x = drawn.add("Where", [isnan, ends[0], x])[0]
    return x, dtype


def _weights(draw: Draw, shape: tuple[int, ...], dtype: int) -> Array:
    if draw.chance(0.2):
        return np.full(shape, draw.pick(*_NUMBERS)).astype(_KINDS[dtype])
    numbers = (0, 0.25, 0.3, 1, 3) if draw.chance(0.3) else (*_NUMBERS, *(_HUGE if draw.chance(0.2) else ()))
    return draw.random.choice(np.array(numbers, np.float64), shape).astype(_KINDS[dtype])


def _matmul(drawn: Drawn, draw: Draw, x: str, dtype: int) -> str:
    weight = drawn.constant(_weights(draw, draw.pick((3, 3), (2, 3, 3)), dtype))
    return drawn.add("MatMul", draw.pick([x, weight], [weight, x], [x, x]))[0]


def _gemm(drawn: Drawn, draw: Draw, x: str, dtype: int) -> str:
    rows = drawn.add("Reshape", [x, drawn.constant(np.array([-1, 3]))])[0]
    other = drawn.constant(_weights(draw, (3, 3), dtype))
    term = [drawn.constant(_weights(draw, draw.pick((3,), (1,), (1, 3)), dtype))] if draw.chance(0.6) else []
    attributes = {"alpha": draw.pick(1.0, 0.3, -2.0), "beta": draw.pick(1.0, -1.0, 0.1), "transB": draw.number(0, 1)}
    made = drawn.add("Gemm", [rows, other, *term], attributes)[0]
    return drawn.add("Reshape", [made, drawn.constant(np.array([-1, 2, 3, 3]))])[0]


def _conv(drawn: Drawn, draw: Draw, x: str, dtype: int) -> str:
    group = draw.pick(1, 1, 2)
    size = draw.pick(1, 3)
    inputs = [x, drawn.constant(_weights(draw, (2, 2 // group, size, size), dtype))]
    if draw.chance():
        inputs.append(drawn.constant(_weights(draw, (2,), dtype)))
    return drawn.add("Conv", inputs, {"group": group, "pads": [size // 2] * 4})[0]


def _requantized(drawn: Drawn, draw: Draw, x: str, dtype: int) -> str:
    kind = draw.pick(INT8, UINT8)
    scale = drawn.constant(np.array(draw.pick(0.1, 0.3, 1, 0.0078125)).astype(_KINDS[dtype]))
    zero = drawn.constant(np.array(draw.pick(0, 3, 100), _KINDS[kind]))
    whole = drawn.add("QuantizeLinear", [x, scale, zero])[0]
    return drawn.add("DequantizeLinear", [whole, scale, zero])[0]


Step = Callable[[Drawn, Draw, str, int], str]
_STEPS: tuple[Step, ...] = (_matmul, _matmul, _gemm, _conv, _conv, _requantized)
