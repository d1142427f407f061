"""The egglog program of one encoding: sorts, tables, operators' constructors, and laws.

Laws hold whatever the rules are. One law derives the fact of each term. Another joins values that
are known to equal the same integers. A third lets a literal stand for the nodes that compute a
shape, if named sizes express it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from eqsat.egraph.callbacks import Callbacks
from eqsat.egraph.changes import LOOK, Changes, watch
from eqsat.egraph.encode import Encoding
from eqsat.egraph.ground import EDGES, LITERAL_FACT, LOADS, NOTHING, RULESETS, TABLES, rule_text, table_text
from eqsat.egraph.present import Present
from eqsat.egraph.shape_literals import realized
from eqsat.facts.fact import Fact
from eqsat.terms.terms import ABSENT, CONS, CONSTANT, INPUT, LITERAL, NIL, PROJECTION, Handles, Signature, Term, fact_of, literal_of
from eqsat.traits import SYMMETRIC

HEADS = {"Input": INPUT, "Constant": CONSTANT, "Literal": LITERAL, "Projection": PROJECTION, "Absent": ABSENT, "Cons": CONS, "Nil": NIL}
"""The tables of terms without an operator, with the heads of these terms."""

CLEAN = "clean"
"""The ruleset that deletes rows with old facts."""

EACH = "each"
"""The ruleset that completes lists item by item, right after a rule begins one."""


class Program:
    """The egglog text and tables of one encoding, with the tables as files in `folder`.

    The callbacks of laws go through `watched`, which may end a run by an exception. `close`
    releases the callbacks.
    """

    def __init__(self, encoding: Encoding, folder: Path, watched: Callable[[Callable[..., int]], Callable[..., int]] = lambda function: function) -> None:
        self.encoding = encoding
        # The head and attributes of terms that share one constructor.
        self.opaque: Handles[tuple[int, tuple[int, ...]]] = Handles()
        self.constructors: dict[int, str] = {}  # by signature
        self.rulesets = set(RULESETS)
        self._declared = set(TABLES)
        self.seen: set[int] = set()  # signatures with terms in the e-graph
        self.present = Present(encoding.terms, encoding.derivation)
        # The signature of a term, the position of a single input, and the signature of a term of
        # this input. For the items of lists it is `CONS` and 0.
        self.edges: set[tuple[int, int, int]] = set()
        self.changes = Changes()
        self._watched = watched
        self._folder = folder
        self._text: list[str] = []
        self._names: dict[str, str] = {}  # readable name, by token
        self._references: dict[Callable[..., object], str] = {}
        self._callbacks = Callbacks()
        self._row_tables: dict[str, list[str]] = {}  # with the classes whose facts their rows have
        self._cleaned: set[str] = set()  # those whose old rows a law deletes
        self._loads: list[tuple[str, int, list[tuple[int, ...]]]] = []  # the table, the kind and the rows of each load
        self._watched_tables: set[str] = set()
        self._start()

    @property
    def commands(self) -> Sequence[str]:
        """The commands of the program."""
        return self._text

    def include(self, commands: Iterable[str]) -> str:
        """Returns the command that runs these commands.

        They go through a file, which egglog reads itself. As arguments they would become Python
        objects and text again, and several at once would take time and memory that grow with the
        square of their number.
        """
        path = self._folder / "commands.egg"
        path.write_text("\n".join(commands), encoding="utf-8")
        return f'(include "{path}")'

    def close(self) -> None:
        """Releases the callbacks. The program cannot run any more."""
        self._callbacks.close()
        self._references.clear()  # functions that lead back to the program, which would stay in memory with all of a graph

    def readable(self, beginning: str, inside: str) -> list[str]:
        """Returns the commands that start with `beginning` and contain `inside`.

        Names stand in place of callbacks.
        """
        found = [text for text in self._text if text.startswith(beginning) and inside in text]
        for token, name in self._names.items():
            found = [text.replace(token, name) for text in found]
        return found

    def callback(self, function: Callable[..., object], name: str) -> str:
        """Returns the egglog global that stands for a Python function in rules.

        A copy of the function in each rule would cost egglog memory that grows with the square of
        their number.
        """
        known = self._references.get(function)
        if known is not None:
            return known
        reference = self._references[function] = f"$c{len(self._references)}_"
        self.add(f"(let {reference} {self._callbacks.pointer(function)})")
        self._names[reference] = name
        return reference

    def add(self, text: str) -> None:
        """Appends a command."""
        self._text.append(text)

    @property
    def terms(self) -> list[str]:
        """The tables that hold e-nodes."""
        return [*HEADS, "Opaque", *self.constructors.values()]

    def declare(self, text: str) -> None:
        """Appends a command unless the program has it."""
        if text not in self._declared:
            self._declared.add(text)
            self.add(text)

    def ruleset(self, name: str) -> None:
        """Declares a ruleset if it is new."""
        if name not in self.rulesets:
            self.rulesets.add(name)
            self.add(f"(ruleset {name})")

    def ruleset_of(self, family: str, tables: frozenset[str]) -> str:
        """Returns the ruleset of a family for rules that read these tables. First use declares it."""
        name = self.changes.ruleset(family, tables)
        self.ruleset(name)
        return name

    def rule(self, ruleset: str, name: str, body: str, head: str) -> None:
        """Appends a rule to a ruleset."""
        self.ruleset(ruleset)
        self.add(rule_text(ruleset, name, body, head))

    def load(self, name: str, columns: str, action: str, rows: Iterable[tuple[int, ...]]) -> None:
        """Appends the rule that turns these rows into terms, if there are rows.

        All rows of one width share a table, since a file for each name would take longer to make
        than egglog takes to read it.
        """
        found = list(rows)
        if not found:
            return
        kind, table = len(self._loads), self.table("rows", len(columns.split()))
        self._loads.append((table, kind, found))
        self.rule("load", f"load {name}", f"({table} {kind} {columns})", action)

    def _fill_loads(self) -> None:
        """Appends the commands that read the rows of all loads."""
        rows: dict[str, list[tuple[int, ...]]] = {}
        for table, kind, found in self._loads:
            rows.setdefault(table, []).extend((kind, *row) for row in found)
        for table, found in rows.items():
            if found:
                self.add(self.fill(table, found))
        self._loads.clear()

    def table(self, name: str, width: int) -> str:
        """Declares a table of integers: a number that tells the kind of a row, and `width` columns.
        Returns its name.
        """
        table = f"{name}_{width}"
        self.declare(table_text(table, width))
        return table

    def fill(self, table: str, rows: Iterable[tuple[int, ...]]) -> str:
        """Returns the command that adds rows to a table, each with its kind first. The rows of one
        command take the place of those of the last.

        The rows go through a file: single commands take time and memory that grow with the square
        of their number.
        """
        with (self._folder / f"{table}.tsv").open("w") as file:
            file.writelines("\t".join(map(str, row)) + "\n" for row in rows)
        return f'(input {table} "{self._folder / table}.tsv")'

    def _start(self) -> None:
        encoding = self.encoding
        entries = [*encoding.entries, *encoding.forms]
        rows: dict[int, list[tuple[int, ...]]] = {}
        for entry in entries:
            rows.setdefault(entry.head, []).append((entry.eclass, *entry.data, *entry.children))
        lists = {entry.eclass for entry in entries if entry.head in (CONS, NIL)}
        facts: list[list[tuple[int, ...]]] = [[], []]
        for value, fact in enumerate(encoding.facts):
            facts[value in lists].append((value, fact))
        opaque = [(e.eclass, self.opaque.intern((e.head, e.data), (e.head, e.data)), *e.children) for e in entries if self._is_lawless(e)]
        loads = {"Fact": facts[0], "Facts": facts[1], "Same": encoding.same, "Opaque": opaque, **{name: rows.get(head, []) for name, head in HEADS.items()}}
        for kind, (name, width) in enumerate(LOADS):
            self._loads.append((self.table("rows", width), kind, list(loads[name])))
        for head, found in rows.items():
            if head >= 0 and not encoding.terms.signatures[head].lawless:
                self._rows(head, found)
        self._fill_loads()

    @property
    def laws(self) -> Mapping[str, Callable[..., int]]:
        """The functions behind the laws of the ground, by name."""
        derivation = self.encoding.derivation
        return {
            "merge": self._merge,
            "tell": self._tell,
            "link": self._watched(derivation.link),
            "project": derivation.project,
            "literal": self._literal,
            "literal_fact": self._literal_fact,
        }

    def _tell(self, node: int, position: int, operand: int) -> int:
        self.edges.add((node, position, operand))
        return 0

    def _merge(self, old: int, new: int) -> int:
        if old != new:
            self.changes.refined = True
        return self.encoding.derivation.merge(old, new)

    def watch(self, table: str, row: str) -> str:
        """Watches a table for changes. `row` is a query for its rows. Returns the table."""
        if table not in self._watched_tables:
            self._watched_tables.add(table)
            self.rule(LOOK, watch(table), row, "")
        return table

    def _is_lawless(self, entry: Term) -> bool:
        return entry.head >= 0 and self.encoding.terms.signatures[entry.head].lawless

    def _rows(self, index: int, rows: list[tuple[int, ...]]) -> None:
        signature = self.encoding.terms.signatures[index]
        name = self.constructor(index)
        self.seen.add(index)
        attributes, inputs, rest = _columns(signature)
        loaded = " ".join([*(f"(py-from-int {a})" for a in attributes), *(f"(Ref {x})" for x in inputs), *(f"(RefList {r})" for r in rest)])
        self.load(name, " ".join(["o", *attributes, *inputs, *rest]), f"(union (Ref o) ({name} {loaded}))", rows)

    def constructor(self, index: int) -> str:
        """Returns the constructor of a signature's terms; first use declares it and its laws."""
        name = self.constructors.get(index)
        if name is not None:
            return name
        signature = self.encoding.terms.signatures[index]
        name = self.constructors[index] = f"op{index}_{re.sub(r'[^A-Za-z0-9_]', '_', signature.operator.name)}"
        attributes, inputs, rest = _columns(signature)
        sorts = " ".join(["PyObject"] * len(attributes) + ["T"] * len(inputs) + ["L"] * len(rest))
        self.add(f"(constructor {name} ({sorts}) T)")
        facts = [f"(= f{x} (fact {x}))" for x in inputs] + [f"(= f{r} (facts {r}))" for r in rest]
        derive = self.callback(self._watched(self._deriver(index)), "derive")
        arguments = " ".join([*attributes, *(f"f{x}" for x in (*inputs, *rest))])
        term = f"(= o ({name} {' '.join([*attributes, *inputs, *rest])}))"
        self.rule("laws", f"fact {name}", f"{term} {' '.join(facts)}", f"(set (fact o) (py-call {derive} {arguments})) (is o {index})")
        for position, x in enumerate(inputs):
            self.rule(EDGES, f"edge {name} {x}", f"{term} (is {x} operand)", f"(edge {index} {position} operand)")
        if signature.operator.standard and signature.operator.name in ("Reshape", "Expand") and signature.inputs == 2:
            self._parameter(index, signature, name, term)
        return name

    def rows(self, index: int, view: bool) -> str:
        """Returns the relation of a signature's terms: the columns of a term, its class, and the
        facts of its inputs and of its class. First use declares it and its law.

        As a `view` it has each term of a commutative operator in both orders of its operands.

        A rule that reads it joins fewer tables than one that reads terms and facts. After two facts
        have merged, a row with an old one stays until `clean`: what it says is still true.
        """
        constructor = self.constructor(index)
        name = f"{'either' if view else 'row'}_{constructor}"
        if name not in self._row_tables:
            signature = self.encoding.terms.signatures[index]
            attributes, inputs, rest = _columns(signature)
            operands = [*inputs, *rest]
            term = " ".join(operands)
            if view:
                operands = ["a", "b"]
                term = "(Cons a (Cons b (Nil)))" if signature.operator.name in SYMMETRIC else "a b"
            known = [f"(= f{x} ({'facts' if x in rest else 'fact'} {x}))" for x in (*operands, "o")]
            sorts = ["PyObject"] * len(attributes) + ["L" if x in rest else "T" for x in operands] + ["T"] + ["PyObject"] * (len(operands) + 1)
            self.add(f"(relation {name} ({' '.join(sorts)}))")
            orders = [operands, operands[::-1]] if view else [operands]
            found = [f"({name} {' '.join([*attributes, *order, 'o', *(f'f{x}' for x in order), 'fo'])})" for order in orders]
            self.rule(
                "laws",
                f"{'either' if view else 'row'} {constructor}",
                f"(= o ({' '.join([constructor, *attributes, term])})) {' '.join(known)}",
                " ".join(found),
            )
            self.watch(name, found[0])
            self._row_tables[name] = [found[0], *known]
        return name

    def clean(self) -> None:
        """Declares the rules that delete rows with old facts."""
        for name, (row, *known) in self._row_tables.items():
            if name not in self._cleaned:
                if not self._cleaned:
                    self.add("(sort Row (Vec PyObject))")
                self._cleaned.add(name)
                new = " ".join(fact.replace("(= f", "(= g", 1) for fact in known)
                old, now = (" ".join(initial + fact[4:].split()[0] for fact in known) for initial in "fg")
                self.rule(CLEAN, f"clean {name}", f"{row} {new} (!= (vec-of {old}) (vec-of {now}))", f"(delete {row})")

    def _deriver(self, index: int) -> Callable[..., int]:
        derivation = self.encoding.derivation

        def derive(*columns: int) -> int:
            self.seen.add(index)
            self.present.note(index, columns)
            return derivation.term(index, *columns)

        return derive

    def _parameter(self, index: int, signature: Signature, name: str, term: str) -> None:
        """Adds the law that lets a literal stand for a computed shape input."""
        terms = self.encoding.terms
        split = len(signature.attributes)

        def literal(*columns: int) -> int:
            facts = [terms.facts.get(handle) for handle in columns[split:]]
            attributes = {name: terms.attributes.get(handle) for name, handle in zip(signature.attributes, columns[:split], strict=True)}
            x, shape = facts
            assert isinstance(x, Fact) and isinstance(shape, Fact)
            found = realized(signature.operator.name, attributes, x, shape)
            return -1 if found is None else terms.literal(found)

        arguments = " ".join([*(f"a{i}" for i in range(split)), "fx0", "fx1"])
        # In the literal a zero copies a size, whatever `allowzero` says of the computed shape.
        copies = terms.attribute(0)
        attributes = " ".join(f"(py-from-int {copies})" if name == "allowzero" else f"a{i}" for i, name in enumerate(signature.attributes))
        made = f"(py-call {self.callback(literal, 'literal')} {arguments})"
        fact = f"(py-call {LITERAL_FACT} made)"
        self.rule(
            "laws",
            f"parameter {name}",
            f"{term} (= fx0 (fact x0)) (= fx1 (fact x1)) (= made {made}) (!= made {NOTHING})",
            f"(let s (Literal made)) (set (fact s) {fact}) (union o ({name} {attributes} x0 s))",
        )

    def _literal_fact(self, handle: int) -> int:
        return self.encoding.terms.fact(fact_of(self.encoding.terms.literals.get(handle)))

    def _literal(self, handle: int) -> int:
        fact = self.encoding.terms.value_fact(handle)
        literal = None if fact is None else literal_of(fact)
        return -1 if literal is None else self.encoding.terms.literal(literal)


def _columns(signature: Signature) -> tuple[list[str], list[str], list[str]]:
    """Returns the variables of a term's attributes, inputs and list."""
    attributes = [f"a{i}" for i in range(len(signature.attributes))]
    return attributes, [f"x{i}" for i in range(signature.inputs)], ["l"] if signature.rest else []
