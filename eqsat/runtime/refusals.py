"""Refusals: the message with which ONNX Runtime refuses a model becomes one line for a person.

An operator that no loaded library has is named, with the option that loads one. Other messages stay
as they are.
"""

from __future__ import annotations

import re

_UNKNOWN = re.compile(r"([\w.]+):(\w+)\(-?\d+\) is not a registered function/op")


def refusal(message: str) -> str:
    """Returns the reason of a message, on one line."""
    if (unknown := _UNKNOWN.search(message)) is None:
        return " ".join(message.split())
    return f"ONNX Runtime has no operator {unknown[1]}.{unknown[2]}; --custom-op-library names a library that has it"
