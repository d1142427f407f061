"""Samplers for products (MatMul and its integer forms, Gemm, Einsum), convolutions and pools.

They give new inputs shapes that agree with the others (rows with columns, channels with groups),
and draw windows that fit. The draws include batches that broadcast, operands of one axis, different
numbers of channels in a group's input and output, and uneven pads.
"""

from __future__ import annotations

from random import Random

from eqsat.checker.samplers.drawn_node import OBEDIENCE, DrawnNode, Unfit
from eqsat.checker.samplers.elementwise import joined, narrowed, widened
from eqsat.checker.samplers.leaf_shapes import RANK_LIMIT, Sizes, draw_size


def sample_matmul(node: DrawnNode) -> None:
    """MatMul and MatMulInteger: operands of one axis, matrices, and batches that broadcast."""
    _multiply(node, 0, 1)
    if node.operator.name == "MatMulInteger":
        for position in (2, 3):
            if node.present(position):
                node.fit(position, ())


def sample_quantized_matmul(node: DrawnNode) -> None:
    """QLinearMatMul: one scale and zero point for each tensor."""
    _multiply(node, 0, 3)
    for position in (1, 2, 4, 5, 6, 7):
        node.fit(position, ())


def _multiply(node: DrawnNode, first: int, second: int) -> None:
    for position in (first, second):
        if not node.shape(position):
            node.fit(position, (draw_size(node.random),))
    # Square matrices make other products legal, too, which a wrong rule may form.
    if first in node.fresh and node.chance(0.2):
        node.fit(first, (*node.shape(first)[:-2], *node.shape(first)[-1:] * 2))
    a, b = node.shape(first), node.shape(second)
    if agree(a, b) and node.chance(0.4):
        return
    if second in node.fresh and (first not in node.fresh or node.chance(0.6)):
        inner, batch = a[-1], a[:-2]
        kind = node.random.randrange(6)
        columns = _other(node, inner, b[1:])
        if kind <= 1:
            node.fit(second, (inner,))
        elif kind <= 3:
            node.fit(second, (inner, columns))
        else:
            node.fit(second, (*_batch(node, batch), inner, columns))
    elif first in node.fresh:
        inner, batch = b[-2:][0], b[:-2]
        kind = node.random.randrange(6)
        rows = _other(node, inner, a[:-1])
        if kind <= 1:
            node.fit(first, (inner,))
        elif kind <= 3:
            node.fit(first, (rows, inner))
        else:
            node.fit(first, (*_batch(node, batch), rows, inner))


def _other(node: DrawnNode, inner: int, suggested: Sizes) -> int:
    """The size of a matrix beside the summed one: as suggested, the same, or a new one."""
    if suggested and node.chance(0.5):
        return suggested[-1]
    return inner if node.chance(0.4) else draw_size(node.random)


def _batch(node: DrawnNode, batch: Sizes) -> Sizes:
    return widened(node, batch or (draw_size(node.random),))[: RANK_LIMIT - 2]


def agree(a: Sizes, b: Sizes) -> bool:
    """Whether MatMul accepts the shapes."""
    return bool(a) and bool(b) and a[-1] == b[-2:][0] and joined((a[:-2], b[:-2])) is not None


def sample_gemm(node: DrawnNode) -> None:
    """Gemm: matrices, either one transposed, and an addend that broadcasts to the result."""
    turned = [node.integer(key, lambda: node.random.randint(0, 1)) != 0 for key in ("transA", "transB")]
    for position in (0, 1):
        if len(node.shape(position)) != 2:
            node.fit(position, (draw_size(node.random), draw_size(node.random)))
    (m, k), (j, n) = ((shape[1], shape[0]) if turn else shape for shape, turn in zip((node.shape(0), node.shape(1)), turned, strict=True))
    if k != j:
        if 1 in node.fresh:
            node.fit(1, (n, k) if turned[1] else (k, n))
        else:
            node.fit(0, (j, m) if turned[0] else (m, j))
    if node.present(2) and not (node.chance(0.3) and joined((node.shape(2), (m, n))) == (m, n)):
        row = len(node.shape(2)) == 1 and node.chance(0.5)
        node.fit(2, (n,) if row else narrowed(node, (m, n)))


