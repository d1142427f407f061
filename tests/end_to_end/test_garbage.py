"""The cycle collector of a process that uses eqsat as a library."""

import gc
import subprocess
import sys
from collections.abc import Iterator

import onnx
import pytest

import eqsat
from eqsat.garbage import collecting_rarely
from tests.support.models import parse
from tests.support.transformer import transformer

USUAL = (700, 10, 10)


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """Gives the collector Python's own thresholds, whatever the test process has."""
    before = gc.get_threshold()
    gc.set_threshold(*USUAL)
    yield
    gc.set_threshold(*before)


def model() -> onnx.ModelProto:
    return parse('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { a = Relu (x)  y = Relu (a) }')


def test_a_run_collects_rarely_and_leaves_the_collector_as_it_was() -> None:
    seen: list[tuple[int, int, int]] = []
    eqsat.optimize(model(), verify=False, progress=lambda _: seen.append(gc.get_threshold()))
    assert seen
    assert {thresholds[0] for thresholds in seen} == {1_000_000}
    assert gc.get_threshold() == USUAL


def test_an_error_leaves_the_collector_as_it_was() -> None:
    with pytest.raises(eqsat.InputError):
        eqsat.optimize(model(), rules=["/nothing/there.rules"])
    assert gc.get_threshold() == USUAL


def test_the_first_of_two_runs_to_end_changes_nothing() -> None:
    one, other = collecting_rarely(), collecting_rarely()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert gc.get_threshold()[0] == 1_000_000
    other.__exit__(None, None, None)
    assert gc.get_threshold() == USUAL


@pytest.mark.parametrize("own", [0, 1_000_000])
def test_a_collector_that_runs_more_rarely_is_left_alone(own: int) -> None:
    gc.set_threshold(own, 10, 10)
    with collecting_rarely():
        assert gc.get_threshold()[0] == own


def test_a_process_of_eqsats_own_does_not_collect_at_its_end() -> None:
    # The cycle would tell that it was collected, for which the interpreter looks at its end.
    code = """
from eqsat.garbage import collect_rarely
class Cycle:
    def __init__(self): self.own = self
    def __del__(self): print("collected")
collect_rarely()
collect_rarely()
Cycle()
print("end")
"""
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{code}"], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("end\n", "")


BRANCHES = """
<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
g (bool c, float[2] x) => (float[2] y) {
  z = own.twice (x)
  y = If (c) <then_branch = t () => (float[2] a) { a1 = Relu (z)  a = Relu (a1) }, else_branch = e () => (float[2] b) { b1 = Neg (z)  b = Neg (b1) }>
}
<domain: "own", opset_import: ["" : 17]> twice (x) => (y) { y1 = Abs (x)  y = Add (y1, y1) }
"""


@pytest.mark.parametrize(
    ("model", "target"),
    [
        pytest.param(transformer(3, 32), "onnxruntime-cpu", id="regions"),
        pytest.param(transformer(1, 32), "launches", id="whole"),
        pytest.param(parse(BRANCHES), "onnxruntime-cpu", id="bodies"),
    ],
)
def test_a_run_leaves_no_cycles_of_its_terms_and_graphs(model: onnx.ModelProto, target: str) -> None:
    # Cycles would keep the e-graphs of a large model until the collector runs, which takes long there.
    eqsat.optimize(model, target=target)  # what stays in caches is there now
    gc.collect()
    gc.disable()
    try:
        eqsat.optimize(model, target=target)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = {type(one).__qualname__ for one in gc.garbage if type(one).__module__.startswith(("eqsat.", "onnx."))}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left <= {"_Deadline"}  # of a call of the runtime, which holds no graph
