"""Samplers for operators that move, choose or repeat elements.

Comes in: a site. Goes out: axes, orders, bounds and sizes in ONNX's plainest spelling (counted from the front, inside
the tensor); `spellings` writes them the other ways.
"""

from __future__ import annotations

from math import prod

from eqsat.checker.shapes import RANK_LIMIT, Sizes, draw_size
from eqsat.checker.site import Site, Unfit
from eqsat.checker.spellings import END


def axis_of(site: Site, position: int = 0, key: str = "axis", extra: int = 0) -> int:
    """An axis of an input (`extra`: that many places more), counted from the front."""
    rank = len(site.shape(position)) + extra
    if not rank:
        raise Unfit
    axis = site.integer(key, lambda: site.random.randrange(rank))
    if not -rank <= axis < rank:
        raise Unfit
    return axis % rank


def some_axes(site: Site, rank: int, least: int = 0) -> Sizes:
    """Some of `rank` axes in order."""
    if not rank:
        return ()
    return tuple(sorted(site.random.sample(range(rank), site.random.randint(min(least, rank), rank) if site.chance(0.4) else 1)))


def sample_concat(site: Site) -> None:
    """Concat: all inputs are alike but along the axis."""
    first = next((position for position in range(len(site.inputs)) if position not in site.fresh), 0)
    if not site.shape(first) and first in site.fresh:
        site.fit(first, (draw_size(site.random),))
    axis = axis_of(site, first)
    model = site.shape(first)
    for position in range(len(site.inputs)):
        shape = site.shape(position)
        if position == first or (len(shape) == len(model) and all(a == b for place, (a, b) in enumerate(zip(shape, model, strict=True)) if place != axis)):
            continue
        size = draw_size(site.random)
        site.fit(position, (*model[:axis], size, *model[axis + 1 :]))


