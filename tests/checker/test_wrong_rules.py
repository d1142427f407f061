"""Wrong rules, as authors write them: the checker finds a counterexample to each on every seed, and
lets their right twins pass.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from eqsat.checker.check import IDLE, OK, REFUTED, check_rule
from eqsat.checker.judging.counterexample import Counterexample, with_evidence
from eqsat.checker.judging.verdict import Kind
from eqsat.language.library import load, rule_files
from eqsat.language.resolved import Resolved
from eqsat.runtime.session import OnnxRuntimeSession
from tests.support.parameters import spread

FOLDER = Path(__file__).parent / "wrong"
FIRED = 60  # instances: a wrong rule must not need many
SEEDS = (0, 1)
TWIN = "-guarded"

LIBRARY = load(rule_files([FOLDER]))
WRONG = [rule for rule in LIBRARY.rules if not rule.rule.name.endswith(TWIN)]
RIGHT = [rule for rule in LIBRARY.rules if rule.rule.name.endswith(TWIN)]


def names(rules: list[Resolved]) -> list[str]:
    return [rule.rule.name for rule in rules]


def test_there_are_enough_of_them_and_each_says_what_is_wrong() -> None:
    assert len(WRONG) >= 150
    assert len(RIGHT) >= 40
    assert all(rule.rule.documentation[0].startswith("Wrong: ") for rule in WRONG)
    assert all(rule.rule.documentation[0].startswith("Right: ") for rule in RIGHT)
    assert {name.removesuffix(TWIN) for name in names(RIGHT)} <= set(names(WRONG))


@pytest.mark.parametrize("seed", spread(SEEDS, every=len(SEEDS)))
@pytest.mark.parametrize("rule", spread(WRONG, lambda rule: rule.rule.name, every=20))
def test_a_wrong_rule_is_refuted(rule: Resolved, seed: int) -> None:
    verdict = check_rule(rule, FIRED, seed, enough=1)
    assert verdict.status == REFUTED, f"{verdict.status}: {verdict.reason}"
    example = verdict.counterexample
    assert example is not None and "Identity" not in example.reason
    shown = onnx.load_from_string(example.model)
    onnx.checker.check_model(shown, full_check=example.kind is not Kind.FAILS)
    names = [output.name for output in shown.graph.output]
    assert names == [f"{side}_{index}" for side in ("left", "right") for index in range(len(names) // 2)]
    if example.evidence == "in ONNX Runtime its outputs differ":
        results = OnnxRuntimeSession(example.model).run({})
        pairs = zip(results[: len(names) // 2], results[len(names) // 2 :], strict=True)
        assert any(left.shape != right.shape or left.tobytes() != right.tobytes() for left, right in pairs)
    else:
        assert "ONNX Runtime" in example.evidence and (example.kind is Kind.FAILS) != ("own kernels" in example.evidence)


@pytest.mark.parametrize("rule", spread(RIGHT, lambda rule: rule.rule.name, every=20))
def test_its_right_twin_passes(rule: Resolved) -> None:
    verdict = check_rule(rule, FIRED // 2, SEEDS[0])
    assert verdict.status == OK, f"{verdict.status}: {verdict.reason}"


COMMUTED = """# Two constants are added, wrongly.
real rule shown:
    Mul(x, c) => Add(x, c)
    where const c, x: int32, c: int32
    test x: int32[2], c: int32[]
"""


@pytest.mark.parametrize("seed", range(5))
def test_text_and_model_show_the_values_that_refute(seed: int) -> None:
    (rule,) = load([COMMUTED]).rules
    example = check_rule(rule, 20, seed).counterexample
    assert example is not None and example.note == "Mul commutes: inputs may have changed places"
    stated = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load_from_string(example.model).graph.initializer}
    assert f"c = int32{list(stated['c'].shape)} {stated['c'].tolist()}".replace(", ", ",") in example.reason.replace(", ", ",")
    for text in (example.left, example.right):
        (held,) = re.findall(r"\bc = +\{([^}]*)\}", text)
        assert [int(element) for element in held.split(",") if element] == stated["c"].ravel().tolist()


def test_scalars_are_moved_too() -> None:
    """Attributes that are lists without items have a type."""
    (rule,) = load(
        ["# T\nexact rule scalars:\n    Transpose<perm = p>(Relu(x)) => Relu(Transpose<perm = p>(x))\n    where rank(x) == 0\n    test x: T[], p = []\n"]
    ).rules
    verdict = check_rule(rule, 20, 0)
    assert verdict.status == OK


RESHAPED = """# The result is written down with its own shape.
exact rule shown:
    y = Reshape(Relu(Relu(x)), _)
 => y = Reshape(Relu(x), shape(y))
    test x: float[2, 1, 4]
"""

SELECTED = """# The size of the result depends on elements of x.
exact rule shown:
    y = NonZero(Relu(Relu(x)))
 => y = Reshape(NonZero(Relu(x)), shape(y))
    test x: float[2, 3]
"""


@pytest.mark.parametrize("seed", SEEDS)
def test_sizes_that_follow_from_no_rank_are_those_of_the_instance(seed: int) -> None:
    (rule,) = load([RESHAPED]).rules
    verdict = check_rule(rule, FIRED, seed)
    assert verdict.status == OK, verdict.reason


def test_a_right_side_without_known_sizes_is_no_trial() -> None:
    (rule,) = load([SELECTED]).rules
    verdict = check_rule(rule, 20, 0)
    assert verdict.status == IDLE and "depends on elements" in verdict.reason


def test_a_counterexample_that_ends_the_runtime_is_told_all_the_same() -> None:
    low = onnx.helper.make_node("Mod", ["a", "b"], ["left_0"])
    same = onnx.helper.make_node("Identity", ["a"], ["right_0"])
    outputs = [onnx.helper.make_tensor_value_info(f"{side}_0", TensorProto.INT64, [1]) for side in ("left", "right")]
    constants = [numpy_helper.from_array(np.array([value]), name) for name, value in (("a", -(2**63)), ("b", -1))]
    graph = onnx.helper.make_graph([low, same], "counterexample", [], outputs, constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10).SerializeToString()
    example = with_evidence(Counterexample("", "", "", model, "", 0, Kind.VALUE), WRONG[0].rule)
    assert example.evidence.startswith(("ONNX Runtime does not survive it", "in ONNX Runtime its outputs differ"))
