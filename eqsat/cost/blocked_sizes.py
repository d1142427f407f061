"""The sizes of what the operators of ONNX Runtime's blocked layout compute.

The channels that the runtime adds to fill up a block do not count, where only it can tell them: the
size of a block depends on the processor.
"""

from __future__ import annotations

from eqsat.facts.dims import mul
from eqsat.facts.node import Node, Shape
from eqsat.facts.shapes import SHAPES

_BLOCKED = "com.microsoft.nchwc"
_ALIKE = {f"{_BLOCKED}.{name}": name for name in ("AveragePool", "Conv", "GlobalAveragePool", "GlobalMaxPool", "MaxPool")}
"""The operators of the standard that have the same sizes."""


def blocked_shape(node: Node) -> Shape | None:
    """Returns the shape of the first result of a node of the blocked layout, if it is known."""
    name, data = node.operator.full_name, node.shape(0)
    if name in _ALIKE:
        shapes = SHAPES[_ALIKE[name]](node)
        return shapes[0] if shapes else None
    if data is None or len(data) < 3:
        return None
    last = node.integer("channels_last", 0)
    match name.removeprefix(f"{_BLOCKED}."):
        case "ReorderInput":
            return (data[0], data[-1], *data[1:-1]) if last else data
        case "ReorderOutput":
            channels = node.integer("channels", 0)
            return (data[0], *data[2:], channels) if last else (data[0], channels, *data[2:])
        case "Upsample":
            scales = node.integers("scales")
            return tuple(mul(size, scale) for size, scale in zip(data, scales, strict=True)) if scales and len(scales) == len(data) else None
        case _:
            return None
