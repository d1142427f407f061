"""Output shapes of operators that keep the elements and change their layout."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from eqsat.facts.dims import Dim, Poly, add, bounds, exact_divide, floordiv, minimum, mul, nonnegative, product, sub
from eqsat.facts.node import Node, Shape, broadcast


def reshape(node: Node) -> list[Shape] | None:
    """Reshape: each size is given, copied from the input (0) or inferred (-1)."""
    data, wanted = node.shape(0), node.parameter("shape", 1)
    if wanted is None:
        return None
    if data is None:
        return [tuple(size if isinstance(size, int) and size > 0 else None for size in wanted)]
    zero_copies = node.integer("allowzero", 0) == 0
    doubtful = [axis for axis, size in enumerate(wanted) if zero_copies and axis < len(data) and _may_copy(size, axis, data, wanted)]
    if len(doubtful) == 1:
        return [_either(doubtful[0], data, wanted)]
    sizes: list[Dim] = []
    # Input sizes that appear in the output too cancel when a -1 is inferred.
    remaining = Counter(data)
    divisors: list[Dim] = []
    for axis, size in enumerate(wanted):
        if size == 0 and zero_copies:
            if axis >= len(data):
                return None
            size = data[axis]
            sizes.append(size)
        elif size == -1:
            sizes.append(-1)
            continue
        elif isinstance(size, Poly) and not (nonnegative(size) and (not zero_copies or _right_at_zero(size, axis, data, wanted))):
            size = None  # a symbolic size may be 0 or -1, which have other meanings
            sizes.append(size)
        else:
            sizes.append(size)
        if size is not None and remaining[size]:
            remaining[size] -= 1
        elif size is None and wanted[axis] == 0 and remaining[None]:
            remaining[None] -= 1  # a copied size cancels, even if unknown
        else:
            divisors.append(size)
    if -1 not in sizes:
        return [tuple(sizes)]
    inferred = floordiv(product(remaining.elements()), product(divisors))
    if not zero_copies and not _right_beside_zero(sizes, list(remaining.elements()), divisors):
        inferred = None
    return [tuple(inferred if size == -1 else size for size in sizes)]


def _right_beside_zero(sizes: Sequence[Dim], remaining: Sequence[Dim], divisors: Sequence[Dim]) -> bool:
    """Tell whether a -1 is inferred as the quotient where a size beside it is 0, with `allowzero`.

    ONNX forbids such a 0. ONNX Runtime accepts it, and infers the -1 from the nonzero sizes. If no
    divisor is 0, that is the quotient, unless two sizes of the input are 0 at once. We assume, and
    document, that a named size beside a -1 does not bring that about.
    """
    if all(map(_positive, (*remaining, *divisors))) or all(_positive(size) for size in sizes if size != -1):
        return True
    return 0 not in sizes and all(map(_positive, divisors))


def _may_copy(size: Dim, axis: int, data: Shape, wanted: Shape) -> bool:
    """Tell whether a symbolic size would copy another size where it is 0."""
    return isinstance(size, Poly) and nonnegative(size) and not _right_at_zero(size, axis, data, wanted)


def _either(axis: int, data: Shape, wanted: Shape) -> Shape:
    """Return the sizes where one of the given ones copies a size of the input if it is 0.

    The size is the given one or the copied one: S + C * (1 - min(S, 1)). A -1 is inferred as Q from
    the given size, and 0 from a copied one: the elements are a multiple of the given size, so there
    are none.
    """
    given = wanted[axis]
    nonzero = minimum(given, 1)
    sizes = list(wanted)
    sizes[axis] = add(given, mul(data[axis], sub(1, nonzero)))
    for place, size in enumerate(wanted):
        if size == 0:
            sizes[place] = data[place] if place < len(data) else None
        elif isinstance(size, Poly) and not nonnegative(size):
            sizes[place] = None
    if -1 in wanted:
        place = wanted.index(-1)
        others = product(given if other == axis else size for other, size in enumerate(sizes) if other != place)
        sizes[place] = mul(exact_divide(product(data), others), nonzero)
    return tuple(sizes)


def _positive(size: Dim) -> bool:
    """Tell whether a size is positive for all values of its names."""
    return size is not None and (bounds(size)[0] or 0) > 0


def _right_at_zero(size: Poly, axis: int, data: Shape, wanted: Shape) -> bool:
    """Tell whether a symbolic size stays correct where it is 0, which copies an input size.

    It stays correct if it copies a 0, or if the node fails.
    """
    lower, _ = bounds(size)
    if lower is not None and lower > 0:
        return True
    common = math.gcd(*(coefficient for _, coefficient in size))
    part = exact_divide(size, common)  # is 0 where `size` is 0
    if axis >= len(data) or data[axis] == 0 or exact_divide(data[axis], part) is not None:
        return True
    total = product(data)
    if total is not None and total == product(wanted):
        # The sizes multiply to the number of elements for all names. So a 0 copies a nonzero size
        # only where a second size is 0 too, and the tensor is empty either way. We assume, and
        # document, that the tensor then has the requested sizes.
        return True
    others = [other for position, other in enumerate(wanted) if position != axis]
    if -1 in others and all(other != 0 for other in others) and exact_divide(total, product(other for other in wanted if other != -1)) is not None:
        # The same holds of sizes beside a -1 that divide the number of elements for all names.
        return True
    # A copied nonzero size asks for elements that the empty input lacks. The node fails if all
    # other sizes are positive.
    return exact_divide(total, part) is not None and all(isinstance(other, int) and other > 0 for other in others)


def flatten(node: Node) -> list[Shape] | None:
    """Flatten: two sizes."""
    shape = node.shape(0)
    if shape is None:
        return None
    split = node.integer("axis", 1)
    if not -len(shape) <= split <= len(shape):
        return None
    split += len(shape) if split < 0 else 0
    return [(product(shape[:split]), product(shape[split:]))]


def expand(node: Node) -> list[Shape] | None:
    """Expand: the input broadcast to the given sizes."""
    shape, wanted = node.shape(0), node.parameter("shape", 1)
    return None if shape is None or wanted is None else [broadcast(shape, wanted)]


def squeeze(node: Node) -> list[Shape] | None:
    """Squeeze: known if the axes are given or all sizes are numbers."""
    shape = node.shape(0)
    if shape is None:
        return None
    if not node.given("axes", 1):
        return [tuple(dim for dim in shape if dim != 1)] if all(isinstance(dim, int) for dim in shape) else None
    axes = node.axes(len(shape), 1)
    return None if axes is None else [tuple(dim for axis, dim in enumerate(shape) if axis not in axes)]


def unsqueeze(node: Node) -> list[Shape] | None:
    """Unsqueeze."""
    shape, added = node.shape(0), node.parameter("axes", 1)
    if shape is None or added is None:
        return None
    axes = node.axes(len(shape) + len(added), 1)
    if axes is None or len(set(axes)) != len(axes):
        return None
    rest = iter(shape)
    return [tuple(1 if axis in axes else next(rest) for axis in range(len(shape) + len(axes)))]


def transpose(node: Node) -> list[Shape] | None:
    """Transpose."""
    shape = node.shape(0)
    if shape is None:
        return None
    order = node.integers("perm") or tuple(reversed(range(len(shape))))
    return [tuple(shape[axis] for axis in order)] if sorted(order) == list(range(len(shape))) else None


def depth_to_space(node: Node) -> list[Shape] | None:
    """DepthToSpace."""
    shape, block = node.shape(0), node.integer("blocksize", 0)
    if shape is None or len(shape) != 4 or block < 1:
        return None
    return [(shape[0], floordiv(shape[1], block * block), mul(shape[2], block), mul(shape[3], block))]


def space_to_depth(node: Node) -> list[Shape] | None:
    """SpaceToDepth."""
    shape, block = node.shape(0), node.integer("blocksize", 0)
    if shape is None or len(shape) != 4 or block < 1:
        return None
    return [(shape[0], mul(shape[1], block * block), floordiv(shape[2], block), floordiv(shape[3], block))]
