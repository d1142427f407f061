"""The result of a greedy run as an e-graph that leaves nothing to choose but folding."""

from __future__ import annotations

from collections.abc import Mapping

from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.greedy.named_sizes import spelled
from eqsat.greedy.term_graph import TermGraph
from eqsat.terms.reading import buildable
from eqsat.terms.terms import Term


def result(encoding: Encoding, graph: TermGraph) -> EGraph:
    """Returns the classes of an encoding's references, the terms that are left of them, and all
    terms of the original: values of the original are known by those.
    """
    count = len(encoding.facts)
    class_of = [graph.find(reference) for reference in range(count)]

    def here(term: Term) -> Term:
        return Term(term.head, term.data, tuple(class_of[child] for child in term.children), class_of[term.eclass])

    outputs = [class_of[encoding.values[name]] for name in encoding.graph.outputs]
    # A node that no rule has touched is written as it was, not in its normal form.
    formed = {form.eclass for form in encoding.forms}
    written = {term.eclass: term for entry in reversed(encoding.entries) if entry.eclass in formed and (term := here(entry)).eclass == entry.eclass}
    kept = _needed(outputs, graph, written)
    if not buildable(kept.values(), ()).keys() >= set(outputs):
        kept = _needed(outputs, graph, {})
    graph.keep()
    terms = dict.fromkeys([*kept.values(), *map(here, encoding.entries), *map(here, encoding.forms)])
    facts = [graph.facts[graph.find(eclass)] for eclass in range(len(graph.facts))]
    return EGraph(list(terms), facts, class_of, kept=list(kept.values()))


def _needed(outputs: list[int], graph: TermGraph, written: Mapping[int, Term]) -> dict[int, Term]:
    """Returns the term of each class that the outputs need, those in `written` first."""
    found: dict[int, Term] = {}
    waiting = list(outputs)
    while waiting:
        eclass = waiting.pop()
        if eclass not in found:
            found[eclass] = written.get(eclass) or spelled(graph, graph.term(eclass))
            waiting += found[eclass].children
    return found
