"""Samplers for operators along axes: reductions, normalizations, running sums, choices of the largest.

Comes in: a site. Goes out: axes, and the shapes of scales and biases that agree with the channels.
"""

from __future__ import annotations

from eqsat.checker.samplers.elementwise import joined, narrowed
from eqsat.checker.samplers.moves import axis_of, some_axes
from eqsat.checker.samplers.products import spatial
from eqsat.checker.shapes import draw_size
from eqsat.checker.site import Site, Unfit


def needs_rank(site: Site, least: int) -> None:
    """Gives input 0 at least `least` axes where it is new."""
    shape = site.shape(0)
    if len(shape) < least:
        site.fit(0, (*shape, *(draw_size(site.random, 1) for _ in range(least - len(shape)))))


def sample_reduce(site: Site) -> None:
    """ReduceSum and its kin: some axes, all, or none; with and without kept dimensions."""
    rank = len(site.shape(0))
    length = site.length("axes")
    if length is not None and length > rank:
        needs_rank(site, length)
        rank = len(site.shape(0))

    def draw() -> tuple[int, ...]:
        if length is not None:
            return tuple(sorted(site.random.sample(range(rank), length)))
        return some_axes(site, rank, 0 if site.chance(0.15) else 1)

    site.integers("axes", draw)


def sample_arg(site: Site) -> None:
    """ArgMax and ArgMin."""
    needs_rank(site, 1)
    axis_of(site)


def sample_axis(site: Site) -> None:
    """Softmax and its kin: one axis."""
    needs_rank(site, 1)
    axis_of(site)


def sample_cumulative(site: Site) -> None:
    """CumSum and CumProd: a scalar axis, either way, with or without the element itself."""
    needs_rank(site, 1)
    axis_of(site)


def sample_top_k(site: Site) -> None:
    """TopK: no more than there are."""
    needs_rank(site, 1)
    size = site.shape(0)[axis_of(site)]
    site.integers("K", lambda: [site.random.randint(0 if site.chance(0.1) else min(1, size), size)])


def sample_batch_normalization(site: Site) -> None:
    """BatchNormalization: four vectors, one element for each channel."""
    needs_rank(site, 2)
    for position in range(1, 5):
        site.fit(position, (site.shape(0)[1],))


def sample_instance_normalization(site: Site) -> None:
    """InstanceNormalization: a scale and a bias for each channel."""
    spatial(site)
    for position in (1, 2):
        site.fit(position, (site.shape(0)[1],))


def sample_group_normalization(site: Site) -> None:
    """GroupNormalization: groups of channels, a scale and a bias for each channel."""
    spatial(site)
    channels = site.shape(0)[1]
    groups = site.integer("num_groups", lambda: site.random.choice([factor for factor in range(1, channels + 1) if channels % factor == 0] or [1]), 1)
    if groups < 1 or channels % groups:
        raise Unfit
    for position in (1, 2):
        site.fit(position, (channels,))


def sample_layer_normalization(site: Site) -> None:
    """LayerNormalization and RMSNormalization: a scale that broadcasts to the axes from `axis` on."""
    needs_rank(site, 1)
    shape = site.shape(0)
    inner = shape[axis_of(site) :]
    for position in (1, 2):
        if site.present(position) and not (site.chance(0.3) and joined((site.shape(position), inner)) == inner):
            site.fit(position, inner if site.chance(0.6) else narrowed(site, inner))


def sample_local_response(site: Site) -> None:
    """LRN: a window over the channels of images, the only data that runtimes have it for."""
    needs_rank(site, 4)
    if 0 in site.fresh:
        site.fit(0, site.shape(0)[:4])


def sample_mean_variance(site: Site) -> None:
    """MeanVarianceNormalization: some axes."""
    needs_rank(site, 4)
    site.integers("axes", lambda: some_axes(site, len(site.shape(0)), 1))
