"""The layout in blocks of channels: prices of nodes between Convs that a runtime runs in it.

ONNX Runtime converts images when the first Conv reads them, and back where a node cannot read blocks.
Extraction prices one node at a time, so a node that breaks the layout pays for both conversions here.
The graph that the runtime made tells its own conversions, and is priced without this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeGuard

from eqsat.cost.price import BLOCKED_DOMAIN, Price, blocks, price
from eqsat.cost.shaped import PricedNode, Shaped
from eqsat.cost.sliding import growth, repeats
from eqsat.cost.target import Blocked, Target
from eqsat.cost.workload import integer, integers, text

# Operators that combine elements of two images in blocks if these have one size.
_BINARY = frozenset({"Add", "Mul"})
# Operators with a kernel for images in blocks, and its name.
_IN_BLOCKS = {name: name for name in ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool")} | {"Resize": "Upsample"}
# Those of them that the runtime converts wherever they are.
_ALWAYS = frozenset({"AveragePool", "MaxPool"})
# Coordinates of linear interpolation in blocks.
_LINEAR = frozenset({"align_corners", "asymmetric", "half_pixel"})
# Transposes that the runtime makes part of a conversion.
_CONVERTS: Mapping[tuple[int, ...], str] = {(0, 2, 3, 1): "ReorderOutput", (0, 3, 1, 2): "ReorderInput"}


def beside_convs(node: PricedNode, target: Target) -> Price:
    """Returns the price of a node in a graph whose products may become Convs in blocks: a Transpose that
    moves the channels of an image of one column is a conversion. Elsewhere attention moves axes in this
    way, too. A pool runs in blocks, but what it reads may be in blocks or not. A Conv of few channels
    fills up a block.
    """
    layout = target.blocked
    if layout is None or node.domain or not node.inputs or not node.outputs:
        return price(node, target)
    source, made = node.inputs[0], node.outputs[0]
    if node.name in _ALWAYS and _is_image(source, layout) and _is_image(made, layout):
        return price(_in_blocks(node), target)
    conversion = _CONVERTS.get(integers(node, "perm") or ()) if node.name == "Transpose" else None
    image = source if conversion == "ReorderOutput" else made
    if conversion is not None and _is_image(image, layout, layout.multiple) and image.shape is not None and image.shape[3] == 1:
        return _conversion(conversion, image, target)
    found = price(node, target)
    return replace(found, seconds=found.seconds + _filling(made, layout, target)) if node.name == "Conv" and blocks(node, layout) else found


def between_convs(node: PricedNode, target: Target) -> Price:
    """Returns the price of a node in a graph whose Convs run in blocks.

    Only nodes that have a form in blocks and one without differ from their usual price: pools, images that
    are enlarged, those of gates (reductions of all pixels and the products), and Convs over images of a
    single row, whose neighbors seldom run in blocks. Elsewhere it takes more than one node to tell
    whether an image is in blocks.
    """
    layout = target.blocked
    if layout is None or node.domain or not node.inputs or not node.outputs:
        return price(node, target)
    source, made = node.inputs[0], node.outputs[0]
    if node.name in _IN_BLOCKS and _is_image(source, layout) and _is_image(made, layout) and (node.name != "Resize" or _enlarges(node)):
        return price(_in_blocks(node), target)
    found = beside_convs(node, target)
    before, after = "ReorderOutput", "ReorderInput"
    if _has_one_row(node, layout):
        before, after = after, before
    elif not (_reduces_pixels(node) or _is_gated(node)):
        return found
    conversions = [_conversion(before, image, target) for image in node.inputs if _is_image(image, layout)]
    conversions += [_conversion(after, made, target)] if _is_image(made, layout) else []
    return replace(
        found,
        seconds=found.seconds + sum(one.seconds for one in conversions),
        launches=found.launches + sum(one.launches for one in conversions),
        bytes=found.bytes + sum(one.bytes for one in conversions),
    )


def _filling(made: Shaped | None, layout: Blocked, target: Target) -> float:
    """Returns the seconds for the channels that fill up the last block of an image, where it is converted back."""
    if made is None or not _is_image(made, layout, 1) or made.shape is None or made.shape[1] % layout.block == 0:
        return 0.0
    channels = -(-made.shape[1] // layout.block) * layout.block
    whole = replace(made, shape=(made.shape[0], channels, *made.shape[2:]))
    return _conversion("ReorderOutput", whole, target).seconds - _conversion("ReorderOutput", made, target).seconds


def _in_blocks(node: PricedNode) -> PricedNode:
    return replace(node, domain=BLOCKED_DOMAIN, name=_IN_BLOCKS[node.name])


def _conversion(name: str, image: Shaped, target: Target) -> Price:
    return price(PricedNode(BLOCKED_DOMAIN, name, {}, [image], [image]), target)


def _is_image(tensor: Shaped | None, layout: Blocked, filled: int | None = None) -> TypeGuard[Shaped]:
    """Tells whether a tensor holds images whose channels fill whole blocks, or are a multiple of `filled`."""
    if tensor is None or tensor.constant or tensor.shape is None or len(tensor.shape) != 4:
        return False
    return tensor.dtype in layout.dtypes and tensor.shape[1] % (filled or layout.block) == 0


def _is_gated(node: PricedNode) -> bool:
    """Tells whether a node combines the pixels of images with one computed number for each channel."""
    shapes = [tensor.shape for tensor in node.inputs if tensor is not None and not tensor.constant and tensor.shape is not None]
    return node.name in _BINARY and len(shapes) == 2 and sum(shape[2:] == (1, 1) for shape in shapes) == 1


def over_images(tensor: Shaped | None) -> Shaped | None:
    """Returns rows of channels, or filters of such, as images of a single row; others as they are."""
    if tensor is None or tensor.shape is None or len(tensor.shape) != 3:
        return tensor
    return replace(tensor, shape=(*tensor.shape[:2], 1, *tensor.shape[2:]))


def _has_one_row(node: PricedNode, layout: Blocked) -> bool:
    """Tells whether a node is a Conv that runs in blocks over images of a single row."""
    made = node.outputs[0]
    return node.name == "Conv" and made is not None and made.shape is not None and made.shape[2:3] == (1,) and made.shape[3:] != (1,) and blocks(node, layout)


def _reduces_pixels(node: PricedNode) -> bool:
    """Tells whether a node reduces images to one number for each channel."""
    made = node.outputs[0]
    return node.name.startswith("Reduce") and made is not None and made.shape is not None and made.shape[2:] in ((), (1, 1)) and len(made.shape) > 1


def _enlarges(node: PricedNode) -> bool:
    """Tells whether a Resize enlarges images in a way for which there is a kernel in blocks."""
    if growth(node) is None:
        return False
    coordinates = text(node, "coordinate_transformation_mode", "half_pixel")
    return repeats(node) or (text(node, "mode", "nearest") == "linear" and coordinates in _LINEAR and not integer(node, "antialias", 0))
