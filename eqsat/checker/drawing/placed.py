"""Placed nodes: a step of a left side with its settings, as a node whose results are inferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import TensorProto

from eqsat.checker.drawing.bindings import attribute
from eqsat.checker.drawing.left_side import Step
from eqsat.checker.samplers.drawn_node import Setting
from eqsat.facts.fact import Fact
from eqsat.facts.inference import infer
from eqsat.facts.node import Node
from eqsat.frozen import frozen
from eqsat.operators import AttributeValue, with_defaults


@frozen
class Placed:
    """A node as written; `settings` are its attributes and parameters."""

    step: Step
    settings: Mapping[str, Setting]
    node: Node

    @property
    def parameters(self) -> dict[int, str]:
        """The keys of the settings that are inputs, by position."""
        return {position: key for position, key in self.step.parameters.items() if key in self.settings}

    @property
    def attributes(self) -> dict[str, AttributeValue]:
        """The settings that are attributes."""
        return {key: attribute(value) for key, value in self.settings.items() if key not in self.parameters.values()}


def node_of(step: Step, facts: Sequence[Fact | None], settings: Mapping[str, Setting]) -> Node:
    """A step as a node, with these facts of its tensors and these attributes and parameters."""
    inputs = list(facts)
    for position, key in step.parameters.items():
        inputs[position] = parameter(settings[key]) if key in settings else None
    keys = set(step.parameters.values())
    return Node(step.operator, {key: attribute(value) for key, value in settings.items() if key not in keys}, tuple(inputs), len(step.outputs))


def inferred(node: Node) -> tuple[Fact, ...]:
    """The facts of a node's results. With its defaults written out it is the node that the e-graph asks
    about, so that inference remembers it.
    """
    return infer(node.operator, with_defaults(node.operator, node.attributes), node.inputs, node.outputs)


def parameter(value: Setting) -> Fact:
    """The fact of an integer parameter that is written as an initializer."""
    elements = value if isinstance(value, tuple) else (value,)
    return Fact(TensorProto.INT64, (len(value),) if isinstance(value, tuple) else (), True, tuple(int(element) for element in elements))
