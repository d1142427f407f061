"""A campaign: seeds come in, outcomes go out, one by one. Each seed runs in a worker process, which
crashes and hangs can not leave.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from eqsat.runtime.worker import RemoteError, Worker, WorkerDied, WorkerTimeout

from .trial import DIFFERENT, NOTHING, Outcome

SECONDS = 90.0  # in which a model of a dozen nodes is drawn, optimized, run and verified, hundreds of times over
_HERE = __name__.rpartition(".")[0]


@cache
def worker() -> Worker:
    """The process in which all seeds of this one run: what starts it and loads the rules is paid
    once.
    """
    return Worker()


def outcomes(seeds: Iterable[int], exact: bool) -> Iterator[Outcome]:
    """What each seed comes to; what takes the process down is the runtime's if the original alone
    does so.
    """
    for seed in seeds:
        try:
            yield worker().call(f"{_HERE}.trial:attempt", seed, exact, timeout=SECONDS)
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


def smaller(seed: int, exact: bool) -> str:
    """The case that goes wrong, made small, as text."""
    try:
        return worker().call(f"{_HERE}.minimize:minimized", seed, exact, timeout=10 * SECONDS)
    except (RemoteError, WorkerDied, WorkerTimeout) as failure:
        return f"it could not be made small: {failure}"
