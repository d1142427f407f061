"""The examples by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx

from eqsat.examples.bert import bert

EXAMPLES: Mapping[str, tuple[str, Callable[[], onnx.ModelProto]]] = {
    "bert": ("a BERT classifier of 4 layers with 128 features; batch and sequence are symbolic", bert),
}
"""By name, what an example is, and the function that makes it. It makes the same bytes each time."""
