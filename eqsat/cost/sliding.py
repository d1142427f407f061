"""Counters of windows that slide over images: convolutions, pools, resizing and sampling."""

from __future__ import annotations

from eqsat.cost.shaped import USUAL_SIZE, PricedNode
from eqsat.cost.workload import (
    Counter,
    Shape,
    Work,
    at,
    constant_elements,
    element_size,
    integer,
    integers,
    largest,
    moved,
    result,
    shape_at,
    size_of,
    text,
    traffic,
)

_STEPS = 3  # elements between the windows of a pool from which ONNX Runtime has no vectors
_APART = 2.5  # the time to copy an element that does not follow the one before it, relative to one that does
_STARTS = 40.0  # runs of elements that are copied in the time in which the product of a channel begins
_ONE_PLACE = 4.0  # columns for which a product takes so long as one with a vector does
_DEEP = 1.5  # the time of a window over three axes, relative to one of as many elements over two
_COORDINATES = 12.0  # operations to find the place of one sample


def window_output(node: PricedNode, source: Shape, kernel: Shape) -> Shape:
    """Returns the spatial sizes of the output of a Conv or a pool, by its attributes."""
    rank = len(source)
    strides = integers(node, "strides") or (1,) * rank
    dilations = integers(node, "dilations") or (1,) * rank
    pads = integers(node, "pads") or (0,) * (2 * rank)
    automatic = text(node, "auto_pad", "NOTSET")
    round_up = integer(node, "ceil_mode", 0) != 0
    sizes: list[int] = []
    for axis, size in enumerate(source):
        stride = max(strides[axis], 1) if axis < len(strides) else 1
        reach = (kernel[axis] - 1) * (dilations[axis] if axis < len(dilations) else 1) + 1 if axis < len(kernel) else 1
        if automatic.startswith("SAME"):
            sizes.append(-(-size // stride))
            continue
        padded = size
        if automatic != "VALID" and len(pads) == 2 * rank:
            padded += pads[axis] + pads[axis + rank]
        steps = max(padded - reach, -stride)
        sizes.append(max((-(-steps // stride) if round_up else steps // stride) + 1, 0))
    return tuple(sizes)


def conv(data: int = 0, filters: int = 1, kind: str = "conv") -> Counter:
    """Counts Conv and the like; `data` and `filters` are the positions of their inputs.

    The class is "conv" (one group), "depthwise" (one filter per channel) or "grouped". On a blocked
    target, price() appends "_blocked".
    """
    plain = kind == "conv"

    def count(node: PricedNode) -> Work:
        source, weights = shape_at(node.inputs, data), shape_at(node.inputs, filters)
        output = at(node.outputs, 0)
        groups = max(integer(node, "group", 1), 1)
        # Filters have the order: output channels, input channels of a group, window.
        window = size_of(weights[1:]) if weights is not None and len(weights) > 1 else float(USUAL_SIZE)
        channels = weights[0] if weights else USUAL_SIZE
        if output is not None and output.shape is not None:
            results = float(output.elements)
        elif source is not None and len(source) > 2 and weights is not None:
            kernel = integers(node, "kernel_shape") or weights[2:]
            results = source[0] * channels * size_of(window_output(node, source[2:], kernel))
        else:
            results = float(largest(node.inputs).elements)
        # A depthwise kernel works window by window; a dense one multiplies all windows as one
        # product.
        depthwise = groups > 1 and weights is not None and len(weights) > 1 and weights[1] == 1
        group = "depthwise" if depthwise else "grouped" if groups > 1 else "conv"
        products = results * window
        operations = 2.0 * products
        if at(node.inputs, 2) is not None and plain:
            operations += results
        size = moved(node.inputs) + (moved(node.outputs) if output is not None else results * element_size(largest(node.inputs[:1])))
        # Each row of the output begins and ends at a border, but windows of one pixel run over all rows at once.
        shape = (output.shape if output is not None else None) or source or (1,)
        images, image = shape[0], shape[2:]
        last = size_of(image) if _reads_pixels(node, weights) else image[-1] if image else 1
        stored = constant_elements(node, filters) * images  # each image reads all filters
        return Work(group if plain else kind, size, operations, results, results / max(last, 1), window * channels, channels / groups, products, stored=stored)

    return count


def _reads_pixels(node: PricedNode, weights: Shape | None) -> bool:
    """Tells whether each window of a Conv is one pixel, and each pixel a window."""
    if weights is None or any(size != 1 for size in weights[2:]):
        return False
    return all(stride == 1 for stride in integers(node, "strides") or ()) and not any(integers(node, "pads") or ())


def patched(node: PricedNode, done: Work) -> Work:
    """Returns the work of a Conv outside the blocked layout with the elements that it copies together,
    so that all windows of a group are one product. Windows of one element need no copy.
    """
    weights = shape_at(node.inputs, 1)
    return done._replace(rows=0.0) if weights is None or not any(size > 1 for size in weights[2:]) else _copied(node, done, weights)


def stepped(node: PricedNode, done: Work) -> Work:
    """Returns the work of a Conv as `patched` does, by the kernels of ONNX Runtime for processors. They copy
    windows of one element that lie apart, too. Elements that lie apart are not copied in runs. Each channel
    of a depthwise Conv begins a product. The columns of a product are the places of one image.
    """
    strides, weights, groups = integers(node, "strides") or (1,), shape_at(node.inputs, 1), integer(node, "group", 1)
    output = shape_at(node.outputs, 0)
    if weights is None or all(step == 1 for step in strides):
        done = patched(node, done)
    else:
        done = _copied(node, done, weights, _APART if strides[-1] > 1 else 1.0)
    if done.kind == "depthwise":
        done = done._replace(rows=done.rows + _STARTS * groups)
    places = size_of(output[2:]) if output is not None else 0.0
    return done._replace(columns=_ONE_PLACE if places == 1 else places)


def _copied(node: PricedNode, done: Work, weights: Shape, each: float = 1.0) -> Work:
    """Returns the work with the elements that a Conv copies together, each of which counts as so many."""
    output = shape_at(node.outputs, 0)
    copied = done.multiply_adds * max(integer(node, "group", 1), 1) / max(weights[0], 1)
    return done._replace(elements=done.elements + each * copied, rows=copied / max(output[-1] if output else 1, 1))


def conv_transpose(node: PricedNode) -> Work:
    """Counts ConvTranspose: each element of the input adds a window of the filters to the output."""
    source, weights = at(node.inputs, 0), shape_at(node.inputs, 1)
    window = size_of(weights[1:]) if weights is not None and len(weights) > 1 else float(USUAL_SIZE)
    elements = source.elements if source is not None else USUAL_SIZE
    output = at(node.outputs, 0)
    results = float(output.elements) if output is not None else float(elements)
    products = float(elements) * window
    operations = 2.0 * products
    if at(node.inputs, 2) is not None:
        operations += results
    return Work("transposed_conv", traffic(node), operations, results, float(elements), window * (weights[0] if weights else 1), multiply_adds=products)


def causal_conv(node: PricedNode) -> Work:
    """Counts CausalConvWithState: a depthwise Conv over time that keeps the last elements as state. Each
    copies the elements of its windows together.
    """
    source, weights = at(node.inputs, 0), shape_at(node.inputs, 1)
    window = float(weights[-1]) if weights else float(USUAL_SIZE)
    elements = float(source.elements) if source is not None else float(USUAL_SIZE)
    products, steps = elements * window, source.shape[-1] if source is not None and source.shape else USUAL_SIZE
    return Work("depthwise", traffic(node), 2.0 * products, elements + products, products / max(steps, 1), window, multiply_adds=products)


def deform_conv(node: PricedNode) -> Work:
    """Counts DeformConv: samples each element of a window between four neighbors, then works like
    Conv.
    """
    source, weights = at(node.inputs, 0), shape_at(node.inputs, 1)
    window = size_of(weights[1:]) if weights is not None and len(weights) > 1 else float(USUAL_SIZE)
    channels = weights[0] if weights else USUAL_SIZE
    output = at(node.outputs, 0)
    results = float(output.elements) if output is not None else float(source.elements if source is not None else USUAL_SIZE)
    samples, products = results / max(channels, 1) * window, results * window
    return Work("sample", traffic(node), 2.0 * products + samples * (_COORDINATES + 8.0), samples, 0.0, window * channels, multiply_adds=products)


def pool(kind: str) -> Counter:
    """Counts pools over windows: an operation for each element under each window. A row is a result and
    each element that its window moves on.

    Instead of "pool", the class is "pool_line" for windows of one axis, and "pool_steps" for those that step
    over more elements of the last axis than kernels with vectors load together.
    """

    def count(node: PricedNode) -> Work:
        source = at(node.inputs, 0)
        shape = source.shape if source is not None else None
        kernel = integers(node, "kernel_shape") or ()
        output = at(node.outputs, 0)
        if output is not None and output.shape is not None:
            results = float(output.elements)
        elif shape is not None and len(shape) > 2 and len(kernel) == len(shape) - 2:
            results = size_of(shape[:2]) * size_of(window_output(node, shape[2:], kernel))
        else:
            results = float(source.elements if source is not None else USUAL_SIZE)
        size = moved(node.inputs) + (moved(node.outputs) if output is not None else results * element_size(largest(node.inputs)))
        # Exporters may write windows that are far larger than the image. Kernels clip them; those of the
        # blocked layout step over the columns of each row of the image, and over the rows beyond.
        image = shape[2:] if shape is not None and len(shape) == len(kernel) + 2 else kernel
        inside = [max(min(sizes), 0) for sizes in zip(kernel, image, strict=True)]
        window = size_of(inside)
        if kind != "pool" and len(kernel) == 2:
            window = inside[0] * kernel[1] + kernel[0] - inside[0]
        step = (integers(node, "strides") or (1,))[-1]
        plain = "pool_line" if len(kernel) == 1 else "pool_steps" if step >= _STEPS else "pool"
        results *= _DEEP if len(kernel) > 2 else 1.0
        return Work(plain if kind == "pool" else kind, size, results * window, results, results * min(max(step, 1), _STEPS))

    return count


def global_pool(kind: str) -> Counter:
    """Counts pools over whole images: an operation for each element."""

    def count(node: PricedNode) -> Work:
        source = largest(node.inputs)
        rows = size_of(source.shape[:2]) if source.shape is not None else 1.0
        return Work(kind, moved(node.inputs) + rows * element_size(source), float(source.elements), float(source.elements), rows)

    return count


def resize(node: PricedNode) -> Work:
    """Counts Resize and Upsample by mode. For each result, nearest finds and reads one element, but twice
    as many pixels both ways are written in whole rows. Linear reads 2 and cubic reads 4 along each
    resized axis, so their number is a power.
    """
    mode = text(node, "mode", "nearest")
    elements = result(node)
    axes = 2
    source, output = shape_at(node.inputs, 0), shape_at(node.outputs, 0)
    if source is not None and output is not None and len(source) == len(output):
        axes = sum(before != after for before, after in zip(source, output, strict=True))
    taps = {"linear": 2.0, "bilinear": 2.0, "cubic": 4.0}.get(mode, 1.0) ** axes
    kind = "resize_nearest" if taps == 1.0 else "resize_cubic" if mode == "cubic" else "resize_linear"
    steps = elements if kind == "resize_nearest" and not (growth(node) == (2, 2) and repeats(node)) else 0.0
    return Work(kind, traffic(node), elements * 2.0 * taps if taps > 1.0 else 0.0, elements, steps)


def growth(node: PricedNode) -> tuple[int, int] | None:
    """Returns the whole factors by which a Resize enlarges the height and the width of images; None if it does
    anything else.
    """
    source, made = shape_at(node.inputs, 0), shape_at(node.outputs, 0)
    if source is None or made is None or len(source) != 4 or len(made) != 4 or source[:2] != made[:2] or 0 in source:
        return None
    return None if made[2] % source[2] or made[3] % source[3] else (made[2] // source[2], made[3] // source[3])


def repeats(node: PricedNode) -> bool:
    """Tells whether a Resize that enlarges by whole factors repeats each pixel, and says so by its simplest coordinates."""
    if text(node, "mode", "nearest") != "nearest":
        return False
    return (text(node, "coordinate_transformation_mode", "half_pixel"), text(node, "nearest_mode", "round_prefer_floor")) == ("asymmetric", "floor")


def blocked_resize(node: PricedNode) -> Work:
    """Counts Upsample in the layout in blocks of channels: it repeats pixels, or sums four of them."""
    elements = result(node)
    return Work("resize_blocked", traffic(node), 0.0 if text(node, "mode", "nearest") == "nearest" else 8.0 * elements, elements)


def sample(taps: float) -> Counter:
    """Counts operators that read an image at computed places: a number of elements for each result."""

    def count(node: PricedNode) -> Work:
        output = at(node.outputs, 0)
        results = float(output.elements) if output is not None else float(largest(node.inputs).elements)
        return Work("sample", results * 4.0 * (taps + 1.0) + moved(node.inputs[1:]), results * (2.0 * taps + _COORDINATES), results)

    return count


def roi_align(node: PricedNode) -> Work:
    """Counts RoiAlign: a number of samples for each result, each between four neighbors."""
    output = at(node.outputs, 0)
    results = float(output.elements) if output is not None else float(largest(node.inputs).elements)
    ratio = max(integer(node, "sampling_ratio", 0), 0) or 2
    samples = results * ratio * ratio
    return Work("sample", samples * 4.0 + results * 4.0 + moved(node.inputs[1:]), samples * (8.0 + _COORDINATES), samples)


def affine_grid(node: PricedNode) -> Work:
    """Counts AffineGrid: a small product for each point."""
    output = at(node.outputs, 0)
    elements = float(output.elements) if output is not None else float(largest(node.inputs).elements)
    axes = output.shape[-1] if output is not None and output.shape else 2
    return Work("sample", traffic(node), elements * 2.0 * (axes + 1), elements)


def fold(node: PricedNode) -> Work:
    """Counts Col2Im: each element of the input is added to the output."""
    return Work("scatter", traffic(node), float(largest(node.inputs[:1]).elements), float(largest(node.inputs[:1]).elements))
