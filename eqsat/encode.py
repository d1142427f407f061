"""Encoding: a graph in normal form comes in, the rows of an e-graph and the facts of every value go out.

Values, nodes and lists get numbers; a row says "node n is operator o of these attributes and inputs". What is
known of each value is derived here in one pass along the graph, by the same derivation that saturation uses.
Bodies were optimized before: to this stage a node with bodies is one opaque term over its inputs and captures.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from onnx import TensorProto, defs

from eqsat.derive import Derivation
from eqsat.facts import INT_LIMIT, INTEGERS, UNKNOWN, Fact, element_count, from_array, from_type, with_symbols
from eqsat.model import Constant, Graph, Node
from eqsat.operators import AttributeValue, Operator, may_train, outputs_matter, read_attributes
from eqsat.tensors import ContentIndex, Tensor
from eqsat.terms import ABSENT, CONS, CONSTANT, IDENTITY, INPUT, NIL, OUTPUTS, PROJECTION, Link, Signature, Term, Terms

_LOOKED_AT = 1 << 16  # bytes of the largest constant whose elements are looked at for its fact

# Evaluates some constant values of the graph now, by name; those that the runtime can not evaluate are missing.
Evaluator: TypeAlias = Callable[[Sequence[str]], Mapping[str, np.ndarray[Any, Any]]]

# Optimizes the bodies of a node, given what they may capture; gives the node as it is then, and the facts of its outputs.
Descent: TypeAlias = "Callable[[Node, Outer], tuple[Node, tuple[Fact, ...]]]"


@dataclass(slots=True)
class Outer:
    """What a body sees of the graphs around it: facts by name, and those values that are stored constants."""

    facts: dict[str, Fact] = field(default_factory=dict[str, Fact])
    constants: dict[str, Constant] = field(default_factory=dict[str, Constant])
    same: dict[str, str] = field(default_factory=dict[str, str])  # by name, the first name of the same value
    main: bool = False  # this is the model's own graph: what it declares of its inputs is what callers must keep to

    def only(self, names: Iterable[str]) -> Outer:
        """What a body sees that uses just these names."""
        kept = [name for name in names if name in self.facts]
        first: dict[str, str] = {}
        same = {name: first.setdefault(self.same.get(name, name), name) for name in kept}
        return Outer({name: self.facts[name] for name in kept}, {name: self.constants[name] for name in kept if name in self.constants}, same)


@dataclass(slots=True)
class Encoding:
    """A graph as terms over references: numbers of values, nodes and lists, each defined after what it needs."""

    terms: Terms
    derivation: Derivation
    graph: Graph
    entries: list[Term] = field(default_factory=lambda: [Term(ABSENT, (), (), 0), Term(NIL, (), (), 1)])
    same: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])  # references that are one value
    facts: list[int] = field(default_factory=list[int])  # by reference, a handle
    values: dict[str, int] = field(default_factory=dict[str, int])  # by name, a reference
    nodes: dict[int, Node] = field(default_factory=dict[int, Node])  # by reference of its term, in topological order
    contents: dict[int, tuple[str, Constant]] = field(default_factory=dict[int, tuple[str, Constant]])  # by content, the first constant that holds it
    captured: set[int] = field(default_factory=set[int])  # contents that an outer graph stores

    def fact(self, name: str) -> Fact:
        """What is known of a named value."""
        knowledge = self.terms.facts.get(self.facts[self.values[name]])
        return knowledge if isinstance(knowledge, Fact) else UNKNOWN


def constant_fact(tensor: Tensor) -> Fact:
    """What is known of a stored constant; the elements of large or external ones are not looked at."""
    if tensor.external is None and tensor.nbytes <= _LOOKED_AT and tensor.dtype != TensorProto.STRING:
        try:
            return from_array(tensor.array())
        except ValueError:
            pass  # numpy has no such array: more than 64 dimensions, or an empty one of a size that it can not count
    return Fact(tensor.dtype, tensor.dims, const=True)


class _Encoder:
    def __init__(self, graph: Graph, terms: Terms, derivation: Derivation, contents: ContentIndex, outer: Outer, evaluate: Evaluator, descend: Descent) -> None:
        self.out = Encoding(terms, derivation, graph)
        self.terms = terms
        self.derivation = derivation
        self.contents = contents
        self.outer = outer
        self.evaluate = evaluate
        self.descend = descend
        self.apart = {name for node in graph.nodes if node.operator.name == "BatchNormalization" for name in node.inputs[3:] if _keeps_statistics(node)}
        self.known: dict[tuple[int, tuple[int, ...], tuple[int, ...]], int] = {}  # by term, the first reference to it
        self.first: dict[int, int] = {}  # by reference, an earlier one of the same value
        self.absent = terms.attribute(None)
        self.identities = 0

    def encode(self) -> Encoding:
        out, graph = self.out, self.out.graph
        out.facts += [self.terms.absent, self.terms.absent]
        declared = {info.name: info for info in graph.proto.input}
        for name in graph.inputs:
            fact = from_type(declared[name].type, name) if name in declared else UNKNOWN
            # What a body declares of its inputs is a claim: a Loop may feed another shape in each iteration.
            self._leaf(name, fact if self.outer.main else Fact(fact.dtype))
        for name, fact in self.outer.facts.items():
            stored = self.outer.constants.get(name)
            if stored is not None:
                self._constant(name, stored, captured=True)
            else:
                self._leaf(name, fact._replace(const=False))
            if self.outer.same.get(name, name) != name:
                self._equate(out.values[name], out.values[self.outer.same[name]])
        for name in graph.sparse:
            self._leaf(name, UNKNOWN)
        for name, constant in graph.constants.items():
            if name in out.values:
                continue  # only the default of an input
            if constant.tensor.hollow:
                self._leaf(name, Fact(constant.tensor.dtype, constant.tensor.dims))
            else:
                self._constant(name, constant, captured=False)
        for node in graph.nodes:
            self._node(node)
        return out

    def _value(self, name: str, fact: Fact) -> int:
        return self._bind(name, self.terms.fact(with_symbols(fact, name)))

    def _bind(self, name: str, handle: int) -> int:
        self.out.facts.append(handle)
        reference = len(self.out.facts) - 1
        if name:
            self.out.values[name] = reference
        return reference

    def _leaf(self, name: str, fact: Fact) -> None:
        reference = self._value(name, fact)
        self.out.entries.append(Term(INPUT, (reference,), (), reference))

    def _constant(self, name: str, constant: Constant, captured: bool) -> None:
        # Runtimes update the statistics of a training node in place, so such constants are shared with nothing.
        content = -len(self.out.entries) if name in self.apart else self.contents.key(constant.tensor)
        self._term(CONSTANT, (content,), (), self._value(name, constant_fact(constant.tensor)))
        # What an outer graph stores costs nothing here, so it stands for equal constants of the body.
        if captured or content not in self.out.contents:
            self.out.contents[content] = (name, constant)
        if captured:
            self.out.captured.add(content)

    def _equate(self, reference: int, other: int) -> None:
        self.out.same.append((reference, other))
        self.first[reference] = other

    def _term(self, head: int, data: tuple[int, ...], children: tuple[int, ...], reference: int) -> None:
        """Enters a term; one that was entered before makes its references one value, which bodies want to know at once."""
        self.out.entries.append(Term(head, data, children, reference))
        other = self.known.setdefault((head, data, children), reference)
        if other != reference:
            self._equate(reference, other)

    def _reference(self, name: str) -> int:
        reference = self.out.values[name]
        return self.first.get(reference, reference)

    def _list(self, items: Iterable[int]) -> int:
        tail = 1
        for head in reversed(list(items)):
            known = self.known.get((CONS, (), (head, tail)))
            if known is None:
                known = self._bind("", self.terms.fact(Link(self.out.facts[head], self.out.facts[tail])))
                self._term(CONS, (), (head, tail), known)
            tail = known
        return tail

    def _node(self, node: Node) -> None:
        out = self.out
        if node.operator.standard and node.operator.name == "Identity" and len(node.outputs) == 1 and node.inputs[0]:
            source = self._reference(node.inputs[0])
            self._equate(self._bind(node.outputs[0], out.facts[source]), source)
            return
        results: tuple[Fact, ...] = ()
        if node.bodies:
            node, results = self._descend(node)
        elif node.function is not None:
            results = (UNKNOWN,) * len(node.outputs)
        inputs = [self._reference(name) if name else 0 for name in node.inputs]
        attributes = read_attributes(node.operator, node.proto.attribute)
        facts = [self._fact(reference) if reference else None for reference in inputs]
        operator = node.operator
        mode = facts[2] if len(facts) > 2 else None
        inference = operator.name == "Dropout" and operator.version >= 12 and (mode is None or mode.ints == (0,))
        if operator.pure and not inference and may_train(operator, attributes, len(inputs), sum(map(bool, node.outputs))):
            operator = dataclasses.replace(operator, pure=False)
        signature, handles = self._signature(node, operator, attributes)
        form = self.terms.signatures[signature]
        if form.opaque:
            inputs += [self._reference(name) for name in node.captures]
        children = inputs[: form.inputs] + [0] * (form.inputs - len(inputs))
        if form.rest:
            children.append(self._list(inputs[form.inputs :]))
        if form.opaque:
            const = operator.pure and not node.dequantizes and all(self._fact(reference).const for reference in inputs if reference)
            results = tuple(fact._replace(const=const) for fact in results)
        else:
            knowledge = self.terms.facts.get(self.derivation.term(signature, *handles, *(out.facts[child] for child in children)))
            assert isinstance(knowledge, tuple)
            results = (knowledge,) if isinstance(knowledge, Fact) else knowledge
        projections: list[tuple[int, int]] = []
        if form.single:
            reference = self._value(node.outputs[0], self._sharpen(node, 0, results[0]))
        else:
            results = tuple(self._sharpen(node, index, fact) for index, fact in enumerate(results))
            prefixes = (*node.outputs, *("" for _ in results[len(node.outputs) :]))
            named = tuple(with_symbols(fact, name) if name else fact for fact, name in zip(results, prefixes, strict=True))
            reference = self._bind("", self.terms.fact(named))
            for index, name in enumerate(node.outputs):
                if name:
                    value = self._bind(name, self.terms.fact(named[index] if index < len(named) else UNKNOWN))
                    projections.append((index, value))
        self._term(signature, handles, tuple(children), reference)
        for index, value in projections:
            self._term(PROJECTION, (index,), (self.first.get(reference, reference),), value)
        out.nodes[reference] = node

    def _descend(self, node: Node) -> tuple[Node, tuple[Fact, ...]]:
        names = [name for name in node.captures if name in self.out.values]
        stored = {name: self.out.graph.constants[name] for name in names if name in self.out.graph.constants and name not in self.out.graph.overridable}
        stored |= {name: self.outer.constants[name] for name in names if name in self.outer.constants}
        stored = {name: constant for name, constant in stored.items() if not constant.tensor.hollow}
        first: dict[int, str] = {}
        same = {name: first.setdefault(self._reference(name), name) for name in names}
        return self.descend(node, Outer({name: self.out.fact(name) for name in names}, stored, same))

    def _fact(self, reference: int) -> Fact:
        knowledge = self.terms.facts.get(self.out.facts[reference])
        return knowledge if isinstance(knowledge, Fact) else UNKNOWN

    def _signature(self, node: Node, operator: Operator, attributes: Mapping[str, AttributeValue]) -> tuple[int, tuple[int, ...]]:
        schema = operator.schema
        opaque = bool(node.bodies) or node.function is not None
        names = set(attributes)
        if schema is not None:
            names.update(schema.attributes)
        variadic = schema is None or (bool(schema.inputs) and schema.inputs[-1].option == defs.OpSchema.FormalParameterOption.Variadic)
        columns = [(name, self.terms.attribute(attributes.get(name))) for name in sorted(names)]
        if outputs_matter(operator) or opaque:
            columns.append((OUTPUTS, self.terms.attribute(tuple(int(bool(name)) for name in node.outputs))))
        if not operator.pure:
            self.identities += 1
            columns.append((IDENTITY, self.terms.attribute(self.identities)))
        count = 0 if schema is None or opaque else len(schema.inputs) - variadic
        single = schema is not None and not opaque and schema.max_output == 1
        form = Signature(operator, tuple(name for name, _ in columns), count, variadic or opaque, single, opaque, node.function)
        return self.terms.signature(form), tuple(handle for _, handle in columns)

    def _sharpen(self, node: Node, index: int, fact: Fact) -> Fact:
        """Small integer constants decide shapes: what inference can not tell of them is evaluated at once."""
        if not fact.const or fact.ints is not None or (fact.dtype and fact.dtype not in INTEGERS) or index >= len(node.outputs) or not node.outputs[index]:
            return fact
        count = element_count(fact)
        if isinstance(count, int) and count > INT_LIMIT:
            return fact
        array = self.evaluate([node.outputs[index]]).get(node.outputs[index])
        if array is None or array.size > INT_LIMIT or array.dtype.kind in "OSU":
            return fact
        return from_array(array)


def _keeps_statistics(node: Node) -> bool:
    attributes = read_attributes(node.operator, node.proto.attribute)
    return may_train(node.operator, attributes, len(node.inputs), sum(map(bool, node.outputs)))


def encode(graph: Graph, terms: Terms, derivation: Derivation, contents: ContentIndex, outer: Outer, evaluate: Evaluator, descend: Descent) -> Encoding:
    """The rows and facts of `graph`; `outer` says what it may capture, `descend` treats the bodies it holds."""
    return _Encoder(graph, terms, derivation, contents, outer, evaluate, descend).encode()
