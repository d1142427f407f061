"""eqsat: an equality-saturation optimizer for ONNX models. `optimize` is the main job; everything else is loaded when it is asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from eqsat.errors import InputError

if TYPE_CHECKING:
    from eqsat.model import count_nodes
    from eqsat.pipeline import Result, optimize
    from eqsat.verifier import verify_files as verify

__version__ = "0.1.0"
__all__ = ["InputError", "Result", "count_nodes", "optimize", "verify"]

_LAZY = {
    "optimize": ("eqsat.pipeline", "optimize"),
    "Result": ("eqsat.pipeline", "Result"),
    "count_nodes": ("eqsat.model", "count_nodes"),
    "verify": ("eqsat.verifier", "verify_files"),
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        module, attribute = _LAZY[name]
        return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"module 'eqsat' has no attribute '{name}'")
