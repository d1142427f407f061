"""Groups of rules that a target leaves out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import eqsat
from eqsat.errors import InputError
from tests.support.models import operators


@pytest.fixture(scope="module")
def layers() -> onnx.ModelProto:
    """Three layers with a residual, over rows in two axes."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> g (float[2, 8, 16] x) => (float[2, 8, 16] y) {
        a = MatMul (x, w)  b = Add (a, c)  r = Add (b, x)  s = Relu (r)
        d = MatMul (s, v)  e = Add (d, c)  f = Tanh (e)
        g = MatMul (f, u)  y = Add (g, c)
    }""")
    draw = np.random.default_rng(0)
    for name, sizes in (("w", (16, 16)), ("v", (16, 16)), ("u", (16, 16)), ("c", (16,))):
        model.graph.initializer.append(numpy_helper.from_array(draw.standard_normal(sizes).astype(np.float32), name))
    return model


def test_products_of_rows_pay_where_launches_count(layers: onnx.ModelProto) -> None:
    found = eqsat.optimize(layers, target="launches")
    assert operators(found.model) == {"Reshape": 2, "Gemm": 3, "Relu": 1, "Add": 1, "Tanh": 1}
    assert found.report["verify"]["status"] == "equal"


def test_a_target_leaves_a_group_out(layers: onnx.ModelProto, tmp_path: Path) -> None:
    target = tmp_path / "mine.toml"
    target.write_text('base = "launches"\nleaves_out = ["rows"]\n')
    assert "Gemm" not in operators(eqsat.optimize(layers, target=target).model)
    assert "Gemm" not in operators(eqsat.optimize(layers).model), "onnxruntime-cpu leaves it out as well"


def test_rules_that_are_asked_for_run_all_the_same(layers: onnx.ModelProto, tmp_path: Path) -> None:
    target = tmp_path / "mine.toml"
    target.write_text('base = "launches"\nleaves_out = ["rows", "reshapes"]\n')
    assert operators(eqsat.optimize(layers, target=target, only=["rows", "reshapes", "moves"]).model)["Gemm"] == 3


@pytest.mark.parametrize("key", ["leaves_out", "hides_softmax"])
def test_an_unknown_group_is_an_error(key: str, layers: onnx.ModelProto, tmp_path: Path) -> None:
    target = tmp_path / "mine.toml"
    target.write_text(f'base = "launches"\n{key} = ["row"]\n')
    with pytest.raises(InputError, match=f"target mine: {key}: there is no group of rules 'row'"):
        eqsat.optimize(layers, target=target)
