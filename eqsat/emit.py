"""Compiled rules as egglog: for each direction one query, one callback that decides whether it fires, and one action.

The action joins the two sides. In trial it joins nothing and writes down what it would have joined, so that a checker
sees each side by itself.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Never

from onnx import GraphProto

from eqsat.derive import Derivation
from eqsat.encode import Outer, encode
from eqsat.language.compile import Compiled
from eqsat.language.construction import Existing, Made, Reference, Stored, Value
from eqsat.language.firing import Firing
from eqsat.language.halves import Half, halves
from eqsat.language.pattern import Atom, FactAtom, Fixed, OutputAtom
from eqsat.model import Graph
from eqsat.operators import AttributeValue
from eqsat.program import Program
from eqsat.tensors import ContentIndex
from eqsat.terms import Terms


def emit(program: Program, firing: Firing, number: int, fire: Callable[..., int], ruleset: str, trial: bool = False) -> None:
    """Adds a direction of a rule to a ruleset of a program; `fire` is asked for each match. In trial nothing is joined."""
    _Emission(program, firing, number).emit(fire, ruleset, trial)


def emit_search(program: Program, firing: Firing, number: int, parts: Sequence[Half], note: Callable[..., int], ruleset: str) -> None:
    """Adds the searches of a direction of a rule that may grow to a ruleset: they write down the matches of its halves."""
    _Emission(program, firing, number).search(parts, note, ruleset)


def emit_apply(program: Program, firing: Firing, number: int, parts: Sequence[Half]) -> None:
    """Adds what applies such matches as are picked."""
    _Emission(program, firing, number).apply(parts)


def half_name(number: int, half: int) -> str:
    """The relation that holds the matches of a half: a number, and the classes of its variables."""
    return f"half_{number}_{half}"


def pick_name(number: int) -> str:
    """The relation that holds what is picked: the numbers of the halves' matches, and that of the firing."""
    return f"pick_{number}"


def rule_text(compiled: Compiled) -> str:
    """What a direction of a rule compiles to, laid out for people. Callbacks stand by their names; comments say what the numbers mean."""
    terms = Terms()
    encoding = encode(Graph(GraphProto(), (), (), {}, []), terms, Derivation(terms), ContentIndex(), Outer(), lambda names: {}, _no_body)
    with tempfile.TemporaryDirectory(prefix="eqsat-") as folder:
        program = Program(encoding, Path(folder))
        try:
            firing = Firing(compiled, terms, encoding.derivation)
            if compiled.growth < 0:
                emit(program, firing, 0, firing, "simplify")
            else:
                emit_search(program, firing, 0, halves(compiled.pattern), firing, "search")
                emit_apply(program, firing, 0, halves(compiled.pattern))
            texts = program.readable("(rule (", ':name "search 0.') + program.readable("(rule (", ':name "rule 0"')
        finally:
            program.close()
    # Attributes are numbers before the callback only; behind it they are columns of what it gives.
    queries = " ".join(text.partition(" (py-call ")[0] for text in texts if text.endswith(':name "rule 0")') == (compiled.growth < 0))
    handles = sorted({int(number) for number in re.findall(r"\(py-from-int (\d+)\)", queries)})
    notes = [f"; attribute {handle} is {_shown(terms.attributes.get(handle))}" for handle in handles]
    return "\n".join([f"; {compiled.title}", *notes, *(line for text in texts for line in _laid_out(text))])


def _no_body(*arguments: object) -> Never:
    raise AssertionError("an empty graph has no bodies")


def _shown(value: AttributeValue | None) -> str:
    return "absent" if value is None else value.decode() if isinstance(value, bytes) else str(value)


def _laid_out(text: str) -> Iterator[str]:
    """A rule with each part of its query and of its action on a line of its own."""
    depth, line = 0, ""
    for character in text:
        if character == "(" and depth == 2:
            yield ("    " if line.startswith("(") else "") + line.rstrip()
            line = ""
        depth += (character == "(") - (character == ")")
        line += character
    yield "    " + line


def trial_name(number: int) -> str:
    """The relation that holds what a direction would have joined: the classes of the left roots, then those of the right ones."""
    return f"fired_{number}"


