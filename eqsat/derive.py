"""What a term is known to be, from what its parts are known to be: inference over handles, memoized.

The same function serves encoding (in Python, once through the graph) and saturation (as a callback of egglog),
so that a term is known equally well wherever it came from.
"""

from __future__ import annotations

import onnx

from eqsat.facts import UNKNOWN, Fact, merge
from eqsat.inference import infer
from eqsat.operators import AttributeValue
from eqsat.terms import IDENTITY, OUTPUTS, Knowledge, Link, Terms


class Derivation:
    """Derives and merges facts of one run; all arguments and results are handles of `terms`."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._known: dict[tuple[int, ...], int] = {}
        self._merged: dict[tuple[int, int], int] = {}

    def term(self, signature: int, *columns: int) -> int:
        """The fact of a term: its attribute columns come first, then its single inputs' facts, then its list's."""
        key = (signature, *columns)
        handle = self._known.get(key)
        if handle is None:
            handle = self._known[key] = self._terms.fact(self._infer(signature, columns))
        return handle

    def _infer(self, index: int, columns: tuple[int, ...]) -> Knowledge:
        terms = self._terms
        signature = terms.signatures[index]
        split = len(signature.attributes)
        attributes: dict[str, AttributeValue] = {}
        presence: tuple[int, ...] | None = None
        for name, handle in zip(signature.attributes, columns[:split], strict=True):
            value = terms.attributes.get(handle)
            if name == OUTPUTS:
                assert isinstance(value, tuple)
                presence = tuple(int(flag) for flag in value)
            elif value is not None and name != IDENTITY:
                attributes[name] = value
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
            # A parameter of the function around it: what the node computes is known only at a call.
            return (UNKNOWN,) * count if not signature.single else UNKNOWN
        while inputs and inputs[-1] is None:
            inputs.pop()
        results = infer(operator, attributes, tuple(inputs), count)
        return results[0] if signature.single else results

    def project(self, index: int, handle: int) -> int:
        """The fact of one output of a node, given the node's."""
        facts = self._terms.facts.get(handle)
        assert isinstance(facts, tuple) and not isinstance(facts, Fact)
        return self._terms.fact(facts[index] if index < len(facts) else UNKNOWN)

    def link(self, head: int, tail: int) -> int:
        """The fact of a list, given those of its head and its tail."""
        return self._terms.fact(Link(head, tail))

    def merge(self, a: int, b: int) -> int:
        """What is known of a class that two facts are true of; raises `Contradiction` where they can not both be."""
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
