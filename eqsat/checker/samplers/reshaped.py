"""Samplers for operators that give the same elements other sizes, or repeat them along new ones: Reshape,
Flatten, Squeeze, Unsqueeze, Expand.

They mostly give the result the sizes that conditions ask.
"""

from __future__ import annotations

from itertools import combinations
from math import prod

from eqsat.checker.samplers.drawn_node import OBEDIENCE, Asked, DrawnNode, Unfit
from eqsat.checker.samplers.leaf_shapes import RANK_LIMIT, Sizes, draw_size


def sample_reshape(node: DrawnNode) -> None:
    """Reshape: another way to write the number of elements as a product, often near the present
    one.
    """
    shape = node.shape(0)
    length, wanted = node.length("shape"), node.asked
    if wanted is not None and not any(wanted) and node.chance(OBEDIENCE):
        length, wanted = length or len(wanted), None  # a rank alone

    def draw() -> Sizes:
        if wanted is not None and length in (None, len(wanted)) and node.chance(OBEDIENCE):
            kept = _kept(shape, wanted)
            asked = kept if kept is not None and node.chance(0.5) else _completed(node, wanted, prod(shape))
            if asked is not None:
                return asked
        alike = [other for other in node.lists if prod(other) == prod(shape) and len(other) == (length or len(other))]
        if alike and node.chance(0.25):
            return node.random.choice(alike)
        sizes = list(shape)
        for _ in range(node.random.choice((0, 1, 1, 2, 3))):
            _regroup(node, sizes)
        if length is not None:
            while len(sizes) > length and len(sizes) > 1:
                place = node.random.randrange(len(sizes) - 1)
                sizes[place : place + 2] = [sizes[place] * sizes[place + 1]]
            while len(sizes) < length:
                _split(node, sizes)
            if len(sizes) != length:
                raise Unfit
        return tuple(sizes)

    found = node.integers("shape", draw)
    node.integer("allowzero", lambda: node.random.choice((0, 0, 1)))
    if found is not None and 0 in found:
        # A size of 0 needs it; `equivalent_forms` writes zeros that copy.
        node.chosen["allowzero"] = 1
    if found is not None and 0 in node.fresh and all(size > 0 for size in found) and prod(found) != prod(shape):
        node.fit(0, found if node.chance(0.5) else (prod(found),))


def _kept(shape: Sizes, asked: Asked) -> Sizes | None:
    """Returns the sizes that are asked, with the present ones in all open places, as where axes next
    to each other are joined or one is split; None if their number of elements is another one.
    """
    for front in (shape, shape[max(0, len(shape) - len(asked)) :]):
        sizes = (*front, *(1,) * len(asked))
        found = tuple(size if isinstance(size, int) else sizes[place] for place, size in enumerate(asked))
        if prod(found) == prod(shape):
            return found
    return None


def _completed(node: DrawnNode, asked: Asked, elements: int) -> Sizes | None:
    """Returns the sizes that are asked, with open ones that make up this number of elements; for a
    new input with other elements, any open ones. None if that is not found.
    """
    sizes: dict[int | str, int] = {}  # of the open places, by name or place
    places = [place if size is None else size for place, size in enumerate(asked) if not isinstance(size, int)]
    known = prod(size for size in asked if isinstance(size, int))
    if places and known and elements % known == 0 and not (0 in node.fresh and node.chance(0.5)):
        sizes = dict.fromkeys(places, 1)
        rest, factor = elements // known, 2
        while rest > 1:
            while rest % factor:
                factor += 1
            sizes[node.random.choice(places)] *= factor
            rest //= factor
        sizes[node.random.choice(places)] *= rest  # which may be 0
    elif places:
        sizes = {place: draw_size(node.random, 1) for place in places}
    found = tuple(size if isinstance(size, int) else sizes[place if size is None else size] for place, size in enumerate(asked))
    return found if prod(found) == elements or (0 in node.fresh and all(found)) else None


