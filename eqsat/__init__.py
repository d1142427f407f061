"""eqsat: an equality-saturation optimizer for ONNX models.

`optimize` is the main function, `verify` tells whether two models compute the same. `dir(eqsat)`
lists the public names. Each is loaded on first use.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from eqsat.errors import InputError
from eqsat.version import __version__

if TYPE_CHECKING:
    from eqsat.model.model import count_nodes
    from eqsat.pipeline import Result, optimize
    from eqsat.settings import Settings
    from eqsat.verification.verify import Verdict
    from eqsat.verification.verify import verify_files as verify

__all__ = ["InputError", "Result", "Settings", "Verdict", "__version__", "count_nodes", "optimize", "verify"]

if not (Path(__file__).parent / "extract").is_dir():
    # In a checkout without symbolic links, extract/ stands beside the package only.
    __path__.append(str(Path(__file__).resolve().parents[1]))

_LAZY = {
    "optimize": ("eqsat.pipeline", "optimize"),
    "Result": ("eqsat.pipeline", "Result"),
    "Settings": ("eqsat.settings", "Settings"),
    "Verdict": ("eqsat.verification.verify", "Verdict"),
    "count_nodes": ("eqsat.model.model", "count_nodes"),
    "verify": ("eqsat.verification.verify", "verify_files"),
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        module, attribute = _LAZY[name]
        return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"module 'eqsat' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
