"""The greedy engine: equal models, never worse ones, orders that matter, and runs that end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import eqsat
from eqsat.cli.main import main
from eqsat.cli.summary import summary
from eqsat.errors import InputError
from eqsat.greedy import greedy_engine as engine
from eqsat.language.library import built_in
from eqsat.settings import Settings
from tests.greedy.watched import watched
from tests.rules.examples import Example, filled
from tests.rules.test_rules import EXAMPLES
from tests.support.growing_rules import ASSOCIATE, PAIRS
from tests.support.models import assert_same, operators, parse, weighted
from tests.support.parameters import spread
from tests.support.random_models import feeds, models

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]

# The first rule destroys what the second one needs.
RIVALS = """
# The root of a square is the absolute value.
real rule root-of-square:
    Sqrt(Mul(x, x)) => Abs(x)
    test x: T[2]

# The square of a root is the value itself, if it has a root.
real rule square-of-root:
    Mul(Sqrt(Exp(x)), Sqrt(Exp(x))) => Exp(x)
    test x: T[2]
"""
RIVAL_NAMES = ("root-of-square", "square-of-root")
SQUARES = "g (float[8] x) => (float[8] y) { e = Exp (x)  r = Sqrt (e)  s = Mul (r, r)  y = Sqrt (s) }"
# Two chains of the same operators become one.
CHAINS = """
real rule chains:
    y = Sin(Cos(Exp(a)))
    z = Sin(Cos(Exp(b)))
 => y, z = Split<axis = 0>(Sin(Cos(Exp(Concat<axis = 0>(a, b)))), [n, n])
    where a: T[n], b: T[n]
    test a: T[2], b: T[2]
"""
# A factor that has to be multiplied out before a term cancels.
VALLEY = "g (float[8] a, float[8] b, float[8] c) => (float[8] y) { s = Add (a, b)  p = Mul (s, c)  q = Mul (b, c)  y = Sub (p, q) }"
DISTRIBUTE = """
real rule multiply-out:
    Mul(Add(a, b), c) => Add(Mul(a, c), Mul(b, c))
    test a: T[2], b: T[2], c: T[2]

real rule cancel:
    Sub(Add(x, y), y) => x
    where x: _[..s], y: _[..s]
    test x: T[2], y: T[2]
