"""The figures of saturation against many orders of the rules, in Python and by the command."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from eqsat.cli.main import main
from eqsat.orders import Orders, Outcome, orders, table
from eqsat.settings import Settings
from tests.greedy.test_greedy import RIVALS, SQUARES
from tests.support.models import parse

RIVALRY = Settings(rules=[RIVALS], only=["rules"], target="launches")


def outcome(cost: float, nodes: int = 1) -> Outcome:
    return Outcome("file", cost, nodes, 1, 0.0, "equal", None)


def test_the_figures_tell_what_the_order_costs() -> None:
    found = orders(parse(SQUARES), RIVALRY, range(8))
    assert [one.order for one in found.greedy] == ["file", *(f"random:{seed}" for seed in range(8))]
    assert (found.unit, found.cost, found.nodes) == ("launches", 4, 4)
    assert found.saturation.cost == found.costs.least == 2
    assert found.costs.most == found.node_counts.most == 3
    assert found.reached == sum(one.nodes == 2 for one in found.greedy) / 9
    assert 0 < found.reached < 1
    assert {one.verify for one in found.greedy} == {"equal"}
    again = orders(parse(SQUARES), RIVALRY, range(8))
    assert [one.cost for one in again.greedy] == [one.cost for one in found.greedy]
    assert json.loads(json.dumps(found.to_json()))["reached"] == found.reached


def test_an_order_reaches_saturation_up_to_a_thousandth() -> None:
    found = Orders("m", "t", "seconds", 3.0, 9, outcome(1.0), [outcome(1.0009), outcome(1.0011), outcome(0.9), outcome(2.0)])
    assert found.reached == 0.5
    assert (found.costs.least, found.costs.median, found.costs.most) == (0.9, (1.0009 + 1.0011) / 2, 2.0)


def test_every_run_names_itself() -> None:
    steps: list[str] = []
    orders(parse(SQUARES), Settings(rules=[RIVALS], only=["rules"], target="launches", verify=False, progress=steps.append), [1])
    assert {step.partition(":")[0] for step in steps} == {"saturation", "order 1 of 2", "order 2 of 2"}


def test_the_table_counts_the_models_that_some_order_solves() -> None:
    rows = [Orders("a/one.onnx", "t", "seconds", 3e-3, 9, outcome(1e-3), [outcome(1e-3)]), Orders("two", "t", "launches", 3, 9, outcome(1), [outcome(2)])]
    lines = table(rows)
    assert lines[1].split()[:3] == ["one.onnx", "3", "1"]
    assert lines[-1].endswith("for 1 of 2 models")
    assert lines[-2] == "costs: milliseconds, predicted for t" and table(rows[1:])[-1] == "costs: launches, predicted for t"


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    onnx.save(parse(SQUARES), tmp_path / "m.onnx")
    rules = tmp_path / "my.rules"
    rules.write_text(RIVALS)
    return ["compare", str(tmp_path / "m.onnx"), "--engines", "--orders", "2", "--target", "launches", "--eqsat", f"--rules '{rules}' --only my"]


def test_the_command_shows_the_figures(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 0
    assert "m.onnx" in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["models"]
    assert [one["order"] for one in row["greedy"]] == ["file", "random:1", "random:2"]
    assert row["target"] == "launches"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--as-is"], "give one of both"),
        (["--against", "onnxsim"], "--against has no meaning with it"),
        (["--csv", "a.csv"], "--csv has no meaning with it"),
        (["--eqsat", "--order random:x"], "order"),
        (["none.onnx"], "none.onnx"),
    ],
)
def test_wrong_use_is_one_line(command: list[str], wrong: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, *wrong]) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err and err.count("\n") == 1
