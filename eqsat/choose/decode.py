"""Decoding: the chosen terms become a graph that stays as close to the original as possible.

A term of the original is written as the original wrote it: the same node, name, attributes and
annotations, with new inputs where they changed. Values keep their names where possible; outputs
always do. Nodes keep their original order as far as the new dependencies allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper

from eqsat.choose.originals import Originals
from eqsat.choose.storing import Place, begin, finish, store_array, store_constant
from eqsat.choose.term_order import children_first
from eqsat.choose.writable import written
from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.facts.fact import PACKED_BITS, UNKNOWN, Fact, dtype_name
from eqsat.frozen import mutable
from eqsat.model.model import BODY_TYPES, Graph, Node
from eqsat.model.names import FreshNames, rename_captures
from eqsat.operators import Operator, find_operator, to_attributes
from eqsat.terms.forms import Definition, Source, Written
from eqsat.terms.reading import term_attributes, term_inputs, term_outputs
from eqsat.terms.terms import ABSENT, CONS, CONSTANT, FOLDED, INPUT, LITERAL, NIL, PROJECTION, Literal, Signature, Term
from eqsat.traits import NAMED_BESIDE

_ALLOWS_ZERO = 14
"""The first opset whose Reshape can take a 0 as a size."""


class Undecodable(Exception):
    """The graph's opset cannot express the choice."""


@mutable
class Decoded:
    """A graph as protobuf, and for each value of the original the name of the value that replaces
    it.
    """

    graph: onnx.GraphProto
    became: dict[str, str] = field(default_factory=dict[str, str])
    # By name of a stored constant: the class of an evaluated one, and the original's name of any
    # other.
    folded: dict[str, int] = field(default_factory=dict[str, int])
    constants: dict[str, str] = field(default_factory=dict[str, str])