"""


def greedily(model: onnx.ModelProto | str, rules: str = "", **options: Any) -> eqsat.Result:
    options = {"engine": "greedy", "target": "launches", **options}
    if rules:
        options |= {"rules": [rules], "only": ["rules"]}
    return eqsat.optimize(parse(model) if isinstance(model, str) else model, **options)


def matrix(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(rows + columns).standard_normal((rows, columns)).astype(np.float32)


def fired(result: eqsat.Result) -> dict[str, int]:
    return {rule["name"]: rule["matches"] for rule in result.report["rules"]}


# --- every model ---


def keeps_its_bits(model: onnx.ModelProto, seed: int) -> None:
    optimized = greedily(model, target="onnxruntime-cpu", verify=False, exact=True, order=f"random:{seed}")
    onnx.checker.check_model(optimized.model, full_check=True)
    assert_same(model, optimized.model, *feeds())
    assert eqsat.count_nodes(optimized.model) <= eqsat.count_nodes(model)
    cost = optimized.report["cost"]
    assert cost["after"]["seconds"] <= cost["before"]["seconds"] * 1.0005 + 1e-6
    # A body may not store more bytes than before, and the engine has left it no other form.
    assert not [note for note in optimized.report["notes"] if "no better" not in note and "no larger" not in note]


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=SLOW)
@given(models(), st.integers(0, 99))
def test_a_model_is_equal_and_never_worse(model: onnx.ModelProto, seed: int) -> None:
    keeps_its_bits(model, seed)


@settings(max_examples=10, suppress_health_check=SLOW)
@given(models(), st.integers(0, 99))
def test_a_few_models_are_equal_and_never_worse(model: onnx.ModelProto, seed: int) -> None:
    keeps_its_bits(model, seed)


@pytest.mark.parametrize("name", spread(list(EXAMPLES), every=16))
def test_an_example(name: str) -> None:
    """Its graph is sound, rewrites make the predicted difference, and the result is verified."""
    example: Example = EXAMPLES[name]
    model = filled(example.model(example.distinct_opsets[0]))
    with watched():
        report = greedily(model, target=example.target, max_growth=1 << 16, order="random:1").report
    assert report["verify"]["status"] == "equal"
    assert report["limits"]["hit"] is None
    assert not any(rule.get("dropped") for rule in report["rules"])
    assert not [note for note in report["notes"] if "no better" not in note and "nothing was found that is better" not in note]


# --- what a rewrite does ---


def test_a_rewrite_replaces_what_it_matches() -> None:
    result = greedily(SQUARES, RIVALS, only=["root-of-square"])
    assert operators(result.model) == {"Exp": 1, "Sqrt": 1, "Abs": 1}
    assert fired(result) == {"root-of-square": 1}


def test_a_value_with_another_user_stays() -> None:
    result = greedily("g (float[8] x) => (float[8] y, float[8] s) { s = Mul (x, x)  y = Sqrt (s) }", RIVALS, only=["root-of-square"])
    assert operators(result.model) == {"Mul": 1, "Abs": 1}


def test_equal_nodes_become_one_and_constants_fold() -> None:
    model = parse(
        "g (float[2] x) => (float[2] y) <float[2] c = {1, 2}> { a = Exp (x)  b = Exp (x)  d = Neg (c)  s = Mul (a, d)  t = Mul (b, d)  y = Sub (s, t) }"
    )
    result = greedily(model, skip=[group.name for group in built_in().groups])
    assert operators(result.model) == {"Exp": 1, "Mul": 1, "Sub": 1}


def test_a_rule_with_two_roots_replaces_both(tmp_path: Path) -> None:
    target = tmp_path / "dear.toml"
    target.write_text('base = "launches"\n[operators.MatMul]\nlaunches = 3\n')
    text = "g (float[N, 5] x) => (float[N, 3] y, float[N, 6] z) { y = MatMul (x, w)  a = MatMul (x, v)  z = Relu (a) }"
    model = weighted(text, w=matrix(5, 3), v=matrix(5, 6))
    result = greedily(model, PAIRS, target=target)
    assert operators(result.model) == {"MatMul": 1, "Split": 1, "Relu": 1}
    assert result.report["verify"]["status"] == "equal"
    # Where all nodes cost the same, the Split costs as much as it saves.
    assert operators(greedily(model, PAIRS).model) == {"MatMul": 2, "Relu": 1}


def test_two_roots_are_joined_only_if_neither_needs_the_other() -> None:
    apart = "g (float[8] x, float[8] t) => (float[8] y, float[8] z) { a = Exp (x) b = Cos (a) y = Sin (b) c = Exp (t) d = Cos (c) z = Sin (d) }"
    result = greedily(apart, CHAINS)
    assert operators(result.model) == {"Concat": 1, "Exp": 1, "Cos": 1, "Sin": 1, "Split": 1}
    assert result.report["verify"]["status"] == "equal"
    inside = "g (float[8] x) => (float[8] y, float[8] z) { a = Exp (x) b = Cos (a) y = Sin (b) t = Neg (y) c = Exp (t) d = Cos (c) z = Sin (d) }"
    assert fired(greedily(inside, CHAINS)) == {}


def test_bodies_are_rewritten_too() -> None:
    text = """g (bool go, float[8] x) => (float[8] y) {
        y = If (go) <then_branch = t () => (float[8] a) { s = Mul (x, x)  a = Sqrt (s) }, else_branch = e () => (float[8] b) { b = Neg (x) }>
    }"""
    assert operators(greedily(text, RIVALS, only=["root-of-square"]).model) == {"If": 1, "Abs": 1, "Neg": 1}


def test_rules_see_named_sizes_and_numbers_are_written() -> None:
    text = """g (float[N, 2, 8] x) => (float[N, 4, 4] y) {
        size = Shape (x)  zero = Constant <value = int64[1] {0}> ()  batch = Gather (size, zero)
        rest = Constant <value = int64[1] {16}> ()  flat = Concat <axis = 0> (batch, rest)
        four = Constant <value = int64[2] {4, 4}> ()  cut = Concat <axis = 0> (batch, four)
        a = Reshape (x, flat)  b = Reshape (a, cut)  y = Relu (b)
    }"""
    result = greedily(text)
    assert operators(result.model) == {"Reshape": 1, "Relu": 1}
    assert result.report["verify"]["status"] == "equal"


# --- orders ---


def test_the_order_decides_what_is_left() -> None:
    left = {seed: operators(greedily(SQUARES, RIVALS, order=f"random:{seed}").model).total() for seed in range(8)}
    assert set(left.values()) == {2, 3}
    assert operators(greedily(SQUARES, RIVALS, order="file").model).total() == 3
    assert operators(greedily(SQUARES, RIVALS, engine="saturation").model).total() == 2


def test_saturation_crosses_a_valley_that_no_order_crosses() -> None:
    assert operators(greedily(VALLEY, DISTRIBUTE, engine="saturation").model) == {"Mul": 1}
    for seed in range(4):
        assert operators(greedily(VALLEY, DISTRIBUTE, order=f"random:{seed}").model) == operators(parse(VALLEY))


def test_the_same_seed_writes_the_same_bytes() -> None:
    model = filled(EXAMPLES["algebra: constants deep inside"].model(17))
    written = [greedily(model, order="random:7").model.SerializeToString(deterministic=True) for _ in range(2)]
    assert written[0] == written[1]


def test_low_effort_follows_no_rule_that_may_grow_the_graph() -> None:
    # This rule keeps the number of nodes, and its group settles nothing; the time falls all the same.
    rules = "real rule cheaper:\n    Pow(x, 2) => Mul(x, x)\n    test x: T[2]\n"
    text = "g (float[4096, 64] x) => (float[4096, 64] y) <float two = {2}> { y = Pow (x, two) }"
    options: dict[str, Any] = {"target": "onnxruntime-cpu", "verify": False}
    assert operators(greedily(text, rules, **options).model) == {"Mul": 1}
    assert operators(greedily(text, rules, effort="low", **options).model) == {"Pow": 1}


# --- limits and settings ---


def test_rules_that_turn_in_a_circle_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_STEPS", 30)
    monkeypatch.setattr(engine, "_STEPS_PER_NODE", 0)
    phases = tmp_path / "phases.toml"
    phases.write_text('[[normal]]\nname = "all"\nsettle = ["*"]\n')
    text = "g (float[8] a, float[8] b, float[8] c) => (float[8] y) { s = Add (a, b)  y = Add (s, c) }"
    result = greedily(text, ASSOCIATE, phases=phases)
    assert result.report["limits"]["hit"] == engine.STEPS
    assert result.report["verify"]["status"] == "equal"


def test_a_time_limit_ends_the_run() -> None:
    assert greedily(SQUARES, RIVALS, time_limit=0.0).report["limits"]["hit"] == "time"


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"order": "random:1"}, "an order of the rules is for the engine greedy"),
        ({"engine": "greedy", "order": "random:"}, "order is 'random:'"),
        ({"engine": "greedy", "order": "random:-1"}, "order is 'random:-1'"),
        ({"engine": "greedy", "order": "random:" + "9" * 19}, "18 digits"),
        ({"engine": "greedy", "order": "7"}, "write file, or random:SEED"),
        ({"engine": "magic"}, "engine is 'magic'"),
    ],
)
def test_a_wrong_setting_is_an_error(given: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        Settings(**given)


def test_the_report_and_the_terminal_name_the_engine() -> None:
    steps: list[str] = []
    report = greedily(SQUARES, RIVALS, order="random:3", progress=steps.append).report
    assert report["engine"] == {"name": "greedy", "order": "random:3"}
    assert any("rewrite greedily" in step for step in steps)
    assert "engine  greedy, rules in the order random:3" in summary(report)
    assert greedily(SQUARES, engine="saturation").report["engine"] == {"name": "saturation", "order": None}


def test_the_command_takes_an_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(parse(SQUARES), tmp_path / "m.onnx")
    assert main(["optimize", str(tmp_path / "m.onnx"), "--engine", "greedy", "--order", "random:2"]) == 0
    assert "rules in the order random:2" in capsys.readouterr().out
    assert main(["optimize", str(tmp_path / "m.onnx"), "--order", "random:2"]) == 2
    assert "for the engine greedy" in capsys.readouterr().err
