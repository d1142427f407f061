"""Saturation: the rows of an encoding go into egglog, laws and rules run, and the e-graph comes back as plain data.

Laws and rules that shrink the graph run until nothing changes. Then the rules that may grow it search, some of what they
find is picked and applied, and so on in turns. Whatever limit ends the run, the e-graph it leaves is a valid one.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eqsat.candidates import Candidates, Row
from eqsat.emit import emit, emit_search, half_name, pick_name, trial_name
from eqsat.encode import Encoding
from eqsat.language.compile import Compiled
from eqsat.language.firing import Firing
from eqsat.language.matching import Refusal
from eqsat.program import Program
from eqsat.terms import ABSENT, CONS, CONSTANT, INPUT, LITERAL, NIL, PROJECTION, Signature, Term

_MATCHES_PER_TERM = 20  # by which the limit of matches grows with the graph
_FIRINGS = 100  # of one rule that may grow, in one round, and more in large graphs
_ROUNDS = 10  # of the rules that may grow


@dataclass(slots=True)
class EGraph:
    """A saturated e-graph as plain data. Values, nodes and lists are classes of one numbering."""

    terms: list[Term]
    facts: list[int]  # by class, a handle
    class_of: list[int]  # by reference of the encoding
    trials: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = field(default_factory=list[tuple[int, tuple[int, ...], tuple[int, ...]]])
    """In trial, what was not joined: the rule's number, the classes of its left roots, and those of its right ones."""


class EngineFailure(Exception):
    """egglog itself failed: a defect, of it or of the program it was given; the graph can stay as it was."""


class _Stop(Exception):
    """A limit was reached inside an iteration. What the iteration would still have added is lost, nothing else."""