class Decoder:
    """Writes the graph of the chosen terms in `opset`. `folded` has the elements of the classes to
    store. Several choices from one e-graph may share its `originals`.
    """

    def __init__(
        self,
        encoding: Encoding,
        egraph: EGraph,
        terms: Mapping[int, Term],
        folded: Mapping[int, np.ndarray[Any, Any]],
        fresh: FreshNames,
        place: Place,
        opset: int,
        originals: Originals | None = None,
    ) -> None:
        self.encoding = encoding
        self.egraph = egraph
        self.terms = terms
        self.folded = folded
        self.fresh = fresh
        self.place = place
        self.source: Graph = encoding.graph
        self.out = Decoded(begin(encoding.graph))
        self.originals = Originals(encoding, egraph) if originals is None else originals
        self.origins = self.originals.origins(terms)
        self.projections: dict[int, list[tuple[int, int]]] = {}
        for value, term in self.terms.items():
            if term.head == PROJECTION:
                self.projections.setdefault(term.children[0], []).append((value, term.data[0]))
        self.name: dict[int, str] = {}
        self.outputs = set(self.source.outputs)
        self.opset = opset
        # The opset's spelling of each term that the original lacks. A spelling may turn inputs into
        # attributes.
        self.written = {eclass: self._written(term) for eclass, term in self.terms.items() if term.head >= 0 and eclass not in self.origins}
        self.extra: dict[Literal, str] = {}

    def decode(self) -> Decoded:
        """Returns the graph. A decoder writes it once."""
        graph = self.out.graph
        for eclass, term in self.terms.items():
            if term.head not in (CONS, NIL, ABSENT) and (term.head < 0 or self.encoding.terms.signatures[term.head].single):
                self.name[eclass] = self._name(eclass, term)
        nodes: list[onnx.NodeProto] = []
        needed = self._needed()
        for eclass in children_first(self.terms, self._rank):
            if eclass not in needed:
                continue
            term = self.terms[eclass]
            if term.head in (CONSTANT, LITERAL, FOLDED):
                self._constant(graph, nodes, eclass, term, self.name[eclass])
            elif term.head == INPUT:
                self._leaf(graph, nodes, self.name[eclass])
            elif term.head >= 0:
                nodes += self._nodes(graph, nodes, eclass, term)
        emitted: set[str] = set()
        for name in self.source.outputs:
            eclass = self.egraph.class_of[self.encoding.values[name]]
            given = self.name[eclass]
            if given != name and name not in emitted:
                if self._is_stored(self.terms[eclass]):
                    self._constant(graph, nodes, eclass, self.terms[eclass], name)
                else:
                    nodes += self._copy(graph, nodes, eclass, given, name)
            emitted.add(name)
        graph.node.extend(nodes)
        finish(graph, self.source, self.originals.inputs)
        self.out.became = self._became()
        return self.out

    def _written(self, term: Term) -> Written | Definition:
        found = written(self.encoding, self.egraph, term, self.opset)
        if found is None:
            raise Undecodable(f"opset {self.opset} has no such {self.encoding.terms.signatures[term.head].operator.name}")
        return found

    def _sources(self, eclass: int) -> list[int | Literal]:
        """Returns the inputs of a class's node, or of its definition, as they are spelled: classes,
        and constants that the spelling adds. Class 0 is absent.
        """
        term = self.terms[eclass]
        signature = self.encoding.terms.signatures[term.head]
        classes = term_inputs(signature, term, self.terms.__getitem__)
        spelled = self.written.get(eclass)
        if not isinstance(spelled, Written) or signature.lawless:
            return list(classes)
        absent = self.egraph.class_of[0]
        return [absent if source is None else classes[source] if isinstance(source, int) else source for source in spelled.inputs]

    def _needed(self) -> set[int]:
        """Returns the classes that the outputs of the spelled graph need."""
        needed: set[int] = set()
        waiting = [self.egraph.class_of[self.encoding.values[name]] for name in self.source.outputs]
        while waiting:
            eclass = waiting.pop()
            if eclass in needed or eclass not in self.terms:
                continue
            needed.add(eclass)
            term = self.terms[eclass]
            waiting += [source for source in self._sources(eclass) if isinstance(source, int)] if term.head >= 0 else term.children
        return needed

    def _rank(self, eclass: int) -> int:
        """Returns the place of a class among the nodes of the original; new nodes come last."""
        if self.terms[eclass].head < 0:
            return -1
        return self.originals.rank[self.origins[eclass]] if eclass in self.origins else len(self.originals.rank)

    def _became(self) -> dict[str, str]:
        return {name: now for eclass, now in self.name.items() for name in self.originals.names_of.get(eclass, ())}

    def _name(self, eclass: int, term: Term) -> str:
        names = self.originals.names_of.get(eclass, [])
        if term.head == INPUT:
            # An outer value or an input cannot be renamed, so an output of the same value needs a
            # node of its own.
            return next(name for name in names if self.encoding.values[name] == term.data[0])
        if term.head == CONSTANT:
            stored, _ = self.encoding.contents[term.data[0]]
            if term.data[0] in self.encoding.captured:
                return stored
            own = [name for name in names if name in self.source.constants and name not in self.originals.inputs]
            outputs = [name for name in names if name in self.outputs]
            return next(iter([*(name for name in outputs if name in own), *outputs, *own, *names, stored]))
        names = [name for name in names if name in self.originals.own and name not in self.originals.inputs]
        outputs = [name for name in names if name in self.outputs]
        if outputs:
            return outputs[0]
        origin = self.origins.get(eclass)
        if origin is not None:
            return self.encoding.nodes[origin].outputs[0]
        return names[0] if names else self.fresh.make_for(eclass, "folded" if term.head in (FOLDED, LITERAL) else "value")

    def _leaf(self, graph: onnx.GraphProto, nodes: list[onnx.NodeProto], name: str) -> None:
        if name in self.source.sparse and name not in self.source.overridable:
            graph.sparse_initializer.append(self.source.sparse[name])
        elif name in self.source.constants and name not in self.source.inputs:
            store_constant(graph, nodes, self.place, self.source, name, self.source.constants[name])

    def _is_stored(self, term: Term) -> bool:
        return term.head in (LITERAL, FOLDED) or (term.head == CONSTANT and term.data[0] not in self.encoding.captured)

    def _constant(self, graph: onnx.GraphProto, nodes: list[onnx.NodeProto], eclass: int, term: Term, name: str) -> None:
        if term.head == CONSTANT:
            stored, constant = self.encoding.contents[term.data[0]]
            self.out.constants[name] = stored
            if term.data[0] not in self.encoding.captured:
                store_constant(graph, nodes, self.place, self.source, name, self.source.constants.get(name, constant))
            return
        if term.head == FOLDED:
            self.out.folded[name] = eclass
            if self.place.draft:
                return
        array = self.encoding.terms.literals.get(term.data[0]).array if term.head == LITERAL else self.folded[eclass]
        store_array(graph, nodes, self.place, name, array)

    def _copy(self, graph: onnx.GraphProto, nodes: list[onnx.NodeProto], eclass: int, given: str, name: str) -> list[onnx.NodeProto]:
        """Returns what gives a value a second name: an Identity, or its node once more where no
        Identity takes its type.
        """
        node = self.originals.producer.get(name)
        if node is not None and node.operator.name == "Identity" and node.operator.standard:
            copy = onnx.NodeProto()
            copy.CopyFrom(node.proto)
            copy.input[0] = given
            return [copy]
        if self._can_be_copied(eclass):
            return [helper.make_node("Identity", [given], [name])]
        term = self.terms[eclass]
        if term.head < 0 or not self.encoding.terms.signatures[term.head].single:
            raise Undecodable(f"'{name}' and '{given}' are one value, of a type that no Identity takes")
        self.name[eclass] = name
        again = self._nodes(graph, nodes, eclass, term)
        self.name[eclass] = given
        return again

    def _can_be_copied(self, eclass: int) -> bool:
        """Tells whether Identity takes the values of a class in the graph's opset. ONNX Runtime has
        no kernel for elements of less than a byte.
        """
        knowledge = self._known(eclass)
        operator = find_operator("", "Identity", self.opset)
        if knowledge == UNKNOWN or knowledge.other is not None or operator.schema is None or knowledge.dtype in PACKED_BITS:
            return False
        kinds = {kind for constraint in operator.schema.type_constraints for kind in constraint.allowed_type_strs}
        return not knowledge.dtype or f"tensor({dtype_name(knowledge.dtype)})" in kinds

    def _extra(self, graph: onnx.GraphProto, nodes: list[onnx.NodeProto], literal: Literal) -> str:
        """Stores a constant that only a node's spelling needs. Returns its name."""
        name = self.extra.get(literal)
        if name is None:
            name = self.extra[literal] = self.fresh.make("folded")
            store_array(graph, nodes, self.place, name, literal.array)
        return name

    def _nodes(self, graph: onnx.GraphProto, nodes: list[onnx.NodeProto], eclass: int, term: Term) -> list[onnx.NodeProto]:
        """Returns the node of a class, or the nodes of its definition. Constants that only they
        need go into the graph or into `nodes`.
        """
        spelled = self.written.get(eclass)
        if not isinstance(spelled, Definition):
            return [self._node(graph, nodes, eclass, term)]
        signature = self.encoding.terms.signatures[term.head]
        outputs = [self.name[eclass]] if signature.single else self._outputs(eclass, signature, term, None)
        if len(outputs) > 1:
            raise Undecodable(f"opset {self.opset} has no {signature.operator.name}, and its definition has one output")
        names = [self.name[child] for child in term_inputs(signature, term, self.terms.__getitem__)]
        made: list[onnx.NodeProto] = []
        for number, node in enumerate(spelled.nodes, 1):
            inputs = [self._spelled(graph, nodes, names, source) for source in node.inputs]
            names.append(outputs[0] if number == len(spelled.nodes) else self.fresh.make("value"))
            proto = helper.make_node(node.operator.name, inputs, names[-1:])
            proto.attribute.extend(to_attributes(node.operator, node.attributes))
            made.append(proto)
        return made

    def _spelled(self, graph: onnx.GraphProto, nodes: list[onnx.NodeProto], names: Sequence[str], source: Source) -> str:
        if source is None:
            return ""
        return names[source] if isinstance(source, int) else self._extra(graph, nodes, source)

    def _node(self, graph: onnx.GraphProto, nodes: list[onnx.NodeProto], eclass: int, term: Term) -> onnx.NodeProto:
        signature = self.encoding.terms.signatures[term.head]
        inputs = [self.name.get(source, "") if isinstance(source, int) else self._extra(graph, nodes, source) for source in self._sources(eclass)]
        origin = self.origins.get(eclass)
        proto = onnx.NodeProto()
        if origin is not None:
            node = self.encoding.nodes[origin]
            proto.CopyFrom(node.proto)
            if signature.opaque:
                self._rename(node, proto, inputs)
                inputs = inputs[: len(node.inputs)]
        else:
            node = None
            self._make(proto, eclass, signature, term)
        # An original call of a function keeps absent inputs at its end: they may stand for defaults.
        while inputs and not inputs[-1] and not (signature.function is not None and node is not None and len(inputs) <= len(node.inputs)):
            inputs.pop()
        if proto.op_type == "Reshape" and not proto.domain:
            self._spell_zeros(proto, eclass, node is None or list(node.inputs) != inputs)
        del proto.input[:]
        proto.input.extend(inputs)
        outputs = [self.name[eclass]] if signature.single else self._outputs(eclass, signature, term, node, inputs)
        del proto.output[:]
        proto.output.extend(outputs)
        return proto

    def _spell_zeros(self, proto: onnx.NodeProto, eclass: int, differs: bool) -> None:
        """Drops `allowzero` of a Reshape where its shape has no zero: ONNX Runtime merges no Reshape that has it.

        Sets it where the Reshape `differs` from the original's, and a size of the computed shape that may be 0
        would copy another size of the data: the shape holds the sizes of the result.
        """
        sources = self._sources(eclass)
        if len(sources) < 2:  # the shape is an attribute, before opset 5
            return
        data, shape = sources
        sizes = self._known(shape).ints if isinstance(shape, int) else None
        if sizes is None:
            return
        place = next((place for place, attribute in enumerate(proto.attribute) if attribute.name == "allowzero"), None)
        named = [(axis, size) for axis, size in enumerate(sizes) if not isinstance(size, int)]
        if place is not None:
            if not named and 0 not in sizes:
                del proto.attribute[place]
        elif differs and self.opset >= _ALLOWS_ZERO and -1 not in sizes and 0 not in sizes:
            there = (self._known(data).shape if isinstance(data, int) else None) or ()
            if any(there[axis : axis + 1] != (size,) for axis, size in named):
                proto.attribute.append(helper.make_attribute("allowzero", 1))

    def _known(self, eclass: int) -> Fact:
        return self.encoding.terms.value_fact(self.egraph.facts[eclass]) or UNKNOWN

    def _rename(self, node: Node, proto: onnx.NodeProto, inputs: list[str]) -> None:
        mapping = dict(zip(node.captures, inputs[len(node.inputs) :], strict=True))
        for attribute in proto.attribute:
            for graph in (attribute.g, *attribute.graphs) if attribute.type in BODY_TYPES else ():
                rename_captures(graph, mapping)

    def _outputs(self, eclass: int, signature: Signature, term: Term, node: Node | None, inputs: Sequence[str] = ()) -> list[str]:
        used: dict[int, str] = {}
        for value, index in self.projections.get(eclass, ()):
            used[index] = self.name[value]
        # If a node's meaning depends on its named outputs, all of them stay, even unused ones.
        kept = term_outputs(self.encoding.terms, term.head, term.data) or ()
        written = node.outputs if node is not None else ()
        beside = NAMED_BESIDE.get(signature.operator.name, {}) if signature.operator.standard else {}
        asked = {index for index, place in beside.items() if any(inputs[place : place + 1])}
        count = max([index + 1 for index in {*used, *asked}] + [len(written), len(kept)])
        names: list[str] = []
        for index in range(count):
            if index in used:
                names.append(used[index])
            elif kept[index : index + 1] == (1,) or index in asked or _required(signature.operator, index):
                # The value is unused, or another node provides it under its own name.
                names.append(self.fresh.make(f"{(written[index] if index < len(written) else '') or 'value'}_unused"))
            else:
                names.append("")
        while names and not names[-1] and not kept:
            names.pop()
        return names

    def _make(self, proto: onnx.NodeProto, eclass: int, signature: Signature, term: Term) -> None:
        """Makes a node that the original lacks. If the original has a node of the same operator for
        this value, the new node takes its name.
        """
        spelled = self.written[eclass]
        assert isinstance(spelled, Written)
        operator = spelled.operator
        proto.op_type, proto.domain = operator.name, operator.domain
        lender = next(
            (node for node in self.originals.nodes_of.get(eclass, ()) if (node.operator.domain, node.operator.name) == (operator.domain, operator.name)), None
        )
        if lender is not None:
            proto.name, proto.doc_string = lender.proto.name, lender.proto.doc_string
            proto.metadata_props.extend(lender.proto.metadata_props)
        attributes = term_attributes(self.encoding.terms, term.head, term.data) if signature.lawless else spelled.attributes
        proto.attribute.extend(to_attributes(operator, attributes))


def _required(operator: Operator, index: int) -> bool:
    schema = operator.schema
    if schema is None or not schema.outputs:
        return True
    formal = schema.outputs[min(index, len(schema.outputs) - 1)]
    return formal.option != defs.OpSchema.FormalParameterOption.Optional
