"""The facts of stored constants."""

from __future__ import annotations

import numpy as np

from eqsat.egraph.encode import constant_fact
from eqsat.model.tensors import from_array


def test_a_mask_that_hides_nothing_is_known_to_be_zero() -> None:
    mask = np.zeros((1, 1, 512, 512), np.float32)
    assert constant_fact(from_array(mask, "mask")).uniform == bytes(4)
    mask[0, 0, 0, -1] = -np.inf
    assert constant_fact(from_array(mask, "mask")).uniform is None
