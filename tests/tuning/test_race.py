"""Races with made-up times: the winner, the length of a race, and the models that leave it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

import pytest

from eqsat.tuning.race import FEWEST, Race, run_race


class Machine:
    """A clock, and models whose runs take made-up times and move it."""

    def __init__(self, seconds: Mapping[str, float], noise: float = 0.0, loading: float = 0.1) -> None:
        self.now = 0.0
        self.seconds = seconds
        self.loading = loading
        self.orders: list[Sequence[str]] = []
        self._noise = noise
        self._random = random.Random(7)

    def batch(self, rounds: Sequence[Sequence[str]]) -> Mapping[str, Sequence[float]]:
        self.now += self.loading * len(rounds[0])
        # A disturbance stays with a loaded model, as on a real machine.
        luck = {name: 1 + self._noise * self._random.uniform(-1, 1) for name in rounds[0]}
        self.orders += rounds
        found: dict[str, list[float]] = {name: [] for name in rounds[0]}
        for order in rounds:
            for name in order:
                found[name].append(self.seconds[name] * luck[name])
                self.now += 2 * self.seconds[name]
        return found

    def race(self, names: Sequence[str], seconds: float = 30.0, progress: Callable[[str], None] = lambda stage: None) -> Race:
        return run_race(names, "choice", "original", self.batch, seconds, lambda: self.now, progress)


def kept(seconds: Mapping[str, float], noise: float = 0.01, limit: float = 30.0) -> str:
    return Machine(seconds, noise).race(list(seconds), limit).fastest("choice", "original")


def test_the_fastest_is_kept() -> None:
    assert kept({"choice": 0.010, "launches": 0.008, "simplified": 0.009, "original": 0.011}) == "launches"
    assert kept({"choice": 0.010, "launches": 0.012, "original": 0.008}) == "original"


def test_what_is_faster_by_less_than_the_spread_is_not_kept() -> None:
    assert kept({"choice": 0.0100, "launches": 0.0099, "original": 0.0120}, noise=0.2) == "choice"
    assert kept({"choice": 0.0100, "launches": 0.0099, "original": 0.0120}, noise=0.0001) == "launches"


def test_a_choice_that_is_slower_than_the_original_in_the_median_is_not_kept() -> None:
    assert kept({"choice": 0.01001, "original": 0.01}, noise=0.0) == "original"
    assert kept({"choice": 0.01, "original": 0.01}, noise=0.0) == "choice"


def test_where_it_is_unclear_the_lower_median_decides_between_the_choice_and_the_original() -> None:
    race = Race({"choice": [1.0, 1.2, 1.2, 1.0, 1.2, 1.2, 1.0], "original": [1.1] * 7})
    assert race.ratio("choice", "original").low < 1 < race.ratio("choice", "original").high
    assert race.fastest("choice", "original") == "original"


def test_without_time_nothing_takes_the_place_of_the_choice() -> None:
    seconds = {"choice": 1.0, "launches": 0.1, "original": 2.0}
    machine = Machine(seconds)
    race = machine.race(list(seconds), 5.0)
    assert race.batches < FEWEST
    assert race.fastest("choice", "original") == "choice"
    assert machine.now < 15.0


@pytest.mark.parametrize(("noise", "longest"), [(0.0, 15.0), (0.3, 32.0)])
def test_a_race_ends_when_it_is_clear_or_time_is_up(noise: float, longest: float) -> None:
    seconds = {"choice": 0.01, "launches": 0.01, "original": 0.011}
    machine = Machine(seconds, noise)
    machine.race(list(seconds))
    assert machine.now < longest


def test_the_slowest_leave_where_there_is_no_time_for_all() -> None:
    seconds = {"choice": 0.5, "slow": 0.9, "fast": 0.3, "original": 0.6}
    machine = Machine(seconds, loading=0.2)
    race = machine.race(list(seconds), 35.0)
    assert len(race.seconds["slow"]) == 1 and race.batches >= FEWEST
    assert all("slow" not in order for order in machine.orders[1:])
    assert race.fastest("choice", "original") == "fast"
    assert race.ratio("slow", "original").low == 0.0, "one batch tells nothing for sure"


def test_orders_are_drawn_anew_and_hold_every_model_once() -> None:
    seconds = {"choice": 0.01, "launches": 0.01, "original": 0.01}
    machine = Machine(seconds, noise=0.1)
    machine.race(list(seconds))
    assert {tuple(sorted(order)) for order in machine.orders} == {tuple(sorted(seconds))}
    assert len({tuple(order) for order in machine.orders}) == 6


def test_a_single_model_is_not_raced() -> None:
    machine = Machine({"original": 0.01})
    race = run_race(["original"], "original", "original", machine.batch, 30.0, lambda: machine.now, lambda stage: None)
    assert race.batches == 1 and race.fastest("original", "original") == "original"


def test_bounds_hold_the_true_median_nearly_always() -> None:
    """In a thousand races of equals, at most a few in a hundred call one model faster."""
    drawn = random.Random(3)
    for batches in (FEWEST - 1, FEWEST, 12, 31):
        races = [Race({name: [drawn.lognormvariate(0, 0.1) for _ in range(batches)] for name in ("choice", "original")}) for _ in range(1000)]
        wrong = sum(race.ratio("choice", "original").high < 1 for race in races)
        assert wrong <= (0 if batches < FEWEST else 25)
        assert batches < 31 or sum(race.ratio("choice", "original").high < 1.1 for race in races) > 500, "nor are they wide"


def test_progress_is_told() -> None:
    told: list[str] = []
    seconds = {"choice": 0.01, "original": 0.01}
    Machine(seconds).race(list(seconds), progress=told.append)
    assert told[0] == "time 2 models" and "of 30 s" in told[-1]
