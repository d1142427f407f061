"""Samplers for operators whose inputs broadcast, and for those that take scalars or vectors beside their data.

Comes in: a site. Goes out: shapes for its new inputs that broadcast with the others, in all the ways in which ONNX's
broadcasting goes: missing axes, axes of size 1, scalars, one-element tensors, and inputs that make the result larger.
"""

from __future__ import annotations

from collections.abc import Iterable

from eqsat.checker.shapes import RANK_LIMIT, Sizes, draw_size
from eqsat.checker.site import Site, Unfit
from eqsat.facts import INTEGERS


def joined(shapes: Iterable[Sizes]) -> Sizes | None:
    """The shape that all broadcast to; None where they do not."""
    result: Sizes = ()
    for shape in shapes:
        rank = max(len(result), len(shape))
        a, b = (1,) * (rank - len(result)) + result, (1,) * (rank - len(shape)) + shape
        if any(x != y and 1 not in (x, y) for x, y in zip(a, b, strict=True)):
            return None
        result = tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))
    return result


def narrowed(site: Site, shape: Sizes) -> Sizes:
    """A shape that broadcasts to `shape` and does not make it larger."""
    kind = site.random.randrange(7)
    if kind <= 1:
        return shape
    if kind == 2:
        return ()
    if kind == 3:
        return (1,) * site.random.randint(0, len(shape))
    if kind == 4:
        return shape[site.random.randint(0, len(shape)) :]
    if kind == 5:
        axis = site.random.randint(0, max(0, len(shape) - 1))
        return tuple(size if place == axis else 1 for place, size in enumerate(shape))
    mixed = tuple(size if site.chance(0.6) else 1 for size in shape)
    return mixed[site.random.choice((0, 0, 1)) :]


def widened(site: Site, shape: Sizes) -> Sizes:
    """A shape that broadcasts with `shape` and may make the result larger."""
    if not site.chance(0.25) or len(shape) >= RANK_LIMIT:
        return narrowed(site, shape)
    if site.chance(0.3):  # the rank grows, and no size does
        return (1, *(size if site.chance(0.3) else 1 for size in shape))
    if 1 in shape and site.chance(0.5):
        return tuple(draw_size(site.random) if size == 1 else size for size in shape)
    return (draw_size(site.random), *shape)


def together(site: Site, *positions: int) -> None:
    """Makes the inputs at `positions` (all, if none are named) broadcast together."""
    places = [position for position in positions or range(len(site.inputs)) if site.present(position)]
    movable = [position for position in places if position in site.fresh]
    fixed = joined(site.shape(position) for position in places if position not in site.fresh)
    if fixed is None:
        raise Unfit
    if site.chance(0.35) and joined(site.shape(position) for position in places) is not None and not site.numbers:
        return
    target = fixed
    if len(movable) == len(places):
        first = next((position for position in movable if position not in site.numbers), movable[0])
        movable.remove(first)
        target = site.shape(first)
    for position in movable:
        # A number that makes the other operand larger is no pattern of it; one draw in twenty shows that.
        shape = narrowed(site, target) if position in site.numbers and not site.chance(0.05) else widened(site, target)
        site.fit(position, shape)
        target = joined((target, shape)) or target


def scalars(site: Site, *positions: int) -> None:
    """Makes the inputs at `positions` scalars."""
    for position in positions:
        if site.present(position):
            site.fit(position, ())


def sample_range(site: Site) -> None:
    """Range: three scalars."""
    scalars(site, 0, 1, 2)


def sample_clip(site: Site) -> None:
    """Clip: bounds are scalars."""
    scalars(site, 1, 2)


def sample_prelu(site: Site) -> None:
    """PRelu: the slope broadcasts to the data, never the other way."""
    if site.chance(0.3) and joined((site.shape(0), site.shape(1))) == site.shape(0):
        return
    site.fit(1, narrowed(site, site.shape(0)))


def sample_quantize(site: Site) -> None:
    """QuantizeLinear and DequantizeLinear: one scale, or one for each place along the axis, or one for each block of it."""
    x = site.shape(0)
    axis = site.integer("axis", lambda: site.random.randrange(len(x)) if x else 0, 1)
    scale = site.shape(1)
    if len(x) > 1 and -len(x) <= axis < len(x):
        size = x[axis]
        block = site.integer("block_size", lambda: site.random.choice([0, 0, *(length for length in range(1, size + 1) if size % length == 0)]))
        if block:
            scale = tuple(-(-length // block) if place == axis % len(x) else length for place, length in enumerate(x))
            for position in (1, 2):
                if site.present(position):
                    site.fit(position, scale)
            return
    legal = scale in ((), (1,)) or (-len(x) <= axis < len(x) and scale == (x[axis],))
    if not (legal and site.chance(0.3)):
        along = -len(x) <= axis < len(x) and site.chance(0.5)
        scale = (x[axis],) if along else ()
        site.fit(1, scale)
    if site.present(2):
        site.fit(2, scale)


def sample_mod(site: Site) -> None:
    """Mod: floats have one of the two remainders."""
    together(site)
    whole = site.inputs[0] is not None and site.inputs[0].dtype in INTEGERS
    site.integer("fmod", lambda: site.random.randint(0, 1) if whole else 1)


def sample_dropout(site: Site) -> None:
    """Dropout: the ratio and the mode are scalars."""
    scalars(site, 1, 2)
