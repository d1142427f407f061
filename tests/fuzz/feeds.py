"""Inputs for a random model: sizes that it was not built with, ordinary elements and special ones.

The first feed is the one that the model was built with. Not every feed fits every model; feeds that
the model refuses tell nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .chance import Array, Chance, is_float, is_whole
from .generate import Model
from .scope import Given

_LARGE = 700  # exceeds any bound in a model, except those that mean "to the end"
_MOST = 60_000  # the most elements of an input


@dataclass(frozen=True)
class Feed:
    """Inputs by name.

    If it is `special`, some element is not finite. If it is `extreme`, floats are so large that
    sums and products overflow.
    """

    inputs: dict[str, Any]
    sizes: dict[str, int]
    style: str
    special: bool = False
    extreme: bool = False


def feeds(model: Model, chance: Chance) -> Iterator[Feed]:
    """Yields feeds for a model, few of each kind."""
    yield Feed({given.value.name: given.value.data for given in model.givens if not given.default}, model.symbols, "built")
    yield _feed(model, chance, model.symbols, "small")
    for sizes in _sizes(model, chance):
        yield _feed(model, chance, sizes if _is_small(model, sizes) else {name: min(size, 3) for name, size in sizes.items()}, "normal")
    yield _feed(model, chance, model.symbols, "signs")
    yield _feed(model, chance, model.symbols, "integers")
    yield _feed(model, chance, model.symbols, "nan")
    yield _feed(model, chance, model.symbols, "infinity")
    yield _feed(model, chance, model.symbols, "extreme")


def _sizes(model: Model, chance: Chance) -> Iterator[dict[str, int]]:
    if model.symbols:
        yield {name: chance.pick([2, 3, 4, 6, 8, 9, 13]) for name in model.symbols}
        yield dict.fromkeys(model.symbols, 1)
        large = chance.pick(sorted(model.symbols))
        yield {name: _LARGE if name == large else min(size, 3) for name, size in model.symbols.items()}
        yield {name: 0 if name == large else size for name, size in model.symbols.items()}
        yield {name: size + 1 for name, size in model.symbols.items()}


def _is_small(model: Model, sizes: dict[str, int]) -> bool:
    """Tells whether no input has too many elements. One name has one size in all inputs."""
    shapes = [value.type.tensor_type.shape.dim for value in model.proto.graph.input if value.type.HasField("tensor_type")]
    return all(math.prod(sizes[dim.dim_param] if dim.dim_param else dim.dim_value for dim in shape) <= _MOST for shape in shapes)


def _feed(model: Model, chance: Chance, sizes: dict[str, int], style: str) -> Feed:
    dims = {value.name: value.type.tensor_type.shape.dim for value in model.proto.graph.input if value.type.HasField("tensor_type")}
    inputs = {
        given.value.name: _elements(given, [sizes[dim.dim_param] if dim.dim_param else dim.dim_value for dim in dims[given.value.name]], chance, style)
        if given.value.is_tensor
        else given.value.data
        for given in model.givens
        if not given.default or chance.often() or any(sizes[dim.dim_param] != model.symbols[dim.dim_param] for dim in dims[given.value.name] if dim.dim_param)
    }
    special = style in ("nan", "infinity")
    if special:
        floats = [name for name, array in inputs.items() if isinstance(array, np.ndarray) and is_float(array.dtype) and array.size]
        if floats:
            name = chance.pick(floats)
            array = inputs[name] = inputs[name].copy()
            array[tuple(chance.number(0, size - 1) for size in array.shape)] = np.nan if style == "nan" else chance.pick([np.inf, -np.inf])
    return Feed(inputs, sizes, style, special, style == "extreme")


def _elements(given: Given, shape: list[int], chance: Chance, style: str) -> Array:
    base: Array = given.value.data
    if given.fixed and tuple(shape) == base.shape:
        return base
    kind = base.dtype
    if given.high is not None:
        return chance.whole(kind, shape, 0, max(given.high - 1, 0))
    if given.fixed:
        return np.resize(base, shape) if base.size else np.zeros(shape, kind)
    if kind.kind == "O" or kind == np.bool_:
        return chance.ordinary(kind, shape) if kind.kind == "O" else chance.whole(np.int8, shape, 0, 1).astype(kind)
    if is_whole(kind):
        if style in ("integers", "extreme") and kind.itemsize * 8 >= 8 and "int4" not in kind.name:
            bounds = np.iinfo(kind)
            corners = np.array([bounds.min, bounds.max, bounds.min + 1, bounds.max - 1, 0, 1, 2], kind)
            return corners[chance.generator.integers(0, len(corners), shape)]
        return chance.ordinary(kind, shape)
    if style == "small":
        return chance.whole(kind, shape, -3, 3)
    if style == "signs":
        corners = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 1e-6]).astype(kind)
        return corners[chance.generator.integers(0, len(corners), shape)]
    if style == "extreme":
        with np.errstate(over="ignore"):
            corners = np.array([np.finfo(np.float32).max, -np.finfo(np.float32).max, 1e-40, 1.0, np.inf, -np.inf, np.nan, -0.0, 65504.0]).astype(kind)
        return corners[chance.generator.integers(0, len(corners), shape)]
    return chance.ordinary(kind, shape)
