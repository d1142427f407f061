"""Shapes of named sizes in a term graph.

Rules see the sizes [N, 4, 64], as in normal forms. Only a Reshape or an Expand may have such a list
as its shape, and only if a list of numbers has the same meaning there, such as [0, 4, 64]. Numbers
take its place when the graph is written.
"""

from __future__ import annotations

from eqsat.egraph.shape_literals import realized
from eqsat.greedy.drafts import DraftIndex
from eqsat.terms.terms import LITERAL, Literal, Term, fact_of


def named_sizes(graph: DraftIndex, eclass: int) -> int | None:
    """Returns the handle of a class's literal that can not be stored, a list of named sizes, or None.

    In a saturated e-graph, other terms of the class may come before it.
    """
    handles = (term.data[0] for term in graph.made(eclass) if term.head == LITERAL)
    return next((handle for handle in handles if not graph.terms.literals.get(handle).concrete), None)


def is_symbolic(graph: DraftIndex, eclass: int) -> bool:
    """Tells whether a class has a literal that can not be stored: a list of named sizes."""
    return named_sizes(graph, eclass) is not None


def concrete(graph: DraftIndex, head: int, data: tuple[int, ...], children: tuple[int, ...]) -> Literal | None:
    """Returns the numbers that may take the place of the shape of a Reshape or an Expand, whose
    sizes are known but not all numbers. Returns None for other terms, or if there are none.
    """
    terms = graph.terms
    signature = terms.signatures[head]
    if signature.lawless or not signature.operator.standard or signature.operator.name not in ("Reshape", "Expand") or signature.inputs != 2:
        return None
    x, shape = map(graph.fact, children)
    if x is None or shape is None:
        return None
    attributes = {name: terms.attributes.get(handle) for name, handle in zip(signature.attributes, data, strict=True)}
    return realized(signature.operator.name, attributes, x, shape)


def spelled(graph: DraftIndex, term: Term) -> Term:
    """Returns a term with numbers in place of a list of named sizes. Their literal is a draft.

    Among these numbers a zero copies a size, whatever `allowzero` says of the list.
    """
    found = concrete(graph, term.head, term.data, term.children) if term.head >= 0 else None
    if found is None or not is_symbolic(graph, term.children[1]):
        return term
    terms = graph.terms
    literal = graph.draft(LITERAL, (terms.literal(found),), (), terms.fact(fact_of(found)))
    copies = terms.attribute(0)
    names = terms.signatures[term.head].attributes
    data = tuple(copies if name == "allowzero" else handle for name, handle in zip(names, term.data, strict=True))
    return Term(term.head, data, (term.children[0], literal), term.eclass)
