"""The graph of a seed, for the fuzzer of facts.

It begins with a node of the tables, a computation with sizes, with bounded values or with sums of
products, or nodes that fill and empty a sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import defs

from .facts_draw import FLOAT, Draw, Maker, ints, scalar
from .facts_elements import ELEMENTS
from .facts_layers import LAYERS
from .facts_models import Drawn, parameter, place_node
from .facts_moves import MOVES
from .facts_products import product_program
from .facts_programs import followers, move, shape_program, tensor
from .facts_ranges import ranged_program

OLDEST, NEWEST = 7, 26
TABLE: dict[str, Maker] = dict(sorted({**ELEMENTS, **MOVES, **LAYERS}.items()))


def draw_graph(seed: int, names: Sequence[str] = ()) -> tuple[Drawn, Draw]:
    """Returns the graph of a seed, and its random choices."""
    draw = Draw([seed])
    if not names and draw.chance(0.12):
        drawn = Drawn(draw.number(OLDEST, NEWEST))
        source = tensor(drawn, draw)
        shape_program(drawn, draw, source)
        return drawn, draw
    if not names and draw.chance(0.06):
        drawn = Drawn(draw.number(11, NEWEST))
        boxed(drawn, draw)
        return drawn, draw
    if not names and draw.chance(0.15):
        drawn = Drawn(draw.number(18, NEWEST))
        ranged_program(drawn, draw)
        return drawn, draw
    if not names and draw.chance(0.06):
        drawn = Drawn(draw.number(19, NEWEST))
        product_program(drawn, draw)
        return drawn, draw
    operators = names or tuple(TABLE)
    while True:
        name = operators[draw.number(0, len(operators) - 1)]
        versions = {opset: _schema(name, opset) for opset in range(OLDEST, NEWEST + 1)}
        known = sorted({schema.since_version for schema in versions.values() if schema is not None})
        if known:
            break
    version = draw.pick(*known)
    opset = draw.pick(*(opset for opset, schema in versions.items() if schema is not None and schema.since_version == version))
    schema = versions[opset]
    assert schema is not None
    draw.schema, draw.version = schema, version
    drawn = Drawn(opset)
    outputs = place_node(drawn, draw, schema, TABLE[name](draw))
    if draw.chance(0.4):
        followers(drawn, draw, outputs[0])
    return drawn, draw


def _schema(name: str, opset: int) -> defs.OpSchema | None:
    try:
        schema = defs.get_schema(name, opset, "")
    except defs.SchemaError:
        return None
    return None if schema.deprecated else schema


# --- sequences and optionals ---


def boxed(drawn: Drawn, draw: Draw) -> None:
    """Adds a filled sequence or optional, and nodes that read from it."""
    x = tensor(drawn, draw)
    takes: list[Callable[[str], Any]] = [
        lambda box: drawn.add("SequenceAt", [box, drawn.constant(np.array(draw.number(-2, 2)))]),
        lambda box: drawn.add("SequenceLength", [box]),
        lambda box: drawn.add("ConcatFromSequence", [box], {"axis": draw.number(-2, 1)} | ({"new_axis": 1} if draw.chance(0.4) else {})),
        lambda box: drawn.add("SequenceAt", [drawn.add("SequenceInsert", [box, x, *_place(drawn, draw)])[0], drawn.constant(np.array(draw.number(-2, 2)))]),
        lambda box: drawn.add("SequenceAt", [drawn.add("SequenceErase", [box, *_place(drawn, draw)])[0], drawn.constant(np.array(0))]),
    ]
    kind = draw.number(0, 5)
    if kind <= 2:
        rank = len(drawn.inputs[x][1])
        attributes = {"axis": draw.number(-rank, rank - 1)} if draw.chance(0.7) else {}
        attributes |= {"keepdims": draw.number(0, 1)} if draw.chance(0.7) else {}
        parts = draw.pick(None, None, scalar(draw.number(1, 3)), ints(*draw.numbers(draw.number(1, 3), 1, 3)), ints(1))
        box = drawn.add("SplitToSequence", [x] if parts is None else [x, parameter(drawn, draw, parts.array)], attributes)[0]
    elif kind == 3:
        box = drawn.add("SequenceConstruct", [x, x] if draw.chance() else [x, move(drawn, draw, x)])[0]
    elif kind == 4:
        box = drawn.add("SequenceInsert", [drawn.add("SequenceEmpty", [], {"dtype": FLOAT} if draw.chance() else {})[0], x])[0]
    else:
        if drawn.opset < 15:
            return
        full = drawn.add("Optional", [x])[0]
        drawn.add("OptionalHasElement", [full])
        move(drawn, draw, drawn.add("OptionalGetElement", [full])[0])
        return
    taken = draw.pick(*takes)(box)
    if draw.chance():
        followers(drawn, draw, taken[0])


def _place(drawn: Drawn, draw: Draw) -> list[str]:
    return [drawn.constant(np.array(draw.number(-1, 1)))] if draw.chance() else []
