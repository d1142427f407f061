"""Finished models: what a turn leaves, before and after the changes that no rule makes.

The order of the nodes comes first (eqsat/rewriting/node_order.py), then the ranks of numbers
(eqsat/rewriting/ranks.py), and then the raising of low scores (eqsat/rewriting/raising.py).
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
    """A model in the order of its nodes, with the ranks of its numbers, and at the end."""

    arranged: onnx.ModelProto
    ranked: onnx.ModelProto
    model: onnx.ModelProto

    @property
    def raised(self) -> bool:
        """Tells whether low scores were raised."""
        return self.model is not self.ranked

    def changes(self, original: onnx.ModelProto) -> str:
        """Says what of an original has changed, if no rule made this model of it."""
        if self.raised:
            return "of which only low scores are raised"
        if self.ranked is not self.arranged:
            return "of which only the ranks of numbers have changed"
        return "which stays as it is" if self.model is original else "of which only the order of the nodes has changed"

    def turns(self, rewritten: Turn) -> list[Turn]:
        """Returns the turns that lead to this model, the first of which was made by rules."""
        last = [Turn(one, other) for one, other in ((self.arranged, self.ranked), (self.ranked, self.model)) if one is not other]
        return ([] if last and self.arranged is rewritten.before else [replace(rewritten, after=self.arranged)]) + last
