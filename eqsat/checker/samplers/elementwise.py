"""Samplers for operators whose inputs broadcast, and for those that take scalars or vectors besides
their data.

They give the new inputs of a node shapes that broadcast with the others in all the ways of ONNX:
missing axes, axes of size 1, scalars, one-element tensors, and inputs that make the result larger.
"""

from __future__ import annotations

from collections.abc import Iterable

from eqsat.checker.samplers.drawn_node import OBEDIENCE, DrawnNode, Unfit
from eqsat.checker.samplers.leaf_shapes import RANK_LIMIT, Sizes, draw_size
from eqsat.facts.fact import INTEGERS


def joined(shapes: Iterable[Sizes]) -> Sizes | None:
    """The shape that all broadcast to; None if they do not."""
    result: Sizes = ()
    for shape in shapes:
        rank = max(len(result), len(shape))
        a, b = (1,) * (rank - len(result)) + result, (1,) * (rank - len(shape)) + shape
        if any(x != y and 1 not in (x, y) for x, y in zip(a, b, strict=True)):
            return None
        result = tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))
    return result


def narrowed(node: DrawnNode, shape: Sizes) -> Sizes:
    """A shape that broadcasts to `shape` and does not make it larger."""
    kind = node.random.randrange(7)
    if kind <= 1:
        return shape
    if kind == 2:
        return ()
    if kind == 3:
        return (1,) * node.random.randint(0, len(shape))
    if kind == 4:
        return shape[node.random.randint(0, len(shape)) :]
    if kind == 5:
        axis = node.random.randint(0, max(0, len(shape) - 1))
        return tuple(size if place == axis else 1 for place, size in enumerate(shape))
    mixed = tuple(size if node.chance(0.6) else 1 for size in shape)
    return mixed[node.random.choice((0, 0, 1)) :]


def widened(node: DrawnNode, shape: Sizes) -> Sizes:
    """A shape that broadcasts with `shape` and may make the result larger."""
    if not node.chance(0.25) or len(shape) >= RANK_LIMIT:
        return narrowed(node, shape)
    if node.chance(0.3):  # the rank grows, and no size does
        return (1, *(size if node.chance(0.3) else 1 for size in shape))
    if 1 in shape and node.chance(0.5):
        return tuple(draw_size(node.random) if size == 1 else size for size in shape)
    return (draw_size(node.random), *shape)


def together(node: DrawnNode, *positions: int) -> None:
    """Makes the inputs at `positions` (all, if none are named) broadcast together."""
    places = [position for position in positions or range(len(node.inputs)) if node.present(position)]
    movable = [position for position in places if position in node.fresh]
    fixed = joined(node.shape(position) for position in places if position not in node.fresh)
    if fixed is None:
        raise Unfit
    now = joined(node.shape(position) for position in places)
    wanted = now is not None and node.asked is not None and len(now) == len(node.asked)
    if node.chance(OBEDIENCE if wanted else 0.35) and now is not None and not node.numbers:
        return
    target = fixed
    if len(movable) == len(places):
        first = next((position for position in movable if position not in node.numbers), movable[0])
        movable.remove(first)
        target = node.shape(first)
    for position in movable:
        # A number that enlarges the other operand must not match its pattern. One draw in twenty
        # tests that.
        shape = narrowed(node, target) if position in node.numbers and not node.chance(0.05) else widened(node, target)
        node.fit(position, shape)
        target = joined((target, shape)) or target


def scalars(node: DrawnNode, *positions: int) -> None:
    """Makes the inputs at `positions` scalars."""
    for position in positions:
        if node.present(position):
            node.fit(position, ())


def sample_range(node: DrawnNode) -> None:
    """Range: three scalars."""
    scalars(node, 0, 1, 2)


def sample_clip(node: DrawnNode) -> None:
    """Clip: bounds are scalars."""
    scalars(node, 1, 2)


def sample_prelu(node: DrawnNode) -> None:
    """PRelu: the slope broadcasts to the data, never the other way."""
    if node.chance(0.3) and joined((node.shape(0), node.shape(1))) == node.shape(0):
        return
    node.fit(1, narrowed(node, node.shape(0)))


def sample_quantize(node: DrawnNode) -> None:
    """QuantizeLinear and DequantizeLinear: one scale, one for each index of the axis, or one for
    each block.
    """
    x = node.shape(0)
    axis = node.integer("axis", lambda: node.random.randrange(len(x)) if x else 0, 1)
    scale = node.shape(1)
    if len(x) > 1 and -len(x) <= axis < len(x):
        size = x[axis]
        block = node.integer("block_size", lambda: node.random.choice([0, 0, *(length for length in range(1, size + 1) if size % length == 0)]))
        if block:
            scale = tuple(-(-length // block) if place == axis % len(x) else length for place, length in enumerate(x))
            for position in (1, 2):
                if node.present(position):
                    node.fit(position, scale)
            return
    legal = scale in ((), (1,)) or (-len(x) <= axis < len(x) and scale == (x[axis],))
    if not (legal and node.chance(0.3)):
        along = -len(x) <= axis < len(x) and node.chance(0.5)
        scale = (x[axis],) if along else ()
        node.fit(1, scale)
    if node.present(2):
        node.fit(2, scale)


def sample_mod(node: DrawnNode) -> None:
    """Mod: floats only with fmod."""
    together(node)
    whole = node.inputs[0] is not None and node.inputs[0].dtype in INTEGERS
    node.integer("fmod", lambda: node.random.randint(0, 1) if whole else 1)


def sample_dropout(node: DrawnNode) -> None:
    """Dropout: the ratio and the mode are scalars."""
    scalars(node, 1, 2)
