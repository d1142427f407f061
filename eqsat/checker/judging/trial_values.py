"""Trial values: the arrays on which both sides of a rule are compared.

The input is the types of the drawn tensors, the domains in which ONNX gives elements a meaning, and
the fixed numbers of the sides. The output is arrays in their declared types, by name, in one of
several styles. Each style finds a kind of wrong rule that the others miss. The same seed and turn
give the same bits.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from enum import StrEnum
from math import prod
from typing import Any, Final, cast

import ml_dtypes
import numpy as np
from onnx import helper

from eqsat.checker.drawing.domains import Domain
from eqsat.checker.kernels.call import Array, is_float_type
from eqsat.frozen import frozen

ANY: Final = Domain()


class Style(StrEnum):
    """The ways to draw elements."""

    SMALL = "small"  # integers from -4 to 4: sums and products of them are exact
    SIGNS = "signs"  # -1, 0 and 1: quotients are exact too, and ties are many
    NORMAL = "normal"  # integers of all sizes, reals about 0
    POSITIVE = "positive"  # for logarithms, roots and variances
    LANDMARKS = "landmarks"  # the fixed numbers of the sides, and their neighbours
    WIDE = "wide"  # reals of many magnitudes, from a thousandth to a thousand
    FULL = "full"  # reals of all magnitudes of the type
    EXTREME = "extreme"  # integers at the ends of their range
    # NaN, infinities, signed zeros, denormals, the largest numbers; many at once, by chance.
    SPECIAL = "special"
    # The same values in turn: in five turns, each of the five most telling ones is the first
    # element of each input once.
    TOUR = "tour"


_STYLES = {style: number for number, style in enumerate(Style)}
_ORDERED = frozenset({Style.TOUR, Style.LANDMARKS})  # styles that go through the same values in turn


@frozen
class Slot:
    """A tensor to draw: its data type and shape, and the domain of its elements."""

    dtype: int
    shape: tuple[int, ...]
    domain: Domain = ANY


class Values:
    """The tensors to draw for one instance, by name, and the fixed numbers of its sides."""

    def __init__(self, slots: Mapping[str, Slot], landmarks: Sequence[float], seed: int) -> None:
        self.slots = slots
        self._kinds = {name: helper.tensor_dtype_to_np_dtype(slot.dtype) for name, slot in slots.items()}
        self._landmarks = landmarks
        self._stream = _Stream(seed)
        self._seed = seed

    def draw(self, style: Style, turn: int) -> dict[str, Array]:
        """An array for each slot. Elements stay in their domains, except NaN, which no bound
        excludes.
        """
        generator = self._stream.at(_STYLES[style], turn)
        # All turns of a tour share one order, and each slot has another one, so that special values
        # meet different ones.
        order = np.random.default_rng(self._seed) if style in _ORDERED else generator
        with np.errstate(all="ignore"):
            return {name: self._array(self._kinds[name], slot, style, turn, generator, order) for name, slot in self.slots.items()}

    def _array(self, kind: np.dtype[Any], slot: Slot, style: Style, turn: int, generator: np.random.Generator, order: np.random.Generator) -> Array:
        if kind == np.bool_:
            return generator.integers(0, 2, slot.shape).astype(np.bool_)
        if not is_float_type(kind):
            return self._integers(kind, slot, style, generator)
        count = prod(slot.shape)
        if style is Style.TOUR:
            elements = _tour(kind, count, turn, order)
        elif style is Style.LANDMARKS:
            elements = self._beside_landmarks(kind, count, turn, order)
        else:
            elements = _floats(kind, count, style, generator)
        return (elements if slot.domain is ANY else _kept(elements, slot.domain)).astype(kind).reshape(slot.shape)

    def _integers(self, kind: np.dtype[Any], slot: Slot, style: Style, generator: np.random.Generator) -> Array:
        (low, high, word), count = _range(kind), prod(slot.shape)
        if style in (Style.NORMAL, Style.WIDE, Style.FULL):
            # Numbers of random bit lengths, so that small and large ones meet.
            shifts = cast(Array, generator.integers(0, high.bit_length(), count, word))
            elements = cast(Array, generator.integers(low, high, count, word, endpoint=True)) >> shifts
        else:
            pool = np.array([number for number in self._pool(style, low, high) if low <= number <= high], word)
            elements = pool[generator.integers(0, len(pool), count)]
        if slot.domain is not ANY:
            elements = np.array([_within(element, slot.domain, low, high) for element in elements.tolist()], word)
        return elements.astype(kind).reshape(slot.shape)

    def _pool(self, style: Style, low: int, high: int) -> list[int]:
        if style in (Style.EXTREME, Style.SPECIAL, Style.TOUR):
            half = 1 << high.bit_length() // 2
            return [low, low + 1, high, high - 1, 0, 1, -1, 2, half, half - 1]
        if style is Style.LANDMARKS:
            beside = [int(number) + step for number in self._landmarks for step in (-1, 0, 1)]
            return [*beside, 0, 1, -1, 2, 3]
        return list({Style.SIGNS: range(-1, 2), Style.POSITIVE: range(1, 9)}.get(style, range(-4, 5)))

    def _beside_landmarks(self, kind: np.dtype[Any], count: int, turn: int, order: np.random.Generator) -> Array:
        """The neighbours of the fixed numbers, then the numbers themselves and their multiples.

        Each turn continues where the last one ended.
        """
        beside = [number + step for number in self._landmarks for step in (-0.5, 0.5)]
        multiples = [number * factor for number in self._landmarks for factor in (1, -1, 2, 0.5)]
        pool = np.concatenate([order.permutation([*beside, 0.5, -1.5]), order.permutation([*multiples, 0.0, 3.0])])
        largest, _, _ = _limits(kind)
        return np.clip(pool[(turn * count + np.arange(count)) % len(pool)], -largest, largest)


class _Stream:
    """Random numbers that begin anywhere. To begin elsewhere is ten times as fast as a new generator."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)
        self._start = self._bits.state
        self._generator = np.random.Generator(self._bits)

    def at(self, style: int, turn: int) -> np.random.Generator:
        """The one generator, at numbers that no other style and turn has."""
        self._bits.state = self._start
        self._bits.advance((style << 32 | turn) + 1 << 64)
        return self._generator


