"""Samplers for operators that choose or place elements by index.

They draw shapes of indices and updates that agree with the data.
"""

from __future__ import annotations

from math import prod

from eqsat.checker.samplers.drawn_node import DrawnNode, Unfit
from eqsat.checker.samplers.leaf_shapes import draw_size
from eqsat.checker.samplers.moved import axis_of


def sample_gather(node: DrawnNode) -> None:
    """Gather: an axis; indices of every rank, scalars among them."""
    if not node.shape(0):
        node.fit(0, (draw_size(node.random, 1),))
    axis_of(node)
    if 1 in node.fresh and node.chance(0.5):
        node.fit(1, node.random.choice(((), (), (1,), (2,), (3,), (2, 2), (0,), (1, 2))))


def sample_gather_elements(node: DrawnNode) -> None:
    """GatherElements and ScatterElements: indices as large as the data, or no larger along the other
    axes; updates shaped like the indices.
    """
    if not node.shape(0):
        node.fit(0, (draw_size(node.random, 1),))
    axis = axis_of(node)
    shape = node.shape(0)
    if 1 in node.fresh and node.chance(0.4):
        node.fit(1, shape)
    elif 1 in node.fresh:
        drawn = [node.random.randint(min(size, 1), size) for size in shape]
        drawn[axis] = node.random.randint(1, max(1, min(4, shape[axis])))
        node.fit(1, tuple(drawn))
    if node.operator.name == "ScatterElements":
        node.fit(2, node.shape(1))


def sample_gather_nd(node: DrawnNode) -> None:
    """GatherND: the last axis of the indices is as long as the number of indexed axes."""
    if not node.shape(0):
        node.fit(0, (draw_size(node.random, 1),))
    shape = node.shape(0)
    batch = node.integer("batch_dims", lambda: node.random.choice((0, 0, 1)))
    if batch >= len(shape):
        raise Unfit
    if 1 in node.fresh:
        depth = node.random.randint(1, len(shape) - batch)
        node.fit(1, (*shape[:batch], *([draw_size(node.random)] if node.chance(0.6) else []), depth))


def sample_scatter_nd(node: DrawnNode) -> None:
    """ScatterND: updates have the shape of the elements or slices that they replace."""
    if not node.shape(0):
        node.fit(0, (draw_size(node.random, 1),))
    shape = node.shape(0)
    if 1 in node.fresh:
        depth = node.random.randint(1, len(shape))
        # Places along one axis, or all of them, at all places of the axes in front, or any places.
        front = shape[: depth - 1] if node.chance(0.4) else ()
        along = shape[depth - 1] if node.chance(0.4) else draw_size(node.random)
        node.fit(1, (*front, *([along] if node.chance(0.8) else []), depth))
    indices = node.shape(1)
    if not indices or indices[-1] > len(shape):
        raise Unfit
    node.fit(2, (*indices[:-1], *shape[indices[-1] :]))


def sample_compress(node: DrawnNode) -> None:
    """Compress: a condition no longer than the axis."""
    x = node.shape(0)
    size = x[axis_of(node)] if node.open("axis") and x else prod(x)
    node.fit(1, (node.random.randint(0, size),))


def sample_one_hot(node: DrawnNode) -> None:
    """OneHot: a scalar depth and two values."""
    rank = len(node.shape(0)) + 1
    node.integer("axis", lambda: node.random.randrange(rank))
    node.fit(1, node.random.choice(((), (1,))))
    node.fit(2, (2,))


def sample_unique(node: DrawnNode) -> None:
    """Unique: along an axis, or of all elements."""
    if node.shape(0):
        node.integer("axis", lambda: node.random.randrange(len(node.shape(0))))


def sample_tensor_scatter(node: DrawnNode) -> None:
    """TensorScatter: updates that are no longer than the axis, which is not the batch, and an index
    for each batch entry.
    """
    x = (*node.shape(0), *(draw_size(node.random, 1) for _ in range(3)))[: max(3, len(node.shape(0)))]
    node.fit(0, x)
    axis = node.integer("axis", lambda: node.random.randrange(1, len(x)), -2)
    if not -len(x) <= axis < len(x) or axis % len(x) == 0:
        raise Unfit
    axis %= len(x)
    node.fit(1, (*x[:axis], node.random.randint(min(1, x[axis]), x[axis]), *x[axis + 1 :]))
    if node.present(2):
        node.fit(2, (x[0],))
