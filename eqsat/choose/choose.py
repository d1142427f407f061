"""Choosing: extraction picks one term for each class that the outputs need.

Every term has a price under the objective and a number of stored bytes. A constant class may also
be folded: that takes no time but stores its bytes. The extractor minimizes the price. The stored
bytes never exceed the limit, even if that would lower the price.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from eqsat.choose.extractions import Extractions
from eqsat.choose.fusions import Fusions
from eqsat.choose.group_problem import Portion, Solved
from eqsat.choose.groups import Group, added, allotted, joined, readers_of_inputs
from eqsat.choose.made_constants import MadeConstants
from eqsat.choose.prices import Prices
from eqsat.choose.writable import unwritable
from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.extract import Choice, ExtractionError, Graph, Method, Node
from eqsat.extract.graph import walk
from eqsat.facts.fact import UNKNOWN, Fact, byte_size
from eqsat.frozen import mutable
from eqsat.model.tensors import dense_bytes
from eqsat.runtime.worker import Worker
from eqsat.terms.reading import buildable, reached
from eqsat.terms.terms import CONSTANT, FOLDED, FUSED, INPUT, LITERAL, PROJECTION, Term

_WORK = 0.5  # solver seconds for an e-graph that is hard to solve; such e-graphs are rare
_GAP = 0.0005  # share of the cost; no prediction distinguishes choices that are so close
ROUNDS = 3
"""The rounds of choosing again after finding fusions that cost time."""
_ABSURD = 1 << 60  # bytes; models may declare sizes that no machine has


@mutable
class Chosen:
    """A choice, and the graph from which it was chosen."""

    terms: list[dict[int, Term]]
    """For each group, one term for each class that the group needs, children first."""
    choice: Choice
    graph: Graph
    before: float
    """The cost of the original's own terms."""
    added: float
    """The bytes that all copies of the groups store more than now."""
    room: float
    """The limit of these bytes. It is the one asked for, or a higher one where even a choice that
    stores nothing would exceed that."""
    portions: Sequence[Portion] = ()
    """For each group, the problem that was solved."""
    choices: Sequence[Choice] = ()
    """For each group, the choice of its problem."""


