"""Samplers for operators along axes: reductions, normalizations, running sums, and choices of the
largest elements.

They draw axes, and shapes of scales and biases that agree with the channels.
"""

from __future__ import annotations

from eqsat.checker.samplers.drawn_node import DrawnNode, Unfit
from eqsat.checker.samplers.elementwise import joined, narrowed
from eqsat.checker.samplers.moved import axis_of, needs_rank, some_axes
from eqsat.checker.samplers.multiplied import spatial


def sample_reduce(node: DrawnNode) -> None:
    """ReduceSum and the other reductions: some axes, all, or none."""
    rank = len(node.shape(0))
    length = node.length("axes")
    if length is not None and length > rank:
        needs_rank(node, length)
        rank = len(node.shape(0))

    def draw() -> tuple[int, ...]:
        if length is not None:
            return tuple(sorted(node.random.sample(range(rank), length)))
        return some_axes(node, rank, 0 if node.chance(0.15) else 1)

    node.integers("axes", draw)


def sample_arg(node: DrawnNode) -> None:
    """ArgMax and ArgMin."""
    needs_rank(node, 1)
    axis_of(node)


def sample_axis(node: DrawnNode) -> None:
    """Softmax, LogSoftmax, Hardmax and LpNormalization: one axis."""
    needs_rank(node, 1)
    axis_of(node)


def sample_cumulative(node: DrawnNode) -> None:
    """CumSum and CumProd: a scalar axis."""
    needs_rank(node, 1)
    axis_of(node)


def sample_top_k(node: DrawnNode) -> None:
    """TopK: no more elements than the axis has."""
    needs_rank(node, 1)
    size = node.shape(0)[axis_of(node)]
    node.integers("K", lambda: [node.random.randint(0 if node.chance(0.1) else min(1, size), size)])


def sample_batch_normalization(node: DrawnNode) -> None:
    """BatchNormalization: four vectors, one element for each channel."""
    needs_rank(node, 2)
    for position in range(1, 5):
        node.fit(position, (node.shape(0)[1],))


def sample_instance_normalization(node: DrawnNode) -> None:
    """InstanceNormalization: a scale and a bias for each channel."""
    spatial(node)
    for position in (1, 2):
        node.fit(position, (node.shape(0)[1],))


def sample_group_normalization(node: DrawnNode) -> None:
    """GroupNormalization: groups of channels, a scale and a bias for each channel."""
    spatial(node)
    channels = node.shape(0)[1]
    groups = node.integer("num_groups", lambda: node.random.choice([factor for factor in range(1, channels + 1) if channels % factor == 0] or [1]), 1)
    if groups < 1 or channels % groups:
        raise Unfit
    for position in (1, 2):
        node.fit(position, (channels,))


def sample_layer_normalization(node: DrawnNode) -> None:
    """LayerNormalization and RMSNormalization: a scale that broadcasts to the inner axes."""
    needs_rank(node, 1)
    shape = node.shape(0)
    inner = shape[axis_of(node) :]
    for position in (1, 2):
        if node.present(position) and not (node.chance(0.3) and joined((node.shape(position), inner)) == inner):
            node.fit(position, inner if node.chance(0.6) else narrowed(node, inner))


def sample_local_response(node: DrawnNode) -> None:
    """LRN: a window over the channels of images; runtimes support no other data."""
    needs_rank(node, 4)
    if 0 in node.fresh:
        node.fit(0, node.shape(0)[:4])


def sample_mean_variance(node: DrawnNode) -> None:
    """MeanVarianceNormalization: some axes."""
    needs_rank(node, 4)
    node.integers("axes", lambda: some_axes(node, len(node.shape(0)), 1))
