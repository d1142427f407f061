"""A campaign turns seeds into outcomes, one by one.

Each seed runs in a worker process, which contains crashes and hangs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from eqsat.runtime.worker import RemoteError, Worker, WorkerDied, WorkerTimeout

from .trial import DIFFERENT, NOTHING, Outcome

SECONDS = 90.0  # enough to draw, optimize, run and verify a model of a dozen nodes hundreds of times
_HERE = __name__.rpartition(".")[0]


@cache
def worker() -> Worker:
    """Returns the process that runs all seeds.

    Its start, and loading the rules, happen once.
    """
    return Worker()


def outcomes(seeds: Iterable[int], exact: bool, engine: str = "saturation") -> Iterator[Outcome]:
    """Yields the outcome of each seed.

    If the process dies, the runtime is to blame if the original alone kills it too.
    """
    for seed in seeds:
        try:
            yield worker().call(f"{_HERE}.trial:attempt", seed, exact, engine, timeout=SECONDS)
        except RemoteError as error:
            yield Outcome(seed, DIFFERENT, f"the fuzzer itself fails: {error}")
        except (WorkerDied, WorkerTimeout) as failure:
            yield _accused(seed, failure)


def _accused(seed: int, failure: Exception) -> Outcome:
    try:
        worker().call(f"{_HERE}.trial:original", seed, timeout=SECONDS / 3)
    except (WorkerDied, WorkerTimeout, RemoteError):
        return Outcome(seed, NOTHING, f"the runtime {failure} on the original model")
    return Outcome(seed, DIFFERENT, f"the process {failure} on the optimized model, or on the way there")


def smaller(seed: int, exact: bool, engine: str = "saturation") -> str:
    """Returns the failing case of a seed as text, made small."""
    try:
        return worker().call(f"{_HERE}.minimize:minimized", seed, exact, engine, timeout=10 * SECONDS)
    except (RemoteError, WorkerDied, WorkerTimeout) as failure:
        return f"it could not be made small: {failure}"
