"""Last places: the unit in the last place of a number, and values moved by some of these."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from eqsat.verification.leaves import blocks, is_float, plain


def ulp(magnitude: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Returns one unit in the last place, in `dtype`, of numbers given in double precision."""
    epsilon, least = _precision(dtype)
    exponent = np.frexp(np.where(np.isfinite(magnitude), magnitude, 0))[1]
    return np.maximum(np.ldexp(epsilon, exponent - 1), least)


def _precision(dtype: np.dtype[Any]) -> tuple[float, float]:
    import ml_dtypes

    information = cast(Any, ml_dtypes.finfo(dtype))  # handles numpy's own types too
    return float(information.eps), float(information.smallest_subnormal)


def nudge(value: Any, units: int, generator: np.random.Generator, coarsest: np.dtype[Any] | None = None) -> Any:
    """Returns the value with each floating-point element moved by `units` in its last place.

    Types narrower than 32 bits move by one unit. The signs are random. Zeros stay: a number that
    crosses zero would be another case, not nearly the same one. With `coarsest`, the last place is
    that of this type if the element's own is finer.
    """
    if isinstance(value, list):
        return [nudge(part, units, generator, coarsest) for part in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {key: nudge(part, units, generator, coarsest) for key, part in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, np.ndarray):
        return value
    array = cast(np.ndarray, value)
    if not is_float(array) or array.dtype.kind == "c":
        return array
    flat = array.reshape(-1)
    moved = np.empty_like(flat)
    for part in blocks(flat.size):
        moved[part] = _moved(flat[part], units, generator, coarsest)
    return moved.reshape(array.shape)


def _moved(array: np.ndarray, units: int, generator: np.random.Generator, coarsest: np.dtype[Any] | None) -> np.ndarray:
    up = generator.integers(0, 2, array.shape, dtype=np.int8)
    if coarsest is None and array.dtype.kind == "f" and array.dtype.itemsize in (4, 8):
        return _next(array, up * np.int8(2 * units) - np.int8(units))
    numbers = np.asarray(plain(array), dtype=np.float64)
    step = ulp(np.abs(numbers), array.dtype) * (units if array.dtype.itemsize >= 4 else 1)
    if coarsest is not None:
        step = np.maximum(step, ulp(np.abs(numbers), coarsest))
    with np.errstate(all="ignore"):
        moved = (numbers + np.where(up, step, -step)).astype(array.dtype)
        keep = (numbers == 0) | ~np.isfinite(plain(moved))
    return np.where(keep, array, moved)


def _next(array: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Returns a vector of floats so many places further from zero, or nearer to it if `places` is negative.

    Neighbors of one sign have consecutive bits. Elements that would reach zero or infinity stay.
    """
    moved = (array.view(f"i{array.dtype.itemsize}") + places).view(array.dtype)
    keep = (array == 0) | ~np.isfinite(array) | ~np.isfinite(moved) | (moved == 0)
    return np.where(keep, array, moved)
