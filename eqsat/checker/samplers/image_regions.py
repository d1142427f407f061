"""Samplers for operators over regions of images: columns, deformed windows, boxes.

They give columns, offsets and boxes shapes that agree with the image and the window.
"""

from __future__ import annotations

from math import prod

from eqsat.checker.samplers.drawn_node import DrawnNode, Unfit
from eqsat.checker.samplers.leaf_shapes import draw_size
from eqsat.checker.samplers.multiplied import spatial, spread


def sample_columns(node: DrawnNode) -> None:
    """Col2Im: a column for each position of the block in the image."""
    random = node.random
    count = node.length("image_shape", "block_shape", "dilations", "strides") or 2
    block = node.integers("block_shape", lambda: spread(node, count, (1, 2, 2, 3)), count) or ()
    dilations = node.integers("dilations", lambda: spread(node, count, (1, 1, 2)), count) or (1,) * count
    strides = node.integers("strides", lambda: spread(node, count, (1, 1, 2)), count) or (1,) * count
    reach = [(length - 1) * wide + 1 for length, wide in zip(block, dilations, strict=True)]
    image = node.integers("image_shape", lambda: [extent + random.randint(0, 4) for extent in reach], count) or ()
    pads = node.integers("pads", lambda: [random.randint(0, 1) for _ in range(2 * count)], 2 * count) or (0,) * (2 * count)
    places = [
        (size + head + tail - extent) // step + 1 for size, head, tail, extent, step in zip(image, pads[:count], pads[count:], reach, strides, strict=True)
    ]
    if min(places, default=1) < 1:
        raise Unfit
    x = node.shape(0)
    node.fit(0, (x[0] if x else 1, random.choice((1, 2, 3)) * prod(block), prod(places)))


def sample_deformed(node: DrawnNode) -> None:
    """DeformConv: an offset of two coordinates for each position in the kernel and each element of
    the result.
    """
    random = node.random
    batch, channels, *sizes = (*node.shape(0), *(draw_size(random, 1) for _ in range(4)))[:4]
    group = node.integer("group", lambda: random.choice((1, 1, channels)), 1)
    around = node.integer("offset_group", lambda: random.choice((1, 1, channels)), 1)
    if group < 1 or around < 1 or not channels or channels % group or channels % around:
        raise Unfit
    old = node.shape(1)
    kernel = old[2:] if len(old) == 4 and 0 not in old and random.random() < 0.5 else tuple(spread(node, 2, (1, 2, 2, 3)))
    node.integers("kernel_shape", lambda: kernel, 2)
    strides = node.integers("strides", lambda: spread(node, 2, (1, 1, 2)), 2) or (1, 1)
    dilations = node.integers("dilations", lambda: spread(node, 2, (1, 1, 2)), 2) or (1, 1)
    pads = node.integers("pads", lambda: [random.randint(0, 1) for _ in range(4)], 4) or (0, 0, 0, 0)
    reach = [(length - 1) * wide + 1 for length, wide in zip(kernel, dilations, strict=True)]
    sizes = [max(size, extent) for size, extent in zip(sizes, reach, strict=True)]
    counts = [(size + head + tail - extent) // step + 1 for size, head, tail, extent, step in zip(sizes, pads[:2], pads[2:], reach, strides, strict=True)]
    filters = group * random.choice((1, 2))
    node.fit(0, (batch, channels, *sizes))
    node.fit(1, (filters, channels // group, *kernel))
    node.fit(2, (batch, 2 * around * prod(kernel), *counts))
    if node.present(3):
        node.fit(3, (filters,))
    if node.present(4):
        node.fit(4, (batch, around * prod(kernel), *counts))


def sample_region(node: DrawnNode) -> None:
    """RoiAlign: for each region, four coordinates and the index of an image."""
    spatial(node, 2)
    if len(node.shape(0)) != 4:
        node.fit(0, node.shape(0)[:4])
    regions = draw_size(node.random, 1)
    node.fit(1, (regions, 4))
    node.fit(2, (regions,))


def sample_unpool(node: DrawnNode) -> None:
    """MaxUnpool: an index for each element."""
    sizes = spatial(node)
    count = len(sizes)
    kernel = node.integers("kernel_shape", lambda: spread(node, count, (1, 2, 2, 3)), count)
    node.integers("strides", lambda: kernel or (1,) * count, count)
    node.fit(1, node.shape(0))


def sample_boxes(node: DrawnNode) -> None:
    """NonMaxSuppression: four numbers for each box, and a score for each class and box."""
    batch, boxes = draw_size(node.random, 1), draw_size(node.random, 1)
    node.fit(0, (batch, boxes, 4))
    node.fit(1, (batch, draw_size(node.random, 1), boxes))
    for position in (2, 3, 4):
        if node.present(position):
            node.fit(position, node.random.choice(((), (1,))))