def _regroup(node: DrawnNode, sizes: list[int]) -> None:
    kind = node.random.randrange(4)
    if kind == 0 and len(sizes) > 1:
        place = node.random.randrange(len(sizes) - 1)
        sizes[place : place + 2] = [sizes[place] * sizes[place + 1]]
    elif kind == 1 and len(sizes) < RANK_LIMIT:
        _split(node, sizes)
    elif kind == 2 and 1 in sizes:
        sizes.remove(1)
    else:
        node.random.shuffle(sizes)


def _split(node: DrawnNode, sizes: list[int]) -> None:
    place = node.random.randint(0, len(sizes))
    if place == len(sizes) or sizes[place] == 0:
        sizes.insert(place, 1)
        return
    divisors = [factor for factor in range(1, sizes[place] + 1) if sizes[place] % factor == 0]
    factor = node.random.choice(divisors)
    sizes[place : place + 1] = [factor, sizes[place] // factor]


def sample_flatten(node: DrawnNode) -> None:
    """Flatten: the axis may be the rank itself."""
    rank = len(node.shape(0))
    node.integer("axis", lambda: node.random.randint(0, rank), 1)


def sample_squeeze(node: DrawnNode) -> None:
    """Squeeze: axes of size 1; a new input gets some."""
    shape = node.shape(0)
    ones = [axis for axis, size in enumerate(shape) if size == 1]
    length = node.length("axes")
    if 0 in node.fresh and len(ones) < (length if length is not None else 1) and len(shape) < RANK_LIMIT:
        sizes = list(shape)
        for _ in range(length or node.random.choice((1, 1, 2, 3))):
            sizes.insert(node.random.randint(0, len(sizes)), 1)
        node.fit(0, tuple(sizes))
        ones = [axis for axis, size in enumerate(sizes) if size == 1]

    def draw() -> Sizes:
        count = length if length is not None else node.random.randint(min(1, len(ones)), len(ones))
        if count > len(ones):
            raise Unfit
        return tuple(sorted(node.random.sample(ones, count)))

    node.integers("axes", draw)


def sample_unsqueeze(node: DrawnNode) -> None:
    """Unsqueeze: axes of the result."""
    length = node.length("axes")
    asked = _inserted(node) if node.asked is not None and node.chance(OBEDIENCE) else []
    if asked and length in (None, len(asked[0])):
        node.integers("axes", lambda: node.random.choice(asked), len(asked[0]))
        return
    count = length if length is not None else node.random.choice((0, 1, 1, 1, 2, 2, 3))
    rank = len(node.shape(0)) + count
    node.integers("axes", lambda: sorted(node.random.sample(range(rank), count)), count)


def _inserted(node: DrawnNode) -> list[Sizes]:
    """The axes that give the result the sizes that are asked."""
    shape, asked = node.shape(0), node.asked or ()
    found: list[Sizes] = []
    for axes in combinations(range(len(asked)), len(asked) - len(shape)) if len(asked) >= len(shape) else ():
        known = iter(shape)
        sizes = [1 if axis in axes else next(known) for axis in range(len(asked))]
        if all(size == wanted or not isinstance(wanted, int) for size, wanted in zip(sizes, asked, strict=True)):
            found.append(axes)
    return found


def sample_expand(node: DrawnNode) -> None:
    """Expand: ones grow, new axes come in front; sometimes nothing grows."""
    shape = node.shape(0)
    length = node.length("shape")

    def draw() -> Sizes:
        asked = node.asked or ()
        if len(asked) >= len(shape) and length in (None, len(asked)) and node.chance(OBEDIENCE):
            known = (*(1,) * (len(asked) - len(shape)), *shape)
            return tuple(size if size != 1 else more if isinstance(more, int) else draw_size(node.random) for size, more in zip(known, asked, strict=True))
        sizes = tuple(draw_size(node.random) if size == 1 and node.chance(0.7) else size for size in shape)
        extra = node.random.choice((0, 0, 1, 2)) if length is None else length - len(sizes)
        return sizes[-extra:] if extra < 0 else (*(draw_size(node.random) for _ in range(extra)), *sizes)

    found = node.integers("shape", draw)
    if found is not None and 0 in node.fresh and node.chance(0.3):
        node.fit(0, tuple(1 if node.chance(0.4) else size for size in found)[node.random.choice((0, 0, 1)) :])
