"""Nodes that follow the first one in the fuzzer of facts.

They move elements, or compute integers from sizes, which decide other sizes.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from .facts_draw import BOOL, FLOAT, INT32, INT64, Draw
from .facts_models import Drawn


def move(drawn: Drawn, draw: Draw, x: str) -> str:
    """Returns a node that moves the elements of a tensor of any type."""
    kind = draw.number(0, 13)
    if kind == 0:
        return drawn.add("Identity", [x])[0]
    if kind == 1:
        return drawn.add("Flatten", [x], {"axis": draw.number(0, 1)})[0]
    if kind <= 3:
        return drawn.add("Reshape", [x, drawn.constant(np.array(draw.pick([-1], [0, -1], [-1, 1], [0, 0, -1], [1, -1], [-1, 2]), np.int64))])[0]
    if kind == 4:
        return drawn.add("Transpose", [x])[0]
    if kind == 5:
        return drawn.add("Concat", [x, x], {"axis": draw.pick(0, 0, 1)})[0]
    if kind <= 7 and drawn.opset >= 10:
        bounds = [draw.pick(0, 1, -1, 2, -2), draw.pick(-1, 2, 4, 2**63 - 1), draw.pick(0, 0, 1), draw.pick(1, 1, 2)]
        return drawn.add("Slice", [x, *(drawn.constant(np.array([bound], np.int64)) for bound in bounds)])[0]
    if kind == 8:
        return drawn.add("Gather", [x, drawn.constant(np.array(draw.pick(0, [0], [0, 0], [[0]]), np.int64))], {"axis": draw.pick(0, 0, 1)})[0]
    if kind == 9:
        return drawn.listed("Unsqueeze", x, "axes", draw.pick([0], [1], [0, 1]))
    if kind == 10:
        return drawn.add("Squeeze", [x])[0]
    if kind == 11:
        return drawn.add("Split", [x], {"axis": 0} | ({"num_outputs": 2} if drawn.opset >= 18 else {}), 2)[1]
    if kind == 12 and drawn.opset >= 8:
        return drawn.add("Expand", [x, drawn.constant(np.array(draw.pick([1], [2, 1, 1], [3], [1, 3, 1, 1]), np.int64))])[0]
    shape = drawn.add("Shape", [x])[0]
    return drawn.add("Reshape", [x, shape])[0]


def followers(drawn: Drawn, draw: Draw, x: str) -> None:
    for _ in range(draw.number(1, 3)):
        x = move(drawn, draw, x)
    if draw.chance(0.3):
        shape_program(drawn, draw, x)


def tensor(drawn: Drawn, draw: Draw) -> str:
    name = drawn.fresh("x")
    declared: list[int | str | None] = [draw.pick(draw.size(), "N", "N", "M", None) for _ in range(draw.number(1, 4))]
    drawn.inputs[name] = FLOAT, declared
    drawn.bounds[name] = -4, 4
    drawn.base |= {size or f"?{name}.{axis}": draw.number(1, 6) for axis, size in enumerate(declared) if not isinstance(size, int)}
    return name


def shape_program(drawn: Drawn, draw: Draw, x: str) -> None:
    """Adds integers computed from the sizes of a tensor, and a node that they control."""
    values = [drawn.add("Shape", [x])[0]]
    for _ in range(draw.number(2, 9)):
        values.append(integers(drawn, draw, values, x))
    last = values[-1]
    kind = draw.number(0, 8)
    if kind == 0:
        drawn.add("Reshape", [x, last])
    elif kind == 1 and drawn.opset >= 9:
        drawn.add("ConstantOfShape", [last])
    elif kind == 2 and drawn.opset >= 8:
        drawn.add("Expand", [drawn.constant(np.array(1.0, np.float32)), last])
    elif kind == 3 and drawn.opset >= 10:
        first = drawn.add("Gather", [last, drawn.constant(np.array([0]))])[0]
        drawn.add(
            "Slice", [x, drawn.constant(np.array([draw.pick(0, 1, -2)])), first, drawn.constant(np.array([0])), drawn.constant(np.array([draw.pick(1, 2)]))]
        )
    elif kind == 4 and drawn.opset >= 11:
        first = drawn.add("Gather", [last, drawn.constant(np.array(0))])[0]
        drawn.add("Range", [drawn.constant(np.array(draw.number(-1, 1))), first, drawn.constant(np.array(draw.pick(1, 2, -1)))])
    elif kind == 5:
        drawn.add("Tile", [x, last])
    elif kind == 6:
        move(drawn, draw, last)
    elif kind == 7 and drawn.opset >= 11:
        drawn.add("Pad", [drawn.constant(np.ones(2, np.float32)), drawn.add("Concat", [last, last], {"axis": 0})[0]])


_EXTREMES = (2**31 - 1, 2**31, -(2**31), 2**53 + 1, 2**62, 2**63 - 1, -(2**63))
_ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Div", "Max", "Min", "Mod", "Pow")


def integers(drawn: Drawn, draw: Draw, values: list[str], x: str) -> str:
    """Returns another list of integers."""
    a, b = draw.pick(*values), draw.pick(*values)
    kind = draw.number(0, 20)
    if kind <= 6:
        name = draw.pick(*_ARITHMETIC)
        if (name == "Mod" and drawn.opset < 10) or (name in ("Max", "Min", "Pow") and drawn.opset < 12):
            name = "Mul"
        other = b if draw.chance(0.35) else drawn.constant(np.array(draw.pick([1], [2], [3], 2, [-1], [0], [-3], [7], 64, [draw.pick(*_EXTREMES)]), np.int64))
        pair = [a, other] if draw.chance(0.75) else [other, a]
        return drawn.add(name, pair, {"fmod": 1} if name == "Mod" and draw.chance(0.3) else {})[0]
    if kind == 7:
        return drawn.add(draw.pick("Neg", "Abs", "Identity", *(("Sign",) if drawn.opset >= 9 else ())), [a])[0]
    if kind == 8:
        return drawn.add("Concat", [a, b] if draw.chance() else [a, drawn.constant(np.array([draw.number(-1, 4)]))], {"axis": 0})[0]
    if kind == 9:
        return drawn.add("Gather", [a, drawn.constant(np.array(draw.pick([0], [0, 0], [1], [-1] if drawn.opset >= 11 else [1]), np.int64))])[0]
    if kind == 10 and drawn.opset >= 10:
        cut = draw.pick((0, 1, 1), (1, 2**63 - 1, 1), (-1, -(2**63), -1), (0, -1, 1), (-2, 2**31 - 1, 1), (0, 9, 2))
        bounds = [drawn.constant(np.array([bound], np.int64)) for bound in (cut[0], cut[1], 0, cut[2])]
        return drawn.add("Slice", [a, *bounds])[0]
    if kind == 11:
        name = draw.pick("ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin")
        return drawn.add(name, [a], {"keepdims": 1})[0]
    if kind == 12:
        to = draw.pick(INT32, FLOAT, BOOL, TensorProto.INT8, TensorProto.UINT8, TensorProto.DOUBLE)
        return drawn.add("Cast", [drawn.add("Cast", [a], {"to": to})[0]], {"to": INT64})[0]
    if kind == 13 and drawn.opset >= 9:
        less = drawn.add(draw.pick("Less", "Equal", "Greater"), [a, b if draw.chance() else drawn.constant(np.array([draw.number(0, 4)]))])[0]
        less = drawn.add("Not", [less])[0] if draw.chance(0.3) else less
        return (
            drawn.add("Where", [less, a, drawn.constant(np.array([draw.number(-1, 5)]))])[0] if draw.chance() else drawn.add("Cast", [less], {"to": INT64})[0]
        )
    if kind == 14:
        return drawn.listed("Unsqueeze", drawn.add("Size", [x])[0], "axes", [0])
    if kind == 15 and drawn.opset >= 11:
        return drawn.add("CumSum", [a, drawn.constant(np.array(0))], {"exclusive": draw.number(0, 1), "reverse": draw.number(0, 1)})[0]
    if kind == 16 and drawn.opset >= 11:
        return drawn.add("Range", [drawn.constant(np.array(0)), drawn.add("Size", [a])[0], drawn.constant(np.array(1))])[0]
    if kind == 17 and drawn.opset >= 9:
        size = drawn.add("Shape", [a])[0]
        return drawn.add("ConstantOfShape", [size], {"value": numpy_helper.from_array(np.array([draw.number(-1, 2)]))})[0]
    if kind == 18:
        return drawn.add("Split", [a], {"axis": 0} | ({"num_outputs": 2} if drawn.opset >= 18 else {}), 2)[draw.number(0, 1)]
    if kind == 19 and drawn.opset >= 15:
        return drawn.add("Shape", [x], {"start": draw.number(-3, 2), "end": draw.number(-2, 4)})[0]
    if kind == 20 and drawn.opset >= 9:
        return drawn.add("Reshape", [drawn.add("NonZero", [a])[0], drawn.constant(np.array([-1]))])[0]
    return drawn.add("Tile", [a, drawn.constant(np.array([2]))])[0]
