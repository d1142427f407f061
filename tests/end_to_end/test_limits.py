"""Whatever limit ends a run, the result is valid and equal, and the report names the limit."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import eqsat
from tests.support.models import assert_same, parse

MODEL = parse("""g (float[N, 3] x) => (float[N, 3] y)
<float[3] w = {1, 2, 3}> {
    a = Add (x, w)
    b = Add (x, w)
    c = Identity (a)
    d = Mul (c, b)
    y = Relu (d)
}""")
FEEDS = {"x": np.arange(6, dtype=np.float32).reshape(2, 3) - 3}


@pytest.mark.parametrize(("options", "hit"), [({"time_limit": 0}, "time"), ({"node_limit": 1}, "nodes")])
def test_limits_are_named_and_leave_a_valid_model(options: dict, hit: str) -> None:
    import eqsat

    result = eqsat.optimize(MODEL, **options)
    assert result.report["limits"]["hit"] == hit
    assert result.report["verify"]["status"] == "equal"
    onnx.checker.check_model(result.model)
    assert_same(MODEL, result.model, FEEDS)


def test_the_terminal_names_the_option_that_lifts_a_limit() -> None:
    import eqsat
    from eqsat.cli.summary import summary

    lines = summary(eqsat.optimize(MODEL, time_limit=0).report)
    assert "limit   time: the result is valid; --time-limit would go on" in lines


def test_progress_names_stages_and_steps() -> None:
    import eqsat

    told: list[str] = []
    eqsat.optimize(MODEL, progress=told.append)
    assert told[:4] == ["read", "optimize", "optimize, saturate 4 nodes", "optimize, choose, 4 nodes"] and told[-1] == "verify"


def test_memory_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    import eqsat
    from eqsat.egraph import limits

    sizes = iter(range(0, 1 << 60, 1 << 40))
    monkeypatch.setattr(limits, "resident_bytes", lambda: next(sizes))
    result = eqsat.optimize(MODEL)
    assert result.report["limits"]["hit"] == "memory"
    assert_same(MODEL, result.model, FEEDS)


@pytest.mark.parametrize("stage", ["encode", "saturate", "Chooser"])
def test_ctrl_c_gives_the_original(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import eqsat
    from eqsat.rewriting import rewrite

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(rewrite, stage, interrupt)
    result = eqsat.optimize(MODEL)
    assert result.report["limits"]["hit"] == "interrupted"
    assert result.model.SerializeToString(deterministic=True) == MODEL.SerializeToString(deterministic=True)


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def usual_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("usual_handler")
@pytest.mark.parametrize("stage", ["encode", "saturate", "Chooser"])
def test_the_first_ctrl_c_ends_the_search_and_keeps_what_was_found(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import eqsat
    from eqsat.rewriting import rewrite

    usual = getattr(rewrite, stage)
    calls: list[object] = []

    def interrupted(*arguments: Any, **others: Any) -> Any:
        found = usual(*arguments, **others)
        calls.append(found)
        if len(calls) == 1:
            press_ctrl_c()
        return found

    monkeypatch.setattr(rewrite, stage, interrupted)
    result = eqsat.optimize(MODEL, target="launches")
    assert result.report["limits"]["hit"] == "interrupted"
    assert result.report["verify"]["status"] == "equal"
    assert result.report["nodes"]["after"] < 5
    assert_same(MODEL, result.model, FEEDS)


@pytest.mark.usefixtures("usual_handler")
def test_the_second_ctrl_c_gives_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    import eqsat
    from eqsat.rewriting import rewrite

    def interrupted(*_: object) -> object:
        press_ctrl_c()
        press_ctrl_c()
        raise AssertionError("the second one is raised")

    monkeypatch.setattr(rewrite, "saturate", interrupted)
    result = eqsat.optimize(MODEL)
    assert result.report["limits"]["hit"] == "interrupted"
    assert result.model.SerializeToString(deterministic=True) == MODEL.SerializeToString(deterministic=True)


PROGRAM = """
import os, signal, sys
from eqsat.cli.main import main
from eqsat.rewriting import rewrite
signal.signal(signal.SIGINT, signal.default_int_handler)
usual = rewrite.saturate
def interrupted(*arguments):
    found = usual(*arguments)
    os.kill(os.getpid(), int(sys.argv[1]))
    return found
