"""The extractor against exhaustive search on small random e-graphs, on the published e-graphs of extraction-gym, and on large and deep ones."""

from __future__ import annotations

import gzip
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from eqsat.extract import Choice, ExtractionError, Graph, Node, check, extract
from eqsat.extract.graph import walk
from eqsat.extract.problem import prepare
from eqsat.extract.search import Budget, Search

GYM = Path(__file__).resolve().parents[1].parent / "shared" / "extraction-gym"
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


def all_choices(graph: Graph) -> Iterator[dict[int, int]]:
    """Every acyclic choice of finite cost, by trying all nodes of all classes that come to be needed."""
    nodes_of: dict[int, list[int]] = {}
    for index, node in enumerate(graph.nodes):
        if math.isfinite(node.cost) and math.isfinite(node.tie):
            nodes_of.setdefault(node.eclass, []).append(index)

    def acyclic(picks: dict[int, int]) -> bool:
        left = dict(picks)
        while left:
            ready = [c for c, n in left.items() if not any(child in left for child in graph.nodes[n].children)]
            if not ready:
                return False
            for c in ready:
                del left[c]
        return True

    def extend(picks: dict[int, int], open_classes: tuple[int, ...]) -> Iterator[dict[int, int]]:
        open_classes = tuple(c for c in dict.fromkeys(open_classes) if c not in picks)
        if not open_classes:
            if acyclic(picks):
                yield picks
            return
        c, *rest = open_classes
        for n in nodes_of.get(c, ()):
            yield from extend({**picks, c: n}, (*rest, *graph.nodes[n].children))

    yield from extend({}, tuple(graph.roots))


def price(graph: Graph, picks: dict[int, int]) -> tuple[float, float]:
    chosen = [graph.nodes[n] for n in picks.values()]
    return math.fsum(node.cost for node in chosen), math.fsum(node.tie for node in chosen)


def fits(graph: Graph, picks: dict[int, int]) -> bool:
    return all(math.fsum(graph.nodes[n].resources[r] for n in picks.values() if graph.nodes[n].resources) <= limit for r, limit in enumerate(graph.limits))


def random_graph(draw: random.Random, resources: int = 0) -> Graph:
    """Up to 9 classes of up to 4 nodes; children are mostly earlier classes, now and then any, so that some graphs are cyclic and some impossible."""
    classes = draw.randint(2, 9)
    wild = draw.choice([0.0, 0.1, 0.4])
    costs = draw.choice([[1.0], [0.0, 1.0, 2.0], [0.0, 0.1, 0.2, 0.7, 3.5, 11.0]])
    nodes: list[Node] = []
    for c in range(classes):
        for _ in range(draw.choice([1, 1, 2, 3, 4])):
            arity = draw.choice([0, 1, 1, 2, 2, 3])
            children = tuple(draw.randrange(classes) if c == 0 or draw.random() < wild else draw.randrange(c) for _ in range(arity))
            if c == 0 and not wild:
                children = ()
            cost = math.inf if draw.random() < 0.03 else draw.choice(costs)
            nodes.append(Node(c, cost, children, tuple(float(draw.choice([0, 0, 1, 3, 10])) for _ in range(resources)), draw.choice([0.0, 1.0, 2.5])))
    draw.shuffle(nodes)
    roots = [classes - 1, *(draw.randrange(classes) for _ in range(draw.choice([0, 0, 1, 2])))]
    return Graph(classes, nodes, roots)


def test_random_graphs_against_exhaustive_search() -> None:
    draw = random.Random(20260)
    solved = optimal = 0
    for _ in range(1500):
        graph = random_graph(draw)
        choices = list(all_choices(graph))
        if not choices:
            with pytest.raises(ExtractionError, match=r"class \d+, needed by root \d+, can not be chosen"):
                extract(graph)
            continue
        best = min(price(graph, picks) for picks in choices)
        first = extract(graph)
        check(graph, first)
        assert first.bound <= best[0] <= first.cost
        assert first.status == "feasible" or (first.cost, first.tie) == best
        initial = draw.choice(choices)
        second = extract(graph, initial=initial)
        assert (second.cost, second.tie) <= min(price(graph, initial), (first.cost, first.tie))
        assert extract(graph, initial=initial) == second
        solved += 1
        optimal += (first.cost, first.tie) == best
    assert solved > 1000
    assert optimal >= 0.97 * solved, f"{optimal} of {solved} optimal"


