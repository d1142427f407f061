"""Finished models: what a turn leaves, before and after the changes that no rule makes.

The order of the nodes comes first (eqsat/rewriting/node_order.py), then the raising of low
scores (eqsat/rewriting/raising.py).
"""

from __future__ import annotations

from dataclasses import replace

import onnx

from eqsat.frozen import frozen
from eqsat.rewriting.solved import Turn

RAISED = "a Softmax makes no subnormal numbers, which are slow: scores far below the largest of their row are raised"
"""The note on a model with raised scores."""


@frozen
class Finished:
    """A model before and after low scores were raised."""

    arranged: onnx.ModelProto
    model: onnx.ModelProto

    def changes(self, original: onnx.ModelProto) -> str:
        """Says what of an original has changed, if no rule made this model of it."""
        if self.model is not self.arranged:
            return "of which only low scores are raised"
        return "which stays as it is" if self.model is original else "of which only the order of the nodes has changed"

    def turns(self, rewritten: Turn) -> list[Turn]:
        """Returns the turns that lead to this model, the first of which was made by rules."""
        last = [] if self.model is self.arranged else [Turn(self.arranged, self.model)]
        return ([] if last and self.arranged is rewritten.before else [replace(rewritten, after=self.arranged)]) + last
