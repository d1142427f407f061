"""Rules for few targets: a target that takes them in gets what they make, and no other target runs them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import eqsat
from eqsat.errors import InputError
from tests.support.models import operators, weighted

SUPPORT = Path(__file__).parents[1] / "support"
FEW_MULTIPLIERS, SMALL_CACHES = SUPPORT / "few_multipliers.toml", SUPPORT / "small_caches.toml"


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


def layers(places: str = "32", first: str = "1", width: int = 256, inner: int = 512) -> onnx.ModelProto:
    generator = np.random.default_rng(0)
    weights = {name: generator.standard_normal(shape).astype(np.float32) for name, shape in {"v": (width, inner), "b": (inner,), "w": (inner, width)}.items()}
    rows = f"float[{first}, {places}, {width}]"
    return weighted(f"g ({rows} x) => ({rows} y) {{ p = MatMul(x, v) q = Add(p, b) r = Relu(q) y = MatMul(r, w) }}", **weights)


PRODUCTS = {"MatMul": 2, "Add": 1, "Relu": 1}
CONVS = {"Unsqueeze": 1, "Transpose": 2, "Conv": 2, "Relu": 1, "Squeeze": 1}


@pytest.mark.parametrize(("target", "left"), [(SMALL_CACHES, CONVS), ("onnxruntime-cpu", PRODUCTS), ("onnxruntime-cuda", PRODUCTS)])
def test_products_become_convs_where_the_caches_do_not_hold_their_weights(target: str | Path, left: dict[str, int]) -> None:
    result = eqsat.optimize(layers(), target=target)
    assert operators(result.model) == left and result.report["verify"]["status"] == "equal"


def test_products_of_one_row_in_each_image_stay() -> None:
    """A Conv reads its filters for each image: a model that counts positions first took 2.1 times as long."""
    result = eqsat.optimize(layers("1", "32", 1024, 4096), target="onnxruntime-cpu")
    assert operators(result.model) == PRODUCTS


@pytest.mark.parametrize("never_empty", [False, True])
def test_products_over_a_named_size_become_convs_if_it_is_never_zero(never_empty: bool) -> None:
    """Convs reject images without pixels."""
    result = eqsat.optimize(layers("S"), target=SMALL_CACHES, no_empty_inputs=never_empty)
    assert operators(result.model) == (CONVS if never_empty else PRODUCTS) and result.report["verify"]["status"] == "equal"


def test_a_gelu_between_convs_keeps_numbers_that_the_runtime_knows() -> None:
    """Numbers of four axes would be faster beside images of one column, but for the Gelu that they make up."""
    generator = np.random.default_rng(0)
    weights = {"v": generator.standard_normal((256, 512)).astype(np.float32), "w": generator.standard_normal((512, 256)).astype(np.float32)}
    numbers = {"r": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)}
    gelu = "q = Div (p, r) e = Erf (q) f = Add (e, one) h = Mul (p, f) i = Mul (h, half)"
    model = weighted(f"g (float[1, 32, 256] x) => (float[1, 32, 256] y) {{ p = MatMul (x, v) {gelu} y = MatMul (i, w) }}", opset=17, **weights, **numbers)
    result = eqsat.optimize(model, target=SMALL_CACHES)
    assert operators(result.model)["Conv"] == 2 and result.report["verify"]["status"] == "equal"
    assert [list(tensor.dims) for tensor in result.model.graph.initializer if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) < 4] == [[]] * 3


def test_products_stay_where_phases_have_none_after_the_turns() -> None:
    assert operators(eqsat.optimize(layers(), target=SMALL_CACHES, effort="low").model) == PRODUCTS


def test_a_group_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('launch = 1.0\ntakes_in = ["karatsuba"]\n')
    groups = "blocked, guards, images, ones, plain, runs, strassen, volumes, winograd"
    with pytest.raises(InputError, match=rf"takes_in\[0\]: 'karatsuba' is not allowed there; it must be a group of rules for few targets: {groups}"):
        eqsat.optimize(product(4), target=path)


def test_a_chain_of_convs_is_found_where_no_single_step_pays() -> None:
    """Each part of a gated layer is dearer as a Conv while the others are products."""
    generator, layers = np.random.default_rng(0), range(2)
    shapes = {"u": (256, 512), "v": (256, 512), "w": (512, 256)}
    weights = {f"{name}{layer}": (generator.standard_normal(shape) / 16).astype(np.float32) for layer in layers for name, shape in shapes.items()}
    nodes = " ".join(
        f"""a{n} = LayerNormalization (x{n}, s) p{n} = MatMul (a{n}, u{n}) e{n} = com.microsoft.QuickGelu <alpha = 1.0> (p{n}) q{n} = MatMul (a{n}, v{n})
        t{n} = Mul (e{n}, q{n}) y{n} = MatMul (t{n}, w{n}) x{n + 1} = Add (x{n}, y{n})"""
        for n in layers
    )
    scale = generator.standard_normal(256).astype(np.float32)
    model = weighted(f"g (float[1, 32, 256] x0) => (float[1, 32, 256] x{len(layers)}) {{ {nodes} }}", opset=23, s=scale, **weights)
    model.opset_import.add(domain="com.microsoft", version=1)
    result = eqsat.optimize(model, target=SMALL_CACHES, allow_domain="com.microsoft")
    assert {"Conv": 6, "Sigmoid": 2, "Transpose": 4}.items() <= operators(result.model).items() and result.report["verify"]["status"] == "equal"
