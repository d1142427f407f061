"""Noise: random disturbances of floats, which show how far rounding can move the outputs.

The input is arrays on their way through a program; the output is the same arrays, disturbed at
random. The moves of the outputs show how far two equal sides may lie apart
(eqsat/checker/judging/differences.py). The same generator gives the same disturbances. With the
other sign it gives the opposite ones, so that one of the two crosses any border nearby.
"""

from __future__ import annotations

import math
from typing import Any, Protocol, cast

import ml_dtypes
import numpy as np

from eqsat.checker.kernels.call import Array, is_float
from eqsat.frozen import frozen
from eqsat.operators import Attributes


class Noise(Protocol):
    """A disturbance of a run."""

    def rounding(self, array: Array) -> Array:
        """Disturbs an array that enters or leaves a rounding node."""
        ...

    def constant(self, array: Array) -> Array:
        """Disturbs a constant that can not be drawn again, given in its declared type."""
        ...

    def attributes(self, attributes: Attributes) -> Attributes:
        """Disturbs the attributes of a node."""
        ...


@frozen
class Rounding:
    """Multiplies every float that enters or leaves a rounding node by its own random number within
    `delta` of 1.

    `delta` may be negative.
    """

    generator: np.random.Generator
    delta: float

    def rounding(self, array: Array) -> Array:
        """The array with each float off by up to `delta` of itself."""
        if not is_float(array):
            return array
        return array * (1 + self.delta * cast(Array, self.generator.uniform(-1, 1, array.shape)))

    def constant(self, array: Array) -> Array:
        """The constant as it is."""
        return array

    def attributes(self, attributes: Attributes) -> Attributes:
        """The attributes as they are."""
        return attributes


class FixedNumberNoise:
    """Moves every fixed number by up to `units` in its last place: constants, and attributes, which
    are 32-bit floats.

    Equal numbers move equally, so a number that occurs on both sides moves alike on both. Zeros
    stay.
    """

    def __init__(self, generator: np.random.Generator, units: float) -> None:
        self._generator = generator
        self._units = units
        self._shares: dict[float, float] = {}

    def rounding(self, array: Array) -> Array:
        """The array as it is."""
        return array

    def constant(self, array: Array) -> Array:
        """The constant, in double precision."""
        if not is_float(array):
            return array
        limits = cast(Any, ml_dtypes.finfo(array.dtype))  # handles numpy's own types too
        unit, least = float(limits.eps), float(limits.smallest_subnormal)
        return np.array([self._moved(number, unit, least) for number in array.reshape(-1).astype(np.float64).tolist()]).reshape(array.shape)

    def attributes(self, attributes: Attributes) -> Attributes:
        """The attributes with their floats disturbed."""
        unit = float(np.finfo(np.float32).eps)
        return {name: self._moved(value, unit) if isinstance(value, float) else value for name, value in attributes.items()}

    def _moved(self, number: float, unit: float, least: float = 0.0) -> float:
        """Moves a number whose last place is `unit` of it, or `least` where it is subnormal."""
        share = self._shares.setdefault(abs(number), self._generator.uniform(-1, 1))
        return number + math.copysign(max(unit * abs(number), least), number) * self._units * share if number else number
