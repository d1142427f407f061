"""Output shapes of operators that multiply and sum.

These are matrix products, Einsum, attention, recurrences, normalizations and losses.
"""

from __future__ import annotations

import string

from eqsat.facts.dims import Dim, add, floordiv, mul
from eqsat.facts.node import Node, Shape, alike, broadcast


def matmul(node: Node, right_input: int = 1) -> list[Shape] | None:
    """MatMul and its variants."""
    a, b = node.shape(0), node.shape(right_input)
    if not a or not b:
        return None
    left, right = a if len(a) > 1 else (1, *a), b if len(b) > 1 else (*b, 1)
    rows = (left[-2],) if len(a) > 1 else ()
    columns = (right[-1],) if len(b) > 1 else ()
    return [(*broadcast(left[:-2], right[:-2]), *rows, *columns)]


def fused_matmul(node: Node) -> list[Shape] | None:
    """FusedMatMul, which may exchange the last two axes of an operand."""
    a, b = node.shape(0), node.shape(1)
    if a is None or b is None or len(a) < 2 or len(b) < 2 or node.integer("transBatchA", 0) or node.integer("transBatchB", 0):
        return None
    rows = a[-1] if node.integer("transA", 0) else a[-2]
    columns = b[-2] if node.integer("transB", 0) else b[-1]
    return [(*broadcast(a[:-2], b[:-2]), rows, columns)]


def skip_normalization(node: Node) -> list[Shape] | None:
    """SkipLayerNormalization and its kin: the data, the statistics of each row, and the sum."""
    shape = node.shape(0)
    return None if not shape else [shape, (*shape[:-1], 1), (*shape[:-1], 1), shape]


def quantized_matmul(node: Node) -> list[Shape] | None:
    """QLinearMatMul, whose second matrix is the fourth input."""
    return matmul(node, 3)


def gemm(node: Node) -> list[Shape] | None:
    """Gemm."""
    a, b = node.shape(0), node.shape(1)
    if a is None or b is None or len(a) != 2 or len(b) != 2:
        return None
    return [(a[1] if node.integer("transA", 0) else a[0], b[0] if node.integer("transB", 0) else b[1])]


def attention(node: Node) -> list[Shape] | None:
    """Attention: the output, the present keys and values, and the query-key products."""
    query, key, value, past_key = node.shape(0), node.shape(1), node.shape(2), node.shape(4)
    if query is None or key is None or value is None or not len(query) == len(key) == len(value) or len(query) not in (3, 4):
        return None
    if len(query) == 4:
        batch, heads, length, _ = query
        key_heads, key_length, key_size, value_size = key[1], key[2], key[3], value[3]
        output: Shape = (batch, heads, length, value_size)
    else:
        batch, length = query[:2]
        heads, key_heads = node.integer("q_num_heads", 0), node.integer("kv_num_heads", 0)
        key_length, key_size, value_size = key[1], floordiv(key[2], key_heads), floordiv(value[2], key_heads)
        output = (batch, length, mul(value_size, heads))
    past = None if past_key is None or len(past_key) != 4 else past_key[2]
    total = key_length if node.fact(4) is None else add(key_length, past)
    return [output, (batch, key_heads, total, key_size), (batch, key_heads, total, value_size), (batch, heads, length, total)]


def multi_head_attention(node: Node) -> list[Shape] | None:
    """MultiHeadAttention of three axes: the queries, in the width of the values."""
    query, value = node.shape(0), node.shape(2)
    return None if query is None or value is None or len(query) != 3 or len(value) != 3 else [(*query[:2], value[2])]


def einsum(node: Node) -> list[Shape] | None:
    """Einsum: the sizes of the letters of the result."""
    left, arrow, right = node.text("equation", "").replace(" ", "").partition("->")
    terms = left.split(",")
    shapes = [None if fact is None else fact.shape for fact in node.inputs]
    if len(terms) != len(shapes):
        return None
    sizes: dict[str, list[Dim]] = {}
    rests: list[Shape] = []
    for term, shape in zip(terms, shapes, strict=True):
        head, dots, tail = term.partition("...")
        known = () if shape is None else shape
        if shape is None or len(head + tail) > len(known) or (not dots and len(term) != len(known)):
            return None
        end = len(known) - len(tail)
        rests += [known[len(head) : end]] if dots else []
        for letter, size in zip(head + tail, (*known[: len(head)], *known[end:]), strict=True):
            sizes.setdefault(letter, []).append(size)
    if not arrow:
        right = "..." * bool(rests) + "".join(letter for letter in string.ascii_letters if left.count(letter) == 1)
    head, dots, tail = right.partition("...")
    if not sizes.keys() >= set(head + tail):
        return None
    alone = {letter: broadcast(*((size,) for size in found))[0] for letter, found in sizes.items()}
    return [(*(alone[letter] for letter in head), *(broadcast(*rests) if dots and rests else ()), *(alone[letter] for letter in tail))]


def recurrence(node: Node) -> list[Shape] | None:
    """RNN, GRU and LSTM: all states, and the last state of each kind."""
    x, weights, states = node.shape(0), node.shape(1), node.shape(2)
    if x is None or len(x) != 3:
        return None
    ways: Dim = 2 if node.text("direction", "forward") == "bidirectional" else 1
    if weights is not None and len(weights) == 3:
        ways = alike(ways, weights[0])
    hidden = states[2] if states is not None and len(states) == 3 else None
    hidden = alike(hidden, node.integer("hidden_size", 0) or None)
    if node.integer("layout", 0) == 1:
        batch, length = x[:2]
        return [(batch, length, ways, hidden), *[(batch, ways, hidden)] * 2]
    length, batch = x[:2]
    return [(length, ways, batch, hidden), *[(ways, batch, hidden)] * 2]


def batch_normalization(node: Node) -> list[Shape] | None:
    """BatchNormalization: the data, and the statistics per channel."""
    shape = node.shape(0)
    return None if shape is None or len(shape) < 2 else [shape, *[(shape[1],)] * (node.outputs - 1)]


def layer_normalization(node: Node) -> list[Shape] | None:
    """LayerNormalization: the data, and the statistics over the other axes."""
    shape = node.shape(0)
    axis = None if shape is None else node.axis(len(shape), -1)
    if shape is None or axis is None:
        return None
    outer = (*shape[:axis], *(1 for _ in shape[axis:]))
    return [shape, outer, outer]


def loss(node: Node) -> list[Shape] | None:
    """Losses: one per label or a scalar, and the log-probabilities."""
    scores, labels = node.shape(0), node.shape(1)
    if node.text("reduction", "mean") != "none":
        found: Shape | None = ()
    else:
        found = labels
    return None if found is None or scores is None else [found, scores]


def determinant(node: Node) -> list[Shape] | None:
    """Det: one number per matrix."""
    shape = node.shape(0)
    return None if shape is None or len(shape) < 2 else [shape[:-2]]
