"""Exact rules keep every bit in ONNX Runtime and in the reference.

This holds in each floating-point type, and at sizes that reach into vectors. All exact rules are
tried, and those with `exact if` where it holds. `python -m tests.rules.test_exact_bits 60` tries as
many instances of each type.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from onnx import parser

import eqsat
from eqsat.checker.check import turned
from eqsat.checker.drawing.instances import from_test
from eqsat.checker.judging.runtime_sides import Parted, Runtimes
from eqsat.checker.judging.trial import try_rule
from eqsat.checker.judging.trial_values import ANY, Slot, Style, Values
from eqsat.checker.judging.verdict import Case
from eqsat.checker.kernels.call import Illegal
from eqsat.checker.kernels.evaluate import IllegalModel, Mode, Program
from eqsat.language.compile import compile_rule
from eqsat.language.firing import promised
from eqsat.language.library import built_in
from eqsat.language.resolved import Resolved
from eqsat.language.syntax import Label
from eqsat.runtime.session import OnnxRuntimeSession
from tests.support.enlarged import enlarged, lines, typed
from tests.support.parameters import spread

STYLES = (Style.NORMAL, Style.WIDE, Style.FULL, Style.TOUR, Style.SPECIAL)
NUMBER = 2  # instances of each type and direction

MEMBERS = 3  # of each family; run as a script, this file tries all

RULES = [found for found in built_in().rules if found.rule.label is Label.EXACT or found.rule.exact_if is not None]


def some_of_each_family() -> list[Resolved]:
    """Returns all rules outside families, and members spread evenly over each family."""
    families: dict[str, list[Resolved]] = {}
    for found in RULES:
        families.setdefault(found.rule.family, []).append(found)
    return [members[place * len(members) // MEMBERS] for members in families.values() for place in range(MEMBERS) if place < len(members)]


SOME = some_of_each_family()


def cases(resolved: Resolved, number: int) -> Iterator[Case]:
    """Yields instances on which the rule fires and promises every bit."""
    for compiled in compile_rule(resolved):
        instances = list(enlarged(turned(resolved) if compiled.reverse else resolved, number))
        for trial in try_rule(compiled, instances).fired if instances else ():
            instance = instances[trial.instance]
            if promised(resolved.rule, instance.bindings) is Label.EXACT:
                yield Case(instance.model, trial.right, instance.free, instance.domains)


def parted(case: Case, seed: int) -> Iterator[Parted]:
    """Yields the outputs in which a runtime computes other bits on the right side."""
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
    """Returns an instance on which a rule does not keep its promised bits, or None."""
    for seed, case in enumerate(cases(resolved, number)):
        for found in parted(case, seed):
            place = tuple(int(index) for index in np.argwhere(found.unequal)[0])
            return f"{found.engine}: {found.left[place]!r} became {found.right[place]!r} at {list(place)} of {found.left.dtype}{list(found.left.shape)}"
    return None


@pytest.mark.parametrize("resolved", spread(SOME, lambda found: found.rule.name, every=20))
def test_a_rule_keeps_the_bits_that_it_promises(resolved: Resolved) -> None:
    assert refute(resolved, NUMBER) is None


# Rules that were wrongly labelled exact: runtimes lose signs of zero, infinities and NaN, or round
# by place and sizes.
FOUND_OUT = """averagepool-nothing globalmaxpool-reducemax variadic-one[Sum] unary-concat[Tanh] transpose-unary[Elu]
    transpose-binary[Max] where-not""".split()
NOT_EXACT = [
    ("averagepool-nothing", "float"),
    ("globalmaxpool-reducemax", "float"),
    ("maxpool-nothing", "float"),
    ("matmul-transpose-rows", "double"),
    ("reshape-matmul", "double"),
    ("slice-conv", "float"),
    ("slice-matmul-rows", "float"),
    ("slice-reduction[ReduceSum]", "float"),
    ("unary-concat[Tanh]", "double"),
    ("split-unary[Tanh]", "double"),
    ("transpose-unary[Softplus]", "float"),
    # In 16 bits no rule may fire: neighboring nodes decide what ONNX Runtime rounds.
    ("gather-binary[Add]", "float16"),
    ("slice-binary[Add]", "float16"),
    ("unary-concat[Tanh]", "float16"),
]
EXACT = [
    ("gather-binary[Add]", "float"),
    ("slice-binary[Add]", "double"),
    ("unary-concat[Tanh]", "float"),
    ("split-unary[Tanh]", "float"),
    ("reshape-matmul", "int32"),
]


@pytest.mark.parametrize("name", FOUND_OUT)
def test_a_rule_that_is_not_exact_is_found_out(name: str) -> None:
    found = built_in().rule(name)
    assert refute(replace(found, rule=replace(found.rule, label=Label.EXACT, exact_if=None)), 3 * NUMBER) is not None


def fires(name: str, dtype: str) -> bool:
    """Tells whether a rule fires under `exact` on the first of its lines, in this data type."""
    found = built_in().rule(name)
    line = replace(found.rule, tests=(typed(lines(found)[0], dtype),))
    model = from_test(replace(found, rule=line), 0).model
    return name in {rule["name"] for rule in eqsat.optimize(model, exact=True, verify=False, only=[name]).report["rules"]}


@pytest.mark.parametrize(("name", "dtype"), NOT_EXACT)
def test_it_does_not_fire_where_every_bit_must_stay(name: str, dtype: str) -> None:
    assert not fires(name, dtype)


@pytest.mark.parametrize(("name", "dtype"), EXACT)
def test_it_fires_where_every_bit_stays(name: str, dtype: str) -> None:
    assert fires(name, dtype)


def test_halves_are_left_alone() -> None:
    """Two Transposes keep ONNX Runtime from computing Add and Mul together in 32 bits."""
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 22]> g (float16[64, 33] x, float16[64, 33] y, float16[64, 33] w) => (float16[64, 33] o)
        { z = Add(x, y) a = Transpose(z) b = Transpose(a) o = Mul(b, w) }"""
    )
    assert len(eqsat.optimize(model).model.graph.node) == 2
    kept = eqsat.optimize(model, exact=True)
    assert len(kept.model.graph.node) == 4 and "16 bits" in kept.report["notes"][0]
    generator = np.random.default_rng(0)
    feeds = {name: generator.standard_normal((64, 33)).astype(np.float16) for name in "xyw"}
    before, after = (OnnxRuntimeSession(proto.SerializeToString()).run(feeds)[0] for proto in (model, kept.model))
    assert before.tobytes() == after.tobytes()


if __name__ == "__main__":
    for resolved in RULES:
        print(f"{resolved.rule.name:32} {refute(resolved, int(sys.argv[1])) or 'ok'}", flush=True)
