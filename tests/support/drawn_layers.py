"""Random nodes for the checker's own kernels: reductions, products, windows and others.

The others are normalizations and casts. `LAYERS` has a function for each operator that draws its
inputs and attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto

from eqsat.checker.kernels.call import Array
from tests.support.drawn_elements import Drawn, Random, broadcasting, floats, integers, ints, number, pick, positive, sizes, some, truths, unary, whole

# --- reductions ---


def reduction(make: Callable[[Random, list[int]], Array] = floats) -> Callable[[Random], Drawn]:
    def draw(random: Random) -> Drawn:
        shape = sizes(random)
        axes = [int(axis) - pick(random, 0, len(shape)) for axis in random.permutation(len(shape))[: random.integers(len(shape) + 1)]]
        x = pick(random, make, integers)(random, shape)
        return [x, ints(*axes)][: random.integers(1, 3)], some(random, keepdims=int(random.integers(2)), noop_with_empty_axes=int(random.integers(2)))

    return draw


def float_reduction(random: Random) -> Drawn:
    inputs, attributes = reduction(positive)(random)
    return [inputs[0].astype(np.float32) if inputs[0] is not None and inputs[0].min() > 0 else positive(random, inputs[0].shape), *inputs[1:]], attributes  # type: ignore[union-attr]


def running(random: Random) -> Drawn:
    shape = sizes(random)
    axis = np.array(random.integers(-len(shape), len(shape)), np.int64)
    return [pick(random, floats, integers)(random, shape), axis], some(random, exclusive=int(random.integers(2)), reverse=int(random.integers(2)))


def along(**attributes: Callable[[Random], Any]) -> Callable[[Random], Drawn]:
    def draw(random: Random) -> Drawn:
        shape = sizes(random)
        drawn = {name: value(random) for name, value in attributes.items()}
        return [floats(random, shape)], some(random, axis=int(random.integers(-len(shape), len(shape))), **drawn)

    return draw


def argument(random: Random) -> Drawn:
    inputs, attributes = along(keepdims=lambda r: int(r.integers(2)), select_last_index=lambda r: int(r.integers(2)))(random)
    return [whole(random, x.shape, pick(random, np.float32, np.int32), -2, 3) for x in inputs if x is not None], attributes


def top(random: Random) -> Drawn:
    shape = sizes(random)
    axis = int(random.integers(-len(shape), len(shape)))
    return [whole(random, shape, np.float32, -2, 3), ints(int(random.integers(1, shape[axis] + 1)))], {
        "axis": axis,
        **some(random, largest=int(random.integers(2))),
    }


# --- products ---


def matmul(random: Random) -> Drawn:
    inner, rows, columns = (int(random.integers(1, 5)) for _ in range(3))
    a, b = broadcasting(random)
    left, right = [*a, rows, inner], [*b, inner, columns]
    left, right = pick(random, (left, right), (left, right), ([inner], right), (left, [inner]), ([inner], [inner]))
    make = pick(random, floats, integers)
    return [make(random, left), make(random, right)], {}


def gemm(random: Random) -> Drawn:
    inner, rows, columns = (int(random.integers(1, 5)) for _ in range(3))
    left, right = bool(random.integers(2)), bool(random.integers(2))
    bias = pick(random, None, [rows, columns], [columns], [rows, 1], [], [1, columns])
    inputs = [floats(random, [inner, rows] if left else [rows, inner]), floats(random, [columns, inner] if right else [inner, columns])]
    attributes = some(random, alpha=number(-2, 2)(random), beta=number(-2, 2)(random))
    return [*inputs, *([] if bias is None else [floats(random, bias)])], {"transA": int(left), "transB": int(right), **attributes}


EQUATIONS = [
    "ij,jk->ik",
    "ij,jk",
    "ij->ji",
    "ii->i",
    "ii",
    "ij->",
    "...ij,...jk->...ik",
    "bij,bkj->bik",
    "i,j->ij",
    "i,i",
    "ij,ij->j",
    "b...i,i->b...",
    "ijk->kij",
    "ij,j,i->",
]


def einstein(random: Random) -> Drawn:
    equation = pick(random, *EQUATIONS)
    lengths = {letter: int(random.integers(1, 4)) for letter in "ijkb"}
    between = sizes(random, 0, 2)
    inputs = []
    for name in equation.split("->")[0].split(","):
        shape = [lengths[letter] for letter in name.replace("...", "")]
        at = name.find("...")
        inputs.append(floats(random, shape if at < 0 else shape[:at] + between + shape[at:]))
    return inputs, {"equation": equation}


# --- windows ---


def spaces(random: Random) -> tuple[int, list[int]]:
    rank = int(random.integers(1, 4))
    return rank, [int(random.integers(4, 8 if rank < 3 else 6)) for _ in range(rank)]


def window(random: Random, rank: int, dilated: bool = True) -> dict[str, Any]:
    attributes = some(random, strides=[int(random.integers(1, 4)) for _ in range(rank)])
    if dilated:
        attributes |= some(random, dilations=[int(random.integers(1, 3)) for _ in range(rank)])
    mode = pick(random, "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    if mode == "NOTSET":
        return attributes | some(random, pads=[int(random.integers(0, 2)) for _ in range(2 * rank)])
    if mode != "VALID":
        attributes.pop("dilations", None)  # ONNX Runtime refuses some dilated SAME windows
    return attributes | {"auto_pad": mode}


def convolution(random: Random) -> Drawn:
    rank, space = spaces(random)
    group, inner, outer = (int(random.integers(1, 4)) for _ in range(3))
    kernel = [int(random.integers(1, 3)) for _ in range(rank)]
    inputs = [floats(random, [2, group * inner, *space]), floats(random, [group * outer, inner, *kernel]), floats(random, [group * outer])]
    return inputs[: random.integers(2, 4)], {"group": group, **window(random, rank), **some(random, kernel_shape=kernel)}


def transposed(random: Random) -> Drawn:
    rank, space = spaces(random)
    space = [min(size, 5) for size in space]
    group, inner, outer = (int(random.integers(1, 3)) for _ in range(3))
    kernel = [int(random.integers(2, 4)) for _ in range(rank)]
    inputs = [floats(random, [2, group * inner, *space]), floats(random, [group * inner, outer, *kernel]), floats(random, [group * outer])]
    attributes = {"group": group, **window(random, rank), **some(random, kernel_shape=kernel)}
    strides, dilations = attributes.get("strides", [1] * rank), attributes.get("dilations", [1] * rank)
    if attributes.get("auto_pad", "NOTSET") == "NOTSET" and random.random() < 0.5:
        attributes["output_padding"] = [int(random.integers(0, max(stride, dilation))) for stride, dilation in zip(strides, dilations, strict=True)]
    elif random.random() < 0.3:
        attributes.pop("pads", None)
        attributes["output_shape"] = [
            (size - 1) * stride + (length - 1) * dilation + 1 - int(random.integers(0, 2))
            for size, stride, length, dilation in zip(space, strides, kernel, dilations, strict=True)
        ]
    return inputs[: random.integers(2, 4)], attributes


def pool(**attributes: Callable[[Random], Any]) -> Callable[[Random], Drawn]:
    def draw(random: Random) -> Drawn:
        rank, space = spaces(random)
        kernel = [int(random.integers(2, 4)) for _ in range(rank)]
        drawn = window(random, rank)
        if drawn.get("auto_pad", "NOTSET") == "NOTSET":
            drawn |= some(random, ceil_mode=int(random.integers(2)))
        return [floats(random, [2, 2, *space])], {
            "kernel_shape": kernel,
            **drawn,
            **some(random, **{name: value(random) for name, value in attributes.items()}),
        }

    return draw


def image(**attributes: Callable[[Random], Any]) -> Callable[[Random], Drawn]:
    return lambda random: ([floats(random, [2, 3, *spaces(random)[1]])], some(random, **{name: value(random) for name, value in attributes.items()}))


# --- normalizations ---


def batch(random: Random) -> Drawn:
    shape = [2, 3, *sizes(random, 0, 2)]
    return [floats(random, shape), *(floats(random, [3]) for _ in range(3)), positive(random, [3])], some(random, epsilon=number(1e-5, 1)(random))


def instance(random: Random) -> Drawn:
    return [floats(random, [2, 3, *spaces(random)[1]]), floats(random, [3]), floats(random, [3])], some(random, epsilon=number(1e-5, 1)(random))


def groups(random: Random) -> Drawn:
    return [floats(random, [2, 4, *spaces(random)[1]]), floats(random, [4]), floats(random, [4])], {
        "num_groups": pick(random, 1, 2, 4),
        **some(random, epsilon=number(1e-5, 1)(random)),
    }


def layer(inputs: int) -> Callable[[Random], Drawn]:
    def draw(random: Random) -> Drawn:
        shape = [int(random.integers(2, 5)) for _ in range(random.integers(1, 4))]
        axis = int(random.integers(-len(shape), len(shape)))
        arrays = [floats(random, shape), floats(random, shape[axis:]), floats(random, shape[axis:])]
        return arrays[: random.integers(2, inputs + 1)], {"axis": axis, **some(random, epsilon=number(1e-5, 1)(random))}

    return draw


def rotary(random: Random) -> Drawn:
    """Draws heads apart or in one axis.

    Each head is turned as a whole or in part, by angles of positions or of tokens.
    """
    heads, width = int(random.integers(1, 4)), 2 * int(random.integers(1, 4))
    turned = pick(random, width, 2)
    attributes = some(random, interleaved=int(random.integers(2))) | ({"rotary_embedding_dim": turned} if turned != width or random.random() < 0.3 else {})
    apart = random.random() < 0.5
    x = floats(random, [2, heads, 3, width] if apart else [2, 3, heads * width])
    attributes |= {} if apart else {"num_heads": heads}
    if random.random() < 0.5:
        return [x, floats(random, [2, 3, turned // 2]), floats(random, [2, 3, turned // 2])], attributes
    return [x, floats(random, [5, turned // 2]), floats(random, [5, turned // 2]), whole(random, [2, 3], np.int64, 0, 5)], attributes


def attention(random: Random) -> Drawn:
    """Draws heads apart or in one axis, groups of heads, masks of both kinds, and a past."""
    batch, groups, queries, keys, width, inner = (int(random.integers(1, 4)) for _ in range(6))
    heads = groups * int(random.integers(1, 3))
    past = int(random.integers(1, 3)) if random.random() < 0.3 else 0
    apart = random.random() < 0.5
    shapes = [(batch, heads, queries, width), (batch, groups, keys, width), (batch, groups, keys, inner)]
    parts = [floats(random, shape if apart else (shape[0], shape[2], shape[1] * shape[3])) for shape in shapes]
    mask_shape = pick(random, (queries, keys + past), (batch, 1, queries, keys + past))
    mask = pick(random, None, floats(random, mask_shape), truths(random, list(mask_shape)))
    memory = [floats(random, (batch, groups, past, width)), floats(random, (batch, groups, past, inner))] if past else []
    attributes = some(random, scale=number(0.1, 1)(random), is_causal=int(random.integers(2)))
    attributes |= {"softcap": 2.0} if random.random() < 0.2 else {}
    attributes |= {"left_window_size": int(random.integers(3)), "right_window_size": int(random.integers(-1, 3))} if random.random() < 0.3 else {}
    attributes |= {} if apart else {"q_num_heads": heads, "kv_num_heads": groups}
    return [*parts, mask, *memory], attributes


def recurrence(gates: int) -> Callable[[Random], Drawn]:
    """Draws a recurrence of so many gates in one direction or two."""

    def draw(random: Random) -> Drawn:
        steps, batch, size, hidden = (int(random.integers(1, 4)) for _ in range(4))
        direction = pick(random, "forward", "reverse", "bidirectional")
        ways = 2 if direction == "bidirectional" else 1
        weights = [floats(random, (ways, gates * hidden, size), 1), floats(random, (ways, gates * hidden, hidden), 1)]
        bias = pick(random, None, floats(random, (ways, 2 * gates * hidden), 1))
        states = [pick(random, None, floats(random, (ways, batch, hidden))) for _ in range(1 if gates == 3 else 2)]
        holes = [pick(random, None, floats(random, (ways, 3 * hidden)))] if gates == 4 else []
        attributes = {"hidden_size": hidden, "direction": direction, **({"linear_before_reset": int(random.integers(2))} if gates == 3 else {})}
        return [floats(random, (steps, batch, size)), *weights, bias, None, *states, *holes], attributes

    return draw


def local(random: Random) -> Drawn:
    attributes = some(random, alpha=number(0.01, 1)(random), beta=number(0.3, 1)(random), bias=number(0.5, 2)(random))
    return [floats(random, [2, 5, 3, 3])], {"size": pick(random, 1, 3, 5), **attributes}


# --- casts ---


def cast(random: Random) -> Drawn:
    source = pick(random, floats(random, sizes(random), 20), whole(random, sizes(random), np.int32), truths(random, sizes(random)))
    if source.dtype.kind == "f" and random.random() < 0.3:
        source = source.astype(pick(random, np.float16, np.float64, ml_dtypes.bfloat16))
    return [source], {"to": pick(random, *(int(dtype) for dtype in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)),
                                 *(int(dtype) for dtype in (TensorProto.INT64, TensorProto.INT32, TensorProto.INT16, TensorProto.BOOL)))}  # fmt: skip


def cast_like(random: Random) -> Drawn:
    return [floats(random, sizes(random, 0)), pick(random, np.zeros(1, np.float16), np.zeros(2, np.int32), np.zeros((), np.bool_))], {}


def bit_cast(random: Random) -> Drawn:
    return [floats(random, sizes(random, 0))], {"to": pick(random, int(TensorProto.INT32), int(TensorProto.UINT32))}


QUANTIZED = [np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int16), np.dtype(np.uint16), np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4)]


def narrow(random: Random, shape: list[int], kind: Any) -> Array:
    low, high = (0, 16) if "uint" in kind.name else (-8, 8)
    return np.asarray(random.integers(low, high, shape)).astype(np.int8).astype(kind)


def scales(random: Random) -> tuple[list[int], list[int], dict[str, Any]]:
    """Returns the shapes of the data and of its scales, and the attributes.

    There is one scale, one for each place of an axis, or blocks.
    """
    shape = [2, 3, 4]
    axis = int(random.integers(-3, 3))
    form = random.integers(3)
    if form == 0:
        return shape, [], {}
    if form == 1:
        return shape, [shape[axis]], {"axis": axis}
    blocks = list(shape)
    blocks[axis] = -(-shape[axis] // 2)
    return shape, blocks, {"axis": axis, "block_size": 2}


def quantize(random: Random) -> Drawn:
    shape, scale, attributes = scales(random)
    kind = pick(random, *QUANTIZED)
    return [floats(random, shape, 5), positive(random, scale), narrow(random, scale, kind)], attributes


def dequantize(random: Random) -> Drawn:
    shape, scale, attributes = scales(random)
    kind = pick(random, *QUANTIZED)
    return [narrow(random, shape, kind), positive(random, scale), narrow(random, scale, kind)][: random.integers(2, 4)], attributes


def matmul_integer(random: Random) -> Drawn:
    left, right = pick(random, np.int8, np.uint8), pick(random, np.int8, np.uint8)
    inputs = [whole(random, [2, 3, 4], left, 0, 100), whole(random, [4, 5], right, 0, 100)]
    return [*inputs, whole(random, [], left, 0, 9), whole(random, pick(random, [], [5]), right, 0, 9)][: random.integers(2, 5)], {}


def convolution_integer(random: Random) -> Drawn:
    (x, w, *_), attributes = convolution(random)
    assert x is not None and w is not None
    inputs = [whole(random, x.shape, np.uint8, 0, 100), whole(random, w.shape, np.uint8, 0, 100)]
    return [*inputs, np.array(3, np.uint8), np.array(5, np.uint8)][: random.integers(2, 5)], attributes


def quantized_matmul(random: Random) -> Drawn:
    kind = pick(random, np.int8, np.uint8)
    scale = lambda: np.array(random.uniform(0.01, 0.1), np.float32)  # noqa: E731
    zero = lambda: np.array(random.integers(0, 9), kind)  # noqa: E731
    left, right = whole(random, [2, 3, 4], kind, 0, 100), whole(random, [4, 5], kind, 0, 100)
    return [left, scale(), zero(), right, scale(), zero(), scale(), zero()], {}


def quantized_convolution(random: Random) -> Drawn:
    (x, w, *_), attributes = convolution(random)
    assert x is not None and w is not None
    scale = lambda: np.array(random.uniform(0.01, 0.1), np.float32)  # noqa: E731
    zero = lambda kind: np.array(random.integers(0, 9), kind)  # noqa: E731
    each = random.uniform(0.01, 0.1, w.shape[0]).astype(np.float32) if random.random() < 0.5 else scale()
    filters = np.zeros(np.shape(each), np.int8)
    inputs = [whole(random, x.shape, np.uint8, 0, 100), scale(), zero(np.uint8), whole(random, w.shape, np.int8, -9, 9), each, filters, scale(), zero(np.uint8)]
    return [*inputs, whole(random, [w.shape[0]], np.int32)][: random.integers(8, 10)], attributes


LAYERS: dict[str, Callable[[Random], Drawn]] = {
    **dict.fromkeys(["ReduceL1", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceSumSquare", "ReduceMean"], reduction()),
    # ONNX Runtime saturates a product of integers that should wrap.
    "ReduceProd": float_reduction,
    **dict.fromkeys(["ReduceL2", "ReduceLogSum", "ReduceLogSumExp"], float_reduction),
    "ArgMax": argument,
    "ArgMin": argument,
    "CumProd": running,
    "CumSum": running,
    "Hardmax": along(),
    "LogSoftmax": along(),
    "LpNormalization": along(p=lambda random: pick(random, 1, 2)),
    "Softmax": along(),
    "TopK": top,
    "Einsum": einstein,
    "Gemm": gemm,
    "MatMul": matmul,
    "Conv": convolution,
    "ConvTranspose": transposed,
    "AveragePool": pool(count_include_pad=lambda random: int(random.integers(2))),
    "GlobalAveragePool": image(),
    "GlobalLpPool": image(p=lambda random: pick(random, 1, 2, 3)),
    "GlobalMaxPool": image(),
    "LpPool": pool(p=lambda random: pick(random, 1, 2, 3)),
    "MaxPool": pool(storage_order=lambda random: int(random.integers(2))),
    "BatchNormalization": batch,
    "GroupNormalization": groups,
    "InstanceNormalization": instance,
    "LRN": local,
    "LayerNormalization": layer(3),
    "MeanVarianceNormalization": lambda random: ([floats(random, [2, 3, 4, 4])], some(random, axes=pick(random, [0, 2, 3], [2, 3], [1]))),
    "RMSNormalization": layer(2),
    "Attention": attention,
    "GRU": recurrence(3),
    "LSTM": recurrence(4),
    "RotaryEmbedding": rotary,
    "BitCast": bit_cast,
    "Cast": cast,
    "CastLike": cast_like,
    "ConvInteger": convolution_integer,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": unary(lambda random, shape: floats(random, [*shape, 3])),
    "MatMulInteger": matmul_integer,
    "QLinearConv": quantized_convolution,
    "QLinearMatMul": quantized_matmul,
    "QuantizeLinear": quantize,
}
