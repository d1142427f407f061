"""Prices of nodes between Convs: those that leave the layout in blocks of channels pay for both ways."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eqsat.cost.blocked_layout import beside_convs, between_convs, over_images
from eqsat.cost.price import BLOCKED_DOMAIN, price
from eqsat.cost.shaped import PricedNode, Shaped
from eqsat.cost.target import load_target

CPU, LAUNCHES = load_target("onnxruntime-cpu"), load_target("launches")
IMAGE, GATE, SCORES = Shaped(1, (1, 96, 56, 56)), Shaped(1, (1, 96, 1, 1)), Shaped(1, (1, 16, 64, 64))
ROW = Shaped(1, (1, 512, 1, 400))
PIXELS = {"mode": b"nearest", "coordinate_transformation_mode": b"asymmetric", "nearest_mode": b"floor"}


def node(name: str, inputs: list[Shaped], output: Shaped, **attributes: bytes | int) -> PricedNode:
    return PricedNode("", name, attributes, inputs, [output])


def plain_row(image: Shaped) -> Shaped:
    assert image.shape is not None
    return Shaped(image.dtype, (*image.shape[:2], image.shape[3]), image.constant)


def test_a_pool_of_whole_blocks_runs_in_them_wherever_it_is() -> None:
    whole, part = (node("AveragePool", [Shaped(1, (1, channels, 56, 56))], Shaped(1, (1, channels, 56, 56))) for channels in (96, 24))
    for priced in (beside_convs, between_convs):
        assert priced(whole, CPU) == price(replace(whole, domain=BLOCKED_DOMAIN), CPU)
        assert priced(part, CPU) == price(part, CPU)


@pytest.mark.parametrize(
    "broken",
    [
        node("Mul", [IMAGE, GATE], IMAGE),
        node("Add", [GATE, IMAGE], IMAGE),
        node("ReduceMean", [IMAGE], GATE),
        node("ReduceMax", [IMAGE], Shaped(1, (1, 96))),
    ],
    ids=lambda each: each.name,
)
def test_a_node_that_reads_no_blocks_pays_for_conversions(broken: PricedNode) -> None:
    usual, there = price(broken, CPU), between_convs(broken, CPU)
    assert there.seconds > 1.5 * usual.seconds and there.launches > usual.launches
    assert between_convs(broken, LAUNCHES) == price(broken, LAUNCHES)


@pytest.mark.parametrize(
    "usual",
    [
        node("Mul", [IMAGE, IMAGE], IMAGE),
        node("Mul", [IMAGE, Shaped(1, (96, 1, 1), True)], IMAGE),
        node("Add", [SCORES, Shaped(1, (1, 1, 64, 64))], SCORES),
        node("ReduceMax", [SCORES], Shaped(1, (1, 16, 64, 1))),
        node("Mul", [Shaped(1, (1, 30, 56, 56)), Shaped(1, (1, 30, 1, 1))], Shaped(1, (1, 30, 56, 56))),
        node("Relu", [IMAGE], IMAGE),
        node("Resize", [IMAGE], Shaped(1, (1, 96, 84, 84)), mode=b"linear"),
        node("Resize", [IMAGE], Shaped(1, (1, 96, 112, 112)), mode=b"linear", coordinate_transformation_mode=b"pytorch_half_pixel"),
        node("Resize", [IMAGE], Shaped(1, (1, 96, 112, 112)), mode=b"linear", antialias=1),
        node("Resize", [IMAGE], Shaped(1, (1, 96, 112, 112)), mode=b"cubic"),
        node("Resize", [IMAGE], Shaped(1, (1, 96, 112, 112)), mode=b"nearest"),
        node("Resize", [IMAGE], Shaped(1, (1, 96, 28, 28)), **PIXELS),
        node("Resize", [IMAGE], Shaped(1, (1, 192, 56, 56)), **PIXELS),
    ],
    ids=lambda each: each.name,
)
def test_others_cost_what_they_cost_anywhere(usual: PricedNode) -> None:
    assert between_convs(usual, CPU) == price(usual, CPU)


def test_pools_and_repeated_pixels_are_cheaper_in_blocks() -> None:
    large = Shaped(1, (1, 96, 112, 168))
    enlarged = [node("Resize", [IMAGE], large, mode=b"linear", coordinate_transformation_mode=name) for name in (b"asymmetric", b"align_corners")]
    for kernel in (node("GlobalAveragePool", [IMAGE], GATE), node("Resize", [GATE], IMAGE, **PIXELS), node("Resize", [IMAGE], large, **PIXELS), *enlarged):
        assert between_convs(kernel, CPU).seconds < 0.6 * price(kernel, CPU).seconds


@pytest.mark.parametrize(("groups", "filters"), [(1, (512, 512, 1, 3)), (512, (512, 1, 1, 9)), (8, (512, 64, 1, 3))])
def test_a_conv_over_a_single_row_pays_for_conversions(groups: int, filters: tuple[int, ...]) -> None:
    window = filters[-1]
    attributes = {"group": groups, "pads": (0, window // 2, 0, window // 2)}
    conv = PricedNode("", "Conv", attributes, [ROW, Shaped(1, filters, True), Shaped(1, (512,), True)], [ROW])
    usual, there = price(conv, CPU), between_convs(conv, CPU)
    conversions = [price(PricedNode(BLOCKED_DOMAIN, name, {}, [ROW], [ROW]), CPU) for name in ("ReorderInput", "ReorderOutput")]
    assert there.seconds == pytest.approx(usual.seconds + sum(each.seconds for each in conversions))
    assert there.launches == usual.launches + 2
    plain = PricedNode("", "Conv", {"group": groups, "pads": (window // 2,) * 2}, [plain_row(ROW), plain_row(Shaped(1, filters, True))], [plain_row(ROW)])
    assert there.seconds < between_convs(plain, CPU).seconds == price(plain, CPU).seconds


def test_a_conv_of_few_channels_fills_up_a_block() -> None:
    """One channel out of 16 took 189 us, 38 us outside of blocks."""

    def conv(channels: int, *more: Shaped) -> PricedNode:
        return PricedNode("", "Conv", {}, [IMAGE, Shaped(1, (channels, 96, 1, 1), True)], [Shaped(1, (1, channels, 56, 56)), *more])

    for priced in (beside_convs, between_convs):
        extra = {channels: priced(conv(channels), CPU).seconds - price(conv(channels), CPU).seconds for channels in (1, 8, 16, 17, 32)}
        assert extra[16] == extra[32] == 0 < extra[8] < extra[1] and extra[17] > 0
        # The kernel of a Conv and a BatchNormalization has the results of both.
        assert priced(conv(8, GATE, GATE), CPU).seconds == priced(conv(8), CPU).seconds


def test_rows_count_as_images_of_one_row() -> None:
    assert over_images(Shaped(1, (512, 64, 3), True)) == Shaped(1, (512, 64, 1, 3), True)
    for other in (None, Shaped(1, None), Shaped(1, (512,)), IMAGE):
        assert over_images(other) == other


@pytest.mark.parametrize("perm", [(0, 2, 3, 1), (0, 3, 1, 2)])
def test_a_transpose_that_moves_the_channels_of_an_image_of_one_column_is_a_conversion(perm: tuple[int, ...]) -> None:
    column, rows = Shaped(1, (1, 96, 400, 1)), Shaped(1, (1, 400, 1, 96))
    last = perm[1] == 2
    moved = PricedNode("", "Transpose", {"perm": perm}, [column if last else rows], [rows if last else column])
    conversion = PricedNode(BLOCKED_DOMAIN, "ReorderOutput" if last else "ReorderInput", {}, [column], [column])
    assert beside_convs(moved, CPU) == between_convs(moved, CPU) == price(conversion, CPU) != price(moved, CPU)
    assert beside_convs(moved, LAUNCHES) == price(moved, LAUNCHES)


@pytest.mark.parametrize("shape", [(1, 64, 4, 32), (1, 30, 400, 1), (1, 96, 400)])
def test_other_transposes_are_no_conversions(shape: tuple[int, ...]) -> None:
    perm = (0, *range(2, len(shape)), 1)
    moved = PricedNode("", "Transpose", {"perm": perm}, [Shaped(1, shape)], [Shaped(1, tuple(shape[axis] for axis in perm))])
    assert beside_convs(moved, CPU) == between_convs(moved, CPU) == price(moved, CPU)
