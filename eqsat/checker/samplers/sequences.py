"""Samplers for operators over sequences: recurrent networks, attention, rotary positions, losses
over classes.

They draw shapes of weights and caches that agree with the sequence, and the few attributes that all
runtimes support.
"""

from __future__ import annotations

from eqsat.checker.samplers.drawn_node import OBEDIENCE, DrawnNode, Unfit
from eqsat.checker.samplers.leaf_shapes import draw_size

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_ACTIVATIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
_PLAIN = ("Tanh", "Sigmoid", "Relu", "Softsign")
_SCALED = ("HardSigmoid", "ScaledTanh", "Affine")  # functions of an alpha and a beta


def sample_recurrent(node: DrawnNode) -> None:
    """LSTM, GRU and RNN: sequence first, one direction or two."""
    random, gates = node.random, _GATES[node.operator.name]
    turned = node.integer("layout", lambda: random.choice((0, 0, 0, 1))) == 1
    first, second, size = ((*node.shape(0), *(draw_size(random, 1) for _ in range(3)))[:3]) if 0 in node.fresh else node.shape(0)
    batch = first if turned else second
    node.fit(0, (first, second, size))
    direction = node.text("direction", ("forward", "reverse", "bidirectional")) or "forward"
    ways = 2 if direction == "bidirectional" else 1
    recurrence = node.shape(2)
    usual = recurrence[2] if len(recurrence) == 3 and recurrence[2] else random.randint(1, 4)
    hidden = node.integer("hidden_size", lambda: usual, usual) or usual
    if node.open("hidden_size"):
        node.chosen["hidden_size"] = hidden  # optional by its schema, but runtimes require it
    node.fit(1, (ways, gates * hidden, size))
    node.fit(2, (ways, gates * hidden, hidden))
    state = (batch, ways, hidden) if turned else (ways, batch, hidden)
    wanted = {3: (ways, 2 * gates * hidden), 4: (batch,), 5: state, 6: state, 7: (ways, 3 * hidden)}
    _draw_activations(node, ways * _ACTIVATIONS[node.operator.name])
    for position, shape in wanted.items():
        if node.present(position):
            node.fit(position, shape)


def _draw_activations(node: DrawnNode, count: int) -> None:
    """Draws activation functions of the gates, and their parameters. Functions with parameters are
    drawn only if the rule mentions the parameters.
    """
    scaled = node.open("activation_alpha") and node.open("activation_beta")
    names = node.texts("activations", lambda: [node.random.choice(_SCALED if scaled and node.chance(0.5) else _PLAIN) for _ in range(count)], count)
    takers = [name for name in names or () if name in _SCALED]
    if takers:
        node.floats("activation_alpha", lambda: [node.random.choice((0.5, 0.25)) for _ in takers])
        node.floats("activation_beta", lambda: [node.random.choice((0.5, 0.25)) for _ in takers])


def sample_attention(node: DrawnNode) -> None:
    """Attention over four axes: batch, heads, positions, head size; keys may have fewer heads.

    If the data has three axes, attributes give the numbers of heads.
    """
    random = node.random
    if (
        node.open("q_num_heads")
        and node.open("kv_num_heads")
        and len(node.inputs) <= 4
        and {0, 1, 2} <= node.fresh
        and node.chance(OBEDIENCE if len(node.shape(0)) == 3 else 0.3)
    ):
        batch, query_length, length, groups, heads, size = (random.randint(1, 3) for _ in range(6))
        node.chosen["q_num_heads"], node.chosen["kv_num_heads"] = groups * heads, heads
        for position, shape in enumerate(((batch, query_length, groups * heads * size), *((batch, length, heads * size),) * 2)):
            node.fit(position, shape)
        if node.present(3):
            node.fit(3, random.choice(((query_length, length), (1, 1, query_length, length), (batch, groups * heads, query_length, length))))
        return
    query = (*node.shape(0), *(draw_size(random, 1) for _ in range(4)))[:4] if 0 in node.fresh else node.shape(0)
    if len(query) != 4 or 0 in query:
        raise Unfit
    key = node.shape(1)
    if 0 in node.fresh and 1 not in node.fresh and len(key) == 4 and 0 not in key:
        query = (key[0], key[1] * random.choice((1, 1, 2)), query[2], key[3])
    node.fit(0, query)
    heads = random.choice([count for count in range(1, query[1] + 1) if query[1] % count == 0])
    length = draw_size(random, 1)
    if 1 in node.fresh:
        key = (query[0], heads, length, query[3])
        node.fit(1, key)
    if len(key) != 4:
        raise Unfit
    node.fit(2, (*key[:3], node.shape(2)[-1] if len(node.shape(2)) == 4 else draw_size(random, 1)))
    if node.present(3):
        node.fit(3, random.choice(((query[2], key[2]), (1, 1, query[2], key[2]), (query[0], query[1], query[2], key[2]))))


def sample_multi_head_attention(node: DrawnNode) -> None:
    """MultiHeadAttention over batch, positions, and all heads in one axis."""
    query = (*node.shape(0), *(draw_size(node.random, 1) for _ in range(3)))[:3] if 0 in node.fresh else node.shape(0)
    if len(query) != 3 or 0 in query:
        raise Unfit
    heads = node.integer("num_heads", lambda: node.random.choice([count for count in range(1, query[2] + 1) if query[2] % count == 0])) or 1
    query = (*query[:2], -(-query[2] // heads) * heads)
    key = (query[0], draw_size(node.random, 1), query[2]) if 1 in node.fresh else node.shape(1)
    if len(key) != 3:
        raise Unfit
    node.fit(0, query)
    node.fit(1, key)
    node.fit(2, (*key[:2], heads * node.random.randint(1, 3)))
    if node.present(5):
        node.fit(5, (node.random.choice((1, query[0])), node.random.choice((1, heads)), query[1], key[1]))


def sample_rotary(node: DrawnNode) -> None:
    """RotaryEmbedding over batch, heads, positions and an even head size."""
    random = node.random
    shape = (*node.shape(0), *(draw_size(random, 1) for _ in range(4)))[:4] if 0 in node.fresh else node.shape(0)
    if len(shape) != 4:
        raise Unfit
    shape = (*shape[:3], 2 * max(1, shape[3] // 2)) if 0 in node.fresh else shape
    node.fit(0, shape)
    turned = node.integer("rotary_embedding_dim", lambda: 2 * random.randint(0, shape[3] // 2)) or shape[3]
    cache = (shape[0], shape[2], turned // 2)
    if node.present(3):
        node.fit(3, (shape[0], shape[2]))
        cache = (shape[2] + 2, turned // 2)
    for position in (1, 2):
        node.fit(position, cache)
    if node.open("num_heads") and 0 in node.fresh and node.chance(0.3):
        node.chosen["num_heads"] = shape[1]
        node.fit(0, (shape[0], shape[2], shape[1] * shape[3]))


def sample_loss(node: DrawnNode) -> None:
    """The losses: a class for each sample and position, and weights of the classes."""
    scores = node.shape(0)
    if len(scores) < 2 or not scores[1]:
        scores = (*(scores or (draw_size(node.random),))[:1], draw_size(node.random, 2), *scores[2:])
        node.fit(0, scores)
    node.fit(1, (scores[0], *scores[2:]))
    if node.present(2):
        node.fit(2, (scores[1],))
