"""The engine: it runs an egglog program step by step, records the steps and reads the tables."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from eqsat.egraph.changes import LOOK
from eqsat.egraph.ground import EDGES, TOLD
from eqsat.egraph.program import CLEAN, EACH, Program
from eqsat.egraph.record import Iteration, Record
from eqsat.language.compile import Direction

LAWS, SIMPLIFY, SETTLE, SEARCH, GROW = "laws", "simplify", "settle", "search", "grow"


class Engine:
    """egglog with one program. It records each step."""

    def __init__(self, ground: Any, program: Program, rules: Sequence[Direction], record: Record) -> None:
        """`ground` is an e-graph of egglog for the program alone (eqsat/egraph/ground.py)."""
        self.program = program
        self.nodes = self.classes = 0
        self._bindings = ground
        self._rules = rules
        self._record = record
        self._given = 0  # the number of commands that egglog has
        self._combined: dict[tuple[str, ...], str] = {}
        self.extend()
        self.run("(run-schedule (saturate (run load)))")
        self._measure()

    def extend(self) -> None:
        """Gives egglog the new commands of the program."""
        commands = self.program.commands
        new = commands[self._given :]
        self._given = len(commands)
        if new:
            self.run(self.program.include(new))

    def run(self, text: str) -> Any:
        """Runs commands and returns egglog's answer."""
        return self._bindings.run_program(*self._bindings.parse_program(text))

    def due(self, families: Sequence[str]) -> list[str]:
        """Returns the rulesets of these families whose rules can find more."""
        self.extend()
        changes = self.program.changes
        if changes.refined:
            self.program.clean()
            self.extend()
        if changes.refined and CLEAN in self.program.rulesets:
            self.run(f"(run-schedule (run {CLEAN}))")
        if LOOK in self.program.rulesets:
            changes.look(self.run(f"(run-schedule (run {LOOK}))")[0].report.num_matches_per_rule)
        return changes.due(families)

    def step(self, rulesets: Sequence[str], phase: str = "", step: str = LAWS) -> bool:
        """Runs the rules of these rulesets once. Tells whether anything changed."""
        self.extend()
        clock = time.perf_counter()
        report = self.run(f"(run-schedule (run {self._together(rulesets)}))")[0].report
        if report.updated:
            self.complete()
            self._measure()
        self._record.iterations.append(Iteration(phase, step, self.nodes, self.classes, time.perf_counter() - clock))
        for rule, count in report.num_matches_per_rule.items():
            kind, _, rest = rule.partition(" ")
            if kind == "rule":
                title = self._rules[int(rest)].name
                self._record.fired[title] = self._record.fired.get(title, 0) + count
            elif kind != "search":
                self._record.matches[kind] = self._record.matches.get(kind, 0) + count
        return bool(report.updated)

    def _together(self, rulesets: Sequence[str]) -> str:
        """Returns one ruleset with the rules of several."""
        if len(rulesets) == 1:
            return rulesets[0]
        key = tuple(rulesets)
        name = self._combined.get(key)
        if name is None:
            name = self._combined[key] = f"together_{len(self._combined)}"
            self.run(f"(unstable-combined-ruleset {name} {' '.join(rulesets)})")
        return name

    def find_edges(self) -> None:
        """Notes the new edges of the e-graph in the program."""
        self.run(f"(run-schedule (run {EDGES}) (run {TOLD}))")

    def complete(self) -> None:
        """Completes the lists that rules have begun item by item."""
        if EACH in self.program.rulesets:
            self.run(f"(run-schedule (saturate (run {EACH})))")

    def tables(self) -> Any:
        """Returns egglog's tables, also those that rules have declared since the last step: a limit may
        end a run between the two.
        """
        self.extend()
        return self._bindings.freeze().functions

    def integer(self, value: Any) -> int:
        """Returns the integer in a column of egglog integers or of Python objects."""
        result: int = self._bindings.value_to_i64(value)
        return result

    def number(self, value: Any) -> int:
        """Returns the integer in a column of Python objects."""
        result: int = self._bindings.value_to_pyobject(value)
        return result

    def _measure(self) -> None:
        sizes = dict(self.run("(print-size)")[0].sizes)
        self.nodes = sum(sizes.get(name, 0) for name in self.program.terms)
        self.classes = sizes["fact"] + sizes["facts"]
