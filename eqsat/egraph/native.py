"""egglog's native module, without the Python package around it.

The package takes more than half a second to import, for a language that is embedded in Python; the
engine speaks egglog's own language. Both are one module: whoever imports egglog before or after
gets the same.
"""

from __future__ import annotations

import sys
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
