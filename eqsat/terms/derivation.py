"""Inference over handles, memoized: the fact of a term from the facts of its parts.

Encoding calls these functions once for the graph, and egglog calls them during saturation. So a
term has the same fact wherever it comes from.
"""

from __future__ import annotations

import onnx

from eqsat.facts.fact import UNKNOWN, Fact, merge
from eqsat.facts.inference import infer
from eqsat.terms.reading import term_attributes, term_outputs
from eqsat.terms.terms import Knowledge, Link, Terms


class Derivation:
    """The derivation and merging of facts in one run.

    All arguments and results are handles of `terms`.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._known: dict[tuple[int, ...], int] = {}
        self._merged: dict[tuple[int, int], int] = {}

    def term(self, signature: int, *columns: int) -> int:
        """Derive the fact of a term.

        `columns` are its attributes, then the facts of its single inputs, then its list's.
        """
        key = (signature, *columns)
        handle = self._known.get(key)
        if handle is None:
            handle = self._known[key] = self._terms.fact(self._infer(signature, columns))
        return handle

    def _infer(self, index: int, columns: tuple[int, ...]) -> Knowledge:
        terms = self._terms
        signature = terms.signatures[index]
        split = len(signature.attributes)
        attributes = term_attributes(terms, index, columns[:split])
        presence = term_outputs(terms, index, columns[:split])
        handles = list(columns[split : split + signature.inputs])
        if signature.rest:
            handles += terms.chain(columns[-1])
        inputs: list[Fact | None] = []
        for handle in handles:
            fact = terms.facts.get(handle)
            assert fact is None or isinstance(fact, Fact)
            inputs.append(fact)
        operator = signature.operator
        if presence is not None:
            count = len(presence)
        else:
            count = 1 if operator.schema is None else operator.schema.max_output
        if any(isinstance(value, onnx.AttributeProto) and value.ref_attr_name for value in attributes.values()):
            # The attribute is a parameter of the enclosing function, so the node's result depends
            # on the call.
            return (UNKNOWN,) * count if not signature.single else UNKNOWN
        while inputs and inputs[-1] is None:
            inputs.pop()
        results = infer(operator, attributes, tuple(inputs), count)
        return results[0] if signature.single else results

    def project(self, index: int, handle: int) -> int:
        """Derive the fact of one output from the node's fact."""
        facts = self._terms.facts.get(handle)
        assert isinstance(facts, tuple) and not isinstance(facts, Fact)
        return self._terms.fact(facts[index] if index < len(facts) else UNKNOWN)

    def link(self, head: int, tail: int) -> int:
        """Derive the fact of a list from the facts of its head and its tail."""
        return self._terms.fact(Link(head, tail))

    def merge(self, a: int, b: int) -> int:
        """Merge two facts of one class; raise `Contradiction` if they cannot both be true."""
        if a == b:
            return a
        key = (a, b) if a < b else (b, a)
        handle = self._merged.get(key)
        if handle is None:
            handle = self._merged[key] = self._merge(*key)
        return handle

    def _merge(self, a: int, b: int) -> int:
        terms = self._terms
        first, second = terms.facts.get(a), terms.facts.get(b)
        if isinstance(first, Link):
            heads = [self.merge(x, y) for x, y in zip(terms.chain(a), terms.chain(b), strict=True)]
            handle = terms.absent
            for head in reversed(heads):
                handle = self.link(head, handle)
            return handle
        if isinstance(first, Fact) and isinstance(second, Fact):
            return terms.fact(merge(first, second))
        assert isinstance(first, tuple) and isinstance(second, tuple)
        return terms.fact(tuple(merge(_fact(x), _fact(y)) for x, y in zip(first, second, strict=True)))


def _fact(item: object) -> Fact:
    assert isinstance(item, Fact)
    return item
