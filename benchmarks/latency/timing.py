"""Timing: `python -m benchmarks.latency.timing` times variants of a model side by side in one
process.

A request comes as JSON on standard input, and the measurements go as JSON to standard output. All
sessions have one thread and all of ONNX Runtime's optimizations. All variants share the
disturbances:

- Each round times every variant once, in an order drawn anew, so that what slows the machine down
  for a while slows all variants down alike.
- An untimed run comes before each timed one, because the other variants emptied the caches.
- After some rounds all sessions are loaded anew, because two sessions of the same model differ by
  up to three in a hundred, by where their memory lies.

Rounds end when their first and second half agree on the ratios of the variants, or at a limit.
"""

from __future__ import annotations

import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.inputs import Description
from benchmarks.runtime import open_session

BATCH = 8  # rounds with the same sessions
FEWEST = 8  # batches; a handful of loads may be lucky
STEADY = 3  # batches after each of which the halves agree; agreeing once may be luck
CLOCKS = {"wall": time.perf_counter_ns, "cpu": time.thread_time_ns}
SETTLED = 0.01


@dataclass(frozen=True)
class Request:
    """The models to time. `description` is the JSON of the inputs. `rounds` and `seconds` are
    limits, which the last batch of rounds may exceed.
    """

    variants: Mapping[str, str]
    description: str
    rounds: int
    seconds: float
    clock: str = "wall"


@dataclass(frozen=True)
class Measured:
    """One variant: milliseconds per run, and the number of kernels that a run launches."""

    median: float
    minimum: float
    launches: int


@dataclass(frozen=True)
class Measurement:
    """The variants that ran, and the reason for each of the others. `spread` says how far two
    halves of the rounds disagree.
    """

    measured: Mapping[str, Measured] = field(default_factory=dict[str, Measured])
    failures: Mapping[str, str] = field(default_factory=dict[str, str])
    rounds: int = 0
    spread: float = 0.0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Measurement:
        data: dict[str, Any] = json.loads(text)
        measured = {name: Measured(**value) for name, value in data["measured"].items()}
        return cls(measured, data["failures"], data["rounds"], data["spread"])


def spread(times: Mapping[str, Sequence[float]]) -> float:
    """Returns how far the two halves of the rounds disagree at most. They are compared on the ratio
    of a variant's median to the first variant's, or on the median itself if there is no other
    variant.

    A slow hour of the machine changes all medians, but not their ratios.
    """
    first, second = ([statistics.median(each[part]) for each in times.values()] for part in _halves(next(iter(times.values()), ())))
    ratios = [late / early for early, late in zip(first, second, strict=True)]
    return max((abs(ratio / ratios[0] - 1) for ratio in ratios[1:]), default=abs(ratios[0] - 1) if ratios else 0.0)


def _halves(times: Sequence[float]) -> tuple[slice, slice]:
    half = len(times) // 2
    return slice(half), slice(half, None)


def measure(request: Request) -> Measurement:
    """Times all variants that load and run."""
    inputs = Description.from_json(request.description).draw()
    counts: dict[str, int] = {}
    failures: dict[str, str] = {}
    for name, path in request.variants.items():
        try:
            counts[name] = launches(path, inputs)
        except Exception as error:  # the runtime has an exception of its own for each status
            failures[name] = str(error).splitlines()[0] if str(error) else type(error).__name__
    times = timed({name: request.variants[name] for name in counts}, inputs, request) if counts else {}
    measured = {name: Measured(statistics.median(each) / 1e6, min(each) / 1e6, counts[name]) for name, each in times.items()}
    rounds = min((len(each) for each in times.values()), default=0)
    return Measurement(measured, failures, rounds, spread(times))


def timed(paths: Mapping[str, str], inputs: Mapping[str, np.ndarray], request: Request) -> dict[str, list[float]]:
    """Returns the nanoseconds of each timed run of each variant."""
    clock, shuffle = CLOCKS[request.clock], random.Random(0)
    times: dict[str, list[float]] = {name: [] for name in paths}
    order = list(paths)
    end = time.monotonic() + request.seconds
    steady = 0
    for batch in itertools.count(1):
        shuffle.shuffle(order)
        runs = {name: open_session(paths[name]).run for name in order}
        for _ in range(BATCH):
            shuffle.shuffle(order)
            for name in order:
                runs[name](None, inputs)
                begin = clock()
                runs[name](None, inputs)
                times[name].append(clock() - begin)
        steady = steady + 1 if spread(times) < SETTLED else 0
        if (batch >= FEWEST and steady >= STEADY) or batch * BATCH >= request.rounds or (batch > 1 and time.monotonic() > end):
            return times
    raise AssertionError("the batches have no end of their own")


def launches(path: str, inputs: Mapping[str, np.ndarray]) -> int:
    """Returns the number of kernels that one run launches, by the runtime's own profile."""
    with tempfile.TemporaryDirectory() as folder:
        session = open_session(path, str(Path(folder) / "profile"))
        session.run(None, dict(inputs))
        return count_launches(json.loads(Path(session.end_profiling()).read_text(encoding="utf-8")))


def count_launches(events: Sequence[Mapping[str, Any]]) -> int:
    """Returns the number of kernels among the events of a profile of one run."""
    return sum(event.get("cat") == "Node" and str(event["name"]).endswith("_kernel_time") for event in events)


def main() -> None:
    print(measure(Request(**json.load(sys.stdin))).to_json())


if __name__ == "__main__":
    main()
