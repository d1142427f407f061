"""Small random e-graphs of many shapes, each of which exercises one part of the extractor.

Exhaustive search can handle all of them. A shape takes a source of randomness and a cost for each
node; `FAMILIES` names the shapes, `COSTS` the kinds of costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

from eqsat.extract import Graph, Node, Term

Cost = Callable[[], float]

COSTS: dict[str, Callable[[Random], float]] = {
    "ones": lambda draw: 1.0,
    "few": lambda draw: draw.choice([0.0, 1.0, 2.0]),
    "integers": lambda draw: float(draw.randint(1, 40)),
    "decimals": lambda draw: draw.choice([0.0, 0.1, 0.2, 0.3, 0.7, 3.5, 11.0]),
    "mantissas": lambda draw: draw.random() * 2.0 ** draw.randint(-4, 4),
    "near": lambda draw: 1.0 + draw.randint(0, 3) * 2.0**-52,
    "infinite": lambda draw: math.inf if draw.random() < 0.15 else float(draw.randint(0, 5)),
}


def layered(draw: Random, cost: Cost) -> Graph:
    """Layers of classes whose nodes use classes of the layers below, with much sharing."""
    nodes: list[Node] = []
    layers: list[list[int]] = []
    classes = 0
    for depth in range(draw.randint(2, 4)):
        layer = list(range(classes, classes + draw.randint(1, 3)))
        classes += len(layer)
        below = [c for row in layers[-2:] for c in row]
        for c in layer:
            for _ in range(draw.choice([1, 2, 2, 3])):
                nodes.append(Node(c, cost(), tuple(draw.choices(below, k=draw.randint(1, 3))) if depth else ()))
        layers.append(layer)
    return Graph(classes, nodes, layers[-1])


def wild(draw: Random, cost: Cost) -> Graph:
    """Children are mostly earlier classes, sometimes any.

    Some graphs are cyclic, some have no choice at all.
    """
    classes = draw.randint(2, 8)
    rate = draw.choice([0.05, 0.2, 0.5])
    nodes: list[Node] = []
    for c in range(classes):
        for _ in range(draw.choice([1, 1, 2, 3, 4])):
            children = (draw.randrange(classes) if draw.random() < rate else draw.randrange(c) for _ in range(draw.choice([0, 1, 1, 2, 3]) if c else 0))
            nodes.append(Node(c, cost(), tuple(children)))
    draw.shuffle(nodes)
    return Graph(classes, nodes, [classes - 1, *(draw.randrange(classes) for _ in range(draw.choice([0, 0, 1, 3])))])


def tree(draw: Random, cost: Cost) -> Graph:
    """Every class except the root is the child of one node.

    So each class and node is an articulation point.
    """
    nodes = [Node(0, cost(), ())]
    classes = 1
    for _ in range(draw.randint(1, 6)):
        owner = draw.randrange(classes)
        children = tuple(range(classes, classes + draw.randint(0, 2)))
        classes += len(children)
        nodes.append(Node(owner, cost(), children))
        nodes += [Node(child, cost(), ()) for child in children for _ in range(draw.randint(1, 2))]
    return Graph(classes, nodes, [0])


def inverses(draw: Random, cost: Cost) -> Graph:
    """A chain in which every step can be undone, and some steps are fused.

    It is one strongly connected component.
    """
    length = draw.randint(3, 7)
    nodes = [Node(0, cost(), ())]
    for c in range(1, length):
        nodes += [Node(c, cost(), (c - 1,)), Node(c - 1, cost(), (c,))]
        if c > 1 and draw.random() < 0.6:
            nodes.append(Node(c, cost(), (c - 2, draw.randrange(c)) if draw.random() < 0.3 else (c - 2,)))
        if draw.random() < 0.2:
            nodes.append(Node(c, cost(), ()))
    return Graph(length, nodes, [length - 1, *(draw.randrange(length) for _ in range(draw.randint(0, 2)))])


def apart(draw: Random, cost: Cost) -> Graph:
    """Several graphs that share nothing, or only classes that are needed anyway."""
    nodes, roots = [Node(0, cost(), ()), Node(0, cost(), ())], [0]
    classes = 1
    for _ in range(draw.randint(2, 3)):
        part = draw.choice([layered, inverses, tree, merged])(draw, cost)
        if classes + part.classes > 12:
            continue
        for node in part.nodes:
            also = (0,) if draw.random() < 0.3 else ()
            nodes.append(Node(node.eclass + classes, node.cost, (*(child + classes for child in node.children), *also)))
        roots += [root + classes for root in part.roots]
        classes += part.classes
    return Graph(classes, nodes, roots)


def threaded(draw: Random, cost: Cost) -> Graph:
    """Classes with a choice alternate with classes of one node, most of which cost nothing."""
    nodes = [Node(0, cost(), ()), Node(0, cost(), ())]
    classes = 1
    for _ in range(draw.randint(2, 3)):
        below, links = list(range(classes)), range(classes, classes + 2)
        nodes += [Node(link, draw.choice([0.0, 0.0, cost()]), tuple(draw.choices(below, k=draw.randint(1, 2)))) for link in links]
        nodes += [Node(classes + 2, cost(), tuple(draw.sample([*below, *links, *links], k=draw.randint(1, 2)))) for _ in range(draw.randint(2, 3))]
        classes += 3
    return Graph(classes, nodes, [classes - 1, classes - 1 - draw.randrange(3)])


def rings(draw: Random, cost: Cost) -> Graph:
    """Several needed classes on one cycle.

    Each can come from the others, and one of them must come from outside.
    """
    length = draw.randint(2, 5)
    nodes: list[Node] = []
    for c in range(length):
        nodes += [Node(c, cost(), (draw.randrange(length),)) for _ in range(draw.randint(1, 3))]
        if draw.random() < 0.7 or not c:
            nodes.append(Node(c, 5 * cost(), draw.choice([(), (length,)])))
    nodes += [Node(length, cost(), ()), Node(length, cost(), (draw.randrange(length),))]
    return Graph(length + 1, nodes, draw.choices(range(length), k=draw.randint(1, length)))


def merged(draw: Random, cost: Cost) -> Graph:
    """Roots that are each a view of one of several shared classes.

    No single change finds a cover of least cost.
    """
    roots, shared = draw.randint(2, 4), draw.randint(2, 4)
    nodes = [Node(roots + s, 2 * cost(), ()) for s in range(shared)]
    for root in range(roots):
        nodes += [Node(root, draw.choice([0.0, cost()]), tuple(draw.sample(range(roots, roots + shared), k=draw.choice([1, 1, 2])))) for _ in range(2)]
        nodes.append(Node(root, 2 * cost(), ()))
    return Graph(roots + shared, nodes, list(range(roots)))


FAMILIES: dict[str, Callable[[Random, Cost], Graph]] = {shape.__name__: shape for shape in (layered, wild, tree, inverses, apart, threaded, rings, merged)}


def drawn(draw: Random, shape: str, kind: str | None = None, *, ties: bool = False) -> Graph:
    """Returns a graph of a shape, with costs of a kind, or of any kind."""
    costs = COSTS[kind or draw.choice(sorted(COSTS))]
    graph = FAMILIES[shape](draw, lambda: costs(draw))
    if not ties:
        return graph
    nodes = [Node(node.eclass, node.cost, node.children, (), draw.choice([0.0, 1.0, 2.5])) for node in graph.nodes]
    return Graph(graph.classes, nodes, graph.roots)


def with_resources(draw: Random, graph: Graph, count: int) -> Graph:
    """Returns the graph with resources that its nodes use."""
    amounts = draw.choice([[0.0, 1.0, 3.0, 10.0], [0.0, 0.1, 0.2, 0.3], [1.0, 1.0 + 2**-52, 2.0]])
    rows = [tuple(draw.choice(amounts) for _ in range(count)) if draw.random() < 0.9 else () for _ in graph.nodes]
    nodes = [Node(node.eclass, node.cost, node.children, row, node.tie) for node, row in zip(graph.nodes, rows, strict=True)]
    return Graph(graph.classes, nodes, graph.roots)


def with_terms(draw: Random, graph: Graph, choices: list[dict[int, int]], forbidding: float = 0.2) -> Graph:
    """Returns the graph with terms.

    Some choice has the nodes of most terms together; no choice has those of the others.
    """
    nodes = graph.nodes
    terms: list[Term] = []
    for _ in range(draw.randint(1, 5)):
        cost = math.inf if draw.random() < forbidding else draw.choice([-3.0, -1.0, -0.1, 0.5, 2.0, 7.0, draw.uniform(-2, 2)])
        together = draw.choice(choices)
        edges = [(together[child], n) for n in together.values() for child in nodes[n].children]
        if edges and draw.random() < 0.6:
            below, above = draw.choice(edges)
            between = tuple(draw.sample(sorted(together.values()), k=draw.choice([0, 0, 1])))
            terms.append(Term((below, *between, above), cost, draw.random() < 0.7))
        elif draw.random() < 0.8:
            terms.append(Term(tuple(draw.sample(sorted(together.values()), k=min(len(together), draw.randint(1, 3)))), cost))
        else:
            terms.append(Term(tuple(draw.choices(range(len(nodes)), k=2)), cost, draw.random() < 0.3))
    return Graph(graph.classes, nodes, graph.roots, graph.limits, tuple(terms))
