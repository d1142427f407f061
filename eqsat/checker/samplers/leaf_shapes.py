"""Leaf shapes: shapes for the leaves of a left side, drawn around the shapes of a test line.

The input is the shapes that the author thought of, or a first shape. The output is shapes of the
same structure (equal sizes mostly stay equal) with other sizes, other ranks, and single axes that
broadcast. They are suggestions; the samplers see whether an operator accepts them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from random import Random
from typing import Final, TypeAlias

from eqsat.checker.samplers.weighted import as_often, one_of
from eqsat.facts.node import Shape

Sizes: TypeAlias = tuple[int, ...]

ELEMENT_LIMIT: Final = 4096  # larger tensors make an instance slow and show nothing more
RANK_LIMIT: Final = 8

_DEEP: Final = 5  # additional axes, more than an author thinks of

_SIZES: Final = as_often({0: 2, 1: 10, 2: 20, 3: 20, 4: 18, 5: 10, 6: 10, 7: 5, 8: 5, 9: 2, 12: 1})
_RANKS: Final = (0, 1, 2, 2, 3, 3, 4)
_EMPTY: Final = 0.2  # share of the draws with an axis of size 0 if the rule may reduce an axis


@functools.lru_cache(maxsize=1 << 12)
def numbers(shape: Shape | None) -> Sizes:
    """The sizes that are numbers: in a draw, all of them but those that depend on elements."""
    return tuple([size for size in shape or () if isinstance(size, int)])


def draw_size(random: Random, least: int = 0) -> int:
    """A small size, seldom 0, not below `least`."""
    return max(least, one_of(random, _SIZES))


def first_shape(random: Random) -> Sizes:
    """A shape to begin with, of a usual rank."""
    return tuple(draw_size(random, 1) for _ in range(random.choice(_RANKS)))


def of_rank(random: Random, shape: Sizes, least: int, most: int) -> Sizes:
    """The shape, shortened or lengthened to the nearest rank in these bounds."""
    return (*shape[:most], *(draw_size(random, 1) for _ in range(least - len(shape))))


def draw_shapes(random: Random, shapes: Mapping[str, Sizes], reduced: bool = False) -> dict[str, Sizes]:
    """Shapes for the same tensors: classes of equal sizes get new sizes; sometimes ranks or single
    sizes change.

    If axes are `reduced`, one class has size 0 more often, because authors easily overlook empty
    reductions.
    """
    found = dict(shapes) if random.random() < 0.15 else _relabelled(random, shapes)
    sizes = sorted({size for shape in found.values() for size in shape})
    if reduced and sizes and random.random() < _EMPTY:
        gone = random.choice(sizes)
        found = {name: tuple(0 if size == gone else size for size in shape) for name, shape in found.items()}
    if random.random() < 0.3:
        found = _reranked(random, found)
    if random.random() < 0.3 and found:
        name = random.choice(list(found))
        shape = list(found[name])
        if shape:
            shape[random.randrange(len(shape))] = 1 if random.random() < 0.6 else draw_size(random)
            found[name] = tuple(shape)
    return {name: limited(random, shape) for name, shape in found.items()}


def limited(random: Random, shape: Sizes) -> Sizes:
    """`shape` with its largest axes shortened until it has at most `ELEMENT_LIMIT` elements."""
    sizes = list(shape[:RANK_LIMIT])
    while _count(sizes) > ELEMENT_LIMIT:
        largest = max(range(len(sizes)), key=sizes.__getitem__)
        sizes[largest] = random.randint(1, max(1, sizes[largest] // 2))
    return tuple(sizes)


def _count(sizes: list[int]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


def _relabelled(random: Random, shapes: Mapping[str, Sizes]) -> dict[str, Sizes]:
    sizes: dict[int, int] = {1: 1}
    for shape in shapes.values():
        for size in shape:
            if size not in sizes:
                sizes[size] = draw_size(random)
    return {name: tuple(sizes[size] for size in shape) for name, shape in shapes.items()}


def _reranked(random: Random, shapes: Mapping[str, Sizes]) -> dict[str, Sizes]:
    """Ranks that the author may have forgotten: axes come or go at one end or before the last two,
    on all tensors or on one.
    """
    one = random.choice(list(shapes)) if shapes and random.random() < 0.5 else None
    place = random.choice(("front", "front", "back", "middle"))
    change = random.choice((-2, -1, -1, 1, 1, 2, _DEEP))
    extra = [draw_size(random, 1)] * change if change < _DEEP else random.choices((1, 2), k=change)
    deepest = max(map(len, shapes.values()), default=0)
    found: dict[str, Sizes] = {}
    for name, shape in shapes.items():
        if one not in (None, name) or (one is None and place == "front" and change < 0 and len(shape) < deepest):
            found[name] = shape
            continue
        at = {"front": 0, "back": len(shape), "middle": max(0, len(shape) - 2)}[place]
        if change > 0:
            found[name] = (*shape[:at], *extra, *shape[at:])
        elif place == "front":
            found[name] = shape[-change:]
        else:
            found[name] = (*shape[: max(0, at + change)], *shape[at:])
    return found
