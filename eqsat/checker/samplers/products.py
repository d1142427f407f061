"""Samplers for products: MatMul and its kin, Gemm, Einsum, and convolutions.

Comes in: a site. Goes out: shapes of new inputs that agree with the others (rows with columns, channels with groups),
and windows that fit. Batches broadcast, operands have one axis, groups have unequal channel counts, pads are uneven.
"""

from __future__ import annotations

from eqsat.checker.samplers.elementwise import joined, narrowed, widened
from eqsat.checker.shapes import RANK_LIMIT, Sizes, draw_size
from eqsat.checker.site import Site, Unfit


def sample_matmul(site: Site) -> None:
    """MatMul and MatMulInteger: operands of one axis, matrices, and batches that broadcast."""
    _multiply(site, 0, 1)
    if site.operator.name == "MatMulInteger":
        for position in (2, 3):
            if site.present(position):
                site.fit(position, ())


def sample_quantized_matmul(site: Site) -> None:
    """QLinearMatMul: one scale and zero point for each tensor."""
    _multiply(site, 0, 3)
    for position in (1, 2, 4, 5, 6, 7):
        site.fit(position, ())


def _multiply(site: Site, first: int, second: int) -> None:
    for position in (first, second):
        if not site.shape(position):
            site.fit(position, (draw_size(site.random),))
    if first in site.fresh and site.chance(0.2):  # square matrices, of which other products are legal as well
        site.fit(first, (*site.shape(first)[:-2], *site.shape(first)[-1:] * 2))
    a, b = site.shape(first), site.shape(second)
    if agree(a, b) and site.chance(0.4):
        return
    if second in site.fresh and (first not in site.fresh or site.chance(0.6)):
        inner, batch = a[-1], a[:-2]
        kind = site.random.randrange(6)
        columns = _other(site, inner, b[1:])
        if kind <= 1:
            site.fit(second, (inner,))
        elif kind <= 3:
            site.fit(second, (inner, columns))
        else:
            site.fit(second, (*_batch(site, batch), inner, columns))
    elif first in site.fresh:
        inner, batch = b[-2:][0], b[:-2]
        kind = site.random.randrange(6)
        rows = _other(site, inner, a[:-1])
        if kind <= 1:
            site.fit(first, (inner,))
        elif kind <= 3:
            site.fit(first, (rows, inner))
        else:
            site.fit(first, (*_batch(site, batch), rows, inner))


def _other(site: Site, inner: int, suggested: Sizes) -> int:
    """The size of a matrix beside the one that is summed over: as suggested, the same, or a new one."""
    if suggested and site.chance(0.5):
        return suggested[-1]
    return inner if site.chance(0.4) else draw_size(site.random)


def _batch(site: Site, batch: Sizes) -> Sizes:
    return widened(site, batch or (draw_size(site.random),))[: RANK_LIMIT - 2]


def agree(a: Sizes, b: Sizes) -> bool:
    """Whether MatMul accepts the shapes."""
    return bool(a) and bool(b) and a[-1] == b[-2:][0] and joined((a[:-2], b[:-2])) is not None


def sample_gemm(site: Site) -> None:
    """Gemm: matrices, either one transposed, and an addend that broadcasts to the result."""
    turned = [site.integer(key, lambda: site.random.randint(0, 1)) != 0 for key in ("transA", "transB")]
    for position in (0, 1):
        if len(site.shape(position)) != 2:
            site.fit(position, (draw_size(site.random), draw_size(site.random)))
    (m, k), (j, n) = ((shape[1], shape[0]) if turn else shape for shape, turn in zip((site.shape(0), site.shape(1)), turned, strict=True))
    if k != j:
        if 1 in site.fresh:
            site.fit(1, (n, k) if turned[1] else (k, n))
        else:
            site.fit(0, (j, m) if turned[0] else (m, j))
    if site.present(2) and not (site.chance(0.3) and joined((site.shape(2), (m, n))) == (m, n)):
        site.fit(2, narrowed(site, (m, n)))


def sample_einsum(site: Site) -> None:
    """Einsum: sums and products over letters; new inputs get the sizes of the letters."""
    usual = {1: ("ij->ji", "ij->i", "ii->i", "ijk->kij"), 2: ("ij,jk->ik", "bij,bjk->bik", "i,j->ij", "ij,ij->", "bhqd,bhkd->bhqk", "ij,jk")}
    equation = site.text("equation", usual.get(len(site.inputs), ("ij,jk,kl->il",)))
    operands = equation.replace(" ", "").split("->")[0].split(",")
    if len(operands) != len(site.inputs) or "." in equation:
        return
    sizes: dict[str, int] = {}
    for position in sorted(range(len(operands)), key=lambda place: place in site.fresh):
        shape, letters = site.shape(position), operands[position]
        if len(shape) == len(letters):
            for letter, size in zip(letters, shape, strict=True):
                sizes.setdefault(letter, size)
        site.fit(position, tuple(sizes.setdefault(letter, draw_size(site.random)) for letter in letters))


