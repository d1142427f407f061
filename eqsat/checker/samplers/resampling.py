"""Samplers for operators that resample: Resize and GridSample.

They draw sizes or scales for the axes, and modes that are legal together.
"""

from __future__ import annotations

from eqsat.checker.samplers.drawn_node import DrawnNode, Unfit
from eqsat.checker.samplers.leaf_shapes import draw_size
from eqsat.checker.samplers.moved import some_axes
from eqsat.checker.samplers.multiplied import spatial

_UNCHANGED = 0.3  # share of the draws whose sizes stay, which rules that drop a Resize want
_COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")


def sample_resize(node: DrawnNode) -> None:
    """Resize: any number of spatial axes, sizes or scales, larger and smaller results."""
    sizes = spatial(node)
    rank = len(sizes) + 2
    mode = node.text("mode", (node.random.choice(("nearest", "linear", "cubic")),))
    cropped = node.present(1)
    transformed = node.text("coordinate_transformation_mode", ("tf_crop_and_resize", *_COORDINATES) if cropped else _COORDINATES)
    if transformed == "tf_crop_and_resize" and not cropped:
        raise Unfit
    if mode == "nearest":
        node.text("nearest_mode", ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    else:
        node.integer("antialias", lambda: node.random.randint(0, 1))
    if mode == "cubic":
        node.number("cubic_coeff_a", (-0.75, -0.5))
        node.integer("exclude_outside", lambda: int(node.chance(0.7)))  # other modes lack it
    axes = node.integers("axes", lambda: some_axes(node, rank, 1))
    if node.open("sizes"):
        node.text("keep_aspect_ratio_policy", ("stretch", "not_larger", "not_smaller"))
    count = rank if axes is None else len(axes)
    shape = node.shape(0) if axes is None else [node.shape(0)[axis] for axis in axes if axis < rank]
    # Batch and channels seldom change: few kernels resize them.
    changes = [place for place in range(count) if axes is not None or place >= rank - len(sizes)]
    stays = node.chance(_UNCHANGED)
    node.integers("sizes", lambda: [draw_size(node.random, 1) if place in changes and not stays else size for place, size in enumerate(shape)])
    if node.present(1):
        node.fit(1, (2 * count,))
    if node.present(2):
        node.fit(2, (count,))


def sample_grid(node: DrawnNode) -> None:
    """GridSample: a grid of points with as many coordinates as there are spatial axes."""
    sizes = spatial(node, 2)
    mode = node.text("mode", ("linear", "nearest", "cubic") if len(sizes) == 2 else ("linear", "nearest"))
    assert mode is not None
    node.fit(1, (node.shape(0)[0], *(draw_size(node.random, 1) for _ in sizes), len(sizes)))
