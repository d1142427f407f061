"""One thread: how the command line starts, so that its worker can be a fork of it.

The caller is the only user of the process. Numpy's library of matrix products starts a thread for
each core when it is loaded. These threads take more processor time than the rest of the load, and
a process with threads cannot be forked.
"""

from __future__ import annotations

import importlib
import os

_THREADS = "OPENBLAS_NUM_THREADS"


def stay_single_threaded() -> None:
    """Loads numpy without threads, and lets the worker be a fork of this process.

    What the user has set stays. Processes that this one starts see the environment as it was.
    """
    from eqsat.runtime.worker import fork_if_alone

    fork_if_alone()
    if _THREADS in os.environ:
        return
    os.environ[_THREADS] = "1"
    try:
        importlib.import_module("numpy")
    finally:
        del os.environ[_THREADS]
