"""Opsets and IR versions that the installed onnx does not know."""

from __future__ import annotations

import onnx
import pytest
from onnx import defs

import eqsat
from eqsat.errors import InputError
from eqsat.model.known_versions import known_opset
from tests.support.models import operators, parse

NEW = defs.onnx_opset_version() + 1
RELUS = "g (float[2] x) => (float[2] y) { a = Relu (x)  b = Relu (a)  y = Neg (b) }"


def head(*imports: str, ir: int = 8) -> str:
    return f"<ir_version: {ir}, opset_import: [{', '.join(imports)}]>"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (head(f'"": {NEW}') + RELUS, f"opset {NEW} of ai.onnx"),
        (head(f'"ai.onnx": {NEW}') + RELUS, f"opset {NEW} of ai.onnx"),
        (head('"": 17', '"ai.onnx.ml": 99') + "g (float[2] x) => (float[2] y) { h = ai.onnx.ml.Scaler (x)  y = Relu (h) }", "opset 99 of ai.onnx.ml"),
        (head('"": 17', '"ai.onnx.preview.training": 9') + "g (float[2] x) => (y) { y = ai.onnx.preview.training.Adam (x) }", "opset 9 of ai.onnx.preview"),
        (
            head(f'"": {NEW}')
            + "g (bool c, float[2] x) => (y) { y = If (c) <then_branch = t () => (a) { a = Relu (x) }, else_branch = e () => (b) { b = Neg (x) }> }",
            f"opset {NEW} of ai.onnx",
        ),
        (
            head('"": 17', '"f": 1') + f'g (float[2] x) => (y) {{ y = f.F (x) }} <opset_import: ["": {NEW}], domain: "f"> F (a) => (b) {{ b = Relu (a) }}',
            f"opset {NEW}",
        ),
    ],
)
def test_an_opset_whose_schemas_are_not_known_is_refused(text: str, said: str) -> None:
    """The operators might mean something else there, which no check could find out."""
    with pytest.raises(InputError, match=said) as caught:
        eqsat.optimize(parse(text))
    assert "newer onnx" in str(caught.value)


def test_the_newest_opset_and_strange_domains_are_taken() -> None:
    newest = parse(RELUS, head(f'"": {NEW - 1}', '"com.acme": 1000'))
    assert operators(eqsat.optimize(newest).model) == {"Relu": 1, "Neg": 1}
    unused = parse(RELUS, head('"": 17', '"ai.onnx.ml": 99'))
    assert operators(eqsat.optimize(unused).model) == {"Relu": 1, "Neg": 1}, "no operator of that domain is there"
    assert known_opset("com.acme") is None and known_opset("") == NEW - 1


def test_a_newer_ir_version_without_new_fields_is_a_note() -> None:
    newer = int(onnx.IR_VERSION) + 1
    result = eqsat.optimize(parse(RELUS, head('"": 17', ir=newer)))
    assert operators(result.model) == {"Relu": 1, "Neg": 1} and result.model.ir_version == newer
    (note,) = [note for note in result.report["notes"] if "IR version" in note]
    assert f"IR version {newer}" in note and str(int(onnx.IR_VERSION)) in note
    known = eqsat.optimize(parse(RELUS, head('"": 17', ir=int(onnx.IR_VERSION))))
    assert not any("IR version" in note for note in known.report["notes"])


def test_a_newer_ir_version_with_new_fields_is_refused() -> None:
    model = parse(RELUS, head('"": 17', ir=int(onnx.IR_VERSION) + 1))
    model.graph.node[1].MergeFromString(b"\xc2\x3e\x03new")
    with pytest.raises(InputError, match="fields that are new"):
        eqsat.optimize(model)
