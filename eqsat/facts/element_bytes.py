"""Elements of constants as facts hold them: little-endian bytes."""

from __future__ import annotations

import numpy as np
from onnx import helper

from eqsat.facts.fact import Array


def decoded(elements: bytes, dtype: int) -> Array:
    """Return the elements as a flat read-only array of the data type."""
    return np.frombuffer(elements, helper.tensor_dtype_to_np_dtype(dtype).newbyteorder("<"))
