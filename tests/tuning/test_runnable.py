"""Inputs for timing are those that the runtime takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from eqsat.runtime.interleaved import NotTimed, TooSlow
from eqsat.tuning.runnable import runnable_inputs
from tests.support.models import parse

MODEL = parse("g (float[N, 4] x) => (float[N, 4] y) { y = Relu (x) }")


def test_inputs_are_drawn_until_the_runtime_takes_them() -> None:
    def run(feeds: Mapping[str, Any]) -> None:
        if len(feeds["x"]) != 1:
            raise NotTimed(f"not {len(feeds['x'])}")

    feeds, sizes = runnable_inputs(MODEL, None, {}, run)
    assert feeds["x"].shape == (1, 4) and sizes == {"N": 1}
    with pytest.raises(NotTimed, match="not 5"):
        runnable_inputs(MODEL, None, {"N": 5}, run)


def test_a_model_that_takes_too_long_is_tried_once() -> None:
    tried: list[int] = []

    def run(feeds: Mapping[str, Any]) -> None:
        tried.append(len(feeds["x"]))
        raise TooSlow("too long")

    with pytest.raises(TooSlow):
        runnable_inputs(MODEL, None, {}, run)
    assert len(tried) == 1


def test_a_batch_without_a_name_is_one_as_prices_assume() -> None:
    model = parse("g (float[?, 4] x) => (float[?, 4] y) { y = Relu (x) }")
    feeds, sizes = runnable_inputs(model, None, {}, lambda feeds: None)
    assert feeds["x"].shape == (1, 4) and sizes == {"?x.0": 1}


def test_sizes_that_depend_on_one_another_may_be_long() -> None:
    """As those of a voice detector: its state has the batch of the samples, whose windows want a hundred of them."""
    model = parse("g (float[?, ?] x, float[2, ?, 8] state) => (float y) { a = Shape (state) y = Cast <to = 1> (a) }")

    def run(feeds: Mapping[str, Any]) -> None:
        if feeds["x"].shape[0] != feeds["state"].shape[1] or feeds["x"].shape[0] == 1 or feeds["x"].shape[1] <= 100:
            raise NotTimed(f"not {feeds['x'].shape} and {feeds['state'].shape}")

    feeds, _ = runnable_inputs(model, None, {}, run)
    assert feeds["x"].shape[0] == feeds["state"].shape[1]