def sample_fused_matmul(node: DrawnNode) -> None:
    """FusedMatMul: matrices and batches of them, the last two axes of either exchanged."""
    turned = [node.integer(key, lambda: node.random.randint(0, 1)) != 0 for key in ("transA", "transB")]
    for position in (0, 1):
        if len(node.shape(position)) < 2:
            node.fit(position, (draw_size(node.random), draw_size(node.random)))
    a, b = (_turned(node.shape(position)) if turn else node.shape(position) for position, turn in enumerate(turned))
    if agree(a, b) and node.chance(0.6):
        return
    if 1 in node.fresh and (0 not in node.fresh or node.chance(0.6)):
        wanted = (*(_batch(node, a[:-2]) if node.chance(0.6) else ()), a[-1], _other(node, a[-1], b[1:]))
        node.fit(1, _turned(wanted) if turned[1] else wanted)
    elif 0 in node.fresh:
        wanted = (*(_batch(node, b[:-2]) if node.chance(0.6) else ()), _other(node, b[-2], a[:-1]), b[-2])
        node.fit(0, _turned(wanted) if turned[0] else wanted)


def _turned(shape: Sizes) -> Sizes:
    return (*shape[:-2], shape[-1], shape[-2])


def sample_einsum(node: DrawnNode) -> None:
    """Einsum: sums and products over letters; new inputs get the sizes of the letters."""
    usual = {
        1: ("ij->ji", "ij->i", "ii->i", "ijk->kij", "i...->..."),
        2: ("ij,jk->ik", "bij,bjk->bik", "i,j->ij", "ij,ij->", "bhqd,bhkd->bhqk", "ij,jk", "ijl,jk->ki", "ij,jkl->ik", "...ij,jk->...ik"),
    }
    equation = node.text("equation", usual.get(len(node.inputs), ("ij,jk,kl->il",)))
    operands = equation.replace(" ", "").split("->")[0].split(",")
    if len(operands) != len(node.inputs) or "." in equation:
        return
    sizes: dict[str, int] = {}
    for position in sorted(range(len(operands)), key=lambda place: place in node.fresh):
        shape, letters = node.shape(position), operands[position]
        if len(shape) == len(letters):
            for letter, size in zip(letters, shape, strict=True):
                sizes.setdefault(letter, size)
        node.fit(position, tuple(sizes.setdefault(letter, draw_size(node.random)) for letter in letters))


# --- windows ---


def spatial(node: DrawnNode, least: int = 1) -> Sizes:
    """The spatial sizes of input 0; a new input gets batch, channels and at least `least` spatial
    axes.
    """
    shape = node.shape(0)
    if len(shape) < 2 + least:
        wanted = 2 + node.random.choice((1, 2, 2, 3))
        node.fit(0, (*shape, *(draw_size(node.random, 1) for _ in range(wanted - len(shape)))))
    if 0 in node.fresh and len(node.shape(0)) > 5:
        node.fit(0, node.shape(0)[:5])
    return node.shape(0)[2:]


