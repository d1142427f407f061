"""Changes between versions of pools, samplers and Resize, as in `conversions`."""

from __future__ import annotations

from onnx import TensorProto

from eqsat.terms.forms import Draft, floats


def ceil_mode(draft: Draft) -> bool:
    """A window that begins after the image and its head padding counted.

    The meaning is the same if the strides leave no room for such a window.
    """
    if draft.integer("ceil_mode", 0) == 0:
        return True
    kernel = draft.node.integers("kernel_shape")
    if kernel is None or draft.node.text("auto_pad", "NOTSET") != "NOTSET":
        return False
    rank = len(kernel)
    strides, dilations = draft.node.integers("strides") or (1,) * rank, draft.node.integers("dilations") or (1,) * rank
    tails = (draft.node.integers("pads") or (0,) * 2 * rank)[rank:]
    rows = zip(kernel, strides, dilations, tails, strict=False)
    return all(tail + stride <= (length - 1) * dilation + 1 for length, stride, dilation, tail in rows)


def stated_pads(draft: Draft) -> bool:
    """ConvTranspose split an odd automatic padding the other way."""
    return not draft.node.text("auto_pad", "NOTSET").startswith("SAME") and "output_shape" not in draft.attributes


def norm_up(draft: Draft) -> bool:
    """The p of a norm was a float."""
    p = draft.attributes.get("p", 2.0)
    if not isinstance(p, float) or not p.is_integer():
        return False
    draft.attributes["p"] = int(p)
    return True


def norm_down(draft: Draft) -> bool:
    """As `norm_up`."""
    draft.attributes["p"] = float(draft.integer("p", 2))
    return True


_SAMPLING = {b"bilinear": b"linear", b"bicubic": b"cubic", b"nearest": b"nearest"}


def sampled_up(draft: Draft) -> bool:
    """GridSample's modes had the names of two dimensions, such as "bilinear"."""
    mode = draft.attributes.get("mode")
    found = _SAMPLING.get(mode) if isinstance(mode, bytes) else None
    draft.attributes["mode"] = found or b""
    return found is not None


def sampled_down(draft: Draft) -> bool:
    """As `sampled_up`; the grid had two dimensions."""
    modes = {new: old for old, new in _SAMPLING.items()}
    mode = draft.attributes.get("mode")
    found = modes.get(mode) if isinstance(mode, bytes) else None
    draft.attributes["mode"] = found or b""
    return found is not None and draft.rank(0) == 4


def scales_up(draft: Draft) -> bool:
    """Upsample's scales were an attribute."""
    scales = draft.attributes.pop("scales", None)
    if not isinstance(scales, tuple):
        return False
    draft.put(1, floats(TensorProto.FLOAT, (len(scales),), [float(scale) for scale in scales]))
    return True


def scales_down(draft: Draft) -> bool:
    """As `scales_up`."""
    scales = draft.reals(1)
    draft.put(1, None)
    draft.attributes["scales"] = scales or ()
    return scales is not None


def resized_up(draft: Draft) -> bool:
    """Only examples defined Upsample's sampling.

    They cover nearest elements, each repeated a whole number of times.
    """
    if draft.attributes.get("mode") != b"nearest" or not _repeats(draft, 1):
        return False
    draft.attributes |= {"coordinate_transformation_mode": b"asymmetric", "nearest_mode": b"floor"}
    draft.inputs = [draft.inputs[0], None, draft.inputs[1]]
    return True


def resized_down(draft: Draft) -> bool:
    """As `resized_up`."""
    found = draft.attributes.pop("coordinate_transformation_mode", None), draft.attributes.pop("nearest_mode", None), draft.attributes.get("mode")
    if found != (b"asymmetric", b"floor", b"nearest") or len(draft.inputs) != 3 or not _repeats(draft, 2):
        return False
    draft.inputs = [draft.inputs[0], draft.inputs[2]]
    return True


def _repeats(draft: Draft, position: int) -> bool:
    scales = draft.reals(position)
    return scales is not None and all(scale >= 1 and scale.is_integer() for scale in scales)


def regions_up(draft: Draft) -> bool:
    """Resize's regions and scales were required inputs, empty if unused."""
    if draft.attributes.get("coordinate_transformation_mode") == b"tf_half_pixel_for_nn":
        return False
    if draft.fact(3) is not None:
        draft.put(2, None)
    return True


def regions_down(draft: Draft) -> bool:
    """As `regions_up`."""
    for position in (1, 2):
        if draft.fact(position) is None:
            draft.put(position, floats(TensorProto.FLOAT, (0,), ()))
    return True
