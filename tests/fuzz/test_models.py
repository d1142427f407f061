"""A thousand models of the differential fuzzer; `python -m tests.fuzz` runs more of them."""

import pytest

from .campaign import outcomes, smaller
from .trial import FAILURES

CHUNK = 50


def failures(start: int, exact: bool) -> list[str]:
    found = [outcome for outcome in outcomes(range(start, start + CHUNK), exact) if outcome.status in FAILURES]
    return [f"seed {outcome.seed}: {outcome.reason}\n{smaller(outcome.seed, exact)}" for outcome in found]


@pytest.mark.parametrize("start", range(0, 1000, CHUNK))
def test_models_compute_what_they_computed(start: int) -> None:
    assert not failures(start, exact=False)


@pytest.mark.parametrize("start", range(0, 150, CHUNK))
def test_exact_models_give_the_same_bits(start: int) -> None:
    assert not failures(start, exact=True)
