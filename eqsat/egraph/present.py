"""The terms that an e-graph has, as far as single nodes of rules tell them apart.

The input is the columns of each term, as the law that derives its fact reads them. The output tells
whether some term suits a node of a left side. Most rules ask for what a graph lacks, such as a
Split in eight or a factor of one, and egglog takes longer to compile such a rule than to run it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from eqsat.language.alone import Alone
from eqsat.language.compile import Compiled
from eqsat.language.firing import keeps_its_form
from eqsat.language.matching import Refusal, match
from eqsat.language.query import Fixed, NodeAtom
from eqsat.terms.derivation import Derivation
from eqsat.terms.terms import Terms, attribute_key


class Present:
    """The terms by signature. Terms are only ever added; those with equal columns are one."""

    def __init__(self, terms: Terms, derivation: Derivation) -> None:
        self.count = 0  # of all terms
        self._terms = terms
        self._derivation = derivation
        self._rows: dict[int, dict[tuple[int, ...], None]] = {}

    def note(self, index: int, columns: tuple[int, ...]) -> None:
        """Adds a term: its attributes, then the facts of its inputs and of its list."""
        rows = self._rows.setdefault(index, {})
        if columns not in rows:
            rows[columns] = None
            self.count += 1

    def size(self, one: Alone) -> int:
        """Returns the number of terms with the signature of a node."""
        return len(self._rows.get(self._terms.signature(one.atom.signature), ()))

    def has(self, one: Alone, compiled: Compiled, begin: int = 0) -> bool:
        """Tells whether some term suits a node of a direction, after the first `begin` terms of its
        signature.
        """
        index = self._terms.signature(one.atom.signature)
        fixed = self._fixed(one.atom)
        if fixed is None:
            return False
        for row in islice(self._rows.get(index, ()), begin, None):
            if any(row[column] != handle for column, handle in fixed):
                continue
            if one.root and keeps_its_form(compiled, self._terms.facts.get(self._derivation.term(index, *row))):
                continue
            if any(self._suits(one, columns) for columns in self._orders(one.atom, row)):
                return True
        return False

    def _fixed(self, atom: NodeAtom) -> list[tuple[int, int]] | None:
        """Returns the columns with one admitted value, and its handle. None if no term has the value."""
        found: list[tuple[int, int]] = []
        for column, attribute in enumerate(atom.attributes):
            if isinstance(attribute, Fixed):
                handle = self._terms.attributes.find(attribute_key(attribute.value))
                if handle is None:
                    return None
                found.append((column, handle))
        return found

    def _orders(self, atom: NodeAtom, row: tuple[int, ...]) -> Iterator[Sequence[int]]:
        """Yields the attributes and the facts of the operands of a term, in each order of them that
        the node may have. Yields nothing if the term has another number of operands.
        """
        signature = atom.signature
        operands = row[len(signature.attributes) :]
        if signature.rest:
            items = self._terms.chain(operands[-1])
            least = 2 if atom.view else len(atom.items)
            if len(items) < least or (len(items) > least and atom.rest is None):
                return
            operands = (*operands[:-1], *items[:least])
        attributes = row[: len(signature.attributes)]
        yield (*attributes, *operands)
        if atom.view:
            yield (*attributes, *reversed(operands))

    def _suits(self, one: Alone, columns: Sequence[int]) -> bool:
        first, absent = len(one.atom.attributes), self._terms.absent
        operands = (*one.atom.inputs, *one.atom.items)
        if any(variable is None and columns[column] != absent for column, variable in enumerate(operands, first)):
            return False
        if any(columns[one_of] != columns[other] for one_of, other in one.same):
            return False
        handles = [absent] * one.sources
        for source, column in one.columns:
            handles[source] = columns[column]
        return not isinstance(match(one.steps, self._terms, tuple(handles)), Refusal)
