"""The facts of stored constants."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from eqsat.egraph.encode import constant_fact
from eqsat.facts.dims import symbol
from eqsat.facts.fact import Fact
from eqsat.facts.fact import from_array as from_constant
from eqsat.facts.inference import infer
from eqsat.model.tensors import from_array
from eqsat.operators import find_operator
from eqsat.terms.terms import Literal, fact_of


def test_a_mask_that_hides_nothing_is_known_to_be_zero() -> None:
    mask = np.zeros((1, 1, 512, 512), np.float32)
    assert constant_fact(from_array(mask, "mask")).uniform == bytes(4)
    mask[0, 0, 0, -1] = -np.inf
    assert constant_fact(from_array(mask, "mask")).uniform is None


def test_what_depends_on_sizes_is_no_constant() -> None:
    """Constants are folded, and the ranges of other values are inferred."""
    sizes = fact_of(Literal(int(TensorProto.INT64), (1,), (symbol("N"),)))
    assert sizes == Fact(int(TensorProto.INT64), (1,), ints=(symbol("N"),))
    zeros = infer(find_operator("", "Expand", 17), {}, (from_constant(np.array(0, np.float32)), sizes), 1)[0]
    assert not zeros.const
    assert zeros.range == (0, 0, 0, 0, False)
