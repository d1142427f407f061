"""Samplers for operators of signals: Fourier transforms, windows, filters of a mel scale.

Comes in: a site. Goes out: scalars, and shapes whose last axis holds a real number or the two parts of a complex one.
"""

from __future__ import annotations

from eqsat.checker.samplers.elementwise import scalars
from eqsat.checker.shapes import draw_size
from eqsat.checker.site import Site


def sample_scalars(site: Site) -> None:
    """Operators all of whose inputs are scalars."""
    scalars(site, *range(len(site.inputs)))


def sample_transform(site: Site) -> None:
    """DFT: real or complex; half of the result says all where the signal is real."""
    shape = site.shape(0) if len(site.shape(0)) >= 3 else (draw_size(site.random, 1), draw_size(site.random, 2), 1)
    inverse = site.integer("inverse", lambda: site.random.randint(0, 1))
    onesided = site.integer("onesided", lambda: site.random.randint(0, 1) if not inverse else 0)
    site.fit(0, (*shape[:-2], max(1, shape[-2]), 1 if onesided else site.random.choice((1, 2))))
    scalars(site, 1, 2)


def sample_short_transform(site: Site) -> None:
    """STFT: a real signal, a window no longer than it."""
    length = site.random.randint(2, 6)
    site.fit(0, (draw_size(site.random, 1), length + site.random.randint(0, 8), 1))
    if site.present(2):
        site.fit(2, (length,))
    scalars(site, 1, 3)


def sample_affine_grid(site: Site) -> None:
    """AffineGrid: a matrix for each image, of two spatial axes or three."""
    rank = site.random.choice((4, 5))
    site.fit(0, (1, rank - 2, rank - 1))
    site.fit(1, (rank,))
