"""Legal nodes of the operators that compute element by element, move elements or reduce: a table from names to functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .facts_draw import BOOL, FLOAT, INT32, INT64, STRING, Case, Draw, Fixed, Free, Maker, floats, ints, scalar

_END = (2**63 - 1, 2**31 - 1)


def unary(low: float = -4, high: float = 4, least: int = 0, **attributes: Any) -> Maker:
    """Operators of one tensor; tuples are choices of attributes."""
    return lambda draw: Case([Free(draw.shape(least), low, high)], draw.some(**attributes))


def broadcasting(count: int | None = None, low: float = -4, high: float = 4, **attributes: Any) -> Maker:
    """Operators of tensors that broadcast; any number of them where there is no count."""
    return lambda draw: Case([Free(shape, low, high) for shape in draw.operands(count or draw.number(1, 3))], draw.some(**attributes))


def along(least: int = 1, **attributes: Any) -> Maker:
    """Operators of one tensor along an axis."""

    def make(draw: Draw) -> Case:
        shape = draw.shape(least)
        return Case([Free(shape)], draw.some(axis=draw.axis(len(shape)), **attributes))

    return make


def listed(draw: Draw, name: str, values: list[int] | None, since: int, inputs: list[Any], **attributes: Any) -> Case:
    """A node with a list that was an attribute before the version `since` and is an input from there on."""
    if draw.version < since:
        return Case(inputs, attributes if values is None else {**attributes, name: values})
    return Case([*inputs, None if values is None else ints(*values)], attributes)


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
    scale = () if kind == 0 else (shape[axis],) if kind == 1 else tuple(-(-size // block) if place == axis % len(shape) else size for place, size in enumerate(shape))
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
    return Case([Free(draw.shape()), draw.pick(None, Fixed(np.array(0.25, np.float32))), draw.pick(None, scalar(0, np.bool_))], draw.some(seed=3), draw.number(1, 2))


def slope(draw: Draw) -> Case:
    x = draw.shape(1)
    return Case([Free(x), Free(tuple(1 if draw.chance(0.3) else size for size in x[draw.number(0, len(x) - 1) :]))])


def window(draw: Draw) -> Case:
    return Case([Fixed(np.array(draw.number(0, 9), draw.pick(np.int32, np.int64)))], draw.some(periodic=0, output_datatype=(FLOAT, TensorProto.DOUBLE)))


# --- operators that move elements ---


def concat(draw: Draw) -> Case:
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    parts = [tuple(draw.size() if place == axis % len(shape) else size for place, size in enumerate(shape)) for _ in range(draw.number(1, 3))]
    return Case([Free(part) for part in parts], {"axis": axis})


def sliced(draw: Draw) -> Case:
    shape = draw.shape(1)
    axes = draw.axes(len(shape), 1)
    steps = [draw.pick(1, 1, 1, 2, 3, -1, -2) if draw.version >= 10 else 1 for _ in axes]
    starts = [draw.pick(0, draw.number(-7, 7), draw.number(0, 2), *_END) if step < 0 else draw.pick(0, draw.number(-7, 7), 1) for step in steps]
    ends = [draw.pick(-(2**31), -_END[0], draw.number(-7, 7), *_END) if step < 0 else draw.pick(*_END, -1, 2, 4, draw.number(-7, 9)) for step in steps]
    if draw.chance(0.25):
        axes = list(range(len(starts)))
        stated: list[int] | None = None
    else:
        stated = axes
    if draw.version < 10:
        return Case([Free(shape)], {"starts": starts, "ends": ends} | ({} if stated is None else {"axes": [axis % len(shape) for axis in stated]}))
    stepped = draw.chance() or any(step != 1 for step in steps)
    return Case([Free(shape), ints(*starts), ints(*ends), None if stated is None else ints(*stated), ints(*steps) if stepped else None])


def split(draw: Draw) -> Case:
    shape = draw.shape(1)
    axis, count = draw.axis(len(shape)), draw.number(1, 3)
    sizes = [draw.size() for _ in range(count)]
    equal = draw.chance()
    if equal:
        sizes = [sizes[0]] * count
    total = max(0, sum(sizes) - (draw.number(0, 1) if equal and draw.version >= 18 else 0))
    x = Free(tuple(total if place == axis % len(shape) else size for place, size in enumerate(shape)))
    if equal and draw.chance(0.7):
        return Case([x], {"axis": axis} | ({"num_outputs": count} if draw.version >= 18 else {}), count)
    return listed(draw, "split", sizes, 13, [x], axis=axis)._replace(outputs=count)


def reshape(draw: Draw) -> Case:
    shape = draw.shape()
    sizes: list[int] = [size or 1 for size in shape] if draw.chance(0.6) else list(shape)
    while len(sizes) > 1 and draw.chance():
        place = draw.number(0, len(sizes) - 2)
        sizes[place : place + 2] = [sizes[place] * sizes[place + 1]]
    if draw.chance(0.3):
        sizes.insert(draw.number(0, len(sizes)), 1)
    if sizes and draw.chance():
        sizes[draw.number(0, len(sizes) - 1)] = -1
    sizes = [0 if place < len(shape) and size == shape[place] and draw.chance(0.3) else size for place, size in enumerate(sizes)]
    return Case([Free(shape), ints(*sizes)], draw.some(allowzero=1))


def transpose(draw: Draw) -> Case:
    shape = draw.shape()
    return Case([Free(shape)], draw.some(perm=draw.random.permutation(len(shape)).tolist()) if shape else {})


def squeeze(draw: Draw) -> Case:
    shape = tuple(1 if draw.chance(0.6) else draw.size() for _ in range(draw.number(0, 4)))
    ones = [axis - (len(shape) if draw.version >= 11 and draw.chance() else 0) for axis, size in enumerate(shape) if size == 1]
    return listed(draw, "axes", None if draw.chance(0.3) or not ones else ones[:: draw.pick(1, -1)], 13, [Free(shape)])


def unsqueeze(draw: Draw) -> Case:
    shape = draw.shape(0, 3)
    rank = len(shape) + draw.number(1, 2)
    axes = [axis - (rank if draw.version >= 11 and draw.chance() else 0) for axis in draw.random.permutation(rank)[: rank - len(shape)].tolist()]
    return listed(draw, "axes", axes, 13, [Free(shape)])


def expand(draw: Draw) -> Case:
    x, wanted = draw.operands(2)
    return Case([Free(x), ints(*wanted)])


def tile(draw: Draw) -> Case:
    shape = draw.shape()
    return Case([Free(shape), ints(*draw.numbers(len(shape), 0, 3))])


def pad(draw: Draw) -> Case:
    shape = draw.shape(1)
    modes = ("constant", "constant", "reflect", "edge", *(("wrap",) if draw.version >= 19 else ()))
    mode = draw.pick(*modes)
    axes = draw.axes(len(shape)) if draw.version >= 18 and draw.chance() else None
    count = 2 * len(axes if axes is not None else shape)
    pads = draw.numbers(count, -1 if mode == "constant" else 0, 2)
    attributes: dict[str, Any] = {} if mode == "constant" else {"mode": mode}
    if draw.version < 11:
        return Case([Free(shape)], attributes | {"pads": pads} | draw.some(value=1.5))
    return Case([Free(shape), ints(*pads), draw.pick(None, Free(())), None if axes is None else ints(*axes)], attributes)


def gather(draw: Draw) -> Case:
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    top = max(shape[axis] - 1, 0)
    indices = draw.shape(0, 2)
    fixed = draw.chance() and len(indices) <= 1
    low = -1 if draw.version >= 11 else 0
    return Case([Free(shape), ints(*draw.numbers(indices[0], low, top)) if fixed and indices else Free(indices, low, min(top, 1), INT64)], draw.some(axis=axis))


def gather_elements(draw: Draw) -> Case:
    shape = draw.shape(1)
    indices = tuple(draw.pick(size, max(size - 1, 0)) for size in shape)
    return Case([Free(shape), Free(indices, 0, 0, draw.pick(INT32, INT64))], {"axis": draw.axis(len(shape))} if draw.chance() else {})


def gather_nd(draw: Draw) -> Case:
    shape = draw.shape(1)
    batch = draw.number(0, len(shape) - 1) if draw.version >= 12 and draw.chance() else 0
    depth = draw.number(1, len(shape) - batch)
    return Case([Free(shape), Free((*shape[:batch], *draw.shape(0, 2), depth), 0, 0, INT64)], {"batch_dims": batch} if batch else {})


def scatter(draw: Draw) -> Case:
    shape = draw.shape(1)
    indices = tuple(draw.pick(size, max(size - 1, 0)) for size in shape)
    return Case(
        [Free(shape), Free(indices, 0, 0, draw.pick(INT32, INT64)), Free(indices)], draw.some(axis=draw.axis(len(shape)), reduction=("add", "mul"))
    )


def scatter_nd(draw: Draw) -> Case:
    shape = draw.shape(1)
    depth = draw.number(1, len(shape))
    places = draw.shape(0, 2)
    return Case([Free(shape), Free((*places, depth), 0, 0, INT64), Free((*places, *shape[depth:]))], draw.some(reduction=("add", "mul")))


def tensor_scatter(draw: Draw) -> Case:
    batch, length, width = draw.number(1, 3), draw.number(2, 5), draw.number(1, 4)
    attributes = draw.some(mode=("linear", "circular")) | draw.some(axis=(-2, 1))
    return Case([Free((batch, length, width)), Free((batch, draw.number(1, 2), width)), draw.pick(None, Free((batch,), 0, 0, INT64))], attributes)


def top_k(draw: Draw) -> Case:
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    k = draw.number(0, shape[axis])
    if draw.version < 10:
        return Case([Free(shape)], {"k": k, "axis": axis}, 2)
    return Case([Free(shape), ints(k)], draw.some(largest=0, sorted=0) | {"axis": axis}, 2)


def one_hot(draw: Draw) -> Case:
    shape = draw.shape(0, 3)
    depth = draw.number(1, 5)
    kind = draw.pick(np.int64, np.int32, np.float32)
    axis = draw.number(-len(shape) - 1, len(shape))
    return Case([Free(shape, -3, 5, INT64), Fixed(np.array(draw.pick(depth, [depth]), kind)), Free((2,))], draw.some(axis=axis))


def ranged(draw: Draw) -> Case:
    kind = draw.pick(np.int64, np.int32, np.float32)
    return Case([scalar(item, kind) for item in (draw.number(-3, 3), draw.number(-3, 9), draw.pick(1, 2, -1, 3))])


def filled(draw: Draw) -> Case:
    value = draw.pick(np.array([1.5], np.float32), np.array([3]), np.array([True]), np.array([2], np.int32))
    return Case([ints(*draw.shape(0, 3))], draw.some(value=numpy_helper.from_array(value)))


def shape_of(draw: Draw) -> Case:
    return Case([Free(draw.shape())], draw.some(start=draw.number(-5, 5), end=draw.number(-5, 5)))


def flatten(draw: Draw) -> Case:
    shape = draw.shape()
    return Case([Free(shape)], draw.some(axis=draw.number(-len(shape) if draw.version >= 11 else 0, len(shape))))


def space(deep: bool) -> Maker:
    def make(draw: Draw) -> Case:
        block = draw.number(1, 3)
        n, c, h, w = draw.size(), draw.number(1, 2), draw.number(1, 3), draw.number(1, 3)
        shape = (n, c * block * block, h, w) if deep else (n, c, h * block, w * block)
        return Case([Free(shape)], {"blocksize": block} | draw.some(mode=("DCR", "CRD")))

    return make


def crop(draw: Draw) -> Case:
    shape = draw.shape(1)
    axes = draw.axes(len(shape)) if draw.chance() else None
    count = len(shape if axes is None else axes)
    return Case([Free(shape), ints(*draw.numbers(count, 1, 6))], {} if axes is None else {"axes": axes})


def trilu(draw: Draw) -> Case:
    return Case([Free((*draw.shape(0, 1), draw.size(), draw.size())), draw.pick(None, scalar(draw.number(-2, 2)))], draw.some(upper=0))


def eye(draw: Draw) -> Case:
    return Case([Free((draw.size(), draw.size()))], draw.some(dtype=(INT64, FLOAT), k=draw.number(-2, 2)))


def compress(draw: Draw) -> Case:
    shape = draw.shape(1)
    axis = draw.axis(len(shape)) if draw.chance() else None
    length = draw.number(0, int(np.prod(shape)) if axis is None else shape[axis])
    return Case([Free(shape), Free((length,), dtype=BOOL)], {} if axis is None else {"axis": axis})


def unique(draw: Draw) -> Case:
    shape = draw.shape(1)
    return Case([Free(shape, 0, 2)], draw.some(sorted=0, axis=draw.axis(len(shape))), draw.number(1, 4))


def reverse(draw: Draw) -> Case:
    time = draw.number(0, 1)
    shape = (draw.number(1, 4), draw.number(1, 4), *draw.shape(0, 2))
    return Case([Free(shape), Free((shape[1 - time],), 1, 1, INT64)], {"time_axis": time, "batch_axis": 1 - time} if time or draw.chance() else {})


def cumulative(draw: Draw) -> Case:
    shape = draw.shape(1)
    return Case([Free(shape), scalar(draw.axis(len(shape)))], draw.some(exclusive=1, reverse=1))


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
    return Case(
        [Free(shape, dtype=STRING)], draw.some(case_change_action=("LOWER", "UPPER"), is_case_sensitive=1, locale="en_US", stopwords=["a"])
    )


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
_REDUCTIONS = "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"

NODES: dict[str, Maker] = {
    **dict.fromkeys(_UNARY.split(), unary()),
    **dict.fromkeys(_BINARY.split(), broadcasting(2, 1)),
    **dict.fromkeys("Max Mean Min Sum".split(), broadcasting()),
    **dict.fromkeys(_REDUCTIONS.split(), reduction),
    **dict.fromkeys("ArgMax ArgMin".split(), extreme),
    **dict.fromkeys("Hardmax LogSoftmax Softmax".split(), along()),
    **dict.fromkeys("BlackmanWindow HammingWindow HannWindow".split(), window),
    **dict.fromkeys("Scatter ScatterElements".split(), scatter),
    **dict.fromkeys("CumSum CumProd".split(), cumulative),
    **dict.fromkeys("RandomNormalLike RandomUniformLike Bernoulli".split(), random_like),
    **dict.fromkeys("RandomNormal RandomUniform".split(), random),
    "BitCast": bit_cast,
    "BitShift": bits,
    "Cast": cast,
    "CastLike": cast_like,
    "Celu": unary(alpha=0.5),
    "CenterCropPad": crop,
    "Clip": clip,
    "Compress": compress,
    "Concat": concat,
    "Constant": constant,
    "ConstantOfShape": filled,
    "DepthToSpace": space(True),
    "DequantizeLinear": dequantized,
    "Dropout": dropout,
    "Elu": unary(alpha=0.5),
    "Expand": expand,
    "EyeLike": eye,
    "Flatten": flatten,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Gelu": unary(approximate="tanh"),
    "HardSigmoid": unary(alpha=0.5, beta=0.25),
    "IsInf": unary(detect_negative=0, detect_positive=0),
    "LeakyRelu": unary(alpha=0.5),
    "LpNormalization": along(p=1),
    "Mod": modulo,
    "Multinomial": multinomial,
    "OneHot": one_hot,
    "PRelu": slope,
    "Pad": pad,
    "Pow": power,
    "QuantizeLinear": quantized,
    "Range": ranged,
    "RegexFullMatch": text,
    "Reshape": reshape,
    "ReverseSequence": reverse,
    "ScatterND": scatter_nd,
    "Selu": unary(alpha=0.5, gamma=2.0),
    "Shape": shape_of,
    "Shrink": unary(bias=0.5, lambd=0.25),
    "Slice": sliced,
    "SpaceToDepth": space(False),
    "Split": split,
    "Squeeze": squeeze,
    "StringConcat": joined_text,
    "StringNormalizer": normal_text,
    "StringSplit": split_text,
    "Swish": unary(alpha=0.5),
    "TensorScatter": tensor_scatter,
    "TfIdfVectorizer": n_grams,
    "ThresholdedRelu": unary(alpha=0.5),
    "Tile": tile,
    "TopK": top_k,
    "Transpose": transpose,
    "Trilu": trilu,
    "Unique": unique,
    "Unsqueeze": unsqueeze,
    "Where": where,
}
__all__ = ["NODES", "floats"]
