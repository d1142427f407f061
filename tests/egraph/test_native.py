"""egglog's native module: pickles of integers, which its callbacks return."""

from __future__ import annotations

import pickle
import threading
from fractions import Fraction
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqsat.egraph.native import QUICK_INTEGERS

cloudpickle: Any = import_module("cloudpickle")
SLOW = cloudpickle.dumps


@given(st.one_of(st.integers(), st.booleans(), st.text(), st.fractions(), st.lists(st.integers())))
def test_every_value_has_the_bytes_of_cloudpickle(value: object) -> None:
    wanted = SLOW(value)
    with QUICK_INTEGERS:
        assert cloudpickle.dumps(value) == wanted
    assert pickle.loads(wanted) == value


def test_options_and_functions_are_left_to_cloudpickle() -> None:
    with QUICK_INTEGERS:
        assert cloudpickle.dumps(7, protocol=2) == SLOW(7, protocol=2) != SLOW(7)
        assert pickle.loads(cloudpickle.dumps(lambda: Fraction(1, 3)))() == Fraction(1, 3)


def test_the_last_thread_that_leaves_puts_the_function_back() -> None:
    inside, leave = threading.Event(), threading.Event()

    def run() -> None:
        with QUICK_INTEGERS:
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=run)
    with QUICK_INTEGERS:
        thread.start()
        assert inside.wait(60)
    assert cloudpickle.dumps != SLOW
    leave.set()
    thread.join()
    assert cloudpickle.dumps == SLOW
    with pytest.raises(ValueError, match="inside"), QUICK_INTEGERS:
        raise ValueError("inside")
    assert cloudpickle.dumps == SLOW
