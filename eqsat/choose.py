"""Choosing: a saturated e-graph comes in, one term for each class that the outputs need goes out.

Every term gets its price (kernel launches, then bytes moved) and what it stores; constant classes get one more
way to be had: folded, which launches nothing and stores its bytes. The extractor picks; what is stored may
never be more than the limit, whatever it would save.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from eqsat.dims import Dim, evaluate, symbols
from eqsat.egraph import EGraph
from eqsat.encode import Encoding
from eqsat.extract import Choice, Graph, Method, Node, extract
from eqsat.facts import UNKNOWN, Fact, byte_size
from eqsat.forms import Written
from eqsat.operators import AttributeValue
from eqsat.recipes import Recipes
from eqsat.spelling import write
from eqsat.tensors import dense_bytes
from eqsat.terms import CONSTANT, FOLDED, LITERAL, OUTPUTS, PROJECTION, Term
from eqsat.traits import NEWEST

_WORK = 1.0  # of the exact solver: seconds where an e-graph resists it, which few do
_ABSURD = 1 << 60  # bytes; models may state sizes that no machine has
_USUAL_SIZE = 64  # of a dimension that has only a name, where nothing better is said


@dataclass(slots=True)
class Chosen:
    """One term for each needed class, children before parents, what the choice costs, and the priced graph that it was made from."""

    terms: dict[int, Term]
    choice: Choice
    graph: Graph


@dataclass(slots=True)
class Prices:
    """What decides: launches of a term, bodies counted inside, and sizes assumed for names."""

    launches: Callable[[Term], int]
    sizes: Mapping[str, int]


class Chooser:
    """Chooses from one e-graph, again and again as more becomes known of what folding yields."""

    def __init__(self, encoding: Encoding, egraph: EGraph, prices: Prices, fold_limit: int, opset: int) -> None:
        self._encoding = encoding
        self._egraph = egraph
        self._prices = prices
        self._fold_limit = fold_limit  # bytes
        self._opset = opset
        self.original = original_terms(encoding, egraph)
        # What the original does not have, its opset must be able to say.
        own = own_terms(encoding, egraph)
        self._unwritable = self._not_writable([term for term in egraph.terms if term.head >= 0 and term not in own])
        self.folded_bytes: dict[int, float] = {}  # by class, as evaluation found it; infinite where it failed
        self.ways = list(egraph.terms)
        """All terms to choose from; those that are folded follow those of the e-graph."""
        stored = {term.eclass for term in egraph.terms if term.head in (CONSTANT, LITERAL) and self._storage(term) < math.inf}
        self.witness: dict[int, int] = {}  # by class that can be folded, the reference of the value to evaluate
        for reference in foldable(encoding, fold_limit):
            eclass = egraph.class_of[reference]
            if eclass not in stored and eclass not in self.witness:
                self.witness[eclass] = reference
                self.ways.append(Term(FOLDED, (), (), eclass))
        self.recipes = Recipes(encoding, egraph, {*stored, *self.witness}, fold_limit)
        self.ways += [Term(FOLDED, (), (), eclass) for eclass in self.recipes.values]

    def _not_writable(self, terms: list[Term]) -> set[Term]:
        # The answer depends on what is known of the children alone, and repeated layers ask the same again and again.
        known: dict[tuple[int, tuple[int, ...], tuple[int, ...]], bool] = {}
        found: set[Term] = set()
        for term in terms:
            key = term.head, term.data, tuple(self._egraph.facts[child] for child in term.children)
            if key not in known:
                known[key] = written(self._encoding, self._egraph, term, self._opset) is None
            if known[key]:
                found.add(term)
        return found

    def fact(self, eclass: int) -> Fact:
        """What is known of a class of values."""
        knowledge = self._encoding.terms.facts.get(self._egraph.facts[eclass])
        return knowledge if isinstance(knowledge, Fact) else UNKNOWN

    def stored_bytes(self, eclass: int) -> float:
        """What folding a class is thought to store: as evaluation found it, or as its type says."""
        known = self.folded_bytes.get(eclass)
        return known if known is not None else float(min(byte_size(self.fact(eclass)) or 0, _ABSURD))

    def choose(self, roots: list[int], stored: float, time_limit: float | None = None, method: Method = "exact") -> Chosen:
        """The cheapest choice for `roots`, as a method of extraction finds it, that stores at most `stored` bytes."""
        nodes: list[Node] = []
        initial: dict[int, int] = {}
        # What is folded is held in memory all at once: a second limit, where it could be reached.
        folding = sum(self.stored_bytes(term.eclass) for term in self.ways if term.head == FOLDED) > self._fold_limit / 2
        for index, term in enumerate(self.ways):
            if self.original.get(term.eclass) is term:
                initial[term.eclass] = index
            storage = self._storage(term)
            if math.isinf(storage):
                nodes.append(Node(term.eclass, math.inf, term.children, (0.0,) * (1 + folding)))
            else:
                launches, moved = self._cost(term)
                amounts = (storage, storage if term.head == FOLDED else 0.0) if folding else (storage,)
                nodes.append(Node(term.eclass, launches, term.children, amounts, moved))
        graph = Graph(len(self._egraph.facts), nodes, roots, (stored, self._fold_limit / 2) if folding else (stored,))
        choice = extract(graph, method=method, initial=initial, time_limit=time_limit, work=_WORK)
        return Chosen({eclass: self.ways[index] for eclass, index in choice.nodes.items()}, choice, graph)

    def _storage(self, term: Term) -> float:
        encoding = self._encoding
        if term in self._unwritable:
            return math.inf
        if term.head == CONSTANT:
            return 0.0 if term.data[0] in encoding.captured else float(min(encoding.contents[term.data[0]][1].tensor.nbytes, _ABSURD))
        if term.head == LITERAL:
            literal = encoding.terms.literals.get(term.data[0])
            return float(dense_bytes(literal.dtype, math.prod(literal.shape))) if literal.concrete else math.inf
        if term.head == FOLDED:
            return self.stored_bytes(term.eclass)
        return 0.0

    def _cost(self, term: Term) -> tuple[float, float]:
        if term.head < 0:
            return 0.0, 0.0
        # Every value that a term reads or writes is moved once.
        moved = self._moved(self._egraph.facts[term.eclass]) + sum(self._moved(self._egraph.facts[child]) for child in term.children)
        return float(min(self._prices.launches(term), _ABSURD)), moved

    def _moved(self, handle: int) -> float:
        terms = self._encoding.terms
        knowledge = terms.facts.get(handle)
        if knowledge is None:
            return 0.0
        if isinstance(knowledge, Fact):
            return self._bytes(knowledge)
        if isinstance(knowledge, tuple):
            return sum(self._bytes(fact) for fact in knowledge)
        return sum(self._moved(head) for head in terms.chain(handle))

    def _bytes(self, fact: Fact) -> float:
        if fact.shape is None or not fact.dtype:
            return 0.0
        count = 1
        for size in fact.shape:
            count *= self._size(size)
        return float(min(dense_bytes(fact.dtype, count), _ABSURD))

    def _size(self, size: Dim) -> int:
        if size is None:
            return _USUAL_SIZE
        if isinstance(size, int):
            return max(size, 0)  # a model may state what can not be: it will fail when it runs, not here
        found = evaluate(size, {name: self._prices.sizes.get(name, _USUAL_SIZE) for name in symbols(size)})
        return max(found or 0, 0)


def own_terms(encoding: Encoding, egraph: EGraph) -> dict[Term, None]:
    """The terms that the original has, in its order."""
    by_key = {(term.head, term.data, term.children): term for term in egraph.terms}
    return {by_key[entry.head, entry.data, tuple(egraph.class_of[child] for child in entry.children)]: None for entry in encoding.entries}


def original_terms(encoding: Encoding, egraph: EGraph) -> dict[int, Term]:
    """For each class the first of the original's own terms for it: a choice that is valid and has no cycles."""
    found: dict[int, Term] = {}
    for term in own_terms(encoding, egraph):
        found.setdefault(term.eclass, term)
    return found


