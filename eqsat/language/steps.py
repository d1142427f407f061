"""Steps: what one evaluation of an expression has cost so far, which is bounded."""

from __future__ import annotations

from eqsat.language.values import List, NoValue, Value, effort, leaves

STEP_LIMIT = 20_000  # a step is roughly an operation on two numbers
TOO_LONG = f"this takes more than {STEP_LIMIT} steps"


class Evaluation:
    """One evaluation, which counts its steps."""

    __slots__ = ("known", "steps")

    def __init__(self) -> None:
        self.steps = 0
        self.known: dict[object, tuple[Value | None, int]] = {}  # values of parts, with the steps that they took

    def spend(self, steps: int) -> None:
        """Counts steps, of which an evaluation has only so many."""
        self.steps += steps
        if self.steps > STEP_LIMIT:
            raise NoValue(TOO_LONG)

    def operate(self, *operands: Value | None) -> None:
        """Counts what an operation costs beyond the step of its expression, which pays for numbers."""
        for operand in operands:
            if isinstance(operand, tuple):
                self.spend(effort(operands))
                return

    def list(self, found: List) -> List:
        """A list, with its items paid for."""
        self.spend(leaves(found))
        return found
