"""Stored constants: evaluates each constant that the new graph stores once.

The input is the constant classes that extraction chose to store; the output is their elements. The
original's own values are evaluated by its own nodes in their declared types. Constants that rules
made are computed as in `made_constants`. Classes that cannot be evaluated are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from eqsat.choose.choose import Chooser
from eqsat.choose.folding import Folding
from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.terms.terms import CONSTANT, LITERAL

# Bytes of elements sent for evaluation at once; one constant alone may exceed this
_BATCH = 1 << 26

Array = np.ndarray[Any, Any]


class Constants:
    """Evaluates constant classes of one e-graph."""

    def __init__(self, encoding: Encoding, egraph: EGraph, chooser: Chooser, folding: Folding) -> None:
        self._encoding = encoding
        self._chooser = chooser
        self._folding = folding
        self._names = {reference: name for name, reference in reversed(encoding.values.items())}
        self._stored = {term.eclass: term for term in egraph.terms if term.head == LITERAL}
        self._stored |= {term.eclass: term for term in egraph.terms if term.head == CONSTANT}
        self._made: dict[int, Array | None] = {}

    def evaluate(self, classes: Sequence[int]) -> dict[int, Array]:
        """Returns the elements of classes. Classes that cannot be evaluated are missing."""
        made = self._chooser.made_constants
        new = [eclass for eclass in classes if eclass in made and eclass not in self._made]
        leaves = dict.fromkeys(leaf for eclass in new for leaf in made.leaves(eclass))
        own = [eclass for eclass in dict.fromkeys([*classes, *leaves]) if eclass in self._chooser.witness]
        evaluated = self._folding.evaluate([self._names[self._chooser.witness[eclass]] for eclass in own])
        found = {eclass: evaluated[name] for eclass in own if (name := self._names[self._chooser.witness[eclass]]) in evaluated}
        batch: dict[int, onnx.ModelProto] = {}
        size = 0
        for eclass in new:
            elements = {leaf: array for leaf in made.leaves(eclass) if (array := self._element(leaf, found)) is not None}
            self._made[eclass] = None
            if len(elements) == len(made.leaves(eclass)):
                batch[eclass] = made.model(eclass, elements)
                size += batch[eclass].ByteSize()
            if size > _BATCH:
                self._made |= self._folding.compute(batch)
                batch, size = {}, 0
        self._made |= self._folding.compute(batch)
        return {eclass: array for eclass in classes if (array := self._made.get(eclass, found.get(eclass))) is not None}

    def _element(self, eclass: int, found: dict[int, Array]) -> Array | None:
        if eclass in found:
            return found[eclass]
        term = self._stored.get(eclass)
        if term is None:
            return None
        if term.head == LITERAL:
            literal = self._encoding.terms.literals.get(term.data[0])
            return literal.array if literal.concrete else None
        tensor = self._encoding.contents[term.data[0]][1].tensor
        return None if tensor.hollow else tensor.array()
