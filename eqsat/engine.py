"""The engine: egglog with a program in it comes in; steps of it are run and recorded, and its tables go out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from eqsat.language.compile import Compiled
from eqsat.program import Program
from eqsat.record import Iteration, Record

LAWS, SIMPLIFY, SETTLE, SEARCH, GROW = "laws", "simplify", "settle", "search", "grow"


class Engine:
    """egglog with a program in it, which is run step by step; a record is kept of each step."""

    def __init__(self, bindings: Any, program: Program, folder: str, rules: Sequence[Compiled], record: Record) -> None:
        self.program = program
        self.nodes = self.classes = 0
        self._bindings = bindings.EGraph(fact_directory=folder)
        self._rules = rules
        self._record = record
        self._given = 0  # commands of the program, so far
        self.extend()
        self.run("(run-schedule (saturate (run load)))")
        self._measure()

    def extend(self) -> None:
        """Gives egglog what was added to the program."""
        commands = self.program.commands
        for command in commands[self._given :]:
            self.run(command)
        self._given = len(commands)

    def run(self, text: str) -> Any:
        """What egglog answers to commands."""
        return self._bindings.run_program(*self._bindings.parse_program(text))

    def step(self, ruleset: str, phase: str = "", step: str = LAWS) -> bool:
        """Runs a ruleset once; whether anything changed."""
        self.extend()
        clock = time.perf_counter()
        report = self.run(f"(run-schedule (run {ruleset}))")[0].report
        self._measure()
        self._record.iterations.append(Iteration(phase, step, self.nodes, self.classes, time.perf_counter() - clock))
        for rule, count in report.num_matches_per_rule.items():
            kind, _, rest = rule.partition(" ")
            if kind == "rule":
                title = self._rules[int(rest)].rule.name
                self._record.fired[title] = self._record.fired.get(title, 0) + count
            elif kind != "search":
                self._record.matches[kind] = self._record.matches.get(kind, 0) + count
        return bool(report.updated)

    def tables(self) -> Any:
        """All tables of egglog by name."""
        return self._bindings.freeze().functions

    def integer(self, value: Any) -> int:
        """A column of an integer, as it came in or as a Python object."""
        result: int = self._bindings.value_to_i64(value)
        return result

    def number(self, value: Any) -> int:
        """A column of a Python object that is an integer."""
        result: int = self._bindings.value_to_pyobject(value)
        return result

    def _measure(self) -> None:
        sizes = dict(self.run("(print-size)")[0].sizes)
        self.nodes = sum(sizes.get(name, 0) for name in self.program.terms)
        self.classes = sizes["fact"] + sizes["facts"]
