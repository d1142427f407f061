"""Saturation: the rows of an encoding go into egglog, laws and rules run as the phases say, and the e-graph comes back as plain data."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eqsat.candidates import Candidates
from eqsat.egraph import EGraph, thaw
from eqsat.emit import emit, emit_search
from eqsat.encode import Encoding
from eqsat.engine import GROW, LAWS, SEARCH, SETTLE, SIMPLIFY, Engine
from eqsat.language.compile import Compiled
from eqsat.language.firing import Firing
from eqsat.limits import Limits, Stop, Watch
from eqsat.phases import Phase
from eqsat.program import Program
from eqsat.record import Record
from eqsat.schedule import Schedule
from eqsat.terms import Signature


class EngineFailure(Exception):
    """egglog itself failed: a defect, of it or of the program it was given; the graph can stay as it was."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of a run. `exact`: only what keeps every bit fires; `trial`: each rule runs once, and nothing is joined."""

    rules: Sequence[Compiled] = ()
    exact: bool = False
    trial: bool = False
    groups: Mapping[str, str] = field(default_factory=dict[str, str])  # by rule; what is in none is in one together
    phases: Sequence[Phase] = (Phase(),)


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
                available |= compiled.produced
                grown = True
    return sorted(found)


def saturate(encoding: Encoding, limits: Limits, ruleset: RuleSet) -> tuple[EGraph, Record]:
    """The saturated e-graph of an encoding, and the record of the run; a limit that is hit ends the run, not the result."""
    from egglog import bindings

    record = Record()
    signatures, size = encoding.terms.signatures, len(encoding.entries)
    numbers = relevant(ruleset.rules, {signatures[entry.head] for entry in (*encoding.entries, *encoding.forms) if entry.head >= 0})
    firings = {number: Firing(ruleset.rules[number], encoding.terms, encoding.derivation, ruleset.exact, ruleset.trial) for number in numbers}
    watch = Watch(limits, size)
    with tempfile.TemporaryDirectory(prefix="eqsat-") as folder:
        program = Program(encoding, Path(folder), watch.watched)
        try:
            groups = {number: ruleset.groups.get(firing.compiled.rule.name, "") for number, firing in firings.items()}
            places = {group: place for place, group in enumerate(dict.fromkeys(groups.values()))}
            candidates = _enter(program, firings, watch, groups, places, ruleset)
            engine = Engine(bindings, program, folder, ruleset.rules, record)
            try:
                if ruleset.trial:
                    while engine.step(LAWS):
                        pass
                    if GROW in program.rulesets:
                        engine.step(GROW)
                else:
                    record.hit = Schedule(engine, candidates, groups, places, watch, size).run(ruleset.phases)
            except Stop:
                record.hit = watch.hit
            graph = thaw(engine, program, {number: len(firing.compiled.pattern.roots) for number, firing in firings.items()} if ruleset.trial else {})
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
        name = firing.compiled.rule.name
        record.seconds[name] = record.seconds.get(name, 0.0) + firing.seconds
        record.refusals.setdefault(name, Counter()).update(firing.refusals)
    record.classes, record.nodes = len(graph.facts), len(graph.terms)
    return graph, record


def _enter(
    program: Program, firings: Mapping[int, Firing], watch: Watch, groups: Mapping[int, str], places: Mapping[str, int], ruleset: RuleSet
) -> dict[int, Candidates]:
    """Adds the rules to a program, each to the rulesets of its group; what is known of those that may grow the graph."""
    candidates: dict[int, Candidates] = {}
    settled = {group for group in places if any(phase.settles(group) for phase in ruleset.phases)}
    for number, firing in firings.items():
        made, place = len(firing.compiled.construction.nodes), places[groups[number]]
        if ruleset.trial:
            emit(program, firing, number, watch.answering(firing), GROW, trial=True)
        elif firing.compiled.growth < 0:
            emit(program, firing, number, watch.answering(firing, made), f"{SIMPLIFY}_{place}")
        elif not firing.compiled.growth and groups[number] in settled:
            emit(program, firing, number, watch.answering(firing, made), f"{SETTLE}_{place}")
        else:
            one = candidates[number] = Candidates(firing)
            emit_search(program, firing, number, one.halves, watch.answering(one.note), f"{SEARCH}_{place}")
    return candidates
