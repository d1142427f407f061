"""Names of dimensions: which texts name a size, and the names of sizes without one.

Equal names are equal sizes. Exporters write texts that name none, such as "?" for each size that they do
not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_NAMELESS = frozenset({"", "?", "None", "-1"})


def own_name(prefix: str, axis: int) -> str:
    """Makes up a name for the size of an axis that the model does not name."""
    return f"?{prefix}.{axis}"


def is_own(name: str) -> bool:
    """Tells whether `own_name` made a name. Such a name in a model is not kept."""
    return name.startswith("?")


def free_name(dimension: onnx.TensorShapeProto.Dimension, prefix: str, axis: int) -> str:
    """Returns the name of a size, or the one made up for it; "" for a number. Some exporters write -1 for a
    size that is unknown.
    """
    if dimension.HasField("dim_value") and dimension.dim_value >= 0:
        return ""
    text = dimension.dim_param
    return own_name(prefix, axis) if text in _NAMELESS or is_own(text) else text


def sizes_of(tensor: onnx.TypeProto.Tensor, prefix: str) -> tuple[int | str, ...]:
    """Returns the sizes of a tensor, whose rank is known: numbers, and names as `free_name` returns them."""
    return tuple(free_name(size, prefix, axis) or size.dim_value for axis, size in enumerate(tensor.shape.dim))
