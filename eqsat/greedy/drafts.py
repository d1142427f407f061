"""Indexes of terms in which a right side can be drafted."""

from __future__ import annotations

from abc import abstractmethod

from eqsat.egraph.plain_matching import TermIndex
from eqsat.facts.fact import Fact


class DraftIndex(TermIndex):
    """Terms, and the classes of terms that a right side needs."""

    @abstractmethod
    def fact(self, eclass: int) -> Fact | None:
        """The fact of a value; None for other classes."""

    @abstractmethod
    def draft(self, head: int, data: tuple[int, ...], children: tuple[int, ...], fact: int) -> int:
        """The class of a term; `fact` is the handle of its fact."""
