"""Changes of an operator between two versions: conversions in both directions.

Each function takes a `Draft` that is legal on one side of a change. It tells whether the other side
can express the same node, and rewrites the draft to express it. The docstrings state the meaning
before the change.

A conversion relies only on meanings that the schemas' texts show to be equal, whatever a runtime
does. Added attributes need no conversion: `opsets` omits defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from onnx import TensorProto

from eqsat.facts.dims import add, exact_divide
from eqsat.facts.fact import INTEGERS, dtype_name, element_count
from eqsat.facts.node import Shape, from_front
from eqsat.terms.forms import Draft, floats, scalar, vector

Conversion = Callable[[Draft], bool]

_HIGHEST = float(np.finfo(np.float32).max)
_UNSIGNED = frozenset({TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64})
# Float 8 types without infinities. Version 24 of Cast changed their result.
_NO_INFINITY = frozenset({TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ})


class Change(NamedTuple):
    """The change of an operator in `version`."""

    version: int
    up: Conversion
    down: Conversion


def same(_: Draft) -> bool:
    """Convert nothing: both versions express the node alike."""
    return True


# --- attributes that became inputs ---


class Moved(NamedTuple):
    """An attribute that became the input at `position`.

    It is a list of integers, one integer in a list, or a scalar of the data's type.
    """

    name: str
    position: int
    kind: str = "list"  # "list", "one" (a list of one integer), "scalar" (an integer), "like data" (a float)


def moved(version: int, *entries: Moved) -> Change:
    """Convert attributes that became inputs. The inputs must be constant on the way back."""

    def up(draft: Draft) -> bool:
        return all(_to_input(draft, entry) for entry in entries)

    def down(draft: Draft) -> bool:
        return all(_to_attribute(draft, entry) for entry in entries)

    return Change(version, up, down)


def _to_input(draft: Draft, entry: Moved) -> bool:
    value = draft.attributes.pop(entry.name, None)
    if value is None:
        return True
    if isinstance(value, tuple) and value and all(isinstance(item, int) for item in value):
        draft.put(entry.position, vector([int(item) for item in value]))
    elif isinstance(value, int):
        draft.put(entry.position, scalar(value) if entry.kind == "scalar" else vector([value]))
    elif isinstance(value, float):
        data = draft.fact(0)
        if data is None or not dtype_name(data.dtype).startswith(("float", "bfloat", "double")):
            return False
        draft.put(entry.position, floats(data.dtype, (), [value]))
    else:
        return False  # no text gives a meaning to an empty list in the attribute
    return True


def _to_attribute(draft: Draft, entry: Moved) -> bool:
    if draft.fact(entry.position) is None:
        return True
    numbers, reals = draft.numbers(entry.position), draft.reals(entry.position)
    if entry.kind == "like data":
        if reals is None or len(reals) != 1 or float(np.float32(reals[0])) != reals[0]:
            return False
        draft.attributes[entry.name] = reals[0]
    elif numbers is None or not numbers or (entry.kind != "list" and len(numbers) != 1):
        return False
    else:
        draft.attributes[entry.name] = numbers if entry.kind == "list" else numbers[0]
    draft.put(entry.position, None)
    return True


# --- broadcasting before version 7 ---


def broadcast_up(draft: Draft) -> bool:
    """Convert the old broadcasting, from the second operand to the shape of the first.

    The second operand had the first's shape, one element, or a part of the shape that starts at
    `axis`.
    """
    broadcast, axis = draft.attributes.pop("broadcast", 0), draft.attributes.pop("axis", None)
    if broadcast == 0 or axis is None:
        return True
    first, second = draft.shape(0), draft.shape(1)
    return first is not None and second is not None and isinstance(axis, int) and from_front(axis, len(first)) == len(first) - len(second)


def broadcast_down(draft: Draft) -> bool:
    """The old broadcasting stretched only the second operand, and only by leading axes."""
    first, second = draft.shape(0), draft.shape(1)
    if first is None or second is None or None in first:
        return False
    if first != second:
        if not _is_end(first, second):
            return False
        draft.attributes["broadcast"] = 1
    return True


def _is_end(first: Shape, second: Shape) -> bool:
    return len(second) <= len(first) and (second == first[len(first) - len(second) :] or all(size == 1 for size in second))


def addend_up(draft: Draft) -> bool:
    """Gemm stretched its third operand only if `broadcast` was set."""
    draft.attributes.pop("broadcast", None)
    return True


def addend_down(draft: Draft) -> bool:
    """Gemm's third operand had the product's shape, or was stretched along its rows."""
    a, b, c = draft.shape(0), draft.shape(1), draft.shape(2)
    if a is None or b is None or c is None or len(a) != 2 or len(b) != 2:
        return False
    product = (a[1] if draft.integer("transA", 0) else a[0], b[0] if draft.integer("transB", 0) else b[1])
    if None in product or not _is_end(product, c):
        return False
    draft.attributes["broadcast"] = int(c != product)
    return True


def slope(draft: Draft) -> bool:
    """PRelu's slope had one element per channel; a single element means the same everywhere."""
    x, slopes = draft.rank(0), draft.fact(1)
    return x is not None and slopes is not None and slopes.shape is not None and element_count(slopes) == 1 and len(slopes.shape) <= x


