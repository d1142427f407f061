"""The folder of data that the package ships: the rules, and the phases in which they run."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent

RULES = folder if (folder := _PACKAGE / "rules").is_dir() else _PACKAGE.parent / "rules"
"""Without symbolic links, a checkout has rules/ only beside the package."""

SHIPPED = _PACKAGE / "compiled"
"""A wheel has the compiled rules there; a checkout has no such folder."""
