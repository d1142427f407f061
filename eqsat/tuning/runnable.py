"""Runnable inputs: inputs that a model takes in ONNX Runtime, for timing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np
import onnx

from eqsat.cost.shaped import assumed_size
from eqsat.runtime.interleaved import NotTimed, TooSlow
from eqsat.verification.interface import checked_inputs
from eqsat.verification.planning import make_plan, with_functions_inlined
from eqsat.verification.relations import related_plans, with_fixed_sizes
from eqsat.verification.runs import attempts, telling_sizes
from eqsat.verification.sample_plan import NORMAL, Draw, Plan
from eqsat.verification.samples import draw

_DRAWS = 12  # draws that the runtime may refuse, and as many at sizes that depend on one another
_TELLING_DRAWS = 24  # of these at sizes that verification tries


def runnable_inputs(
    original: onnx.ModelProto, given: Mapping[str, np.ndarray[Any, Any]] | None, assumed: Mapping[str, int], run: Callable[[Mapping[str, Any]], object]
) -> tuple[Mapping[str, Any], Mapping[str, int]]:
    """Returns inputs that the original takes, and their sizes. They are the `given` ones, or they
    are drawn as verification draws them, at the `assumed` sizes, and first at the usual ones besides, which
    prices assume too.

    `run` runs the original, and raises `NotTimed` if it refuses the inputs; so does this function
    if it refuses all, or takes too long once. Raises `InputError` if the given inputs are not the original's.
    """
    try:
        plan = make_plan(original)
    except NotImplementedError as error:
        raise NotTimed(str(error)) from None
    if given is not None:
        feeds = checked_inputs(given, plan)
        run(feeds)
        return feeds, {}
    usual = with_fixed_sizes(assumed, original)
    refusal: NotTimed | None = None
    for choice in chain(islice(_draws(plan, assumed, usual), _DRAWS), _related_draws(original, plan, usual)):
        feeds = draw(plan, choice)
        try:
            run(feeds)
            return feeds, choice.sizes
        except TooSlow:
            raise
        except NotTimed as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def _draws(plan: Plan, assumed: Mapping[str, int], usual: Mapping[str, int]) -> Iterator[Draw]:
    first = plan.with_computed({name: assumed_size(name, usual) for name in plan.symbols})
    if first is not None:
        yield Draw(first, NORMAL, 0)
    for attempt in attempts(plan):
        given = plan.with_computed({name: assumed.get(name, size) for name, size in attempt.sizes.items()})
        if given is not None:
            yield replace(attempt, sizes=given)


def _related_draws(original: onnx.ModelProto, plan: Plan, usual: Mapping[str, int]) -> Iterator[Draw]:
    """Yields draws at sizes that depend on one another: those that prices assume, then those that verification
    tries, since the first may be too short for windows.
    """
    plans = list(islice(related_plans(with_functions_inlined(original), plan), _DRAWS))
    for related in plans:
        sizes = related.with_computed({name: assumed_size(name, usual) for name in related.symbols})
        if sizes is not None:
            yield Draw(sizes, NORMAL, 0)
    telling = (sizes for related in plans for sizes in reversed(telling_sizes(related)) if sizes is not None)
    yield from (Draw(sizes, NORMAL, 0) for sizes in islice(telling, _TELLING_DRAWS))
