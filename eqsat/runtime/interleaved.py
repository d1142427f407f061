"""Interleaved timing: models run in turn in ONNX Runtime, so that a disturbance slows all alike.

All sessions have one thread and all of the runtime's optimizations. The clock is the thread's own
processor time, so that other processes do not count: with one thread ONNX Runtime computes in the
thread that calls it. Custom operators may have threads of their own. With them, and on systems with
a coarse clock of the thread, the wall clock counts. An untimed run comes before each timed one,
because the other models have emptied the caches. Models that take less than a millisecond run
several times in one measurement.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eqsat.runtime.session import feed, import_onnxruntime, with_known_versions
from eqsat.runtime.worker import RemoteError, Worker, WorkerDied, WorkerTimeout

THREADS = 1
_SLICE = 1e-3  # the least seconds of one measurement
_FINE = 1e-6  # the coarsest resolution, in seconds, of a useful clock
_MOST_RUNS = 1000  # the most runs of one measurement
_PATIENCE = 600.0  # seconds for one call


class NotTimed(Exception):
    """ONNX Runtime refuses a model or its inputs, crashes on it, or takes too long."""


class TooSlow(NotTimed):
    """A call took longer than it may. Another one would hardly be faster."""


def time_rounds(
    models: Mapping[str, bytes], folder: str | None, library: str | None, feeds: Mapping[str, Any], rounds: Sequence[Sequence[str]], worker: Worker
) -> dict[str, list[float]]:
    """Returns the seconds of a run of each model in each round.

    A round lists the names of models in the order in which they run. All sessions are new. `folder`
    holds external data, and `library` custom operators. Raises `NotTimed`, or `TooSlow`.
    """
    asked = {name: models[name] for name in dict.fromkeys(name for order in rounds for name in order)}
    try:
        found: dict[str, list[float]] = worker.call(
            "eqsat.runtime.interleaved:run_rounds", asked, folder, library, dict(feeds), [list(order) for order in rounds], timeout=_PATIENCE
        )
    except RemoteError as error:
        raise NotTimed(error.message) from None
    except WorkerDied as error:
        raise NotTimed(f"ONNX Runtime {error}") from None
    except WorkerTimeout as error:
        raise TooSlow(f"ONNX Runtime {error}") from None
    return found


# The rest of this module runs in the worker.


def run_rounds(
    models: Mapping[str, bytes], folder: str | None, library: str | None, feeds: Mapping[str, Any], rounds: Sequence[Sequence[str]]
) -> dict[str, list[float]]:
    """Does what `time_rounds` promises. Raises ONNX Runtime's exceptions."""
    clock = _clock(library)
    ready = {name: feed(value) for name, value in feeds.items()}
    sessions = {name: users_session(model, folder, library) for name, model in models.items()}
    times = {name: _runs(session, ready) for name, session in sessions.items()}
    found: dict[str, list[float]] = {name: [] for name in models}
    for order in rounds:
        for name in order:
            run, count = sessions[name].run, times[name]
            run(None, ready)
            begin = clock()
            for _ in range(count):
                run(None, ready)
            found[name].append((clock() - begin) / count)
    return found


def _clock(library: str | None) -> Callable[[], float]:
    """Returns the clock that shows the least of the machine's other work."""
    fine = time.get_clock_info("thread_time").resolution < _FINE
    return time.thread_time if library is None and fine else time.perf_counter


def _runs(session: Any, feeds: Mapping[str, Any]) -> int:
    """Returns the number of runs in one measurement.

    The first run does not count, because it packs weights and allocates memory.
    """
    session.run(None, feeds)
    begin = time.perf_counter()
    session.run(None, feeds)
    return min(max(int(_SLICE / max(time.perf_counter() - begin, 1e-9)), 1), _MOST_RUNS)


def users_session(model: bytes, folder: str | None, library: str | None, threads: int = THREADS, profile: str | None = None) -> Any:
    """Returns a session as users have it, except for its number of threads.

    `folder` holds external data, and `library` custom operators. `profile` is the beginning of the
    name of the file to which it writes its profile. Raises ONNX Runtime's exceptions.
    """
    return with_known_versions(model, lambda known: _session(known, folder, library, threads, profile))


def _session(model: bytes, folder: str | None, library: str | None, threads: int, profile: str | None) -> Any:
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    # Threads of an idle session would disturb the others.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    if profile is not None:
        options.enable_profiling, options.profile_file_prefix = True, profile
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.path.abspath(folder))
    if library is not None:
        options.register_custom_ops_library(library)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
