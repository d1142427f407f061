"""Convolutions, and the windows that they share with pools.

The input is a `Call` for Conv or ConvTranspose of any number of spatial axes, or the parts of one;
the output is its result. Padding is zeros, which are multiplied like any other number. A sum begins
with the bias, if there is one, and runs over channels, then over positions in the kernel, each in
order. The sum of ConvTranspose runs over positions first.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from math import prod

import numpy as np

from eqsat.checker.kernels.call import Array, Call, Illegal, Kernel, per_channel
from eqsat.checker.kernels.sums import total

SAME = ("SAME_UPPER", "SAME_LOWER")


@dataclass(frozen=True, slots=True)
class Windows:
    """The positions of a window along each spatial axis: `counts` of them, `strides` apart. `heads`
    and `tails` are the padding.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    heads: tuple[int, ...]
    tails: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def spans(self) -> tuple[int, ...]:
        """The length that a window covers along each axis."""
        return tuple((length - 1) * dilation + 1 for length, dilation in zip(self.kernel, self.dilations, strict=True))

    def of(self, x: Array, fill: Array) -> Array:
        """The elements under each window, with axes for batch, channels, positions of the window,
        and positions in it. Padding is `fill`.
        """
        rank = len(self.kernel)
        # A last window that begins inside may end beyond the padding.
        needed = [(count - 1) * stride + span for count, stride, span in zip(self.counts, self.strides, self.spans, strict=True)]
        sizes = [max(head + size + tail, need) for head, size, tail, need in zip(self.heads, x.shape[2:], self.tails, needed, strict=True)]
        padded = np.full((*x.shape[:2], *sizes), fill, x.dtype)
        padded[(..., *(slice(head, head + size) for head, size in zip(self.heads, x.shape[2:], strict=True)))] = x
        moved: Array = np.lib.stride_tricks.sliding_window_view(padded, self.spans, axis=tuple(range(2, 2 + rank)))
        chosen = [slice(None, (count - 1) * stride + 1, stride) for count, stride in zip(self.counts, self.strides, strict=True)]
        return moved[(slice(None), slice(None), *chosen, *(slice(None, None, dilation) for dilation in self.dilations))]