class Chooser:
    """Chooses from one e-graph, again and again as evaluation finds the sizes of constants."""

    def __init__(self, prices: Prices, fold_limit: int, opset: int, worker: Worker, extractions: Extractions | None = None, proof: float = 0.0) -> None:
        """`proof`: solver seconds where costs are predictions."""
        encoding, egraph = prices.encoding, prices.egraph
        self._extractions = Extractions() if extractions is None else extractions
        self._encoding = encoding
        self._egraph = egraph
        self.prices = prices
        self._fold_limit = fold_limit  # bytes
        self._proof = proof
        own = own_terms(encoding, egraph) if egraph.kept is None else dict.fromkeys(egraph.kept)
        made = [term for term in egraph.terms if term not in own]
        self._barred = unwritable(prices, (term for term in made if term.head >= 0), opset, worker) if egraph.kept is None else set(made)
        # The first choice: the original's first term for each class, or what a destructive engine
        # has left. It is valid and has no cycles.
        self.first: dict[int, Term] = {}
        for term in own:
            self.first.setdefault(term.eclass, term)
        # The bytes of a class after evaluation, infinite if evaluation failed.
        self.folded_bytes: dict[int, float] = {}
        # The last choice for each group, by its number: without a limit, and within one.
        self._free: dict[int, Solved] = {}
        self._limited: dict[int, Solved] = {}
        self.ways = list(egraph.terms)
        """The terms to choose from: those of the e-graph, the folded ones, then the fused ones."""
        places = {id(term): place for place, term in enumerate(self.ways)}
        self._own_places = {term: places[id(term)] for term in own}
        # By class, each with its rank in the original. Of the constants of a class, any choice can
        # take the first; equal integers of all regions are in one class.
        self._own_of: dict[int, list[tuple[int, Term]]] = {}
        stored_once: set[int] = set()
        for rank, term in enumerate(own):
            if term.head == CONSTANT:
                if term.eclass in stored_once:
                    continue
                stored_once.add(term.eclass)
            self._own_of.setdefault(term.eclass, []).append((rank, term))
        stored = {term.eclass for term in egraph.terms if term.head in (CONSTANT, LITERAL) and self._storage(term) < math.inf}
        # For each foldable class, the reference of the value to evaluate.
        self.witness: dict[int, int] = {}
        for reference in foldable(encoding, fold_limit):
            eclass = egraph.class_of[reference]
            if eclass not in stored and eclass not in self.witness:
                self.witness[eclass] = reference
                self.ways.append(Term(FOLDED, (), (), eclass))
        self.made_constants = MadeConstants(encoding, egraph, {*stored, *self.witness}, fold_limit)
        self.ways += [Term(FOLDED, (), (), eclass) for eclass in self.made_constants.values]
        self.fusions = Fusions(prices, self.ways)
        self.ways += [way for way in self.fusions.savings() if not any(self.ways[place] in self._barred for place in way.data)]

    def fact(self, eclass: int) -> Fact:
        """Returns the fact of a class of values."""
        return self._encoding.terms.value_fact(self._egraph.facts[eclass]) or UNKNOWN

    def stored_bytes(self, eclass: int) -> float:
        """Returns the bytes that folding a class stores: as evaluated, or else by its type."""
        known = self.folded_bytes.get(eclass)
        return known if known is not None else float(min(byte_size(self.fact(eclass)) or 0, _ABSURD))

    @property
    def barred_heads(self) -> dict[int, Term]:
        """Returns by head a term that the result may not have, if it may have none of that head that
        rules have made.
        """
        found = {term.head: term for term in self._barred if term.head >= 0}
        if found:
            for term in self._egraph.terms:
                if term.head in found and term not in self._barred and term not in self._own_places:
                    del found[term.head]
        return found

    @property
    def bounds(self) -> tuple[float, float]:
        """Returns the work of the solver on a choice, and the share of its cost by which it may
        miss the best one.
        """
        return (self._proof, _GAP) if self.prices.predicts else (_WORK, 0.0)

    def may_write(self, term: Term) -> bool:
        """Tells whether a choice may contain a term."""
        return not math.isinf(self._storage(term))

    def choose(self, groups: Sequence[Group], room: float, time_limit: float | None = None, method: Method = "exact") -> Chosen:
        """Returns the cheapest choice found for the roots of each group. All copies of the groups
        together store at most `room` bytes more than now.
        """
        # All folded constants are in memory at once. They have a second limit if they can reach it.
        folding = sum(self.stored_bytes(term.eclass) for term in self.ways if term.head == FOLDED) > self._fold_limit / 2
        nodes = [self._node(term, folding) for term in self.ways]
        classes = len(self._egraph.facts)
        twins = _twins(nodes)
        needless = twins.difference(self._own_places[term] for entries in self._own_of.values() for _, term in entries)
        places_of: dict[int, list[int]] = {}
        for place, node in enumerate(nodes):
            if place not in needless:
                places_of.setdefault(node.eclass, []).append(place)
        within = self._groups_of_ways(nodes, groups)
        spent = 0.0
        portions: list[Portion] = []
        for number, group in enumerate(groups):
            needed = _needed(group.roots, places_of, nodes, within, number)
            initial = self._initial(group, needed)
            hidden = twins.difference(initial.values())
            places = sorted(place for eclass in needed for place in places_of.get(eclass, ()) if within[place] >> number & 1 and place not in hidden)
            graph = Graph(classes, nodes, group.roots)
            before = math.fsum(nodes[place].cost for place in walk(graph, initial).values())
            portions.append(Portion(graph, places, needed, initial, before))

        def solve(known: dict[int, Solved], number: int, stored: float) -> Choice:
            nonlocal spent
            portion = portions[number]
            limits = (stored, self._fold_limit / 2)[: 1 + folding]
            graph = replace(portion.graph, limits=limits)
            solved = known.get(number)
            if solved is None or not solved.serves(graph, portion.places):
                left = None if time_limit is None else max(0.0, time_limit - spent)
                clock = time.perf_counter()
                solved = known[number] = Solved(graph, portion.places, self._extracted(portion, limits, left, method))
                spent += time.perf_counter() - clock
            return solved.choice

        choices, room = self._within(groups, portions, room, solve, method == "exact")
        terms = [
            {eclass: self.ways[place] for eclass, place in self._taken(portion, choice).items()} for portion, choice in zip(portions, choices, strict=True)
        ]
        roots = list(dict.fromkeys(root for group in groups for root in group.roots))
        graph = Graph(classes, nodes, roots, (math.fsum(group.stored for group in groups) + room, self._fold_limit / 2)[: 1 + folding])
        return Chosen(terms, joined(choices), graph, math.fsum(portion.before for portion in portions), added(groups, choices), room, portions, choices)

    def _within(
        self, groups: Sequence[Group], portions: Sequence[Portion], room: float, solve: Callable[[dict[int, Solved], int, float], Choice], sketches: bool
    ) -> tuple[list[Choice], float]:
        """Returns the choices for all groups, and the limit of the bytes that they store more than
        now. Where that is sure to be exceeded and `sketches` are allowed, least trees tell which groups
        want more than they get. Those are solved within the limit alone.
        """
        free: dict[int, Choice] = {}
        over = -room - math.fsum(group.copies * group.stored for group in groups)
        for number, group in enumerate(groups):
            if over > 0 and sketches:
                break  # even if all other groups stored nothing
            free[number] = solve(self._free, number, math.inf)
            over += group.copies * free[number].resources[0]
        if len(free) == len(groups) and added(groups, found := list(free.values())) <= room:
            return found, room
        wanted = [free[number].resources[0] if number in free else portion.least_storage() for number, portion in enumerate(portions)]
        for number, limit in enumerate(allotted(groups, wanted, room)):
            if number not in free and wanted[number] <= limit:
                free[number] = solve(self._free, number, math.inf)
                wanted[number] = free[number].resources[0]
        limits = allotted(groups, wanted, room)
        room = max(room, math.fsum(group.copies * (limit - group.stored) for group, limit in zip(groups, limits, strict=True)))
        fits = [number in free and free[number].resources[0] <= limit for number, limit in enumerate(limits)]
        return [free[number] if fits[number] else solve(self._limited, number, limit) for number, limit in enumerate(limits)], room

    def _taken(self, portion: Portion, choice: Choice) -> dict[int, int]:
        """Returns the terms of a choice by class, each fusion taken apart."""
        cyclic: ExtractionError | None = None
        for picks in self.fusions.apart(choice.nodes):
            try:
                return walk(portion.graph, picks)
            except ExtractionError as error:
                # A class inside a fusion, chosen otherwise, may need the class of the last node.
                cyclic = error
        assert cyclic is not None
        raise cyclic

    def _groups_of_ways(self, nodes: Sequence[Node], groups: Sequence[Group]) -> list[int]:
        """Returns for each way the groups that can make it of inputs that they may read, as bits.

        Regions share classes of small constants, and each may compute them from its own inputs. No
        region has to look at the ways of the others.
        """
        everywhere = (1 << len(groups)) - 1
        anyone, readers = readers_of_inputs(groups)
        readable = [readers.get(way.data[0], anyone) if way.head == INPUT else everywhere for way in self.ways]
        users: dict[int, list[int]] = {}
        for place, node in enumerate(nodes):
            for child in dict.fromkeys(node.children):
                users.setdefault(child, []).append(place)
        made: dict[int, int] = {}  # by class
        # Most ways are of one group or of all. Each set of groups is kept once, not with each way.
        kept: dict[int, int] = {}
        within = [0] * len(nodes)
        waiting = [place for place, node in enumerate(nodes) if not node.children]
        while waiting:
            place = waiting.pop()
            node = nodes[place]
            bits = readable[place]
            for child in node.children:
                bits &= made.get(child, 0)
            within[place] = bits = kept.setdefault(bits, bits)
            known = made.get(node.eclass, 0)
            if known | bits != known:
                made[node.eclass] = kept.setdefault(known | bits, known | bits)
                waiting += users.get(node.eclass, ())
        return within

    def _initial(self, group: Group, reached: set[int]) -> dict[int, int]:
        """Returns the original's choice for a group, by class."""
        if group.inputs is None:
            return {eclass: self._own_places[term] for eclass, term in self.first.items()}
        ranked = sorted(entry for eclass in reached for entry in self._own_of.get(eclass, ()))
        own = buildable((way for _, way in ranked if group.has(way)), ())
        return {eclass: self._own_places[way] for eclass, way in own.items()}

    def _extracted(self, portion: Portion, limits: tuple[float, ...], time_limit: float | None, method: Method) -> Choice:
        """Returns the best choice found for a portion within limits. A fusion can make a choice
        dearer than its nodes. In that case the first node of the fusion gets the extra cost, and
        extraction starts again.
        """
        graph, places = portion.graph, portion.places
        work, gap = self.bounds
        small, known = portion.excerpt()
        local = {place: number for number, place in enumerate(places)}
        nodes = list(small.nodes)
        found: list[tuple[float, int, Choice]] = []
        dearer: dict[int, float] = {}
        for turn in range(ROUNDS):
            for place in dearer:
                nodes[local[place]] = replace(nodes[local[place]], cost=graph.nodes[place].cost + dearer[place])
            choice = self._extractions.extract(Graph(small.classes, nodes, small.roots, limits), known, method, time_limit, work, gap)
            picks = {graph.nodes[places[number]].eclass: places[number] for number in choice.nodes.values()}
            forced = self.fusions.penalties(picks)
            cost = math.fsum([*(graph.nodes[place].cost for place in picks.values()), *forced.values()])
            found.append((cost, turn, replace(choice, nodes=picks)))
            if forced.keys() <= dearer.keys() or cost <= choice.bound + gap * portion.before:
                break
            dearer |= {place: extra for place, extra in self.fusions.foreseen(picks).items() if place in local}
        return min(found)[2]

    def _node(self, term: Term, folding: bool) -> Node:
        """Returns a way as a node of the extractor. `folding` tells whether folded bytes have a
        limit of their own.
        """
        storage = self._storage(term)
        if math.isinf(storage):
            return Node(term.eclass, math.inf, term.children, (0.0,) * (1 + folding))
        amounts = (storage, storage if term.head == FOLDED else 0.0) if folding else (storage,)
        cost, tie = self.fusions.price(term) if term.head == FUSED else self.prices.of(term, storage)
        return Node(term.eclass, cost, term.children, amounts, tie)

    def _storage(self, term: Term) -> float:
        encoding = self._encoding
        if term in self._barred:
            return math.inf
        if term.head == CONSTANT:
            return 0.0 if term.data[0] in encoding.captured else float(min(encoding.contents[term.data[0]][1].tensor.nbytes, _ABSURD))
        if term.head == LITERAL:
            literal = encoding.terms.literals.get(term.data[0])
            return float(dense_bytes(literal.dtype, math.prod(literal.shape))) if literal.concrete else math.inf
        if term.head == FOLDED:
            return self.stored_bytes(term.eclass)
        return 0.0


