"""Sessions: the results of runtimes as plain objects, and what the reference evaluator says beside them."""

from __future__ import annotations

import warnings

import numpy as np

from eqsat.runtime.session import OnnxRuntimeSession, ReferenceSession
from eqsat.verification.verify import EQUAL, LoadedModel, verify
from tests.support.models import parse


def test_the_reference_tells_nobody_that_a_mean_of_nothing_is_nan() -> None:
    model = parse("g (float[N, 0] x) => (float[N, 1] y) { y = ReduceMean <axes = [1]> (x) }")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (result,) = ReferenceSession(model.SerializeToString()).run({"x": np.ones((2, 0), np.float32)})
    assert np.isnan(result).all() and result.shape == (2, 1)


CLASSIFIER = '<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 1]>'
ZIPPED = "g (float[N, 3] x) => (seq(map(int64, float)) y) { %s y = ai.onnx.ml.ZipMap <classlabels_int64s = [0, 1, 2]> (p) }"


def test_floats_in_maps_round_as_floats() -> None:
    """ONNX Runtime returns Python's floats. Rounding was judged as that of doubles, and results of classifiers
    of scikit-learn were refused.
    """
    apart, whole = (
        parse(ZIPPED % text, CLASSIFIER)
        for text in (
            "axis = Constant <value_ints = [1]> () t = ReduceLogSumExp (x, axis) d = Sub (x, t) p = Exp (d)",
            "p = Softmax <axis = 1> (x)",
        )
    )
    (result,) = OnnxRuntimeSession(whole.SerializeToString()).run({"x": np.zeros((2, 3), np.float32)})
    assert [list(row) for row in result] == [[0, 1, 2]] * 2
    assert {type(value) for row in result for value in row.values()} == {np.float32}
    verdict = verify(LoadedModel(apart), LoadedModel(whole))
    assert verdict.status == EQUAL and 0 < (verdict.max_error or 0) < 1e-6