def windows(call: Call, spatial: tuple[int, ...], kernel: tuple[int, ...]) -> Windows:
    """The windows that the attributes of a convolution or pool describe over an image of the sizes
    `spatial`.
    """
    rank = len(spatial)
    strides = call.integers("strides") or (1,) * rank
    dilations = call.integers("dilations") or (1,) * rank
    pads = call.integers("pads") or (0,) * (2 * rank)
    mode = call.text("auto_pad", "NOTSET")
    if len(kernel) != rank or len(strides) != rank or len(dilations) != rank or len(pads) != 2 * rank:
        raise Illegal("a list of another length than there are spatial axes")
    if min((*kernel, *strides, *dilations), default=1) < 1 or min(pads, default=0) < 0:
        raise Illegal("a kernel, stride or dilation below 1, or padding below 0")
    heads, tails, counts = list(pads[:rank]), list(pads[rank:]), [0] * rank
    for axis, (size, length, stride, dilation) in enumerate(zip(spatial, kernel, strides, dilations, strict=True)):
        span = (length - 1) * dilation + 1
        if mode in SAME:
            counts[axis] = -(-size // stride)
            padding = max((counts[axis] - 1) * stride + span - size, 0)
            heads[axis] = (padding + (mode == "SAME_LOWER")) // 2
            tails[axis] = padding - heads[axis]
            continue
        if mode == "VALID":
            heads[axis] = tails[axis] = 0
        room = size + heads[axis] + tails[axis] - span
        counts[axis] = room // stride + 1
        if call.integer("ceil_mode") and room % stride and counts[axis] * stride < size + heads[axis]:
            counts[axis] += 1  # the last window must begin inside the image or its head padding
        if counts[axis] < 1:
            raise Illegal("a kernel larger than its padded image")
    return Windows(kernel, strides, dilations, tuple(heads), tuple(tails), tuple(counts))


def convolve(call: Call, x: Array, w: Array, bias: Array | None) -> Array:
    """A convolution with the attributes of `call`, in the type of `x`, which is that of `w`."""
    rank, group = x.ndim - 2, call.integer("group", 1)
    if rank < 1 or w.ndim != x.ndim or group < 1 or w.shape[1] * group != x.shape[1] or w.shape[0] % group:
        raise Illegal(f"Conv of {list(x.shape)} and {list(w.shape)} in {group} groups")
    kernel = call.integers("kernel_shape") or w.shape[2:]
    if kernel != w.shape[2:]:
        raise Illegal("kernel_shape is not that of the weights")
    places = windows(call, x.shape[2:], kernel)
    under = places.of(x, np.zeros((), x.dtype))
    batch, channels = x.shape[:2]
    # The axes of the terms come first: channels of a group, positions in the kernel. Then come
    # batch, group, filter of the group, positions of the window.
    under = under.reshape(batch, group, channels // group, *places.counts, *kernel)
    under = under.transpose(2, *range(3 + rank, 3 + 2 * rank), 0, 1, *range(3, 3 + rank))
    filters = w.reshape(group, w.shape[0] // group, channels // group, *kernel).transpose(2, *range(3, 3 + rank), 0, 1)
    sums = (batch, group, w.shape[0] // group, *places.counts)
    biased = bias is not None
    # The bias is the first term. The products go where `total` reads them, in its order.
    terms = np.empty((biased + prod(filters.shape[: rank + 1]), *sums), x.dtype)
    if bias is not None:
        terms[0] = bias.reshape(1, group, -1, *(1,) * rank)
    products = terms[biased:].reshape(*filters.shape[: rank + 1], *sums)
    np.multiply(under[(*(slice(None),) * (rank + 3), None)], filters[(*(slice(None),) * (rank + 1), None, ..., *(None,) * rank)], out=products)
    return total(terms).reshape(batch, w.shape[0], *places.counts)


def _convolution(call: Call) -> list[Array]:
    return [convolve(call, call.input(0), call.input(1), call.given(2))]


def _transposed(call: Call) -> list[Array]:
    x, w, bias = call.input(0), call.input(1), call.given(2)
    rank, group = x.ndim - 2, call.integer("group", 1)
    if rank < 1 or w.ndim != x.ndim or w.shape[0] != x.shape[1] or x.shape[1] % group:
        raise Illegal(f"ConvTranspose of {list(x.shape)} and {list(w.shape)} in {group} groups")
    kernel = w.shape[2:]
    if (call.integers("kernel_shape") or kernel) != kernel:
        raise Illegal("kernel_shape is not that of the weights")
    strides = call.integers("strides") or (1,) * rank
    dilations = call.integers("dilations") or (1,) * rank
    extra = call.integers("output_padding") or (0,) * rank
    spans = tuple((length - 1) * dilation + 1 for length, dilation in zip(kernel, dilations, strict=True))
    full = tuple((size - 1) * stride + span + more for size, stride, span, more in zip(x.shape[2:], strides, spans, extra, strict=True))
    heads, sizes = _cut(call, x.shape[2:], full, strides)
    batch, filters = x.shape[0], w.shape[1]
    grouped = np.moveaxis(x.reshape(batch, group, -1, 1, *x.shape[2:]), 2, 0)
    taps = w.reshape(group, -1, filters, *kernel)
    result = np.zeros((batch, group, filters, *full), x.dtype)
    if bias is not None:
        result += per_channel(bias, rank + 2).reshape(group, filters, *(1,) * rank)
    for place in itertools.product(*map(range, kernel)):
        tap = np.moveaxis(taps[(..., *place)], 1, 0)[(slice(None), None, ..., *(None,) * rank)]
        target = tuple(
            slice(offset * dilation, offset * dilation + (size - 1) * stride + 1, stride)
            for offset, dilation, size, stride in zip(place, dilations, x.shape[2:], strides, strict=True)
        )
        result[(..., *target)] += total(np.asarray(grouped * tap))
    result = result.reshape(batch, group * filters, *full)
    # An output_shape may extend beyond the reach of the kernel, where only the bias is added.
    beyond = [max(head + size - length, 0) for head, size, length in zip(heads, sizes, full, strict=True)]
    before = [max(-head, 0) for head in heads]
    if any(beyond) or any(before):
        filler = np.zeros((group * filters,), x.dtype) if bias is None else bias
        larger = np.broadcast_to(
            per_channel(filler, rank + 2), (batch, group * filters, *(a + b + c for a, b, c in zip(before, full, beyond, strict=True)))
        ).copy()
        larger[(..., *(slice(first, first + length) for first, length in zip(before, full, strict=True)))] = result
        result = larger
    return [result[(..., *(slice(head + first, head + first + size) for head, first, size in zip(heads, before, sizes, strict=True)))]]


def _cut(call: Call, spatial: tuple[int, ...], full: tuple[int, ...], strides: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The start of a ConvTranspose's result inside of the full result, and its sizes."""
    rank, mode = len(spatial), call.text("auto_pad", "NOTSET")
    output_shape = call.integers("output_shape")
    if output_shape is None and mode not in SAME:
        pads = (call.integers("pads") if mode == "NOTSET" else None) or (0,) * (2 * rank)
        sizes = tuple(length - head - tail for length, head, tail in zip(full, pads[:rank], pads[rank:], strict=True))
        if min(sizes) < 1:
            raise Illegal("ConvTranspose pads away all that there is")
        return pads[:rank], sizes
    wanted = tuple(size * stride for size, stride in zip(spatial, strides, strict=True)) if output_shape is None else output_shape[-rank:]
    surplus = [length - size for length, size in zip(full, wanted, strict=True)]
    if output_shape is None:
        surplus = [max(amount, 0) for amount in surplus]
        wanted = tuple(length - amount for length, amount in zip(full, surplus, strict=True))
    heads = tuple(amount // 2 if mode == "SAME_UPPER" else amount - amount // 2 for amount in surplus)
    return heads, wanted


KERNELS: dict[str, Kernel] = {"Conv": _convolution, "ConvTranspose": _transposed}
