"""Stored constants: evaluates each constant that the new graph stores once.

The input is the constant classes that extraction chose to store; the output is their elements. The
original's own values are evaluated by its own nodes in their declared types. Constants that rules
made are computed as in `made_constants`. Classes that cannot be evaluated are missing, and so are
those of rules that turn out to be empty, such as a NonZero: a runtime may refuse to load what reads
them, where it loaded the original and failed to run it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from eqsat.choose.choose import Chooser
from eqsat.choose.folding import Folding
from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.model.tensors import Tensor, from_array
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
        recipes: dict[int, Hashable] = {}
        size = 0
        for eclass in new:
            leaves = made.leaves(eclass)
            recipes[eclass] = made.recipe(eclass, {leaf: self._source(leaf) for leaf in leaves})
            self._made[eclass] = self._folding.made.get(recipes[eclass])
            if self._made[eclass] is not None:
                continue
            elements = {leaf: tensor for leaf in leaves if (tensor := self._element(leaf, found)) is not None}
            if len(elements) == len(leaves):
                batch[eclass] = made.model(eclass, elements)
                size += sum(tensor.nbytes for tensor in elements.values())
            if size > _BATCH:
                self._compute(batch, recipes)
                batch, size = {}, 0
        self._compute(batch, recipes)
        return {eclass: array for eclass in classes if (array := self._made.get(eclass, found.get(eclass))) is not None}

    def _compute(self, batch: Mapping[int, onnx.ModelProto], recipes: Mapping[int, Hashable]) -> None:
        computed = {eclass: array for eclass, array in self._folding.compute(batch).items() if array.size or 0 in (self._chooser.fact(eclass).shape or ())}
        self._made |= computed
        self._folding.made |= {recipes[eclass]: array for eclass, array in computed.items()}

    def _source(self, eclass: int) -> Hashable:
        """Returns a name of the elements of a class without a recipe."""
        if eclass in self._chooser.witness:
            return self._names[self._chooser.witness[eclass]]
        term = self._stored.get(eclass)
        return None if term is None else (term.head, term.data)

    def _element(self, eclass: int, found: dict[int, Array]) -> Tensor | None:
        if eclass in found:
            return from_array(found[eclass], "")
        term = self._stored.get(eclass)
        if term is None:
            return None
        if term.head == LITERAL:
            literal = self._encoding.terms.literals.get(term.data[0])
            return from_array(literal.array, "") if literal.concrete else None
        tensor = self._encoding.contents[term.data[0]][1].tensor
        return None if tensor.hollow else tensor
