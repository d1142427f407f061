"""A pair that the target's runtime fuses has the price of one kernel, cheaper or dearer.

The first node has no other consumer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

import eqsat
from tests.support.models import operators, parse

FUSES = """
base = "launches"
[operators."com.acme.Fused"]
class = "elementwise"
launches = {launches}
[[fusions]]
first = ["Relu"]
second = ["Exp"]
becomes = "com.acme.Fused"
"""
ALONE = "g (float[8] x) => (float[8] y) { h = Relu (x)  y = Exp (h) }"
SHARED = "g (float[8] x) => (float[8] y, float[8] z) { h = Relu (x)  y = Exp (h)  z = Tanh (h) }"
SHOWN = "g (float[8] x) => (float[8] y, float[8] h) { h = Relu (x)  y = Exp (h) }"
# The same clipping, in a form that no fusion matches.
CLIP = """
real rule clip:
    Relu(x) => Max(x, T(0))
    where x: T
    test x: T[2]
"""


def optimized(text: str, folder: Path, launches: int, **options: Any) -> eqsat.Result:
    target = folder / "fuses.toml"
    target.write_text(FUSES.format(launches=launches))
    return eqsat.optimize(parse(text), target=target, verify=False, **options)


def cost(result: eqsat.Result) -> float:
    return result.report["extraction"]["cost"]


@pytest.mark.parametrize(("text", "launches"), [(ALONE, 1), (SHARED, 3), (SHOWN, 2)])
def test_a_cheaper_kernel_counts_where_nothing_else_reads_the_first(text: str, launches: int, tmp_path: Path) -> None:
    assert cost(optimized(text, tmp_path, 1)) == launches


def test_both_nodes_are_written(tmp_path: Path) -> None:
    result = optimized(ALONE, tmp_path, 1)
    assert operators(result.model) == operators(parse(ALONE))
    onnx.checker.check_model(result.model)


def test_a_fusion_is_kept_from_a_rule_that_breaks_it(tmp_path: Path) -> None:
    """Both spellings have two nodes, but only one of them becomes one kernel."""
    text = ALONE.replace("Relu (x)", "Max (x, zero)").replace("=> (float[8] y)", "=> (float[8] y) <float zero = {0}>")
    assert operators(optimized(text, tmp_path, 1).model) == {"Relu": 1, "Exp": 1}


def test_a_dearer_kernel_is_avoided(tmp_path: Path) -> None:
    found = optimized(ALONE, tmp_path, 5, rules=[CLIP])
    assert operators(found.model) == {"Max": 1, "Exp": 1} and cost(found) == 2
    assert operators(optimized(SHARED, tmp_path, 5, rules=[CLIP]).model) == {"Relu": 1, "Exp": 1, "Tanh": 1}, "nothing is fused there"


def test_a_dearer_kernel_is_avoided_by_more_than_the_order_of_operands(tmp_path: Path) -> None:
    """The sums of three inputs in all their orders cost the same, and are fused alike."""
    target = tmp_path / "fuses.toml"
    target.write_text(FUSES.replace('"Relu"', '"Add"').format(launches=5))
    rules = [
        "real rule turn: Add(Add(x, y), z) => Add(x, Add(y, z))\n    test x: T[2], y: T[2], z: T[2]",
        "real rule away: Add(x, y) => Sum(x, y)\n    test x: T[2], y: T[2]",
    ]
    sums = "g (float[8] a, float[8] b, float[8] c) => (float[8] y) { s = Add (a, b)  t = Add (s, c)  y = Exp (t) }"
    found = eqsat.optimize(parse(sums), target=target, verify=False, rules=rules, only=["turn", "away"])
    assert operators(found.model)["Exp"] == operators(found.model)["Sum"] == 1 and cost(found) == 3


def test_a_dearer_kernel_is_paid_where_there_is_no_other_form(tmp_path: Path) -> None:
    assert operators(optimized(ALONE, tmp_path, 5, only=["dropout-nothing"]).model) == {"Relu": 1, "Exp": 1}


BACK = """
real rule back:
    Relu(x) => Log(Exp(Relu(x)))
    test x: T[2]
"""


def test_the_first_of_a_pair_is_not_made_of_the_second(tmp_path: Path) -> None:
    """As long as the pair counts as one node, its second node seems not to need the first. A dear
    first node is worth a Log of the second then.
    """
    target = tmp_path / "dear.toml"
    target.write_text(FUSES.format(launches=0) + '[operators.Relu]\nclass = "elementwise"\nlaunches = 9\n')
    result = eqsat.optimize(parse(SHARED), target=target, rules=[BACK], skip=["relu-max"])
    assert result.report["notes"] == []
    assert operators(result.model) == {"Relu": 1, "Exp": 1, "Tanh": 1}


def test_nothing_is_fused_with_a_node_that_does_nothing() -> None:
    """A sum with zeros is one class with its operand."""
    weights = ", ".join(map(str, range(16)))
    model = parse(f"""g (float[2,1,4] x, float[2,1,4] z) => (float[2,1,4] y) <float[4,4] w = {{{weights}}}, float[4] b = {{0,0,0,0}}> {{
        n = Mul (x, z)  m = MatMul (n, w)  a = Add (m, b)  y = Relu (a)
    }}""")
    result = eqsat.optimize(model)
    assert result.report["notes"] == []
    assert "Add" not in operators(result.model)


def test_the_dump_names_fused_ways(tmp_path: Path) -> None:
    optimized(ALONE, tmp_path, 1, dump_egraph=tmp_path / "dump.json")
    assert '"fused"' in (tmp_path / "dump.json").read_text()
