"""The schedule: the order of its steps, and when a phase ends."""

from __future__ import annotations

from typing import Any, cast

from eqsat.egraph.engine import LAWS, SIMPLIFY
from eqsat.egraph.limits import Limits, Watch
from eqsat.egraph.phases import Phase
from eqsat.egraph.schedule import Schedule


class Growing:
    """An engine and the rules of a phase, whose shrinking rules make so many e-nodes in each step."""

    def __init__(self, made: int) -> None:
        self.made = made
        self.nodes = 10
        self.steps: list[str] = []

    def step(self, rulesets: object, phase: str = "", step: str = LAWS) -> bool:
        self.steps.append(step)
        self.nodes += self.made * (step == SIMPLIFY)
        return step == SIMPLIFY

    def due(self, families: object) -> list[str]:
        return ["rules"]

    def find_edges(self) -> None:
        pass

    def admit(self) -> bool:
        return False

    def growing(self, phase: Phase) -> dict[int, object]:
        return {}

    def shrinking(self, phase: Phase) -> list[str]:
        return ["rules"]

    searching = shrinking


def test_a_full_phase_searches_for_nothing() -> None:
    """Where nothing may fire any more, the search for matches alone could take all memory."""
    engine = cast(Any, Growing(made=40))
    watch = Watch(Limits(), 0)
    assert Schedule(engine, engine, watch, 0).run([Phase(nodes=(100, 0))], lambda: None) == "growth"
    assert engine.steps == [LAWS, SIMPLIFY, LAWS, SIMPLIFY, LAWS, SIMPLIFY, LAWS] and engine.nodes == 130
