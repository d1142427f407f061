"""The folders of data that the package ships: rules and their phases, and targets."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent

RULES = folder if (folder := _PACKAGE / "rules").is_dir() else _PACKAGE.parent / "rules"
"""The rules. Without symbolic links, a checkout has them only beside the package."""

TARGETS = folder if (folder := _PACKAGE / "extract" / "targets").is_dir() else _PACKAGE.parent / "extract" / "targets"
"""The targets, which tell the cost of a node. Their folder is found in the same way."""

SHIPPED = _PACKAGE / "compiled"
"""The compiled rules of a wheel. A checkout has no such folder."""

SELDOM = tuple(sorted(path.stem for path in (RULES / "targets").glob("*.rules")))
"""The groups of rules that pay on few targets. Only a target that takes them in runs them."""
