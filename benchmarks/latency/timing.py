"""Timing: `python -m benchmarks.latency.timing` times variants of a model side by side in one process.

A request comes as JSON on standard input, and the measurements go as JSON to standard output. All
sessions are loaded with one thread and all of ONNX Runtime's optimizations. Then each round runs
every variant once in an order drawn anew, so that what slows the machine down for a while slows all
variants down alike, and none always finds the caches as the same other left them. Rounds end when
the medians of their first and second half agree, or at the limit.
"""

from __future__ import annotations

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

WARM_UP = 3
FEWEST = 20
CLOCKS = {"wall": time.perf_counter_ns, "cpu": time.thread_time_ns}
SETTLED = 0.01


@dataclass(frozen=True)
class Request:
    """What to time. `description` is the JSON of the inputs; `rounds` and `seconds` are limits."""

    variants: Mapping[str, str]
    description: str
    rounds: int
    seconds: float
    clock: str = "wall"


@dataclass(frozen=True)
class Measured:
    """One variant: milliseconds of a run, and how many kernels a run launches."""

    median: float
    minimum: float
    launches: int


@dataclass(frozen=True)
class Measurement:
    """The variants that ran, and for the others the reason. `spread` is how far the two halves of the
    rounds differ at most, in parts of the median.
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
        return cls(**{**data, "measured": {name: Measured(**value) for name, value in data["measured"].items()}})


def spread(times: Sequence[float]) -> float:
    """How far the median of the second half is from that of the first, in parts of the first."""
    half = len(times) // 2
    return abs(statistics.median(times[half:]) / statistics.median(times[:half]) - 1)


def measure(request: Request) -> Measurement:
    """Times all variants that load and run."""
    inputs = Description.from_json(request.description).draw()
    sessions: dict[str, Any] = {}
    failures: dict[str, str] = {}
    for name, path in request.variants.items():
        try:
            session = open_session(path)
            for _ in range(WARM_UP):
                session.run(None, inputs)
            sessions[name] = session
        except Exception as error:  # the runtime has its own exception for each of its statuses
            failures[name] = str(error).splitlines()[0] if str(error) else type(error).__name__
    times = _rounds(sessions, inputs, request) if sessions else {}
    measured = {name: Measured(statistics.median(each) / 1e6, min(each) / 1e6, launches(request.variants[name], inputs)) for name, each in times.items()}
    rounds = min((len(each) for each in times.values()), default=0)
    return Measurement(measured, failures, rounds, max(map(spread, times.values()), default=0.0))


def _rounds(sessions: Mapping[str, Any], inputs: Mapping[str, np.ndarray], request: Request) -> dict[str, list[float]]:
    """Nanoseconds of each run of each session."""
    clock = CLOCKS[request.clock]
    times: dict[str, list[float]] = {name: [] for name in sessions}
    order, shuffle = list(sessions), random.Random(0)
    end = time.monotonic() + request.seconds
    for number in range(request.rounds):
        shuffle.shuffle(order)
        for name in order:
            run = sessions[name].run
            begin = clock()
            run(None, inputs)
            times[name].append(clock() - begin)
        done = number + 1
        if done >= 2 and time.monotonic() > end:
            break
        if done >= FEWEST and done % 10 == 0 and max(map(spread, times.values())) < SETTLED:
            break
    return times


def launches(path: str, inputs: Mapping[str, np.ndarray]) -> int:
    """The kernels that one run launches, by the runtime's own profile."""
    with tempfile.TemporaryDirectory() as folder:
        session = open_session(path, str(Path(folder) / "profile"))
        session.run(None, dict(inputs))
        return count_launches(json.loads(Path(session.end_profiling()).read_text(encoding="utf-8")))


def count_launches(events: Sequence[Mapping[str, Any]]) -> int:
    """The kernels among the events of a profile of one run."""
    return sum(event.get("cat") == "Node" and str(event["name"]).endswith("_kernel_time") for event in events)


def main() -> None:
    print(measure(Request(**json.load(sys.stdin))).to_json())


if __name__ == "__main__":
    main()