def written(encoding: Encoding, egraph: EGraph, term: Term, opset: int) -> Written | None:
    """How an opset spells a term that the original does not have, given what is known of its children; None where it can not."""
    terms = encoding.terms
    signature = terms.signatures[term.head]
    if signature.lawless or not signature.operator.pure:
        return Written(signature.operator, {}, ())  # only the original has such terms: another is one of them with equal children
    if not signature.operator.standard or signature.operator.opset != NEWEST:
        return None
    attributes: dict[str, AttributeValue] = {}
    outputs = 1 if signature.single else 0
    for name, handle in zip(signature.attributes, term.data, strict=True):
        value = terms.attributes.get(handle)
        if name == OUTPUTS and isinstance(value, tuple):
            outputs = len(value)
        elif value is not None and not name.startswith("#"):
            attributes[name] = value
    handles = [egraph.facts[child] for child in term.children[: signature.inputs]]
    if signature.rest:
        handles += terms.chain(egraph.facts[term.children[-1]])
    facts = [knowledge if isinstance(knowledge := terms.facts.get(handle), Fact) else None for handle in handles]
    while facts and facts[-1] is None:
        facts.pop()
    return write(signature.operator, attributes, facts, max(outputs, 1), opset)


def foldable(encoding: Encoding, limit: int) -> list[int]:
    """The references of constant tensors whose evaluation needs no value above `limit` bytes."""
    heavy: set[int] = set()
    found: list[int] = []
    terms = encoding.terms
    for entry in encoding.entries:
        knowledge = terms.facts.get(encoding.facts[entry.eclass])
        facts = (knowledge,) if isinstance(knowledge, Fact) else knowledge if isinstance(knowledge, tuple) else ()
        if any((byte_size(fact) or 0) > limit for fact in facts) or any(child in heavy for child in entry.children):
            heavy.add(entry.eclass)
        elif isinstance(knowledge, Fact) and knowledge.const and knowledge.other is None and (entry.head >= 0 or entry.head == PROJECTION):
            found.append(entry.eclass)
    return found
