"""Each step of the kernel: it keeps the least weight and removes its ways; then the blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

import pytest

from eqsat.extract import Graph, plain
from eqsat.extract.blocks import Block, blocks
from eqsat.extract.kernel import Closures, Kernel, bits, reduce
from eqsat.extract.work import Work
from tests.support.brute import all_choices, as_graph, few_choices, is_acyclic, least_weight
from tests.support.drawn_graphs import FAMILIES, drawn
from tests.support.parameters import spread

Way = tuple[int, int, tuple[int, ...]]


def kernel_of(classes: int, roots: list[int], ways: list[Way]) -> Kernel:
    """Returns a kernel of the ways (class, weight, children)."""
    rows = [[n for n, way in enumerate(ways) if way[0] == c] for c in range(classes)]
    children = [tuple(dict.fromkeys(way[2])) for way in ways]
    return Kernel(roots, rows, [way[1] for way in ways], children, [(n,) for n in range(len(ways))])


def kernels(shape: str, count: int, kind: str | None = None) -> Iterator[tuple[Random, Kernel, int]]:
    """Yields random kernels with few choices, and the least weight of a choice."""
    draw = Random(f"kernels {shape}")
    while count:
        graph = drawn(draw, shape, kind or draw.choice(["ones", "few", "integers"]))
        if few_choices(graph, 300):
            kernel = kernel_of(graph.classes, list(dict.fromkeys(graph.roots)), [(n.eclass, int(n.cost), n.children) for n in graph.nodes])
            least = least_weight(kernel)
            assert least is not None
            count -= 1
            yield draw, kernel, least


def left(kernel: Kernel) -> list[int]:
    """Returns the ways that are left."""
    return sorted(n for row in kernel.ways for n in row)


# -- every step leaves the least weight
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", spread(sorted(FAMILIES), every=4))
@pytest.mark.parametrize("step", ["prune", "drop_cyclic", "dominate", "contract"])
def test_a_step_alone_leaves_the_least_weight(step: str, shape: str) -> None:
    changes = 0
    for _, kernel, least in kernels(shape, 50):
        if step == "prune":
            before = kernel.size()
            changed = kernel.prune()
            assert changed == (kernel.size() < before)
            assert all(kernel.ways[child] for n in left(kernel) for child in kernel.children[n])
        else:
            kernel.prune()
            closures = Closures(kernel)
            # `dominate` and `contract` expect from `reduce` that no way leads back to its own
            # class.
            while step != "drop_cyclic" and kernel.drop_cyclic(closures):
                kernel.prune()
                closures = Closures(kernel)
            before = kernel.size()
            changed = getattr(kernel, step)(closures)
            assert changed == (kernel.size() < before)
        assert least_weight(kernel) == least, as_graph(kernel)
        changes += changed
    assert changes or step in ("prune", "drop_cyclic") or shape not in ("apart", "layered", "threaded", "tree")


@pytest.mark.parametrize("shape", spread(sorted(FAMILIES), every=4))
def test_bounded_leaves_what_is_lighter_and_what_is_kept(shape: str) -> None:
    for draw, kernel, least in kernels(shape, 50):
        closures = reduce(kernel)
        bound = kernel.bound(closures)
        assert bound <= least
        ways = left(kernel)
        choices = list(all_choices(as_graph(kernel)))
        picks = [ways_of(kernel, choice) for choice in choices]
        chosen = draw.choice(picks)
        weight = sum(kernel.weight[n] for n in chosen)
        before = [[*row] for row in kernel.ways]
        changed = kernel.drop_heavy(closures, weight, set(chosen))
        assert changed == (left(kernel) != ways)
        assert set(chosen) <= set(left(kernel))
        gone = set(ways) - set(left(kernel))
        assert all(sum(kernel.weight[n] for n in other) >= weight for other in picks if gone.intersection(other))
        assert least_weight(kernel) == least
        # With no way to keep, a limit just above the least weight leaves all choices of that
        # weight.
        kernel.ways = before
        kernel.drop_heavy(closures, least + 1, set())
        assert all(set(other) <= set(left(kernel)) for other in picks if sum(kernel.weight[n] for n in other) == least)


def ways_of(kernel: Kernel, choice: dict[int, int]) -> list[int]:
    """Returns the ways of a kernel in a choice of its graph."""
    order = [n for row in kernel.ways for n in row]
    return [order[n] for n in choice.values()]


@pytest.mark.parametrize("shape", spread(sorted(FAMILIES), every=4))
def test_closures_are_in_every_choice(shape: str) -> None:
    for _, kernel, _ in kernels(shape, 30):
        kernel.prune()
        closures = Closures(kernel)
        graph = as_graph(kernel)
        for root in kernel.classes():
            alone = few_choices(Graph(graph.classes, graph.nodes, [root]), 300)
            if alone:
                common = set.intersection(*(set(picks) for picks in alone))
                assert root in bits(closures.of[root])
                assert set(bits(closures.of[root])) <= common, (graph, root)
        assert set(bits(closures.needed)) <= set.intersection(*(set(picks) for picks in all_choices(graph)))


@pytest.mark.parametrize("shape", spread(sorted(FAMILIES), every=4))
def test_what_is_reduced_stands_for_choices_of_the_same_weight(shape: str) -> None:
    for _, kernel, least in kernels(shape, 50):
        original = as_graph(kernel)
        order = [n for row in kernel.ways for n in row]
        number = {n: index for index, n in enumerate(order)}
        weights = list(kernel.weight)
        owner = list(kernel.owner)
        closures = reduce(kernel)
        assert not (kernel.drop_cyclic(closures) or kernel.dominate(closures) or kernel.contract(closures) or kernel.prune())
        assert least_weight(kernel) == least
        for choice in all_choices(as_graph(kernel)):
            ways = ways_of(kernel, choice)
            nodes = {n for way in ways for n in kernel.picks[way]}
            # `contract` puts a class without weight into all its users, so it may occur twice.
            assert sum(weights[n] for n in nodes) == sum(kernel.weight[way] for way in ways)
            picks = {owner[n]: number[n] for n in nodes}
            assert len(picks) == len(nodes) and set(original.roots) <= picks.keys()
            assert all(child in picks for n in picks.values() for child in original.nodes[n].children)
            assert is_acyclic(original, picks)


# -- every step removes what it is for
# --------------------------------------------------------------------------------------------------


def test_prune_drops_what_is_unreachable_unfounded_or_uses_itself() -> None:
    ways: list[Way] = [
        (0, 1, (1,)),
        (0, 1, (0,)),  # uses its own class
        (0, 1, (2,)),  # its child has no way
        (0, 1, (3,)),  # its child only has ways around a cycle
        (1, 1, ()),
        (3, 1, (4,)),
        (4, 1, (3,)),
        (5, 1, (1,)),  # no root reaches it
        (1, 1, (1, 6)),
        (6, 1, ()),  # reached only through a way that uses its own class
    ]
    kernel = kernel_of(7, [0], ways)
    assert kernel.prune()
    assert left(kernel) == [0, 4]
    assert kernel.classes() == [0, 1]
    assert not kernel.prune()


def test_unwind_drops_what_leads_back_whatever_is_chosen() -> None:
    """Both ways of class 2 need class 1, so a way of class 1 that needs class 2 is cyclic.

    If class 2 has another way, that way of class 1 stays.
    """
    ways: list[Way] = [(0, 1, (1,)), (1, 1, ()), (1, 0, (2,)), (2, 1, (1,)), (2, 1, (1, 3)), (3, 1, ())]
    kernel = kernel_of(4, [0], ways)
    assert not kernel.prune()
    assert kernel.drop_cyclic(Closures(kernel))
    assert left(kernel) == [0, 1, 3, 4, 5]
    kernel = kernel_of(4, [0], [*ways, (2, 1, (3,))])
    assert not kernel.drop_cyclic(Closures(kernel))


@pytest.mark.parametrize(
    ("ways", "gone"),
    [
        ([(0, 2, ()), (0, 1, ())], [0]),
        ([(0, 1, ()), (0, 1, ())], [1]),
        ([(0, 1, (1, 2)), (0, 1, (1,)), (1, 1, ()), (2, 1, ())], [0]),
        # Every choice with the first way contains the other way's children.
        ([(0, 2, (1,)), (0, 1, (2,)), (1, 1, (2,)), (1, 2, (2, 3)), (2, 5, ()), (3, 1, ())], [0]),
        # The missing child costs its tree, which is at most the difference.
        ([(0, 9, ()), (0, 1, (1,)), (1, 3, (2,)), (2, 5, ())], [0]),
        ([(0, 8, ()), (0, 1, (1,)), (1, 3, (2,)), (2, 5, ())], []),
        # Trees share nothing: this one counts class 2 twice.
        ([(0, 7, ()), (0, 1, (1, 2)), (1, 3, (2,)), (2, 2, ())], []),
        ([(0, 2, (1,)), (0, 1, (2,)), (1, 1, ()), (2, 1, ())], [0]),
    ],
)
def test_dominate_drops_what_another_stands_in_for(ways: list[Way], gone: list[int]) -> None:
    kernel = kernel_of(4, [0], ways)
    assert kernel.dominate(Closures(kernel)) == bool(gone)
    assert [n for n, way in enumerate(ways) if way[0] == 0 and n not in kernel.ways[0]] == gone


def test_dominate_takes_what_is_needed_anyway_for_free_unless_it_may_need_the_class() -> None:
    ways: list[Way] = [(0, 5, ()), (1, 2, ()), (1, 1, (0,))]
    kernel = kernel_of(2, [0, 1], ways)
    assert kernel.dominate(Closures(kernel))
    assert left(kernel) == [0, 2]
    cyclic = kernel_of(2, [0, 1], [*ways, (0, 1, (1,))])
    assert not cyclic.dominate(Closures(cyclic))


def test_dominate_pays_for_no_tree_that_may_need_the_class() -> None:
    """Classes 0 and 1 are one component. The tree of class 1 is cheap, but may close a cycle."""
    kernel = kernel_of(3, [2], [(0, 9, ()), (0, 1, (1,)), (1, 2, ()), (1, 0, (0,)), (2, 0, (0,)), (2, 1, (1,))])
    kernel.dominate(Closures(kernel))
    assert {0, 1} <= set(left(kernel))


def test_contract_takes_in_what_has_one_way_and_one_user_or_no_weight() -> None:
    kernel = kernel_of(3, [0], [(0, 1, (1,)), (0, 5, ()), (1, 2, (2,)), (2, 4, ())])
    assert kernel.contract(Closures(kernel))
    assert (kernel.weight[0], kernel.children[0], set(kernel.picks[0])) == (7, (), {0, 2, 3})
    assert kernel.classes() == [0]
    shared: list[Way] = [(0, 1, (1, 2)), (1, 1, (3,)), (1, 9, ()), (2, 1, (3,)), (2, 9, ())]
    kernel = kernel_of(4, [0], [*shared, (3, 1, ())])
    assert not kernel.contract(Closures(kernel))
    kernel = kernel_of(4, [0], [*shared, (3, 0, ())])
    assert kernel.contract(Closures(kernel))
    assert kernel.classes() == [0, 1, 2]
    assert [kernel.picks[n] for n in (1, 3)] == [(1, 5), (3, 5)]


def test_contract_leaves_what_is_needed() -> None:
    kernel = kernel_of(2, [0, 1], [(0, 1, (1,)), (0, 2, ()), (1, 0, ())])
    assert not kernel.contract(Closures(kernel))


def test_bounded_drops_what_is_too_heavy_with_all_that_it_brings() -> None:
    ways: list[Way] = [(0, 1, (1,)), (0, 6, ()), (0, 5, ()), (1, 2, (2,)), (1, 3, (2, 3)), (2, 2, ()), (3, 1, ())]
    kernel = kernel_of(4, [0], ways)
    closures = Closures(kernel)
    assert kernel.bound(closures) == 1
    assert kernel.drop_heavy(closures, 6, {2})
    assert kernel.ways[0] == [0, 2]
    assert kernel.ways[1] == [3]
    kernel = kernel_of(4, [0], ways)
    kernel.drop_heavy(Closures(kernel), 5, {2})
    assert kernel.ways[0] == [2]


# -- blocks
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", spread(sorted(FAMILIES), every=4))
def test_blocks_hold_everything_once_and_those_below_come_first(shape: str) -> None:
    for _, kernel, _ in kernels(shape, 60):
        closures = reduce(kernel)
        found = list(blocks(kernel, closures))
        ways = sorted(n for block in found for n in block.ways)
        assert ways == left(kernel)
        alone = list(bits(closures.needed)) if closures.needed.bit_count() == 1 else []
        assert sorted([*alone, *(c for block in found for c in block.classes)]) == kernel.classes()
        at_class = {c: position for position, block in enumerate(found) for c in block.classes}
        at_way = {n: position for position, block in enumerate(found) for n in block.ways}
        for position, block in enumerate(found):
            assert block.top_class < 0 or block.top_way < 0
            assert position < at_class.get(block.top_class, math.inf)
            assert position < at_way.get(block.top_way, math.inf)


def test_a_tree_is_cut_at_every_class_and_way() -> None:
    kernel = kernel_of(3, [0], [(0, 1, (1, 2)), (1, 1, ()), (1, 2, ()), (2, 1, ()), (2, 2, ())])
    found = list(blocks(kernel, Closures(kernel)))
    # All three classes are needed, and so is the edge from the source to each. Children that are
    # needed anyway connect nothing.
    assert all(len(block.classes) + len(block.ways) == 1 for block in found)
    optional = kernel_of(4, [3], [(3, 1, (0,)), (3, 9, ()), (0, 1, (1, 2)), (1, 1, ()), (1, 2, ()), (2, 1, ()), (2, 2, ())])
    found = list(blocks(optional, Closures(optional)))
    assert Block([1], [], -1, 2) in found and Block([2], [], -1, 2) in found
    assert Block([], [2], 0, -1) in found


def test_what_is_shared_stays_in_one_block() -> None:
    """Two users connect to class 3. Class 4 below it, and the class above them, are cut off."""
    ways: list[Way] = [(0, 1, (1, 2)), (0, 9, ()), (1, 1, (3,)), (1, 4, ()), (2, 1, (3,)), (2, 4, ()), (3, 1, (4,)), (3, 6, ()), (4, 1, ()), (4, 2, ())]
    kernel = kernel_of(5, [0], ways)
    found = list(blocks(kernel, Closures(kernel)))
    assert Block([1, 2, 3], [2, 4], -1, 0) in found
    assert Block([], [6], 3, -1) in found and Block([4], [], -1, 6) in found


# -- solving by blocks
# --------------------------------------------------------------------------------------------------


def test_trees_need_no_solver() -> None:
    for _, kernel, least in kernels("tree", 150):
        found = plain.solve(kernel, Work(None, 0.0))
        assert (found.weight, found.bound) == (least, least)


@pytest.mark.parametrize("shape", spread(sorted(FAMILIES), every=4))
@pytest.mark.parametrize("work", [0.0, 5.0])
def test_solve_gives_a_choice_and_a_bound(shape: str, work: float) -> None:
    for _, kernel, least in kernels(shape, 60):
        graph = as_graph(kernel)
        number = {n: index for index, n in enumerate(n for row in kernel.ways for n in row)}
        owner = list(kernel.owner)
        found = plain.solve(kernel, Work(None, work))
        assert found.bound <= least <= found.weight
        assert not work or found.bound == found.weight
        picks = {owner[n]: number[n] for n in found.picks}
        assert len(picks) == len(set(found.picks))
        assert is_acyclic(graph, picks)
        assert all(child in picks for n in picks.values() for child in graph.nodes[n].children)
        assert sum(graph.nodes[n].cost for n in picks.values()) == found.weight


def test_joined_parts_add_up() -> None:
    both = plain.joined([plain.Solution(3, 2, (1, 2)), plain.Solution(5, 5, (7,))])
    assert both == plain.Solution(8, 7, (1, 2, 7))
    assert plain.joined([]) == plain.Solution(0, 0, ())
