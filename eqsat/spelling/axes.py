"""The normal form of axes, bounds, sizes and pads: explicit and counted from the front.

Axes are sorted where their order has no effect. Each function rewrites a `Draft` of the newest
opset as far as the facts allow. The node computes the same wherever it is legal. Unknown parameters
stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from eqsat.facts.dims import ceildiv, tells_zero
from eqsat.facts.fact import element_count
from eqsat.facts.inference import infer
from eqsat.facts.node import from_front
from eqsat.facts.shapes import UNBOUNDED
from eqsat.terms.forms import Draft, scalar, vector
from eqsat.terms.terms import Literal

_END = 2**63 - 1  # the bound that means "to the end"


def _from_front(axes: Sequence[int], rank: int) -> tuple[int, ...] | None:
    """Return axes counted from the front; None for illegal ones (out of range, or repeated)."""
    found = tuple(axis for axis in (from_front(axis, rank) for axis in axes) if axis is not None)
    return found if len(set(found)) == len(axes) else None


def _put_sorted(draft: Draft, position: int, axes: Sequence[int], rank: int) -> None:
    found = _from_front(axes, rank)
    if found and draft.rank(position) in (None, 1):
        draft.put(position, vector(sorted(found)))


def squeeze(draft: Draft) -> None:
    """Squeeze: omitted axes become the axes of size 1."""
    shape, axes = draft.shape(0), draft.numbers(1)
    if shape is None:
        return
    if draft.fact(1) is None and all(isinstance(size, int) for size in shape):
        axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
    _put_sorted(draft, 1, axes or (), len(shape))


def unsqueeze(draft: Draft) -> None:
    """Unsqueeze: axes count in the result."""
    rank, axes = draft.rank(0), draft.numbers(1)
    if rank is not None and axes is not None:
        _put_sorted(draft, 1, axes, rank + len(axes))


def reduce(draft: Draft) -> None:
    """Reductions: omitted axes become all axes.

    `noop_with_empty_axes` stays only where the list of axes may be empty.
    """
    rank, axes = draft.rank(0), draft.numbers(1)
    count = None if draft.fact(1) is None else draft.shape(1)
    if count and isinstance(count[0], int) and count[0] > 0:
        draft.attributes["noop_with_empty_axes"] = 0
    if axes == ():
        draft.put(1, None)
    if draft.fact(1) is None and draft.integer("noop_with_empty_axes", 0) == 0:
        axes = None if rank is None else tuple(range(rank))
    if rank is not None and axes:
        _put_sorted(draft, 1, axes, rank)


def cut(draft: Draft) -> None:
    """Slice: explicit axes, no steps of 1, and forward bounds clamped to a known size."""
    given = [position for position in (1, 2, 3, 4) if draft.fact(position) is not None]
    # All four inputs share one type, and must still do so after the change.
    if any(draft.numbers(position) is None and draft.node.dtype(position) != TensorProto.INT64 for position in given):
        return
    starts, ends, axes, steps = (draft.numbers(position) for position in (1, 2, 3, 4))
    shape, lengths = draft.shape(0), draft.shape(1)
    count = lengths[0] if lengths is not None and len(lengths) == 1 else None
    if not isinstance(count, int):
        return
    if draft.fact(3) is None:
        axes = tuple(range(count))
    if axes is not None and shape is not None:
        axes = _from_front(axes, len(shape))
    if axes is None or len(axes) != count:
        return
    draft.put(3, vector(axes))
    if steps is not None and all(step == 1 for step in steps):
        draft.put(4, None)
    if draft.fact(4) is None:
        steps = (1,) * count
    if starts is None or ends is None or steps is None or not len(starts) == len(ends) == len(steps) == count:
        return
    sizes = [None if shape is None else shape[axis] for axis in axes]
    rows = list(zip(starts, ends, steps, sizes, strict=True))
    draft.put(1, vector([_bound(start, size) if step > 0 else start for start, _, step, size in rows]))
    draft.put(2, vector([_bound(end, size) if step > 0 else end for _, end, step, size in rows]))
    if draft.fact(4) is not None:
        draft.put(4, vector(steps))


def _bound(bound: int, size: object) -> int:
    if isinstance(size, int):
        return min(max(bound + size if bound < 0 else bound, 0), size)
    return _END if bound >= UNBOUNDED else bound


def split(draft: Draft) -> None:
    """Split: equal parts become explicit sizes, if these are numbers."""
    shape = draft.shape(0)
    axis = None if shape is None else from_front(draft.integer("axis", 0), len(shape))
    count = draft.outputs
    if shape is None or axis is None or draft.fact(1) is not None or draft.integer("num_outputs", count) != count:
        return
    size = shape[axis]
    part = ceildiv(size, count)
    if not isinstance(size, int) or not isinstance(part, int):
        return
    last = size - part * (count - 1)
    if last > 0 or size == 0:
        draft.put(1, vector([part] * (count - 1) + [last]))
        draft.attributes.pop("num_outputs", None)


def pad(draft: Draft) -> None:
    """Pad: pads of all axes; a zero or unused value is omitted."""
    value = draft.fact(2)
    zero = value is not None and value.uniform is not None and not any(value.uniform) and element_count(value) == 1
    if zero or draft.node.text("mode", "constant") != "constant":
        draft.put(2, None)
    rank, pads = draft.rank(0), draft.numbers(1)
    if rank is None or pads is None:
        return
    axes = tuple(range(rank)) if draft.fact(3) is None else _from_front(draft.numbers(3) or (), rank)
    if axes is None or len(pads) != 2 * len(axes):
        return
    full = [0] * (2 * rank)
    for place, axis in enumerate(axes):
        full[axis], full[axis + rank] = pads[place], pads[place + len(axes)]
    draft.put(1, vector(full))
    draft.put(3, None)


def reshape(draft: Draft) -> None:
    """Reshape: explicit sizes of the result; `allowzero` is set only if one of them is 0.

    Where a size depends on whether another one is 0, the given ones are easier to read.
    """
    sizes = infer(draft.operator, draft.attributes, draft.facts, 1)[0].shape
    if sizes is not None and None not in sizes and not any(map(tells_zero, sizes)):
        draft.put(1, Literal(TensorProto.INT64, (len(sizes),), sizes))
        draft.attributes["allowzero"] = int(0 in sizes)


def expand(draft: Draft) -> None:
    """Expand: explicit sizes of the result."""
    sizes = infer(draft.operator, draft.attributes, draft.facts, 1)[0].shape
    if sizes is not None and None not in sizes:
        draft.put(1, Literal(TensorProto.INT64, (len(sizes),), sizes))


def transpose(draft: Draft) -> None:
    """Transpose: an explicit permutation."""
    rank = draft.rank(0)
    if rank:
        draft.attributes.setdefault("perm", tuple(reversed(range(rank))))


def shape(draft: Draft) -> None:
    """Shape: explicit bounds; the end is omitted if it equals the rank."""
    rank = draft.rank(0)
    if rank is None:
        return
    start, end = (min(max(bound + rank if bound < 0 else bound, 0), rank) for bound in (draft.integer("start", 0), draft.integer("end", rank)))
    draft.attributes |= {"start": start, "end": end}
    if end == rank:
        del draft.attributes["end"]


def fourier(draft: Draft) -> None:
    """DFT: an explicit axis; the last axis holds the parts of complex numbers."""
    rank, axis = draft.rank(0), (-2,) if draft.fact(2) is None else draft.numbers(2)
    found = None if rank is None or axis is None or len(axis) != 1 else from_front(axis[0], rank)
    if found is not None:
        draft.put(2, scalar(found))


def cumulate(draft: Draft) -> None:
    """CumSum: its axis."""
    rank, axis, form = draft.rank(0), draft.numbers(1), draft.shape(1)
    found = None if rank is None or axis is None or len(axis) != 1 else from_front(axis[0], rank)
    if found is not None and form is not None:
        draft.put(1, Literal(TensorProto.INT64, (1,) * len(form), (found,)))


def crop(draft: Draft) -> None:
    """CenterCropPad: sizes for all axes as int64, so that `axes` is omitted."""
    rank, sizes = draft.rank(0), draft.numbers(1)
    if rank is not None and draft.attributes.get("axes") == tuple(range(rank)):
        del draft.attributes["axes"]
    if sizes is not None and draft.rank(1) == 1:
        draft.put(1, vector(sizes))


def mean_variance(draft: Draft) -> None:
    """MeanVarianceNormalization: sorted axes."""
    axes = draft.node.integers("axes")
    if axes is not None and min(axes, default=0) >= 0:
        draft.attributes["axes"] = tuple(sorted(axes))