@pytest.mark.parametrize("resources", [1, 2])
def test_limits_against_exhaustive_search(resources: int) -> None:
    draw = random.Random(77 + resources)
    solved = optimal = missed = 0
    for _ in range(700):
        graph = random_graph(draw, resources)
        choices = list(all_choices(graph))
        if not choices:
            continue
        used = [[sum(graph.nodes[n].resources[r] for n in picks.values()) for picks in choices] for r in range(resources)]
        graph = Graph(graph.classes, graph.nodes, graph.roots, tuple(float(draw.randint(int(min(row)), int(max(row)))) for row in used))
        legal = [picks for picks in choices if fits(graph, picks)]
        if not legal:
            with pytest.raises(ExtractionError, match="limit"):
                extract(graph)
            continue
        solved += 1
        best = min(price(graph, picks) for picks in legal)
        initial = draw.choice(legal)
        found = extract(graph, initial=initial)
        check(graph, found)
        assert best <= (found.cost, found.tie) <= price(graph, initial)
        try:
            alone = extract(graph)
        except ExtractionError:
            missed += 1
            continue
        check(graph, alone)
        assert alone.status == "feasible" or (alone.cost, alone.tie) == best
        optimal += (alone.cost, alone.tie) == best
    print(f"{resources} limits: {optimal} of {solved} optimal, {missed} not found")
    assert optimal >= 0.9 * solved, f"{optimal} of {solved} optimal, {missed} not found"


def gym_graph(path: Path) -> Graph:
    data = json.loads(gzip.decompress(path.read_bytes()))
    number = {eclass: index for index, eclass in enumerate(dict.fromkeys(node["eclass"] for node in data["nodes"].values()))}
    class_of = {name: number[node["eclass"]] for name, node in data["nodes"].items()}
    nodes = [Node(number[node["eclass"]], node["cost"], tuple(class_of[child] for child in node["children"])) for node in data["nodes"].values()]
    return Graph(len(number), nodes, [number[root] for root in data["root_eclasses"]])


@pytest.mark.skipif(not GYM.is_dir(), reason="the extraction-gym graphs are not here")
@pytest.mark.parametrize("path", sorted(GYM.glob("*.json.gz")), ids=lambda path: path.name.split(".")[0])
def test_gym(path: Path) -> None:
    graph = gym_graph(path)
    choice = extract(graph)
    check(graph, choice)
    assert choice.cost <= GREEDY_DAG.get(path.name.removesuffix(".json.gz"), math.inf) * 1.001


def chain(length: int) -> list[Node]:
    return [Node(0, 0.0, ()), *(Node(c, 1.0, (c - 1,)) for c in range(1, length))]


def test_single_choices_are_optimal_at_any_depth() -> None:
    choice = extract(Graph(100_000, chain(100_000), [99_999]))
    assert (choice.status, choice.cost, choice.bound, len(choice.nodes)) == ("optimal", 99_999.0, 99_999.0, 100_000)


