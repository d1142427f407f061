"""Opsets to which onnx cannot convert a model."""

import pytest

import eqsat
from eqsat.errors import InputError
from tests.support.models import parse


@pytest.mark.parametrize(("opset", "wanted", "version"), [(17, 12, "14"), (14, 13, "14")])
def test_the_operator_that_cannot_be_converted_is_named(opset: int, wanted: int, version: str) -> None:
    model = parse(f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[2] x) => (float[2] y) {{ y = Relu (x) }}')
    with pytest.raises(InputError) as caught:
        eqsat.optimize(model, opset=wanted)
    assert str(caught.value).endswith("; another --opset may do, and without it the model keeps its own")
    assert str(caught.value).startswith(f"the model can not be converted to opset {wanted}: onnx converts no Relu from opset {version};")
