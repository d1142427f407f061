"""Laws: what lies between two models of a chain where no rule does.

The e-graph and the code that writes models do these by themselves, whatever the rules are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import onnx

from eqsat.choose.choose import own_terms
from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.explain.replay import STORED
from eqsat.model.likeness import Likeness
from eqsat.terms.reading import buildable
from eqsat.terms.terms import INPUT, Term

EQUAL_NODES = "equal nodes become one"
FOLDED = "constants folded"
TYPES = "values known from types"
"""Such as a Shape of known sizes."""
FLOW = "control flow simplified"
OPSET = "another opset"
INLINED = "functions inlined"
ORDER = "nodes in another order"
RANKS = "numbers with other ranks"
RAISING = "low scores raised"
SIZES = "sizes declared"
PLACES = "constants stored in the body that reads them"
WEIGHTS = "subnormal weights become zeros"
COPIES = "results copied"
SPELLING = "nodes spelled otherwise"


def of_preparation(before: onnx.ModelProto, after: onnx.ModelProto) -> tuple[str, ...]:
    """Returns the laws between a model and the same as a run prepares or arranges it."""
    found = [OPSET] if list(before.opset_import) != list(after.opset_import) else []
    found += [INLINED] if len(after.functions) < len(before.functions) else []
    if found:
        return tuple(found)
    old, new = ([node for node in model.graph.node if node.op_type != "Constant"] for model in (before, after))
    if old == new:
        return (WEIGHTS if before.graph.value_info == after.graph.value_info else SIZES,)
    if len(after.graph.initializer) < len(before.graph.initializer):
        return (PLACES,)
    made = [[list(node.output) for node in nodes] for nodes in (old, new)]
    return (RAISING if len(new) > len(old) else RANKS if made[0] == made[1] else ORDER,)


def of_nodes(old: Likeness, new: Likeness, gone: Collection[str], came: Collection[str]) -> tuple[str, ...]:
    """Returns the laws between two models, as far as their nodes tell. `gone` and `came` are the
    nodes that differ (eqsat/explain/node_changes.py).
    """
    there = set(new.values.values())
    found = [EQUAL_NODES] if any(old.values.get(node.split(" ", 1)[1]) in there for node in gone) else []
    found += [COPIES] if any(node.startswith("Identity ") for node in came) and not gone else []
    return tuple(found) or (SPELLING,)


class StoredValues:
    """The laws by which values that an original computes become stored constants."""

    def __init__(self, encoding: Encoding, egraph: EGraph) -> None:
        own = own_terms(encoding, egraph)
        self._own = {term.eclass: term for term in reversed(own)}
        self._constant = buildable((term for term in own if term.head != INPUT), ())

    def law(self, term: Term) -> str:
        """Returns the law by which the value of a term is known."""
        return FOLDED if all(child in self._constant for child in term.children) else TYPES

    def laws(self, choice: Mapping[int, Term]) -> set[str]:
        """Returns the laws of the stored values of a choice, which has a term for each class."""
        stored = (self._own.get(eclass) for eclass, term in choice.items() if term.head in STORED)
        return {self.law(own) for own in stored if own is not None and own.head not in STORED}
