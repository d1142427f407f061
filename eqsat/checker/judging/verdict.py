"""Cases and verdicts of the rule checker.

A `Case` is the two sides of an instance of a rule, as models. A `Verdict` is the result of judging
it, and `explain` puts it into words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import onnx

from eqsat.checker.drawing.domains import Domain
from eqsat.checker.kernels.call import Array

_SHOWN = 12  # elements of an input that are written out


@dataclass(frozen=True)
class Case:
    """Two models of the newest opset with the same graph inputs, of concrete shapes, whose outputs
    have to be equal pairwise.

    `free` names the initializers of both models whose elements are arbitrary and may be drawn
    again. `domains` has, by the name of an input or free initializer, the elements to which ONNX
    gives a meaning. `types` has the data types of all values of a left side that ONNX's inference is
    known to accept.
    """

    left: onnx.ModelProto
    right: onnx.ModelProto
    free: frozenset[str] = frozenset()
    domains: Mapping[str, Domain] = field(default_factory=dict[str, Domain])
    types: Mapping[str, int] | None = None


class Outcome(StrEnum):
    """The four answers."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNDECIDED = "undecided"  # no engine computes it, or no round decided anything
    INVALID = "invalid instance"  # the left side has no meaning, on any values


class Kind(StrEnum):
    """How two sides differ."""

    TYPE = "type"  # another data type, shape, or number of outputs
    FAILS = "fails"  # the right side is illegal on values that the left one accepts
    VALUE = "value"  # an element


@dataclass(frozen=True)
class Verdict:
    """The answer for one case; for a difference, the first element that shows it and all inputs."""

    outcome: Outcome
    kind: Kind | None = None
    reason: str = ""
    output: str = ""  # the name of an output of the left model
    position: tuple[int, ...] = ()
    left: Any = None
    right: Any = None
    error: float = 0.0
    tolerance: float = 0.0  # the difference that rounding explains
    inputs: Mapping[str, Array] = field(default_factory=dict[str, Array])
    style: str = ""  # of the values that show the difference
    rounds: int = 0  # the number of sets of values that were compared


def explain(verdict: Verdict) -> str:
    """The verdict in one line, or two if there are inputs to show."""
    if verdict.outcome is Outcome.EQUAL:
        return f"equal on {verdict.rounds} sets of values"
    if verdict.kind is not Kind.VALUE:
        return f"{verdict.outcome}: {verdict.reason}"
    place = f"{verdict.output}[{', '.join(map(str, verdict.position))}]" if verdict.position else verdict.output
    measure = "" if verdict.error in (0, np.inf) else f", apart by {verdict.error:.3g} where rounding explains {verdict.tolerance:.3g}"
    line = f"different: {place} is {verdict.left} on the left and {verdict.right} on the right{measure} ({verdict.style} values)"
    return f"{line}\n  {'; '.join(f'{name} = {_shown(array)}' for name, array in verdict.inputs.items())}" if verdict.inputs else line


def _shown(array: Array) -> str:
    kind = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
    return f"{kind} {array.tolist()}" if array.size <= _SHOWN else kind