# --- windows ---


def spatial(site: Site, least: int = 1) -> Sizes:
    """The spatial sizes of input 0, which gets batch, channels and at least `least` spatial axes where it is new."""
    shape = site.shape(0)
    if len(shape) < 2 + least:
        wanted = 2 + site.random.choice((1, 2, 2, 3))
        site.fit(0, (*shape, *(draw_size(site.random, 1) for _ in range(wanted - len(shape)))))
    if 0 in site.fresh and len(site.shape(0)) > 5:
        site.fit(0, site.shape(0)[:5])
    return site.shape(0)[2:]


def window(site: Site, sizes: Sizes, kernel: Sizes | None, pool: bool) -> Sizes:
    """Draws strides, dilations, pads and `auto_pad`, and the kernel where it is None, such that the window fits; returns the kernel."""
    count = len(sizes)
    random = site.random
    pads_slot = site.slots.get("pads")
    # A rule that names the pads sees them written out.
    written = pads_slot is not None and not pads_slot.carried
    mode = site.text("auto_pad", ("NOTSET",) if written else ("NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")) or "NOTSET"
    strides = site.integers("strides", lambda: spread(site, count, (1, 1, 2, 3)), count)
    # ONNX Runtime has no dilated windows under SAME, so that few such draws can be judged.
    wide = (1, 1, 1, 2, 3) if not mode.startswith("SAME") or site.chance(0.15) else (1,)
    dilations = site.integers("dilations", lambda: spread(site, count, wide), count) or (1,) * count

    def draw_kernel() -> list[int]:
        drawn = spread(site, count, (1, 2, 2, 3, 3, 4))
        return [max(1, min(length, 1 + (size + 1) // dilation)) for length, size, dilation in zip(drawn, sizes, dilations, strict=True)]

    drawn = site.integers("kernel_shape", draw_kernel, count) if pool else None
    kernel = kernel or drawn or tuple(draw_kernel())
    if len(kernel) != count:
        raise Unfit
    if mode == "NOTSET":
        reach = [(length - 1) * dilation + 1 for length, dilation in zip(kernel, dilations, strict=True)]

        def draw_pads() -> list[int]:
            most = [min(extent - 1, 3) if not pool else min(length - 1, 3) for extent, length in zip(reach, kernel, strict=True)]
            kind = random.randrange(5)
            if kind == 0:
                heads, tails = [0] * count, [0] * count
            elif kind <= 2:
                heads = [random.randint(0, pad) for pad in most]
                tails = heads
            elif kind == 3 and strides is not None:
                # What SAME_UPPER would add, written out.
                total = [max(0, (-(-size // step) - 1) * step + extent - size) for size, step, extent in zip(sizes, strides, reach, strict=True)]
                heads, tails = [pad // 2 for pad in total], [pad - pad // 2 for pad in total]
            else:
                heads, tails = ([random.randint(0, pad) for pad in most] for _ in range(2))
            # The window must fit into what is padded.
            tails = [max(tail, extent - size - head) for size, extent, head, tail in zip(sizes, reach, heads, tails, strict=True)]
            return heads + tails

        pads = site.integers("pads", draw_pads, 2 * count) or (0,) * (2 * count)
    else:
        pads = (0,) * (2 * count)
    short = mode in ("NOTSET", "VALID") and any(
        size + head + tail < (length - 1) * dilation + 1
        for size, head, tail, length, dilation in zip(sizes, pads[:count], pads[count:], kernel, dilations, strict=True)
    )
    if short:
        if 0 not in site.fresh:
            raise Unfit
        wide = tuple((length - 1) * dilation + 1 + random.randint(0, 3) for length, dilation in zip(kernel, dilations, strict=True))
        site.fit(0, (*site.shape(0)[:2], *(max(size, least) for size, least in zip(sizes, wide, strict=True))))
    return kernel


def spread(site: Site, count: int, values: tuple[int, ...]) -> list[int]:
    """One value for all axes, or one for each."""
    if site.chance(0.5):
        return [site.random.choice(values)] * count
    return [site.random.choice(values) for _ in range(count)]


def sample_conv(site: Site) -> None:
    """Conv, ConvInteger and QLinearConv: weights whose channels agree with the data and the group, and a bias for each output channel."""
    weights = 3 if site.operator.name == "QLinearConv" else 1
    if len(site.shape(weights)) >= 3 and weights not in site.fresh and 0 in site.fresh and len(site.shape(0)) != len(site.shape(weights)):
        site.fit(0, (*site.shape(0), *(draw_size(site.random, 1) for _ in range(8)))[: len(site.shape(weights))])
    sizes = spatial(site)
    channels, old = site.shape(0)[1], site.shape(weights)
    group = site.integer("group", lambda: _group(site, channels, old, weights), 1)
    if group < 1:
        raise Unfit
    keep = len(old) == len(sizes) + 2 and 0 not in old and old[0] % group == 0 and (weights not in site.fresh or site.chance(0.3))
    if keep and old[1] * group == channels:
        window(site, sizes, old[2:], pool=False)
    elif weights not in site.fresh:
        if len(old) != len(sizes) + 2 or 0 in old or old[0] % group:
            raise Unfit
        site.fit(0, (site.shape(0)[0], old[1] * group, *sizes))
        window(site, sizes, old[2:], pool=False)
    else:
        if channels % group:
            channels = group * draw_size(site.random, 1)
            site.fit(0, (site.shape(0)[0], channels, *sizes))
        kernel = window(site, sizes, None, pool=False)
        outputs = group * site.random.choice((1, 1, 2, 3)) if group > 1 else old[0] if old and site.chance(0.5) else draw_size(site.random, 1)
        site.fit(weights, (outputs, channels // group, *kernel))
    weight = site.shape(weights)
    site.integers("kernel_shape", lambda: weight[2:])
    _beside(site, weight[0])


def _group(site: Site, channels: int, weight: Sizes, position: int) -> int:
    if position not in site.fresh and len(weight) > 1 and weight[1] and channels % weight[1] == 0:
        return channels // weight[1]
    kind = site.random.randrange(6)
    if kind <= 1 or channels == 0:
        return 1
    if kind <= 3:
        return channels
    return site.random.choice([factor for factor in range(1, channels + 1) if channels % factor == 0])


def _beside(site: Site, outputs: int) -> None:
    """Biases, scales and zero points beside the data and the weights."""
    if site.operator.name in ("Conv", "ConvTranspose"):
        if site.present(2):
            site.fit(2, (outputs,))
        return
    for position in range(1, len(site.inputs)):
        if site.present(position) and position not in (1, 3) and site.operator.name == "ConvInteger":
            site.fit(position, ())
        elif site.present(position) and position != 3 and site.operator.name == "QLinearConv":
            site.fit(position, (outputs,) if position == 8 else ())


def sample_conv_transpose(site: Site) -> None:
    """ConvTranspose: weights by input channels first, output paddings below the stride."""
    sizes = spatial(site)
    count = len(sizes)
    channels, old = site.shape(0)[1], site.shape(1)
    fits = len(old) == count + 2 and old[0] == channels and 0 not in old

    def draw_group() -> int:
        divisors = [factor for factor in range(1, channels + 1) if channels % factor == 0] or [1]
        return site.random.choice((1, 1, divisors[-1], site.random.choice(divisors)))

    group = site.integer("group", draw_group, 1)
    if group < 1 or channels % group:
        raise Unfit
    if channels < 1:
        raise Unfit
    if not (fits and (1 not in site.fresh or site.chance(0.3))):
        drawn = spread(site, count, (1, 2, 2, 3))
        site.fit(1, (channels, site.random.choice((1, 2, 3)), *drawn))
    weight = site.shape(1)
    strides = site.integers("strides", lambda: spread(site, count, (1, 2, 2, 3)), count) or (1,) * count
    dilations = site.integers("dilations", lambda: spread(site, count, (1, 1, 2)), count) or (1,) * count
    if len(weight) - 2 != count:
        raise Unfit
    mode = site.text("auto_pad", ("NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
    if mode in ("", "NOTSET"):
        full = [(size - 1) * step + (length - 1) * dilation for size, step, length, dilation in zip(sizes, strides, weight[2:], dilations, strict=True)]
        heads = [site.random.randint(0, min(2, max(0, extent))) if site.chance(0.5) else 0 for extent in full]
        tails = [site.random.randint(0, max(0, min(2, extent - head))) if site.chance(0.5) else 0 for extent, head in zip(full, heads, strict=True)]
        site.integers("pads", lambda: heads + tails, 2 * count)
        padding = site.integers("output_padding", lambda: [site.random.randint(0, step - 1) for step in strides], count)
        if padding is None or not any(padding):
            # ONNX's inference loses track of results that are smaller than the image.
            shaped = [max(size, extent + 1 - site.random.choice((0, 0, 1))) for size, extent in zip(sizes, full, strict=True)]
            site.integers("output_shape", lambda: shaped, count)
    site.integers("kernel_shape", lambda: weight[2:])
    _beside(site, weight[1] * group)


def sample_pool(site: Site) -> None:
    """MaxPool, AveragePool and LpPool."""
    window(site, spatial(site), None, pool=True)


def sample_global_pool(site: Site) -> None:
    """GlobalMaxPool and its kin: batch, channels, and space of any rank."""
    spatial(site)
