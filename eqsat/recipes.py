"""Recipes: constants that rules made, and how each is computed from those that the model stores.

Comes in: a saturated e-graph. Goes out: for each constant class that the original has no value for, one term to compute
it by, and a model without inputs that does so. What a rule of real arithmetic made of floats is computed in double
where only + - * / and square roots, products and moves are used, and rounded once at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from eqsat.egraph import EGraph
from eqsat.encode import Encoding
from eqsat.facts import Fact, byte_size
from eqsat.operators import read_attributes, to_attribute
from eqsat.tensors import from_array
from eqsat.terms import ABSENT, CONS, NIL, OUTPUTS, PROJECTION, Knowledge, Term
from eqsat.traits import NEWEST

# Operators that ONNX Runtime has in double, and whose result in double is closer to that in real arithmetic.
_IN_DOUBLE = frozenset(
    """
    Add Concat Div Expand Flatten Gather Gemm Identity MatMul Mul Neg Pad Reciprocal ReduceMean ReduceSum Reshape Slice Split
    Sqrt Squeeze Sub Tile Transpose Unsqueeze
    """.split()
)
_ROUNDED = frozenset({int(TensorProto.FLOAT), int(TensorProto.FLOAT16), int(TensorProto.BFLOAT16)})

Array = np.ndarray[Any, Any]


class Recipes:
    """How to compute the constant classes of one e-graph, from `given` classes whose elements are known otherwise."""

    def __init__(self, encoding: Encoding, egraph: EGraph, given: Iterable[int], limit: int) -> None:
        self._encoding = encoding
        self._egraph = egraph
        self._limit = limit
        self._given = set(given)
        self._terms = self._grown()

    def __contains__(self, eclass: int) -> bool:
        return eclass in self._terms

    @property
    def values(self) -> list[int]:
        """The classes of values that have a recipe."""
        return [eclass for eclass in self._terms if isinstance(self._knowledge(eclass), Fact)]

    def leaves(self, eclass: int) -> list[int]:
        """The given classes that a recipe starts from."""
        return [found for found in self._steps(eclass) if found in self._given]

    def model(self, eclass: int, leaves: Mapping[int, Array]) -> onnx.ModelProto:
        """A model whose one output, `result`, is the class; the elements of its leaves are `leaves`."""
        steps = self._steps(eclass)
        heads = [self._terms[step] for step in steps if step not in self._given]
        names = {term.head: self._encoding.terms.signatures[term.head].operator.name for term in heads if term.head >= 0}
        double = all(name in _IN_DOUBLE for name in names.values())
        graph = onnx.GraphProto(name="constant")
        for step in steps:
            if step in self._given:
                array = leaves[step]
                code = helper.np_dtype_to_tensor_dtype(array.dtype)
                graph.initializer.append(from_array(array.astype(np.float64) if double and code in _ROUNDED else array, f"v{step}").proto)
            elif self._terms[step].head >= 0:
                graph.node.append(self._node(step, self._terms[step], {self._terms[other].data[0] for other in steps if self._is_output(other, step)}))
        fact = self._knowledge(eclass)
        assert isinstance(fact, Fact)
        if double and fact.dtype in _ROUNDED:
            graph.node.append(helper.make_node("Cast", [f"v{eclass}"], ["result"], to=fact.dtype))
        else:
            graph.node.append(helper.make_node("Identity", [f"v{eclass}"], ["result"]))
        graph.output.append(onnx.ValueInfoProto(name="result"))
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", NEWEST)])

    def _is_output(self, eclass: int, node: int) -> bool:
        term = self._terms.get(eclass)
        return term is not None and eclass not in self._given and term.head == PROJECTION and term.children[0] == node

    def _knowledge(self, eclass: int) -> Knowledge:
        return self._encoding.terms.facts.get(self._egraph.facts[eclass])

    def _grown(self) -> dict[int, Term]:
        """By class, a term all of whose children are given or have a recipe before it: breadth first, so that recipes are short."""
        users: dict[int, list[int]] = {}
        missing: list[int] = []
        ready: list[int] = []
        usable = [term for term in self._egraph.terms if self._is_usable(term)]
        for number, term in enumerate(usable):
            children = {child for child in term.children if child not in self._given}
            missing.append(len(children))
            for child in children:
                users.setdefault(child, []).append(number)
            if not children:
                ready.append(number)
        found: dict[int, Term] = {}
        while ready:
            following: list[int] = []
            for number in ready:
                term = usable[number]
                if term.eclass in found:
                    continue
                found[term.eclass] = term
                for user in users.get(term.eclass, ()):
                    missing[user] -= 1
                    if not missing[user]:
                        following.append(user)
            ready = following
        return found

    def _is_usable(self, term: Term) -> bool:
        if term.eclass in self._given:
            return False
        if term.head in (ABSENT, CONS, NIL):
            return True
        if term.head < 0 and term.head != PROJECTION:
            return False
        if term.head >= 0:
            signature = self._encoding.terms.signatures[term.head]
            if signature.lawless or not signature.operator.pure or signature.operator.opset != NEWEST or not signature.operator.standard:
                return False
        knowledge = self._knowledge(term.eclass)
        facts = (knowledge,) if isinstance(knowledge, Fact) else knowledge if isinstance(knowledge, tuple) else ()
        return bool(facts) and all(fact.const and fact.dtype and (byte_size(fact) or 0) <= self._limit for fact in facts)

    def _steps(self, eclass: int) -> list[int]:
        """The classes that a recipe needs, each after those it needs itself."""
        order: dict[int, None] = {}
        stack = [(eclass, False)]
        while stack:
            current, done = stack.pop()
            if done:
                order[current] = None
            elif current not in order:
                stack.append((current, True))
                if current not in self._given:
                    stack += [(child, False) for child in self._terms[current].children if child not in order]
        return list(order)

    def _name(self, eclass: int) -> str:
        term = self._terms.get(eclass)
        if eclass in self._given or term is None:
            return f"v{eclass}"
        if term.head == ABSENT:
            return ""
        return f"v{term.children[0]}_{term.data[0]}" if term.head == PROJECTION else f"v{eclass}"

    def _items(self, eclass: int) -> list[str]:
        names: list[str] = []
        while (term := self._terms[eclass]).head == CONS:
            names.append(self._name(term.children[0]))
            eclass = term.children[1]
        return names

    def _node(self, eclass: int, term: Term, used: set[int]) -> onnx.NodeProto:
        terms = self._encoding.terms
        signature = terms.signatures[term.head]
        inputs = [self._name(child) for child in term.children[: signature.inputs]]
        if signature.rest:
            inputs += self._items(term.children[-1])
        while inputs and not inputs[-1]:
            inputs.pop()
        if signature.single:
            outputs = [f"v{eclass}"]
        elif OUTPUTS in signature.attributes:
            flags = terms.attributes.get(term.data[signature.attributes.index(OUTPUTS)])
            outputs = [f"v{eclass}_{index}" for index in range(len(flags) if isinstance(flags, tuple) else 0)]
        else:
            outputs = [f"v{eclass}_{index}" if index in used or index == 0 else "" for index in range(max(used) + 1)]
        node = helper.make_node(signature.operator.name, inputs, outputs)
        defaults = read_attributes(signature.operator, ())
        for name, handle in zip(signature.attributes, term.data, strict=True):
            value = terms.attributes.get(handle)
            if value is not None and not name.startswith("#") and defaults.get(name) != value:
                node.attribute.append(to_attribute(signature.operator, name, value))
        return node
