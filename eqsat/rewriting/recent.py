"""Recent: findings about the last few models, which would be dear to find again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import onnx

from eqsat.garbage import MANY

_KEPT = 4
_Found = TypeVar("_Found")


class Recent(Generic[_Found]):
    """Findings about the last few models. A model counts as known if it is the same object, so the
    models stay in memory with their findings; of large ones only the last two do.
    """

    def __init__(self) -> None:
        self._known: list[tuple[onnx.ModelProto, _Found]] = []

    def get(self, model: onnx.ModelProto) -> _Found | None:
        """Returns the last finding about a model, or None."""
        return next((found for known, found in reversed(self._known) if known is model), None)

    def add(self, model: onnx.ModelProto, found: _Found) -> _Found:
        """Keeps a finding about a model, and returns it."""
        self._known = [*self._known[1 - (_KEPT if len(model.graph.node) < MANY else 2) :], (model, found)]
        return found

    def of(self, model: onnx.ModelProto, find: Callable[[], _Found]) -> _Found:
        """Returns the finding about a model, which `find` makes if it is not known."""
        known = self.get(model)
        return self.add(model, find()) if known is None else known
