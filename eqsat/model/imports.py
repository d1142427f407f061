"""Imports: the opset of a model, and the domains that it imports for the operators of a runtime's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx
from onnx import helper

from eqsat.contributed import DOMAINS, VERSION
from eqsat.model.model import attribute_graphs
from eqsat.operators import normal_domain


def import_domains(model: onnx.ModelProto) -> None:
    """Let a model, and each of its functions, import the domains of contributed operators in it."""
    for owner, nodes in ((model, model.graph.node), *((function, function.node) for function in model.functions)):
        known = {entry.domain for entry in owner.opset_import}
        used = set(_domains(nodes))
        owner.opset_import.extend(helper.make_opsetid(domain, VERSION) for domain in DOMAINS if domain in used - known)


def _domains(nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
    """Yield the domain of each node, and of those in its bodies."""
    for node in nodes:
        yield node.domain
        for _, graph in attribute_graphs(node):
            yield from _domains(graph.node)


def standard_opset(imports: Iterable[onnx.OperatorSetIdProto]) -> int:
    """Return the opset of the default domain, 1 if it is not imported. The last import counts."""
    return next((item.version for item in reversed(list(imports)) if not normal_domain(item.domain)), 1)