def alike(draft: Draft) -> bool:
    """Sum, Mean, Max and Min did not broadcast."""
    shapes = {None if fact is None else fact.shape for fact in draft.facts}
    shape = next(iter(shapes))
    return len(shapes) == 1 and shape is not None and None not in shape


def mask_down(draft: Draft) -> bool:
    """Attention's mask was as long as the keys, those of the past included."""
    if draft.fact(3) is None:
        return True
    mask, keys, past = draft.shape(3), draft.shape(1), draft.shape(4)
    if not mask or not keys or len(keys) < 3 or (draft.fact(4) is not None and (past is None or len(past) != 4)):
        return False
    length = add(keys[-2], past[2] if past else 0)
    return length is not None and length == mask[-1]


# --- modes of inference ---


def tested_up(draft: Draft) -> bool:
    """Nodes without `is_test` were in training mode."""
    return draft.attributes.pop("is_test", 0) != 0 and draft.outputs == 1


def tested_down(draft: Draft) -> bool:
    """Set the attribute that declares inference mode."""
    draft.attributes["is_test"] = 1
    return draft.outputs == 1


def spatial_up(draft: Draft) -> bool:
    """BatchNormalization could also have parameters for each position."""
    return draft.attributes.pop("spatial", 1) == 1


def one_output(draft: Draft) -> bool:
    """Further outputs selected training mode, or had another meaning."""
    return draft.outputs == 1


def ratio_up(draft: Draft) -> bool:
    """In inference mode Dropout copies its input, whatever the ratio is."""
    draft.attributes.pop("ratio", None)
    return draft.outputs == 1


def ratio_down(draft: Draft) -> bool:
    """As `ratio_up`; refuse a node that is, or may be, in training mode."""
    if draft.outputs != 1 or (draft.fact(2) is not None and draft.numbers(2) != (0,)):
        return False
    del draft.inputs[1:]
    draft.attributes.pop("seed", None)
    return True


# --- axes ---


def coerced_up(draft: Draft) -> bool:
    """Softmax and similar operators merged all axes from `axis` on.

    The meaning is the same if at most one of these axes is longer than 1.
    """
    shape = draft.shape(0)
    axis = None if shape is None else from_front(draft.integer("axis", 1), len(shape))
    if shape is None or axis is None:
        return False
    long = [position for position in range(axis, len(shape)) if shape[position] != 1]
    draft.attributes["axis"] = long[0] if long else axis
    return len(long) <= 1


def coerced_down(draft: Draft) -> bool:
    """As `coerced_up`: the axes after `axis` must have size 1."""
    shape = draft.shape(0)
    axis = None if shape is None else from_front(draft.integer("axis", -1), len(shape))
    if shape is None or axis is None:
        return False
    draft.attributes["axis"] = axis
    return all(size == 1 for size in shape[axis + 1 :])


