"""The ground: programs begin alike, see nothing of one another, and may run in several threads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from eqsat.egraph.ground import grounded
from eqsat.egraph.native import import_bindings

BINDINGS = import_bindings()
LAWS: Mapping[str, Callable[..., int]] = {"merge": min}


def run(egraph: Any, text: str) -> Any:
    return egraph.run_program(*egraph.parse_program(text))


def sizes(egraph: Any) -> dict[str, int]:
    return {name: size for name, size in run(egraph, "(print-size)")[0].sizes if size}


def test_a_program_sees_nothing_of_those_before() -> None:
    with grounded(BINDINGS, LAWS) as egraph:
        before = sizes(egraph)
        run(egraph, "(constructor F (T) T) (F (Input 1)) (relation own (i64)) (own 1)")
        assert sizes(egraph) != before
    with grounded(BINDINGS, LAWS) as again:
        assert again is egraph and sizes(again) == before
        run(again, "(constructor F (T T) T) (relation own (T))")


def test_a_program_has_its_own_laws() -> None:
    heard: list[tuple[int, ...]] = []

    def merge(old: int, new: int) -> int:
        heard.append((old, new))
        return new

    facts = "(set (fact (Input 1)) (py-from-int 5)) (set (fact (Input 1)) (py-from-int 6))"
    with grounded(BINDINGS, {"merge": merge}) as egraph:
        run(egraph, facts)
    with grounded(BINDINGS, LAWS) as egraph:
        run(egraph, facts)
    assert heard == [(5, 6)]


def test_programs_may_run_inside_one_another() -> None:
    with grounded(BINDINGS, LAWS) as outer:
        run(outer, "(Input 1)")
        with grounded(BINDINGS, LAWS) as inner:
            assert inner is not outer and "Input" not in sizes(inner)
        assert sizes(outer)["Input"] == 1


def test_a_program_that_failed_leaves_nothing_behind() -> None:
    with pytest.raises(BINDINGS.EggSmolError), grounded(BINDINGS, LAWS) as egraph:
        run(egraph, "(Input 1)")
        run(egraph, "(unknown)")
    with grounded(BINDINGS, LAWS) as other:
        assert other is not egraph and "Input" not in sizes(other)


IN_THREADS = """
import threading
from tests.egraph.test_ground import BINDINGS, LAWS, grounded, run, sizes
found = []
def use():
    for _ in range(2):
        with grounded(BINDINGS, LAWS) as egraph:
            run(egraph, "(Input 1)")
            found.append(sizes(egraph))
use()
threads = [threading.Thread(target=use) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(found) == 8 and all(one == found[0] for one in found)
"""


def test_each_thread_has_a_ground() -> None:
    """egglog fails where an e-graph changes threads, and complains where another thread releases it,
    at the latest when the process ends.
    """
    done = subprocess.run([sys.executable, "-c", IN_THREADS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