def window(node: DrawnNode, sizes: Sizes, kernel: Sizes | None, pool: bool) -> Sizes:
    """Draws strides, dilations, pads, `auto_pad`, and the kernel if it is None, so that the window
    fits. Returns the kernel.
    """
    count = len(sizes)
    pads_slot = node.slots.get("pads")
    # A rule that names the pads reads them from `pads`, without `auto_pad`.
    written = pads_slot is not None and not pads_slot.carried
    mode = node.text("auto_pad", ("NOTSET",) if written else ("NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")) or "NOTSET"
    strides = node.integers("strides", lambda: spread(node, count, (1, 1, 2, 3)), count)
    # ONNX Runtime has no dilated windows under SAME, so few such draws can be judged.
    wide = (1, 1, 1, 2, 3) if not mode.startswith("SAME") or node.chance(0.15) else (1,)
    dilations = node.integers("dilations", lambda: spread(node, count, wide), count) or (1,) * count

    def draw_kernel() -> list[int]:
        drawn = spread(node, count, (1, 2, 2, 3, 3, 4))
        return [max(1, min(length, 1 + (size + 1) // dilation)) for length, size, dilation in zip(drawn, sizes, dilations, strict=True)]

    drawn = node.integers("kernel_shape", draw_kernel, count) if pool else None
    kernel = kernel or drawn or tuple(draw_kernel())
    if len(kernel) != count:
        raise Unfit
    reach = [(length - 1) * dilation + 1 for length, dilation in zip(kernel, dilations, strict=True)]
    pads: Sizes = (0,) * (2 * count)
    if mode == "NOTSET":
        most = [min((length if pool else extent) - 1, 3) for length, extent in zip(kernel, reach, strict=True)]
        asked = _pads_for(node, sizes, reach, strides or (1,) * count)
        pads = node.integers("pads", lambda: asked or _draw_pads(node.random, sizes, reach, strides, most), 2 * count) or pads
    if mode in ("NOTSET", "VALID"):
        _make_room(node, sizes, reach, pads)
    return kernel


def _pads_for(node: DrawnNode, sizes: Sizes, reach: list[int], strides: Sizes) -> list[int] | None:
    """Pads that give the result the sizes that conditions ask, mostly; None if they ask none, or one
    that no pads give.
    """
    asked = [size for size in (node.asked or ())[2:] if isinstance(size, int)]
    if len(asked) != len(sizes) or not node.chance(OBEDIENCE):
        return None
    total = [(result - 1) * step + extent - size for result, step, extent, size in zip(asked, strides, reach, sizes, strict=True)]
    if not all(0 <= pad < 2 * extent for pad, extent in zip(total, reach, strict=True)):
        return None
    heads = [node.random.choice((pad // 2, pad - pad // 2, node.random.randint(0, pad))) for pad in total]
    return heads + [pad - head for pad, head in zip(total, heads, strict=True)]


def _draw_pads(random: Random, sizes: Sizes, reach: list[int], strides: Sizes | None, most: list[int]) -> list[int]:
    """Pads of at most `most` on each side: none, equal or unequal ones, or those of SAME_UPPER."""
    kind = random.randrange(5)
    if kind == 0:
        heads, tails = [0] * len(sizes), [0] * len(sizes)
    elif kind <= 2:
        heads = [random.randint(0, pad) for pad in most]
        tails = heads
    elif kind == 3 and strides is not None:
        total = [max(0, (-(-size // step) - 1) * step + extent - size) for size, step, extent in zip(sizes, strides, reach, strict=True)]
        heads, tails = [pad // 2 for pad in total], [pad - pad // 2 for pad in total]
    else:
        heads, tails = ([random.randint(0, pad) for pad in most] for _ in range(2))
    # The window must fit into the padded image.
    tails = [max(tail, extent - size - head) for size, extent, head, tail in zip(sizes, reach, heads, tails, strict=True)]
    return heads + tails


def _make_room(node: DrawnNode, sizes: Sizes, reach: list[int], pads: Sizes) -> None:
    """Enlarges a new image that is smaller than the window; `Unfit` if it is not new."""
    heads, tails = pads[: len(sizes)], pads[len(sizes) :]
    if all(size + head + tail >= extent for size, head, tail, extent in zip(sizes, heads, tails, reach, strict=True)):
        return
    if 0 not in node.fresh:
        raise Unfit
    wide = [extent + node.random.randint(0, 3) for extent in reach]
    node.fit(0, (*node.shape(0)[:2], *(max(size, least) for size, least in zip(sizes, wide, strict=True))))


def spread(node: DrawnNode, count: int, values: tuple[int, ...]) -> list[int]:
    """One value for all axes, or one for each."""
    if node.chance(0.5):
        return [node.random.choice(values)] * count
    return [node.random.choice(values) for _ in range(count)]


def sample_conv(node: DrawnNode) -> None:
    """Conv, ConvInteger and QLinearConv: weights that agree with the data and the group, and a bias
    for each output channel.
    """
    weights = 3 if node.operator.name == "QLinearConv" else 1
    if len(node.shape(weights)) >= 3 and weights not in node.fresh and 0 in node.fresh and len(node.shape(0)) != len(node.shape(weights)):
        node.fit(0, (*node.shape(0), *(draw_size(node.random, 1) for _ in range(8)))[: len(node.shape(weights))])
    sizes = spatial(node)
    channels, old = node.shape(0)[1], node.shape(weights)
    kept = weights not in node.fresh or (weights in node.demanded and node.chance(OBEDIENCE))
    group = node.integer("group", lambda: _group(node, channels, old, kept), 1)
    if group < 1:
        raise Unfit
    keep = len(old) == len(sizes) + 2 and 0 not in old and old[0] % group == 0 and (kept or node.chance(0.3))
    if keep and old[1] * group == channels:
        window(node, sizes, old[2:], pool=False)
    elif weights not in node.fresh:
        if len(old) != len(sizes) + 2 or 0 in old or old[0] % group:
            raise Unfit
        node.fit(0, (node.shape(0)[0], old[1] * group, *sizes))
        window(node, sizes, old[2:], pool=False)
    else:
        if channels % group:
            channels = group * draw_size(node.random, 1)
            node.fit(0, (node.shape(0)[0], channels, *sizes))
        kernel = window(node, sizes, None, pool=False)
        outputs = group * node.random.choice((1, 1, 2, 3)) if group > 1 else old[0] if old and node.chance(0.5) else draw_size(node.random, 1)
        node.fit(weights, (outputs, channels // group, *kernel))
    weight = node.shape(weights)
    node.integers("kernel_shape", lambda: weight[2:])
    _beside(node, weight[0])


def _group(node: DrawnNode, channels: int, weight: Sizes, kept: bool) -> int:
    if kept and len(weight) > 1 and weight[1] and channels % weight[1] == 0:
        return channels // weight[1]
    kind = node.random.randrange(6)
    if kind <= 1 or channels == 0:
        return 1
    if kind <= 3:
        return channels
    return node.random.choice([factor for factor in range(1, channels + 1) if channels % factor == 0])


def _beside(node: DrawnNode, outputs: int) -> None:
    """Biases, scales and zero points beside the data and the weights."""
    if node.operator.name in ("Conv", "ConvTranspose"):
        if node.present(2):
            node.fit(2, (outputs,))
        return
    for position in range(1, len(node.inputs)):
        if node.present(position) and position not in (1, 3) and node.operator.name == "ConvInteger":
            node.fit(position, ())
        elif node.present(position) and position != 3 and node.operator.name == "QLinearConv":
            node.fit(position, (outputs,) if position == 8 else ())


def sample_conv_transpose(node: DrawnNode) -> None:
    """ConvTranspose: weights whose first axis is the input channels, and output padding below the
    stride.
    """
    sizes = spatial(node)
    count = len(sizes)
    channels, old = node.shape(0)[1], node.shape(1)
    fits = len(old) == count + 2 and old[0] == channels and 0 not in old

    def draw_group() -> int:
        divisors = [factor for factor in range(1, channels + 1) if channels % factor == 0] or [1]
        return node.random.choice((1, 1, divisors[-1], node.random.choice(divisors)))

    group = node.integer("group", draw_group, 1)
    if group < 1 or channels % group:
        raise Unfit
    if channels < 1:
        raise Unfit
    if not (fits and (1 not in node.fresh or node.chance(0.3))):
        drawn = spread(node, count, (1, 2, 2, 3))
        node.fit(1, (channels, node.random.choice((1, 2, 3)), *drawn))
    weight = node.shape(1)
    strides = node.integers("strides", lambda: spread(node, count, (1, 2, 2, 3)), count) or (1,) * count
    dilations = node.integers("dilations", lambda: spread(node, count, (1, 1, 2)), count) or (1,) * count
    if len(weight) - 2 != count:
        raise Unfit
    mode = node.text("auto_pad", ("NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
    if mode in ("", "NOTSET"):
        full = [(size - 1) * step + (length - 1) * dilation for size, step, length, dilation in zip(sizes, strides, weight[2:], dilations, strict=True)]
        heads = [node.random.randint(0, min(2, max(0, extent))) if node.chance(0.5) else 0 for extent in full]
        tails = [node.random.randint(0, max(0, min(2, extent - head))) if node.chance(0.5) else 0 for extent, head in zip(full, heads, strict=True)]
        node.integers("pads", lambda: heads + tails, 2 * count)
        padding = node.integers("output_padding", lambda: [node.random.randint(0, step - 1) for step in strides], count)
        if padding is None or not any(padding):
            # ONNX's inference is unreliable for results that are smaller than the image.
            shaped = [max(size, extent + 1 - node.random.choice((0, 0, 1))) for size, extent in zip(sizes, full, strict=True)]
            node.integers("output_shape", lambda: shaped, count)
    node.integers("kernel_shape", lambda: weight[2:])
    _beside(node, weight[1] * group)


def sample_pool(node: DrawnNode) -> None:
    """MaxPool, AveragePool and LpPool."""
    window(node, spatial(node), None, pool=True)


def sample_global_pool(node: DrawnNode) -> None:
    """GlobalMaxPool, GlobalAveragePool and GlobalLpPool: any number of spatial axes."""
    spatial(node)
