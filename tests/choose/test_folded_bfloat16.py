"""Constants of bfloat16, for which ONNX Runtime has few kernels, are folded where their bits are certain."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import numpy_helper

import eqsat
from eqsat.runtime.session import open_runtime
from tests.support.models import operators, parse

TEXT = """<ir_version: 8, opset_import: ["": 22]>
g (bfloat16[4] x) => (bfloat16[4] y) {{ r = {operator} (c)  y = Where (b, x, r) }}"""
CONSTANT = np.array([0.1, 2.0, 3.0, 0.0078125]).astype(ml_dtypes.bfloat16)
CONDITION = np.array([True, False, False, False])


@pytest.mark.parametrize(("operator", "folds"), [("Sqrt", True), ("Neg", True), ("Asinh", False)])
def test_a_constant_of_bfloat16_is_folded_if_its_result_is_the_nearest_number(operator: str, folds: bool) -> None:
    model = parse(TEXT.format(operator=operator))
    model.graph.initializer.extend([numpy_helper.from_array(CONSTANT, "c"), numpy_helper.from_array(CONDITION, "b")])
    with pytest.raises(Exception, match="NOT_IMPLEMENTED"):
        open_runtime(model.SerializeToString())
    result = eqsat.optimize(model, verify=False).model
    assert (operator in operators(result)) is not folds
    if folds:
        expected = np.asarray(getattr(np, {"Sqrt": "sqrt", "Neg": "negative"}[operator])(CONSTANT.astype(np.float64))).astype(ml_dtypes.bfloat16)
        assert any(np.array_equal(numpy_helper.to_array(tensor), expected) for tensor in result.graph.initializer)
