"""The normal forms of the nodes of a graph, computed once for the nodes of repeated layers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from eqsat.facts.fact import UNKNOWN, Fact, type_of
from eqsat.facts.known_ranges import known_range
from eqsat.facts.onnx_inference import TYPE_ALONE
from eqsat.operators import Attributes, Operator
from eqsat.spelling.normal import ZEROS_IF_ABSENT, normal_form
from eqsat.terms.forms import Form
from eqsat.terms.terms import Terms, attribute_key

_ABSENT: tuple[int, Fact | None] = -1, None  # of an input that is absent


class NodeForms:
    """Normal forms of nodes, whose inputs are known by the handles of their facts."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._forms: dict[Hashable, Form | None] = {}
        # By handle and whether elements count, the part of the fact that spelling reads, and its number.
        self._parts: dict[tuple[int, bool], tuple[int, Fact]] = {}
        self._numbers: dict[Fact, int] = {}

    def of(self, operator: Operator, attributes: Attributes, handles: Sequence[int | None], outputs: int) -> Form | None:
        """Returns the normal form of a node, or None if it has none. An absent input has no handle."""
        elements, zeros = operator.name not in TYPE_ALONE, ZEROS_IF_ABSENT.get(operator.name, ())
        absent = [handle is None or (place in zeros and self._is_zero(handle)) for place, handle in enumerate(handles)]
        parts = [_ABSENT if gone or handle is None else self._part(handle, elements) for handle, gone in zip(handles, absent, strict=True)]
        key = (operator, tuple([(name, attribute_key(value)) for name, value in attributes.items()]), tuple([number for number, _ in parts]), outputs)
        if key not in self._forms:
            self._forms[key] = normal_form(operator, attributes, [fact for _, fact in parts], outputs)
        return self._forms[key]

    def _is_zero(self, handle: int) -> bool:
        """Tells whether all elements of a value are known to be zeros."""
        fact = self._terms.value_fact(handle)
        found = None if fact is None else known_range(fact)
        return found is not None and found.finite and found.rounded == (0, 0)

    def _part(self, handle: int, elements: bool) -> tuple[int, Fact]:
        """Returns the part of a fact that the spelling of a node depends on, and its number: never the
        range, which weights make different in each layer, and the elements only where they count.
        """
        key = handle, elements
        known = self._parts.get(key)
        if known is None:
            fact = self._terms.value_fact(handle) or UNKNOWN
            part = fact._replace(range=None, doubled=False, paired=False) if elements else type_of(fact)
            known = self._parts[key] = self._numbers.setdefault(part, len(self._numbers)), part
        return known
