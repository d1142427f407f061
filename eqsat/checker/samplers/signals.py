"""Samplers for operators of signals: Fourier transforms, windows, filters of a mel scale.

They draw scalars, and shapes whose last axis holds a real number or the two parts of a complex one.
"""

from __future__ import annotations

from eqsat.checker.samplers.drawn_node import DrawnNode
from eqsat.checker.samplers.elementwise import scalars
from eqsat.checker.samplers.leaf_shapes import draw_size


def sample_scalars(node: DrawnNode) -> None:
    """Operators all of whose inputs are scalars."""
    scalars(node, *range(len(node.inputs)))


def sample_transform(node: DrawnNode) -> None:
    """DFT: real or complex signals; a one-sided result only of real ones."""
    shape = node.shape(0) if len(node.shape(0)) >= 3 else (draw_size(node.random, 1), draw_size(node.random, 2), 1)
    inverse = node.integer("inverse", lambda: node.random.randint(0, 1))
    onesided = node.integer("onesided", lambda: node.random.randint(0, 1) if not inverse else 0)
    node.fit(0, (*shape[:-2], max(1, shape[-2]), 1 if onesided else node.random.choice((1, 2))))
    scalars(node, 1, 2)


def sample_short_transform(node: DrawnNode) -> None:
    """STFT: a real signal, and a window that is no longer than the signal."""
    length = node.random.randint(2, 6)
    node.fit(0, (draw_size(node.random, 1), length + node.random.randint(0, 8), 1))
    if node.present(2):
        node.fit(2, (length,))
    scalars(node, 1, 3)


def sample_affine_grid(node: DrawnNode) -> None:
    """AffineGrid: a matrix for each image, of two spatial axes or three."""
    rank = node.random.choice((4, 5))
    node.fit(0, (1, rank - 2, rank - 1))
    node.fit(1, (rank,))
