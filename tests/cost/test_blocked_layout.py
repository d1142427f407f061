"""Prices of nodes between Convs: those that leave the layout in blocks of channels pay for both ways."""

from __future__ import annotations

import pytest

from eqsat.cost.blocked_layout import between_convs
from eqsat.cost.price import price
from eqsat.cost.shaped import PricedNode, Shaped
from eqsat.cost.target import load_target

CPU, LAUNCHES = load_target("onnxruntime-cpu"), load_target("launches")
IMAGE, GATE, SCORES = Shaped(1, (1, 96, 56, 56)), Shaped(1, (1, 96, 1, 1)), Shaped(1, (1, 16, 64, 64))
PIXELS = {"mode": b"nearest", "coordinate_transformation_mode": b"asymmetric", "nearest_mode": b"floor"}


def node(name: str, inputs: list[Shaped], output: Shaped, **attributes: bytes) -> PricedNode:
    return PricedNode("", name, attributes, inputs, [output])


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
        node("Resize", [IMAGE], Shaped(1, (1, 96, 112, 112)), mode=b"linear"),
    ],
    ids=lambda each: each.name,
)
def test_others_cost_what_they_cost_anywhere(usual: PricedNode) -> None:
    assert between_convs(usual, CPU) == price(usual, CPU)


def test_pools_and_repeated_pixels_are_cheaper_in_blocks() -> None:
    for kernel in (node("GlobalAveragePool", [IMAGE], GATE), node("Resize", [GATE], IMAGE, **PIXELS)):
        assert between_convs(kernel, CPU).seconds < 0.6 * price(kernel, CPU).seconds
