"""Compiled rules as egglog: for each direction one query, one callback that decides whether it fires, and one action.

The action joins the two sides. In trial it joins nothing and writes down what it would have joined, so that a checker
sees each side by itself.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Never

from onnx import GraphProto

from eqsat.derive import Derivation
from eqsat.encode import Outer, encode
from eqsat.language.compile import Compiled
from eqsat.language.construction import Existing, Made, Reference, Stored, Value
from eqsat.language.firing import Firing
from eqsat.language.pattern import Atom, FactAtom, Fixed, OutputAtom
from eqsat.model import Graph
from eqsat.operators import AttributeValue
from eqsat.program import Program
from eqsat.tensors import ContentIndex
from eqsat.terms import Terms


def emit(program: Program, firing: Firing, number: int, fire: Callable[..., int], trial: bool) -> None:
    """Adds a direction of a rule to a program, in the ruleset of those that shrink or of those that may grow; `fire` is asked for each match."""
    _Emission(program, firing, number).emit(fire, trial)


def rule_text(compiled: Compiled) -> str:
    """What a direction of a rule compiles to, laid out for people. Callbacks stand by their names; comments say what the numbers mean."""
    terms = Terms()
    encoding = encode(Graph(GraphProto(), (), (), {}, []), terms, Derivation(terms), ContentIndex(), Outer(), lambda names: {}, _no_body)
    with tempfile.TemporaryDirectory(prefix="eqsat-") as folder:
        program = Program(encoding, Path(folder))
        try:
            firing = Firing(compiled, terms, encoding.derivation)
            emit(program, firing, 0, firing, trial=False)
            (text,) = program.readable("(rule (", ':name "rule 0"')
        finally:
            program.close()
    handles = sorted({int(number) for number in re.findall(r"\(py-from-int (\d+)\)", text.partition(" (= firing ")[0])})
    notes = [f"; attribute {handle} is {_shown(terms.attributes.get(handle))}" for handle in handles]
    return "\n".join([f"; {compiled.title}", *notes, *_laid_out(text)])


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

    def emit(self, fire: Callable[..., int], trial: bool) -> None:
        pattern, construction = self.firing.compiled.pattern, self.firing.compiled.construction
        title = self.firing.compiled.title

        call = f"(py-call {self.program.callback(fire, f'fire:{title}')} {' '.join(pattern.sources)})"
        fires = f"(= true (py-to-bool (py-call {self.program.callback(_is_firing, 'fires')} firing)))"
        query = " ".join(map(self.atom, pattern.atoms))
        self.column = self.program.callback(self.firing.column, f"column:{title}")
        for literal in range(len(construction.literals)):
            self.actions.append(f"(let k{literal} (Literal {self.take()})) (set (fact k{literal}) {self.take()})")
        for index, made in enumerate(construction.nodes):
            self.node(index, made)
        pairs = [(variable, self.reference(construction.roots[root])) for root, variable in pattern.roots.items()]
        if trial:
            self.program.add(f"(relation {trial_name(self.number)} ({' '.join('T' for _ in (*pairs, *pairs))}))")
            self.actions.append(f"({trial_name(self.number)} {' '.join(left for left, _ in pairs)} {' '.join(right for _, right in pairs)})")
        else:
            self.actions += [f"(union {left} {right})" for left, right in pairs]
        ruleset = "shrink" if self.firing.compiled.shrinks else "grow"
        self.program.rule(ruleset, f"rule {self.number}", f"{query} (= firing {call}) {fires}", " ".join(self.actions))

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