def test_deep_graphs_with_choices_everywhere() -> None:
    length = 50_000
    fused = [Node(c, 1.5, (c - 2,)) for c in range(2, length)]
    assert extract(Graph(length, chain(length) + fused, [length - 1])).cost == 1.5 * (length // 2 - 1) + 1
    inverses = [Node(c - 1, 0.5, (c,)) for c in range(1, length)]
    assert extract(Graph(length, chain(length) + inverses, [length - 1])).cost == length - 1


def test_tree_cost_explodes_where_dag_cost_does_not() -> None:
    length = 20_000
    nodes = [Node(0, 1.0, ())]
    for c in range(1, length):
        # Two uses of what is below: the tree cost doubles at each level.
        below, left, right, here = (3 * c + k for k in (-3, -2, -1, 0))
        nodes += [Node(left, 1.0, (below,)), Node(right, 1.0, (below,)), Node(here, 1.0, (left, right)), Node(here, 2.5, (below,))]
    assert extract(Graph(3 * length - 2, nodes, [3 * length - 3])).cost == 1 + 2.5 * (length - 1)


def improved(graph: Graph, picks: dict[int, int]) -> float:
    """The cost that the search reaches from `picks` alone."""
    problem, _, _ = prepare(graph)
    search = Search(problem, Budget.of(problem, None))
    search.adopt(picks)
    search.improve()
    return price(graph, walk(graph, dict(enumerate(search.pick))))[0]


def test_what_pays_only_when_shared_is_found() -> None:
    """Three products, each 1, or one merged product and three views of it: no single change gains, and they have nothing in common to leave."""
    merged = 3
    nodes = [*(Node(c, 1.0, ()) for c in range(3)), Node(merged, 1.0, ()), *(Node(c, 0.25, (merged,)) for c in range(3))]
    graph = Graph(4, nodes, [0, 1, 2])
    assert extract(graph).cost == 1.75
    assert improved(graph, {0: 0, 1: 1, 2: 2}) == 1.75


def test_what_pays_only_when_all_leave_is_left() -> None:
    """Between the shared class and one of its users stands a class that has no choice."""
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


def folding(sizes: list[float], *, other_use: bool, room: float) -> tuple[Graph, dict[int, int]]:
    """A chain of products by transposed weights; storing the transposed weight saves a node. With another use of the weight it stays stored too."""
    nodes, roots, initial = [Node(0, 0.0, ())], list[int](), {0: 0}
    for i, size in enumerate(sizes):
        weight, transposed, product, other = (4 * i + k for k in (1, 2, 3, 4))
        initial |= {weight: len(nodes), transposed: len(nodes) + 1, product: len(nodes) + 2}
        nodes += [Node(weight, 0.0, (), (size,)), Node(transposed, 1.0, (weight,)), Node(product, 1.0, (max(0, 4 * i - 1), transposed))]
        nodes += [Node(transposed, 0.0, (), (size,)), Node(other, 1.0, (weight,))]
        if other_use:
            initial[other] = len(nodes) - 1
            roots.append(other)
    return Graph(4 * len(sizes) + 1, nodes, [4 * len(sizes) - 1, *roots], (sum(sizes) + room,)), initial


def test_folding_what_frees_the_original_always_fits() -> None:
    graph, _ = folding([5.0, 7.0, 11.0], other_use=False, room=0.0)
    choice = extract(graph)
    assert (choice.cost, choice.resources, choice.status) == (3.0, (23.0,), "optimal")


@pytest.mark.parametrize("room", [0.0, 3.0, 40.0, 400.0, 4000.0])
def test_limited_folding_folds_the_smallest_first(room: float) -> None:
    draw = random.Random(3)
    sizes = [float(draw.randint(1, 60)) for _ in range(60)]
    graph, initial = folding(sizes, other_use=True, room=room)
    folded, left = 0, room
    for size in sorted(sizes):
        left -= size
        folded += left >= 0
    for choice in (extract(graph), extract(graph, initial=initial)):
        assert choice.cost == 3 * len(sizes) - folded
        assert choice.resources[0] <= graph.limits[0]


def test_equal_folds_fill_the_room() -> None:
    graph, _ = folding([8.0] * 12, other_use=True, room=47.0)
    assert extract(graph).cost == 36 - 5


def test_a_limit_is_not_exceeded_by_a_rounding_error() -> None:
    # As decimals three times 0.1 are 0.3; as floats the sum rounds to more, and is more exactly too.
    leaves = [Node(c, 0.0, (), (0.1,)) for c in range(3)] + [Node(c, 1.0, (), (0.0,)) for c in range(3)]
    assert extract(Graph(3, leaves, [0, 1, 2], (0.3,))).cost == 1.0
    assert extract(Graph(3, leaves, [0, 1, 2], (0.1 + 0.1 + 0.1,))).cost == 0.0
    # 1e16 + 1 is 1e16 as a float: adding up in floats would let this pass.
    huge = [Node(0, 0.0, (), (1e16,)), Node(1, 0.0, (), (1.0,))]
    with pytest.raises(ExtractionError, match="every one uses at least"):
        extract(Graph(2, huge, [0, 1], (1e16,)))


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


def test_no_time_gives_a_valid_choice_no_worse_than_the_initial_one() -> None:
    draw = random.Random(11)
    graph, initial = folding([float(draw.randint(1, 60)) for _ in range(60)], other_use=True, room=100.0)
    assert extract(graph, initial=initial, time_limit=0).cost <= 180
    assert extract(graph, time_limit=0).cost <= 180


def test_an_initial_choice_of_infinite_cost_or_beyond_the_limits_is_only_a_start() -> None:
    nodes = [Node(0, math.inf, ()), Node(0, 5.0, (), (1.0,)), Node(0, 1.0, (), (9.0,))]
    assert extract(Graph(1, nodes, [0], (4.0,)), initial={0: 0}).nodes == {0: 1}
    assert extract(Graph(1, nodes, [0], (4.0,)), initial={0: 2}).nodes == {0: 1}


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