def sample_split(site: Site) -> None:
    """Split: as many parts as there are outputs; sizes are prescribed, drawn, or equal."""
    axis = axis_of(site)
    size = site.shape(0)[axis]
    if not site.open("split"):
        site.integer("num_outputs", lambda: site.outputs)
        return

    def draw() -> Sizes:
        parts = site.length("split") or site.outputs
        if site.chance(0.3) and size % parts == 0:
            return (size // parts,) * parts
        cuts = sorted(site.again(0, size) for _ in range(parts - 1))
        return tuple(b - a for a, b in zip((0, *cuts), (*cuts, size), strict=True))

    found = site.integers("split", draw)
    if found is not None and 0 in site.fresh and sum(found) != size:
        shape = site.shape(0)
        site.fit(0, (*shape[:axis], sum(found), *shape[axis + 1 :]))


def sample_slice(site: Site) -> None:
    """Slice: bounds inside the tensor, mostly not empty, steps of both signs; where sizes have names they may also lie beyond it, or count from the end."""
    shape = site.shape(0)
    count = site.length("axes", "starts", "ends", "steps")

    def draw_axes() -> Sizes:
        if count is None:
            return some_axes(site, len(shape), 1)
        if count > len(shape):
            raise Unfit
        return tuple(site.random.sample(range(len(shape)), count))

    axes = site.integers("axes", draw_axes)
    if axes is None:
        axes = tuple(range(count if count is not None else site.random.randint(0, len(shape))))
    if not all(-len(shape) <= axis < len(shape) for axis in axes):
        raise Unfit
    steps = site.integers("steps", lambda: [site.random.choice((1, 1, 2, 2, 3, -1, -2)) for _ in axes], len(axes)) or (1,) * len(axes)
    starts: list[int] = []
    ends: list[int] = []
    for axis, step in zip(axes, steps, strict=True):
        size = shape[axis]
        # Half of the slices stay inside a part, often one that was joined or cut before.
        first, last = (0, size) if site.chance(0.5) else sorted((site.random.choice((0, site.again(0, size))), site.again(0, size)))
        low, high = sorted((site.random.randint(first, last), site.random.randint(first, last)))
        if low == high and last > first and site.chance(0.8):
            low, high = max(first, low - 1), min(last, high + 1)
        low, high = (first if site.chance(0.2) else low), (last if site.chance(0.3) else high)
        # Backwards the last one comes first, and the end "before 0" can only be written as a large negative number.
        starts.append(max(low if step > 0 else high - 1, 0))
        ends.append(high if step > 0 else low - 1 if low > 0 else -size - 1)
        if site.symbolic and step > 0:
            starts[-1], ends[-1] = _unbounded(site, starts[-1], ends[-1], size)
    site.integers("starts", lambda: starts, len(axes))
    site.integers("ends", lambda: ends, len(axes))


def _unbounded(site: Site, start: int, end: int, size: int) -> tuple[int, int]:
    """Perhaps bounds that only an axis of known size shows for what they are: an end beyond the last element, or a bound counted from it."""
    # Of a tensor as it came negative bounds are what rules overlook, of one that was cut before an end beyond that cut.
    weights = (0.25, 0.15, 0.05, 0.15, 0.4) if 0 in site.fresh else (0.1, 0.6, 0.15, 0.08, 0.07)
    match site.random.choices(("inside", "beyond", "open", "end", "start"), weights)[0]:
        case "beyond":
            return start, size + site.random.randint(1, 4)
        case "open":
            return start, END
        case "end" if end < size:
            return start, end - size
        case "start":
            return start - size - site.random.choice((0, 0, 1)), end
        case _:
            return start, end


def sample_transpose(site: Site) -> None:
    """Transpose: any order of the axes."""
    rank = len(site.shape(0))
    orders = [order for order in site.lists if sorted(order) == list(range(rank))]

    def draw() -> Sizes:
        if not orders or site.chance(0.6):
            return tuple(site.random.sample(range(rank), rank))
        order = site.random.choice(orders)
        return order if site.chance(0.4) else tuple(order.index(axis) for axis in range(rank))

    site.integers("perm", draw, rank)


def sample_reshape(site: Site) -> None:
    """Reshape: another way to write the number of elements as a product, often near the present one."""
    shape = site.shape(0)
    length = site.length("shape")

    def draw() -> Sizes:
        alike = [other for other in site.lists if prod(other) == prod(shape) and len(other) == (length or len(other))]
        if alike and site.chance(0.25):
            return site.random.choice(alike)
        sizes = list(shape)
        for _ in range(site.random.choice((0, 1, 1, 2, 3))):
            _regroup(site, sizes)
        if length is not None:
            while len(sizes) > length and len(sizes) > 1:
                place = site.random.randrange(len(sizes) - 1)
                sizes[place : place + 2] = [sizes[place] * sizes[place + 1]]
            while len(sizes) < length:
                _split(site, sizes)
            if len(sizes) != length:
                raise Unfit
        return tuple(sizes)

    found = site.integers("shape", draw)
    site.integer("allowzero", lambda: site.random.choice((0, 0, 1)))
    if found is not None and 0 in found:
        site.chosen["allowzero"] = 1  # the size is meant, which is written no other way; spellings use the zeros that copy
    if found is not None and 0 in site.fresh and all(size > 0 for size in found) and prod(found) != prod(shape):
        site.fit(0, found if site.chance(0.5) else (prod(found),))


def _regroup(site: Site, sizes: list[int]) -> None:
    kind = site.random.randrange(4)
    if kind == 0 and len(sizes) > 1:
        place = site.random.randrange(len(sizes) - 1)
        sizes[place : place + 2] = [sizes[place] * sizes[place + 1]]
    elif kind == 1 and len(sizes) < RANK_LIMIT:
        _split(site, sizes)
    elif kind == 2 and 1 in sizes:
        sizes.remove(1)
    else:
        site.random.shuffle(sizes)


def _split(site: Site, sizes: list[int]) -> None:
    place = site.random.randint(0, len(sizes))
    if place == len(sizes) or sizes[place] == 0:
        sizes.insert(place, 1)
        return
    divisors = [factor for factor in range(1, sizes[place] + 1) if sizes[place] % factor == 0]
    factor = site.random.choice(divisors)
    sizes[place : place + 1] = [factor, sizes[place] // factor]


def sample_flatten(site: Site) -> None:
    """Flatten: the axis may be the rank itself."""
    rank = len(site.shape(0))
    site.integer("axis", lambda: site.random.randint(0, rank), 1)


def sample_squeeze(site: Site) -> None:
    """Squeeze: axes of size 1; a new input gets some."""
    shape = site.shape(0)
    ones = [axis for axis, size in enumerate(shape) if size == 1]
    length = site.length("axes")
    if 0 in site.fresh and len(ones) < (length if length is not None else 1) and len(shape) < RANK_LIMIT:
        sizes = list(shape)
        for _ in range(length or 1):
            sizes.insert(site.random.randint(0, len(sizes)), 1)
        site.fit(0, tuple(sizes))
        ones = [axis for axis, size in enumerate(sizes) if size == 1]

    def draw() -> Sizes:
        count = length if length is not None else site.random.randint(min(1, len(ones)), len(ones))
        if count > len(ones):
            raise Unfit
        return tuple(sorted(site.random.sample(ones, count)))

    site.integers("axes", draw)


def sample_unsqueeze(site: Site) -> None:
    """Unsqueeze: axes of the result."""
    length = site.length("axes")
    count = length if length is not None else site.random.choice((0, 1, 1, 1, 2, 2, 3))
    rank = len(site.shape(0)) + count
    site.integers("axes", lambda: sorted(site.random.sample(range(rank), count)), count)


def sample_expand(site: Site) -> None:
    """Expand: ones grow, new axes come in front; sometimes nothing grows."""
    shape = site.shape(0)
    length = site.length("shape")

    def draw() -> Sizes:
        sizes = tuple(draw_size(site.random) if size == 1 and site.chance(0.7) else size for size in shape)
        extra = site.random.choice((0, 0, 1, 2)) if length is None else length - len(sizes)
        return sizes[-extra:] if extra < 0 else (*(draw_size(site.random) for _ in range(extra)), *sizes)

    found = site.integers("shape", draw)
    if found is not None and 0 in site.fresh and site.chance(0.3):
        site.fit(0, tuple(1 if site.chance(0.4) else size for size in found)[site.random.choice((0, 0, 1)) :])


def sample_tile(site: Site) -> None:
    """Tile: a repetition for each axis, seldom 0."""
    site.integers("repeats", lambda: site.random.choices((0, 1, 2, 3), (1, 8, 6, 2), k=len(site.shape(0))), len(site.shape(0)))


def sample_pad(site: Site) -> None:
    """Pad: pads of both signs, modes whose pads stay inside the data."""
    shape = site.shape(0)
    mode = site.text("mode", ("constant", "reflect", "edge", "wrap"))
    length = site.length("pads")

    def draw_axes() -> Sizes:
        return tuple(sorted(site.random.sample(range(len(shape)), min(length // 2, len(shape))))) if length is not None else some_axes(site, len(shape), 1)

    axes = site.integers("axes", draw_axes)
    if axes is None:
        axes = tuple(range(len(shape)))
    if not all(-len(shape) <= axis < len(shape) for axis in axes):
        raise Unfit

    def draw() -> list[int]:
        heads: list[int] = []
        tails: list[int] = []
        for axis in axes:
            most = shape[axis] - 1 if mode == "reflect" else shape[axis] if mode == "wrap" else 3
            head, tail = (site.random.randint(0, max(0, min(most, 3))) if site.chance(0.7) else 0 for _ in range(2))
            if site.chance(0.1) and shape[axis] > 1 and mode == "constant":
                head = -1
            heads.append(head)
            tails.append(tail)
        return heads + tails

    site.integers("pads", draw, 2 * len(axes))
    if site.present(2):
        site.fit(2, ())


def sample_gather(site: Site) -> None:
    """Gather: an axis; indices of every rank, scalars among them."""
    if not site.shape(0):
        site.fit(0, (draw_size(site.random, 1),))
    axis_of(site)
    if 1 in site.fresh and site.chance(0.5):
        site.fit(1, site.random.choice(((), (), (1,), (2,), (3,), (2, 2), (0,), (1, 2))))


def sample_gather_elements(site: Site) -> None:
    """GatherElements and ScatterElements: indices no larger than the data along the other axes; updates like the indices."""
    if not site.shape(0):
        site.fit(0, (draw_size(site.random, 1),))
    axis = axis_of(site)
    shape = site.shape(0)
    scatter = site.operator.name == "ScatterElements"
    if 1 in site.fresh:
        site.fit(
            1,
            tuple(
                site.random.randint(1, max(1, min(4, size))) if place == axis else site.random.randint(min(size, 1), size) for place, size in enumerate(shape)
            ),
        )
    if scatter:
        site.fit(2, site.shape(1))


def sample_gather_nd(site: Site) -> None:
    """GatherND: the last axis of the indices counts axes of the data."""
    if not site.shape(0):
        site.fit(0, (draw_size(site.random, 1),))
    shape = site.shape(0)
    batch = site.integer("batch_dims", lambda: site.random.choice((0, 0, 1)))
    if batch >= len(shape):
        raise Unfit
    if 1 in site.fresh:
        depth = site.random.randint(1, len(shape) - batch)
        site.fit(1, (*shape[:batch], *([draw_size(site.random)] if site.chance(0.6) else []), depth))


def sample_scatter_nd(site: Site) -> None:
    """ScatterND: updates have the shape of the chosen places."""
    if not site.shape(0):
        site.fit(0, (draw_size(site.random, 1),))
    shape = site.shape(0)
    if 1 in site.fresh:
        site.fit(1, (*([draw_size(site.random)] if site.chance(0.8) else []), site.random.randint(1, len(shape))))
    indices = site.shape(1)
    if not indices or indices[-1] > len(shape):
        raise Unfit
    site.fit(2, (*indices[:-1], *shape[indices[-1] :]))


def sample_shape(site: Site) -> None:
    """Shape: all sizes, or those of some axes."""
    rank = len(site.shape(0))
    low, high = sorted((site.random.randint(0, rank), site.random.randint(0, rank)))
    site.integer("start", lambda: low)
    site.integer("end", lambda: high)


def sample_filled(site: Site) -> None:
    """ConstantOfShape: any shape, the scalar's among them."""
    count = site.length("input")
    site.integers("input", lambda: [draw_size(site.random) for _ in range(site.random.randint(0, 3) if count is None else count)])


def sample_blocks(site: Site) -> None:
    """DepthToSpace and SpaceToDepth: four axes that the block divides."""
    deep = site.operator.name == "DepthToSpace"
    block = site.integer("blocksize", lambda: site.random.choice((1, 2, 2, 3)), 1)
    x = site.shape(0)
    if 0 in site.fresh:
        batch, channels, height, width = (*x, *(draw_size(site.random, 1) for _ in range(4)))[:4]
        if deep:
            site.fit(0, (batch, block * block * site.random.randint(1, 3), height, width))
        else:
            site.fit(0, (batch, channels, block * site.random.randint(1, 3), block * site.random.randint(1, 3)))


def sample_trilu(site: Site) -> None:
    """Trilu: a diagonal on either side."""
    if len(site.shape(0)) < 2:
        site.fit(0, (*site.shape(0), draw_size(site.random), draw_size(site.random)))
    site.integer("k", lambda: site.random.randint(-3, 3))


def sample_reverse_sequence(site: Site) -> None:
    """ReverseSequence: batch and time are the first two axes, either way round."""
    if len(site.shape(0)) < 2:
        site.fit(0, (draw_size(site.random, 1), draw_size(site.random, 1)))
    batch = site.integer("batch_axis", lambda: site.random.randint(0, 1), 1)
    site.integer("time_axis", lambda: 1 - batch)
    site.fit(1, (site.shape(0)[batch],))


def sample_compress(site: Site) -> None:
    """Compress: a condition no longer than the axis."""
    x = site.shape(0)
    size = x[axis_of(site)] if site.open("axis") and x else prod(x)
    site.fit(1, (site.random.randint(0, size),))


def sample_one_hot(site: Site) -> None:
    """OneHot: depth is a scalar, the values are two."""
    rank = len(site.shape(0)) + 1
    site.integer("axis", lambda: site.random.randrange(rank))
    site.fit(1, site.random.choice(((), (1,))))
    site.fit(2, (2,))


def sample_unique(site: Site) -> None:
    """Unique: along an axis, or of all elements."""
    if site.shape(0):
        site.integer("axis", lambda: site.random.randrange(len(site.shape(0))))


def sample_tensor_scatter(site: Site) -> None:
    """TensorScatter: updates are shorter along the axis, which is not the batch's; they begin at a place for each of the batch."""
    x = (*site.shape(0), *(draw_size(site.random, 1) for _ in range(3)))[: max(3, len(site.shape(0)))]
    site.fit(0, x)
    axis = site.integer("axis", lambda: site.random.randrange(1, len(x)), -2)
    if not -len(x) <= axis < len(x) or axis % len(x) == 0:
        raise Unfit
    axis %= len(x)
    site.fit(1, (*x[:axis], site.random.randint(min(1, x[axis]), x[axis]), *x[axis + 1 :]))
    if site.present(2):
        site.fit(2, (x[0],))


def sample_center_crop_pad(site: Site) -> None:
    """CenterCropPad: a size for each axis or for each of `axes`."""
    rank = len(site.shape(0))
    axes = site.integers("axes", lambda: some_axes(site, rank, 1))
    site.integers("shape", lambda: [draw_size(site.random, 1) for _ in range(rank if axes is None else len(axes))], rank if axes is None else len(axes))
