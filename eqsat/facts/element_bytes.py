"""Elements of constants as facts hold them: little-endian bytes."""

from __future__ import annotations

import numpy as np
from onnx import helper

from eqsat.facts.fact import Array


def decoded(elements: bytes, dtype: int) -> Array:
    """The elements of a data type, as a flat read-only array."""
    return np.frombuffer(elements, helper.tensor_dtype_to_np_dtype(dtype).newbyteorder("<"))