class _Emission:
    def __init__(self, program: Program, firing: Firing, number: int) -> None:
        self.program = program
        self.terms = program.encoding.terms
        self.firing = firing
        self.number = number
        self.next = 0
        self.actions: list[str] = []

    def emit(self, fire: Callable[..., int], ruleset: str, trial: bool) -> None:
        pattern = self.firing.compiled.pattern
        title = self.firing.compiled.title
        call = f"(py-call {self.program.callback(fire, f'fire:{title}')} {' '.join(pattern.sources)})"
        fires = f"(= true (py-to-bool (py-call {self.program.callback(_is_firing, 'fires')} firing)))"
        query = " ".join(map(self.atom, pattern.atoms))
        pairs = self.construct()
        if trial:
            self.program.add(f"(relation {trial_name(self.number)} ({' '.join('T' for _ in (*pairs, *pairs))}))")
            self.actions.append(f"({trial_name(self.number)} {' '.join(left for left, _ in pairs)} {' '.join(right for _, right in pairs)})")
        else:
            self.actions += [f"(union {left} {right})" for left, right in pairs]
        self.program.rule(ruleset, f"rule {self.number}", f"{query} (= firing {call}) {fires}", " ".join(self.actions))

    def search(self, parts: Sequence[Half], note: Callable[..., int], ruleset: str) -> None:
        pattern, title = self.firing.compiled.pattern, self.firing.compiled.title
        noted, found = self.program.callback(note, f"note:{title}"), self.program.callback(_is_firing, "fires")
        for index, half in enumerate(parts):
            sorts = " ".join("L" if variable in half.lists else "T" for variable in half.variables)
            self.program.add(f"(relation {half_name(self.number, index)} (PyObject {sorts}))")
            query = " ".join(map(self.atom, half.atoms))
            call = f"(py-call {noted} {' '.join(pattern.sources[source] for source in half.sources)})"
            head = f"({half_name(self.number, index)} found {' '.join(half.variables)})"
            self.program.rule(ruleset, f"search {self.number}.{index}", f"{query} (= found {call}) (= true (py-to-bool (py-call {found} found)))", head)

    def apply(self, parts: Sequence[Half]) -> None:
        numbers = " ".join(f"found_{index}" for index in range(len(parts)))
        self.program.add(f"(relation {pick_name(self.number)} ({' '.join('PyObject' for _ in parts)} PyObject))")
        self.program.table(pick_name(self.number), f"{numbers} firing")
        columns = " ".join(f"(py-from-int {column})" for column in f"{numbers} firing".split())
        self.program.rule("picked", f"pick {self.number}", f"(t_{pick_name(self.number)} {numbers} firing)", f"({pick_name(self.number)} {columns})")
        query = [f"({pick_name(self.number)} {numbers} firing)"]
        bound: set[str] = set()
        for index, half in enumerate(parts):
            # What halves share was seen to be one when they were picked. A join by it would be one of all with all.
            columns = [f"{variable}_{index}" if variable in bound else variable for variable in half.variables]
            query.append(f"({half_name(self.number, index)} found_{index} {' '.join(columns)})")
            bound.update(half.variables)
        self.actions += [f"(union {left} {right})" for left, right in self.construct()]
        self.program.rule("grow", f"rule {self.number}", " ".join(query), " ".join(self.actions))

    def construct(self) -> list[tuple[str, str]]:
        """Adds the actions that make the right side; the variables of each left root and of what is to be joined with it."""
        pattern, construction = self.firing.compiled.pattern, self.firing.compiled.construction
        self.column = self.program.callback(self.firing.column, f"column:{self.firing.compiled.title}")
        for literal in range(len(construction.literals)):
            self.actions.append(f"(let k{literal} (Literal {self.take()})) (set (fact k{literal}) {self.take()})")
        for index, made in enumerate(construction.nodes):
            self.node(index, made)
        return [(variable, self.reference(construction.roots[root])) for root, variable in pattern.roots.items()]

    def take(self) -> str:
        """The next column of the firing."""
        self.next += 1
        return f"(py-call {self.column} firing (py-from-int {self.next - 1}))"

    def atom(self, atom: Atom) -> str:
        if isinstance(atom, FactAtom):
            return f"(= {atom.source} ({'facts' if atom.listed else 'fact'} {atom.variable}))"
        if isinstance(atom, OutputAtom):
            return f"(= {atom.variable} (Projection {atom.index} {atom.node}))"
        index = self.terms.signature(atom.signature)
        inputs = [variable or "(Absent)" for variable in atom.inputs]
        if atom.view:
            return f"({self.program.view(index)} {' '.join(inputs)} {atom.variable})"
        if atom.signature.rest:
            tail = atom.rest or "(Nil)"
            for item in reversed(atom.items):
                tail = f"(Cons {item or '(Absent)'} {tail})"
            inputs.append(tail)
        columns = [f"(py-from-int {self.terms.attribute(a.value)})" if isinstance(a, Fixed) else a for a in atom.attributes]
        return f"(= {atom.variable} ({self.program.constructor(index)} {' '.join([*columns, *inputs])}))"

    def reference(self, reference: Reference) -> str:
        match reference:
            case Existing(variable):
                return variable
            case Stored(number):
                return f"k{number}"
            case Value(node, output):
                return f"r{node}" if output is None else f"r{node}_{output}"
            case _:
                return "(Absent)"

    def node(self, index: int, made: Made) -> None:
        attributes = [self.take() for _ in made.attributes]
        inputs = [self.reference(reference) for reference in made.inputs]
        if made.signature.rest:
            tail = made.tail or "(Nil)"
            for place, reference in enumerate(reversed(made.items)):
                cell = f"l{index}_{place}"
                self.actions.append(f"(let {cell} (Cons {self.reference(reference)} {tail})) (set (facts {cell}) {self.take()})")
                tail = cell
            inputs.append(tail)
        constructor = self.program.constructor(self.terms.signature(made.signature))
        self.actions.append(f"(let r{index} ({' '.join([constructor, *attributes, *inputs])})) (set (fact r{index}) {self.take()})")
        for output in range(0 if made.signature.single else made.outputs):
            self.actions.append(f"(let r{index}_{output} (Projection {output} r{index})) (set (fact r{index}_{output}) {self.take()})")


def _is_firing(number: int) -> bool:
    return number >= 0
