"""The normal form of windows: explicit pads instead of `auto_pad`, no derivable kernel shape.

Each function rewrites a `Draft` of a windowed operator if all sizes are numbers. The windows stay
the same. A node stays as it is where a stride is longer than the kernel: SAME may then require
negative padding, and runtimes disagree on it.
"""

from __future__ import annotations

from eqsat.facts.node import Shape
from eqsat.terms.forms import Draft


def convolution(draft: Draft, weight: int = 1) -> None:
    """Conv and its variants; `weight` is the position of the weights."""
    _explicit(draft, _kernel(draft, weight))
    _imply_kernel(draft, weight)


def quantized_convolution(draft: Draft) -> None:
    """QLinearConv, whose weights are the fourth input."""
    convolution(draft, 3)


def pool(draft: Draft) -> None:
    """Pools, whose kernel shape is an attribute."""
    if draft.integer("ceil_mode", 0) == 0:
        _explicit(draft, draft.node.integers("kernel_shape"))


def transposed_convolution(draft: Draft) -> None:
    """ConvTranspose: the output size determines the pads."""
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
        _set_pads(draft, [stride * (size - 1) + (length - 1) * dilation + 1 - out for size, length, stride, dilation, out in rows], mode != "SAME_UPPER")


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
        return  # explicit pads are illegal together with auto_pad
    if mode == "VALID":
        draft.attributes["auto_pad"] = b"NOTSET"
        return
    data = _numbers((draft.shape(0) or ())[2:])
    if mode not in ("SAME_UPPER", "SAME_LOWER") or data is None or kernel is None or len(kernel) != len(data):
        return
    strides, dilations = _steps(draft, len(data))
    # Not all texts say whether dilation enlarges the kernel here.
    if all(dilation == 1 for dilation in dilations):
        rows = zip(data, kernel, strides, strict=True)
        _set_pads(draft, [(-(-size // stride) - 1) * stride + length - size for size, length, stride in rows], mode == "SAME_LOWER")


def _set_pads(draft: Draft, totals: list[int], more_at_head: bool) -> None:
    if min(totals) < 0:
        return
    heads = [(total + more_at_head) // 2 for total in totals]
    draft.attributes["pads"] = (*heads, *(total - head for total, head in zip(totals, heads, strict=True)))
    draft.attributes["auto_pad"] = b"NOTSET"
    draft.attributes.pop("output_shape", None)
