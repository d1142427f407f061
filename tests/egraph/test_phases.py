"""Phases: their file, limits that hold inside an iteration, and reproducible results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest

import eqsat
from eqsat.egraph.phases import EFFORTS, load
from eqsat.errors import InputError
from eqsat.language.library import built_in
from tests.support.growing_rules import ASSOCIATE
from tests.support.models import operators, parse

ADDS = f"""
{ASSOCIATE}
# Sums commute. Add matches in either order already: this is a rule file that makes things worse on
# purpose.
real rule commute:
    Add(x, y) => Add(y, x)
    test x: T[2], y: T[2]
"""
SQUARES = """
# A rule without end: each match makes another one.
real rule endless:
    Mul(x, c) => Mul(x, Mul(c, c))
    where const c
    test x: T[2], c: T[2]
"""


def sums(terms: int) -> onnx.ModelProto:
    """Returns one sum of `terms` inputs."""
    steps = " ".join(f"s{i + 1} = Add({f's{i}' if i else 'x'}, x{i})" for i in range(terms))
    inputs = ", ".join(f"float[2] x{i}" for i in range(terms))
    return parse(f"g (float[2] x, {inputs}) => (float[2] y) {{ {steps} y = Relu(s{terms}) }}")


def test_the_projects_own_phases_have_all_efforts_and_name_groups_that_exist() -> None:
    for effort in EFFORTS:
        load(effort).check(group.name for group in built_in().groups)
    assert [phase.rounds for phase in load("low").phases] == [0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[normal]\n", "not a TOML file"),
        ("[[medium]]\nname = 'a'\n", "'medium' is no effort"),
        ("[[low]]\nname = 'a'\n", "has no phases for the effort 'normal'"),
        ("[normal]\nname = 'a'\n", "has no phases for the effort 'normal'"),
        ("normal = [1]\n", "two brackets on each side"),
        ("[[normal]]\nname = 'a'\nround = 1\n", "'round' is no field of a phase"),
        ("[[normal]]\nrounds = 1\n", "name is a text that is not empty"),
        ("[[normal]]\nname = 'a'\ngroups = 'arithmetic'\n", "groups is a list of names"),
        ("[[normal]]\nname = 'a'\nrounds = 1.5\n", "rounds is a whole number from 0 to 1000"),
        ("[[normal]]\nname = 'a'\nfirings = [1]\n", "firings is two numbers from 0"),
        ("turns = 3\n[[normal]]\nname = 'a'\n", "turns is a table"),
        ("[turns]\nnormal = 0\n[[normal]]\nname = 'a'\n", "turns is a table"),
        ("[[normal]]\nname = 'a'\nnodes = [1, -1]\n", "nodes is two numbers from 0"),
        ("[[normal]]\nname = 'a'\ngroups = ['nowhere']\n", "names the group 'nowhere', which is not there"),
        ("[[normal]]\nname = 'a'\ngroups = ['*', '-nowhere']\n", "names the group '-nowhere', which is not there"),
        ("[[normal]]\nname = 'a'\nsettle = ['-images']\n", "names the group '-images', which is not there"),
        ("[[normal]]\nname = 'a'\nafter = true\n", "phase 1 of 'normal': after is for later phases"),
        ("[[normal]]\nname = 'a'\n[[normal]]\nname = 'b'\nafter = 1\n", "before excludes after, and cold is for phases that say after"),
        ("[[normal]]\nname = 'a'\ncold = true\n", "before excludes after, and cold is for phases that say after"),
        ("[[normal]]\nname = 'a'\nwants = ['Relu']\n", "cold is for phases that say after, as is wants"),
        ("[[normal]]\nname = 'a'\n[[normal]]\nname = 'b'\nafter = true\nwants = 'Relu'\n", "wants is a list of names"),
        ("[regions]\nafter = 3\n[[normal]]\nname = 'a'\n", "regions is a table with two whole numbers"),
        ("[[normal]]\nname = 'a'\n[[normal]]\nname = 'b'\nbefore = true\nafter = true\n", "before excludes after, and cold is for phases that say after"),
        ("[since]\nnowhere = 9\n[[normal]]\nname = 'a'\n", "'since' names the group 'nowhere', which is not there"),
        ("[since]\nattention = true\n[[normal]]\nname = 'a'\n", "since is a table with the number of an opset for a group"),
    ],
)
def test_a_bad_file_of_phases_is_one_clear_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "phases.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        eqsat.optimize(sums(2), phases=path)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_no_file_of_phases_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can not read it"):
        load("normal", tmp_path / "none.toml")


def test_a_group_waits_for_its_opset(tmp_path: Path) -> None:
    text = """g (float[2, 3, 5, 8] q, float[2, 3, 7, 8] k, float[2, 3, 7, 8] v) => (float[2, 3, 5, 8] y) {
        t = Transpose<perm = [0, 1, 3, 2]>(k)  s = MatMul(q, t)  p = Softmax<axis = 3>(s)  y = MatMul(p, v) }"""
    fired: list[set[str]] = []
    for opset in (22, 23):
        report = eqsat.optimize(parse(text, f'<ir_version: 10, opset_import: ["" : {opset}]>'), target="launches").report
        fired.append({rule["name"] for rule in report["rules"]} & {"attention"})
    assert fired == [set(), {"attention"}]


def test_phases_decide_which_groups_run(tmp_path: Path) -> None:
    model = parse("""g (float[N, 4] x) => (float[N, 4] y, float[4, N] z) <float one = {1}> {
        s = Mul(x, one)  y = Relu(s)  t = Transpose<perm = [1, 0]>(s)  u = Transpose<perm = [1, 0]>(t)  v = Transpose<perm = [1, 0]>(u)  z = Relu(v) }""")
    path = tmp_path / "phases.toml"
    path.write_text("[[normal]]\nname = 'only'\ngroups = ['algebra']\n")
    assert operators(eqsat.optimize(model, phases=path, target="launches").model) == {"Transpose": 3, "Relu": 2}
    path.write_text("[[normal]]\nname = 'first'\ngroups = ['algebra']\n[[normal]]\nname = 'then'\ngroups = ['moves']\nnodes = [100, 1]\n")
    found = eqsat.optimize(model, phases=path, target="launches")
    assert operators(found.model)["Transpose"] == 1
    assert [step["phase"] for step in found.report["saturation"]["steps"]] == sorted(step["phase"] for step in found.report["saturation"]["steps"])


@pytest.mark.slow
def test_more_effort_finds_no_less() -> None:
    left = [eqsat.optimize(sums(12), rules=[ADDS], effort=effort).report for effort in EFFORTS]
    sizes = [report["saturation"]["nodes"] for report in left]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]


def test_an_adversarial_file_of_rules_never_exceeds_the_limits() -> None:
    """Associativity and commutativity of 200 terms have more sums than the world has atoms."""
    model = sums(200)
    (size,) = {len(model.graph.node)}
    phase = load("normal").phases[-1]
    found = eqsat.optimize(model, rules=[ADDS], only=["associate", "commute"])
    report = found.report
    assert report["verify"]["status"] == "equal"
    assert report["limits"]["hit"] in ("growth", "rounds")
    assert report["nodes"]["after"] <= report["nodes"]["before"]
    assert max(step["nodes"] for step in report["saturation"]["steps"]) <= 2 * phase.most_nodes(3 * size)


def test_a_simplifying_rule_without_end_is_stopped_inside_an_iteration(tmp_path: Path) -> None:
    """Each iteration doubles the graph, so a check between iterations comes too late."""
    path = tmp_path / "phases.toml"
    path.write_text("[[normal]]\nname = 'all'\nnodes = [200, 0]\n")
    model = parse("g (float[2] x) => (float[2] y) <float[2] a = {1, 2}, float[2] b = {3, 4}> { s = Mul(x, a)  t = Mul(s, b)  u = Mul(t, a)  y = Relu(u) }")
    report = eqsat.optimize(model, rules=[SQUARES], only=["endless"], phases=path).report
    assert report["verify"]["status"] == "equal"
    assert max(step["nodes"] for step in report["saturation"]["steps"]) <= 2 * 300


def test_time_is_looked_at_inside_an_iteration() -> None:
    report = eqsat.optimize(sums(200), rules=[ADDS], only=["associate", "commute"], effort="high", time_limit=0.2, verify=False).report
    assert report["limits"]["hit"] == "time"


def left_after(tmp_path: Path, rounds: int, firings: int) -> dict[str, Any]:
    """Returns what is left of seven places of a rule, of which each round takes so many."""
    path = tmp_path / "phases.toml"
    path.write_text(f"[[normal]]\nname = 'all'\nrounds = {rounds}\nfirings = [{firings}, 0]\n")
    inputs, outputs = (", ".join(f"float[{n + 2}] {name}{n}" for n in range(7)) for name in "xy")
    model = parse(f"g ({inputs}) => ({outputs}) {{ {' '.join(f'y{n} = Abs(x{n})' for n in range(7))} }}")
    rule = "finite rule dearer:\n    Abs(x) => Neg(Sub(Sub(x, x), Abs(x)))\n    test x: T[2]\n"
    return eqsat.optimize(model, rules=[rule], only=["dearer"], phases=path, verify=False).report["limits"]


def test_a_limit_tells_how_many_matches_it_left(tmp_path: Path) -> None:
    assert left_after(tmp_path, 1, 3) == {"hit": "rounds", "option": "--phases", "waiting": {"dearer": 4}}
    assert left_after(tmp_path, 2, 3) == {"hit": "rounds", "option": "--phases", "waiting": {"dearer": 1}}
    assert left_after(tmp_path, 3, 3) == {"hit": None, "option": None, "waiting": {}}


@pytest.mark.parametrize(("effort", "option"), [("low", None), ("normal", "--effort high"), ("high", "--phases")])
def test_the_option_that_goes_on_depends_on_the_effort(effort: str, option: str | None) -> None:
    limits = eqsat.optimize(sums(40), rules=[ADDS], only=["associate", "commute"], effort=effort, verify=False).report["limits"]
    assert limits["option"] == option and bool(limits["waiting"]) is (option is not None)


def test_the_record_tells_what_each_step_and_each_rule_came_to() -> None:
    report = eqsat.optimize(sums(20), rules=[ADDS], only=["associate"]).report
    steps = report["saturation"]["steps"]
    assert {step["step"] for step in steps} == {"laws", "search", "grow"}
    assert {step["phase"] for step in steps} == {phase.name for phase in load().phases}
    assert all(step["nodes"] > 0 and step["classes"] > 0 and step["seconds"] >= 0 for step in steps)
    (rule,) = report["rules"]
    assert rule["name"] == "associate" and rule["matches"] > 0 and rule["seconds"] >= 0
    json.dumps(report)


RUN = """
import sys
import onnx, eqsat
from tests.egraph.test_phases import ADDS, sums
sys.stdout.buffer.write(eqsat.optimize(sums(30), rules=[ADDS], verify=False).model.SerializeToString())
"""


@pytest.mark.slow
def test_the_same_bytes_whatever_the_hash_seed() -> None:
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    made = {
        subprocess.run([sys.executable, "-c", RUN], capture_output=True, check=True, env={**environment, "PYTHONHASHSEED": seed}).stdout
        for seed in ("0", "1", "2")
    }
    assert len(made) == 1 and made != {b""}
