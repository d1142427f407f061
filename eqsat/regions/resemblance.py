"""Resemblance: families of kinds of regions that have the same structure and differ in sizes.

A deep network repeats a layer with other numbers of channels. Such regions are of several kinds,
because prices and the conditions of rules depend on sizes, but nearly the same rules improve them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from eqsat.facts.fact import Fact
from eqsat.operators import AttributeValue
from eqsat.regions.cut import Definitions, Region
from eqsat.terms.terms import CONSTANT, INPUT, LITERAL, Link, Term


def families(definitions: Definitions, kinds: Sequence[Sequence[Region]]) -> list[list[int]]:
    """Returns the numbers of the kinds by family, in their order. Sizes, integers above 1 among the
    attributes, and the elements of constants do not count.
    """
    structure = _Structure(definitions)
    found: dict[Hashable, list[int]] = {}
    for number, same in enumerate(kinds):
        found.setdefault(structure.key(same[0]), []).append(number)
    return list(found.values())


class _Structure:
    """The structure of regions, as keys that are equal for regions of one family."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._forms: dict[int, Hashable] = {}

    def key(self, region: Region) -> Hashable:
        first = self._definitions.first
        local = {reference: place for place, reference in enumerate((0, 1, *region.inputs, *region.references))}
        rows: list[Hashable] = [tuple(map(self._form, region.inputs))]
        for reference in region.references:
            terms = self._definitions.terms(reference)
            rows.append((self._form(reference), tuple((term.head, self._data(term), tuple(local[first(child)] for child in term.children)) for term in terms)))
        return (*rows, tuple(local[reference] for reference in region.outputs))

    def _data(self, term: Term) -> tuple[Hashable, ...]:
        if term.head in (INPUT, CONSTANT, LITERAL):
            return ()
        attributes = self._definitions.encoding.terms.attributes
        return tuple(_coarse(attributes.get(handle)) for handle in term.data) if term.head >= 0 else term.data

    def _form(self, reference: int) -> Hashable:
        handle = self._definitions.encoding.facts[reference]
        if handle not in self._forms:
            self._forms[handle] = self._knowledge(handle)
        return self._forms[handle]

    def _knowledge(self, handle: int) -> Hashable:
        facts = self._definitions.encoding.terms.facts
        knowledge = facts.get(handle)
        if isinstance(knowledge, Fact):
            return _shapeless(knowledge)
        if isinstance(knowledge, tuple):
            return tuple(map(_shapeless, knowledge))
        return tuple(self._knowledge(head) for head in self._definitions.encoding.terms.chain(handle)) if isinstance(knowledge, Link) else None


def _shapeless(fact: Fact) -> Hashable:
    """Returns what a fact tells of a value apart from its sizes. That one is 1 tells of broadcasts."""
    shape = None if fact.shape is None else tuple(size if size in (None, 0, 1) else isinstance(size, int) for size in fact.shape)
    return fact.dtype, shape, fact.const, fact.other, fact.ints is None, fact.uniform is None


def _coarse(value: AttributeValue | None) -> Hashable:
    """Returns an attribute, but any other integer for one above 1, such as a number of groups."""
    return min(value, 2) if isinstance(value, int) else repr(value)
