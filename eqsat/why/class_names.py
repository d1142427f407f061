"""Class names: classes of an e-graph get the names of the model, and values a readable form.

A class has the name of the first node that makes a value of it, or of the value itself.
"""

from __future__ import annotations

from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.facts.dims import Poly, render
from eqsat.facts.fact import Fact, dtype_name, show_dims
from eqsat.language.values import Tensor, Value
from eqsat.model.model import Node
from eqsat.operators import Operator
from eqsat.terms.terms import ABSENT, IDENTITY, Signature
from eqsat.traits import NEWEST

_ELEMENTS = 8  # of a list that are shown


def label(node: Node) -> str:
    """The name of a node in messages: its operator and name, or that of its first output."""
    name = node.proto.name or next(name for name in node.outputs if name)
    return f"{node.operator.name} '{name}'"


def show(value: Value | None) -> str:
    """A value of the rule language, for messages."""
    if isinstance(value, Tensor):
        return show_fact(value.fact)
    if value is None or isinstance(value, Poly):
        return render(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(show, value[:_ELEMENTS]))}{', ...' if len(value) > _ELEMENTS else ''}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def show_fact(fact: Fact) -> str:
    """A type, and the elements if they are known: `constant int64[2] of [2, 3]`."""
    if fact.other is not None:
        return "no tensor"
    text = (dtype_name(fact.dtype) if fact.dtype else "unknown type") + (" of unknown rank" if fact.shape is None else show_dims(fact.shape))
    text = f"constant {text}" if fact.const else text
    return text if fact.ints is None else f"{text} of {show(fact.ints)}"


class Landmarks:
    """The names of one graph's classes."""

    def __init__(self, encoding: Encoding, egraph: EGraph) -> None:
        self._encoding = encoding
        self._facts = egraph.facts
        self._names: dict[int, str] = {}
        self._producers: dict[int, tuple[Node, int]] = {}
        self._absent = {term.eclass for term in egraph.terms if term.head == ABSENT}
        heads = {entry.eclass: entry.head for entry in encoding.entries}
        self._signatures: dict[int, Signature] = {}  # by node, the signature of its term as written
        for name, reference in encoding.values.items():
            self._names.setdefault(egraph.class_of[reference], name)
        for reference, node in encoding.nodes.items():
            self._signatures[id(node.proto)] = encoding.terms.signatures[heads[reference]]
            self._producers.setdefault(egraph.class_of[reference], (node, 0))
            for place, name in enumerate(node.outputs):
                if name:
                    self._producers.setdefault(egraph.class_of[encoding.values[name]], (node, place))

    def fact(self, eclass: int) -> Fact | None:
        """The fact of a value; None if the class is no value, or absent."""
        return self._encoding.terms.value_fact(self._facts[eclass])

    def node(self, eclass: int) -> str:
        """The node that makes a value or is this class."""
        found = self._producers.get(eclass)
        return "the node" if found is None else label(found[0])

    def origin(self, eclass: int) -> str:
        """The origin of a value, to follow "is": `made by Relu 'r'`, `the constant 'w'`."""
        found = self._producers.get(eclass)
        if found is not None:
            node, place = found
            return f"made by {label(node)}" if not place else f"output {place} of {label(node)}"
        if eclass in self._absent:
            return "absent"
        fact = self.fact(eclass)
        kind = "the constant" if fact is not None and fact.const else "the input" if self._names.get(eclass) in self._encoding.graph.inputs else "the value"
        return f"{kind} '{self._names[eclass]}'" if eclass in self._names else "a constant"

    def text(self, eclass: int) -> str:
        """A value by its name and type: `'y': float[2, 3]`."""
        fact = self.fact(eclass)
        if fact is None:
            return "absent" if eclass in self._absent else "a list"
        return f"'{self._names[eclass]}': {show_fact(fact)}" if eclass in self._names else show_fact(fact)

    def hidden(self, node: Node) -> str:
        """Why no term of a node has the form that rules see."""
        signature = self._signatures.get(id(node.proto))
        if signature is None:
            return f"{label(node)} is no node of its own: it is the value that it copies"
        if signature.function is not None:
            return f"{label(node)} calls a function of the model; rules look inside of it, not at it"
        if IDENTITY in signature.attributes:
            return f"{label(node)} is in training mode, or may be: rules are about inference"
        return f"{label(node)} is {_version(node.operator)}, and opset {NEWEST}, in which rules are written, has nothing that is known to mean the same"


def _version(operator: Operator) -> str:
    return f"version {operator.version} of {operator.name}" if operator.version else f"{operator.name} of the domain '{operator.domain}'"
