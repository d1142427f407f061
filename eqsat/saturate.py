"""Saturation: the rows of an encoding go into egglog, its rules run, and the e-graph comes back as plain data.

Always on are the laws of the representation: congruence (equal terms are one), facts (what a class is known to
be follows its terms), and literals (integer values that are known to be equal are one class). Rules that are
written as text join them here. Whatever limit ends the run, the e-graph it leaves is a valid one.
"""

from __future__ import annotations

import base64
import itertools
import os
import pickle
import re
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eqsat.encode import Encoding
from eqsat.facts import Fact
from eqsat.parameters import realized
from eqsat.terms import ABSENT, CONS, CONSTANT, INPUT, LITERAL, NIL, PROJECTION, Handles, Signature, Term, literal_of


@dataclass(slots=True)
class EGraph:
    """A saturated e-graph as plain data. Values, nodes and lists are classes of one numbering."""

    terms: list[Term]
    facts: list[int]  # by class, a handle
    class_of: list[int]  # by reference of the encoding


class EngineFailure(Exception):
    """egglog itself failed: a defect, of it or of the program it was given; the graph can stay as it was."""


@dataclass(slots=True)
class Limits:
    """What a run may use. `deadline` is a time of `time.monotonic`."""

    deadline: float | None = None
    nodes: int = 2_000_000
    memory: int | None = None  # bytes by which this process may grow during the run; watched where the system tells


@dataclass(slots=True)
class Record:
    """What a run did: iterations, matches by law (`fact` and `literal` say what is known), and the limit that ended it, if one did."""

    iterations: int = 0
    matches: dict[str, int] = field(default_factory=dict[str, int])
    hit: str | None = None
    classes: int = 0
    nodes: int = 0


# egglog finds callbacks by unpickling: a number leads to the function while its run lasts.
_callbacks: dict[int, Callable[..., object]] = {}
_tokens = itertools.count()


def _resolve(token: int) -> Callable[..., object]:
    return _callbacks[token]


class _Pointer:
    def __init__(self, token: int) -> None:
        self.token = token

    def __reduce__(self) -> tuple[Callable[[int], Callable[..., object]], tuple[int]]:
        return _resolve, (self.token,)


