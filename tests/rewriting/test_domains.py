"""Operators of a runtime's own domain: a result has them if the run may use the domain, and only
then.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import eqsat
from eqsat.cli.main import main
from tests.support.models import operators, parse

MICROSOFT = "com.microsoft"
BOTH = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>'
SILU = "g (float[64, 64] x) => (float[64, 64] y) { s = Sigmoid (x)  y = Mul (x, s) }"
FUSED = f"g (float[8, 8] a, float[8, 8] b) => (float[8, 8] y) {{ y = {MICROSOFT}.FusedMatMul <transA = 0, transB = 0, alpha = 1.0> (a, b) }}"


def imports(proto: onnx.ModelProto) -> dict[str, int]:
    return {entry.domain: entry.version for entry in proto.opset_import}


def test_only_a_run_that_may_writes_them() -> None:
    without, allowed = eqsat.optimize(parse(SILU)), eqsat.optimize(parse(SILU), allow_domain=MICROSOFT)
    assert operators(without.model) == {"Sigmoid": 1, "Mul": 1} and imports(without.model) == {"": 17}
    assert operators(allowed.model) == {"QuickGelu": 1} and imports(allowed.model) == {"": 17, MICROSOFT: 1}
    assert allowed.report["verify"]["status"] == "equal"


def test_only_a_run_that_may_reads_them() -> None:
    """Without being asked, a node that the runtime alone knows stays to the byte."""
    model = parse(FUSED, BOTH)
    assert eqsat.optimize(model).model.graph.node == model.graph.node
    assert operators(eqsat.optimize(model, allow_domain=[MICROSOFT]).model) == {"MatMul": 1}


def test_a_node_that_its_schema_does_not_describe_stays() -> None:
    """Such as one with an attribute that no rule knows, or without a first result."""
    text = f"""g (float[2, 3, 4] a, float[3, 4, 5] b, float[1, 2, 4] x, float[4] w) => (float[3, 2, 5] y, float[1, 2, 4] z) {{
        y = {MICROSOFT}.FusedMatMul <transBatchA = 1> (a, b)
        , , , z = {MICROSOFT}.SkipLayerNormalization (x, x, w) }}"""
    model = parse(text, BOTH)
    left = eqsat.optimize(model, allow_domain=MICROSOFT).model
    assert operators(left)["FusedMatMul"] == 1


def test_a_body_may_use_them() -> None:
    """The model imports the domain for it."""
    text = """g (float[64, 64] x, bool c) => (float[64, 64] z) <float a = {1.702}> {
        z = If (c) <
            then_branch = t () => (float[64, 64] p) { r = Mul (x, a)  s = Sigmoid (r)  p = Mul (x, s) },
            else_branch = e () => (float[64, 64] q) { q = Exp (x) }> }"""
    result = eqsat.optimize(parse(text), allow_domain=MICROSOFT)
    (branch,) = [attribute.g for node in result.model.graph.node for attribute in node.attribute if attribute.name == "then_branch"]
    assert [node.op_type for node in branch.node] == ["QuickGelu"] and imports(result.model) == {"": 17, MICROSOFT: 1}
    assert result.report["verify"]["status"] == "equal"


def test_a_function_of_the_model_keeps_its_name() -> None:
    """A node by that name would call the function."""
    text = f"""<ir_version: 8, opset_import: ["" : 17, "{MICROSOFT}" : 1]>
        g (float[64, 64] x) => (float[64, 64] y, float[64, 64] z) {{ s = Sigmoid (x)  y = Mul (x, s)  z = {MICROSOFT}.QuickGelu (x) }}
        <domain: "{MICROSOFT}", opset_import: ["" : 17]> QuickGelu (x) => (y) {{ y = Exp (x) }}"""
    result = eqsat.optimize(parse(text), allow_domain=MICROSOFT)
    assert operators(result.model) == {"Sigmoid": 1, "Mul": 1, "QuickGelu": 1, "Exp": 1}


@pytest.mark.parametrize(
    ("target", "domain", "known"),
    [("launches", MICROSOFT, "it has none beside the standard's"), ("onnxruntime-cpu", "com.acme", "it has those of com.microsoft")],
)
def test_a_domain_that_the_target_lacks(target: str, domain: str, known: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "silu.onnx"
    onnx.save(parse(SILU), source)
    assert main(["optimize", str(source), "--target", target, "--allow-domain", domain]) == 2
    assert capsys.readouterr().err == f"eqsat: error: target {target} has no operators of the domain '{domain}'; {known}\n"
    assert list(tmp_path.iterdir()) == [source]


def test_a_target_of_ones_own_may_have_them(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('base = "launches"\ndomains = ["com.microsoft"]\n', encoding="utf-8")
    assert operators(eqsat.optimize(parse(SILU), target=own, allow_domain=MICROSOFT).model) == {"QuickGelu": 1}
    own.write_text('base = "launches"\ndomains = ["com.acme"]\n', encoding="utf-8")
    with pytest.raises(eqsat.InputError, match=r"domains\[0\]: .*com.acme.* is not allowed there; it must be a domain: com.microsoft"):
        eqsat.optimize(parse(SILU), target=own)
