"""Samplers for operators over regions of images: columns, deformed windows, boxes.

Comes in: a site. Goes out: shapes of columns, offsets and boxes that agree with the image and the window.
"""

from __future__ import annotations

from math import prod

from eqsat.checker.samplers.products import spatial, spread
from eqsat.checker.shapes import draw_size
from eqsat.checker.site import Site, Unfit


def sample_columns(site: Site) -> None:
    """Col2Im: a column for each place that a block takes in an image of two axes."""
    random = site.random
    count = site.length("image_shape", "block_shape", "dilations", "strides") or 2
    block = site.integers("block_shape", lambda: spread(site, count, (1, 2, 2, 3)), count) or ()
    dilations = site.integers("dilations", lambda: spread(site, count, (1, 1, 2)), count) or (1,) * count
    strides = site.integers("strides", lambda: spread(site, count, (1, 1, 2)), count) or (1,) * count
    reach = [(length - 1) * wide + 1 for length, wide in zip(block, dilations, strict=True)]
    image = site.integers("image_shape", lambda: [extent + random.randint(0, 4) for extent in reach], count) or ()
    pads = site.integers("pads", lambda: [random.randint(0, 1) for _ in range(2 * count)], 2 * count) or (0,) * (2 * count)
    places = [
        (size + head + tail - extent) // step + 1 for size, head, tail, extent, step in zip(image, pads[:count], pads[count:], reach, strides, strict=True)
    ]
    if min(places, default=1) < 1:
        raise Unfit
    x = site.shape(0)
    site.fit(0, (x[0] if x else 1, random.choice((1, 2, 3)) * prod(block), prod(places)))


def sample_deformed(site: Site) -> None:
    """DeformConv: two coordinates of an offset for each place of the kernel, at each place of the result."""
    random = site.random
    batch, channels, *sizes = (*site.shape(0), *(draw_size(random, 1) for _ in range(4)))[:4]
    group = site.integer("group", lambda: random.choice((1, 1, channels)), 1)
    around = site.integer("offset_group", lambda: random.choice((1, 1, channels)), 1)
    if group < 1 or around < 1 or not channels or channels % group or channels % around:
        raise Unfit
    old = site.shape(1)
    kernel = old[2:] if len(old) == 4 and 0 not in old and random.random() < 0.5 else tuple(spread(site, 2, (1, 2, 2, 3)))
    site.integers("kernel_shape", lambda: kernel, 2)
    strides = site.integers("strides", lambda: spread(site, 2, (1, 1, 2)), 2) or (1, 1)
    dilations = site.integers("dilations", lambda: spread(site, 2, (1, 1, 2)), 2) or (1, 1)
    pads = site.integers("pads", lambda: [random.randint(0, 1) for _ in range(4)], 4) or (0, 0, 0, 0)
    reach = [(length - 1) * wide + 1 for length, wide in zip(kernel, dilations, strict=True)]
    sizes = [max(size, extent) for size, extent in zip(sizes, reach, strict=True)]
    counts = [(size + head + tail - extent) // step + 1 for size, head, tail, extent, step in zip(sizes, pads[:2], pads[2:], reach, strides, strict=True)]
    filters = group * random.choice((1, 2))
    site.fit(0, (batch, channels, *sizes))
    site.fit(1, (filters, channels // group, *kernel))
    site.fit(2, (batch, 2 * around * prod(kernel), *counts))
    if site.present(3):
        site.fit(3, (filters,))
    if site.present(4):
        site.fit(4, (batch, around * prod(kernel), *counts))


def sample_region(site: Site) -> None:
    """RoiAlign: four coordinates and the number of an image for each region."""
    spatial(site, 2)
    if len(site.shape(0)) != 4:
        site.fit(0, site.shape(0)[:4])
    regions = draw_size(site.random, 1)
    site.fit(1, (regions, 4))
    site.fit(2, (regions,))


def sample_unpool(site: Site) -> None:
    """MaxUnpool: a place for each element."""
    sizes = spatial(site)
    count = len(sizes)
    kernel = site.integers("kernel_shape", lambda: spread(site, count, (1, 2, 2, 3)), count)
    site.integers("strides", lambda: kernel or (1,) * count, count)
    site.fit(1, site.shape(0))


def sample_boxes(site: Site) -> None:
    """NonMaxSuppression: four numbers for each box, and a score for each class and box."""
    batch, boxes = draw_size(site.random, 1), draw_size(site.random, 1)
    site.fit(0, (batch, boxes, 4))
    site.fit(1, (batch, draw_size(site.random, 1), boxes))
    for position in (2, 3, 4):
        if site.present(position):
            site.fit(position, site.random.choice(((), (1,))))
