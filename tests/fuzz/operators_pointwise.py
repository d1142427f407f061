"""Drawing of elementwise operators by name: unary, binary, variadic, casts and quantization."""

from __future__ import annotations

from typing import Any

import numpy as np

from .chance import BFLOAT16, INT4, UINT4, is_float, is_whole
from .scope import Emitter, Scope, Value, element_code

_UNARY = (
    "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu "
    "Log Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu Dropout"
).split()
_BINARY = "Add Sub Mul Div And Or Xor BitwiseAnd BitwiseOr BitwiseXor Equal Greater GreaterOrEqual Less LessOrEqual PRelu".split()
_VARIADIC = "Max Mean Min Sum".split()

_FLOATS: dict[str, tuple[float, ...]] = {
    "alpha": (0.0, 0.5, 1.0, 2.0, -0.5, 0.2),
    "beta": (0.0, 0.5, 1.0, 2.0, -1.0),
    "gamma": (1.0, 0.5, 2.0),
    "lambd": (0.0, 0.5, 1.0),
    "bias": (0.0, 0.25),
}

CASTS = (np.float32, np.float32, np.float64, np.float16, np.int64, np.int32, np.int8, np.uint8, np.bool_, np.int16, np.uint16, np.uint32, np.uint64, BFLOAT16)


def unary(s: Scope, x: Value, operator: str) -> list[Value] | None:
    settings: dict[str, Any] = {name: s.chance.pick(numbers) for name, numbers in _FLOATS.items() if s.chance.often(0.4)}
    if operator == "Gelu":
        settings = {"approximate": s.chance.pick(["none", "tanh"])}
    if operator == "IsInf":
        settings = {name: s.chance.number(0, 1) for name in ("detect_negative", "detect_positive") if s.chance.often()}
    if operator == "Dropout":
        settings = {"ratio": np.float32(0.25)} if s.chance.often(0.3) else {}
        if s.opset < 12:
            settings = {"ratio": 0.25}
        return s.node(operator, [x], s.chance.number(1, 2), **settings)
    return s.node(operator, [x], **_of(operator, s, settings))


