"""The layout in blocks of channels: prices of nodes between Convs that a runtime runs in it.

ONNX Runtime converts images when the first Conv reads them, and back where a node cannot read blocks.
Extraction prices one node at a time, so a node that breaks the layout pays for both conversions here.
The graph that the runtime made tells its own conversions, and is priced without this.
"""

from __future__ import annotations

from dataclasses import replace

from eqsat.cost.price import BLOCKED_DOMAIN, Price, blocks, price
from eqsat.cost.shaped import PricedNode, Shaped
from eqsat.cost.target import Blocked, Target
from eqsat.cost.workload import text

# Operators that combine elements of two images in blocks if these have one size.
_BINARY = frozenset({"Add", "Mul"})
# Operators with a kernel for images in blocks, and its name.
_IN_BLOCKS = {name: name for name in ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool")} | {"Resize": "Upsample"}


def between_convs(node: PricedNode, target: Target) -> Price:
    """Returns the price of a node in a graph whose Convs run in blocks.

    Only the nodes that have a form in blocks and one without differ from their usual price: pools and
    reductions, enlargements of images, and products and sums of images with other operands.
    """
    layout = target.blocked
    if layout is None or node.domain or not node.inputs or len(node.outputs) != 1:
        return price(node, target)
    source, made = node.inputs[0], node.outputs[0]
    if node.name in _IN_BLOCKS and _is_image(source, layout) and _is_image(made, layout) and (node.name != "Resize" or _copies_pixels(node)):
        return price(replace(node, domain=BLOCKED_DOMAIN, name=_IN_BLOCKS[node.name]), target)
    images = [tensor for tensor in (*node.inputs, made) if _is_image(tensor, layout) and not tensor.constant]
    if not images or not (node.name.startswith("Reduce") or _is_uneven(node)):
        return price(node, target)
    found = price(node, target)
    conversions = [price(PricedNode(BLOCKED_DOMAIN, "ReorderOutput", {}, [image], [image]), target) for image in images]
    return replace(
        found,
        seconds=found.seconds + sum(one.seconds for one in conversions),
        launches=found.launches + sum(one.launches for one in conversions),
        bytes=found.bytes + sum(one.bytes for one in conversions),
    )


def is_blocked(node: PricedNode, target: Target) -> bool:
    """Tells whether a node is a Conv that the runtime converts to the layout in blocks."""
    return node.key == "Conv" and target.blocked is not None and blocks(node, target.blocked)


def _is_image(tensor: Shaped | None, layout: Blocked) -> bool:
    """Tells whether a tensor holds images whose channels fill whole blocks."""
    return tensor is not None and tensor.dtype in layout.dtypes and tensor.shape is not None and len(tensor.shape) == 4 and tensor.shape[1] % layout.block == 0


def _is_uneven(node: PricedNode) -> bool:
    """Tells whether a node combines elements of operands with different shapes, none of which is constant."""
    operands = [tensor for tensor in node.inputs if tensor is not None]
    return node.name in _BINARY and len({tensor.shape for tensor in operands}) > 1 and not any(tensor.constant for tensor in operands)


def _copies_pixels(node: PricedNode) -> bool:
    """Tells whether a Resize repeats each pixel of its image a whole number of times."""
    wanted = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return all(text(node, name, "") == value for name, value in wanted.items())
