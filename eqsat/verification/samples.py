"""Samples: random inputs for a model.

The input is a plan (eqsat/verification/sample_plan.py), sizes, a style and a seed. The output is the
inputs: tensors of every element type, sequences, optionals and maps. The same arguments give the same
bits. Drawing needs only numpy and happens in the worker.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from eqsat.verification.sample_plan import CALM, NORMAL, ONES, POSITIVE, ZEROS, Draw, Plan, Spec

if TYPE_CHECKING:
    from eqsat.verification.input_ranges import Want

_WORDS = ("a", "b", "apple", "Über", "two words", "", "42", "a")


def draw(plan: Plan, chosen: Draw) -> dict[str, Any]:
    """Returns inputs by name. The seed of an input depends on its name, not on its place."""
    feeds: dict[str, Any] = {}
    ways = 0
    for name, spec in plan.inputs.items():
        generator = np.random.default_rng([chosen.seed, zlib.crc32(name.encode())])
        rank = chosen.sizes.get(f"rank of {name}", 0)
        if name in chosen.extremes:
            feeds[name] = _ends(numpy_dtype(spec.dtype), _shape(spec, chosen.sizes, rank), generator)
            continue
        style = CALM if plan.counts and chosen.style == NORMAL and _counts(spec) else chosen.style
        feeds[name] = _draw(spec, chosen.sizes, rank, style, generator)
        if style == NORMAL and spec.has_choices:
            ways += 1
            feeds[name] = _telling(feeds[name], spec.want, chosen.sizes, chosen.seed // ways, generator)
    return feeds


def _telling(drawn: np.ndarray, want: Want | None, sizes: Mapping[str, int], turn: int, generator: np.random.Generator) -> np.ndarray:
    """Returns drawn values with telling ones in place of about half of them.

    A single value takes turns between all of its ways, so that a few draws go each way.
    """
    ways: list[Any] = []
    if drawn.dtype == np.bool_:
        ways = [True, False]
    elif want is not None and drawn.dtype.kind in "iuf":
        low, high = _limits(want, sizes, signed=True) if want.highs else (-math.inf, math.inf)
        if drawn.dtype.kind != "f":
            low, high = max(low, np.iinfo(drawn.dtype).min), min(high, np.iinfo(drawn.dtype).max + 1)
        ways = [value for value in want.telling if low <= value < high]
    if drawn.size == 1:
        return np.full_like(drawn, [*ways, drawn.item()][turn % (len(ways) + 1)])
    if not ways:
        return drawn
    chosen = generator.integers(0, 2 * len(ways), drawn.shape)
    return np.where(chosen < len(ways), np.array(ways, drawn.dtype)[chosen % len(ways)], drawn)


def _ends(kind: np.dtype[Any], shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """Draws integers from the limits and the middle of their type."""
    limits = np.iinfo(kind)
    low, high = int(limits.min), int(limits.max)
    values = np.array([low, low + 1, max(low, -1), 0, 1, high - 1, high], dtype=kind)
    return values[generator.integers(0, len(values), shape)]


def _counts(spec: Spec) -> bool:
    return spec.kind == "tensor" and spec.dtype in ("int32", "int64") and spec.is_free


def _draw(spec: Spec, sizes: Mapping[str, int], rank: int, style: str, generator: np.random.Generator) -> Any:
    if spec.kind == "tensor":
        return _tensor(spec.dtype, _shape(spec, sizes, rank), spec.want, sizes, style, generator)
    assert spec.element is not None
    if spec.kind == "sequence":
        return [_draw(spec.element, sizes, rank, style, generator) for _ in range(3)]
    if spec.kind == "optional":
        return None if style == ZEROS else _draw(spec.element, sizes, rank, style, generator)
    keys = [f"key{number}" if spec.dtype == "str" else number for number in range(3)]
    values = [_draw(spec.element, sizes, rank, style, generator) for _ in keys]
    return {key: value.item() if value.ndim == 0 else value for key, value in zip(keys, values, strict=True)}


def _shape(spec: Spec, sizes: Mapping[str, int], rank: int) -> tuple[int, ...]:
    return (3,) * rank if spec.shape is None else tuple(sizes[size] if isinstance(size, str) else size for size in spec.shape)


def _tensor(dtype: str, shape: tuple[int, ...], want: Want | None, sizes: Mapping[str, int], style: str, generator: np.random.Generator) -> np.ndarray:
    if dtype == "str":
        words = _WORDS if style == NORMAL else ("0", "1", "2")
        return np.array([words[number] for number in generator.integers(0, len(words), int(np.prod(shape)))], dtype=object).reshape(shape)
    if dtype == "bool":
        return np.full(shape, style == ONES) if style in (ONES, ZEROS) else generator.integers(0, 2, shape, np.int8) == 1
    kind = numpy_dtype(dtype)
    integer = kind.kind in "iu" or "int" in dtype
    if want is not None and want.pattern == "reshape" and integer:
        result = np.ones(shape, np.int64)
        result[-1:] = -1
        return result.astype(kind)
    if want is not None and want.pattern == "axes" and integer:
        return np.arange(int(np.prod(shape))).reshape(shape).astype(kind)
    if want is not None and want.highs and integer:
        return _ranged(kind, shape, want, sizes, style, generator)
    if style in (ONES, ZEROS):
        return np.full(shape, int(style == ONES)).astype(kind)
    if integer:
        return _integers(kind, dtype, shape, style, generator)
    # Single precision takes half the time, and is enough for all types but the widest.
    values = generator.standard_normal(shape, np.float64 if kind.itemsize > 4 else np.float32)
    if kind.kind == "c":
        values = values + 1j * generator.standard_normal(shape)
    elif style == POSITIVE or dtype.startswith("float8_e8m0") or (want is not None and want.pattern == "positive"):
        values = np.abs(values) + 0.5
    return np.asarray(values).astype(kind)


def _ranged(kind: np.dtype[Any], shape: tuple[int, ...], want: Want, sizes: Mapping[str, int], style: str, generator: np.random.Generator) -> np.ndarray:
    low, high = _limits(want, sizes, style == NORMAL and kind.kind == "i")
    if style in (ONES, ZEROS, CALM):
        low, high = want.low, want.low + 1
    return generator.integers(low, high, shape).astype(kind)


def _limits(want: Want, sizes: Mapping[str, int], signed: bool) -> tuple[int, int]:
    """Returns the first value of a range, and the one behind its last; the first may be negative if
    values are `signed`.
    """
    # A name that is no input's dimension is a size that only a run would show. Only its first
    # element is sure to exist.
    high = max(min(sizes.get(bound, want.low + 1) if isinstance(bound, str) else bound for bound in want.highs), want.low + 1)
    return -high if want.signed and signed else want.low, high


def _integers(kind: np.dtype[Any], dtype: str, shape: tuple[int, ...], style: str, generator: np.random.Generator) -> np.ndarray:
    signed = not dtype.startswith("uint")
    if style == CALM:
        low, high = 0, 2
    elif kind.itemsize == 1:
        bits = int(dtype.lstrip("uint"))
        low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    else:
        low, high = -4 if signed and style == NORMAL else 0, 9
    # To draw narrow integers takes a fraction of the time that the widest take.
    return generator.integers(low, high, shape, np.int16 if kind.itemsize == 1 else np.int64).astype(kind)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Returns the dtype of a name: numpy's own, or one of ml_dtypes."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
