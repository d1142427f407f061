"""Encoding: a graph in normal form becomes terms, with a fact for every value.

References number the values, nodes and lists. A term says "node n is operator o of these attributes
and inputs". One pass along the graph derives the fact of each value, with the same derivation that
saturation uses. Bodies are already optimized: here a node with bodies is one opaque term over its
inputs and captures.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np
from onnx import TensorProto, defs

from eqsat.egraph.node_forms import NodeForms
from eqsat.egraph.outer import Outer
from eqsat.egraph.shape_literals import realized
from eqsat.egraph.training import is_training, keeps_statistics
from eqsat.facts.dims import promised, symbol
from eqsat.facts.fact import INT_LIMIT, INTEGERS, UNKNOWN, Fact, element_count, from_array, from_type, merge, with_symbols
from eqsat.frozen import frozen, mutable
from eqsat.model.model import Constant, Graph, Node
from eqsat.model.tensors import ContentIndex, Tensor
from eqsat.operators import AttributeValue, Operator, outputs_matter, read_attributes
from eqsat.terms.derivation import Derivation
from eqsat.terms.forms import Form, Source
from eqsat.terms.terms import ABSENT, CONS, CONSTANT, IDENTITY, INPUT, LITERAL, NIL, OUTPUTS, PROJECTION, Link, Signature, Term, Terms, fact_of

_LOOKED_AT = 1 << 22  # the most bytes of a constant whose elements are read for its fact: a mask of 1024 by 1024

# Evaluates constant values of the graph by name. The result lacks values that the runtime cannot
# evaluate.
Evaluator: TypeAlias = Callable[[Sequence[str]], Mapping[str, np.ndarray[Any, Any]]]

# Optimizes the bodies of a node, given the values that they may capture. Returns the new node and
# the facts of its outputs.
Descent: TypeAlias = Callable[[Node, Outer], tuple[Node, tuple[Fact, ...]]]


@mutable
class Encoding:
    """A graph as terms over references. Each reference is defined after the references it uses."""

    terms: Terms
    derivation: Derivation
    graph: Graph
    entries: list[Term] = field(default_factory=lambda: [Term(ABSENT, (), (), 0), Term(NIL, (), (), 1)])
    # Normal forms of nodes with another spelling, for values that `entries` define.
    forms: list[Term] = field(default_factory=list[Term])
    # Pairs of references to one value.
    same: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    facts: list[int] = field(default_factory=list[int])  # by reference, the handle of the fact
    values: dict[str, int] = field(default_factory=dict[str, int])  # by value name, the reference
    # By reference of their terms, the nodes in topological order.
    nodes: dict[int, Node] = field(default_factory=dict[int, Node])
    # By content, the first constant that holds it.
    contents: dict[int, tuple[str, Constant]] = field(default_factory=dict[int, tuple[str, Constant]])
    captured: set[int] = field(default_factory=set[int])  # contents that an outer graph stores

    def fact(self, name: str) -> Fact:
        """Returns the fact of a named value."""
        return self.terms.value_fact(self.facts[self.values[name]]) or UNKNOWN


def constant_fact(tensor: Tensor) -> Fact:
    """Returns the fact of a stored constant, without reading large or external elements."""
    if tensor.near and tensor.nbytes <= _LOOKED_AT and tensor.dtype != TensorProto.STRING:
        try:
            return from_array(tensor.array())
        except ValueError:
            # numpy cannot represent it: more than 64 dimensions, or an empty array of a huge size.
            pass
    return Fact(tensor.dtype, tensor.dims, const=True)


@frozen
class _NormalTerm:
    """The normal form of a node as a term without a class, and the facts of its outputs."""

    signature: Signature
    head: int
    handles: tuple[int, ...]
    children: tuple[int, ...]
    facts: tuple[Fact, ...]


class _Encoder:
    def __init__(self, graph: Graph, terms: Terms, derivation: Derivation, contents: ContentIndex, outer: Outer, evaluate: Evaluator, descend: Descent) -> None:
        self.out = Encoding(terms, derivation, graph)
        self.terms = terms
        self.derivation = derivation
        self.contents = contents
        self.outer = outer
        self.evaluate = evaluate
        self.descend = descend
        self.apart = {name for node in graph.nodes if node.operator.name == "BatchNormalization" for name in node.inputs[3:] if keeps_statistics(node)}
        # By term, the first reference to it.
        self.known: dict[tuple[int, tuple[int, ...], tuple[int, ...]], int] = {}
        self.first: dict[int, int] = {}  # by reference, an earlier reference to the same value
        self.absent = terms.attribute(None)
        self.identities = 0
        self.literals: dict[int, int] = {}  # by handle, the reference of a normal form's literal
        self.node_forms = NodeForms(terms)

    def encode(self) -> Encoding:
        out, graph = self.out, self.out.graph
        out.facts += [self.terms.absent, self.terms.absent]
        declared = {info.name: info for info in graph.proto.input}
        for name in graph.inputs:
            fact = from_type(declared[name].type, name, promised if self.outer.filled else symbol) if name in declared else UNKNOWN
            # The declared input shapes of a body are only claims: a Loop may feed other shapes in
            # each iteration.
            fact = fact if self.outer.main else Fact(fact.dtype)
            self._leaf(name, fact._replace(const=name in self.outer.arbitrary))
        for name, fact in self.outer.facts.items():
            stored = self.outer.constants.get(name)
            if stored is not None:
                self._constant(name, stored, captured=True)
            else:
                self._leaf(name, fact._replace(const=False))
            if self.outer.same.get(name, name) != name:
                self._equate(out.values[name], out.values[self.outer.same[name]])
        for name in graph.sparse:
            if name not in out.values:
                self._leaf(name, UNKNOWN)
        for name, constant in graph.constants.items():
            if name in out.values:
                continue  # this is only the default of an input
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
        # Runtimes update the statistics of a training node in place, so no other node may share
        # these constants.
        content = -len(self.out.entries) if name in self.apart else self.contents.key(constant.tensor)
        self._term(CONSTANT, (content,), (), self._value(name, constant_fact(constant.tensor)))
        # A constant of an outer graph costs nothing here, so it stands for equal constants of the
        # body.
        if captured or content not in self.out.contents:
            self.out.contents[content] = (name, constant)
        if captured:
            self.out.captured.add(content)

    def _equate(self, reference: int, other: int) -> None:
        self.out.same.append((reference, other))
        self.first[reference] = other

    def _term(self, head: int, data: tuple[int, ...], children: tuple[int, ...], reference: int) -> None:
        """Enters a term. A term that is known already makes both references one value.

        Bodies need such equalities before saturation derives them.
        """
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
        kept = not self.outer.kept.isdisjoint(node.outputs)
        if not kept and node.operator.standard and node.operator.name == "Identity" and len(node.outputs) == 1 and node.inputs[0]:
            source = self._reference(node.inputs[0])
            self._equate(self._bind(node.outputs[0], self.out.facts[source]), source)
            return
        results: tuple[Fact, ...] = ()
        if node.bodies and not kept:
            node, results = self._descend(node)
        elif kept or node.function is not None:
            results = (UNKNOWN,) * len(node.outputs)
        inputs = [self._reference(name) if name else 0 for name in node.inputs]
        attributes = read_attributes(node.operator, node.proto.attribute)
        known = [self.out.facts[reference] if reference else None for reference in inputs]
        facts = [self._fact(reference) if reference else None for reference in inputs]
        operator = node.operator
        if kept or (operator.pure and is_training(node, attributes, facts)):
            operator = dataclasses.replace(operator, pure=False)
        inputs += [self._reference(name) for name in node.captures] if node.bodies else []
        form = None
        if operator.pure and self._may_have_form(node):
            form = self.node_forms.of(operator, attributes, known, len(node.outputs))
        # If only attributes differ from the normal form, the node's own term is the normal form.
        # Decoding restores the original spelling.
        same = form is not None and _is_written_alike(form, operator, node)
        if form is not None and same:
            signature = Signature.of(form.operator)
            head, handles = self._columns(signature, form.attributes, len(node.outputs))
        else:
            signature, head, handles = self._signature(node, operator, attributes, form is not None, kept)
        children = self._children(signature, inputs)
        if signature.opaque:
            const = operator.pure and not node.dequantizes and all(self._fact(reference).const for reference in inputs if reference)
            results = tuple(fact._replace(const=const) for fact in results)
        else:
            results = self._derived(head, handles, children)
        normal = None
        if form is not None and not same:
            normal = self._normal(form, inputs, len(node.outputs))
            if len(normal.facts) == len(results):
                results = tuple(merge(a, b) for a, b in zip(results, normal.facts, strict=True))
        if signature.single:
            reference = self._value(node.outputs[0], self._sharpen(node, 0, results[0]))
            self._term(head, handles, tuple(children), reference)
            values = [(0, reference)]
        else:
            reference, values = self._outputs(node, results)
            self._term(head, handles, tuple(children), reference)
            for index, value in values:
                self._term(PROJECTION, (index,), (self.first.get(reference, reference),), value)
        if normal is not None:
            self._form(normal, signature, reference, values)
            self._open_size(normal, attributes, facts, inputs, reference)
        self.out.nodes[reference] = node

    def _outputs(self, node: Node, results: tuple[Fact, ...]) -> tuple[int, list[tuple[int, int]]]:
        """Returns the references of a node and, by position, of its named outputs."""
        results = tuple(self._sharpen(node, index, fact) for index, fact in enumerate(results))
        prefixes = (*node.outputs, *("" for _ in results[len(node.outputs) :]))
        named = tuple(with_symbols(fact, name) if name else fact for fact, name in zip(results, prefixes, strict=True))
        reference = self._bind("", self.terms.fact(named))
        outputs = [(index, name) for index, name in enumerate(node.outputs) if name]
        return reference, [(index, self._bind(name, self.terms.fact(named[index] if index < len(named) else UNKNOWN))) for index, name in outputs]

    def _normal(self, form: Form, inputs: list[int], outputs: int) -> _NormalTerm:
        """Returns the term of a normal form over the references of the original's inputs."""
        sources = [self._source(source, inputs) for source in form.inputs]
        signature = Signature.of(form.operator)
        head, handles = self._columns(signature, form.attributes, outputs)
        children = self._children(signature, sources)
        return _NormalTerm(signature, head, handles, tuple(children), self._derived(head, handles, children))

    def _may_have_form(self, node: Node) -> bool:
        """Tells whether rules may know a node's operator. A runtime's own operators they know only
        if the run may use them, and only by their first result.
        """
        if node.bodies or node.function is not None:
            return False
        return node.operator.standard or (node.operator.domain in self.terms.domains and bool(node.outputs) and bool(node.outputs[0]))

    def _form(self, normal: _NormalTerm, written: Signature, reference: int, values: list[tuple[int, int]]) -> None:
        """Enters the normal form of a node beside the node as written."""

        def enter(eclass: int) -> None:
            self.out.forms.append(Term(normal.head, normal.handles, normal.children, eclass))

        # Without a schema, a node has as many results as it names.
        if normal.signature.single == written.single and (written.single or written.operator.schema is not None):
            enter(reference)
        elif normal.signature.single:
            enter(values[0][1])
        else:
            node = self._bind("", self.terms.fact(normal.facts))
            enter(node)
            self.out.forms += [Term(PROJECTION, (index,), (node,), value) for index, value in values]

    def _open_size(
        self, normal: _NormalTerm, attributes: Mapping[str, AttributeValue], facts: Sequence[Fact | None], inputs: list[int], reference: int
    ) -> None:
        """Enters a Reshape to a computed [N, -1, 64] as one to the numbers [0, -1, 64].

        The normal form has the size in place of the -1, and no numbers mean the same as that where N is
        0. There the Reshape as written fails, and so it does by these numbers.
        """
        operator = normal.signature.operator
        if operator.name != "Reshape" or not operator.standard or len(facts) != 2:
            return
        x, wanted = facts
        found = None if x is None or wanted is None else realized(operator.name, attributes, x, wanted)
        if found is not None:
            numbers = self._normal(Form(operator, {**attributes, "allowzero": 0}, (0, found)), inputs, 1)
            self.out.forms.append(Term(numbers.head, numbers.handles, numbers.children, reference))

    def _source(self, source: Source, inputs: list[int]) -> int:
        if source is None:
            return 0
        if isinstance(source, int):
            return inputs[source]
        handle = self.terms.literal(source)
        known = self.literals.get(handle)
        if known is None:
            known = self.literals[handle] = self._bind("", self.terms.fact(fact_of(source)))
            self.out.forms.append(Term(LITERAL, (handle,), (), known))
        return known

    def _children(self, signature: Signature, inputs: list[int]) -> list[int]:
        children = inputs[: signature.inputs] + [0] * (signature.inputs - len(inputs))
        if signature.rest:
            children.append(self._list(inputs[signature.inputs :]))
        return children

    def _derived(self, head: int, handles: tuple[int, ...], children: list[int]) -> tuple[Fact, ...]:
        knowledge = self.terms.facts.get(self.derivation.term(head, *handles, *(self.out.facts[child] for child in children)))
        assert isinstance(knowledge, tuple)
        return (knowledge,) if isinstance(knowledge, Fact) else knowledge

    def _columns(self, signature: Signature, attributes: Mapping[str, AttributeValue], outputs: int) -> tuple[int, tuple[int, ...]]:
        """Returns the head and the attribute columns of a term in normal form."""
        hidden: dict[str, AttributeValue] = {OUTPUTS: (1,) * outputs}
        values = {**attributes, **hidden}
        return self.terms.signature(signature), tuple(self.terms.attribute(values.get(name)) for name in signature.attributes)

    def _descend(self, node: Node) -> tuple[Node, tuple[Fact, ...]]:
        names = [name for name in node.captures if name in self.out.values]
        stored = {name: self.out.graph.constants[name] for name in names if name in self.out.graph.constants and name not in self.out.graph.overridable}
        stored |= {name: self.outer.constants[name] for name in names if name in self.outer.constants}
        stored = {name: constant for name, constant in stored.items() if not constant.tensor.hollow}
        first: dict[int, str] = {}
        same = {name: first.setdefault(self._reference(name), name) for name in names}
        return self.descend(node, Outer({name: self.out.fact(name) for name in names}, stored, same))

    def _fact(self, reference: int) -> Fact:
        return self.terms.value_fact(self.out.facts[reference]) or UNKNOWN

    def _signature(
        self, node: Node, operator: Operator, attributes: Mapping[str, AttributeValue], raw: bool, kept: bool
    ) -> tuple[Signature, int, tuple[int, ...]]:
        """Returns the signature of a node as written, its head and its attribute columns."""
        schema = operator.schema
        opaque = kept or bool(node.bodies) or node.function is not None
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
        count = 0 if schema is None or opaque or raw else len(schema.inputs) - variadic
        single = schema is not None and not opaque and schema.max_output == 1
        form = Signature(operator, tuple(name for name, _ in columns), count, variadic or opaque or raw, single, opaque, node.function, raw)
        return form, self.terms.signature(form), tuple(handle for _, handle in columns)

    def _sharpen(self, node: Node, index: int, fact: Fact) -> Fact:
        """Evaluates a small integer constant that inference knows only in part.

        Such values decide shapes.
        """
        if not fact.const or fact.ints is not None or (fact.dtype and fact.dtype not in INTEGERS) or index >= len(node.outputs) or not node.outputs[index]:
            return fact
        count = element_count(fact)
        if isinstance(count, int) and count > INT_LIMIT:
            return fact
        array = self.evaluate([node.outputs[index]]).get(node.outputs[index])
        if array is None or array.size > INT_LIMIT or array.dtype.kind in "OSU":
            return fact
        return from_array(array)


def _is_written_alike(form: Form, operator: Operator, node: Node) -> bool:
    """Tells whether one term can stand for both a node and its normal form."""
    assert form.operator.schema is not None
    if operator.schema is None:
        return False
    written = [position if name else None for position, name in enumerate(node.inputs)]
    while written and written[-1] is None:
        written.pop()
    return tuple(written) == form.inputs and (operator.schema.max_output == 1) == (form.operator.schema.max_output == 1)


def encode(graph: Graph, terms: Terms, derivation: Derivation, contents: ContentIndex, outer: Outer, evaluate: Evaluator, descend: Descent) -> Encoding:
    """Encodes `graph`. `outer` has the values it may capture; `descend` handles its bodies."""
    return _Encoder(graph, terms, derivation, contents, outer, evaluate, descend).encode()
