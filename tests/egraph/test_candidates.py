"""Growing rules: search by root, picks in turns from all of the model, and application."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import eqsat
from eqsat.egraph.candidates import REGIONS, Candidates, Row
from eqsat.language.compile import Compiled
from eqsat.language.halves import halves, shared
from eqsat.language.library import load
from tests.support.growing_rules import ASSOCIATE, PAIRS
from tests.support.models import parse


def compiled(text: str) -> Compiled:
    return load([text]).compiled[0]


def products(count: int, inputs: int = 1) -> onnx.ModelProto:
    """Returns `count` products that take turns among `inputs` inputs."""
    generator = np.random.default_rng(0)
    weights = [numpy_helper.from_array(generator.standard_normal((4, 3)).astype(np.float32), f"w{i}") for i in range(count)]
    nodes = [helper.make_node("MatMul", [f"x{i % inputs}", f"w{i}"], [f"y{i}"]) for i in range(count)]
    xs = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, ["N", 4]) for i in range(inputs)]
    ys = [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, ["N", 3]) for i in range(count)]
    graph = helper.make_graph(nodes, "g", xs, ys, weights)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def report(model: onnx.ModelProto, text: str, name: str = "pairs") -> dict[str, Any]:
    """Returns the report of an optimization by one rule."""
    found = eqsat.optimize(model, rules=[text], only=[name], max_growth=1 << 16).report
    assert found["verify"]["status"] == "equal"
    return found


def test_a_rule_with_two_roots_is_searched_by_halves() -> None:
    parts = halves(compiled(PAIRS).pattern)
    assert [half.root for half in parts] == ["v_y1", "v_y2"]
    assert shared(parts) == ("v_x",)
    assert all({"v_y1", "v_y2"} - set(half.variables) for half in parts)


def test_a_rule_with_one_root_is_searched_as_a_whole() -> None:
    (whole,) = halves(compiled(ASSOCIATE).pattern)
    assert set(whole.sources) == set(range(len(compiled(ASSOCIATE).pattern.sources)))


def test_one_root_below_the_other_is_one_search() -> None:
    text = """
# The sum may have other users.
real rule below:
    s = Add(x, y)
    t = Add(s, z)
 => s, t = Split<axis = 0>(Add(Concat<axis = 0>(x, y), Concat<axis = 0>(y, z)), [n, n])
    where x: _[n], y: _[n], z: _[n]
    test x: float[2], y: float[2], z: float[2]
"""
    assert len(halves(compiled(text).pattern)) == 1


@pytest.mark.parametrize("count", [2, 3, 8, 33])
def test_products_of_one_input_are_merged_pair_by_pair(count: int) -> None:
    """As in a tournament, each firing merges two products, so n - 1 firings suffice."""
    found = report(products(count), PAIRS)
    (rule,) = found["rules"]
    assert count // 2 <= rule["matches"] <= 2 * count
    assert found["limits"]["hit"] in (None, "rounds")


def test_firings_grow_with_the_products_and_not_with_their_square() -> None:
    few, many = (report(products(count), PAIRS)["rules"][0]["matches"] for count in (40, 160))
    assert many <= 5 * few


def test_only_products_of_the_same_input_are_merged() -> None:
    found = report(products(12, inputs=12), PAIRS)
    assert not any(rule["matches"] for rule in found["rules"])


def test_what_both_halves_name_is_the_same_in_a_pair() -> None:
    """A pair took the attributes of its second half, even if those of the first half differed."""
    rule = """
# Two Convs of one image become one Conv with the channels of both.
real rule convs:
    y1 = Conv<group = 1, ..p>(x, w1, b1)
    y2 = Conv<group = 1, ..p>(x, w2, b2)
 => y1, y2 = Split<axis = 1>(Conv<group = 1, ..p>(x, Concat<axis = 0>(w1, w2), Concat<axis = 0>(b1, b2)), [m1, m2])
    where w1: _[m1, ..k], w2: _[m2, ..k], const w1, const w2, const b1, const b2
    test x: T[2, 4, 5, 5], w1: T[6, 4, 3, 3], b1: T[6], w2: T[3, 4, 3, 3], b2: T[3]