@dataclass(slots=True)
class Limits:
    """What a run may use. `deadline` is a time of `time.monotonic`."""

    deadline: float | None = None
    nodes: int = 2_000_000
    memory: int | None = None  # bytes by which this process may grow during the run; watched where the system tells
    matches: int = 50_000  # of the left sides of rules, before their conditions are looked at, and more in large graphs


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of a run. `exact`: only what keeps every bit fires; `trial`: each rule runs once, and nothing is joined."""

    rules: Sequence[Compiled] = ()
    exact: bool = False
    trial: bool = False


@dataclass(slots=True)
class Record:
    """What a run did: iterations, matches by law (`fact` and `literal` say what is known), firings by rule, and the limit that ended it."""

    iterations: int = 0
    matches: dict[str, int] = field(default_factory=dict[str, int])
    fired: dict[str, int] = field(default_factory=dict[str, int])
    wrong: dict[str, str] = field(default_factory=dict[str, str])  # rules whose right side was of another type, and how
    refusals: dict[str, Counter[Refusal]] = field(default_factory=dict[str, Counter[Refusal]])  # by rule, why matches did not fire
    hit: str | None = None
    classes: int = 0
    nodes: int = 0


class _Watch:
    """Looks at the limits inside an iteration, where one alone could take longer than all that was allowed."""

    def __init__(self, limits: Limits, size: int) -> None:
        self._deadline = limits.deadline
        self._most = limits.matches + _MATCHES_PER_TERM * size
        self._matches = 0
        self.hit: str | None = None

    def watched(self, answer: Callable[..., int]) -> Callable[..., int]:
        """The answers to matches, as far as limits allow."""

        def fire(*handles: int) -> int:
            self._matches += 1
            if self._matches > self._most:
                self.hit = "matches"
            elif self._matches % 512 == 0 and self._deadline is not None and time.monotonic() > self._deadline:
                self.hit = "time"
            if self.hit is not None:
                raise _Stop
            return answer(*handles)

        return fire


def relevant(rules: Sequence[Compiled], signatures: set[Signature]) -> list[int]:
    """The numbers of the rules that can match in a graph of these signatures, or of what such rules make."""
    found: set[int] = set()
    available = set(signatures)
    grown = True
    while grown:
        grown = False
        for number, compiled in enumerate(rules):
            if number not in found and compiled.pattern.signatures <= available:
                found.add(number)
                available |= compiled.construction.signatures
                grown = True
    return sorted(found)


def saturate(encoding: Encoding, limits: Limits, ruleset: RuleSet) -> tuple[EGraph, Record]:
    """The saturated e-graph of an encoding, and the record of the run; a limit that is hit ends the run, not the result."""
    from egglog import bindings

    record = Record()
    memory = resident_bytes()
    signatures = encoding.terms.signatures
    numbers = relevant(ruleset.rules, {signatures[entry.head] for entry in (*encoding.entries, *encoding.forms) if entry.head >= 0})
    firings = {number: Firing(ruleset.rules[number], encoding.terms, encoding.derivation, ruleset.exact, ruleset.trial) for number in numbers}
    candidates: dict[int, Candidates] = {}
    watch = _Watch(limits, len(encoding.entries))
    with tempfile.TemporaryDirectory(prefix="eqsat-") as folder:
        program = Program(encoding, Path(folder))
        try:
            for number, firing in firings.items():
                if ruleset.trial or firing.compiled.shrinks:
                    emit(program, firing, number, watch.watched(firing), ruleset.trial)
                else:
                    candidates[number] = Candidates(firing)
                    emit_search(program, firing, number, candidates[number].halves, watch.watched(candidates[number].note))
            engine = bindings.EGraph(fact_directory=folder)

            def run(text: str) -> Any:
                return engine.run_program(*engine.parse_program(text))

            def hit() -> str | None:
                return _hit(limits, memory, sum(size for _, size in run("(print-size)")[0].sizes))

            def step(name: str) -> bool:
                report = run(f"(run-schedule (run {name}))")[0].report
                record.iterations += 1
                for rule, count in report.num_matches_per_rule.items():
                    kind, _, rest = rule.partition(" ")
                    if kind == "search":
                        continue
                    if kind == "rule":
                        title = ruleset.rules[int(rest)].rule.name
                        record.fired[title] = record.fired.get(title, 0) + count
                    else:
                        record.matches[kind] = record.matches.get(kind, 0) + count
                return bool(report.updated)

            def grow() -> bool:
                if not candidates:
                    return False
                step("search")
                picks = _picks(engine, candidates, len(encoding.facts), _FIRINGS + len(encoding.entries) // 2)
                for number, rows in picks.items():
                    run(program.fill(pick_name(number), rows))
                run("(run-schedule (run picked))")
                return bool(picks) and step("grow")

            for command in program.commands:
                run(command)
            run("(run-schedule (saturate (run load)))")
            try:
                if ruleset.trial:
                    while step("laws"):
                        pass
                    step("shrink")
                    step("grow")
                else:
                    record.hit = _schedule(step, hit, grow, candidates.values())
            except _Stop:
                record.hit = watch.hit
            graph = _thaw(engine, program, firings if ruleset.trial else {})
        except bindings.EggSmolError as error:
            raise EngineFailure(" ".join(str(error).split())[:200]) from error
        except BaseException as error:
            # A panic inside egglog surfaces as pyo3's own exception, which can not be imported.
            if type(error).__name__ == "PanicException":
                raise EngineFailure(" ".join(str(error).split())[:200]) from error
            raise
        finally:
            program.close()
    record.wrong = {firing.compiled.rule.name: firing.wrong for firing in firings.values() if firing.wrong is not None}
    for firing in firings.values():
        record.refusals.setdefault(firing.compiled.rule.name, Counter()).update(firing.refusals)
    record.classes, record.nodes = len(graph.facts), len(graph.terms)
    return graph, record


def _schedule(step: Callable[[str], bool], hit: Callable[[], str | None], grow: Callable[[], bool], candidates: Iterable[Candidates]) -> str | None:
    """Laws and shrinking rules until nothing changes, then one round of those that may grow, and so on; the limit that ended it, if one did."""
    for _ in range(_ROUNDS):
        changed = True
        while changed:
            while (limit := hit()) is None and step("laws"):
                pass
            if limit is not None:
                return limit
            changed = step("shrink")
        if not grow():
            return None
    return "rounds" if any(one.waiting for one in candidates) else None


def _picks(engine: Any, candidates: dict[int, Candidates], size: int, budget: int) -> dict[int, list[tuple[int, ...]]]:
    """By rule that may grow, what it is to apply in this round."""
    functions = engine.freeze().functions
    place: dict[Any, int] = {}
    for row in functions["Ref"].rows:
        reference = engine.value_to_i64(row.inputs[0])
        place[row.output] = min(reference, place.get(row.output, reference))
    found: dict[int, list[tuple[int, ...]]] = {}
    for number, one in candidates.items():
        tables = [
            [Row(engine.value_to_pyobject(row.inputs[0]), tuple(row.inputs[1:])) for row in functions[half_name(number, half)].rows]
            for half in range(len(one.halves))
        ]
        if picked := one.pick(tables, place, size, budget):
            found[number] = picked
    return found


def _hit(limits: Limits, memory: int, size: int) -> str | None:
    """The limit that is reached, if one is. Looked at between iterations: each leaves an e-graph that is valid as it is."""
    if limits.deadline is not None and time.monotonic() > limits.deadline:
        return "time"
    if limits.memory is not None and resident_bytes() > memory + limits.memory:
        return "memory"
    return "nodes" if size > limits.nodes else None


def resident_bytes() -> int:
    """The memory that this process holds now; 0 where the system does not tell."""
    statistics = Path("/proc/self/statm")
    return int(statistics.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statistics.exists() else 0


def _thaw(engine: Any, program: Program, trials: dict[int, Firing]) -> EGraph:
    encoding, opaque = program.encoding, program.opaque
    functions = engine.freeze().functions
    values: dict[Any, int] = {}
    lists: dict[Any, int] = {}
    number = itertools.count()

    def classes(sort: str) -> dict[Any, int]:
        return values if sort == "T" else lists

    def class_of(sort: str, value: Any) -> int:
        known = classes(sort)
        found = known.get(value)
        if found is None:
            found = known[value] = next(number)
        return found

    def integer(sort: str, value: Any) -> int:
        result: int = engine.value_to_i64(value) if sort == "i64" else engine.value_to_pyobject(value)
        return result

    found = [(engine.value_to_i64(row.inputs[0]), "T", row.output) for row in functions["Ref"].rows]
    found += [(engine.value_to_i64(row.inputs[0]), "L", row.output) for row in functions["RefList"].rows]
    # Classes are numbered in the order of the encoding, whatever order the tables come in.
    references = {reference: class_of(sort, value) for reference, sort, value in sorted(found, key=lambda item: item[0])}
    heads = {"Input": INPUT, "Constant": CONSTANT, "Literal": LITERAL, "Projection": PROJECTION, "Absent": ABSENT, "Cons": CONS, "Nil": NIL}
    heads |= {name: head for head, name in program.constructors.items()}
    terms: list[Term] = []
    for row in functions["Opaque"].rows:
        shared, attributes = opaque.get(engine.value_to_i64(row.inputs[0]))
        terms.append(Term(shared, attributes, (class_of("L", row.inputs[1]),), class_of("T", row.output)))
    for name, head in heads.items():
        function = functions[name]
        sorts = function.input_sorts
        for row in function.rows:
            data: list[int] = []
            children: list[int] = []
            for sort, value in zip(sorts, row.inputs, strict=True):
                if sort in ("T", "L"):
                    children.append(class_of(sort, value))
                else:
                    data.append(integer(sort, value))
            terms.append(Term(head, tuple(data), tuple(children), class_of(function.output_sort, row.output)))
    facts = {class_of("T", row.inputs[0]): engine.value_to_pyobject(row.output) for row in functions["fact"].rows}
    facts |= {class_of("L", row.inputs[0]): engine.value_to_pyobject(row.output) for row in functions["facts"].rows}
    tried: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []
    for rule, firing in trials.items():
        roots = len(firing.compiled.pattern.roots)
        for row in functions[trial_name(rule)].rows:
            classes_of = [class_of("T", value) for value in row.inputs]
            tried.append((rule, tuple(classes_of[:roots]), tuple(classes_of[roots:])))
    total = next(number)
    return EGraph(
        terms,
        [facts.get(eclass, encoding.terms.absent) for eclass in range(total)],
        [references[reference] for reference in range(len(encoding.facts))],
        sorted(tried),
    )
