"""Training: which nodes draw random numbers or update statistics, and so stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eqsat.facts.fact import Fact
from eqsat.model.model import Node
from eqsat.operators import AttributeValue, may_train, read_attributes


def is_training(node: Node, attributes: Mapping[str, AttributeValue], facts: Sequence[Fact | None]) -> bool:
    """Tells whether a node with inputs of these facts is, or may be, in training mode.

    A BatchNormalization of constants alone does not count, for its statistics are constants too.
    """
    if node.operator.name == "BatchNormalization" and node.operator.version >= 14 and all(fact is None or fact.const for fact in facts):
        return False
    mode = facts[2] if len(facts) > 2 else None
    if node.operator.name == "Dropout" and node.operator.version >= 12 and (mode is None or mode.ints == (0,)):
        return False
    return may_train(node.operator, attributes, len(node.inputs), sum(map(bool, node.outputs)))


def keeps_statistics(node: Node) -> bool:
    """Tells whether a node updates statistics in place."""
    attributes = read_attributes(node.operator, node.proto.attribute)
    return may_train(node.operator, attributes, len(node.inputs), sum(map(bool, node.outputs)))
