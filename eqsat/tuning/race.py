"""A race: models are timed in turn, in batches, until one is clearly fastest or time is up.

Each batch loads all models anew, because two sessions of one model differ by up to three in a
hundred. It times each model a few times, in a random order. Models are compared by the ratio of
their times within a batch, and each batch is one observation. A model is faster than another if the
ratio is below 1 with a confidence of 99 in a hundred. The test uses only the order of the
observations, so it needs at least 7.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple, TypeAlias

from eqsat.frozen import mutable

Batch: TypeAlias = Callable[[Sequence[Sequence[str]]], Mapping[str, Sequence[float]]]
"""Times models in rounds, with new sessions. A round names the models in their order. Returns
seconds by name and round.
"""

_DOUBT = 0.01  # the chance that a model that is not faster counts as faster
FEWEST = 7  # batches that can distinguish two models: 2 ** -7 is less than the doubt
_MOST = 60  # batches at most
_CLOSE = 0.01  # a ratio known to this width needs no more batches
_MOST_ROUNDS = 40  # rounds of one batch


class Interval(NamedTuple):
    """A ratio of times: its median, and bounds around the true median."""

    low: float
    middle: float
    high: float


@mutable
class Race:
    """The seconds of each model that ran: the median of each batch."""

    seconds: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    @property
    def batches(self) -> int:
        """Returns the number of batches that every model still in the race has run."""
        return max(map(len, self.seconds.values()), default=0)

    def median(self, name: str) -> float:
        """Returns the median seconds of a run."""
        return statistics.median(self.seconds[name])

    def ratio(self, name: str, other: str) -> Interval:
        """Returns the time of one model divided by the time of another."""
        ratios = sorted(mine / its for mine, its in zip(self.seconds[name], self.seconds[other], strict=False))
        middle = statistics.median(ratios)
        outside = _outside(len(ratios))
        if not outside:
            return Interval(0.0, middle, math.inf)
        return Interval(ratios[outside - 1], middle, ratios[-outside])

    def fastest(self, choice: str, original: str) -> str:
        """Returns the model to keep. The base is the choice, or the original if the original's
        median is lower. A model that is faster than the base wins; otherwise the base stays.
        """
        base = original if self.ratio(choice, original).middle > 1 else choice
        faster = [name for name in self.seconds if name != base and self.ratio(name, base).high < 1]
        return min(faster, key=lambda name: self.ratio(name, base).middle, default=base)

    def settled(self, choice: str, original: str) -> bool:
        """Tells whether more batches would hardly change the result."""
        best = self.fastest(choice, original)
        ratios = [self.ratio(name, best) for name, each in self.seconds.items() if name != best and len(each) == self.batches]
        return self.batches >= FEWEST and all(ratio.low > 1 or ratio.high - ratio.low < _CLOSE for ratio in ratios)


def _outside(count: int) -> int:
    """Returns how many of `count` observations, from either end, lie outside the bounds of the
    median.
    """
    outside, chance = 0, 0.5**count
    while chance <= _DOUBT:
        outside += 1
        chance += math.comb(count, outside) * 0.5**count
    return outside


def run_race(
    names: Sequence[str], choice: str, original: str, batch: Batch, seconds: float, clock: Callable[[], float], progress: Callable[[str], None]
) -> Race:
    """Times models for about `seconds` by the clock. The choice and the original stay to the end.
    Of the other models, the slowest leave after the first batch if there is no time for all.
    """
    shuffle = random.Random(0)
    begun = clock()
    progress(f"time {len(names)} models")
    first = batch([names])
    cost = (clock() - begun) / len(names)
    running = list(names)
    optional = sorted((name for name in names if name not in (choice, original)), key=lambda name: first[name][0])
    while optional and cost * len(running) * FEWEST > seconds:
        running.remove(optional.pop())
    # Each timed run has an untimed one before it
    once = max(2 * sum(first[name][0] for name in running), 1e-9)
    loading = max(cost * len(running) - once, 0.0)
    rounds = min(max(math.ceil(loading / once), 1), _MOST_ROUNDS)
    race = Race({name: list(first[name]) for name in names})
    while len(running) > 1 and clock() - begun < seconds and race.batches < _MOST and not race.settled(choice, original):
        progress(f"time {len(running)} models, {clock() - begun:.0f} of {seconds:.0f} s")
        found = batch([shuffle.sample(running, len(running)) for _ in range(rounds)])
        for name in running:
            race.seconds[name].append(statistics.median(found[name]))
    return race
