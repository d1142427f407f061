"""Rules for few targets: a target that takes them in gets what they make, and no other target runs them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import eqsat
from eqsat.errors import InputError
from tests.support.models import operators, weighted

FEW_MULTIPLIERS = Path(__file__).parents[1] / "support" / "few_multipliers.toml"


def convolution(channels: int = 16, side: int = 16) -> onnx.ModelProto:
    kernels = np.random.default_rng(0).standard_normal((channels, channels, 3, 3)).astype(np.float32)
    image = f"float[1, {channels}, {side}, {side}]"
    return weighted(f"g ({image} x) => ({image} y) {{ y = Conv <pads = [1, 1, 1, 1]> (x, w) }}", w=kernels)


def product(size: int) -> onnx.ModelProto:
    matrix = f"float[{size}, {size}]"
    return weighted(f"g ({matrix} x, {matrix} y) => ({matrix} z) {{ z = MatMul (x, y) }}")


def test_winograd_pays_where_multiplications_are_dear() -> None:
    result = eqsat.optimize(convolution(), target=FEW_MULTIPLIERS, skip=["strassen"], max_growth=1 << 20)
    assert {"Conv": 1, "MatMul": 2}.items() <= operators(result.model).items() and result.report["verify"]["status"] == "equal"
    assert [list(tensor.dims) for tensor in result.model.graph.initializer if len(tensor.dims) == 4] == [[256, 1, 4, 4], [16, 1, 16, 16]]


def test_strassen_pays_where_multiplications_are_dear() -> None:
    result = eqsat.optimize(product(64), target=FEW_MULTIPLIERS)
    assert operators(result.model)["MatMul"] == 7 and result.report["verify"]["status"] == "equal"


@pytest.mark.parametrize("model", [convolution(), product(64)], ids=["Conv", "MatMul"])
def test_no_other_target_runs_them(model: onnx.ModelProto) -> None:
    result = eqsat.optimize(model, max_growth=1 << 20)
    assert len(result.model.graph.node) == 1
    assert not {"winograd", "strassen"} & {rule["name"] for rule in result.report["rules"]}


def gated(batch: str = "1") -> onnx.ModelProto:
    generator = np.random.default_rng(0)
    weights = {name: generator.standard_normal(shape).astype(np.float32) for name, shape in {"w": (32, 32, 3, 3), "v": (32, 32, 1, 1)}.items()}
    image = f"float[{batch}, 32, 28, 28]"
    nodes = "a = Conv <pads = [1, 1, 1, 1]> (x, w) m = GlobalAveragePool (a) b = Conv (m, v) e = Sigmoid (b) g = Mul (a, e) y = Conv (g, v)"
    return weighted(f"g ({image} x) => ({image} y) {{ {nodes} }}", **weights)


def test_a_gate_widens_where_images_stay_in_blocks() -> None:
    result = eqsat.optimize(gated())
    assert operators(result.model)["Resize"] == 1 and result.report["verify"]["status"] == "equal"
    cost = result.report["cost"]
    # Without the Resize the runtime converts the image and the gate back, and the product again.
    assert cost["before"]["launches"] - cost["after"]["launches"] == 2 and cost["after"]["seconds"] < cost["before"]["seconds"]


@pytest.mark.parametrize("target", ["launches", "generic-gpu"])
def test_a_gate_stays_where_nothing_runs_in_blocks(target: str) -> None:
    assert "Resize" not in operators(eqsat.optimize(gated(), target=target).model)


def test_a_gate_stays_where_its_size_has_a_name() -> None:
    assert "Resize" not in operators(eqsat.optimize(gated("N")).model)


def test_a_group_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('launch = 1.0\ntakes_in = ["karatsuba"]\n')
    groups = "blocked, guards, ones, strassen, volumes, winograd"
    with pytest.raises(InputError, match=rf"takes_in\[0\]: 'karatsuba' is not allowed there; it must be a group of rules for few targets: {groups}"):
        eqsat.optimize(product(4), target=path)
