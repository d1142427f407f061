"""The stopwatch: times variants of a model side by side in ONNX Runtime.

The variants run in a worker process with all of the runtime's optimizations, and share the
disturbances:

- Each round times every variant once, in an order drawn anew, so that what slows the machine down
  for a while slows all variants down alike.
- An untimed run comes before each timed one, because the other variants emptied the caches.
- After some rounds all sessions are loaded anew, because two sessions of the same model differ by
  up to three in a hundred, by where their memory lies. A new session has one more untimed run: the
  runtime lays out its memory in the first run and allocates it in the second.

Rounds end when their first and second half agree on the ratios of the variants, or at a limit. Each
variant runs once before, so that one that crashes or hangs does not take
the others with it. If one does so later, timing begins again without it.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eqsat.comparing.child import one_line
from eqsat.runtime.interleaved import NotTimed, TooSlow, users_session
from eqsat.runtime.session import feed
from eqsat.runtime.worker import RemoteError, Worker, WorkerDied, WorkerTimeout
from eqsat.settings import silent

LEAST = 2  # rounds, whose halves can be compared
BATCH = 8  # rounds with the same sessions
FEWEST = 8  # batches; a handful of loads may be lucky
STEADY = 3  # batches after each of which the halves agree; agreeing once may be luck
CLOCKS = {"wall": time.perf_counter_ns, "cpu": time.thread_time_ns}
SETTLED = 0.01
_MODULE = "eqsat.comparing.stopwatch"


@dataclass(frozen=True)
class Request:
    """The models to time, by name, and their inputs. `rounds` and `seconds` are limits, which
    the last round may exceed. The first run of a model may take `patience` seconds, and the runtime
    may take `memory` bytes. `library` is the path of the models' custom operators.
    """

    variants: Mapping[str, str]
    feeds: Mapping[str, Any]
    rounds: int
    seconds: float
    clock: str = "wall"
    threads: int = 1
    patience: float = 600.0
    memory: int | None = None
    library: str | None = None


@dataclass(frozen=True)
class Measured:
    """One variant: milliseconds per run, and the number of kernels that a run launches. Half of the
    runs took between `low` and `high`. `relative` is the time in parts of the first variant's.
    """

    median: float
    minimum: float
    launches: int
    relative: float
    low: float = 0.0
    high: float = 0.0


@dataclass(frozen=True)
class Measurement:
    """The variants that ran, and the reason for each of the others. `spread` says how far two
    halves of the rounds disagree.
    """

    measured: Mapping[str, Measured] = field(default_factory=dict[str, Measured])
    failures: Mapping[str, str] = field(default_factory=dict[str, str])
    rounds: int = 0
    spread: float = 0.0


def spread(times: Mapping[str, Sequence[float]]) -> float:
    """Returns how far the two halves of the rounds disagree at most. They are compared on the ratios
    of the variants to the first one, or on the median if there is no other variant.
    """
    rounds = len(next(iter(times.values()), ()))
    early, late = ({name: each[part] for name, each in times.items()} for part in (slice(rounds // 2), slice(rounds // 2, None)))
    if len(times) == 1:
        first, second = (statistics.median(next(iter(half.values()))) for half in (early, late))
        return abs(second / first - 1)
    before, after = relative(early), relative(late)
    return max((abs(after[name] / before[name] - 1) for name in times), default=0.0)


def relative(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Returns the time of each variant in parts of the first one's: the median of the ratios in all rounds.

    The runs of a round are neighbors. A machine that is fast for some rounds and slow for others takes
    the medians of two equal variants apart, where one falls among the fast runs and the other does not.
    """
    first = next(iter(times.values()), ())
    return {name: statistics.median([one / base for one, base in zip(each, first, strict=True)]) for name, each in times.items()}


def measure(request: Request, worker: Worker, progress: Callable[[str], None] = silent) -> Measurement:
    """Times all variants that load and run. No variant can take this process down."""
    launched: dict[str, int] = {}
    failures: dict[str, str] = {}
    begun = time.monotonic()
    for name, path in request.variants.items():
        progress(f"run {name}")
        try:
            launched[name] = launches(path, request, worker)
        except NotTimed as error:
            failures[name] = str(error)
            worker.stop()  # the next one must not suffer from what this one left in the process
    progress(f"time {len(launched)} models, for {request.seconds:.0f} s at most")
    # Only a variant that hangs may be late: a round takes less than all first runs.
    patient = replace(request, patience=request.patience + 2 * (LEAST + 1) * (time.monotonic() - begun))
    times = timed({name: request.variants[name] for name in launched}, patient, worker, failures)
    ratios = relative(times)
    measured = {name: _measured([one / 1e6 for one in each], launched[name], ratios[name]) for name, each in times.items()}
    return Measurement(measured, failures, min(map(len, times.values()), default=0), spread(times))


