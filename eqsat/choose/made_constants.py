"""Made constants: constants that rules made, computed from constants that the model stores.

The input is a saturated e-graph. For each constant class that has no value in the original, the
output is one term, and a model without inputs that computes the class. Rules of real arithmetic
hold up to float rounding. If the model uses only + - * / and square roots, products and moves, it
computes floats in double and rounds once at the end.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import onnx
from onnx import TensorProto, helper

from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.facts.fact import Fact, byte_size
from eqsat.model.tensors import Tensor
from eqsat.operators import to_attributes
from eqsat.terms.reading import buildable, term_attributes, term_inputs, term_outputs
from eqsat.terms.terms import ABSENT, CONS, NIL, PROJECTION, Term
from eqsat.traits import NEWEST

# Operators that ONNX Runtime has in double, and whose results are closer to real arithmetic there.
_IN_DOUBLE = frozenset(
    """
    Add Concat Div Expand Flatten Gather Gemm Identity MatMul Mul Neg Pad Reciprocal ReduceMean ReduceSum Reshape Slice Split
    Sqrt Squeeze Sub Tile Transpose Unsqueeze
    """.split()
)
_ROUNDED = frozenset({int(TensorProto.FLOAT), int(TensorProto.FLOAT16), int(TensorProto.BFLOAT16)})


class MadeConstants:
    """Computes constant classes of one e-graph from `given` classes with known elements."""

    def __init__(self, encoding: Encoding, egraph: EGraph, given: Iterable[int], limit: int) -> None:
        self._encoding = encoding
        self._egraph = egraph
        self._limit = limit
        self._given = set(given)
        self._terms = buildable(filter(self._is_usable, egraph.terms), self._given)

    def __contains__(self, eclass: int) -> bool:
        return eclass in self._terms

    @property
    def values(self) -> list[int]:
        """Returns the made constants that are values."""
        return [eclass for eclass in self._terms if self._fact(eclass) is not None]

    def leaves(self, eclass: int) -> list[int]:
        """Returns the given classes from which a made constant is computed."""
        return [found for found in self._steps(eclass) if found in self._given]

    def recipe(self, eclass: int, sources: Mapping[int, Hashable]) -> Hashable:
        """Returns what the elements of a class depend on, the same in each e-graph of one encoding.
        `sources` names the elements of its leaves.
        """
        places: dict[int, int] = {}
        lines: list[Hashable] = []
        for place, step in enumerate(self._steps(eclass)):
            places[step] = place
            term = None if step in self._given else self._terms[step]
            lines.append(sources[step] if term is None else (term.head, term.data, tuple(places[child] for child in term.children)))
        return tuple(lines), self._egraph.facts[eclass]

    def model(self, eclass: int, leaves: Mapping[int, Tensor]) -> onnx.ModelProto:
        """Returns a model whose one output, `result`, is the class. `leaves` has the elements of
        its leaves. Those that are apart stay in their file.
        """
        steps = self._steps(eclass)
        heads = [self._terms[step] for step in steps if step not in self._given]
        names = {term.head: self._encoding.terms.signatures[term.head].operator.name for term in heads if term.head >= 0}
        double = all(name in _IN_DOUBLE for name in names.values())
        graph = onnx.GraphProto(name="constant")
        for step in steps:
            if step in self._given:
                # Half of the bytes go to the worker if the model has the conversion to double.
                widened = double and leaves[step].dtype in _ROUNDED
                graph.initializer.append(leaves[step].named(f"w{step}" if widened else f"v{step}"))
                if widened:
                    graph.node.append(helper.make_node("Cast", [f"w{step}"], [f"v{step}"], to=TensorProto.DOUBLE))
            elif self._terms[step].head >= 0:
                graph.node.append(self._node(step, self._terms[step], {self._terms[other].data[0] for other in steps if self._is_output(other, step)}))
        fact = self._fact(eclass)
        assert fact is not None
        if double and fact.dtype in _ROUNDED:
            graph.node.append(helper.make_node("Cast", [f"v{eclass}"], ["result"], to=fact.dtype))
        else:
            graph.node.append(helper.make_node("Identity", [f"v{eclass}"], ["result"]))
        graph.output.append(onnx.ValueInfoProto(name="result"))
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", NEWEST)])

    def _is_output(self, eclass: int, node: int) -> bool:
        term = self._terms.get(eclass)
        return term is not None and eclass not in self._given and term.head == PROJECTION and term.children[0] == node

    def _fact(self, eclass: int) -> Fact | None:
        return self._encoding.terms.value_fact(self._egraph.facts[eclass])

    def _is_usable(self, term: Term) -> bool:
        if term.head in (ABSENT, CONS, NIL):
            return True
        if term.head < 0 and term.head != PROJECTION:
            return False
        if term.head >= 0:
            signature = self._encoding.terms.signatures[term.head]
            if signature.lawless or not signature.operator.pure or signature.operator.opset != NEWEST or not signature.operator.standard:
                return False
        facts = self._encoding.terms.value_facts(self._egraph.facts[term.eclass])
        return bool(facts) and all(fact.const and fact.dtype and (byte_size(fact) or 0) <= self._limit for fact in facts)

    def _steps(self, eclass: int) -> list[int]:
        """Returns the classes that the computation of a class needs, children first."""
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

    def _node(self, eclass: int, term: Term, used: set[int]) -> onnx.NodeProto:
        terms = self._encoding.terms
        signature = terms.signatures[term.head]
        inputs = [self._name(child) for child in term_inputs(signature, term, self._terms.__getitem__)]
        while inputs and not inputs[-1]:
            inputs.pop()
        if signature.single:
            outputs = [f"v{eclass}"]
        elif (named := term_outputs(terms, term.head, term.data)) is not None:
            outputs = [f"v{eclass}_{index}" for index in range(len(named))]
        else:
            outputs = [f"v{eclass}_{index}" if index in used or index == 0 else "" for index in range(max(used) + 1)]
        node = helper.make_node(signature.operator.name, inputs, outputs)
        node.attribute.extend(to_attributes(signature.operator, term_attributes(terms, term.head, term.data)))
        return node
