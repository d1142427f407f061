"""What an extraction finds before it looks at the limits, kept for the same graph within others.

Limits that exclude no node alone change nothing until the lightest choice of all exceeds one. So an
extraction within other limits can begin where the first one looked at them.
"""

from __future__ import annotations

from dataclasses import dataclass

from .plain import Solution
from .problem import Problem
from .work import Work


@dataclass(slots=True)
class Unlimited:
    """The best choice of a graph whatever its limits, once an extraction has found it.

    Whoever passes it to several extractions promises that they differ in their limits alone.
    """

    _found: Solution | None = None
    _slack: int = 0
    _solver: float = 0.0

    def known(self, problem: Problem, work: Work) -> Solution | None:
        """Return the choice if it serves this problem, and use up the work that it took."""
        if self._found is None or problem.narrowed:
            return None
        work.slack, work.solver = self._slack, self._solver
        return self._found

    def keep(self, problem: Problem, work: Work, found: Solution) -> None:
        """Keep the choice of a problem, and the work that it left. One that a deadline may have cut
        short is not kept.
        """
        if not problem.narrowed and work.deadline is None:
            self._found, self._slack, self._solver = found, work.slack, work.solver
