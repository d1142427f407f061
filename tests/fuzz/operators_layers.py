"""Drawing of operators over several elements by name.

They are reductions, products, windows, normalizations and recurrences.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eqsat.families import FAMILIES

from .chance import is_float
from .scope import Emitter, Scope, Value


def _axis(s: Scope, rank: int) -> int:
    return s.chance.number(0 if s.opset < 11 else -rank, rank - 1)


def reduction(s: Scope, x: Value, operator: str) -> list[Value] | None:
    settings: dict[str, Any] = {"keepdims": s.chance.pick([None, 0, 1])}
    if s.chance.often(0.85) and x.rank:
        settings["axes"] = [axis - (x.rank if s.opset >= 11 and s.chance.often(0.4) else 0) for axis in s.chance.some(range(x.rank), 1)]
    elif s.chance.often(0.4):
        settings["noop_with_empty_axes"] = 1
    return s.node(operator, [x], **settings)


def argument(s: Scope, x: Value, operator: str) -> list[Value] | None:
    last = 1 if s.opset >= 12 and s.chance.often(0.3) else None
    return s.node(operator, [x], axis=_axis(s, x.rank), keepdims=s.chance.pick([None, 0]), select_last_index=last) if x.rank else None


def along(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if not x.rank:
        return None
    return s.node(operator, [x], axis=None if s.chance.often(0.2) else _axis(s, x.rank), p=s.chance.pick([1, 2]) if operator == "LpNormalization" else None)


def running(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if not x.rank:
        return None
    axis = s.parameter(np.array(_axis(s, x.rank), s.chance.pick([np.int64, np.int32])))
    return s.node(operator, [x, axis], exclusive=s.chance.pick([None, 1]), reverse=s.chance.pick([None, 1]))


def top(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if not x.rank:
        return None
    axis = _axis(s, x.rank)
    k = s.chance.number(0 if s.chance.often(0.1) else 1, max(1, min(3, x.shape[axis])))
    order = {"largest": s.chance.pick([None, 0, 1])} if s.opset >= 11 else {}
    return s.node(operator, [x], 2, k=[k] if s.opset >= 10 else k, axis=axis, **order)


def moments(s: Scope, x: Value, operator: str) -> list[Value] | None:
    return s.node(operator, [x], axes=s.chance.some(range(x.rank), 1)) if x.rank else None


def product(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if not x.rank:
        return None
    inner = x.shape[-1]
    if s.chance.often(0.7):
        other = s.chance.pick([(inner, s.size()), (inner, s.chance.number(1, 4)), (inner,), (*x.shape[:-2], inner, 2)])
        return s.node(operator, [x, s.tensor(x.dtype, other)])
    rows = x.shape[-2] if x.rank > 1 else inner
    return s.node(operator, [s.tensor(x.dtype, (*s.chance.pick([(), (2,)]), s.chance.number(1, 4), rows)), x])


def integer_product(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if x.rank < 2 or x.dtype not in (np.int8, np.uint8):
        return None
    w = s.tensor(s.chance.pick([np.int8, np.uint8]), (x.shape[-1], s.chance.number(1, 4)))
    zeros = [s.literal(s.chance.whole(kind, (), 0, 3)) if s.chance.often() else None for kind in (x.dtype, w.dtype)]
    if operator == "MatMulInteger":
        return s.node(operator, [x, w, *zeros])
    zeros = [zero or s.literal(np.zeros((), kind)) for zero, kind in zip(zeros, (x.dtype, w.dtype), strict=True)]
    scales = [s.literal(np.array(s.chance.pick([0.5, 0.25, 0.1]), np.float32)) for _ in range(3)]
    return s.node(operator, [x, scales[0], zeros[0], w, scales[1], zeros[1], scales[2], s.literal(s.chance.whole(x.dtype, (), 0, 3))])


def general(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if x.rank != 2:
        return None
    settings: dict[str, Any] = {"alpha": s.chance.pick([None, None, 0.5, 2.0]), "beta": s.chance.pick([None, None, 0.5, 0.0])}
    a, b = s.chance.pick([0, 1]), s.chance.pick([0, 1])
    rows, inner = x.shape[::-1] if a else x.shape
    columns = s.chance.pick([s.size(), s.chance.number(1, 4)])
    w = s.tensor(x.dtype, (columns, inner) if b else (inner, columns))
    c = s.chance.pick([(), (1,), (columns,), (rows, 1), (1, columns), (rows, columns)])
    bias = s.tensor(x.dtype, c) if s.chance.often(0.7) or s.opset < 11 else None
    return s.node(operator, [x, w, bias], transA=a or None, transB=b or None, **settings)


def einsum(s: Scope, x: Value, operator: str) -> list[Value] | None:
    letters = "abcde"[: x.rank]
    if x.rank < 1 or x.rank > 4:
        return None
    kind = s.chance.number(0, 2)
    if kind == 0:
        return s.node(operator, [x], equation=f"{letters}->{''.join(s.chance.some(letters))}")
    other = s.tensor(x.dtype, (x.shape[-1], s.chance.number(1, 3)))
    result = "".join(s.chance.shuffled(letters[:-1] + "z"))
    return s.node(operator, [x, other], equation=f"{letters},{letters[-1]}z->{result}" if kind == 1 else f"{letters}, {letters[-1]}z -> {letters[:-1]}z")


def _window(s: Scope, spatial: tuple[int, ...], kernel: list[int], dilated: bool) -> dict[str, Any]:
    count = len(spatial)
    settings: dict[str, Any] = {"strides": [s.chance.number(1, 2) for _ in kernel] if s.chance.often(0.4) else None}
    if s.chance.often(0.25):
        settings["auto_pad"] = s.chance.pick(["VALID", "SAME_UPPER", "SAME_LOWER"])
    elif s.chance.often():
        settings["pads"] = [min(s.chance.number(0, 1), max(size - 1, 0)) if not dilated else s.chance.number(0, 2) for size in [*kernel, *kernel]]
    if dilated and s.chance.often(0.2):
        settings["dilations"] = [s.chance.number(1, 2) for _ in range(count)]
    return settings


def convolution(s: Scope, x: Value, operator: str) -> list[Value] | None:
    integer = operator in ("ConvInteger", "QLinearConv")
    if x.rank not in (3, 4) or 0 in x.shape or x.shape[1] in s.symbols or is_float(x.dtype) == integer or (integer and x.dtype.itemsize != 1):
        return None
    channels, spatial = x.shape[1], x.shape[2:]
    kernel = [s.chance.number(1, max(1, min(3, size))) for size in spatial]
    group = s.chance.pick([1, 1, *(factor for factor in (2, channels) if channels % factor == 0)])
    settings = _window(s, spatial, kernel, True) | {"group": group if group > 1 or s.chance.often(0.3) else None}
    settings["kernel_shape"] = kernel if s.chance.often(0.4) else None
    outputs = group * s.chance.number(1, 3)
    if operator == "ConvTranspose":
        w = s.tensor(x.dtype, (channels, outputs // group, *kernel))
    else:
        w = s.tensor(x.dtype if not integer else s.chance.pick([np.int8, np.uint8]), (outputs, channels // group, *kernel))
    if integer:
        zeros = [s.literal(s.chance.whole(kind, (), 0, 3)) for kind in (x.dtype, w.dtype, x.dtype)]
        if operator == "ConvInteger":
            return s.node(operator, [x, w, *(zeros[:2] if s.chance.often(0.6) else [])], **settings)
        scales = [s.literal(np.array(s.chance.pick([0.5, 0.25, 0.1]), np.float32)) for _ in range(3)]
        bias = s.literal(s.chance.whole(np.int32, (outputs,), -5, 5)) if s.chance.often() else None
        return s.node(operator, [x, scales[0], zeros[0], w, scales[1], zeros[1], scales[2], zeros[2], bias], **settings)
    bias = s.tensor(x.dtype, (outputs,)) if s.chance.often(0.6) else None
    return s.node(operator, [x, w, bias], **settings)


def pool(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if x.rank not in (3, 4) or 0 in x.shape:
        return None
    kernel = [s.chance.number(1, max(1, min(3, size))) for size in x.shape[2:]]
    since = {"AveragePool": 19, "MaxPool": 10, "LpPool": 18}[operator]
    settings = {"kernel_shape": kernel} | _window(s, x.shape[2:], kernel, s.opset >= since)
    if operator == "AveragePool":
        settings["count_include_pad"] = s.chance.pick([None, 1])
    if s.opset >= {"AveragePool": 10, "MaxPool": 10, "LpPool": 18}[operator]:
        settings["ceil_mode"] = s.chance.pick([None, None, 1])
    if operator == "LpPool":
        settings["p"] = s.chance.pick([None, 1, 2, 3])
    return s.node(operator, [x], 2 if operator == "MaxPool" and s.opset >= 8 and s.chance.often(0.2) else 1, **settings)


def whole(s: Scope, x: Value, operator: str) -> list[Value] | None:
    return s.node(operator, [x]) if x.rank >= 3 else None


def local(s: Scope, x: Value, operator: str) -> list[Value] | None:
    return s.node(operator, [x], size=s.chance.pick([1, 3]), alpha=s.chance.pick([None, 0.5]), bias=s.chance.pick([None, 2.0])) if x.rank == 4 else None


def normalization(s: Scope, x: Value, operator: str) -> list[Value] | None:
    epsilon = s.chance.pick([None, 1e-5, 0.1, 1e-3])
    if operator in ("LayerNormalization", "RMSNormalization"):
        if not x.rank:
            return None
        axis = s.chance.number(-x.rank, x.rank - 1)
        scale = s.tensor(x.dtype, x.shape[axis:] if s.chance.often() or axis == -x.rank else x.shape[-1:])
        bias = [s.tensor(x.dtype, scale.shape)] if operator == "LayerNormalization" and s.chance.often(0.7) else []
        return s.node(operator, [x, scale, *bias], axis=axis, epsilon=epsilon)
    if not is_float(x.dtype) or x.rank < 2 + (operator != "BatchNormalization") or x.shape[1] in s.symbols or not x.shape[1]:
        return None
    channels = x.shape[1]
    if operator == "GroupNormalization":
        groups = s.chance.pick([1, channels])
        count = channels if s.opset >= 21 else groups
        return s.node(operator, [x, s.tensor(x.dtype, (count,)), s.tensor(x.dtype, (count,))], num_groups=groups, epsilon=epsilon)
    scale, bias = s.tensor(x.dtype, (channels,)), s.tensor(x.dtype, (channels,))
    if operator == "InstanceNormalization":
        if set(x.shape[2:]) & {0, *s.symbols}:
            return None  # the runtime crashes without elements
        return s.node(operator, [x, scale, bias], epsilon=epsilon)
    mean, variance = s.tensor(x.dtype, (channels,)), s.literal((np.abs(s.chance.ordinary(np.float64, (channels,))) + 0.5).astype(x.dtype))
    return s.node(operator, [x, scale, bias, mean, variance], epsilon=epsilon)


def recurrent(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if x.rank != 3 or x.dtype != np.float32 or x.shape[2] in s.symbols or 0 in x.shape:
        return None
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[operator]
    hidden, directions = s.chance.number(1, 3), s.chance.pick([1, 1, 2])
    w = s.tensor(x.dtype, (directions, gates * hidden, x.shape[2]))
    r = s.tensor(x.dtype, (directions, gates * hidden, hidden))
    b = s.tensor(x.dtype, (directions, 2 * gates * hidden)) if s.chance.often() else None
    initial = s.tensor(x.dtype, (directions, x.shape[1], hidden)) if s.chance.often(0.4) else None
    settings = {"direction": "bidirectional" if directions == 2 else s.chance.pick([None, "reverse"]), "clip": s.chance.pick([None, None, 0.5])}
    if operator == "GRU":
        settings["linear_before_reset"] = s.chance.pick([None, 1])
    return s.node(operator, [x, w, r, b, None, initial], 3 if operator == "LSTM" else 2, hidden_size=hidden, **settings)


def attention(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if x.rank != 4 or 0 in x.shape:
        return None
    batch, heads, _, width = x.shape
    keys = s.chance.number(1, 4)
    k, v = s.tensor(x.dtype, (batch, heads, keys, width)), s.tensor(x.dtype, (batch, heads, keys, width))
    mask = s.tensor(s.chance.pick([x.dtype, np.bool_]), (x.shape[2], keys)) if s.chance.often(0.3) else None
    return s.node(operator, [x, k, v, mask], scale=s.chance.pick([None, 0.5]), is_causal=s.chance.pick([None, 1]), softcap=s.chance.pick([None, None, 2.0]))


def rotary(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if x.rank != 4 or x.shape[3] % 2 or 0 in x.shape:
        return None
    caches = [s.tensor(x.dtype, (x.shape[0], x.shape[2], x.shape[3] // 2)) for _ in range(2)]
    return s.node(operator, [x, *caches], interleaved=s.chance.pick([None, 1]))


def fourier(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if x.rank < 2 or x.shape[-1] not in (1, 2) or 0 in x.shape:
        return None
    axis = s.chance.number(0, x.rank - 2)
    flags = {"inverse": s.chance.pick([None, 1]), "onesided": s.chance.pick([None, 1]) if x.shape[-1] == 1 else None}
    return s.node(operator, [x], axis=axis, **flags) if s.opset < 20 else s.node(operator, [x, None, s.literal(np.array(axis, np.int64))], **flags)


def determinant(s: Scope, x: Value, operator: str) -> list[Value] | None:
    return s.node(operator, [x]) if x.rank >= 2 and x.shape[-1] == x.shape[-2] else None


def suppression(s: Scope, x: Value, operator: str) -> list[Value] | None:
    boxes, scores = s.tensor(np.float32, (1, 4, 4)), s.tensor(np.float32, (1, 2, 4))
    limits = [s.literal(np.array([2], np.int64)), s.literal(np.array([0.5], np.float32)), s.literal(np.array([0.0], np.float32))]
    return s.node(operator, [boxes, scores, *limits], center_point_box=s.chance.number(0, 1))


LAYERS: dict[str, Emitter] = {
    **dict.fromkeys(FAMILIES["reduction"].members, reduction),
    **dict.fromkeys(("ArgMax", "ArgMin"), argument),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax", "LpNormalization"), along),
    **dict.fromkeys(("CumSum", "CumProd"), running),
    **dict.fromkeys(("MatMulInteger", "QLinearMatMul"), integer_product),
    **dict.fromkeys(("Conv", "ConvTranspose", "ConvInteger", "QLinearConv"), convolution),
    **dict.fromkeys(("AveragePool", "MaxPool", "LpPool"), pool),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), whole),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization", "RMSNormalization"), normalization),
    **dict.fromkeys(("RNN", "GRU", "LSTM"), recurrent),
    "Attention": attention,
    "DFT": fourier,
    "Det": determinant,
    "Einsum": einsum,
    "Gemm": general,
    "LRN": local,
    "MatMul": product,
    "MeanVarianceNormalization": moments,
    "NonMaxSuppression": suppression,
    "RotaryEmbedding": rotary,
    "TopK": top,
}
