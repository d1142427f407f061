"""Programs of bounded values, for the fuzzer of facts.

A program computes with tensors whose inputs hold NaN, infinities, zeros of both signs and numbers
of all magnitudes, so that a range that is too narrow meets an element outside of it. Most programs
begin with values of which much is known: floats made of integers are never NaN, and clipped ones
have bounds away from zero, at which many elements lie.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from .facts_draw import BOOL, FLOAT, INT64, Draw
from .facts_models import Drawn

DOUBLE, FLOAT16 = int(TensorProto.DOUBLE), int(TensorProto.FLOAT16)
_FLOATS = (FLOAT, FLOAT, FLOAT, DOUBLE, FLOAT16, FLOAT16)
_INTEGERS = (INT64, int(TensorProto.INT32), int(TensorProto.INT8), int(TensorProto.UINT8))
_KINDS = {FLOAT: np.float32, DOUBLE: np.float64, FLOAT16: np.float16, INT64: np.int64, _INTEGERS[1]: np.int32, _INTEGERS[2]: np.int8, _INTEGERS[3]: np.uint8}
_NUMBERS = (-3, -1, -0.5, 0, 0.25, 1, 2, 6)
# Numbers that are rounded, vanish or overflow.
_ODD = (0.1, 0.3, 0.7, 2.7, -0.1, 1e-6, -1e-6, 3e4, -3e4, 3e38, -3e38, np.inf, -np.inf)
_LOWER = (0.1, 0.3, 0.7, 1, -0.3, -0.1)  # lower bounds of clipped values
_UNARY = """
    AveragePool Sign Sign
    Abs Acos Acosh Ceil Cos Cosh Erf Exp Floor HardSigmoid LogSoftmax Neg Reciprocal Relu Round Sigmoid Sign Sin Softmax Softplus Sqrt Tanh
    ReduceL2 ReduceMean ReduceSum ReduceProd ReduceMax ReduceMin Clip Cast Cast Pow Pad MaxPool AveragePool GlobalMaxPool GlobalAveragePool
