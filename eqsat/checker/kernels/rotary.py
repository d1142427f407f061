"""RotaryEmbedding: the runtimes have it in single precision only, and rules are judged in double.

The input is a `Call`; the output is its result, in the type of its operands.
"""

from __future__ import annotations

import numpy as np

from eqsat.checker.kernels.call import Array, Call, Illegal, Kernel


def _rotary(call: Call) -> list[Array]:
    """Rotates pairs of elements of each head by the angle of their position. Elements beyond
    `rotary_embedding_dim` stay.
    """
    x, cos, sin, places = call.input(0), call.input(1), call.input(2), call.given(3)
    heads = call.integer("num_heads")
    if x.ndim == 3 and heads <= 0:
        raise Illegal("RotaryEmbedding of three axes without the number of heads")
    split = x.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(0, 2, 1, 3) if x.ndim == 3 else x
    turned = call.integer("rotary_embedding_dim") or split.shape[-1]
    if places is not None:
        cos, sin = cos[places], sin[places]
    if cos.shape != (split.shape[0], split.shape[2], turned // 2) or cos.shape != sin.shape:
        raise Illegal("caches of RotaryEmbedding that do not fit")
    cos, sin = cos[:, None], sin[:, None]
    head, tail = split[..., :turned], split[..., turned:]
    pairs = (head[..., 0::2], head[..., 1::2]) if call.integer("interleaved") else (head[..., : turned // 2], head[..., turned // 2 :])
    parts = (pairs[0] * cos - pairs[1] * sin, pairs[0] * sin + pairs[1] * cos)
    result = np.stack(parts, -1).reshape(head.shape) if call.integer("interleaved") else np.concatenate(parts, -1)
    result = np.concatenate([result, tail], -1)
    return [np.asarray(result.transpose(0, 2, 1, 3).reshape(x.shape) if x.ndim == 3 else result)]


KERNELS: dict[str, Kernel] = {"RotaryEmbedding": _rotary}