def joined_up(draft: Draft) -> bool:
    """Concat had a default axis."""
    draft.attributes.setdefault("axis", 1)
    return True


def indices_down(draft: Draft) -> bool:
    """Indices could not be negative, so no known index may be."""
    fact = draft.fact(1)
    return fact is None or not any(isinstance(index, int) and index < 0 for index in fact.ints or ())


def classes(draft: Draft) -> bool:
    """A negative index in OneHot meant no class; later it counts from the last class."""
    indices = draft.fact(0)
    return indices is not None and (indices.dtype in _UNSIGNED or all(index >= 0 for index in draft.numbers(0) or (-1,)))


def parts_up(draft: Draft) -> bool:
    """A Split into equal parts did not state their number."""
    if draft.fact(1) is None:
        draft.attributes["num_outputs"] = draft.outputs
    return True


def parts_down(draft: Draft) -> bool:
    """Without sizes, the parts had to be equal."""
    count = draft.attributes.pop("num_outputs", None)
    if count is None:
        return True
    shape = draft.shape(0)
    axis = None if shape is None else from_front(draft.integer("axis", 0), len(shape))
    return count == draft.outputs and shape is not None and axis is not None and exact_divide(shape[axis], draft.outputs) is not None


def zeros_down(draft: Draft) -> bool:
    """A zero in Reshape's shape always copied a size."""
    if draft.attributes.pop("allowzero", 0) == 0:
        return True
    wanted, data = draft.numbers(1), draft.shape(0)
    return wanted is not None and all(size != 0 or (data is not None and axis < len(data) and data[axis] == 0) for axis, size in enumerate(wanted))


def reduced_down(draft: Draft) -> bool:
    """Reductions without axes reduced all axes; only the newer version can prevent this."""
    noop = draft.attributes.pop("noop_with_empty_axes", 0)
    return noop == 0 or bool(draft.numbers(1))


# --- types ---


def named_type_up(draft: Draft) -> bool:
    """Cast named its type."""
    name = draft.attributes.get("to")
    code = dict(TensorProto.DataType.items()).get(name.decode("ascii", "replace").upper()) if isinstance(name, bytes) else None
    draft.attributes["to"] = code or 0
    return bool(code)


def named_type_down(draft: Draft) -> bool:
    """As `named_type_up`."""
    draft.attributes["to"] = dtype_name(draft.integer("to", 0)).upper().encode()
    return True


def infinities(draft: Draft) -> bool:
    """In float 8 types without infinities, an infinity became another number."""
    dtypes = {draft.integer("to", 0), *(fact.dtype for fact in draft.facts if fact is not None)}
    return not dtypes & _NO_INFINITY and all(fact is None or fact.dtype for fact in draft.facts)


def one_scale(draft: Draft) -> bool:
    """The whole tensor had one scale."""
    return draft.rank(1) == 0


def bounds_up(draft: Draft) -> bool:
    """Clip's bounds were attributes, by default the largest floats.

    An absent bound means the same only for float32.
    """
    data = draft.fact(0)
    if data is None or not data.dtype or data.dtype in INTEGERS:
        return False
    for position, (name, limit) in enumerate((("min", -_HIGHEST), ("max", _HIGHEST)), 1):
        value = draft.attributes.pop(name, None)
        if isinstance(value, float) and (data.dtype != TensorProto.FLOAT or value != limit):
            draft.put(position, floats(data.dtype, (), [value]))
    return True


def bounds_down(draft: Draft) -> bool:
    """As `bounds_up`; ONNX Runtime has a Clip this old only for float32."""
    data = draft.fact(0)
    if data is None or data.dtype != TensorProto.FLOAT:
        return False
    return all(_to_attribute(draft, Moved(name, position, "like data")) for position, name in ((2, "max"), (1, "min")))
