"""The term graph after runs: one term for each class, no cycles, and the life that outputs need.

The difference that was predicted for a rewrite is the one that it makes.
"""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import eqsat
from tests.greedy.watched import checked, watched
from tests.rules.examples import filled
from tests.rules.test_rules import EXAMPLES
from tests.support.models import parse
from tests.support.parameters import spread
from tests.support.random_models import models

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


def rewritten(model: onnx.ModelProto, seed: int, **options: Any) -> None:
    with checked() as runs:
        eqsat.optimize(model, verify=False, engine="greedy", order=f"random:{seed}", **options)
    assert runs[0]


@pytest.mark.slow
@settings(max_examples=120, suppress_health_check=SLOW)
@given(models(), st.integers(0, 9))
def test_the_graph_of_a_random_model_is_sound(model: onnx.ModelProto, seed: int) -> None:
    rewritten(model, seed)


def test_a_term_may_read_a_class_and_the_one_that_replaces_it() -> None:
    model = parse("g (float[8] x) => (float[8] y) { a = Abs (x)  r = Relu (a)  y = Mul (a, r) }")
    rewritten(model, 1, target="launches")


OTHERS = [(name, target) for name in list(EXAMPLES)[::2] for target in ("launches", "onnxruntime-cpu") if target != EXAMPLES[name].target]


@pytest.mark.parametrize("case", spread(OTHERS, " on ".join, every=8))
def test_an_example_on_another_target(case: tuple[str, str]) -> None:
    """On its own target, test_greedy.py watches each example."""
    name, target = case
    example = EXAMPLES[name]
    model = filled(example.model(example.distinct_opsets[0]))
    with watched():
        eqsat.optimize(model, verify=False, engine="greedy", order="random:1", target=target, max_growth=1 << 16)
