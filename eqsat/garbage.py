"""Garbage: how often Python looks for cycles while eqsat runs, and when memory goes back to the system."""

import atexit
import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

MANY = 10_000
"""The nodes of a graph from which work on it leaves much memory."""
_OBJECTS = 1_000_000  # made between two runs of the cycle collector: more than a model of a thousand nodes needs


def collect_rarely(objects: int = _OBJECTS) -> None:
    """Makes the cycle collector run rarely in a process that is all eqsat's own, after so many
    `objects`: graphs and rules are many small objects, and few of them are garbage. At the end of the
    process it does not run.
    """
    gc.set_threshold(objects)
    atexit.unregister(gc.freeze)
    # The interpreter would look through all objects several times before it ends, which takes longer
    # than the rest of its end.
    atexit.register(gc.freeze)


def give_back(nodes: int) -> None:
    """Gives freed memory back to the system where its C library can, if what is done had to do with
    many nodes.

    Turns of a graph of 100,000 nodes leave some hundred megabytes. They leave no cycles of objects, which
    the collector would take half a second to look for (tests/end_to_end/test_garbage.py).
    """
    import ctypes

    if nodes < MANY:
        return
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return  # no glibc
    trim(0)


class _Runs:
    """The runs under way in this process, and the thresholds that the process had before them."""

    lock = threading.Lock()
    count = 0
    before = gc.get_threshold()


@contextmanager
def collecting_rarely() -> Generator[None]:
    """Makes the cycle collector run rarely in a process that is somebody else's.

    The thresholds are as before once no run is left, in whatever order runs of several threads end.
    A collector that is off stays off.
    """
    with _Runs.lock:
        if not _Runs.count:
            _Runs.before = gc.get_threshold()
            if _Runs.before[0]:
                gc.set_threshold(max(_OBJECTS, _Runs.before[0]), *_Runs.before[1:])
        _Runs.count += 1
    try:
        yield
    finally:
        with _Runs.lock:
            _Runs.count -= 1
            if not _Runs.count:
                gc.set_threshold(*_Runs.before)