""".split()
_WHOLE = "Abs Neg Sign Clip Relu Cast Cast ReduceMax ReduceMin Mod Div".split()
_BINARY = "Add Add Sub Mul Mul Mul Div".split()
_VARIADIC = "Max Min Mean Mean Sum".split()
_COMPARED = "Less LessOrEqual Greater GreaterOrEqual Equal".split()


def ranged_program(drawn: Drawn, draw: Draw) -> None:
    """Adds inputs, and nodes whose results have ranges."""
    values: dict[str, int] = {}
    for _ in range(draw.number(1, 3)):
        name = drawn.fresh("x")
        dtype = draw.pick(*_FLOATS) if draw.chance() else draw.pick(*_INTEGERS)
        drawn.inputs[name] = dtype, ["N", 3, 4, 4]
        drawn.bounds[name] = (-4, 4) if dtype in _INTEGERS else (-draw.pick(4, 30), 30)
        drawn.wild.add(name)
        values[name] = dtype
        if draw.chance(0.7):
            _bound(drawn, draw, name, values)
    drawn.base["N"] = draw.number(1, 5)
    for _ in range(draw.number(4, 14)):
        _node(drawn, draw, values)


def _bound(drawn: Drawn, draw: Draw, x: str, values: dict[str, int]) -> None:
    """Adds a float of which much is known: it is made of an integer, or infinite or clipped."""
    dtype = values[x]
    if dtype in _INTEGERS:
        dtype = draw.pick(*_FLOATS)
        x = drawn.add("Cast", [x], {"to": dtype})[0]
        values[x] = dtype
    if draw.chance(0.4):  # an overflow makes infinities without NaN
        huge = drawn.constant(np.array(np.finfo(_KINDS[dtype]).max / 2, _KINDS[dtype]))
        values[drawn.add("Mul", [x, huge])[0]] = dtype
    if draw.chance():
        low = draw.pick(*_LOWER)
        ends = [drawn.constant(np.array(end).astype(_KINDS[dtype])) for end in (low, low + draw.pick(0.2, 0.4, 3))]
        values[drawn.add("Clip", [x, *ends])[0]] = dtype


def _node(drawn: Drawn, draw: Draw, values: dict[str, int]) -> None:
    # Later values are more likely, so that programs are deep.
    x = list(values)[-1] if draw.chance(0.4) else draw.pick(*values)
    dtype = values[x]
    if dtype == BOOL:
        _condition(drawn, draw, values, x)
    elif draw.chance(0.45):
        name = draw.pick(*(_UNARY if dtype in _FLOATS else _WHOLE))
        found, values[found] = _SPECIAL.get(name, _plain(name))(drawn, draw, x, dtype)
    else:
        many = draw.chance(0.3)
        others = [_other(drawn, draw, values, dtype) for _ in range(draw.number(0, 3) if many else 1)]
        if many and draw.chance(0.4):
            others = [x] * len(others)  # at a bound, all of them are
        if dtype in _FLOATS:
            name = draw.pick(*_VARIADIC) if many else draw.pick(*_BINARY, *_COMPARED)
            name = "Sum" if name == "Mean" and dtype == DOUBLE else name  # the runtime has no kernel
        else:
            name = draw.pick("Max", "Min") if many else draw.pick(*_BINARY[:-1], *_COMPARED)  # a divisor may be 0
        found = drawn.add(name, [x, *others])[0]
        values[found] = BOOL if name in _COMPARED else dtype


def _other(drawn: Drawn, draw: Draw, values: dict[str, int], dtype: int) -> str:
    return draw.pick(*(name for name, own in values.items() if own == dtype)) if draw.chance(0.6) else _constant(drawn, draw, dtype)


def _condition(drawn: Drawn, draw: Draw, values: dict[str, int], x: str) -> None:
    numbers = [name for name, dtype in values.items() if dtype != BOOL]
    a = draw.pick(*numbers)
    b = draw.pick(*(name for name in numbers if values[name] == values[a]))
    if draw.chance():
        values[drawn.add("Where", [x, a, b])[0]] = values[a]
    elif draw.chance():
        values[drawn.add("Not", [x])[0]] = BOOL
    else:
        other = draw.pick(*(name for name, dtype in values.items() if dtype == BOOL))
        values[drawn.add(draw.pick("And", "Or"), [x, other])[0]] = BOOL


def _constant(drawn: Drawn, draw: Draw, dtype: int) -> str:
    number = draw.pick(*_ODD) if dtype in _FLOATS and draw.chance(0.4) else draw.pick(*_NUMBERS)
    with np.errstate(over="ignore"):
        return drawn.constant(np.array(abs(number) if dtype == _INTEGERS[3] else number).astype(_KINDS[dtype]))


Made = tuple[str, int]


def _plain(name: str) -> Callable[[Drawn, Draw, str, int], Made]:
    def add(drawn: Drawn, draw: Draw, x: str, dtype: int) -> Made:
        return drawn.add(name, [x], {"keepdims": 1} if name.startswith("Reduce") else {})[0], dtype

    return add


def _clip(drawn: Drawn, draw: Draw, x: str, dtype: int) -> Made:
    low, high = (_constant(drawn, draw, dtype) if draw.chance(0.7) else "" for _ in range(2))
    return drawn.add("Clip", [x, low, high])[0], dtype


def _cast(drawn: Drawn, draw: Draw, x: str, dtype: int) -> Made:
    to = draw.pick(FLOAT, FLOAT16, INT64, *_INTEGERS, BOOL) if dtype not in _FLOATS else draw.pick(*_FLOATS, INT64, BOOL)
    return drawn.add("Cast", [x], {"to": to})[0], to


def _power(drawn: Drawn, draw: Draw, x: str, dtype: int) -> Made:
    return drawn.add("Pow", [x, _constant(drawn, draw, dtype)])[0], dtype


def _pad(drawn: Drawn, draw: Draw, x: str, dtype: int) -> Made:
    value = [_constant(drawn, draw, dtype)] if draw.chance() else []
    return drawn.add("Pad", [x, drawn.constant(np.array([0, 0, 0, 1, 0, 0, 1, 0])), *value], {"mode": draw.pick("constant", "constant", "edge")})[0], dtype


def _pool(name: str) -> Callable[[Drawn, Draw, str, int], Made]:
    def add(drawn: Drawn, draw: Draw, x: str, dtype: int) -> Made:
        window = {"kernel_shape": [2, 2], "pads": draw.pick([0, 0, 0, 0], [1, 1, 1, 1]), "strides": draw.pick([1, 1], [2, 2], [3, 3])}
        more = {"ceil_mode": draw.number(0, 1)} | ({"count_include_pad": draw.number(0, 1)} if name == "AveragePool" else {})
        return drawn.add(name, [x], window | more)[0], dtype

    return add


def _by_positive(name: str) -> Callable[[Drawn, Draw, str, int], Made]:
    def add(drawn: Drawn, draw: Draw, x: str, dtype: int) -> Made:
        return drawn.add(name, [x, drawn.constant(np.array(draw.pick(1, 2, 5, 100)).astype(_KINDS[dtype]))])[0], dtype

    return add


_SPECIAL: dict[str, Callable[[Drawn, Draw, str, int], Made]] = {
    "AveragePool": _pool("AveragePool"),
    "Cast": _cast,
    "Clip": _clip,
    "Div": _by_positive("Div"),
    "MaxPool": _pool("MaxPool"),
    "Mod": _by_positive("Mod"),
    "Pad": _pad,
    "Pow": _power,
}
