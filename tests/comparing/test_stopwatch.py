"""Variants that run are timed, the others have a reason, and none disturbs the others."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

from eqsat.comparing import stopwatch
from eqsat.comparing.stopwatch import Request, launches, measure, own_worker, relative, spread, timed
from eqsat.runtime.interleaved import NotTimed
from eqsat.runtime.worker import Worker
from tests.support.models import parse

FEEDS = {"x": np.ones((4, 3), np.float32)}


@pytest.fixture(scope="module")
def worker() -> Generator[Worker]:
    with own_worker() as found:
        yield found


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "tiny.onnx"
    path.write_bytes(parse("g (float[N, 3] x) => (float[N, 3] y) { a = Relu (x)  b = Tanh (a)  y = Mul (b, a) }").SerializeToString())
    return str(path)


def test_all_that_load_are_timed(model: str, worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    paths = {"original": model, "broken": str(tmp_path / "broken.onnx"), "again": model}
    found = measure(Request(paths, FEEDS, rounds=3, seconds=60), worker)
    assert set(found.measured) == {"original", "again"} and set(found.failures) == {"broken"}
    assert found.rounds == 3
    for each in found.measured.values():
        assert each.launches == 3 and 0 < each.minimum <= each.low <= each.median <= each.high
    assert found.measured["original"].relative == 1 and found.measured["again"].relative > 0


def test_inputs_that_do_not_fit_are_a_reason(model: str, worker: Worker) -> None:
    found = measure(Request({"original": model}, {"x": np.ones((4, 5), np.float32)}, rounds=1, seconds=0), worker)
    assert not found.measured and "x" in found.failures["original"]


def test_timing_goes_on_without_one_that_fails_late(model: str, worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    failures: dict[str, str] = {}
    paths = {"original": model, "broken": str(tmp_path / "broken.onnx"), "again": model}
    times = timed(paths, Request(paths, FEEDS, rounds=1000, seconds=0), worker, failures)
    assert {name: len(each) for name, each in times.items()} == {"original": 2, "again": 2} and set(failures) == {"broken"}


def test_all_sessions_load_the_library(model: str, worker: Worker, tmp_path: Path) -> None:
    library = tmp_path / "ops.so"
    library.write_text("no library")
    request = Request({"original": model}, FEEDS, rounds=2, seconds=0, library=str(library))
    failures: dict[str, str] = {}
    assert timed(request.variants, request, worker, failures) == {} and "Failed to load library" in failures["original"]
    with pytest.raises(NotTimed, match="Failed to load library"):
        launches(model, request, worker)


def test_timing_goes_on_without_one_that_hangs_late(model: str, worker: Worker, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    failures: dict[str, str] = {}
    paths = {"original": model, "pipe": str(tmp_path / "pipe.onnx"), "again": model}
    times = timed(paths, Request(paths, FEEDS, rounds=2, seconds=0, patience=2), worker, failures)
    assert set(times) == {"original", "again"} and failures == {"pipe": "ONNX Runtime took longer than 2 s"}


def test_the_runs_in_which_the_runtime_allocates_do_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On images of 1920 by 1080 the second run took twice as long as the third, and the few rounds had it alone."""
    now = 0

    class Session:
        def __init__(self, *_: object) -> None:
            self.runs = 0

        def run(self, *_: object) -> None:
            nonlocal now
            self.runs += 1
            now += 100 if self.runs <= 2 else 1

    monkeypatch.setattr(stopwatch, "_session", Session)
    monkeypatch.setitem(stopwatch.CLOCKS, "wall", lambda: now)
    found = stopwatch.run_rounds({"original": "", "other": ""}, FEEDS, stopwatch.BATCH + 2, 60, "wall", 1, str(tmp_path / "turn"), None)
    assert found == {name: [1] * (stopwatch.BATCH + 2) for name in ("original", "other")}


def test_halves_agree_on_ratios_and_not_on_times() -> None:
    assert spread({"original": [1, 1, 3, 3], "other": [2, 2, 6, 6]}) == 0
    assert spread({"original": [1, 1, 1, 1], "other": [2, 2, 3, 3], "best": [1, 1, 1, 1]}) == pytest.approx(0.5)
    assert spread({"original": [2, 2, 3, 3]}) == pytest.approx(0.5)
    assert spread({}) == 0


def test_times_are_compared_side_by_side() -> None:
    """The medians of 3 and 1 are far apart, though both variants take the same in every round but one."""
    original, same = [1, 1, 3, 3, 3], [1, 1, 1, 3, 3]
    assert relative({"original": original, "same": same, "double": [2 * one for one in original]}) == {"original": 1, "same": 1, "double": 2}
    assert relative({}) == {}
    assert spread({"original": [1, 3, 3, 1, 1, 3], "same": [1, 3, 3, 1, 1, 3]}) == 0
