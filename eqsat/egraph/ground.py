"""The ground of all programs: an e-graph of egglog with the sorts, tables and laws that every program
has, and nothing else.

egglog takes longer to read these than to run a small program. So it reads them once, and each
program begins on a copy, which goes away with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from eqsat.egraph.callbacks import Callbacks
from eqsat.terms.terms import CONS

NOTHING = "$nothing"
"""The egglog global that callbacks return for no answer: the number -1.

A query compares with it, because each further call of Python would cost more than most callbacks do.
"""

EDGES = "edges"
"""The ruleset that notes which signatures are inputs of which."""

TOLD = "told"
"""The ruleset that tells each new edge to Python."""

LITERAL_FACT = "$literal_fact"
"""The egglog global that stands for the law of a literal's fact."""

RULESETS: tuple[str, ...] = ("laws", "load", EDGES, TOLD)
"""The rulesets of the ground."""

_LOADS = (
    ("Fact", "v f", "(set (fact (Ref v)) (py-from-int f))"),
    ("Facts", "v f", "(set (facts (RefList v)) (py-from-int f))"),
    ("Same", "a b", "(union (Ref a) (Ref b))"),
    ("Input", "v i", "(union (Ref v) (Input i))"),
    ("Constant", "v c", "(union (Ref v) (Constant c))"),
    ("Literal", "v l", "(union (Ref v) (Literal (py-from-int l)))"),
    ("Projection", "v i n", "(union (Ref v) (Projection i (Ref n)))"),
    ("Cons", "l h t", "(union (RefList l) (Cons (Ref h) (RefList t)))"),
    # Each constructor costs egglog memory, so all terms that no rule can match share one.
    ("Opaque", "o k l", "(union (Ref o) (Opaque k (RefList l)))"),
)
LOADS = tuple((name, len(columns.split())) for name, columns, _ in _LOADS)
"""The kinds of rows that the ground can load, each with its number of columns. The place of a kind is
its number in the first column of its table.
"""

_LAWS = ("merge", "tell", "link", "project", "literal", "literal_fact")


def table_text(table: str, width: int) -> str:
    """Returns the command that declares a table of integers with a number before its `width` columns."""
    return f"(relation {table} ({' '.join(['i64'] * (width + 1))}))"


TABLES = frozenset(table_text(f"rows_{width}", width) for _, width in LOADS)
"""The commands that declare the tables of loads in the ground."""


def rule_text(ruleset: str, name: str, body: str, head: str) -> str:
    """Returns the command that adds a rule to a ruleset."""
    return f'(rule ({body}) ({head}) :ruleset {ruleset} :name "{name}")'


def _text(pointers: Mapping[str, str]) -> str:
    """Returns the commands of the ground. `pointers` stand for the functions of laws."""
    # The fact of a literal says that the value is constant, which its own nodes may not tell.
    literal_fact = f"(py-call {LITERAL_FACT} l)"
    return "\n".join(
        [
            f"""
            (sort T) (sort L)
            (constructor Ref (i64) T :unextractable) (constructor RefList (i64) L :unextractable)
            (constructor Input (i64) T) (constructor Constant (i64) T) (constructor Literal (PyObject) T)
            (constructor Projection (i64 T) T) (constructor Absent () T)
            (constructor Cons (T L) L) (constructor Nil () L) (constructor Opaque (i64 L) T)
            (function fact (T) PyObject :merge (py-call {pointers["merge"]} old new))
            (function facts (L) PyObject :merge (py-call {pointers["merge"]} old new))
            (union (Ref 0) (Absent)) (union (RefList 1) (Nil))
            (let {NOTHING} (py-from-int -1))
            (relation is (T i64)) (relation edge (i64 i64 i64))
            """,
            *(f"(let ${name} {pointers[name]})" for name in _LAWS if name != "merge"),
            *(f"(ruleset {name})" for name in RULESETS),
            *sorted(TABLES),
            *(rule_text("load", f"load {name}", f"(rows_{len(row.split())} {kind} {row})", action) for kind, (name, row, action) in enumerate(_LOADS)),
            rule_text("laws", "is output", "(= x (Projection i n)) (is n operand)", "(is x operand)"),
            rule_text(EDGES, "edge list", "(= l (Cons item t)) (is item operand)", f"(edge {CONS} 0 operand)"),
            rule_text(TOLD, "edge", "(edge a i b) (= answer (py-call $tell (py-from-int a) (py-from-int i) (py-from-int b)))", ""),
            # This law joins values of known integers with their literal.
            rule_text("laws", "literal", f"(= f (fact x)) (= l (py-call $literal f)) (!= l {NOTHING})", f"(union x (Literal l)) (set (fact x) {literal_fact})"),
            rule_text("laws", "list", "(= l (Cons h t)) (= f (fact h)) (= g (facts t))", "(set (facts l) (py-call $link f g))"),
            rule_text("laws", "output", "(= x (Projection i n)) (= f (fact n))", "(set (fact x) (py-call $project (py-from-int i) f))"),
        ]
    )


class _Ground:
    """An e-graph with the ground, and the laws of the program that uses it."""

    def __init__(self, bindings: Any) -> None:
        self.egraph: Any = bindings.EGraph()
        self.laws: Mapping[str, Callable[..., int]] = {}
        self._callbacks = Callbacks()
        self.run(_text({name: self._callbacks.pointer(self._law(name)) for name in _LAWS}))

    def run(self, text: str) -> None:
        self.egraph.run_program(*self.egraph.parse_program(text))

    def close(self) -> None:
        """Releases the functions of laws, which lead back to the e-graph."""
        self._callbacks.close()

    def _law(self, name: str) -> Callable[..., int]:
        return lambda *columns: self.laws[name](*columns)


_idle: list[_Ground] = []  # those of the main thread that no program uses


@contextmanager
def grounded(bindings: Any, laws: Mapping[str, Callable[..., int]]) -> Generator[Any]:
    """Yields an e-graph of egglog with the ground, for one program with these functions of laws.

    What the block adds to it is gone afterwards. egglog's e-graphs do not change threads, not even to
    be released, so only the main thread keeps them.
    """
    keeps = threading.current_thread() is threading.main_thread()
    ground = _idle.pop() if keeps and _idle else _Ground(bindings)
    ground.laws = laws
    kept = False
    try:
        ground.run("(push)")
        yield ground.egraph
        # After an exception, egglog may be in any state.
        ground.run("(pop)")
        kept = keeps
    finally:
        ground.laws = {}
        if kept:
            _idle.append(ground)
        else:
            ground.close()
