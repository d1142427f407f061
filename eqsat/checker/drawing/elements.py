"""Random elements of every data type, inside a domain.

The input is a type, a shape and a domain; the output is an array. The same generator state gives
the same bits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from math import prod
from typing import Any, cast

import ml_dtypes
import numpy as np
from onnx import helper

from eqsat.checker.drawing.domains import Domain
from eqsat.checker.samplers.drawn_node import OBEDIENCE
from eqsat.checker.samplers.leaf_shapes import Sizes
from eqsat.facts.fact import Array

# Numbers that guards distinguish and that keep arithmetic exact.
_HALVES = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0)
_LARGE = 1000.0
_LARGEST = 60000.0  # no float type that is drawn has a smaller maximum
# Share of the numbers read by a rule that are at the limits of their type's range or precision.
_FAR = 0.25
_BOUND = 1e60
_BESIDE = (0.0, 0.0, -1.0, 1.0, -16.0, 16.0)  # distances from a number that it is compared with
# Integers that are not indices are mostly this small, so that products of them stay exact.
_SMALL = 4


def draw_elements(generator: np.random.Generator, dtype: int, shape: Sizes, domain: Domain | None) -> Array:
    """An array of the type and shape whose elements are all in `domain`."""
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    count = prod(shape)
    if kind == np.bool_:
        return (generator.random(count) < 0.5).reshape(shape)
    if kind.kind not in "iu":
        return _floats(generator, count, domain or Domain()).reshape(shape).astype(kind)
    low, high = (0, 2 * _SMALL) if kind.kind == "u" else (-_SMALL, _SMALL)
    if domain is not None:
        low = low if domain.low is None else max(int(domain.low), np.iinfo(kind).min)
        if low < 0 and domain.high is not None and domain.high >= 0 and generator.random() < 0.5:
            low = 0  # of many indices one would be negative in nearly every draw, and rules ask that none is
        high = max(low, high) if domain.high is None else min(int(domain.high), np.iinfo(kind).max)
    found = generator.integers(low, max(low, high) + 1, count)
    if domain is not None and not domain.zero:
        found[found == 0] = 1
    return found.astype(kind).reshape(shape)


def _floats(generator: np.random.Generator, count: int, domain: Domain) -> Array:
    if domain.low is not None and domain.high is not None:
        exact = [half for half in _HALVES if domain.low <= half <= domain.high and (half or domain.zero)]
        return generator.choice(exact, count) if exact and generator.random() < 0.5 else generator.uniform(domain.low, domain.high, count)
    found = generator.standard_normal(count)
    if domain.low is not None:
        found = domain.low + np.abs(found)
    return found if domain.zero else np.where(found == 0, 1, found)


def draw_twice(generator: np.random.Generator, dtype: int, shape: Sizes, domain: Domain | None, neighbours: bool) -> Array:
    """An array whose last axis, of an even size, is one half twice, or has each of its elements twice."""
    half = draw_elements(generator, dtype, (*shape[:-1], shape[-1] // 2), domain)
    return np.repeat(half, 2, axis=-1) if neighbours else np.concatenate([half, half], axis=-1)


def draw_uniform(generator: np.random.Generator, dtype: int, shape: Sizes, domain: Domain | None, rivals: Sequence[tuple[str, float | None]] = ()) -> Array:
    """An array whose elements are all equal.

    `rivals` are numbers that a rule compares the element with, None for an unknown one, each with the
    symbol between the two. Half of the time the element is near the least or the greatest of them, or
    large.
    """
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    if rivals and kind != np.bool_ and generator.random() < 0.5:
        near = _end_of(rivals, generator) + float(generator.choice(_BESIDE))
        if abs(near) <= _LARGEST and (domain is None or domain.holds(np.array(near))):
            found = number(dtype, shape, float(np.rint(near)) if kind.kind in "iu" else near)
            if found is not None:
                return found
    if kind != np.bool_ and generator.random() < _FAR:
        far = np.array(_ends(kind)[int(generator.integers(len(_ends(kind))))]).astype(kind)
        if domain is None or (bool(np.isfinite(far.astype(np.float64))) and domain.holds(far)):
            return np.full(shape, far)
    if kind.kind in "biu" or domain is not None:
        return np.broadcast_to(draw_elements(generator, dtype, (), domain), shape).copy()
    return np.full(shape, generator.choice(_HALVES)).astype(kind)


def _end_of(rivals: Sequence[tuple[str, float | None]], generator: np.random.Generator) -> float:
    """The least or the greatest of numbers, mostly the one that all comparisons admit if there is one."""
    known = [rival for _, rival in rivals if rival is not None] or [-_LARGE, _LARGE]
    ends = {"<": min(known), ">": max(known)}
    sides = {symbol[0] for symbol, _ in rivals}
    if len(sides) == 1 and sides <= ends.keys() and generator.random() < OBEDIENCE:
        return ends[sides.pop()]
    return float(generator.choice(list(ends.values())))


@functools.cache
def _ends(kind: np.dtype[Any]) -> tuple[int, ...] | tuple[float, ...]:
    """The least and greatest numbers of a type, their neighbours, and the numbers at which another
    type begins to lose digits.
    """
    if kind.kind in "iu":
        low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
        half = 1 << high.bit_length() // 2
        # No double has 2**53 + 1, no single 2**24 + 1.
        return (low, low + 1, high, high - 1, half, half - 1, *(number for number in ((1 << 53) + 1, (1 << 24) + 1) if number <= high))
    information = cast(Any, ml_dtypes.finfo(kind))
    # Reals are computed in double precision, and products of a few such numbers must stay in its
    # range.
    largest, least = min(float(information.max), _BOUND), max(float(information.smallest_subnormal), 1 / _BOUND)
    ends = (largest, -largest, least, -least, max(float(information.tiny), 1 / _BOUND), 0.1, -0.3, least**0.5, largest**0.5)
    return (*ends, math.nan, math.inf, -math.inf)


def number(dtype: int, shape: Sizes, value: float | None) -> Array | None:
    """An array whose elements all are `value`, rounded to the type.

    None if a type without fractions or signs can not hold it.
    """
    if value is None:
        return None
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    if kind == np.bool_ and value not in (0, 1):
        return None
    if kind.kind in "iu" and not (float(value).is_integer() and np.iinfo(kind).min <= value <= np.iinfo(kind).max):
        return None
    return np.full(shape, value).astype(kind)
