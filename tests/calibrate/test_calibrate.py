"""Calibration without a clock: its cases run, and its fits find the rates that made the times."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from eqsat.calibrate.block_size import channels_of_a_block
from eqsat.calibrate.calibrate import calibrate
from eqsat.calibrate.case import Case, Given
from eqsat.calibrate.cases import all_cases, launches, other_dtypes, subnormal
from eqsat.calibrate.fitting import fit
from eqsat.calibrate.target_text import target_text
from eqsat.calibrate.timing import Timed
from eqsat.cli.main import main
from eqsat.cost.kinds import KINDS
from eqsat.cost.price import PricedNode, price, work
from eqsat.cost.shaped import Shaped
from eqsat.cost.target import load_target
from eqsat.runtime.own_graph import make_own_graph

CPU = load_target("onnxruntime-cpu")
_SCALAR = PricedNode("", "Neg", {}, [Shaped(1, (1,))], [Shaped(1, (1,))])
STILL = replace(CPU, change=0)  # a case runs over and over, without a change of kernels
ALL = [*all_cases(), *launches().values(), *(case for _, _, *pair in other_dtypes() for case in pair), *subnormal()]


def results(case: Case) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(case.model(1).SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, case.feeds()))


def test_every_case_runs() -> None:
    """Calibration leaves out a case that the runtime refuses, so nobody would notice it."""
    refused: list[str] = []
    for key in sorted({case.key for case in ALL}):
        smallest = min((case for case in ALL if case.key == key), key=lambda case: sum(given.shaped.elements for given in case.inputs if given))
        try:
            results(smallest)
        except Exception as error:
            refused.append(f"{key}: {str(error)[:200]}")
    assert not refused


def test_a_chain_is_one_node_on_the_other() -> None:
    case = Case("Sqrt", (Given((3,)),))
    options = onnxruntime.SessionOptions()
    session = onnxruntime.InferenceSession(case.model(3).SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = case.feeds()
    np.testing.assert_allclose(np.asarray(session.run(None, feeds)[0]), feeds["i0"] ** 0.125, rtol=1e-6)


def test_every_class_of_the_shipped_file_is_measured_or_estimated() -> None:
    text = (Path(__file__).parents[2] / "extract" / "targets" / "onnxruntime-cpu.toml").read_text()
    for kind in KINDS:
        assert f"\n{kind} = " in text


@pytest.mark.parametrize("rates", [(2e-10, 3e-8), (2e-10, 0.0), (0.0, 3e-8)])
def test_a_fit_finds_the_rates_that_made_the_times(rates: tuple[float, float]) -> None:
    cases = []
    for length in (16, 64, 256, 1024):
        x = Shaped(1, (65536 // length, length))
        node = PricedNode("", "LayerNormalization", {}, [x, Shaped(1, (length,), True)], [x])
        done = work(node, CPU)
        cases.append((Timed(Case("LayerNormalization", ()), node, 1e-6 + rates[0] * done.elements + rates[1] * done.rows), done))
    found = fit("norm", cases, 1e-6)
    assert (found["per_element"], found["per_row"]) == pytest.approx(rates, rel=1e-6, abs=1e-16)


def test_one_of_two_products_is_of_subnormal_numbers() -> None:
    tiny, usual = (case.feeds()["i0"] for case in subnormal())
    least = np.finfo(np.float32).tiny
    assert 0 < tiny.min() and tiny.max() < least < usual.min() and tiny.shape == usual.shape


@pytest.mark.parametrize(("longer", "cost"), [(32e-9, 32e-9), (2e-9, 0), (-2e-9, 0)])
def test_what_subnormal_numbers_cost_is_measured(longer: float, cost: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A difference within the noise of two measurements is no cost: some processors have none."""

    def slowed(cases: list[Case], progress: object) -> list[Timed]:
        """128 times 128 elements, each of which meets one vector of 16 columns, take longer."""
        given = {id(case): case.inputs[0] for case in cases}
        timed: list[Timed] = []
        for case in cases:
            first = given[id(case)]
            assert first is not None
            node = PricedNode("", case.name, {}, [first.shaped], [Shaped(1, (128, 16))])
            timed.append(Timed(case, node, 1e-4 + (128 * 128 * longer if first.scale < 1 else 0)))
        return timed

    monkeypatch.setattr("eqsat.calibrate.calibrate.time_cases", slowed)
    monkeypatch.setattr("eqsat.calibrate.calibrate.all_cases", list)
    monkeypatch.setattr("eqsat.calibrate.calibrate._fitted", lambda measured, launch, shipped: {"classes": {"matmul": {}}})
    monkeypatch.setattr("eqsat.calibrate.calibrate._levels", lambda timed, launch: [])
    assert calibrate(lambda stage: None).tables["subnormal"] == pytest.approx(cost, abs=0)


