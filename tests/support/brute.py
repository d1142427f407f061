"""Exhaustive search of small e-graphs, written independently of the extractor.

The input is a `Graph`. The output is all its choices and the best of them, in exact fractions.
Nothing here uses the extractor's walk, its arithmetic or its check: sums are `fractions.Fraction`,
and a choice is acyclic if it can be consumed leaves first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import islice

from eqsat.extract import Choice, Graph, Node
from eqsat.extract.kernel import Kernel

Price = tuple[Fraction, Fraction]


def all_choices(graph: Graph) -> Iterator[dict[int, int]]:
    """Yields every acyclic choice of nodes of finite cost.

    It tries all nodes of all needed classes, and ignores limits and terms.
    """
    nodes_of: dict[int, list[int]] = {}
    for index, node in enumerate(graph.nodes):
        if math.isfinite(node.cost) and math.isfinite(node.tie):
            nodes_of.setdefault(node.eclass, []).append(index)

    def extend(picks: dict[int, int], open_classes: tuple[int, ...]) -> Iterator[dict[int, int]]:
        open_classes = tuple(c for c in dict.fromkeys(open_classes) if c not in picks)
        if not open_classes:
            if is_acyclic(graph, picks):
                yield picks
            return
        c, *rest = open_classes
        for n in nodes_of.get(c, ()):
            yield from extend({**picks, c: n}, (*rest, *graph.nodes[n].children))

    yield from extend({}, tuple(graph.roots))


def is_acyclic(graph: Graph, picks: Mapping[int, int]) -> bool:
    """Tells whether `picks` can be computed in some order."""
    left = dict(picks)
    while left:
        ready = [c for c, n in left.items() if not any(child in left for child in graph.nodes[n].children)]
        if not ready:
            return False
        for c in ready:
            del left[c]
    return True


def few_choices(graph: Graph, most: int = 3000) -> list[dict[int, int]] | None:
    """Returns all choices of a graph; None if there are more than `most`."""
    found = list(islice(all_choices(graph), most + 1))
    return found if len(found) <= most else None


def total(amounts: Iterable[float]) -> Fraction:
    """Returns the exact sum.

    Each float is an integer over a power of two, and so is the sum, over the largest of these
    powers.
    """
    ratios = [amount.as_integer_ratio() for amount in amounts]
    scale = max((below for _, below in ratios), default=1)
    return Fraction(sum(above * (scale // below) for above, below in ratios), scale)


def added(graph: Graph, picks: Mapping[int, int]) -> list[float]:
    """Returns the costs of the terms that apply to a choice."""
    chosen = set(picks.values())
    costs: list[float] = []
    for term in graph.terms:
        if not chosen.issuperset(term.nodes):
            continue
        first = graph.nodes[term.nodes[0]].eclass
        if term.sole and (first in graph.roots or [n for n in chosen if first in graph.nodes[n].children] != [term.nodes[-1]]):
            continue
        costs.append(term.cost)
    return costs


def price(graph: Graph, picks: Mapping[int, int]) -> Price | None:
    """Returns the exact sums of cost, terms included, and of tie; None for a forbidden choice."""
    extra = added(graph, picks)
    if math.inf in extra:
        return None
    chosen = [graph.nodes[n] for n in picks.values()]
    return total([*(node.cost for node in chosen), *extra]), total(node.tie for node in chosen)


def used(graph: Graph, picks: Mapping[int, int], resource: int) -> Fraction:
    """Returns the exact sum of a resource."""
    return total(graph.nodes[n].resources[resource] for n in picks.values() if graph.nodes[n].resources)


def fits(graph: Graph, picks: Mapping[int, int]) -> bool:
    """Tells whether a choice is within the limits."""
    return all(limit == math.inf or used(graph, picks, r) <= Fraction(limit) for r, limit in enumerate(graph.limits))


def lawful(graph: Graph, choices: list[dict[int, int]]) -> list[tuple[Price, dict[int, int]]]:
    """Returns the choices within the limits that no term forbids, with their prices."""
    return [(found, picks) for picks in choices if fits(graph, picks) and (found := price(graph, picks)) is not None]


def floats(exact: Price) -> tuple[float, float]:
    """Returns a price as the nearest floats."""
    return exact[0].numerator / exact[0].denominator, exact[1].numerator / exact[1].denominator


def tree_price(graph: Graph, picks: Mapping[int, int], c: int) -> Price:
    """Returns the cost of class c without sharing."""
    node = graph.nodes[picks[c]]
    below = [tree_price(graph, picks, child) for child in dict.fromkeys(node.children)]
    return Fraction(node.cost) + sum(p[0] for p in below), Fraction(node.tie) + sum(p[1] for p in below)


def as_graph(kernel: Kernel) -> Graph:
    """Returns a kernel as a graph whose costs are its weights.

    Its nodes are the ways that are left, class by class.
    """
    nodes = [Node(c, float(kernel.weight[n]), kernel.children[n]) for c, row in enumerate(kernel.ways) for n in row]
    return Graph(len(kernel.ways), nodes, kernel.roots)


def least_weight(kernel: Kernel) -> int | None:
    """Returns the least weight of a choice of a kernel with small integer weights.

    Returns None if it has no choice.
    """
    graph = as_graph(kernel)
    return min((sum(int(graph.nodes[n].cost) for n in picks.values()) for picks in all_choices(graph)), default=None)


def assert_right(graph: Graph, choices: list[dict[int, int]], found: Choice, *, optimal: bool = True) -> None:
    """Checks that `found` is one of all `choices`, allowed, and states its price.

    Its price is never below the best, and its bound never above the best.
    """
    prices = [(each, picks) for picks in choices if (each := price(graph, picks)) is not None]
    best = min(exact for exact, picks in prices if fits(graph, picks))
    assert found.nodes in choices, graph
    exact = price(graph, found.nodes)
    assert fits(graph, found.nodes) and exact is not None, graph
    assert (found.cost, found.tie) == floats(exact), graph
    assert found.bound <= floats(best)[0], graph
    assert found.status == "feasible" or exact == best, graph
    if found.bound_for == "all choices":
        assert found.bound <= floats(min(exact for exact, _ in prices))[0], f"the bound {found.bound} is for choices within the limits: {graph}"
    if optimal:
        assert (found.status, exact, found.bound) == ("optimal", best, found.cost), graph
