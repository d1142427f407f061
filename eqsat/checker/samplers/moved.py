"""Samplers for operators that move or repeat elements, or make them from shapes.

They draw axes, orders, bounds and sizes in ONNX's plainest spelling (counted from the front, inside
the tensor); `equivalent_forms` writes them the other ways.
"""

from __future__ import annotations

from itertools import combinations
from math import prod

from eqsat.checker.samplers.drawn_node import OBEDIENCE, Asked, DrawnNode, Unfit
from eqsat.checker.samplers.equivalent_forms import END
from eqsat.checker.samplers.leaf_shapes import RANK_LIMIT, Sizes, draw_size


def axis_of(node: DrawnNode, position: int = 0, key: str = "axis", extra: int = 0) -> int:
    """An axis of an input with `extra` more axes, counted from the front."""
    rank = len(node.shape(position)) + extra
    if not rank:
        raise Unfit
    axis = node.integer(key, lambda: node.random.randrange(rank))
    if not -rank <= axis < rank:
        raise Unfit
    return axis % rank


def some_axes(node: DrawnNode, rank: int, least: int = 0) -> Sizes:
    """Some of `rank` axes in order."""
    if not rank:
        return ()
    return tuple(sorted(node.random.sample(range(rank), node.random.randint(min(least, rank), rank) if node.chance(0.4) else 1)))


def sample_concat(node: DrawnNode) -> None:
    """Concat: all inputs agree except along the axis."""
    first = next((position for position in range(len(node.inputs)) if position not in node.fresh), 0)
    if not node.shape(first) and first in node.fresh:
        node.fit(first, (draw_size(node.random),))
    axis = axis_of(node, first)
    model = node.shape(first)
    for position in range(len(node.inputs)):
        shape = node.shape(position)
        if position == first or (len(shape) == len(model) and all(a == b for place, (a, b) in enumerate(zip(shape, model, strict=True)) if place != axis)):
            continue
        size = draw_size(node.random)
        node.fit(position, (*model[:axis], size, *model[axis + 1 :]))