def launches(path: str, request: Request, worker: Worker) -> int:
    """Returns the number of kernels that one run of a model launches, by the runtime's own profile.

    Raises `NotTimed` if the model does not run.
    """
    return _called(worker, request.patience, request.memory, "count_launches", path, dict(request.feeds), request.threads, request.library)


def _measured(times: Sequence[float], launched: int, ratio: float) -> Measured:
    low, middle, high = statistics.quantiles(times, n=4, method="inclusive") if len(times) > 1 else (times[0],) * 3
    return Measured(middle, min(times), launched, ratio, low, high)


def timed(paths: Mapping[str, str], request: Request, worker: Worker, failures: dict[str, str]) -> dict[str, list[float]]:
    """Returns the nanoseconds of each timed run. A variant that fails goes to `failures`."""
    left = dict(paths)
    while left:
        with tempfile.NamedTemporaryFile() as turn:
            asked = (left, dict(request.feeds), request.rounds, request.seconds, request.clock, request.threads, turn.name, request.library)
            try:
                return _called(worker, request.patience + request.seconds, request.memory, "run_rounds", *asked)
            except NotTimed as error:
                number = turn.read(1)
                guilty = list(left)[number[0] if number else 0]
                failures[guilty] = str(error)
                del left[guilty]
                worker.stop()
    return {}


@contextmanager
def own_worker() -> Generator[Worker]:
    """Yields a worker process that ends with the block."""
    worker = Worker()
    try:
        yield worker
    finally:
        worker.stop()


def _called(worker: Worker, seconds: float, memory: int | None, function: str, *arguments: Any) -> Any:
    try:
        return worker.call(f"{_MODULE}:{function}", *arguments, timeout=seconds, memory=memory)
    except RemoteError as error:
        raise NotTimed(one_line(error.message or error.kind)) from None
    except WorkerDied as error:
        raise NotTimed(f"ONNX Runtime {error}") from None
    except WorkerTimeout as error:
        raise TooSlow(f"ONNX Runtime {error}") from None


# The rest of this module runs in the worker.


def count_launches(path: str, feeds: Mapping[str, Any], threads: int, library: str | None) -> int:
    """Does what `launches` promises. Raises ONNX Runtime's exceptions."""
    with tempfile.TemporaryDirectory() as folder:
        session = _session(path, threads, library, str(Path(folder) / "profile"))
        session.run(None, {name: feed(value) for name, value in feeds.items()})
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    return sum(event.get("cat") == "Node" and str(event["name"]).endswith("_kernel_time") for event in events)


def run_rounds(
    paths: Mapping[str, str], feeds: Mapping[str, Any], rounds: int, seconds: float, clock: str, threads: int, turn: str, library: str | None
) -> dict[str, list[float]]:
    """Returns the nanoseconds of each timed run of each variant. The first byte of the file `turn`
    is the number of the variant whose turn it is.
    """
    now, shuffle = CLOCKS[clock], random.Random(0)
    ready = {name: feed(value) for name, value in feeds.items()}
    times: dict[str, list[float]] = {name: [] for name in paths}
    order = list(paths)
    number = {name: bytes([place]) for place, name in enumerate(order)}
    end = time.monotonic() + seconds
    steady = 0
    with open(turn, "wb", buffering=0) as file:
        for batch in itertools.count(1):
            shuffle.shuffle(order)
            runs: dict[str, Callable[..., Any]] = {}
            for name in order:
                os.pwrite(file.fileno(), number[name], 0)
                runs[name] = _session(paths[name], threads, library).run
                runs[name](None, ready)
            for done in range(BATCH * (batch - 1) + 1, BATCH * batch + 1):
                shuffle.shuffle(order)
                for name in order:
                    os.pwrite(file.fileno(), number[name], 0)
                    runs[name](None, ready)
                    begin = now()
                    runs[name](None, ready)
                    times[name].append(now() - begin)
                if done >= LEAST and (done >= rounds or time.monotonic() > end):
                    return times
            steady = steady + 1 if spread(times) < SETTLED else 0
            if batch >= FEWEST and steady >= STEADY:
                return times
    raise AssertionError("the batches have no end of their own")


def _session(path: str, threads: int, library: str | None, profile: str | None = None) -> Any:
    return users_session(Path(path).read_bytes(), str(Path(path).parent), library, threads, profile)
