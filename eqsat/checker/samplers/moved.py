"""Samplers for operators that move or repeat elements, or make them from shapes.

They draw axes, orders, bounds and sizes in ONNX's plainest spelling (counted from the front, inside
the tensor); `equivalent_forms` writes them the other ways.
"""

from __future__ import annotations

from eqsat.checker.samplers.drawn_node import OBEDIENCE, DrawnNode, Unfit
from eqsat.checker.samplers.equivalent_forms import END
from eqsat.checker.samplers.leaf_shapes import Sizes, draw_size


def needs_rank(node: DrawnNode, least: int) -> None:
    """Gives input 0, if it is new, at least `least` axes."""
    shape = node.shape(0)
    if len(shape) < least:
        node.fit(0, (*shape, *(draw_size(node.random, 1) for _ in range(least - len(shape)))))


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
    if count is not None and 0 in node.fresh:
        needs_rank(node, count)
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
