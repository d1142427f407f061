"""Scouts: where many regions differ in sizes alone, a few of them tell which rules to try."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import pytest

import eqsat
from eqsat.egraph.admission import RuleSet
from eqsat.egraph.encode import Encoding
from eqsat.egraph.limits import Limits
from eqsat.egraph.record import Record
from eqsat.egraph.saturate import EngineFailure, saturate
from eqsat.egraph.tables import EGraph
from eqsat.proofs.used import Used
from eqsat.regions.cut import Definitions, Region
from eqsat.regions.resemblance import families
from eqsat.rewriting import rewrite
from eqsat.rewriting.uses import Solution
from tests.regions.test_regions import PLAN, pieces, weights
from tests.support.models import operators, weighted


def growing(count: int, **others: str) -> onnx.ModelProto:
    """Returns layers of which each has one channel more than the one before. `others` are the
    operators of some layers in place of Tanh, by layer.
    """
    lines = ["x0 = Identity (x)"]
    constants: dict[str, np.ndarray] = {}
    for layer in range(count):
        width = 4 + layer
        lines += [
            f"p{layer} = MatMul (x{layer}, w{layer})",
            f"s{layer} = Mul (p{layer}, k{layer})",
            f"b{layer} = Add (s{layer}, c{layer})",
            f"n{layer} = Neg (b{layer})",
            f"m{layer} = Neg (n{layer})",
            f"x{layer + 1} = {others.get(f'x{layer}', 'Tanh')} (m{layer})",
        ]
        constants |= {f"w{layer}": weights(width, width + 1), f"k{layer}": weights(width + 1), f"c{layer}": weights(width + 1)}
    return weighted(f"g (float[1, 8, 4] x) => (float[1, 8, {4 + count}] y) {{ {' '.join(lines)} y = Relu (x{count}) }}", **constants)


def found(model: onnx.ModelProto) -> list[list[int]]:
    """Returns the families of the layers of a model, each a region of its own."""
    cutter, cut = pieces(model, 5, 7)
    return families(Definitions(cutter.definitions.encoding), [[piece] for piece in cut if isinstance(piece, Region)])


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.read_text(encoding="utf-8").replace("[1, 3]", "[5, 7]"), encoding="utf-8")
    return path


@dataclass
class Runs:
    """The saturations of a run of eqsat that have rules: their products, and the rules' names."""

    seen: list[tuple[int, frozenset[str]]] = field(default_factory=list[tuple[int, frozenset[str]]])
    fails: bool = False  # whether egglog fails on the first one


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    runs = Runs()

    def watched(encoding: Encoding, limits: Limits, ruleset: RuleSet, simplified: Callable[[EGraph], None]) -> tuple[EGraph, Record]:
        if ruleset.rules:
            products = sum(node.operator.name == "MatMul" for node in encoding.nodes.values())
            runs.seen.append((products, frozenset(rule.name for rule in ruleset.rules)))
            if runs.fails and len(runs.seen) == 1:
                raise EngineFailure("a panic")
        return saturate(encoding, limits, ruleset, simplified)

    monkeypatch.setattr(rewrite, "saturate", watched)
    return runs


def test_layers_that_differ_in_sizes_are_a_family() -> None:
    families = found(growing(9))
    assert sorted(map(len, families)) == [1, 8]


def test_a_layer_with_another_operator_is_none_of_the_family() -> None:
    assert sorted(map(len, found(growing(9, x4="Sigmoid")))) == [1, 1, 7]


def test_another_attribute_makes_another_family() -> None:
    """Rules may ask for a number, such as a slope."""
    one, other = (found(growing(10, x3="Elu <alpha = 0.5>", x5=f"Elu <alpha = {slope}>")) for slope in (0.5, 0.25))
    assert len(one) < len(other)


def test_all_regions_get_the_rules_that_helped_the_scouts(plan: Path, runs: Runs) -> None:
    result = eqsat.optimize(growing(14), phases=plan, target="generic-gpu")
    (scouts, every), (regions, helped) = runs.seen[:2]
    # The last layer of the family, and the region that also holds the output.
    assert scouts == 2 and regions == 14
    assert "involutive-involutive[Neg]" in helped and len(helped) < 10 < len(every)
    assert result.report["verify"]["status"] == "equal"
    assert operators(result.model)["Neg"] == 0 and operators(result.model)["Mul"] == 0


def test_few_layers_have_no_scouts(plan: Path, runs: Runs) -> None:
    eqsat.optimize(growing(5), phases=plan, target="generic-gpu", verify=False)
    assert len({rules for _, rules in runs.seen}) == 1


@pytest.mark.parametrize("failure", ["untraced", "engine"])
def test_all_rules_run_where_scouts_tell_nothing(failure: str, plan: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A form that is not traced back may need any rule, and egglog may fail on the scouts."""

    def untraced(solution: Solution, fired: Collection[str]) -> Used:
        return Used(complete=False)

    if failure == "untraced":
        monkeypatch.setattr(Solution, "traced", untraced)
    runs.fails = failure == "engine"
    result = eqsat.optimize(growing(14), phases=plan, target="generic-gpu", verify=False)
    assert len(runs.seen) > 1 and len({rules for _, rules in runs.seen}) == 1
    assert operators(result.model)["Neg"] == 0


def test_reasons_name_what_only_scouts_have_tried(plan: Path) -> None:
    """A rule that helps no scout does not run on all regions, but it has its reason."""
    dear = plan.with_name("dear.rules")
    dear.write_text("real rule dear:\n    Tanh(x) => Mul(Tanh(x), T(1))\n    where x: T\n    test x: T[2]\n", encoding="utf-8")
    result = eqsat.optimize(growing(14), phases=plan, target="generic-gpu", rules=[dear], reasons=True, verify=False)
    rules = {rule["name"]: rule for rule in result.report["rules"]}
    assert rules["dear"]["matches"] and not rules["dear"]["used"]
    assert rules["dear"]["unused"]["reason"] in ("cost", "same cost")