def sample_split(node: DrawnNode) -> None:
    """Split: as many parts as there are outputs; sizes are prescribed, drawn, or equal."""
    axis = axis_of(node)
    size = node.shape(0)[axis]
    if not node.open("split"):
        node.integer("num_outputs", lambda: node.outputs)
        return

    def draw() -> Sizes:
        parts = node.length("split") or node.outputs
        if node.chance(0.3) and size % parts == 0:
            return (size // parts,) * parts
        cuts = sorted(node.again(0, size) for _ in range(parts - 1))
        return tuple(b - a for a, b in zip((0, *cuts), (*cuts, size), strict=True))

    found = node.integers("split", draw)
    if found is not None and 0 in node.fresh and sum(found) != size:
        shape = node.shape(0)
        node.fit(0, (*shape[:axis], sum(found), *shape[axis + 1 :]))


def sample_slice(node: DrawnNode) -> None:
    """Slice: bounds inside the tensor, mostly not empty, steps of both signs.

    If sizes have names, bounds may also lie beyond the tensor, or count from the end.
    """
    count = node.length("axes", "starts", "ends", "steps")
    if count is not None and 0 in node.fresh and len(node.shape(0)) < count:
        node.fit(0, (*node.shape(0), *(draw_size(node.random, 1) for _ in range(count - len(node.shape(0))))))
    shape = node.shape(0)

    def draw_axes() -> Sizes:
        if count is None:
            return some_axes(node, len(shape), 1)
        if count > len(shape):
            raise Unfit
        return tuple(node.random.sample(range(len(shape)), count))

    axes = node.integers("axes", draw_axes)
    if axes is None:
        axes = tuple(range(count if count is not None else node.random.randint(0, len(shape))))
    if not all(-len(shape) <= axis < len(shape) for axis in axes):
        raise Unfit
    steps = node.integers("steps", lambda: [node.random.choice((1, 1, 2, 2, 3, -1, -2)) for _ in axes], len(axes)) or (1,) * len(axes)
    starts: list[int] = []
    ends: list[int] = []
    given = node.prescribed("starts", len(axes))
    for axis, step in zip(axes, steps, strict=True):
        size = shape[axis]
        # Half of the slices stay inside of a part, often one that a Concat or Split made.
        first, last = (0, size) if node.chance(0.5) else sorted((node.random.choice((0, node.again(0, size))), node.again(0, size)))
        if given is not None and 0 <= given[len(starts)] < size:
            first, last = given[len(starts)], size
        low, high = sorted((node.random.randint(first, last), node.random.randint(first, last)))
        if low == high and last > first and node.chance(0.8):
            low, high = max(first, low - 1), min(last, high + 1)
        low, high = (first if node.chance(0.2) else low), (last if node.chance(0.3) else high)
        # Backwards, the last element comes first, and only a large negative number means the end
        # before element 0.
        starts.append(max(low if step > 0 else high - 1, 0))
        ends.append(high if step > 0 else low - 1 if low > 0 else -size - 1)
        # A slice whose start is prescribed mostly continues another one.
        if node.symbolic and step > 0 and (given is None or not node.chance(OBEDIENCE)):
            starts[-1], ends[-1] = _unbounded(node, starts[-1], ends[-1], size)
    node.integers("starts", lambda: starts, len(axes))
    node.integers("ends", lambda: ends, len(axes))


def _unbounded(node: DrawnNode, start: int, end: int, size: int) -> tuple[int, int]:
    """The bounds, perhaps in a form that is plain only if the size of the axis is known: with an
    end beyond the last element, or a bound counted from it.
    """
    # Rules easily overlook negative bounds on a fresh tensor, and, on one that was cut before, an
    # end beyond that cut.
    weights = (0.25, 0.15, 0.05, 0.15, 0.4) if 0 in node.fresh else (0.1, 0.6, 0.15, 0.08, 0.07)
    match node.random.choices(("inside", "beyond", "open", "end", "start"), weights)[0]:
        case "beyond":
            return start, size + node.random.randint(1, 4)
        case "open":
            return start, END
        case "end" if end < size:
            return start, end - size
        case "start":
            return start - size - node.random.choice((0, 0, 1)), end
        case _:
            return start, end


def sample_transpose(node: DrawnNode) -> None:
    """Transpose: any order of the axes."""
    rank = len(node.shape(0))
    orders = [order for order in node.lists if sorted(order) == list(range(rank))]

    def draw() -> Sizes:
        if not orders or node.chance(0.6):
            return tuple(node.random.sample(range(rank), rank))
        order = node.random.choice(orders)
        return order if node.chance(0.4) else tuple(order.index(axis) for axis in range(rank))

    node.integers("perm", draw, rank)


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


def sample_tile(node: DrawnNode) -> None:
    """Tile: a repetition for each axis, seldom 0."""
    node.integers("repeats", lambda: node.random.choices((0, 1, 2, 3), (1, 8, 6, 2), k=len(node.shape(0))), len(node.shape(0)))


def sample_pad(node: DrawnNode) -> None:
    """Pad: pads of both signs in the mode constant; in other modes, pads that fit the data."""
    shape = node.shape(0)
    mode = node.text("mode", ("constant", "reflect", "edge", "wrap"))
    length = node.length("pads")

    def draw_axes() -> Sizes:
        return tuple(sorted(node.random.sample(range(len(shape)), min(length // 2, len(shape))))) if length is not None else some_axes(node, len(shape), 1)

    axes = node.integers("axes", draw_axes)
    if axes is None:
        axes = tuple(range(len(shape)))
    if not all(-len(shape) <= axis < len(shape) for axis in axes):
        raise Unfit

    def draw() -> list[int]:
        heads: list[int] = []
        tails: list[int] = []
        for axis in axes:
            most = shape[axis] - 1 if mode == "reflect" else shape[axis] if mode == "wrap" else 3
            head, tail = (node.random.randint(0, max(0, min(most, 3))) if node.chance(0.7) else 0 for _ in range(2))
            if node.chance(0.1) and shape[axis] > 1 and mode == "constant":
                head = -1
            heads.append(head)
            tails.append(tail)
        return heads + tails

    node.integers("pads", draw, 2 * len(axes))
    if node.present(2):
        node.fit(2, ())


def sample_shape(node: DrawnNode) -> None:
    """Shape: all sizes, or those of some axes."""
    rank = len(node.shape(0))
    low, high = sorted((node.random.randint(0, rank), node.random.randint(0, rank)))
    node.integer("start", lambda: low)
    node.integer("end", lambda: high)


def sample_filled(node: DrawnNode) -> None:
    """ConstantOfShape: any shape, that of a scalar included."""
    count = node.length("input")
    node.integers("input", lambda: [draw_size(node.random) for _ in range(node.random.randint(0, 3) if count is None else count)])


def sample_blocks(node: DrawnNode) -> None:
    """DepthToSpace and SpaceToDepth: four axes that the block divides."""
    deep = node.operator.name == "DepthToSpace"
    block = node.integer("blocksize", lambda: node.random.choice((1, 2, 2, 3)), 1)
    x = node.shape(0)
    if 0 in node.fresh:
        batch, channels, height, width = (*x, *(draw_size(node.random, 1) for _ in range(4)))[:4]
        if deep:
            node.fit(0, (batch, block * block * node.random.randint(1, 3), height, width))
        else:
            node.fit(0, (batch, channels, block * node.random.randint(1, 3), block * node.random.randint(1, 3)))


def sample_trilu(node: DrawnNode) -> None:
    """Trilu: a diagonal on either side."""
    if len(node.shape(0)) < 2:
        node.fit(0, (*node.shape(0), draw_size(node.random), draw_size(node.random)))
    node.integer("k", lambda: node.random.randint(-3, 3))


def sample_reverse_sequence(node: DrawnNode) -> None:
    """ReverseSequence: batch and time are the first two axes, in either order."""
    if len(node.shape(0)) < 2:
        node.fit(0, (draw_size(node.random, 1), draw_size(node.random, 1)))
    batch = node.integer("batch_axis", lambda: node.random.randint(0, 1), 1)
    node.integer("time_axis", lambda: 1 - batch)
    node.fit(1, (node.shape(0)[batch],))


def sample_center_crop_pad(node: DrawnNode) -> None:
    """CenterCropPad: a size for each axis or for each of `axes`."""
    rank = len(node.shape(0))
    axes = node.integers("axes", lambda: some_axes(node, rank, 1))
    node.integers("shape", lambda: [draw_size(node.random, 1) for _ in range(rank if axes is None else len(axes))], rank if axes is None else len(axes))
