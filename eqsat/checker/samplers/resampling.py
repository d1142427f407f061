"""Samplers for operators that resample: Resize and GridSample.

Comes in: a site. Goes out: sizes or scales for the axes, and modes that go together.
"""

from __future__ import annotations

from eqsat.checker.samplers.moves import some_axes
from eqsat.checker.samplers.products import spatial
from eqsat.checker.shapes import draw_size
from eqsat.checker.site import Site, Unfit

_COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")


def sample_resize(site: Site) -> None:
    """Resize: space of any rank, by sizes or by scales, larger and smaller."""
    sizes = spatial(site)
    rank = len(sizes) + 2
    mode = site.text("mode", ("nearest", "linear", "cubic"))
    cropped = site.present(1)
    transformed = site.text("coordinate_transformation_mode", ("tf_crop_and_resize", *_COORDINATES) if cropped else _COORDINATES)
    if transformed == "tf_crop_and_resize" and not cropped:
        raise Unfit
    if mode == "nearest":
        site.text("nearest_mode", ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    else:
        site.integer("antialias", lambda: site.random.randint(0, 1))
    if mode == "cubic":
        site.number("cubic_coeff_a", (-0.75, -0.5))
        site.integer("exclude_outside", lambda: site.random.randint(0, 1))
    axes = site.integers("axes", lambda: some_axes(site, rank, 1))
    if site.open("sizes"):
        site.text("keep_aspect_ratio_policy", ("stretch", "not_larger", "not_smaller"))
    count = rank if axes is None else len(axes)
    shape = site.shape(0) if axes is None else [site.shape(0)[axis] for axis in axes if axis < rank]
    # Batch and channels seldom change: few kernels resize them.
    site.integers(
        "sizes", lambda: [size if place < rank - 2 - len(sizes) + 2 and axes is None else draw_size(site.random, 1) for place, size in enumerate(shape)]
    )
    if site.present(1):
        site.fit(1, (2 * count,))
    if site.present(2):
        site.fit(2, (count,))


def sample_grid(site: Site) -> None:
    """GridSample: a grid of points with as many coordinates as there are spatial axes."""
    sizes = spatial(site, 2)
    mode = site.text("mode", ("linear", "nearest", "cubic") if len(sizes) == 2 else ("linear", "nearest"))
    assert mode is not None
    site.fit(1, (site.shape(0)[0], *(draw_size(site.random, 1) for _ in sizes), len(sizes)))
