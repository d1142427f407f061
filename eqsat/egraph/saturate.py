"""Saturation: egglog runs laws and rules on an encoding and gives the e-graph as plain data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from eqsat.egraph.admission import Admission, RuleSet
from eqsat.egraph.encode import Encoding
from eqsat.egraph.engine import GROW, LAWS, Engine
from eqsat.egraph.ground import grounded
from eqsat.egraph.limits import Limits, Stop, Watch
from eqsat.egraph.native import QUICK_INTEGERS, import_bindings
from eqsat.egraph.program import Program
from eqsat.egraph.record import Record
from eqsat.egraph.schedule import UNFINISHED, Schedule
from eqsat.egraph.scratch import scratch_folder
from eqsat.egraph.tables import EGraph, read_egraph


class EngineFailure(Exception):
    """egglog itself failed: a defect of egglog or of the program. The graph can stay as it was."""


def saturate(encoding: Encoding, limits: Limits, ruleset: RuleSet, simplified: Callable[[EGraph], None] = lambda graph: None) -> tuple[EGraph, Record]:
    """Saturates an encoding. Returns the e-graph and the record of the run.

    A limit ends the run early; the e-graph is valid all the same. If there are several phases,
    `simplified` receives the e-graph after the first one.
    """
    bindings = import_bindings()
    record = Record()
    watch = Watch(limits, len(encoding.entries))
    with scratch_folder() as folder, QUICK_INTEGERS:
        program = Program(encoding, Path(folder), watch.watched)
        try:
            with grounded(bindings, program.laws) as ground:
                admission = Admission(program, ruleset, watch)
                engine = Engine(ground, program, ruleset.rules, record)
                try:
                    if ruleset.trial:
                        admitted = True
                        while admitted:
                            while engine.step([LAWS]):
                                pass
                            engine.find_edges()
                            admitted = admission.admit()
                        if GROW in program.rulesets:
                            engine.step([GROW])
                    else:
                        record.hit = Schedule(engine, admission, watch, len(encoding.entries)).run(
                            ruleset.phases, lambda: simplified(_read(engine, program, admission))
                        )
                except Stop:
                    record.hit = watch.hit
                    engine.complete()
                if watch.rested and record.hit in (None, *UNFINISHED):
                    record.hit = "matches"
                firings = admission.firings
                graph = _read(engine, program, admission, ruleset.trial)
        except bindings.EggSmolError as error:
            raise EngineFailure(" ".join(str(error).split())[:200]) from error
        except BaseException as error:
            # A panic inside egglog surfaces as pyo3's own exception, which cannot be imported.
            if type(error).__name__ == "PanicException":
                raise EngineFailure(" ".join(str(error).split())[:200]) from error
            raise
        finally:
            program.close()
    record.add(firings.values())
    if record.hit is not None:
        record.waiting = admission.waiting()
    record.classes, record.nodes = len(graph.facts), len(graph.terms)
    return graph, record


def _read(engine: Engine, program: Program, admission: Admission, trial: bool = False) -> EGraph:
    """Returns the e-graph as it is now, with the rules that have run."""
    firings = admission.firings
    graph = read_egraph(engine, program, {number: len(firing.compiled.pattern.roots) for number, firing in firings.items()} if trial else {})
    graph.firings = tuple(firings.values())
    return graph
