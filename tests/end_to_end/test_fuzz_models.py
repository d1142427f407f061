"""Hundreds of models of the differential fuzzer; `python -m tests.fuzz` runs more of them."""

import numpy as np
import pytest

from eqsat.runtime.session import open_runtime
from tests.fuzz.campaign import outcomes, smaller
from tests.fuzz.feeds import Feed
from tests.fuzz.trial import DIFFERENT, FAILURES, RUNTIME, SAME, verdict
from tests.support.models import parse
from tests.support.parameters import spread

CHUNK = 25


def failures(start: int, exact: bool, engine: str = "saturation") -> list[str]:
    found = [outcome for outcome in outcomes(range(start, start + CHUNK), exact, engine) if outcome.status in FAILURES]
    return [f"seed {outcome.seed}: {outcome.reason}\n{smaller(outcome.seed, exact, engine)}" for outcome in found]


@pytest.mark.parametrize("start", spread(range(0, 400, CHUNK), every=40))
def test_models_compute_what_they_computed(start: int) -> None:
    assert not failures(start, exact=False)


@pytest.mark.parametrize("start", spread(range(0, 150, CHUNK)))
def test_exact_models_give_the_same_bits(start: int) -> None:
    assert not failures(start, exact=True)


@pytest.mark.parametrize("start", spread(range(0, 200, CHUNK)))
def test_the_greedy_engine_computes_the_same(start: int) -> None:
    assert not failures(start, exact=False, engine="greedy")


def test_what_a_loop_scans_in_no_turn_has_no_sizes_to_compare() -> None:
    """ONNX Runtime gives an unscanned output a 0 for each size that it does not infer.

    If the Loop takes a turn, the sizes are those of its elements.
    """
    original, same, longer = (
        parse(f"""g (float[3] x, int64 n) => (float[A, B] y) <int64[1] all = {{-1}}> {{
            s = Concat <axis = 0> (all)
            r = {read}
            y = Loop (n, "") <body = b (int64 i, bool go) => (bool on, float[] each) {{ each = Identity (r)  on = Identity (go) }}>
        }}""")
        for read in ("Reshape (x, s)", "Identity (x)", "Concat <axis = 0> (x, x)")
    )
    session = open_runtime(original.SerializeToString())
    none, two = (Feed({"x": np.ones(3, np.float32), "n": np.array(turns)}, {}, "built") for turns in (0, 2))
    assert verdict(original, same, [(none, session.run(none.inputs))], False)[0] == RUNTIME
    assert verdict(original, same, [(two, session.run(two.inputs))], False)[0] == SAME
    assert verdict(original, longer, [(two, session.run(two.inputs))], False)[0] == DIFFERENT
