"""One spelling for axes, bounds, sizes and pads: counted from the front, written out, in order where order says nothing.

Comes in: a `Draft` of a node of the newest opset. Goes out: the same draft, its parameters as far as the facts tell in
the one form. Promised: the node computes what it computed wherever it is legal; what is not known stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from eqsat.dims import ceildiv
from eqsat.facts import element_count
from eqsat.forms import Draft, scalar, vector
from eqsat.inference import infer
from eqsat.nodes import from_front
from eqsat.shapes import UNBOUNDED
from eqsat.terms import Literal

_END = 2**63 - 1  # how a bound says "to the end"


def _from_front(axes: Sequence[int], rank: int) -> tuple[int, ...] | None:
    """Axes counted from the front; None where one is out of range or stands twice: no such node is legal."""
    found = tuple(axis for axis in (from_front(axis, rank) for axis in axes) if axis is not None)
    return found if len(set(found)) == len(axes) else None


def _put_sorted(draft: Draft, position: int, axes: Sequence[int], rank: int) -> None:
    found = _from_front(axes, rank)
    if found and draft.rank(position) in (None, 1):
        draft.put(position, vector(sorted(found)))


def squeeze(draft: Draft) -> None:
    """Squeeze: the axes of size 1 where it names none."""
    shape, axes = draft.shape(0), draft.numbers(1)
    if shape is None:
        return
    if draft.fact(1) is None and all(isinstance(size, int) for size in shape):
        axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
    _put_sorted(draft, 1, axes or (), len(shape))


def unsqueeze(draft: Draft) -> None:
    """Unsqueeze: axes of the result."""
    rank, axes = draft.rank(0), draft.numbers(1)
    if rank is not None and axes is not None:
        _put_sorted(draft, 1, axes, rank + len(axes))


def reduce(draft: Draft) -> None:
    """Reductions: all axes where they name none; what an empty list of axes means is asked only where there is one."""
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
    """Slice: axes written out, steps of 1 left out, bounds of forward steps within the size where that is a number."""
    given = [position for position in (1, 2, 3, 4) if draft.fact(position) is not None]
    # All four have one type, which must not become two.
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
    """Split: the sizes of equal parts, where they are numbers."""
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
    """Pad: pads of all axes, and no value where it is zero or not used."""
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
    """Reshape: the sizes of the result; zeros are sizes where one of them is the number 0."""
    sizes = infer(draft.operator, draft.attributes, draft.facts, 1)[0].shape
    if sizes is not None and None not in sizes:
        draft.put(1, Literal(TensorProto.INT64, (len(sizes),), sizes))
        draft.attributes["allowzero"] = int(0 in sizes)


def expand(draft: Draft) -> None:
    """Expand: the sizes of the result."""
    sizes = infer(draft.operator, draft.attributes, draft.facts, 1)[0].shape
    if sizes is not None and None not in sizes:
        draft.put(1, Literal(TensorProto.INT64, (len(sizes),), sizes))


def transpose(draft: Draft) -> None:
    """Transpose: the order written out."""
    rank = draft.rank(0)
    if rank:
        draft.attributes.setdefault("perm", tuple(reversed(range(rank))))


def shape(draft: Draft) -> None:
    """Shape: the first axis and the one behind the last, the latter left out where it is the rank."""
    rank = draft.rank(0)
    if rank is None:
        return
    start, end = (min(max(bound + rank if bound < 0 else bound, 0), rank) for bound in (draft.integer("start", 0), draft.integer("end", rank)))
    draft.attributes |= {"start": start, "end": end}
    if end == rank:
        del draft.attributes["end"]


def fourier(draft: Draft) -> None:
    """DFT: the axis written out; the last one holds the parts of complex numbers."""
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
    """CenterCropPad: all axes are left out, sizes are 64 bits wide."""
    rank, sizes = draft.rank(0), draft.numbers(1)
    if rank is not None and draft.attributes.get("axes") == tuple(range(rank)):
        del draft.attributes["axes"]
    if sizes is not None and draft.rank(1) == 1:
        draft.put(1, vector(sizes))


def mean_variance(draft: Draft) -> None:
    """MeanVarianceNormalization: axes in order."""
    axes = draft.node.integers("axes")
    if axes is not None and min(axes, default=0) >= 0:
        draft.attributes["axes"] = tuple(sorted(axes))