def test_blocks_have_as_many_channels_as_the_runtime_fills_up() -> None:
    """A Conv of 17 results has filters for whole blocks: 32 of 16 channels, 24 of 8."""
    image, filters = Given((1, 3, 8, 8)), Given((17, 3, 3, 3), constant=True)
    model = Case("Conv", (image, filters), optimized=True).model(1)
    own = onnx.ModelProto.FromString(make_own_graph(model.SerializeToString(), 0, None, None, {}, 1))
    filled = max(tensor.dims[0] for tensor in own.graph.initializer)
    block = channels_of_a_block()
    if block is None:
        assert filled == 17
    else:
        assert filled == -(-17 // block) * block > 17


@pytest.mark.parametrize("block", [8, 16, None])
def test_the_layout_is_that_of_the_machine(block: int | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("eqsat.calibrate.calibrate.channels_of_a_block", lambda: block)
    monkeypatch.setattr("eqsat.calibrate.calibrate.time_cases", lambda cases, progress: [Timed(case, _SCALAR, 1e-4) for case in cases])
    monkeypatch.setattr("eqsat.calibrate.calibrate.all_cases", list)
    monkeypatch.setattr("eqsat.calibrate.calibrate._fitted", lambda measured, launch, shipped: {"classes": {"matmul": {}}})
    monkeypatch.setattr("eqsat.calibrate.calibrate._slower", lambda tiny, usual: 0.0)
    monkeypatch.setattr("eqsat.calibrate.calibrate._levels", lambda timed, launch: [{"bytes": 1e6, "rate": 1e10}])
    path = tmp_path / "made.toml"
    path.write_text(target_text(calibrate(lambda stage: None).tables))
    made, shipped = load_target(path).blocked, CPU.blocked
    assert made is not None and shipped is not None
    assert made == replace(shipped, block=block or shipped.block)


def test_a_calibration_explains_the_target_that_made_its_times(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The times come from the shipped target instead of a clock.

    The file written must predict the same times.
    """

    def predicted(cases: list[Case], progress: object) -> list[Timed]:
        timed: list[Timed] = []
        for case in cases:
            outputs = (
                [Shaped(int(_DTYPES[result.dtype.name]), result.shape) for result in results(case)]
                if case.chain == 1
                else [each.shaped for each in case.inputs[:1] if each]
            )
            attributes = {name: value.encode() if isinstance(value, str) else value for name, value in case.attributes.items()}
            node = PricedNode(case.domain, case.name, attributes, [None if each is None else each.shaped for each in case.inputs], outputs)
            timed.append(Timed(case, node, price(node, STILL).seconds))
        return timed

    few = [case for case in all_cases() if case.key in ("LayerNormalization", "Softmax", "Add", "Mul", "Tanh", "MatMul") and case.chain == 1]
    monkeypatch.setattr("eqsat.calibrate.calibrate.time_cases", predicted)
    monkeypatch.setattr("eqsat.calibrate.calibrate.all_cases", lambda: few)
    done = calibrate(lambda stage: None)
    path = tmp_path / "made.toml"
    path.write_text(target_text(done.tables))
    made = replace(load_target(path), change=0)
    factors = sorted(price(each.node, made).seconds / each.seconds for each in done.timed if each.case in few)
    # Where moving bytes dominates, the fit cannot find the rates. Predictions still never exceed
    # the time.
    assert factors[0] > 0.75 and factors[-1] < 1.35


_DTYPES = {"float32": 1, "float64": 11, "float16": 10, "int64": 7, "bool": 9}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "target.txt"], "the name of a target's file ends in .toml"),
        (["-o", "nowhere/target.toml"], "nowhere: no such folder"),
        ([], "the following arguments are required: -o/--output"),
    ],
)
def test_wrong_options(arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["calibrate", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_command_writes_one_file_and_prints_one_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("eqsat.calibrate.calibrate.all_cases", lambda: [case for case in all_cases() if case.key in ("Add", "MatMul")][:8])
    path = tmp_path / "mine.toml"
    assert main(["calibrate", "-o", str(path), "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["output"] == str(path) and not printed.err
    assert [each.name for each in tmp_path.iterdir()] == ["mine.toml"]
    assert load_target(path).runtime == f"onnxruntime {onnxruntime.__version__}"
