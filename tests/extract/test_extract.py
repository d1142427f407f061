"""The extractor on examples: graphs made by hand, large and deep ones, and those of extraction-gym.

It also tests the graphs that extraction refuses, and the violations that `check` finds.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eqsat.extract import Choice, ExtractionError, Graph, Node, check, extract
from eqsat.extract.budget import Budget
from eqsat.extract.graph import walk
from eqsat.extract.preparation import prepare
from eqsat.extract.search import Search
from tests.support.parameters import spread

GYM = Path(__file__).resolve().parents[3] / "shared" / "extraction-gym"
GREEDY_DAG = {
    "tensat-vgg": 4.85076,
    "tensat-resnet50": 4.39687,
    "rover-box_filter_3iteration_egraph": 1701,
    "rover-box_filter_5iteration_egraph": 1819,
    "rover-fir_8_tap_5iteration_egraph": 5936,
    "rover-fir_8_tap_6iteration_egraph": 5936,
    "rover-mcm_3_7_21_original_8iteration_egraph": 1165,
    "impress-mul512": 136680,
    "flexc-03d369d0-bb23-477a-8ea1-a452efc850fe": 37,
    "flexc-db344dbd-fb20-4e9e-badb-076d7a3809bc": 37,
    "flexc-5cd5008c-4481-4751-90cf-0a0e23cd3d30": 137,
    "flexc-85a0fc72-1972-4bc8-ab98-d0d468095601": 137,
    "flexc-a097ffbc-8fe4-4919-b6b3-342b0a3acb1b": 137,
    "flexc-757f44bf-7134-426f-9d2f-71bc2dec1b36": 35,
    "flexc-fea54919-328c-4f00-aedc-2698d17914b6": 88,
}


def gym_graph(path: Path) -> Graph:
    data = json.loads(gzip.decompress(path.read_bytes()))
    number = {eclass: index for index, eclass in enumerate(dict.fromkeys(node["eclass"] for node in data["nodes"].values()))}
    class_of = {name: number[node["eclass"]] for name, node in data["nodes"].items()}
    nodes = [Node(number[node["eclass"]], node["cost"], tuple(class_of[child] for child in node["children"])) for node in data["nodes"].values()]
    return Graph(len(number), nodes, [number[root] for root in data["root_eclasses"]])


@pytest.mark.skipif(not GYM.is_dir(), reason="the extraction-gym graphs are not here")
@pytest.mark.parametrize("path", spread(sorted(GYM.glob("*.json.gz")), lambda path: path.name.split(".")[0]))
def test_gym(path: Path) -> None:
    graph = gym_graph(path)
    choice = extract(graph, work=0.5)
    check(graph, choice)
    assert choice.cost <= GREEDY_DAG.get(path.name.removesuffix(".json.gz"), math.inf) * 1.001


def chain(length: int) -> list[Node]:
    return [Node(0, 0.0, ()), *(Node(c, 1.0, (c - 1,)) for c in range(1, length))]


def test_single_choices_are_optimal_at_any_depth() -> None:
    choice = extract(Graph(100_000, chain(100_000), [99_999]))
    assert (choice.status, choice.cost, choice.bound, len(choice.nodes)) == ("optimal", 99_999.0, 99_999.0, 100_000)


@pytest.mark.slow
def test_deep_graphs_with_choices_everywhere() -> None:
    length = 50_000
    fused = [Node(c, 1.5, (c - 2,)) for c in range(2, length)]
    assert extract(Graph(length, chain(length) + fused, [length - 1])).cost == 1.5 * (length // 2 - 1) + 1
    inverses = [Node(c - 1, 0.5, (c,)) for c in range(1, length)]
    assert extract(Graph(length, chain(length) + inverses, [length - 1])).cost == length - 1


@pytest.mark.slow
def test_tree_cost_explodes_where_dag_cost_does_not() -> None:
    length = 20_000
    nodes = [Node(0, 1.0, ())]
    for c in range(1, length):
        # Both children use the class below, so the tree cost doubles at each level.
        below, left, right, here = (3 * c + k for k in (-3, -2, -1, 0))
        nodes += [Node(left, 1.0, (below,)), Node(right, 1.0, (below,)), Node(here, 1.0, (left, right)), Node(here, 2.5, (below,))]
    assert extract(Graph(3 * length - 2, nodes, [3 * length - 3])).cost == 1 + 2.5 * (length - 1)


def improved(graph: Graph, picks: dict[int, int]) -> float:
    """Returns the cost that the search reaches from `picks` alone."""
    problem, _, _ = prepare(graph)
    search = Search(problem, Budget.of(problem, None))
    search.adopt(picks)
    search.improve()
    return sum(graph.nodes[n].cost for n in walk(graph, dict(enumerate(search.pick))).values())


def test_what_pays_only_when_shared_is_found() -> None:
    """Three products cost 1 each; one merged product and three views of it cost less.

    No single change gains, and the products have nothing in common to leave.
    """
    merged = 3
    nodes = [*(Node(c, 1.0, ()) for c in range(3)), Node(merged, 1.0, ()), *(Node(c, 0.25, (merged,)) for c in range(3))]
    graph = Graph(4, nodes, [0, 1, 2])
    assert extract(graph).cost == 1.75
    assert improved(graph, {0: 0, 1: 1, 2: 2}) == 1.75


def test_what_pays_only_when_all_leave_is_left() -> None:
    """Between the shared class and one of its users is a class that has no choice."""
    shared, between = 0, 3
    nodes = [Node(shared, 6.0, ()), Node(1, 1.0, (shared,)), Node(between, 1.0, (shared,)), Node(2, 1.0, (between,)), Node(1, 4.0, ()), Node(2, 4.0, ())]
    assert improved(Graph(4, nodes, [1, 2]), {shared: 0, 1: 1, 2: 3, between: 2}) == 8


def test_tie_decides_between_equal_costs_only() -> None:
    nodes = [Node(0, 1.0, (), (), 9.0), Node(0, 1.0, (), (), 3.0), Node(0, 2.0, ())]
    choice = extract(Graph(1, nodes, [0]))
    assert (choice.nodes, choice.cost, choice.tie, choice.status) == ({0: 1}, 1.0, 3.0, "optimal")


def test_equal_choices_keep_the_initial_one() -> None:
    nodes = [Node(0, 1.0, ()), Node(0, 1.0, ()), Node(1, 0.0, (0,)), Node(1, 0.0, (0,))]
    assert extract(Graph(2, nodes, [1]), initial={0: 1, 1: 3}).nodes == {0: 1, 1: 3}


def test_costs_far_apart_add_up_exactly() -> None:
    nodes = [Node(0, 1e300, ()), Node(1, 5e-324, ()), Node(1, 1e-323, ()), Node(2, 0.0, (0, 1))]
    choice = extract(Graph(3, nodes, [2]))
    assert choice.nodes[1] == 1
    assert choice.cost == 1e300


def test_resources_without_limits_are_added_up() -> None:
    choice = extract(Graph(2, [Node(0, 1.0, (), (2.0, 3.0)), Node(1, 1.0, (0,)), Node(1, 1.0, (0,), (5.0, 0.0))], [1]))
    assert choice.resources == (2.0, 3.0)


def test_no_roots_need_nothing() -> None:
    assert extract(Graph(1, [Node(0, 1.0, ())], [])) == Choice({}, 0.0, 0.0, (), "optimal", 0.0)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (Graph(2, [Node(0, 1.0, (1,))], [0]), "class 1, needed by root 0, can not be chosen: it has no node"),
        (Graph(1, [Node(0, math.inf, ())], [0]), "class 0, needed by root 0, can not be chosen: every one of its nodes costs infinity"),
        (Graph(1, [Node(0, 1.0, (), (), math.inf)], [0]), "class 0, needed by root 0, can not be chosen: every one of its nodes costs infinity"),
        (Graph(1, [Node(0, 1.0, (0,))], [0]), "class 0, needed by root 0, can not be chosen: its nodes lead back to itself"),
        (Graph(3, [Node(0, 1.0, (1,)), Node(1, 1.0, (2,)), Node(2, 1.0, (1,))], [0]), "class 1, needed by root 0, can not be chosen: its nodes lead back"),
        (Graph(1, [Node(0, 1.0, (), (3.0,))], [0], (2.0,)), "class 0, needed by root 0, can not be chosen within the limits"),
        (Graph(1, [Node(0, math.nan, ())], [0]), "cost of node 0 is nan"),
        (Graph(1, [Node(0, -1.0, ())], [0]), "cost of node 0 is -1.0"),
        (Graph(1, [Node(0, 1.0, (), (), math.nan)], [0]), "tie of node 0 is nan"),
        (Graph(1, [Node(0, 1.0, (1,))], [0]), "node 0 .* names a class that is not in the graph"),
        (Graph(1, [Node(0, 1.0, (-1, 0))], [0]), "node 0 .* names a class that is not in the graph"),
        (Graph(1, [Node(1, 1.0, ())], [0]), "node 0 .* names a class that is not in the graph"),
        (Graph(1, [Node(0, 1.0, ())], [1]), "root 1 is no class"),
        (Graph(1, [Node(0, 1.0, (), (1.0,))], [0], (1.0, 2.0)), "node 0 has 1 resources where the graph has 2"),
        (Graph(1, [Node(0, 1.0, (), (math.inf,))], [0], (1.0,)), "resource 0 of node 0 is infinite"),
        (Graph(1, [Node(0, 1.0, (), (1.0,))], [0], (math.nan,)), "limit 0 is nan"),
        (Graph(2, [Node(0, 1e308, ()), Node(1, 1e308, ())], [0, 1]), "too large for a float"),
    ],
)
def test_bad_graphs(graph: Graph, message: str) -> None:
    with pytest.raises(ExtractionError, match=message):
        extract(graph)


@pytest.mark.parametrize(
    ("initial", "message"),
    [({2: 2, 0: 0}, "class 1 is needed"), ({2: 0}, "node 0, chosen for class 2"), ({2: 9}, "node 9, chosen for class 2"), ({2: 2, 0: 3, 1: 1}, "cyclic")],
)
def test_bad_initial_choices(initial: dict[int, int], message: str) -> None:
    nodes = [Node(0, 1.0, ()), Node(1, 1.0, (0,)), Node(2, 1.0, (0, 1)), Node(0, 1.0, (1,))]
    with pytest.raises(ExtractionError, match=message):
        extract(Graph(3, nodes, [2]), initial=initial)


def test_check_sees_every_kind_of_lie() -> None:
    graph = Graph(3, [Node(0, 1.0, (), (2.0,)), Node(1, 1.0, (0,)), Node(2, 1.0, ()), Node(0, 1.0, (1,))], [1], (2.0,))
    true = extract(graph)
    assert true == Choice({0: 0, 1: 1}, 2.0, 0.0, (2.0,), "optimal", 2.0)
    for lie, message in [
        (Choice({1: 1}, 2.0, 0.0, (2.0,), "optimal", 2.0), "class 0 is needed"),
        (Choice({0: 0, 1: 0}, 2.0, 0.0, (2.0,), "optimal", 2.0), "no node of that class"),
        (Choice({0: 3, 1: 1}, 2.0, 0.0, (2.0,), "optimal", 2.0), "cyclic"),
        (Choice({0: 0, 1: 1, 2: 2}, 3.0, 0.0, (2.0,), "optimal", 2.0), "class 2 is chosen and not needed"),
        (Choice({0: 0, 1: 1}, 1.0, 0.0, (2.0,), "optimal", 1.0), "the choice says 1.0"),
        (Choice({0: 0, 1: 1}, 2.0, 1.0, (2.0,), "optimal", 2.0), "the choice says 2.0"),
        (Choice({0: 0, 1: 1}, 2.0, 0.0, (1.0,), "optimal", 2.0), "use the resources"),
        (Choice({0: 0, 1: 1}, 2.0, 0.0, (2.0,), "optimal", 3.0), "less than its bound"),
    ]:
        with pytest.raises(ExtractionError, match=message):
            check(graph, lie)
    with pytest.raises(ExtractionError, match=r"use more than 1\.0 of resource 0"):
        check(Graph(graph.classes, graph.nodes, graph.roots, (1.0,)), true)


def test_check_sees_a_node_of_infinite_cost() -> None:
    graph = Graph(1, [Node(0, math.inf, ()), Node(0, 1.0, (), (), math.inf)], [0])
    for n in (0, 1):
        with pytest.raises(ExtractionError, match="a node of infinite cost is chosen"):
            check(graph, Choice({0: n}, graph.nodes[n].cost, graph.nodes[n].tie, (), "optimal", 0.0))


def test_more_than_the_memory_given_is_refused_before_the_work_begins() -> None:
    graph = Graph(10, chain(10), [9])
    with pytest.raises(ExtractionError, match="a graph of 10 nodes in 10 classes needs about"):
        extract(graph, memory_limit=1000)
    assert extract(graph, memory_limit=1_000_000) == extract(graph)


def test_repeated_children_and_roots_count_once() -> None:
    graph = Graph(2, [Node(0, 3.0, ()), Node(1, 1.0, (0, 0, 0))], [1, 1, 0])
    assert extract(graph) == Choice({0: 0, 1: 1}, 4.0, 0.0, (), "optimal", 4.0)


def test_nothing_but_zeros() -> None:
    nodes = [Node(0, 0.0, (1,)), Node(0, 0.0, (2,)), Node(1, 0.0, (2,)), Node(2, 0.0, (1,)), Node(2, 0.0, ())]
    choice = extract(Graph(3, nodes, [0]))
    assert (choice.cost, choice.bound, choice.status) == (0.0, 0.0, "optimal")


PRINT_CHOICES = """
from random import Random
from tests.support.drawn_graphs import FAMILIES, drawn, with_resources, with_terms
from tests.support.brute import few_choices
from tests.extract.test_extract_exact import cover
from eqsat.extract import ExtractionError, Graph, extract
draw = Random(99)
graphs = [cover(draw, 14, 9) for _ in range(4)]
graphs += [Graph(g.classes, g.nodes, g.roots, (6.0,)) for g in graphs]
for shape in sorted(FAMILIES):
    for _ in range(6):
        graph = drawn(draw, shape)
        choices = few_choices(graph, 200)
        if choices:
            graph = with_terms(draw, graph, choices)
            graphs.append(graph)
for graph in graphs:
    for method in ("exact", "greedy"):
        try:
            print(extract(graph, method=method))
        except ExtractionError as error:
            print(error)
"""


def test_the_same_input_gives_the_same_choice_in_any_process() -> None:
    """Another hash seed changes the order of sets. No choice may depend on it."""
    printed: list[str] = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        ran = subprocess.run([sys.executable, "-c", PRINT_CHOICES], env=environment, capture_output=True, text=True, check=True)
        printed.append(ran.stdout)
    assert printed[0].count("Choice(") > 50
    assert printed[0] == printed[1]
