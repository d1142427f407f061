"""Trials: the right sides that the compiled rule itself makes from instances of its left side.

All instances go into one e-graph. There the rule records both sides and joins nothing. So each
class holds only the terms of its instance, and the right side is the one that a model would get.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Never

import onnx
from onnx import helper

from eqsat.checker.drawing.writing import Instance
from eqsat.contributed import DOMAINS
from eqsat.dimension_names import own_name
from eqsat.egraph.admission import RuleSet
from eqsat.egraph.encode import Encoding, encode
from eqsat.egraph.limits import Limits
from eqsat.egraph.outer import Outer
from eqsat.egraph.saturate import saturate
from eqsat.egraph.tables import EGraph
from eqsat.facts.dims import Dim, evaluate
from eqsat.language.compile import Compiled
from eqsat.language.matching import Refusal
from eqsat.model.imports import import_domains
from eqsat.model.model import Constant, Graph, Node
from eqsat.model.read import as_constant
from eqsat.model.tensors import ContentIndex, from_array, read_tensor
from eqsat.operators import find_operator, to_attributes
from eqsat.terms.derivation import Derivation
from eqsat.terms.reading import buildable, reached, term_attributes, term_inputs, term_outputs
from eqsat.terms.terms import CONSTANT, INPUT, LITERAL, PROJECTION, Literal, Term, Terms


@dataclass(frozen=True)
class Trial:
    """The right side that a rule made of one instance, as a model over the same inputs and
    constants.
    """

    instance: int
    right: onnx.ModelProto


@dataclass
class Trials:
    """The right sides for a batch of instances, and the reasons why matches did not fire."""

    fired: list[Trial] = field(default_factory=list[Trial])
    refusals: Counter[Refusal] = field(default_factory=Counter[Refusal])


def try_rule(compiled: Compiled, instances: Sequence[Instance]) -> Trials:
    """The right sides of one direction of a rule for the instances on which it fires.

    An instance that matches in several ways has several right sides.
    """
    terms = Terms(frozenset(DOMAINS))
    arbitrary = frozenset(_renamed(number, name) for number, instance in enumerate(instances) for name in instance.free)
    outer = Outer(main=True, arbitrary=arbitrary)
    encoding = encode(_batch(instances), terms, Derivation(terms), ContentIndex(), outer, lambda names: {}, _no_bodies)
    egraph, record = saturate(encoding, Limits(), RuleSet((compiled,), trial=True))
    by_roots: dict[tuple[int, ...], list[int]] = {}
    for number, instance in enumerate(instances):
        roots = tuple(egraph.class_of[encoding.values[_renamed(number, info.name)]] for info in instance.model.graph.output)
        by_roots.setdefault(roots, []).append(number)
    result = Trials(refusals=record.refusals.get(compiled.rule.name, Counter()))
    sides = _Sides(encoding, egraph)
    for _, left, right in egraph.trials:
        # Instances whose values are known to have the same elements share a class. The right side
        # belongs to the instance whose inputs it reads.
        sources = sides.sources(right)
        number = next((number for number in by_roots.get(left, ()) if not sources or sources == {number}), None)
        if number is None:
            continue
        try:
            result.fired.append(Trial(number, sides.model(instances[number], number, right)))
        except _Unsized:
            result.refusals[Refusal(compiled.rule.place, "the right side holds a size that depends on elements")] += 1
    return result


def _no_bodies(*arguments: object) -> Never:
    raise AssertionError("rules have no operators with bodies")


def _renamed(number: int, name: str) -> str:
    return f"{number}.{name}" if name else ""


def _batch(instances: Sequence[Instance]) -> Graph:
    """All instances side by side in one graph, with separate names and sizes; arbitrary constants
    are inputs.

    It is in normal form: drawn nodes are sorted and legal, and a `Constant` becomes a constant here.
    """
    proto = onnx.GraphProto()
    constants: dict[str, Constant] = {}
    nodes: list[Node] = []
    results: list[str] = []
    for number, instance in enumerate(instances):
        model = instance.symbolic or instance.model
        for info in model.graph.input:
            copy = proto.input.add()
            copy.CopyFrom(info)
            copy.name = _renamed(number, info.name)
            for dim in copy.type.tensor_type.shape.dim:
                if dim.dim_param:
                    dim.dim_param = _renamed(number, dim.dim_param)
        for tensor in model.graph.initializer:
            name = _renamed(number, tensor.name)
            if tensor.name in instance.free:
                proto.input.append(helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims)))
            else:
                constants[name] = Constant(read_tensor(tensor, None))
        opsets = {entry.domain: entry.version for entry in model.opset_import}
        for node in model.graph.node:
            inputs, outputs = (tuple([_renamed(number, name) for name in names]) for names in (node.input, node.output))
            constant = as_constant(node, None)
            if constant is not None:
                constants[outputs[0]] = constant
            else:
                nodes.append(Node(find_operator(node.domain, node.op_type, opsets[node.domain]), node, inputs, outputs))
        results += [_renamed(number, info.name) for info in model.graph.output]
    return Graph(proto, tuple([info.name for info in proto.input]), tuple(results), constants, nodes)


def _sizes(instance: Instance, number: int) -> dict[str, int]:
    """The sizes of an instance by their names in the e-graph: its own names, and eqsat's for inputs
    without a rank.
    """
    sizes = {_renamed(number, name): size for name, size in instance.sizes.items()}
    for name, shape in instance.shapes.items():
        sizes.update({own_name(_renamed(number, name), axis): size for axis, size in enumerate(shape)})
    return sizes


class _Unsized(Exception):
    """A size on the right side depends on elements, so the instance has no number for it."""


class _Sides:
    """Writes classes of the e-graph as models."""

    def __init__(self, encoding: Encoding, egraph: EGraph) -> None:
        self.encoding = encoding
        self.egraph = egraph
        self.terms = _simplest(egraph)
        self.names = {reference: name for name, reference in encoding.values.items()}
        self.outputs: dict[int, int] = {}  # by class of a node, how many of its outputs are in use
        for term in egraph.terms:
            if term.head == PROJECTION:
                self.outputs[term.children[0]] = max(self.outputs.get(term.children[0], 1), term.data[0] + 1)

    def sources(self, roots: Sequence[int]) -> set[int]:
        """The numbers of the instances whose inputs the classes are written of."""
        terms = (self.terms[eclass] for eclass in reached(roots, lambda eclass: self.terms[eclass].children))
        return {int(self.names[term.data[0]].partition(".")[0]) for term in terms if term.head == INPUT}

    def model(self, instance: Instance, number: int, roots: Sequence[int]) -> onnx.ModelProto:
        result = onnx.ModelProto()
        result.CopyFrom(instance.model)
        graph = result.graph
        graph.name = "right"
        del graph.node[:], graph.output[:]
        kept = [tensor for tensor in instance.model.graph.initializer if tensor.name in instance.free]
        del graph.initializer[:]
        graph.initializer.extend(kept)
        writing = _Writing(self, graph, number, _sizes(instance, number))
        values = [writing.value(root) for root in roots]
        made = {name for node in graph.node for name in node.output}
        names: dict[str, str] = {}
        for index, value in enumerate(values):
            name = f"right_{index}"
            graph.output.append(onnx.ValueInfoProto(name=name))
            # The node that makes an output takes its name. An output that no node makes, or that
            # another output has renamed, needs an Identity.
            if value not in made or names.setdefault(value, name) != name:
                graph.node.append(helper.make_node("Identity", [value], [name]))
        for node in graph.node:
            node.input[:] = [names.get(name, name) for name in node.input]
            node.output[:] = [names.get(name, name) for name in node.output]
        import_domains(result)
        return result


def _simplest(egraph: EGraph) -> dict[int, Term]:
    """One term for each class: leaves first, then by the order in which they can be built."""
    found = {term.eclass: term for term in sorted(egraph.terms, key=lambda term: term.head == CONSTANT) if not term.children}
    found |= {term.eclass: term for term in egraph.terms if term.head == INPUT}
    return found | buildable(egraph.terms, found)


class _Writing:
    """Writes the classes that one instance needs."""

    def __init__(self, sides: _Sides, graph: onnx.GraphProto, number: int, sizes: Mapping[str, int]) -> None:
        self.sides = sides
        self.graph = graph
        self.number = number
        self.sizes = sizes
        self.known: dict[int, str] = {}
        # Literals whose elements are sizes with names in the e-graph.
        self.symbolic: set[str] = set()

    def value(self, eclass: int) -> str:
        """The name of a class's value. Writes the value and its inputs if they are new."""
        name = self.known.get(eclass)
        if name is None:
            name = self.known[eclass] = self._written(eclass)
        return name

    def _written(self, eclass: int) -> str:
        term = self.sides.terms[eclass]
        encoding = self.sides.encoding
        if term.head == INPUT:
            return self.sides.names[term.data[0]].partition(".")[2]
        if term.head == CONSTANT:
            tensor = encoding.contents[term.data[0]][1].tensor.inline(f"constant_{eclass}")
            self.graph.initializer.append(tensor.proto)
            return tensor.proto.name
        if term.head == LITERAL:
            return self._literal(encoding.terms.literals.get(term.data[0]), f"literal_{eclass}")
        if term.head == PROJECTION:
            return f"{self.value(term.children[0])}_{term.data[0]}"
        return "" if term.head < 0 else self._node(eclass, term)

    def _literal(self, literal: Literal, name: str) -> str:
        if not literal.concrete:
            assert not isinstance(literal.elements, bytes)
            self.symbolic.add(name)
            literal = Literal(literal.dtype, literal.shape, tuple(self._size(element) for element in literal.elements))
        self.graph.initializer.append(from_array(literal.array, name).proto)
        return name

    def _size(self, element: Dim) -> int:
        size = evaluate(element, self.sizes)
        if size is None:
            raise _Unsized
        return size

    def _node(self, eclass: int, term: Term) -> str:
        terms = self.sides.encoding.terms
        signature = terms.signatures[term.head]
        inputs = [self.value(child) for child in term_inputs(signature, term, self.sides.terms.__getitem__)]
        while inputs and not inputs[-1]:
            inputs.pop()
        values = term_attributes(terms, term.head, term.data)
        if signature.operator.name == "Reshape" and inputs[1] in self.symbolic:
            values["allowzero"] = 1  # a named size may be 0 here, which must not copy a size
        name = f"value_{eclass}"
        named = term_outputs(terms, term.head, term.data)
        count = self.sides.outputs.get(eclass, 1) if named is None else len(named)
        operator = signature.operator
        results = [name] if signature.single else [f"{name}_{index}" for index in range(count)]
        node = helper.make_node(operator.name, inputs, results, domain=operator.domain or None)
        node.attribute.extend(to_attributes(operator, values))
        self.graph.node.append(node)
        return name
