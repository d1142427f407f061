"""Emission: a compiled direction of a rule becomes egglog text.

Each direction becomes one query, one callback that decides whether the match fires, and one action
that joins the two sides. In a trial the action joins nothing. It records the classes that it would
have joined, so that the checker sees each side separately.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Never

from onnx import GraphProto

from eqsat.egraph.encode import encode
from eqsat.egraph.ground import NOTHING
from eqsat.egraph.outer import Outer
from eqsat.egraph.program import EACH, Program
from eqsat.language.compile import Compiled
from eqsat.language.construction import Construction, Existing, Item, Loop, Made, Reference, Shared, Stored, Value
from eqsat.language.differing import apart, differing
from eqsat.language.firing import Firing
from eqsat.language.halves import Half, halves
from eqsat.language.query import Atom, FactAtom, Fixed, MappedAtom, NodeAtom, OutputAtom
from eqsat.model.model import Graph
from eqsat.model.tensors import ContentIndex
from eqsat.operators import AttributeValue
from eqsat.terms.derivation import Derivation
from eqsat.terms.terms import Terms


def emit(program: Program, firing: Firing, number: int, fire: Callable[..., int], ruleset: str, trial: bool = False) -> None:
    """Adds a direction of a rule to a ruleset; `fire` decides about each match.

    In a trial the rule joins no classes.
    """
    _Emission(program, firing, number).emit(fire, ruleset, trial)


def emit_search(program: Program, firing: Firing, number: int, parts: Sequence[Half], note: Callable[..., int], ruleset: str) -> None:
    """Adds the searches of a growing direction to a ruleset; they record matches of its halves."""
    _Emission(program, firing, number).search(parts, note, ruleset)


def emit_apply(program: Program, firing: Firing, number: int, parts: Sequence[Half]) -> None:
    """Adds the egglog rule that applies the picked matches of a direction."""
    _Emission(program, firing, number).apply(parts)


def half_name(number: int, half: int) -> str:
    """Returns the name of the relation of a half's recorded matches.

    Its columns are a number, then the classes of the half's variables.
    """
    return f"half_{number}_{half}"


PICKED = "picked"
"""The tables of picked matches as integers, of all rules together."""


def pick_name(number: int) -> str:
    """Returns the name of the relation of picked matches.

    Its columns are the numbers of the half-matches, then that of the firing.
    """
    return f"pick_{number}"


def rule_text(compiled: Compiled) -> str:
    """Returns the egglog text of a direction, laid out for people.

    Callbacks appear by name, and comments explain the numbers.
    """
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
            kinds = ("last 0_", "item 0_", "search 0.", 'rule 0"', "each_0_")
            texts = [text for kind in kinds for text in program.readable("(rule (", f':name "{kind}')]
        finally:
            program.close()
    # Before the callback a number is an attribute; after it, a number is a column of the firing.
    queries = " ".join(text.partition(" (py-call ")[0] for text in texts if text.endswith(':name "rule 0")') == (compiled.growth < 0))
    handles = sorted({int(number) for number in re.findall(r"\(py-from-int (\d+)\)", queries)})
    notes = [f"; attribute {handle} is {_shown(terms.attributes.get(handle))}" for handle in handles]
    return "\n".join([f"; {compiled.title}", *notes, *(line for text in texts for line in _laid_out(text))])


def _no_body(*arguments: object) -> Never:
    raise AssertionError("an empty graph has no bodies")


def _shown(value: AttributeValue | None) -> str:
    return "absent" if value is None else value.decode() if isinstance(value, bytes) else str(value)


def _laid_out(text: str) -> Iterator[str]:
    """Yields a rule with each part of its query and of its action on its own line."""
    depth, line = 0, ""
    for character in text:
        if character == "(" and depth == 2:
            yield ("    " if line.startswith("(") else "") + line.rstrip()
            line = ""
        depth += (character == "(") - (character == ")")
        line += character
    yield "    " + line


def trial_name(number: int) -> str:
    """Returns the name of the relation of the classes that a trial would have joined.

    Its columns are the left roots, then the right roots.
    """
    return f"fired_{number}"


class _Emission:
    """The translation of a direction, or of the part that repeats for each item of a list."""

    def __init__(self, program: Program, firing: Firing, number: int) -> None:
        self.program = program
        self.terms = program.encoding.terms
        self.firing = firing
        self.number = number
        self.next = 0
        self.actions: list[str] = []
        self.column = f"py-call {program.callback(firing.fired.column, 'column')} firing"
        self.loops = 0  # the number of lists built item by item
        self.declared: set[str] = set()
        self.tables: set[str] = set()  # that the query reads
        self.unread = 0  # columns that nothing reads

    def emit(self, fire: Callable[..., int], ruleset: str, trial: bool) -> None:
        pattern = self.firing.compiled.pattern
        title = self.firing.compiled.title
        call = f"(py-call {self.program.callback(fire, f'fire:{title}')} {' '.join(pattern.sources)})"
        query = " ".join([*self.query(pattern.atoms), *self.differing(range(len(pattern.sources))), *self.apart()])
        pairs = self.construct()
        if trial:
            self.program.add(f"(relation {trial_name(self.number)} ({' '.join('T' for _ in (*pairs, *pairs))}))")
            self.actions.append(f"({trial_name(self.number)} {' '.join(left for left, _ in pairs)} {' '.join(right for _, right in pairs)})")
        else:
            self.actions += [f"(union {left} {right})" for left, right in pairs]
        self.program.rule(
            ruleset if trial else self.ruleset(ruleset), f"rule {self.number}", f"{query} (= firing {call}) (!= firing {NOTHING})", " ".join(self.actions)
        )

    def search(self, parts: Sequence[Half], note: Callable[..., int], ruleset: str) -> None:
        pattern, title = self.firing.compiled.pattern, self.firing.compiled.title
        noted = self.program.callback(note, f"note:{title}")
        for index, half in enumerate(parts):
            self.tables.clear()
            sorts = " ".join("L" if variable in half.lists else "T" for variable in half.variables)
            self.program.add(f"(relation {half_name(self.number, index)} (PyObject {sorts}))")
            query = " ".join([*self.query(half.atoms), *self.differing(half.sources)])
            call = f"(py-call {noted} {' '.join(pattern.sources[source] for source in half.sources)})"
            head = f"({half_name(self.number, index)} found {' '.join(half.variables)})"
            self.program.rule(self.ruleset(ruleset), f"search {self.number}.{index}", f"{query} (= found {call}) (!= found {NOTHING})", head)

    def apply(self, parts: Sequence[Half]) -> None:
        numbers = " ".join(f"found_{index}" for index in range(len(parts)))
        self.program.add(f"(relation {pick_name(self.number)} ({' '.join('PyObject' for _ in parts)} PyObject))")
        table = self.program.table(PICKED, len(parts) + 1)
        columns = " ".join(f"(py-from-int {column})" for column in f"{numbers} firing".split())
        self.program.rule("picked", f"pick {self.number}", f"({table} {self.number} {numbers} firing)", f"({pick_name(self.number)} {columns})")
        query = [f"({pick_name(self.number)} {numbers} firing)"]
        bound: set[str] = set()
        for index, half in enumerate(parts):
            # The pick already checked that the halves agree on their shared variables. Another join
            # on these would compare every match with every other.
            columns = [f"{variable}_{index}" if variable in bound else variable for variable in half.variables]
            query.append(f"({half_name(self.number, index)} found_{index} {' '.join(columns)})")
            bound.update(half.variables)
        self.actions += [f"(union {left} {right})" for left, right in self.construct()]
        self.program.rule("grow", f"rule {self.number}", " ".join(query), " ".join(self.actions))

    def construct(self) -> list[tuple[str, str]]:
        """Adds the actions that make the right side.

        Returns pairs of a left root and the value to join it with.
        """
        pattern, construction = self.firing.compiled.pattern, self.firing.compiled.construction
        self.make(construction)
        return [(variable, self.reference(construction.roots[root])) for root, variable in pattern.roots.items()]

    def make(self, construction: Construction) -> None:
        for literal in range(len(construction.literals)):
            self.actions.append(f"(let k{literal} (Literal {self.take()})) (set (fact k{literal}) {self.take()})")
        for index, made in enumerate(construction.nodes):
            self.node(index, made)

    def take(self) -> str:
        """Returns the next column of the firing."""
        self.next += 1
        return f"({self.column} (py-from-int {self.next - 1}))"

    def differing(self, sources: Collection[int]) -> Iterator[str]:
        """Yields the conditions that columns among `sources` differ."""
        columns = self.firing.compiled.pattern.sources
        for pair in differing(self.firing.compiled.pattern):
            if pair.first in sources and (pair.second is None or pair.second in sources):
                other = f"(py-from-int {self.terms.attribute(pair.value)})" if pair.second is None else columns[pair.second]
                yield f"(!= {columns[pair.first]} {other})"

    def apart(self) -> Iterator[str]:
        """Yields the conditions that classes differ."""
        compiled = self.firing.compiled
        for first, second in apart(compiled.pattern, compiled.construction):
            yield f"(!= {first} {second})"

    def ruleset(self, family: str) -> str:
        """Returns the ruleset for the rules of a family that read the tables of this query."""
        return self.program.ruleset_of(family, frozenset(self.tables))

    def query(self, atoms: Sequence[Atom]) -> Iterator[str]:
        """Yields the conditions of a query. Rows of nodes have the facts of their classes, so that
        most facts take no condition of their own.
        """
        facts = {atom.variable: atom.source for atom in atoms if isinstance(atom, FactAtom)}
        for atom in atoms:
            if isinstance(atom, NodeAtom):
                yield self.row(atom, facts)
            elif not isinstance(atom, FactAtom):
                yield self.other(atom)
        for atom in atoms:
            if isinstance(atom, FactAtom) and atom.variable in facts:
                yield f"(= {atom.source} ({'facts' if atom.listed else 'fact'} {atom.variable}))"

    def other(self, atom: OutputAtom | MappedAtom) -> str:
        if isinstance(atom, OutputAtom):
            self.tables.add(self.program.watch("Projection", "(= o (Projection i n))"))
            return f"(= {atom.variable} (Projection {atom.index} {atom.node}))"
        return self.mapped(atom)

    def row(self, atom: NodeAtom, facts: dict[str, str]) -> str:
        """Returns the condition for a row of a node. Takes the facts that the row has."""
        index = self.terms.signature(atom.signature)
        inputs = [variable or "(Absent)" for variable in atom.inputs]
        table = self.program.rows(index, atom.view)
        self.tables.add(table)
        if atom.signature.rest and not atom.view:
            tail = atom.rest or "(Nil)"
            if atom.items:
                self.tables.add(self.program.watch("Cons", "(= o (Cons h t))"))
            for item in reversed(atom.items):
                tail = f"(Cons {item or '(Absent)'} {tail})"
            inputs.append(tail)
        columns = [f"(py-from-int {self.terms.attribute(a.value)})" if isinstance(a, Fixed) else a for a in atom.attributes]
        classes = [*inputs, atom.variable]
        known: list[str] = []
        for variable in classes:
            self.unread += 1
            known.append(facts.pop(variable, f"unread_{self.unread}"))
        return f"({table} {' '.join([*columns, *classes, *known])})"

    def reference(self, reference: Reference) -> str:
        match reference:
            case Existing(variable):
                return variable
            case Stored(number):
                return f"k{number}"
            case Value(node, output):
                return f"r{node}" if output is None else f"r{node}_{output}"
            case Item(number):
                return f"x{number}"
            case Shared(number):
                return f"y{number}"
            case _:
                return "(Absent)"

    def node(self, index: int, made: Made) -> None:
        attributes = [self.take() for _ in made.attributes]
        inputs = [self.reference(reference) for reference in made.inputs]
        if made.signature.rest:
            tail = self.loop(index, made.tail) if isinstance(made.tail, Loop) else made.tail or "(Nil)"
            for place, reference in enumerate(reversed(made.items)):
                cell = f"l{index}_{place}"
                self.actions.append(f"(let {cell} (Cons {self.reference(reference)} {tail})) (set (facts {cell}) {self.take()})")
                tail = cell
            inputs.append(tail)
        constructor = self.program.constructor(self.terms.signature(made.signature))
        self.actions.append(f"(let r{index} ({' '.join([constructor, *attributes, *inputs])})) (set (fact r{index}) {self.take()})")
        for output in range(0 if made.signature.single else made.outputs):
            self.actions.append(f"(let r{index}_{output} (Projection {output} r{index})) (set (fact r{index}_{output}) {self.take()})")

    def mapped(self, atom: MappedAtom) -> str:
        """Returns the query for the lists whose terms, item by item, make up another list.

        Laws derive them from the last item to the first. An item may match in several ways; the
        laws keep one, or the number of lists would be the product of these ways.
        """
        name = f"{self.number}_{atom.variable}"
        keys, lists = [*atom.attributes, *atom.classes], atom.lists
        if name not in self.declared:
            self.declared.add(name)
            self.program.declare("(sort Lists)")
            sorts = " ".join(["L"] + ["PyObject"] * len(atom.attributes) + ["T"] * len(atom.classes))
            self.program.add(f"(constructor lists_{name} ({' '.join('L' for _ in lists)}) Lists :unextractable)")
            self.program.add(f"(function items_{name} ({sorts}) Lists :merge old)")
            call = f"(py-call {self.program.callback(self.firing.check(atom), f'item:{self.firing.compiled.title}')} {' '.join(atom.sources)})"
            query = f"(= whole (Cons {atom.item} tail)) {' '.join(self.query(atom.atoms))} (!= {NOTHING} {call})"
            ends = {"last": ("(= tail (Nil))", ["(Nil)" for _ in lists]), "item": (_items(name, "tail", keys, lists), list(lists))}
            for kind, (end, tails) in ends.items():
                found = " ".join(f"(Cons {part} {tail})" for (part, _), tail in zip(atom.parts, tails, strict=True))
                self.program.rule("laws", f"{kind} {name}", f"{query} {end}", f"(set (items_{name} whole {' '.join(keys)}) (lists_{name} {found}))")
        self.tables.add(self.program.watch(f"items_{name}", f"(= w (items_{name} whole {' '.join(keys)}))"))
        self.tables.add(self.program.watch(f"lists_{name}", f"(= w (lists_{name} {' '.join(lists)}))"))
        return _items(name, atom.variable, keys, lists)

    def loop(self, node: int, loop: Loop) -> str:
        """Adds the action that begins a list built item by item, and the rules that complete it.

        Returns the variable of the list.
        """
        name = f"each_{self.number}_{node}"
        inner = _Emission(self.program, self.firing, self.number)
        item = self.program.callback(self.firing.fired.item, "item-column")
        inner.column = f"py-call {item} firing (py-from-int {self.loops}) (py-from-int position)"
        self.loops += 1
        shared = [f"y{number}" for number in range(len(loop.shared))]
        items = [(f"l{number}", f"x{number}", f"t{number}") for number in range(len(loop.lists))]
        sorts = " ".join(["PyObject", "i64", *("T" for _ in shared), *("L" for _ in items)])
        self.program.add(f"(constructor {name} ({sorts}) L :unextractable)")
        inner.make(loop.body)
        rest = f"({name} firing (+ position 1) {' '.join([*shared, *(tail for _, _, tail in items)])})"
        inner.actions.append(f"(let rest {rest}) (set (facts rest) {inner.take()}) (union whole (Cons {inner.reference(loop.body.roots[''])} rest))")
        begun = f"(= whole ({name} firing position {' '.join([*shared, *(listed for listed, _, _ in items)])}))"
        cells = " ".join(f"(= {listed} (Cons {item} {tail}))" for listed, item, tail in items)
        self.program.rule(EACH, f"{name} item", f"{begun} {cells}", " ".join(inner.actions))
        self.program.rule(EACH, f"{name} end", f"{begun} (= {items[0][0]} (Nil))", "(union whole (Nil))")
        first = f"({name} firing 0 {' '.join([*map(self.reference, loop.shared), *loop.lists])})"
        self.actions.append(f"(let m{node} {first}) (set (facts m{node}) {self.take()})")
        return f"m{node}"


def _items(name: str, variable: str, keys: Sequence[str], lists: Sequence[str]) -> str:
    """Returns the query for the lists that `mapped` derives from the list `variable`."""
    return f"(= (lists_{name} {' '.join(lists)}) (items_{name} {' '.join([variable, *keys])}))"
