"""Finished models: what a turn leaves, before and after the changes that no rule makes.

The order of the nodes comes first (eqsat/rewriting/node_order.py), then the rounding of subnormal
numbers (eqsat/rewriting/rounding.py).
"""

from __future__ import annotations

from dataclasses import replace

import onnx

from eqsat.frozen import frozen
from eqsat.rewriting.solved import Turn

ROUNDED = "products read no subnormal numbers, which are slow: those that a Softmax makes are rounded to 0"
"""The note on a model whose subnormal numbers are rounded away."""


@frozen
class Finished:
    """A model before and after its subnormal numbers were rounded away."""

    arranged: onnx.ModelProto
    model: onnx.ModelProto

    def changes(self, original: onnx.ModelProto) -> str:
        """Says what of an original has changed, if no rule made this model of it."""
        if self.model is not self.arranged:
            return "of which only subnormal numbers are rounded"
        return "which stays as it is" if self.model is original else "of which only the order of the nodes has changed"

    def turns(self, rewritten: Turn) -> list[Turn]:
        """Returns the turns that lead to this model, the first of which was made by rules."""
        last = [] if self.model is self.arranged else [Turn(self.arranged, self.model)]
        return ([] if last and self.arranged is rewritten.before else [replace(rewritten, after=self.arranged)]) + last
