"""Regions share the bytes that a file may grow."""

import pytest

from eqsat.choose.groups import Group, allotted


@pytest.mark.parametrize(
    ("stored", "copies", "wanted", "room", "limits"),
    [
        ([10, 10], [1, 1], [12, 50], 20, [12, 28]),
        ([10, 10], [1, 4], [100, 100], 10, [12, 12]),
        ([10, 10], [1, 1], [0, 100], 0, [0, 20]),
        ([10, 30], [2, 1], [10, 9], -25, [5, 9]),
        ([10, 10], [1, 1], [10, 50], -40, [0, 0]),
    ],
)
def test_regions_share_the_room_evenly(stored: list[float], copies: list[int], wanted: list[float], room: float, limits: list[float]) -> None:
    groups = [Group([], now, count) for now, count in zip(stored, copies, strict=True)]
    assert allotted(groups, wanted, room) == limits
