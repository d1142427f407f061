"""Random choices of the fuzzer of facts, and the attributes and inputs of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto, defs, helper

Array = np.ndarray[Any, Any]

_COMMON = ("FLOAT", "INT64", "INT32", "FLOAT16", "DOUBLE", "BOOL", "UINT8", "INT8", "BFLOAT16", "UINT64", "UINT32", "INT16", "UINT16", "STRING")
TYPES = {f"tensor({name.lower()})": int(TensorProto.DataType.Value(name)) for name in _COMMON}
FLOAT, INT64, INT32, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.STRING


class Free(NamedTuple):
    """An input of which a node needs only the sizes. Its elements are between `low` and `high`."""

    shape: tuple[int, ...]
    low: float = -4
    high: float = 4
    dtype: int = 0  # 0: any type that the schema admits


class Fixed(NamedTuple):
    """An input whose elements control the node: axes, sizes, scales."""

    array: Array


class Case(NamedTuple):
    """A node that is legal at the sizes of its inputs."""

    inputs: Sequence[Free | Fixed | None]
    attributes: Mapping[str, Any] = {}
    outputs: int = 1


class Draw:
    """Random choices for one version of an operator, the same for the same seed."""

    def __init__(self, seed: Sequence[int], schema: defs.OpSchema | None = None) -> None:
        self.random = np.random.default_rng(seed)
        self.schema = schema
        self.version = 0 if schema is None else schema.since_version

    def number(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def chance(self, share: float = 0.5) -> bool:
        return bool(self.random.random() < share)

    def pick(self, *items: Any) -> Any:
        return items[self.number(0, len(items) - 1)]

    def some(self, **attributes: Any) -> dict[str, Any]:
        """Returns some of the attributes that the version has; a tuple is a choice of values."""
        known = {} if self.schema is None else self.schema.attributes
        found = {name: self.pick(*value) if isinstance(value, tuple) else value for name, value in attributes.items() if self.chance()}
        return {name: value for name, value in found.items() if name in known}

    def size(self) -> int:
        return self.pick(1, 2, 3, 3, 4, 5, 6, 7) if self.chance(0.96) else 0

    def shape(self, low: int = 0, high: int = 4) -> tuple[int, ...]:
        return tuple(self.size() for _ in range(self.number(low, high)))

    def operands(self, count: int) -> list[tuple[int, ...]]:
        """Returns shapes that broadcast."""
        full = self.shape()
        shapes: list[tuple[int, ...]] = []
        for _ in range(count):
            part = tuple(1 if self.chance(0.2) else size for size in full)
            shapes.append(part[self.number(0, len(part)) if self.chance(0.3) else 0 :])
        return shapes

    def axis(self, rank: int, since: int = 11) -> int:
        """Returns an axis. Operators accept negative ones from the version `since` on."""
        return self.number(-rank if self.version >= since else 0, max(rank, 1) - 1)

    def axes(self, rank: int, least: int = 1, since: int = 11) -> list[int]:
        """Returns different axes in any order."""
        found = self.random.permutation(rank)[: self.number(min(least, rank), rank)].tolist()
        return [axis - rank if self.version >= since and self.chance(0.4) else axis for axis in found]

    def numbers(self, count: int, low: int, high: int) -> list[int]:
        return [self.number(low, high) for _ in range(count)]


def ints(*items: int, dtype: Any = np.int64) -> Fixed:
    return Fixed(np.array(items, dtype))


def scalar(item: float, dtype: Any = np.int64) -> Fixed:
    return Fixed(np.array(item, dtype))


def floats(*items: float) -> Fixed:
    return Fixed(np.array(items, np.float32))


def listed(draw: Draw, name: str, values: list[int] | None, since: int, inputs: list[Any], **attributes: Any) -> Case:
    """Returns a node with a list.

    The list is an attribute before the version `since`, and an input from there on.
    """
    if draw.version < since:
        return Case(inputs, attributes if values is None else {**attributes, name: values})
    return Case([*inputs, None if values is None else ints(*values)], attributes)


def elements(random: np.random.Generator, shape: Sequence[int], dtype: int, low: float, high: float) -> Array:
    """Returns a tensor of random elements."""
    if dtype == STRING:
        return np.array(random.choice(["a", "b c", "", "1,2"], shape), object).reshape(shape)
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    if dtype == BOOL:
        return np.asarray(random.random(shape) < 0.5)
    if np.dtype(kind).kind in "iu":
        return np.asarray(random.integers(max(int(low), 0) if np.dtype(kind).kind == "u" else int(low), int(high) + 1, shape)).astype(kind)
    return np.asarray(random.random(shape) * (high - low) + low).astype(kind)


def with_extremes(random: np.random.Generator, array: Array) -> Array:
    """Returns a tensor with some of its numbers replaced by the extremes of its type, and often by
    NaN and infinities.
    """
    if array.dtype.kind in "iu":
        information = np.iinfo(array.dtype)
        extremes = [information.min, information.max, information.min + 1, 0, 1]
    else:
        limits = np.finfo(array.dtype)
        extremes = [0.0, -0.0, limits.max, limits.min, limits.tiny, limits.smallest_subnormal, 1.0, -1.0]
        extremes += [np.nan, np.inf, -np.inf] if random.random() < 0.6 else []
    chosen = random.choice(np.array(extremes, array.dtype), array.shape)
    return np.where(random.random(array.shape) < 0.2, chosen, array)


Maker = Callable[[Draw], Case]
