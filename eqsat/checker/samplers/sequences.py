"""Samplers for operators over sequences: recurrent networks, attention, rotary positions, and losses over classes.

Comes in: a site. Goes out: shapes of weights and caches that agree with the sequence, and the few attributes that all
runtimes have.
"""

from __future__ import annotations

from eqsat.checker.shapes import draw_size
from eqsat.checker.site import Site, Unfit

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_ACTIVATIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
_PLAIN = ("Tanh", "Sigmoid", "Relu", "Softsign")
_SCALED = ("HardSigmoid", "ScaledTanh", "Affine")  # of an alpha and a beta


def sample_recurrent(site: Site) -> None:
    """LSTM, GRU and RNN: sequence first, one direction or two."""
    random, gates = site.random, _GATES[site.operator.name]
    # Batch first, or sequence first.
    turned = site.integer("layout", lambda: random.choice((0, 0, 0, 1))) == 1
    first, second, size = ((*site.shape(0), *(draw_size(random, 1) for _ in range(3)))[:3]) if 0 in site.fresh else site.shape(0)
    batch = first if turned else second
    site.fit(0, (first, second, size))
    direction = site.text("direction", ("forward", "reverse", "bidirectional")) or "forward"
    ways = 2 if direction == "bidirectional" else 1
    recurrence = site.shape(2)
    usual = recurrence[2] if len(recurrence) == 3 and recurrence[2] else random.randint(1, 4)
    hidden = site.integer("hidden_size", lambda: usual, usual) or usual
    if site.open("hidden_size"):
        site.chosen["hidden_size"] = hidden  # optional by its schema, but runtimes require it
    site.fit(1, (ways, gates * hidden, size))
    site.fit(2, (ways, gates * hidden, hidden))
    state = (batch, ways, hidden) if turned else (ways, batch, hidden)
    wanted = {3: (ways, 2 * gates * hidden), 4: (batch,), 5: state, 6: state, 7: (ways, 3 * hidden)}
    _draw_activations(site, ways * _ACTIVATIONS[site.operator.name])
    for position, shape in wanted.items():
        if site.present(position):
            site.fit(position, shape)


def _draw_activations(site: Site, count: int) -> None:
    """Functions of the gates; those that take numbers are given them, unless the rule says nothing of numbers."""
    scaled = site.open("activation_alpha") and site.open("activation_beta")
    names = site.texts("activations", lambda: [site.random.choice(_SCALED if scaled and site.chance(0.5) else _PLAIN) for _ in range(count)], count)
    takers = [name for name in names or () if name in _SCALED]
    if takers:
        site.floats("activation_alpha", lambda: [site.random.choice((0.5, 0.25)) for _ in takers])
        site.floats("activation_beta", lambda: [site.random.choice((0.5, 0.25)) for _ in takers])


def sample_attention(site: Site) -> None:
    """Attention over four axes: batch, heads, positions, head size; keys may have fewer heads. Over three, an attribute says how many there are."""
    random = site.random
    if site.open("q_num_heads") and site.open("kv_num_heads") and len(site.inputs) == 3 and {0, 1, 2} <= site.fresh and site.chance(0.3):
        batch, query_length, length, groups, heads, size = (random.randint(1, 3) for _ in range(6))
        site.chosen["q_num_heads"], site.chosen["kv_num_heads"] = groups * heads, heads
        for position, shape in enumerate(((batch, query_length, groups * heads * size), *((batch, length, heads * size),) * 2)):
            site.fit(position, shape)
        return
    query = (*site.shape(0), *(draw_size(random, 1) for _ in range(4)))[:4] if 0 in site.fresh else site.shape(0)
    if len(query) != 4 or 0 in query:
        raise Unfit
    site.fit(0, query)
    key = site.shape(1)
    heads = random.choice([count for count in range(1, query[1] + 1) if query[1] % count == 0])
    length = draw_size(random, 1)
    if 1 in site.fresh:
        key = (query[0], heads, length, query[3])
        site.fit(1, key)
    site.fit(2, (*key[:3], site.shape(2)[-1] if len(site.shape(2)) == 4 else draw_size(random, 1)))
    if site.present(3):
        site.fit(3, random.choice(((query[2], key[2]), (1, 1, query[2], key[2]), (query[0], query[1], query[2], key[2]))))


def sample_rotary(site: Site) -> None:
    """RotaryEmbedding over batch, heads, positions and an even head size."""
    random = site.random
    shape = (*site.shape(0), *(draw_size(random, 1) for _ in range(4)))[:4] if 0 in site.fresh else site.shape(0)
    if len(shape) != 4:
        raise Unfit
    shape = (*shape[:3], 2 * max(1, shape[3] // 2)) if 0 in site.fresh else shape
    site.fit(0, shape)
    turned = site.integer("rotary_embedding_dim", lambda: 2 * random.randint(0, shape[3] // 2)) or shape[3]
    cache = (shape[0], shape[2], turned // 2)
    if site.present(3):
        site.fit(3, (shape[0], shape[2]))
        cache = (shape[2] + 2, turned // 2)
    for position in (1, 2):
        site.fit(position, cache)
    if site.open("num_heads") and 0 in site.fresh and site.chance(0.3):
        site.chosen["num_heads"] = shape[1]
        site.fit(0, (shape[0], shape[2], shape[1] * shape[3]))


def sample_loss(site: Site) -> None:
    """The losses: a class for each place of the scores, and weights of the classes."""
    scores = site.shape(0)
    if len(scores) < 2 or not scores[1]:
        scores = (*(scores or (draw_size(site.random),))[:1], draw_size(site.random, 2), *scores[2:])
        site.fit(0, scores)
    site.fit(1, (scores[0], *scores[2:]))
    if site.present(2):
        site.fit(2, (scores[1],))