"""
    weights = " ".join(f"{name} = Constant<value = float[2, 1, 3, 3] {{{', '.join(str(i + seed) for i in range(18))}}}>()" for seed, name in enumerate("vwu"))
    convs = "s = Conv<pads = [1, 1, 1, 1]>(x, v, c)  t = Conv<pads = [2, 2, 2, 2], dilations = [2, 2]>(x, w, c)  r = Conv<pads = [1, 1, 1, 1]>(x, u, c)"
    model = parse(f"g (float[N, 1, 6, 6] x) => (float[N, 2, 6, 6] s, float[N, 2, 6, 6] t, float[N, 2, 6, 6] r) <float[2] c = {{1, 2}}> {{ {weights} {convs} }}")
    found = report(model, rule, "convs")
    assert [entry["matches"] for entry in found["rules"]] == [1]


def test_what_is_picked_comes_from_all_regions() -> None:
    one, rows = waiting(1000)
    one.look([rows], places(1000))
    picked = one.take(1000, REGIONS)
    regions = {number * REGIONS // 1000 for number, _ in picked}
    assert len(picked) == REGIONS
    assert len(regions) == REGIONS
    assert one.waiting == 1000 - REGIONS


def test_what_was_picked_is_not_picked_again_and_what_waits_is() -> None:
    one, rows = waiting(100)
    one.look([rows], places(100))
    first = one.take(100, 60)
    one.look([rows], places(100))
    second = one.take(100, 60)
    assert len({number for number, _ in first} | {number for number, _ in second}) == 100
    assert not one.waiting
    one.look([rows], places(100))
    assert not one.take(100, 60)


def places(count: int) -> dict[Hashable, int]:
    """Returns the places of the roots of `waiting`."""
    return {("root", i): i for i in range(count)}


def waiting(count: int) -> tuple[Candidates, list[Row]]:
    """Returns candidates of a rule with one root. All fire, each on a class of its own."""
    one = Candidates(Always(compiled(ASSOCIATE)))  # pyright: ignore[reportArgumentType]
    root = one.halves[0].root
    rows = [Row(one.note(i), tuple((("root" if v == root else v), i) for v in one.halves[0].variables)) for i in range(count)]
    return one, rows


class Always:
    """A firing that accepts every match."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled

    def __call__(self, *handles: int) -> int:
        return 0


@pytest.mark.slow
def test_growth_without_end_stops_with_candidates_left_and_says_so() -> None:
    sums = " ".join(f"s{i + 1} = Add({f's{i}' if i else 'x'}, x{i})" for i in range(60))
    inputs = ", ".join(f"float[2] x{i}" for i in range(60))
    model = parse(f"g (float[2] x, {inputs}) => (float[2] s60) {{ {sums} }}")
    found = report(model, ASSOCIATE, "associate")
    assert found["limits"]["hit"] in ("rounds", "matches", "nodes")
    assert found["saturation"]["nodes"] < 20_000


def test_the_same_model_gives_the_same_bytes() -> None:
    made = [eqsat.optimize(products(20), rules=[PAIRS]).model.SerializeToString() for _ in range(2)]
    assert made[0] == made[1]


@pytest.mark.slow
def test_a_hundred_rules_take_little_memory() -> None:
    """With the program as one text, each rule took egglog more memory than the one before.

    The run ended before any rule fired.
    """
    rules = [PAIRS.replace("rule pairs", f"rule pairs{number}") for number in range(100)]
    found = eqsat.optimize(products(4), rules=rules, verify=False).report
    assert found["limits"]["hit"] != "memory"
    assert all(rule["matches"] for rule in found["rules"] if rule["name"].startswith("pairs"))
