"""Unwritten memory: elements that nothing computed differ between the fills, others do not."""

import numpy as np
import pytest

from eqsat.runtime.session import open_runtime
from eqsat.runtime.unwritten import under_fills
from tests.support.models import parse


@pytest.mark.parametrize(("rows", "written"), [(2, True), (0, False)])
def test_only_what_nothing_wrote_differs(rows: int, written: bool) -> None:
    """ONNX forbids a Concat of parts with different rows; ONNX Runtime accepts an empty part."""
    model = parse("g (float[N, 1] x, float[M, 2] z) => (float[A, B] y) { y = Concat <axis = 1> (x, z) }")
    feeds = {"x": np.ones((rows, 1), np.float32), "z": np.ones((2, 2), np.float32)}
    first, *others = under_fills(open_runtime(model.SerializeToString()), feeds, ["y"])
    if not others:
        pytest.skip("this C library does not fill memory")
    assert all(np.array_equal(first[0], other[0], equal_nan=True) for other in others) == written
