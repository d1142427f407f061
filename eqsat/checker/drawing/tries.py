"""Tries: how often a node is drawn again before its whole graph is.

The input is the tries of a rule's nodes so far, and which of them succeeded. The output is whether
one more try of a node costs less than a new graph, counted in draws of nodes. So a node that depends
on what was drawn before it soon gives way, and one that depends on chance is tried again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

_MOST = 5  # tries of one node
_ENOUGH = 16  # tries that tell how often the next one succeeds
_DOUBT = 2  # successes that a try gets on credit, because few tries tell little


class Tries:
    """The tries of the nodes of one rule, each node by the name of its first output."""

    def __init__(self) -> None:
        self._graphs = 0
        self._tried: Counter[str] = Counter()
        self._passed: Counter[str] = Counter()
        self._tried_as: Counter[tuple[str, int]] = Counter()  # by node and number of the try
        self._passed_as: Counter[tuple[str, int]] = Counter()

    def begin(self) -> None:
        """Notes that a graph is begun. To choose its types and shapes costs about as much as a node."""
        self._graphs += 1

    def note(self, node: str, number: int, passed: bool) -> None:
        """Notes a try of a node, the first of which has the number 0."""
        self._tried[node] += 1
        self._tried_as[node, number] += 1
        if passed:
            self._passed[node] += 1
            self._passed_as[node, number] += 1

    def is_worthwhile(self, node: str, number: int, before: Iterable[str]) -> bool:
        """Whether to try a node once more; `before` are the nodes that a new graph draws first."""
        tried = self._tried_as[node, number]
        if number == 0 or number >= _MOST or tried < _ENOUGH:
            return number < _MOST
        price = self._graphs + self._tried[node] + sum(self._tried[other] for other in before)
        return (_DOUBT + self._passed_as[node, number]) * price >= tried * self._passed[node]
