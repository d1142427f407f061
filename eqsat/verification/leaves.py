"""Leaves: the arrays of an output of a model, and what tells two outputs apart at first sight.

The inputs are values as eqsat/runtime/session.py returns them: tensors, sequences, maps, optionals and
sparse tensors.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from eqsat.frozen import frozen
from eqsat.runtime.session import Sparse

_BLOCK = 1 << 14


@frozen(slots=False)
class Leaf:
    """One array of an output; an absent optional has no array.

    `path` is its place in the output: "" for a tensor, "[2]" in a sequence, and so on.
    """

    path: str
    array: np.ndarray | None

    @property
    def signature(self) -> str:
        if self.array is None:
            return f"{self.path}none"
        kind = "string" if self.array.dtype.kind in "OUST" else self.array.dtype.name
        return f"{self.path}{kind}[{','.join(map(str, self.array.shape))}]"


def leaves(value: Any) -> list[Leaf]:
    """Returns the arrays of an output in a fixed order."""
    found: list[Leaf] = []
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, list):
            found.append(Leaf(f"{path}sequence of ", np.asarray(len(item))))  # pyright: ignore[reportUnknownArgumentType]
            waiting.extend((f"{path}[{number}]", part) for number, part in reversed(list(enumerate(item))))  # pyright: ignore
        elif isinstance(item, dict):
            waiting.extend((f"{path}[{key!r}]", item[key]) for key in sorted(item, reverse=True))  # pyright: ignore
        elif isinstance(item, Sparse):
            path = f"{path}sparse[{','.join(map(str, item.shape))}]"
            waiting.extend(((f"{path}.values", item.values), (f"{path}.indices", item.indices)))
        else:
            found.append(Leaf(path, None if item is None else np.asarray(item)))
    return found


def signature(value: Any) -> str:
    """Returns the type of an output as text: element types and shapes.

    Outputs of one signature can be compared.
    """
    return ", ".join(leaf.signature for leaf in leaves(value))


def plain(array: np.ndarray) -> np.ndarray:
    """Returns the same values in a dtype that numpy computes with."""
    if array.dtype.kind == "c":
        return np.stack((np.real(array), np.imag(array)), axis=-1)
    if array.dtype.kind in "biufOUST" and array.dtype.isbuiltin == 1:
        return array
    return array.astype(np.float32 if is_float(array) else np.int8 if array.dtype.name.startswith("int") else np.uint8)


def is_float(array: np.ndarray) -> bool:
    """Tells whether the elements are floating-point or complex numbers of any width."""
    return array.dtype.kind in "fc" or "float" in array.dtype.name


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns a mask of the equal elements of two plain arrays, where NaN equals NaN."""
    equal = a == b
    if a.dtype.kind == "f":
        equal = equal | (np.isnan(a) & np.isnan(b))
    return np.asarray(equal)


def blocks(size: int) -> list[slice]:
    """Returns consecutive parts of a vector, each of few elements.

    What is computed of a part stays in the cache. Of a large array at once it would be new memory for
    each step, which takes longer to get than to fill.
    """
    return [slice(start, min(start + _BLOCK, size)) for start in range(0, size, _BLOCK)]


def digest(value: Any) -> tuple[str, bytes, bytes | None]:
    """Returns an output in few bytes: its type, its content, and its element if it is uniform."""
    content = hashlib.blake2b(digest_size=16)
    elements: set[bytes] = set()
    for leaf in leaves(value):
        if leaf.array is not None:
            array = plain(leaf.array)
            for part in _bits(array):
                content.update(part)
            if array.size:
                first = array.reshape(-1)[:1]
                elements.add(b"".join(_bits(first)) if array.dtype.kind not in "OUST" and same(array, first).all() else content.digest())
    return signature(value), content.digest(), elements.pop() if len(elements) == 1 else None


def _bits(array: np.ndarray) -> Iterator[bytes | memoryview]:
    """Yields the content of a plain array, part by part. -0 and 0 have the same bits."""
    if array.dtype.kind in "OUST":
        yield repr(array.tolist()).encode()
        return
    flat, zero = np.ascontiguousarray(array).reshape(-1), array.dtype.type(0)
    for part in blocks(flat.size):
        yield (flat[part] + zero if array.dtype.kind == "f" else flat[part]).data


def moves(digests: list[tuple[str, bytes, bytes | None]]) -> bool:
    """Tells whether an output held different elements on different inputs.

    A uniform tensor that only grew did not move.
    """
    return any(first[1] != other[1] and (first[0] == other[0] or first[2] is None or first[2] != other[2]) for first, other in itertools.pairwise(digests))
