"""Conversion to another opset, before a model is optimized."""

from __future__ import annotations

from pathlib import Path

import pytest

import eqsat
from eqsat.errors import InputError
from eqsat.model.imports import standard_opset
from tests.support.models import loads, parse

TEXT = "g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }"
NEWEST = 26
"""An opset that every supported onnx and ONNX Runtime know."""


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


RANDOM = {
    "Bernoulli": "Bernoulli (x)",
    "Multinomial": "Multinomial <dtype = 6, sample_size = 3> (x)",
    "RandomNormal": "RandomNormal <shape = [2, 3]> ()",
    "RandomNormalLike": "RandomNormalLike (x)",
    "RandomUniform": "RandomUniform <shape = [2, 3]> ()",
    "RandomUniformLike": "RandomUniformLike (x)",
}


@pytest.mark.parametrize("target", ["onnxruntime-cpu", "onnxruntime-cuda"])
@pytest.mark.parametrize("operator", RANDOM)
def test_random_operators_keep_their_kernels(operator: str, target: str) -> None:
    """ONNX Runtime has none for those of opset 22. The result was refused, and the original was written."""
    dtype = "int32" if operator == "Multinomial" else "float"
    text = f"g (float[2, 3] x) => ({dtype}[2, 3] y) {{ y = {RANDOM[operator]} }}"
    assert opset(17, "latest", target, text) == 21
    newer = parse(text, '<ir_version: 10, opset_import: ["" : 22]>')
    older = parse(text, '<ir_version: 10, opset_import: ["" : 21]>')
    assert loads(older) and not loads(newer)  # should ONNX Runtime have them one day, the targets may say so


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