def _of(operator: str, s: Scope, settings: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings that are attributes of the operator."""
    from eqsat.operators import find_operator

    schema = find_operator("", operator, s.opset).schema
    return {name: value for name, value in settings.items() if schema is not None and name in schema.attributes}


def pair(s: Scope, x: Value, other: Value) -> list[Value]:
    return [x, other] if s.chance.often(0.6) else [other, x]


def binary(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if operator == "PRelu":
        return s.node(operator, [x, s.operand(x)])
    if operator == "Div" and is_whole(x.dtype):
        return s.node(operator, [x, s.literal(s.chance.whole(x.dtype, s.chance.pick([(), (1,), x.shape[-1:]]), 1, 5))])
    return s.node(operator, pair(s, x, x if s.chance.often(0.08) else s.operand(x)))


def variadic(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if operator == "Mean":  # the reference broadcasts only to the first operand
        return s.node(operator, [x, *(s.tensor(x.dtype, x.shape) for _ in range(s.chance.number(0, 2)))])
    return s.node(operator, s.chance.shuffled([x, *(s.operand(x) for _ in range(s.chance.pick([0, 1, 1, 2])))]))


def power(s: Scope, x: Value, operator: str) -> list[Value] | None:
    exponent = s.literal(np.asarray(s.chance.pick([2, 2, 1, 0, 3, 0.5, -1, 4]) if is_float(x.dtype) else s.chance.number(0, 3)).astype(x.dtype))
    return s.node(operator, [x, exponent if s.chance.often(0.8) else s.operand(x)])


def remainder(s: Scope, x: Value, operator: str) -> list[Value] | None:
    divisor = s.literal(s.chance.whole(x.dtype, s.chance.pick([(), (1,), x.shape[-1:]]), 1, 5))
    return s.node(operator, [x, divisor], fmod=1 if is_float(x.dtype) else s.chance.number(0, 1))


def shift(s: Scope, x: Value, operator: str) -> list[Value] | None:
    amount = s.literal(s.chance.whole(x.dtype, s.chance.pick([(), (1,), x.shape[-1:]]), 0, 6))
    return s.node(operator, [x, amount], direction=s.chance.pick(["LEFT", "RIGHT"]))


def clip(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if s.opset < 11:
        return s.node(operator, [x], **{name: bound for name, bound in {"min": -1.0, "max": s.chance.pick([0.5, 2.0, -2.0])}.items() if s.chance.often(0.7)})
    bounds = [s.literal(s.chance.constant(x.dtype, ())) if s.chance.often(0.75) else None for _ in range(2)]
    return s.node(operator, [x, *bounds])


def where(s: Scope, x: Value, operator: str) -> list[Value] | None:
    return s.node(operator, [s.operand(x, np.bool_), *pair(s, x, s.operand(x))])


def cast(s: Scope, x: Value, operator: str) -> list[Value] | None:
    kind = np.dtype(s.chance.pick(CASTS))
    if kind == np.bool_ or (is_whole(kind) and is_float(x.dtype)):
        # ONNX does not define the integer of a number outside its range.
        clipped = s.node("Clip", [x], min=-100.0, max=100.0) if s.opset < 11 else None
        if s.opset >= 11 and is_float(x.dtype) and x.dtype != BFLOAT16:
            low = 0 if kind.kind in "ub" else -100
            clipped = s.node("Clip", [x, s.literal(np.asarray(low, x.dtype)), s.literal(np.asarray(100, x.dtype))])
        x = clipped[0] if clipped else x
    if operator == "CastLike":
        return s.node(operator, [x, s.tensor(kind, s.sizes(0, 2))])
    return s.node(operator, [x], to=element_code(kind))


def reinterpret(s: Scope, x: Value, operator: str) -> list[Value] | None:
    kinds = [kind for kind in CASTS if np.dtype(kind).itemsize == x.dtype.itemsize]
    return s.node(operator, [x], to=element_code(np.dtype(s.chance.pick(kinds)))) if kinds else None


def _channels(s: Scope, x: Value) -> tuple[tuple[int, ...], dict[str, Any]]:
    """Returns the shape of scales, and the settings that name their axis."""
    if x.rank and s.opset >= 13 and s.chance.often(0.4):
        axis = s.chance.number(-x.rank, x.rank - 1)
        return (x.shape[axis],), {"axis": axis}
    return (), {}


def quantize(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if not is_float(x.dtype):
        return None
    shape, settings = _channels(s, x)
    if set(shape) & set(s.symbols):
        shape, settings = (), {}
    kind = np.dtype(s.chance.pick([np.int8, np.uint8, np.uint8, *([np.int16, np.uint16, INT4, UINT4] if s.opset >= 21 else [])]))
    scale = s.literal(s.chance.pick([np.full(shape, 0.25), np.abs(s.chance.ordinary(np.float64, shape)) + 0.05]).astype(x.dtype))
    zero = s.literal(s.chance.whole(kind, shape, 0, 6)) if s.chance.often(0.75) else None
    return s.node(operator, [x, scale, zero], **settings)


def dequantize(s: Scope, x: Value, operator: str) -> list[Value] | None:
    shape, settings = _channels(s, x)
    if set(shape) & set(s.symbols):
        shape, settings = (), {}
    scale = s.literal(s.chance.pick([np.full(shape, 0.5), np.abs(s.chance.ordinary(np.float64, shape)) + 0.05]).astype(np.float32))
    zero = s.literal(s.chance.whole(x.dtype, shape, 0, 6)) if s.chance.often(0.7) and x.dtype != np.int32 else None
    return s.node(operator, [x, scale, zero], **settings)


def dynamic(s: Scope, x: Value, operator: str) -> list[Value] | None:
    return s.node(operator, [x], 3)


def window(s: Scope, x: Value, operator: str) -> list[Value] | None:
    return s.node(operator, [s.literal(np.array(s.chance.number(1, 7), np.int64))], periodic=s.chance.number(0, 1))


def strings(s: Scope, x: Value, operator: str) -> list[Value] | None:
    return s.node(operator, [x, s.operand(x)]) if x.dtype == object else None


def loss(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if x.rank < 2 or x.dtype != np.float32 or 0 in x.shape:
        return None
    target = s.given(s.chance.whole(np.int64, (x.shape[0], *x.shape[2:]), 0, x.shape[1] - 1), high=1)
    return s.node(operator, [x, target], reduction=s.chance.pick(["none", "sum", "mean"]))


def fill(s: Scope, x: Value, operator: str) -> list[Value] | None:
    """Adds a tensor of one number, with the sizes of an existing tensor."""
    sizes = s.node("Shape", [x])
    kind = s.chance.pick([np.float32, x.dtype if x.dtype != object else np.float32, np.int64, np.bool_])
    value = s.chance.constant(kind, (1,))
    return s.node(operator, sizes, value=value) if sizes else None


def count(s: Scope, x: Value, operator: str) -> list[Value] | None:
    settings: dict[str, Any] = {}
    if operator == "Shape" and s.opset >= 15:
        settings = {name: s.chance.number(-3, 3) for name in ("start", "end") if s.chance.often(0.3)}
    return s.node(operator, [x], **settings)


def span(s: Scope, x: Value, operator: str) -> list[Value] | None:
    kind = s.chance.pick([np.int64, np.int64, np.float32, np.int32])
    low, high, step = s.chance.pick([(0, 5, 1), (1, 6, 2), (4, 0, -1), (0, 3, 1), (2, 2, 1)])
    ends = [s.literal(np.asarray(number, kind)) for number in (low, high, step)]
    size = s.node("Size", [x]) if kind is np.int64 and s.chance.often() else None
    return s.node(operator, [ends[0], size[0], s.literal(np.asarray(1, kind))] if size else ends)


def like(s: Scope, x: Value, operator: str) -> list[Value] | None:
    return s.node(operator, [x], k=s.chance.number(-1, 2)) if x.rank == 2 else None


POINTWISE: dict[str, Emitter] = {
    **dict.fromkeys(_UNARY, unary),
    **dict.fromkeys(_BINARY, binary),
    **dict.fromkeys(_VARIADIC, variadic),
    **dict.fromkeys(("Cast", "CastLike"), cast),
    **dict.fromkeys(("HannWindow", "HammingWindow", "BlackmanWindow"), window),
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), loss),
    "BitCast": reinterpret,
    "BitShift": shift,
    "Clip": clip,
    "ConstantOfShape": fill,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic,
    "EyeLike": like,
    "Mod": remainder,
    "Pow": power,
    "QuantizeLinear": quantize,
    "Range": span,
    "Shape": count,
    "Size": count,
    "StringConcat": strings,
    "Where": where,
}
