"""A dump of an e-graph: a priced graph with readable names, in the egraph-serialize format.

The file is written completely or not at all.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import onnx

from eqsat.egraph.encode import Encoding
from eqsat.errors import InputError
from eqsat.extract import Graph
from eqsat.extract.serialize import write
from eqsat.facts.fact import dtype_name
from eqsat.frozen import frozen
from eqsat.model.write import replacing
from eqsat.operators import AttributeValue
from eqsat.terms.terms import ABSENT, CONS, CONSTANT, FOLDED, FUSED, INPUT, LITERAL, NIL, OUTPUTS, PROJECTION, Term

_LENGTH = 100  # characters of a node's name; longer ones are cut

_KINDS = {ABSENT: "absent", NIL: "nil", CONS: "cons", FOLDED: "folded", FUSED: "fused"}


@frozen
class Dump:
    """A priced graph, and the readable name of each node."""

    graph: Graph
    operators: list[str]


def operators(encoding: Encoding, terms: Sequence[Term]) -> list[str]:
    """Returns a readable name for each term: `Relu`, `Concat(axis=1)`, `input(x)`,
    `constant(weight)`.
    """
    names = {reference: name for name, reference in encoding.values.items()}
    return [_cut(_operator(encoding, names, term)) for term in terms]


def save_dump(dump: Dump, path: Path) -> None:
    """Writes a dump to `path`, compressed if the name ends in .gz. Equal dumps give equal bytes."""
    try:
        with replacing(path.resolve()) as file:
            if path.name.endswith(".gz"):
                with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                    write(dump.graph, dump.operators, packed)
            else:
                write(dump.graph, dump.operators, file)
    except OSError as error:
        raise InputError(f"{path}: can not write it: {error.strerror or error}") from None


def _operator(encoding: Encoding, names: dict[int, str], term: Term) -> str:
    terms = encoding.terms
    if term.head in _KINDS:
        return _KINDS[term.head]
    if term.head == INPUT:
        return f"input({names[term.data[0]]})"
    if term.head == CONSTANT:
        return f"constant({encoding.contents[term.data[0]][0]})"
    if term.head == PROJECTION:
        return f"output({term.data[0]})"
    if term.head == LITERAL:
        literal = terms.literals.get(term.data[0])
        elements = "..." if isinstance(literal.elements, bytes) else ", ".join(map(str, literal.elements))
        return f"{dtype_name(literal.dtype)}{list(literal.shape)}({elements})"
    signature = terms.signatures[term.head]
    values = zip(signature.attributes, map(terms.attributes.get, term.data), strict=True)
    shown = [f"{name.removeprefix('#')}={_shown(value)}" for name, value in values if value is not None and name != OUTPUTS]
    name = signature.operator.full_name
    return f"{name}({', '.join(shown)})" if shown else name


def _shown(value: AttributeValue) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return "..." if isinstance(value, onnx.AttributeProto) else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]}..."
