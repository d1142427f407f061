"""Rules that promise every bit keep it in ONNX Runtime and in the reference, in each floating-point type and at sizes that reach into vectors.

All exact rules are tried, and those with `exact if` where it holds. `python tests/test_exact_bits.py 60` tries as many instances of each type.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest
from enlarged import enlarged

from eqsat.checker.call import Illegal
from eqsat.checker.check import turned
from eqsat.checker.evaluate import IllegalModel, Mode, Program
from eqsat.checker.runtimes import Parted, Runtimes
from eqsat.checker.trial import try_rule
from eqsat.checker.values import ANY, Slot, Style, Values
from eqsat.checker.verdict import Case
from eqsat.language.compile import compile_rule
from eqsat.language.firing import promised
from eqsat.language.library import built_in
from eqsat.language.resolve import Resolved
from eqsat.language.syntax import Label

STYLES = (Style.NORMAL, Style.WIDE, Style.FULL, Style.TOUR, Style.SPECIAL)
NUMBER = 4  # instances of each type and direction

RULES = [found for found in built_in().rules if found.rule.label is Label.EXACT or found.rule.exact_if is not None]


def cases(resolved: Resolved, number: int) -> Iterator[Case]:
    """Instances on which the rule fires and promises every bit."""
    for compiled in compile_rule(resolved):
        instances = list(enlarged(turned(resolved) if compiled.reverse else resolved, number))
        for trial in try_rule(compiled, instances).fired if instances else ():
            instance = instances[trial.instance]
            if promised(resolved.rule, instance.bindings) is Label.EXACT:
                yield Case(instance.model, trial.right, instance.free, instance.domains)


def parted(case: Case, seed: int) -> Iterator[Parted]:
    """The outputs in which a runtime computes other bits on the right."""
    try:
        left, right = Program(case.left), Program(case.right)
    except IllegalModel:
        return
    runtimes = Runtimes(case, left, right)
    types = {name: (given.dtype, given.shape) for name, given in left.inputs.items()}
    types |= {name: (left.types[name], left.constants[name].shape) for name in sorted(case.free) if name in left.constants}
    values = Values({name: Slot(*given, case.domains.get(name, ANY)) for name, given in types.items()}, (), seed)
    for style in STYLES:
        feeds = values.draw(style, seed)
        try:
            outputs = left.run(feeds, Mode.BITS).outputs
        except Illegal:
            continue
        yield from runtimes.parted(feeds, outputs)


def refute(resolved: Resolved, number: int) -> str | None:
    """Where a rule does not keep the bits that it promises."""
    for seed, case in enumerate(cases(resolved, number)):
        for found in parted(case, seed):
            place = tuple(int(index) for index in np.argwhere(found.unequal)[0])
            return f"{found.engine}: {found.left[place]!r} became {found.right[place]!r} at {list(place)} of {found.left.dtype}{list(found.left.shape)}"
    return None


@pytest.mark.parametrize("resolved", RULES, ids=[found.rule.name for found in RULES])
def test_a_rule_keeps_the_bits_that_it_promises(resolved: Resolved) -> None:
    assert refute(resolved, NUMBER) is None


if __name__ == "__main__":
    for resolved in RULES:
        print(f"{resolved.rule.name:32} {refute(resolved, int(sys.argv[1])) or 'ok'}", flush=True)
