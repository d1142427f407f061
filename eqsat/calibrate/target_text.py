"""The text of a target's file, made from its tables."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def target_text(tables: Mapping[str, Any]) -> str:
    """Returns TOML that reads as these tables: plain keys first, then a line for each class and
    operator.
    """
    lines = [f"{key} = {_value(value)}" for key, value in tables.items() if not isinstance(value, Mapping) and key != "bandwidth"]
    if "bandwidth" in tables:
        lines += ["bandwidth = [", *(f"    {_value(level)}," for level in tables["bandwidth"]), "]"]
    for key, value in tables.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{key}]", *(f"{_key(name)} = {_value(item)}" for name, item in value.items())]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").isalnum() else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {_value(item)}" for name, item in value.items()) + " }"  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "inf" if math.isinf(value) else f"{value:.3g}" if "e" in f"{value:.3g}" else str(value)
    return json.dumps(value)