class _Program:
    """Egglog text and tables for one encoding."""

    def __init__(self, encoding: Encoding, folder: Path) -> None:
        self.encoding = encoding
        self.folder = folder
        self.text: list[str] = []
        self.tokens: list[int] = []
        self.opaque: Handles[tuple[int, tuple[int, ...]]] = Handles()  # head and attributes of the terms that share a constructor

    def callback(self, function: Callable[..., object]) -> str:
        token = next(_tokens)
        _callbacks[token] = function
        self.tokens.append(token)
        return f'(py-object "{base64.b64encode(pickle.dumps(_Pointer(token))).decode()}")'

    def build(self) -> str:
        encoding, derivation = self.encoding, self.encoding.derivation
        merge = self.callback(derivation.merge)
        self.text.append(f"""
            (sort T) (sort L)
            (constructor Ref (i64) T :unextractable) (constructor RefList (i64) L :unextractable)
            (constructor Input (i64) T) (constructor Constant (i64) T) (constructor Literal (PyObject) T)
            (constructor Projection (i64 T) T) (constructor Absent () T)
            (constructor Cons (T L) L) (constructor Nil () L) (constructor Opaque (i64 L) T)
            (function fact (T) PyObject :merge (py-call {merge} old new))
            (function facts (L) PyObject :merge (py-call {merge} old new))
            (ruleset load) (ruleset laws)
            (union (Ref 0) (Absent)) (union (RefList 1) (Nil))
        """)
        rows: dict[int, list[tuple[int, ...]]] = {}
        for entry in encoding.entries:
            rows.setdefault(entry.head, []).append((entry.eclass, *entry.data, *entry.children))
        lists = {entry.eclass for entry in encoding.entries if entry.head in (CONS, NIL)}
        self.load("Fact", "v f", "(set (fact (Ref v)) (py-from-int f))", ((v, f) for v, f in enumerate(encoding.facts) if v not in lists))
        self.load("Facts", "v f", "(set (facts (RefList v)) (py-from-int f))", ((v, f) for v, f in enumerate(encoding.facts) if v in lists))
        self.load("Same", "a b", "(union (Ref a) (Ref b))", encoding.same)
        self.load("Input", "v i", "(union (Ref v) (Input i))", rows.get(INPUT, []))
        self.load("Constant", "v c", "(union (Ref v) (Constant c))", rows.get(CONSTANT, []))
        self.load("Projection", "v i n", "(union (Ref v) (Projection i (Ref n)))", rows.get(PROJECTION, []))
        self.load("Cons", "l h t", "(union (RefList l) (Cons (Ref h) (RefList t)))", rows.get(CONS, []))
        # Each constructor costs egglog memory: what no rule can match shares one.
        opaque = [entry for entry in encoding.entries if entry.head >= 0 and encoding.terms.signatures[entry.head].lawless]
        self.load(
            "Opaque",
            "o k l",
            "(union (Ref o) (Opaque k (RefList l)))",
            ((e.eclass, self.opaque.intern((e.head, e.data), (e.head, e.data)), *e.children) for e in opaque),
        )
        for head, found in rows.items():
            if head >= 0 and not encoding.terms.signatures[head].lawless:
                self.operator(head, encoding.terms.signatures[head], found)
        self.literals()
        link = self.callback(derivation.link)
        self.rule("laws", "list", "(= l (Cons h t)) (= f (fact h)) (= g (facts t))", f"(set (facts l) (py-call {link} f g))")
        project = self.callback(derivation.project)
        self.rule("laws", "output", "(= x (Projection i n)) (= f (fact n))", f"(set (fact x) (py-call {project} (py-from-int i) f))")
        return "\n".join(self.text)

    def load(self, name: str, columns: str, action: str, rows: Iterable[tuple[int, ...]]) -> None:
        with (self.folder / f"{name}.tsv").open("w") as file:
            file.writelines("\t".join(map(str, row)) + "\n" for row in rows)
        self.text.append(f'(relation t_{name} ({" ".join("i64" for _ in columns.split())})) (input t_{name} "{name}.tsv")')
        self.rule("load", f"load {name}", f"(t_{name} {columns})", action)

    def rule(self, ruleset: str, name: str, body: str, head: str) -> None:
        self.text.append(f'(rule ({body}) ({head}) :ruleset {ruleset} :name "{name}")')

    def operator(self, index: int, signature: Signature, rows: list[tuple[int, ...]]) -> None:
        name = constructor(index, signature)
        attributes = [f"a{i}" for i in range(len(signature.attributes))]
        inputs = [f"x{i}" for i in range(signature.inputs)]
        rest = ["l"] if signature.rest else []
        sorts = " ".join(["PyObject"] * len(attributes) + ["T"] * len(inputs) + ["L"] * len(rest))
        self.text.append(f"(constructor {name} ({sorts}) T)")
        loaded = " ".join([*(f"(py-from-int {a})" for a in attributes), *(f"(Ref {x})" for x in inputs), *(f"(RefList {r})" for r in rest)])
        columns = " ".join([*attributes, *inputs, *rest])
        self.load(name, f"o {columns}", f"(union (Ref o) ({name} {loaded}))", rows)
        facts = [f"(= f{x} (fact {x}))" for x in inputs] + [f"(= f{r} (facts {r}))" for r in rest]
        derive = self.callback(self.deriver(index))
        arguments = " ".join([*attributes, *(f"f{x}" for x in (*inputs, *rest))])
        term = f"(= o ({name} {columns}))"
        self.rule("laws", f"fact {name}", f"{term} {' '.join(facts)}", f"(set (fact o) (py-call {derive} {arguments}))")
        if signature.operator.standard and signature.operator.name in ("Reshape", "Expand") and signature.inputs == 2:
            self.parameter(index, signature, name, term)

    def deriver(self, index: int) -> Callable[..., int]:
        derivation = self.encoding.derivation
        return lambda *columns: derivation.term(index, *columns)

    def parameter(self, index: int, signature: Signature, name: str, term: str) -> None:
        """A shape that is known by names of sizes needs no nodes to compute it where a literal says the same."""
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
        # In the literal a zero copies a size, whatever it meant in the computed shape.
        copies = terms.attribute(0)
        attributes = " ".join(f"(py-from-int {copies})" if name == "allowzero" else f"a{i}" for i, name in enumerate(signature.attributes))
        possible = self.callback(lambda *columns: literal(*columns) >= 0)
        made = f"(py-call {self.callback(literal)} {arguments})"
        fact = f"(py-call {self.callback(self.literal_fact)} {made})"
        self.rule(
            "laws",
            f"parameter {name}",
            f"{term} (= fx0 (fact x0)) (= fx1 (fact x1)) (= true (py-to-bool (py-call {possible} {arguments})))",
            f"(let s (Literal {made})) (set (fact s) {fact}) (union o ({name} {attributes} x0 s))",
        )

    def literals(self) -> None:
        """Values that are known to be equal integers are one class: that of their literal."""
        known, literal = self.callback(self.known), self.callback(self.literal)
        self.rule("laws", "literal", f"(= f (fact x)) (= true (py-to-bool (py-call {known} f)))", f"(union x (Literal (py-call {literal} f)))")

    def literal_fact(self, handle: int) -> int:
        literal = self.encoding.terms.literals.get(handle)
        return self.encoding.terms.fact(Fact(literal.dtype, literal.shape, True, literal.elements))

    def known(self, handle: int) -> bool:
        fact = self.encoding.terms.facts.get(handle)
        return isinstance(fact, Fact) and literal_of(fact) is not None

    def literal(self, handle: int) -> int:
        fact = self.encoding.terms.facts.get(handle)
        literal = literal_of(fact) if isinstance(fact, Fact) else None
        assert literal is not None
        return self.encoding.terms.literal(literal)