def _needed(roots: Iterable[int], places_of: Mapping[int, Sequence[int]], nodes: Sequence[Node], within: Sequence[int], group: int) -> set[int]:
    """Returns the classes that the roots of a group may need, those without a way included."""
    return reached(roots, lambda eclass: [child for place in places_of.get(eclass, ()) if within[place] >> group & 1 for child in nodes[place].children])


def _twins(nodes: Sequence[Node]) -> set[int]:
    """Returns the places of nodes without children that equal one before them. Each region has its
    own constants, and equal integers of all regions are in one class.
    """
    first: dict[Node, int] = {}
    return {place for place, node in enumerate(nodes) if not node.children and first.setdefault(node, place) != place}


def own_terms(encoding: Encoding, egraph: EGraph) -> dict[Term, None]:
    """Returns the terms of the original, in its order."""
    by_key = {(term.head, term.data, term.children): term for term in egraph.terms}
    return {by_key[entry.head, entry.data, tuple(egraph.class_of[child] for child in entry.children)]: None for entry in encoding.entries}


def foldable(encoding: Encoding, limit: int) -> list[int]:
    """Returns the references of constant tensors that their own nodes compute from stored constants,
    without a value above `limit` bytes. The sizes of an input may be known, but not by its nodes.
    """
    reached: set[int] = set()
    found: list[int] = []
    terms = encoding.terms
    for entry in encoding.entries:
        handle = encoding.facts[entry.eclass]
        value = terms.value_fact(handle) or UNKNOWN
        if (
            any((byte_size(fact) or 0) > limit for fact in terms.value_facts(handle))
            or not reached.issuperset(entry.children)
            or (entry.head == INPUT and not value.const)
        ):
            continue
        reached.add(entry.eclass)
        if value.const and value.other is None and (entry.head >= 0 or entry.head == PROJECTION):
            found.append(entry.eclass)
    return found
