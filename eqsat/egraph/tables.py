"""The e-graph of a run as plain data: terms, facts and classes, read from egglog's tables."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from eqsat.egraph.emit import trial_name
from eqsat.egraph.engine import Engine
from eqsat.egraph.program import HEADS, Program
from eqsat.frozen import mutable
from eqsat.language.firing import Firing
from eqsat.terms.terms import Term


@mutable
class EGraph:
    """A saturated e-graph as plain data. Values, nodes and lists share one numbering of classes."""

    terms: list[Term]
    facts: list[int]  # by class, the handle of the fact
    class_of: list[int]  # by reference of the encoding
    trials: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = field(default_factory=list[tuple[int, tuple[int, ...], tuple[int, ...]]])
    """The matches of a trial, which joins no sides.

    Each is the number of the rule, the classes of its left roots, and those of its right roots.
    """
    kept: list[Term] | None = None
    """If a destructive engine has rewritten the graph: the one term that it has left of each class
    that the outputs need. None after a saturation: all terms may be chosen.
    """
    firings: Sequence[Firing] = ()
    """The rules that ran. They know the matches about which they have decided."""

    def holds_more(self, other: EGraph) -> bool:
        """Tells whether this e-graph differs from an earlier one of the same run."""
        return (self.terms, self.facts, self.class_of) != (other.terms, other.facts, other.class_of)


def _numbered(number: Iterator[int]) -> Callable[[Any], int]:
    """Returns the function that gives each value of egglog the next number when it first sees it."""
    known: dict[Any, int] = {}

    def of(value: Any) -> int:
        found = known.get(value)
        if found is None:
            found = known[value] = next(number)
        return found

    return of


def read_egraph(engine: Engine, program: Program, trials: Mapping[int, int]) -> EGraph:
    """Reads the e-graph from egglog.

    `trials` has the number of roots of each rule that ran in a trial.
    """
    encoding, opaque = program.encoding, program.opaque
    functions = engine.tables()
    number = itertools.count()
    class_of, list_of = _numbered(number), _numbered(number)
    readers: dict[str, Callable[[Any], int]] = {"T": class_of, "L": list_of, "i64": engine.integer, "PyObject": engine.number}

    found = [(engine.integer(row.inputs[0]), class_of, row.output) for row in functions["Ref"].rows]
    found += [(engine.integer(row.inputs[0]), list_of, row.output) for row in functions["RefList"].rows]
    # Classes follow the order of the encoding, whatever the order of the tables.
    references = {reference: read(value) for reference, read, value in sorted(found, key=lambda item: item[0])}
    heads = HEADS | {name: head for head, name in program.constructors.items()}
    terms: list[Term] = []
    for row in functions["Opaque"].rows:
        shared, attributes = opaque.get(engine.integer(row.inputs[0]))
        terms.append(Term(shared, attributes, (list_of(row.inputs[1]),), class_of(row.output)))
    for name, head in heads.items():
        function = functions[name]
        children = [(place, readers[sort]) for place, sort in enumerate(function.input_sorts) if sort in ("T", "L")]
        data = [(place, readers[sort]) for place, sort in enumerate(function.input_sorts) if sort not in ("T", "L")]
        output = readers[function.output_sort]
        for row in function.rows:
            inputs = row.inputs
            attributes, operands = tuple([read(inputs[place]) for place, read in data]), tuple([read(inputs[place]) for place, read in children])
            terms.append(Term(head, attributes, operands, output(row.output)))
    facts = {class_of(row.inputs[0]): engine.number(row.output) for row in functions["fact"].rows}
    facts |= {list_of(row.inputs[0]): engine.number(row.output) for row in functions["facts"].rows}
    tried: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []
    for rule, roots in trials.items():
        for row in functions[trial_name(rule)].rows:
            both = tuple(map(class_of, row.inputs))
            tried.append((rule, both[:roots], both[roots:]))
    total = next(number)
    return EGraph(
        terms,
        [facts.get(eclass, encoding.terms.absent) for eclass in range(total)],
        [references[reference] for reference in range(len(encoding.facts))],
        sorted(tried),
    )
