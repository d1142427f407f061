"""A table of functions that draw legal nodes of elementwise, reducing and generating operators."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from eqsat.families import FAMILIES

from .facts_draw import BOOL, FLOAT, INT32, INT64, STRING, Case, Draw, Fixed, Free, Maker, listed, scalar


def unary(low: float = -4, high: float = 4, least: int = 0, **attributes: Any) -> Maker:
    """Draws operators of one tensor; tuples are choices of attributes."""
    return lambda draw: Case([Free(draw.shape(least), low, high)], draw.some(**attributes))


def broadcasting(count: int | None = None, low: float = -4, high: float = 4, **attributes: Any) -> Maker:
    """Draws operators of `count` tensors that broadcast, or of any number of them."""
    return lambda draw: Case([Free(shape, low, high) for shape in draw.operands(count or draw.number(1, 3))], draw.some(**attributes))


def along(least: int = 1, **attributes: Any) -> Maker:
    """Draws operators of one tensor along an axis."""

    def make(draw: Draw) -> Case:
        shape = draw.shape(least)
        return Case([Free(shape)], draw.some(axis=draw.axis(len(shape)), **attributes))

    return make


def reduction(draw: Draw) -> Case:
    assert draw.schema is not None
    shape = draw.shape()
    axes = draw.pick(None, draw.axes(len(shape), 0)) if shape else None
    return listed(draw, "axes", axes, 13 if draw.schema.name == "ReduceSum" else 18, [Free(shape, 1)], **draw.some(keepdims=(0, 1), noop_with_empty_axes=1))


def extreme(draw: Draw) -> Case:
    shape = draw.shape(1)
    return Case([Free(shape)], draw.some(axis=draw.axis(len(shape)), keepdims=0, select_last_index=1))


def bits(draw: Draw) -> Case:
    return Case([Free(shape, 0, 5, TensorProto.UINT8) for shape in draw.operands(2)], {"direction": draw.pick("LEFT", "RIGHT")})


def modulo(draw: Draw) -> Case:
    whole = draw.chance()
    a, b = draw.operands(2)
    dtype = draw.pick(INT32, INT64) if whole else FLOAT
    return Case([Free(a, -9, 9, dtype), Free(b, 1, 5, dtype)], {"fmod": 1} if not whole or draw.chance() else {})


def power(draw: Draw) -> Case:
    a, b = draw.operands(2)
    return Case([Free(a, 1, 3), Free(b, 0, 3)])


def clip(draw: Draw) -> Case:
    if draw.version < 11:
        return Case([Free(draw.shape())], draw.some(min=-1.5, max=2.5))
    return Case([Free(draw.shape()), draw.pick(None, Free((), -1, 0)), draw.pick(None, Free((), 1, 3))])


def cast(draw: Draw) -> Case:
    to = draw.pick(*(TensorProto.DataType.Value(name) for name in ("FLOAT", "DOUBLE", "INT64", "INT32", "BOOL", "FLOAT16", "UINT8", "INT8", "BFLOAT16")))
    extra = {}
    if draw.version >= 19 and draw.chance(0.3):
        to, extra = TensorProto.FLOAT8E4M3FN, draw.some(saturate=0)
    if draw.version >= 24 and draw.chance(0.3):
        to, extra = TensorProto.FLOAT8E8M0, draw.some(round_mode=("down", "nearest"), saturate=0)
    return Case([Free(draw.shape(), 0, 3, draw.pick(FLOAT, INT64, BOOL, INT32))], {"to": to, **extra})


def cast_like(draw: Draw) -> Case:
    target = draw.pick(FLOAT, INT64, BOOL, TensorProto.FLOAT16, TensorProto.UINT8)
    return Case([Free(draw.shape(), 0, 3, draw.pick(FLOAT, INT64)), Free(draw.shape(), dtype=target)], draw.some(saturate=0, round_mode="down"))


def bit_cast(draw: Draw) -> Case:
    return Case([Free(draw.shape(), dtype=draw.pick(FLOAT, INT32))], {"to": draw.pick(FLOAT, INT32)})


def quantized(draw: Draw) -> Case:
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    kind = draw.number(0, 2 if draw.version >= 21 else 1 if draw.version >= 13 else 0)
    block = draw.pick(1, 2)
    scale = (
        ()
        if kind == 0
        else (shape[axis],)
        if kind == 1
        else tuple(-(-size // block) if place == axis % len(shape) else size for place, size in enumerate(shape))
    )
    attributes = draw.some(axis=axis, saturate=0) if kind == 0 else {"axis": axis} if kind == 1 else {"axis": axis, "block_size": block}
    zero = draw.pick(TensorProto.UINT8, TensorProto.INT8)
    if draw.version >= 21 and draw.chance(0.3):
        return Case([Free(shape, dtype=FLOAT), Free(scale, 1, 2, FLOAT)], attributes | {"output_dtype": zero} | draw.some(precision=FLOAT))
    return Case([Free(shape, dtype=FLOAT), Free(scale, 1, 2, FLOAT), draw.pick(None, Free(scale, 0, 3, zero))], attributes)


def dequantized(draw: Draw) -> Case:
    found = quantized(draw)
    shape, scale = (item.shape for item in found.inputs[:2] if isinstance(item, Free))
    dtype = draw.pick(TensorProto.UINT8, TensorProto.INT8)
    attributes = {name: value for name, value in found.attributes.items() if name in ("axis", "block_size")}
    kind = draw.pick(FLOAT, TensorProto.FLOAT16) if draw.version >= 19 else FLOAT
    attributes |= draw.some(output_dtype=FLOAT) if draw.version >= 23 else {}
    return Case([Free(shape, 0, 9, dtype), Free(scale, 1, 2, kind), draw.pick(None, Free(scale, 0, 3, dtype))], attributes)


def where(draw: Draw) -> Case:
    a, b, c = draw.operands(3)
    return Case([Free(a, dtype=BOOL), Free(b), Free(c)])


def dropout(draw: Draw) -> Case:
    if draw.version < 12:
        return Case([Free(draw.shape())], draw.some(ratio=0.25), draw.number(1, 2))
    return Case(
        [Free(draw.shape()), draw.pick(None, Fixed(np.array(0.25, np.float32))), draw.pick(None, scalar(0, np.bool_))], draw.some(seed=3), draw.number(1, 2)
    )


def slope(draw: Draw) -> Case:
    x = draw.shape(1)
    return Case([Free(x), Free(tuple(1 if draw.chance(0.3) else size for size in x[draw.number(0, len(x) - 1) :]))])


def window(draw: Draw) -> Case:
    return Case([Fixed(np.array(draw.number(0, 9), draw.pick(np.int32, np.int64)))], draw.some(periodic=0, output_datatype=(FLOAT, TensorProto.DOUBLE)))


def random_like(draw: Draw) -> Case:
    return Case([Free(draw.shape(), 0, 1)], draw.some(dtype=(FLOAT, TensorProto.DOUBLE), seed=1.0, mean=1.0, scale=2.0, high=2.0, low=0.5))


def random(draw: Draw) -> Case:
    return Case([], draw.some(dtype=(FLOAT, TensorProto.DOUBLE), seed=1.0, mean=1.0, scale=2.0, high=2.0, low=0.5) | {"shape": list(draw.shape(1))})


def multinomial(draw: Draw) -> Case:
    return Case([Free((draw.number(1, 3), draw.number(1, 4)), 0, 1)], draw.some(dtype=(INT32, INT64), sample_size=draw.number(1, 4), seed=1.0))


def constant(draw: Draw) -> Case:
    values: dict[str, Any] = {
        "value": numpy_helper.from_array(np.array([[1, 2]], np.int32)),
        "value_float": 1.5,
        "value_floats": [1.5, 2.0],
        "value_int": 3,
        "value_ints": [3, 4, -1],
        "value_string": "a",
        "value_strings": ["a", "b"],
    }
    if draw.chance(0.15) and draw.version >= 11:
        sparse = helper.make_sparse_tensor(helper.make_tensor("v", FLOAT, [1], [2.0]), helper.make_tensor("i", INT64, [1], [1]), [3])
        return Case([], {"sparse_value": sparse})
    name = draw.pick(*values) if draw.version >= 12 else "value"
    return Case([], {name: values[name]})


def text(draw: Draw) -> Case:
    return Case([Free(draw.shape(1, 2), dtype=STRING)], {"pattern": "a.*"})


def joined_text(draw: Draw) -> Case:
    return Case([Free(shape, dtype=STRING) for shape in draw.operands(2)])


def split_text(draw: Draw) -> Case:
    return Case([Free(draw.shape(0, 2), dtype=STRING)], draw.some(delimiter=",", maxsplit=1), 2)


def normal_text(draw: Draw) -> Case:
    shape = draw.pick((draw.number(1, 4),), (1, draw.number(1, 4)))
    return Case([Free(shape, dtype=STRING)], draw.some(case_change_action=("LOWER", "UPPER"), is_case_sensitive=1, locale="en_US", stopwords=["a"]))


def n_grams(draw: Draw) -> Case:
    attributes = {"mode": draw.pick("TF", "IDF", "TFIDF"), "min_gram_length": 1, "max_gram_length": draw.number(1, 2), "max_skip_count": draw.number(0, 1)}
    attributes |= {"ngram_counts": [0, 2], "ngram_indexes": [0, 1, 2], **draw.some(weights=[1.0, 2.0, 3.0])}
    shape = draw.pick((draw.number(2, 5),), (draw.number(1, 3), draw.number(2, 5)))
    if draw.chance(0.3):
        return Case([Free(shape, dtype=STRING)], attributes | {"pool_strings": ["a", "b c", "a", "1,2"]})
    return Case([Free(shape, 0, 3, INT32)], attributes | {"pool_int64s": [1, 2, 1, 3]})


_UNARY = """Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Cos Cosh Erf Exp Floor HardSwish Identity IsNaN Log Mish Neg NonZero Not Reciprocal Relu Round
    Sigmoid Sign Sin Sinh Size Softplus Softsign Sqrt Tan Tanh"""
_BINARY = "Add And BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Mul Or Sub Xor"

ELEMENTS: dict[str, Maker] = {
    **dict.fromkeys(_UNARY.split(), unary()),
    **dict.fromkeys(_BINARY.split(), broadcasting(2, 1)),
    **dict.fromkeys(FAMILIES["variadic"].members, broadcasting()),
    **dict.fromkeys(FAMILIES["reduction"].members, reduction),
    **dict.fromkeys("ArgMax ArgMin".split(), extreme),
    **dict.fromkeys("Hardmax LogSoftmax Softmax".split(), along()),
    **dict.fromkeys("BlackmanWindow HammingWindow HannWindow".split(), window),
    **dict.fromkeys("RandomNormalLike RandomUniformLike Bernoulli".split(), random_like),
    **dict.fromkeys("RandomNormal RandomUniform".split(), random),
    "BitCast": bit_cast,
    "BitShift": bits,
    "Cast": cast,
    "CastLike": cast_like,
    "Celu": unary(alpha=0.5),
    "Clip": clip,
    "Constant": constant,
    "DequantizeLinear": dequantized,
    "Dropout": dropout,
    "Elu": unary(alpha=0.5),
    "Gelu": unary(approximate="tanh"),
    "HardSigmoid": unary(alpha=0.5, beta=0.25),
    "IsInf": unary(detect_negative=0, detect_positive=0),
    "LeakyRelu": unary(alpha=0.5),
    "LpNormalization": along(p=1),
    "Mod": modulo,
    "Multinomial": multinomial,
    "PRelu": slope,
    "Pow": power,
    "QuantizeLinear": quantized,
    "RegexFullMatch": text,
    "Selu": unary(alpha=0.5, gamma=2.0),
    "Shrink": unary(bias=0.5, lambd=0.25),
    "StringConcat": joined_text,
    "StringNormalizer": normal_text,
    "StringSplit": split_text,
    "Swish": unary(alpha=0.5),
    "TfIdfVectorizer": n_grams,
    "ThresholdedRelu": unary(alpha=0.5),
    "Where": where,
}
