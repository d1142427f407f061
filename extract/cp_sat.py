"""The module of ortools for CP-SAT, without pandas.

It imports pandas for functions on series alone, which nothing here calls, and pandas takes four
fifths of the import: a fifth of a second, for a graph that may take one.
"""

from __future__ import annotations

import builtins
import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

_NAME = "ortools.sat.python.cp_model"
_PANDAS = "pandas"


class _Series:
    """Stands for the classes of pandas, in types and in questions whether something is a series."""


def import_cp_model() -> Any:
    """Return the module.

    It is a copy of its own, so that whoever imports ortools or pandas before, after or meanwhile gets
    them whole. Where one of them is imported already, or the copy does not begin, it is the usual one.
    """
    if _NAME in sys.modules or _PANDAS in sys.modules:
        return import_module(_NAME)
    try:
        return _copy()
    except (AttributeError, ImportError):  # a version of ortools that asks pandas for more
        return import_module(_NAME)


def _copy() -> ModuleType:
    spec = find_spec(_NAME)
    loader: Any = spec and spec.loader
    if spec is None or loader is None:
        raise ModuleNotFoundError("ortools is not installed", name=_NAME)
    pandas: Any = ModuleType(_PANDAS)
    pandas.Index = pandas.Series = _Series
    module = module_from_spec(spec)

    def imported(name: str, *arguments: Any) -> ModuleType:
        return pandas if name == _PANDAS else builtins.__import__(name, *arguments)

    # Import statements ask the module's own builtins.
    vars(module)["__builtins__"] = {**vars(builtins), "__import__": imported}
    exec(loader.get_code(_NAME), vars(module))
    return module
