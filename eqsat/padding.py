"""One spelling for windows: pads written out instead of rules that find them, and no kernel shape that the weights tell.

Comes in: a `Draft` of a node of the newest opset that moves a window. Goes out: the same draft with explicit pads where
all sizes are numbers; else it stays as it is. Promised: the windows are those that they were. Strides that are longer
than the kernel may ask for less than no padding: what that is runtimes do not agree on, so such nodes stay as they are.
"""

from __future__ import annotations

from eqsat.forms import Draft
from eqsat.nodes import Shape


def convolution(draft: Draft, weight: int = 1) -> None:
    """Conv and its kin, their weights at the input `weight`."""
    _explicit(draft, _kernel(draft, weight))
    _imply_kernel(draft, weight)


def quantized_convolution(draft: Draft) -> None:
    """QLinearConv, whose weights come fourth."""
    convolution(draft, 3)


def pool(draft: Draft) -> None:
    """Pools, which state their kernels."""
    if draft.integer("ceil_mode", 0) == 0:
        _explicit(draft, draft.node.integers("kernel_shape"))


def transposed_convolution(draft: Draft) -> None:
    """ConvTranspose: pads follow from the size of the output."""
    _imply_kernel(draft, 1)
    mode, wanted = draft.node.text("auto_pad", "NOTSET"), draft.node.integers("output_shape")
    if wanted is None and (mode == "NOTSET" or "pads" in draft.attributes):
        return
    if wanted is None and mode == "VALID":
        draft.attributes["auto_pad"] = b"NOTSET"
        return
    kernel, data = _kernel(draft, 1), _numbers((draft.shape(0) or ())[2:])
    if kernel is None or data is None or len(kernel) != len(data) or any(draft.node.integers("output_padding") or ()):
        return
    strides, dilations = _steps(draft, len(data))
    sizes = wanted or tuple(size * stride for size, stride in zip(data, strides, strict=True))
    if len(sizes) == len(data):
        rows = zip(data, kernel, strides, dilations, sizes, strict=True)
        _state(draft, [stride * (size - 1) + (length - 1) * dilation + 1 - out for size, length, stride, dilation, out in rows], mode != "SAME_UPPER")


def _steps(draft: Draft, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return draft.node.integers("strides") or (1,) * rank, draft.node.integers("dilations") or (1,) * rank


def _kernel(draft: Draft, weight: int) -> tuple[int, ...] | None:
    return draft.node.integers("kernel_shape") or _numbers((draft.shape(weight) or ())[2:])


def _numbers(sizes: Shape) -> tuple[int, ...] | None:
    known = tuple(size for size in sizes if isinstance(size, int))
    return known if known and len(known) == len(sizes) else None


def _imply_kernel(draft: Draft, weight: int) -> None:
    if (draft.shape(weight) or ())[2:] == draft.node.integers("kernel_shape"):
        draft.attributes.pop("kernel_shape", None)


def _explicit(draft: Draft, kernel: tuple[int, ...] | None) -> None:
    mode = draft.node.text("auto_pad", "NOTSET")
    if "pads" in draft.attributes:
        return  # together with a rule that finds them they are not legal
    if mode == "VALID":
        draft.attributes["auto_pad"] = b"NOTSET"
        return
    data = _numbers((draft.shape(0) or ())[2:])
    if mode not in ("SAME_UPPER", "SAME_LOWER") or data is None or kernel is None or len(kernel) != len(data):
        return
    strides, dilations = _steps(draft, len(data))
    # Whether the room between a kernel's elements counts is not said for all operators.
    if all(dilation == 1 for dilation in dilations):
        rows = zip(data, kernel, strides, strict=True)
        _state(draft, [(-(-size // stride) - 1) * stride + length - size for size, length, stride in rows], mode == "SAME_LOWER")


def _state(draft: Draft, totals: list[int], more_at_head: bool) -> None:
    if min(totals) < 0:
        return
    heads = [(total + more_at_head) // 2 for total in totals]
    draft.attributes["pads"] = (*heads, *(total - head for total, head in zip(totals, heads, strict=True)))
    draft.attributes["auto_pad"] = b"NOTSET"
    draft.attributes.pop("output_shape", None)
