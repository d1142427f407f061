"""Samplers for operators over sequences: recurrent networks, attention, rotary positions, and losses over classes.

Comes in: a site. Goes out: shapes of weights and caches that agree with the sequence, and the few attributes that all
runtimes have.
"""

from __future__ import annotations

from eqsat.checker.shapes import draw_size
from eqsat.checker.site import Site, Unfit

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def sample_recurrent(site: Site) -> None:
    """LSTM, GRU and RNN: sequence first, one direction or two."""
    random, gates = site.random, _GATES[site.operator.name]
    sequence, batch, size = ((*site.shape(0), *(draw_size(random, 1) for _ in range(3)))[:3]) if 0 in site.fresh else site.shape(0)
    site.fit(0, (sequence, batch, size))
    direction = site.text("direction", ("forward", "reverse", "bidirectional")) or "forward"
    ways = 2 if direction == "bidirectional" else 1
    recurrence = site.shape(2)
    usual = recurrence[2] if len(recurrence) == 3 and recurrence[2] else random.randint(1, 4)
    hidden = site.integer("hidden_size", lambda: usual, usual) or usual
    if site.open("hidden_size"):
        site.chosen["hidden_size"] = hidden  # optional by its schema, but runtimes require it
    site.fit(1, (ways, gates * hidden, size))
    site.fit(2, (ways, gates * hidden, hidden))
    wanted = {3: (ways, 2 * gates * hidden), 4: (batch,), 5: (ways, batch, hidden), 6: (ways, batch, hidden), 7: (ways, 3 * hidden)}
    for position, shape in wanted.items():
        if site.present(position):
            site.fit(position, shape)
    site.integer("linear_before_reset", lambda: random.randint(0, 1))


def sample_attention(site: Site) -> None:
    """Attention over four axes: batch, heads, positions, head size; keys may have fewer heads."""
    random = site.random
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
    site.integer("is_causal", lambda: random.randint(0, 1))
    site.number("scale", (0.5, 1.0, 0.25))


def sample_rotary(site: Site) -> None:
    """RotaryEmbedding over batch, heads, positions and an even head size."""
    random = site.random
    shape = (*site.shape(0), *(draw_size(random, 1) for _ in range(4)))[:4] if 0 in site.fresh else site.shape(0)
    if len(shape) != 4:
        raise Unfit
    shape = (*shape[:3], 2 * max(1, shape[3] // 2)) if 0 in site.fresh else shape
    site.fit(0, shape)
    cache = (shape[0], shape[2], shape[3] // 2)
    if site.present(3):
        site.fit(3, (shape[0], shape[2]))
        cache = (shape[2] + 2, shape[3] // 2)
    for position in (1, 2):
        site.fit(position, cache)
    site.integer("interleaved", lambda: random.randint(0, 1))


def sample_loss(site: Site) -> None:
    """The losses: a class for each place of the scores, and weights of the classes."""
    scores = site.shape(0)
    if len(scores) < 2 or not scores[1]:
        scores = (*(scores or (draw_size(site.random),))[:1], draw_size(site.random, 2), *scores[2:])
        site.fit(0, scores)
    site.fit(1, (scores[0], *scores[2:]))
    if site.present(2):
        site.fit(2, (scores[1],))
    site.text("reduction", ("mean", "sum", "none"))
