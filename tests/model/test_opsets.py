"""Conversion to another opset, before a model is optimized."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

import eqsat
from eqsat.cost.target import load_target
from eqsat.errors import InputError
from eqsat.model.imports import standard_opset
from eqsat.model.prepare import convert
from tests.support.models import loads, parse

TEXT = "g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }"
NEWEST = 26
"""An opset that every supported onnx and ONNX Runtime know."""
_NO_LAST = 1 << 20  # more than any version


def opset(at: int, wanted: str | int, target: str = "onnxruntime-cpu", text: str = TEXT) -> int:
    """Returns the opset of the result of a model at an opset."""
    model = parse(text, f'<ir_version: 10, opset_import: ["" : {at}]>')
    return standard_opset(eqsat.optimize(model, opset=wanted, target=target, verify=False).model.opset_import)


def test_the_latest_opset_is_that_of_the_target() -> None:
    assert opset(17, "latest") == 24
    assert opset(17, "latest", "launches") >= NEWEST


@pytest.mark.parametrize(("operator", "at", "latest"), [("Tanh", 17, 24), ("Elu", 17, 21), ("Elu", 22, 24)])
def test_no_operator_loses_its_kernel(operator: str, at: int, latest: int) -> None:
    """ONNX Runtime's CUDA provider has no kernel for an Elu of opset 22. A model of that opset has nothing to lose."""
    plain = f"g (float[2, 3] x) => (float[2, 3] y) {{ y = {operator}(x) }}"
    inside = f"""g (float[2, 3] x, bool c) => (float[2, 3] y) {{
        y = If(c) <then_branch = t () => (float[2, 3] a) {{ a = {operator}(x) }}, else_branch = e () => (float[2, 3] b) {{ b = Neg(x) }}> }}"""
    assert [opset(at, "latest", "onnxruntime-cuda", text) for text in (plain, inside)] == [latest, latest]


WITHOUT = {
    "Bernoulli": ("float[2, 3] x", "float[2, 3]", "Bernoulli (x)"),
    "GlobalLpPool": ("float[1, 2, 4, 4] x", "float[1, 2, 1, 1]", "GlobalLpPool (x)"),
    "MaxRoiPool": ("float[1, 2, 4, 4] x, float[3, 5] r", "float[3, 2, 2, 2]", "MaxRoiPool <pooled_shape = [2, 2]> (x, r)"),
    "Multinomial": ("float[2, 3] x", "int32[2, 3]", "Multinomial <dtype = 6, sample_size = 3> (x)"),
    "RandomNormal": ("float[2, 3] x", "float[2, 3]", "RandomNormal <shape = [2, 3]> ()"),
    "RandomNormalLike": ("float[2, 3] x", "float[2, 3]", "RandomNormalLike (x)"),
    "RandomUniform": ("float[2, 3] x", "float[2, 3]", "RandomUniform <shape = [2, 3]> ()"),
    "RandomUniformLike": ("float[2, 3] x", "float[2, 3]", "RandomUniformLike (x)"),
    "RoiAlign": ("float[1, 2, 4, 4] x, float[3, 4] r, int64[3] i", "float[3, 2, 2, 2]", "RoiAlign <output_height = 2, output_width = 2> (x, r, i)"),
}


@pytest.mark.parametrize("target", ["onnxruntime-cpu", "onnxruntime-cuda"])
@pytest.mark.parametrize("operator", WITHOUT)
def test_operators_keep_their_kernels(operator: str, target: str) -> None:
    """ONNX Runtime has none for those of opset 22. The result was refused, and the original was written."""
    inputs, output, call = WITHOUT[operator]
    text = f"g ({inputs}) => ({output} y) {{ y = {call} }}"
    assert opset(17, "latest", target, text) == 21
    newer = parse(text, '<ir_version: 10, opset_import: ["" : 22]>')
    older = parse(text, '<ir_version: 10, opset_import: ["" : 21]>')
    assert loads(older) and not loads(newer)  # should ONNX Runtime have them one day, the targets may say so


def test_the_target_knows_all_operators_that_lose_their_kernel() -> None:
    target = load_target("onnxruntime-cpu")
    kernels: dict[str, list[tuple[int, int]]] = {}
    for kernel in get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider" and not kernel.domain:
            kernels.setdefault(kernel.op_name, []).append(kernel.version_range)
    lost: dict[str, int] = {}
    for schema in sorted(onnx.defs.get_all_schemas_with_history(), key=lambda schema: schema.since_version):
        name, version = schema.name, schema.since_version
        if schema.domain or schema.deprecated or version > (target.latest or 0) or name not in kernels:
            continue
        # A kernel without a last version runs its first one alone.
        if any(first == version or first <= version <= last < _NO_LAST for first, last in kernels[name]):
            lost.pop(name, None)
        elif any(first < version for first, _ in kernels[name]):
            lost.setdefault(name, version)
    lost["Bernoulli"] = lost["RandomUniformLike"]  # which its definition has
    assert lost == {name: declared.missing_from for name, declared in target.operators.items() if declared.missing_from is not None}


