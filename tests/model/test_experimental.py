"""Operators that ONNX dropped are read as those that took their place."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import eqsat
from eqsat.model.experimental import without_experimental
from eqsat.model.model import count_operators
from tests.support.models import parse

HEAD = '<ir_version: 3, opset_import: ["" : %d]>'
SCALER = "s = ImageScaler <scale = 0.5, bias = [1.0, -2.0, 3.0]> (x)"


def image(text: str, opset: int = 7, dtype: str = "float") -> onnx.ModelProto:
    return parse(f"g ({dtype}[N, 3, 4, 4] x) => (y) {{ {text} }}", HEAD % opset)


@pytest.mark.parametrize("opset", ["keep", "latest"])
def test_an_image_scaler_is_a_product_and_a_sum(opset: str) -> None:
    """Files of Custom Vision begin with one in front of a BatchNormalization and a Conv; none of them could be converted."""
    result = eqsat.optimize(image(f"{SCALER}  r = Relu (s)  y = Neg (r)"), opset=opset)
    assert result.report["verify"]["status"] == "equal" and result.report["verify"]["engine"] == "onnxruntime"
    assert count_operators(result.model) == {"Mul": 1, "Add": 1, "Relu": 1, "Neg": 1}


def test_both_compute_the_same_bits() -> None:
    before = image(f"{SCALER}  y = Neg (s)")
    after = without_experimental(before)
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype(np.float32)
    a, b = (onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0] for model in (before, after))
    assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_what_folds_into_a_conv_does() -> None:
    weights = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, (2, 3, 1, 1), np.arange(6, dtype=np.float32))
    model = image(f"{SCALER}  y = Conv (s, w)")
    model.graph.initializer.append(weights)
    model.graph.input.append(onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, (2, 3, 1, 1)))
    result = eqsat.optimize(model)
    assert count_operators(result.model) == {"Conv": 1} and result.report["verify"]["status"] == "equal"


def test_names_of_the_model_stay_its_own() -> None:
    model = image("s_scale = Neg (x)  " + SCALER + "  y = Add (s, s_scale)")
    nodes = without_experimental(model).graph.node
    made = [name for node in nodes for name in node.output]
    assert len(set(made)) == len(made) == 6 and "s" in made and "s_scale" in made


@pytest.mark.parametrize(
    "model",
    [
        image(f"{SCALER}  y = Neg (s)", opset=6),
        image(f"{SCALER}  y = Neg (s)", dtype="double"),
        image("r = Relu (x)  s = ImageScaler <bias = [1.0, 1.0, 1.0]> (r)  y = Neg (s)"),
        image("s = ImageScaler <scale = 0.5> (x)  y = Neg (s)"),
        image("s = ImageScaler <scale = 1, bias = [1.0, 1.0, 1.0]> (x)  y = Neg (s)"),
        image("s = ImageScaler <bias = 1.0> (x)  y = Neg (s)"),
        image('s = ImageScaler <bias = ["a", "b", "c"]> (x)  y = Neg (s)'),
        image("s = ImageScaler <bias = [1.0, 1.0]> (x)  y = Neg (s)"),
        image("s, t = ImageScaler <bias = [1.0, 1.0, 1.0]> (x)  y = Neg (s)"),
        image("s = ImageScaler <bias = [1.0, 1.0, 1.0]> (x, x)  y = Neg (s)"),
        image("y = Neg (x)"),
    ],
)
def test_any_other_stays(model: onnx.ModelProto) -> None:
    assert without_experimental(model) is model
    assert eqsat.optimize(model).report["verify"]["status"] in ("equal", "unverified")
