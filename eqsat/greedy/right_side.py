"""The right side of a match as drafts of a term graph.

The columns of a firing stand in the order that `eqsat.language.building` documents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from eqsat.greedy.drafts import DraftIndex
from eqsat.greedy.named_sizes import concrete, named_sizes
from eqsat.language.construction import Construction, Existing, Item, Loop, Made, Reference, Shared, Stored, Value
from eqsat.language.firing import Firing
from eqsat.terms.terms import CONS, LITERAL, PROJECTION

_ABSENT, _NIL = 0, 1


class RightSide:
    """Drafts the right side of one firing over the classes that its left side matched."""

    def __init__(self, graph: DraftIndex, firing: Firing, number: int, bindings: Mapping[str, int], known: Callable[[int], int | None]) -> None:
        """`known` tells, by the handle of a literal, the class that has its elements already."""
        self._graph = graph
        self._firing = firing
        self._number = number
        self._bindings = bindings
        self._known = known
        self._columns: Callable[[int], int] = lambda index: firing.fired.column(number, index)
        self._next = 0
        self._loops = 0
        self._literals: list[int] = []
        self._nodes: list[tuple[int, list[int]]] = []  # by node, its class and those of its outputs
        self._items: Sequence[int] = ()
        self._shared: Sequence[int] = ()

    def roots(self) -> list[tuple[int, int]]:
        """Returns each root of the left side with the class that takes its place."""
        compiled = self._firing.compiled
        self._make(compiled.construction)
        return [(self._bindings[variable], self._value(compiled.construction.roots[root])) for root, variable in compiled.pattern.roots.items()]

    def _take(self) -> int:
        self._next += 1
        return self._columns(self._next - 1)

    def _make(self, construction: Construction) -> None:
        for _ in construction.literals:
            handle, fact = self._take(), self._take()
            known = self._known(handle) if self._graph.terms.literals.get(handle).concrete else None
            self._literals.append(self._graph.draft(LITERAL, (handle,), (), fact) if known is None else known)
        for made in construction.nodes:
            self._node(made)

    def _reference(self, reference: Reference) -> int:
        match reference:
            case Existing(variable):
                return self._bindings[variable]
            case Stored(number):
                return self._literals[number]
            case Value(node, output):
                made, outputs = self._nodes[node]
                return made if output is None else outputs[output]
            case Item(number):
                return self._items[number]
            case Shared(number):
                return self._shared[number]
            case _:
                return _ABSENT

    def _value(self, reference: Reference) -> int:
        """Returns the class of a reference. A value of the same elements takes the place of a list
        of named sizes, which can not be stored.
        """
        eclass = self._reference(reference)
        sizes = named_sizes(self._graph, eclass)
        known = None if sizes is None else self._known(sizes)
        return eclass if known is None else known

    def _node(self, made: Made) -> None:
        graph = self._graph
        data = tuple(self._take() for _ in made.attributes)
        head = graph.terms.signature(made.signature)
        children = [self._reference(reference) for reference in made.inputs]
        if concrete(graph, head, data, tuple(children)) is None:
            children = [self._value(reference) for reference in made.inputs]
        if made.signature.rest:
            tail = self._loop(made.tail) if isinstance(made.tail, Loop) else _NIL if made.tail is None else self._bindings[made.tail]
            for reference in reversed(made.items):
                tail = graph.draft(CONS, (), (self._value(reference), tail), self._take())
            children.append(tail)
        node = graph.draft(head, data, tuple(children), self._take())
        outputs = [graph.draft(PROJECTION, (output,), (node,), self._take()) for output in range(0 if made.signature.single else made.outputs)]
        self._nodes.append((node, outputs))

    def _loop(self, loop: Loop) -> int:
        """Drafts a list item by item. Returns its class."""
        graph, number, listed = self._graph, self._number, self._loops
        self._loops += 1
        fact = self._take()
        chains = [graph.items(self._bindings[variable], len(graph.facts))[0] for variable in loop.lists]
        shared = [self._reference(reference) for reference in loop.shared]
        values: list[int] = []
        facts = [fact]
        for position, items in enumerate(zip(*chains, strict=True)):
            one = RightSide(graph, self._firing, number, self._bindings, self._known)
            one._columns = self._item_column(listed, position)
            one._items, one._shared = items, shared
            one._make(loop.body)
            values.append(one._value(loop.body.roots[""]))
            facts.append(one._take())
        tail = _NIL
        for value, own in zip(reversed(values), reversed(facts[:-1]), strict=True):
            tail = graph.draft(CONS, (), (value, tail), own)
        return tail

    def _item_column(self, listed: int, position: int) -> Callable[[int], int]:
        return lambda index: self._firing.fired.item(self._number, listed, position, index)