@pytest.mark.parametrize(("at", "wanted", "left"), [(17, "latest", 0), (17, 21, 0), (24, "latest", 1)])
def test_functions_of_a_model_that_is_converted_are_inlined(at: int, wanted: str | int, left: int) -> None:
    """They were an error, also for the latest opset, which need not be another."""
    twice = f"""<ir_version: 10, opset_import: ["" : {at}, "own" : 1]>
        g (float[2, 3] x) => (float[2, 3] y, float[2, 3] z) {{ y = own.F (x) t = Exp (x) z = own.F (t) }}
        <domain: "own", opset_import: ["" : {at}]> F (a) => (e) {{ b = Sin (a) c = Tanh (b) d = Cos (c) e = Erf (d) }}"""
    model = parse(twice)
    result = eqsat.optimize(model, opset=wanted, inline=False)
    assert result.report["verify"]["status"] == "equal"
    assert len(result.model.functions) == left
    assert standard_opset(result.model.opset_import) == (24 if wanted == "latest" else wanted)


def test_a_later_opset_stays() -> None:
    assert opset(NEWEST, "latest") == NEWEST


def test_an_opset_may_be_named() -> None:
    assert (opset(17, 21), opset(17, "21"), opset(17, "keep")) == (21, 21, 17)


def test_a_target_of_ones_own_may_name_one(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('base = "onnxruntime-cpu"\nlatest = 21\n')
    assert opset(17, "latest", str(own)) == 21


@pytest.mark.parametrize("wanted", [6, 99, "newest"])
def test_other_opsets_are_refused(wanted: str | int) -> None:
    with pytest.raises(InputError, match="opset"):
        opset(17, wanted)


@pytest.mark.parametrize(("at", "wanted"), [(17, 12), (14, 13)])
def test_the_operator_that_cannot_be_converted_is_named(at: int, wanted: int) -> None:
    with pytest.raises(InputError) as caught:
        opset(at, wanted)
    assert str(caught.value).endswith("; another --opset may do, and without it the model keeps its own")
    assert str(caught.value).startswith(f"the model can not be converted to opset {wanted}: onnx converts no Relu from opset 14;")


def test_an_operator_that_onnx_dropped_is_named() -> None:
    model = parse("g (float[1, 3, 8, 8] x) => (y) { y = Crop <border = [1, 1, 1, 1]> (x) }", '<ir_version: 3, opset_import: ["" : 7]>')
    with pytest.raises(InputError, match="onnx knows no operator Crop of the model's opset; without --opset the model keeps its own"):
        eqsat.optimize(model, opset="latest")


def test_a_model_without_the_default_domain_has_nothing_to_convert() -> None:
    """onnx's converter asserts that there is a version, so trees alone were an error."""
    text = """g (float[N, 2] x) => (float[N, 1] y) {
        y = ai.onnx.ml.LinearRegressor <coefficients: floats = [1.0, 2.0], intercepts: floats = [0.5], targets: int = 1> (x) }"""
    model = parse(text, '<ir_version: 10, opset_import: ["ai.onnx.ml" : 1]>')
    result = eqsat.optimize(model, opset="latest")
    assert result.report["verify"]["status"] == "equal" and list(result.model.opset_import) == list(model.opset_import)


def test_the_empty_scales_of_a_resize_are_dropped() -> None:
    """Up to opset 12 a Resize by sizes had empty scales as well. Later versions refuse both, and do not look whether an
    input with a default value is empty: a NanoDet was given up.
    """
    model = parse(
        """g (float[1, 2, 4, 4] x) => (float[1, 2, 8, 8] y) <float[0] s = {}, int64[4] n = {1, 2, 8, 8}> {
            y = Resize <mode = "nearest"> (x, s, s, n) }""",
        '<ir_version: 7, opset_import: ["" : 11]>',
    )
    model.graph.input.extend(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims) for tensor in model.graph.initializer)
    result = eqsat.optimize(model, opset=21)
    assert result.report["verify"]["status"] == "equal" and standard_opset(result.model.opset_import) == 21
    assert loads(result.model)


@pytest.mark.parametrize("kind", ["float16", "double"])
def test_numbers_that_were_attributes_get_the_type_of_what_they_bound(kind: str) -> None:
    """onnx's converter makes them float. A float16 network with Clips was given up, and no runtime loads the result."""
    model = parse(
        f"""g ({kind}[2, 3] x, bool c) => ({kind}[4, 3] y, {kind}[2, 3] z) {{
            a = Clip <max: float = 6.0> (x)  y = Pad <pads: ints = [1, 0, 1, 0], value: float = 2.0> (a)
            z = If (c) <then_branch = g1 () => ({kind}[2, 3] t) {{ s = Neg (x)  t = Clip <min: float = 0.5, max: float = 1.5> (s) }},
                else_branch = g2 () => ({kind}[2, 3] e) {{ e = Identity (x) }}> }}""",
        '<ir_version: 5, opset_import: ["" : 10]>',
    )
    result = convert(model, 17, lambda own: None)
    onnx.checker.check_model(result, full_check=True)
    assert loads(result)
    optimized = eqsat.optimize(model, opset=17)
    assert optimized.report["verify"]["status"] == "equal" and standard_opset(optimized.model.opset_import) == 17