@functools.cache
def _range(kind: np.dtype[Any]) -> tuple[int, int, np.dtype[Any]]:
    """The least and the largest integer of a type, and a type that numpy draws and that has both."""
    information = cast(Any, np.iinfo(kind) if kind.isbuiltin == 1 else ml_dtypes.iinfo(kind))
    low, high = int(information.min), int(information.max)
    return low, high, np.dtype(np.uint64 if high >> 63 else np.int64)


@functools.cache
def _limits(kind: np.dtype[Any]) -> tuple[float, float, float]:
    """The largest number of a type, the least positive one, and the least one of full precision."""
    information = cast(Any, ml_dtypes.finfo(kind))
    return float(information.max), float(information.smallest_subnormal), float(information.tiny)


def _floats(kind: np.dtype[Any], count: int, style: Style, generator: np.random.Generator) -> Array:
    largest, least, _ = _limits(kind)
    match style:
        case Style.SMALL:
            return np.floor(9 * generator.random(count)) - 4
        case Style.SIGNS:
            return np.floor(3 * generator.random(count)) - 1
        case Style.POSITIVE:
            return np.abs(2 * generator.standard_normal(count)) + 0.25
        case Style.WIDE:
            return np.copysign(np.minimum(np.exp(generator.uniform(-7, 7, count)), largest), generator.random(count) - 0.5)
        case Style.FULL:
            exponents = generator.uniform(np.log2(least), np.log2(largest), count)
            return np.copysign(np.minimum(np.exp2(exponents), largest), generator.random(count) - 0.5)
        case Style.SPECIAL:
            first, others = _specials(kind)
            return np.where(generator.random(count) < 0.6, generator.choice(np.array(first + others), count), generator.integers(-4, 5, count))
        case _:
            return 2 * generator.standard_normal(count)


def _specials(kind: np.dtype[Any]) -> tuple[list[float], list[float]]:
    """The special values of a type, the most telling ones first."""
    largest, least, tiny = _limits(kind)
    return [-0.0, np.nan, np.inf, -np.inf, 0.0], [largest, -largest, least, -least, tiny, -tiny]


def _tour(kind: np.dtype[Any], count: int, turn: int, order: np.random.Generator) -> Array:
    first, others = (order.permutation(part) for part in _specials(kind))
    places = np.arange(count) // 2 + turn
    return np.where(np.arange(count) % 2 == 0, first[places % len(first)], others[places % len(others)])


def _within(element: int, domain: Domain, low: int, high: int) -> int:
    """The element, wrapped into a bounded domain, and moved off an excluded zero. Of a domain without
    elements, as that of the indices of an axis of no size, it is the element itself.
    """
    least = low if domain.low is None else max(int(domain.low), low)
    most = high if domain.high is None else min(int(domain.high), high)
    if most < least:
        return element
    element = element if least <= element <= most else least + (element - least) % (most - least + 1)
    return (1 if most >= 1 else -1) if element == 0 and not domain.zero else element


def _kept(elements: Array, domain: Domain) -> Array:
    """The elements, mirrored at the domain's lower end, clipped at its upper end, and moved off an
    excluded zero.
    """
    if domain.low is not None:
        elements = np.where(elements < domain.low, 2 * domain.low - elements, elements)
    if domain.high is not None:
        elements = np.where(elements > domain.high, domain.high, elements)
    return elements if domain.zero else np.where(elements == 0, 1.0 if domain.high is None else min(1.0, domain.high), elements)