rewrite.saturate = interrupted
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: signal.Signals(number).name)
def test_the_command_writes_the_best_model_and_says_so(number: int, tmp_path: Path) -> None:
    onnx.save(MODEL, tmp_path / "model.onnx")
    command = [sys.executable, "-c", PROGRAM, str(int(number)), "optimize", "model.onnx", "-o", "out.onnx", "--target", "launches", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr == "eqsat: interrupted; out.onnx is the best model that was found until then\n"
    assert json.loads(done.stdout)["nodes"]["after"] < 5
    assert_same(MODEL, onnx.load(tmp_path / "out.onnx"), FEEDS)


def test_ctrl_c_during_verification_gives_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    import eqsat
    from eqsat.verification import passing

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(passing, "verify", interrupt)
    result = eqsat.optimize(MODEL)
    assert result.report["limits"]["hit"] == "interrupted"
    assert result.report["nodes"]["after"] == result.report["nodes"]["before"] == 5


def test_a_result_that_computes_something_else_is_never_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong decoder stands for any defect of ours.

    Verification finds it, and the original is the result.
    """
    import eqsat
    from eqsat.choose.decode import Decoded, Decoder

    right = Decoder.decode

    def wrong(decoder: Decoder) -> Decoded:
        decoded = right(decoder)
        for node in decoded.graph.node:
            node.op_type = {"Mul": "Sub"}.get(node.op_type, node.op_type)
        return decoded

    monkeypatch.setattr(Decoder, "decode", wrong)
    result = eqsat.optimize(MODEL, target="launches")
    assert result.report["verify"]["status"] == "different"
    assert result.report["notes"]
    assert_same(MODEL, result.model, FEEDS)


def test_a_contradiction_keeps_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    import eqsat
    from eqsat.facts.fact import Contradiction
    from eqsat.rewriting import rewrite

    def contradict(*_: object) -> None:
        raise Contradiction("one value can not have the size 2 and 3")

    monkeypatch.setattr(rewrite, "saturate", contradict)
    result = eqsat.optimize(MODEL)
    assert "2 and 3" in result.report["notes"][0]
    assert_same(MODEL, result.model, FEEDS)


def test_ctrl_c_in_a_later_turn_keeps_what_was_found_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report named the limit of the turn before instead of the interrupt."""
    import eqsat
    from eqsat.rewriting import rewrite
    from tests.support.growing_rules import ASSOCIATE

    calls: list[object] = []
    saturate = rewrite.saturate

    def interrupt(*arguments: Any) -> object:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return saturate(*arguments)

    monkeypatch.setattr(rewrite, "saturate", interrupt)
    sums = " ".join(f"s{i + 1} = Add({f's{i}' if i else 'x'}, x{i})" for i in range(20))
    model = parse(f"g (float[2] x, {', '.join(f'float[2] x{i}' for i in range(20))}) => (float[2] y, float[2] z) {{ {sums} y = Relu(s20) z = Relu(s20) }}")
    result = eqsat.optimize(model, rules=[ASSOCIATE], only=["associate"], target="launches")
    assert len(calls) == 2
    assert result.report["limits"]["hit"] == "interrupted"
    assert result.report["verify"]["status"] == "equal"


@pytest.mark.parametrize("checks", range(1, 4))
def test_a_limit_may_end_a_run_at_any_check(checks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter(range(checks))
    monkeypatch.setattr("eqsat.egraph.limits.Watch.reached", lambda *_: None if next(left, None) is not None else "memory")
    model = parse("""<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3, 4] x, float[4, 5] w, float[5] b) => (float[2, 3, 5] y) {
        a = MatMul (x, w)
        y = Add (a, b)
    }""")
    assert eqsat.optimize(model, effort="low").report["limits"]["hit"] == "memory"
