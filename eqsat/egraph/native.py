"""egglog's native module, without the Python package around it, and with quicker callbacks.

The package takes more than half a second to import, for a language that is embedded in Python; the
engine speaks egglog's own language. Both are one module: whoever imports egglog before or after
gets the same.
"""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

_NAME = "egglog.bindings"


def import_bindings() -> Any:
    """Return the module. Raise `ModuleNotFoundError` if egglog is not installed."""
    known = sys.modules.get(_NAME)
    if known is not None:
        return known
    package = PathFinder.find_spec("egglog")
    spec = PathFinder.find_spec(_NAME, package.submodule_search_locations) if package is not None else None
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError("egglog is not installed", name=_NAME)
    module = module_from_spec(spec)
    # It can be initialized once in a process.
    sys.modules[_NAME] = module
    spec.loader.exec_module(module)
    return module


class _QuickIntegers:
    """While it lasts, `cloudpickle.dumps` leaves integers to `pickle`, which makes the same bytes.

    egglog keeps Python objects as pickles, and pickles the result of each callback. The engine's
    results are integers, and cloudpickle's pickler, which is written in Python, takes ten times as
    long. The last thread that leaves puts the function back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = 0
        self._slow: Callable[..., bytes] = bytes

    def __enter__(self) -> None:
        cloudpickle: Any = import_module("cloudpickle")
        with self._lock:
            self._threads += 1
            if self._threads == 1:
                self._slow, cloudpickle.dumps = cloudpickle.dumps, self._dumps

    def __exit__(self, *error: object) -> None:
        cloudpickle: Any = import_module("cloudpickle")
        with self._lock:
            self._threads -= 1
            if not self._threads:
                cloudpickle.dumps = self._slow

    def _dumps(self, value: object, *arguments: Any, **options: Any) -> bytes:
        if type(value) is int and not arguments and not options:
            return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)  # cloudpickle's own default
        return self._slow(value, *arguments, **options)


QUICK_INTEGERS = _QuickIntegers()
"""The context in which egglog's callbacks return integers quickly."""