def constructor(index: int, signature: Signature) -> str:
    """The name of a signature's terms in egglog."""
    return f"op{index}_{re.sub(r'[^A-Za-z0-9_]', '_', signature.operator.name)}"


def saturate(encoding: Encoding, limits: Limits) -> tuple[EGraph, Record]:
    """The saturated e-graph of an encoding, and the record of the run; a limit that is hit ends the run, not the result."""
    from egglog import bindings

    record = Record()
    memory = resident_bytes()
    with tempfile.TemporaryDirectory(prefix="eqsat-") as folder:
        program = _Program(encoding, Path(folder))
        try:
            engine = bindings.EGraph(fact_directory=folder)

            def run(text: str) -> Any:
                return engine.run_program(*engine.parse_program(text))

            run(program.build())
            run("(run-schedule (saturate (run load)))")
            while (hit := _hit(limits, memory, lambda: sum(size for _, size in run("(print-size)")[0].sizes))) is None:
                report = run("(run-schedule (run laws))")[0].report
                record.iterations += 1
                for name, count in report.num_matches_per_rule.items():
                    law = name.split()[0]
                    record.matches[law] = record.matches.get(law, 0) + count
                if not report.updated:
                    break
            record.hit = hit
            graph = _thaw(engine, encoding, program.opaque)
        except bindings.EggSmolError as error:
            raise EngineFailure(" ".join(str(error).split())[:200]) from error
        except BaseException as error:
            # A panic inside egglog surfaces as pyo3's own exception, which can not be imported.
            if type(error).__name__ == "PanicException":
                raise EngineFailure(" ".join(str(error).split())[:200]) from error
            raise
        finally:
            for token in program.tokens:
                del _callbacks[token]
    record.classes, record.nodes = len(graph.facts), len(graph.terms)
    return graph, record


def _hit(limits: Limits, memory: int, size: Callable[[], int]) -> str | None:
    """The limit that is reached, if one is. Looked at between iterations: each leaves an e-graph that is valid as it is."""
    if limits.deadline is not None and time.monotonic() > limits.deadline:
        return "time"
    if limits.memory is not None and resident_bytes() > memory + limits.memory:
        return "memory"
    return "nodes" if size() > limits.nodes else None


def resident_bytes() -> int:
    """The memory that this process holds now; 0 where the system does not tell."""
    statistics = Path("/proc/self/statm")
    return int(statistics.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statistics.exists() else 0


def _thaw(engine: Any, encoding: Encoding, opaque: Handles[tuple[int, tuple[int, ...]]]) -> EGraph:
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
    signatures = encoding.terms.signatures
    used = dict.fromkeys(entry.head for entry in encoding.entries if entry.head >= 0)
    heads |= {constructor(head, signatures[head]): head for head in used if not signatures[head].lawless}
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
    total = next(number)
    return EGraph(
        terms,
        [facts.get(eclass, encoding.terms.absent) for eclass in range(total)],
        [references[reference] for reference in range(len(encoding.facts))],
    )
