"""The folders of data that the package ships: the rules, the phases in which they run, and targets."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent

RULES = folder if (folder := _PACKAGE / "rules").is_dir() else _PACKAGE.parent / "rules"
"""Without symbolic links, a checkout has rules/ only beside the package."""

TARGETS = folder if (folder := _PACKAGE / "extract" / "targets").is_dir() else _PACKAGE.parent / "extract" / "targets"
"""The folder of the targets, which tell the cost of a node; it is found in the same way."""

SHIPPED = _PACKAGE / "compiled"
"""A wheel has the compiled rules there; a checkout has no such folder."""
