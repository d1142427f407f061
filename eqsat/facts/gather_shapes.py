"""Output shapes of operators that gather, scatter or select elements."""

from __future__ import annotations

from eqsat.facts.dims import Dim
from eqsat.facts.node import Node, Shape, alike, float_number


def gather(node: Node) -> list[Shape] | None:
    """Gather: the axis is replaced by the axes of the indices."""
    data, indices = node.shape(0), node.shape(1)
    axis = None if data is None else node.axis(len(data), 0)
    return None if data is None or indices is None or axis is None else [(*data[:axis], *indices, *data[axis + 1 :])]


def top_k(node: Node) -> list[Shape] | None:
    """TopK: values and indices have one shape."""
    shape = node.shape(0)
    axis = None if shape is None else node.axis(len(shape), -1)
    if shape is None or axis is None:
        return None
    given, elements = node.attributes.get("k"), node.ints(1)
    count = given if isinstance(given, int) else elements[0] if elements is not None and len(elements) == 1 else None
    return [(*shape[:axis], count, *shape[axis + 1 :])] * 2


def one_hot(node: Node) -> list[Shape] | None:
    """OneHot: the shape of the indices, with the new axis inserted."""
    indices = node.shape(0)
    axis = None if indices is None else node.axis(len(indices) + 1, -1)
    if indices is None or axis is None:
        return None
    return [(*indices[:axis], _depth(node), *indices[axis:])]


def _depth(node: Node) -> Dim:
    elements, number = node.ints(1), float_number(node.fact(1))
    if elements is not None and len(elements) == 1:
        return elements[0]
    return int(number) if number is not None and float(number).is_integer() else None


def non_zero(node: Node) -> list[Shape] | None:
    """NonZero: one column per nonzero element; their number is unknown."""
    shape = node.shape(0)
    # For a scalar, ONNX gives indices without coordinates; runtimes give one coordinate.
    return [(len(shape) if shape else None, None)]


def gather_elements(node: Node) -> list[Shape] | None:
    """GatherElements: the shape of the indices."""
    indices = node.shape(1)
    return None if indices is None else [indices]


def gather_nd(node: Node) -> list[Shape] | None:
    """GatherND: one slice of the data per index."""
    data, indices = node.shape(0), node.shape(1)
    depth = indices[-1] if indices else None
    if data is None or not indices or not isinstance(depth, int):
        return None
    return [(*indices[:-1], *data[node.integer("batch_dims", 0) + depth :])]


def compress(node: Node) -> list[Shape] | None:
    """Compress: the number of kept elements is unknown."""
    return _chosen(node)


def unique(node: Node) -> list[Shape] | None:
    """Unique: the distinct elements, and as many indices and counts; their number is unknown."""
    found = _chosen(node)
    return None if found is None else [*found, *[(None,)] * 3]


def _chosen(node: Node) -> list[Shape] | None:
    if "axis" not in node.attributes:
        return [(None,)]
    shape = node.shape(0)
    axis = None if shape is None else node.axis(len(shape), 0)
    return None if shape is None or axis is None else [(*shape[:axis], None, *shape[axis + 1 :])]


def suppressed(node: Node) -> list[Shape] | None:
    """NonMaxSuppression: three numbers for each selected box."""
    return [(None, 3)]


def grid_sample(node: Node) -> list[Shape] | None:
    """GridSample: batch and channels of the image, spatial sizes of the grid."""
    image, grid = node.shape(0), node.shape(1)
    if image is None or grid is None or len(image) != len(grid) or len(image) < 3:
        return None
    return [(alike(image[0], grid[0]), image[1], *grid[1:-1])]


def roi_align(node: Node) -> list[Shape] | None:
    """RoiAlign: the regions, the channels, and the output sizes in the attributes."""
    return _regions(node, (node.integer("output_height", 1), node.integer("output_width", 1)))


def roi_pool(node: Node) -> list[Shape] | None:
    """MaxRoiPool: the regions, the channels, and the output sizes in the attributes."""
    return _regions(node, node.integers("pooled_shape") or ())


def _regions(node: Node, sizes: tuple[Dim, ...]) -> list[Shape] | None:
    image, regions = node.shape(0), node.shape(1)
    return None if image is None or regions is None or len(image) != 4 or not regions or len(sizes) != 2 else [(regions[0], image[1], *sizes)]
