"""Sessions: what the reference evaluator says beside its results."""

from __future__ import annotations

import warnings

import numpy as np

from eqsat.runtime.session import ReferenceSession
from tests.support.models import parse


def test_the_reference_tells_nobody_that_a_mean_of_nothing_is_nan() -> None:
    model = parse("g (float[N, 0] x) => (float[N, 1] y) { y = ReduceMean <axes = [1]> (x) }")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (result,) = ReferenceSession(model.SerializeToString()).run({"x": np.ones((2, 0), np.float32)})
    assert np.isnan(result).all() and result.shape == (2, 1)
