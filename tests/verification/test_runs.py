"""Runs: which draws an original is asked about, and how long that takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eqsat.runtime.worker import Worker
from eqsat.verification.examiner import Examiner
from eqsat.verification.loaded_model import LoadedModel
from eqsat.verification.planning import make_plan
from eqsat.verification.request import UNVERIFIED, Judgement
from eqsat.verification.runs import NoDraw, Runs
from eqsat.verification.sample_plan import Edge
from tests.support.models import parse


class Refusing:
    """A session that refuses all inputs."""

    engine = "onnxruntime"

    def __init__(self) -> None:
        self.asked = 0

    def run(self, feeds: dict[str, Any], names: list[str]) -> list[Any]:
        self.asked += 1
        raise ValueError("no")


@pytest.mark.parametrize(("inputs", "closed", "asked"), [("float[4] x", True, 2), ("int64[4] x", True, 6), ("float[N] x", True, 20), ("float[N] x", False, 6)])
def test_floats_of_given_sizes_are_tried_twice_and_regions_with_usual_elements(inputs: str, closed: bool, asked: int) -> None:
    model = LoadedModel(parse(f"g ({inputs}) => (y) {{ y = Neg (x) }}"), None)
    request = Examiner(1 << 30, None, Worker()).request(model, model, make_plan(model.proto), closed=closed)
    session = Refusing()
    with pytest.raises(NoDraw, match="no"):
        Runs(request, session, Judgement(UNVERIFIED)).first()  # pyright: ignore[reportArgumentType]
    assert session.asked == asked


class Slow:
    """A session of which each run takes some seconds by a clock of its own."""

    engine = "onnxruntime"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.now = 0.0

    def run(self, feeds: dict[str, Any], names: list[str]) -> list[Any]:
        self.now += self.seconds
        return [feeds["x"]]


@pytest.mark.parametrize(("seconds", "closed", "runs"), [(1, True, 3), (10, True, 2), (20, True, 2), (30, True, 1), (30, False, 2)])
def test_a_model_that_takes_long_runs_on_few_draws(monkeypatch: pytest.MonkeyPatch, seconds: float, closed: bool, runs: int) -> None:
    """Three draws as a rule, and one where a second would hardly end within the time limit of a minute: there
    was no verdict at all.
    """
    model = LoadedModel(parse("g (int64[4] x) => (int64[4] y) { y = Neg (x) }"), None)
    session, judgement = Slow(seconds), Judgement(UNVERIFIED)
    monkeypatch.setattr("eqsat.verification.runs.time.monotonic", lambda: session.now)
    request = Examiner(1 << 30, None, Worker()).request(model, model, make_plan(model.proto), closed=closed)
    assert len(list(Runs(request, session, judgement).usual())) == runs  # pyright: ignore[reportArgumentType]
    assert judgement.notes == (["ran on one draw: running takes long"] if runs == 1 else [])


class Sized:
    """A session that notes the sizes of its inputs and takes time in proportion to their elements, by its own clock."""

    engine = "onnxruntime"

    def __init__(self, pace: float) -> None:
        self.pace, self.now, self.sizes = pace, 0.0, list[int]()

    def run(self, feeds: dict[str, Any], names: list[str]) -> list[Any]:
        self.sizes.append(feeds["x"].size)
        self.now += self.pace * feeds["x"].size
        if feeds["x"].size not in (3, 301):
            raise ValueError("no other size fits")
        return [feeds["x"]]


@pytest.mark.parametrize(("pace", "edges"), [(0.0001, 1), (0.004, 1), (0.008, 0)])
def test_an_edge_that_would_take_long_is_left_to_regions(monkeypatch: pytest.MonkeyPatch, pace: float, edges: int) -> None:
    """One Magika spreads each byte over 257 classes, so a batch of 257 took 5 s for each of six runs, and 2 GB."""
    model = LoadedModel(parse("g (float[N] x) => (float[N] y) { y = Neg (x) }"), None)
    session, judgement = Sized(pace), Judgement(UNVERIFIED)
    monkeypatch.setattr("eqsat.verification.runs.time.monotonic", lambda: session.now)
    request = replace(Examiner(1 << 30, None, Worker()).request(model, model, make_plan(model.proto)), edges=(Edge(("N",), (301,)),))
    runs = Runs(request, session, judgement)  # pyright: ignore[reportArgumentType]
    assert len(list(runs.usual())) == 3 and len(list(runs.at_edges())) == edges
    assert judgement.costly == ([] if edges else [Edge(("N",), (301,))])


@pytest.mark.parametrize(
    ("graph", "threads"),
    [
        ("g (float[1, 3, 64, 64] x) => (y) { y = Neg (x) }", 1),
        ("g (float[1, 3, 1080, 1920] x) => (y) { y = Neg (x) }", 4),  # a Conv of few weights took 3 s a run, of which there were six
        ("g (float[N] x) => (y) { y = Neg (x) }", 1),
        ("g (float[N] x) => (y) <int64[1] a = {0}, int64[1] b = {512}> { y = Slice (x, a, b) }", 4),  # an edge has 513 elements
        ("g (float[1] x) => (y) <float[2, 1, 2200, 1000] w = {1}> { y = Add (x, w) }", 4),
    ],
)
def test_models_whose_runs_may_take_long_have_several_threads(monkeypatch: pytest.MonkeyPatch, graph: str, threads: int) -> None:
    monkeypatch.setattr("eqsat.verification.examiner.os.cpu_count", lambda: 16)
    model = LoadedModel(parse(graph), None)
    assert Examiner(1 << 30, None, Worker()).request(model, model, make_plan(model.proto)).threads == threads


def test_further_draws_are_no_larger_than_the_first_unless_they_are_cheap() -> None:
    """A third run was looked for in images of 224 by 160 by 112, which took 10 s and 2 GB to be refused."""
    model = LoadedModel(parse("g (float[A, B, 64, 64] x) => (float[A, B, 64, 64] y) { y = Neg (x) }"), None)
    request = Examiner(1 << 30, None, Worker()).request(model, model, make_plan(model.proto))

    class Once(Sized):
        def run(self, feeds: dict[str, Any], names: list[str]) -> list[Any]:
            self.sizes.append(feeds["x"].size)
            if len(self.sizes) > 1:
                raise ValueError("no")
            return [feeds["x"]]

    session = Once(0)
    assert len(list(Runs(request, session, Judgement(UNVERIFIED)).usual())) == 1  # pyright: ignore[reportArgumentType]
    assert max(session.sizes) <= 1 << 18
