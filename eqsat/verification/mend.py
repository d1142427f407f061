"""Mending: a result that fails verification is made again without the rules or nodes at fault.

Rules that make the result wrong are left out. If no rule does, some fact or folded constant is
wrong. Then the nodes concerned stay as they are, and the rest is optimized. In doubt the original
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

import onnx

from eqsat.frozen import mutable
from eqsat.language.library import Library
from eqsat.model.model import Model
from eqsat.rewriting.attempt import Attempt
from eqsat.rewriting.job import Job
from eqsat.rewriting.trace import fired_rules
from eqsat.rewriting.turns import attempt
from eqsat.verification.blame import guilty
from eqsat.verification.locate import Fault
from eqsat.verification.verify import EQUAL, UNVERIFIED, Verdict

_ROUNDS = 6
_NAMED = 4  # the most nodes that a note names


@mutable
class Mended:
    """A result and its verdict, with the rules left out and the values whose nodes stay."""

    found: Attempt
    verdict: Verdict
    dropped: list[str] = field(default_factory=list[str])
    left: list[str] = field(default_factory=list[str])


def mend(
    model: Model,
    original: onnx.ModelProto,
    job: Job,
    library: Library,
    failed: Mended,
    verified: Callable[[onnx.ModelProto], Verdict],
    faults: Callable[[onnx.ModelProto, Verdict], Sequence[Fault]],
) -> Mended:
    """Returns the best result that passes, or the `original`.

    `verified` checks a result; `faults` finds the places where it is wrong.
    """
    found = _without_rules(model, job, library, failed, verified) or _without_regions(model, job, library, failed, verified, faults)
    if found is not None:
        return found
    failed.found.notes.append("the optimized model did not compute the same, which is a defect of eqsat; the result is the original model")
    failed.found.model = original
    return failed


def _passes(verdict: Verdict) -> bool:
    return verdict.status in (EQUAL, UNVERIFIED)


def _without_rules(model: Model, job: Job, library: Library, failed: Mended, verified: Callable[[onnx.ModelProto], Verdict]) -> Mended | None:
    """Returns the result without the guilty rules; None if no rule is guilty, or too many are."""
    fired = list(fired_rules(failed.found.trace))
    tried: dict[tuple[str, ...], tuple[Attempt, Verdict]] = {}

    def fails(names: Sequence[str]) -> bool:
        key = tuple(names)
        if key not in tried:
            other = attempt(model, job, library.select(key, ()) if key else Library(()))
            tried[key] = other, verified(other.model)
        return not _passes(tried[key][1])

    dropped = guilty(fired, fails) if fired else None
    if dropped is None:
        return None
    found, verdict = tried[tuple(name for name in fired if name not in dropped)]
    found.notes.append(f"left out: {', '.join(dropped)}; its result did not pass verification: {failed.verdict.reason}")
    return Mended(found, verdict, dropped)


def _without_regions(
    model: Model,
    job: Job,
    library: Library,
    failed: Mended,
    verified: Callable[[onnx.ModelProto], Verdict],
    faults: Callable[[onnx.ModelProto, Verdict], Sequence[Fault]],
) -> Mended | None:
    """Returns the result in which wrongly optimized nodes stay as they are.

    Returns None if no such nodes are found, or if new ones keep turning up.
    """
    kept: set[str] = set()
    found, verdict = failed.found, failed.verdict
    for turn in range(_ROUNDS):
        wrong = faults(found.model, verdict)
        # If a region is wrong again, the facts of the values before it are at fault.
        more = {name for fault in wrong for name in (fault.values | fault.before if turn else fault.values)} - kept
        if not more:
            return None
        kept |= more
        found = attempt(model, job, library, frozenset(kept))
        verdict = verified(found.model)
        if _passes(verdict):
            nodes = [node for node in model.graph.nodes if not kept.isdisjoint(node.outputs)]
            shown = [f"{node.operator.name} '{next(filter(None, node.outputs))}'" for node in nodes[:_NAMED]]
            others = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
            found.notes.append(f"left as it was: {', '.join(shown)}{others}; its optimized form did not pass verification: {failed.verdict.reason}")
            return Mended(found, verdict, left=[name for node in nodes for name in node.outputs if name])
    return None
