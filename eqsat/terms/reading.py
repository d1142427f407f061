"""Reading terms: their attributes, named outputs and inputs, and the classes they can build."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence

from eqsat.facts.fact import Fact
from eqsat.operators import AttributeValue
from eqsat.terms.terms import CONS, OUTPUTS, Signature, Term, Terms


def term_attributes(terms: Terms, head: int, data: Sequence[int]) -> dict[str, AttributeValue]:
    """Returns the attributes that have a value, by name, without columns that ONNX lacks."""
    names = terms.signatures[head].attributes
    values = ((name, terms.attributes.get(handle)) for name, handle in zip(names, data, strict=True))
    return {name: value for name, value in values if value is not None and not name.startswith("#")}


def term_outputs(terms: Terms, head: int, data: Sequence[int]) -> tuple[int, ...] | None:
    """Returns a flag for each output that a node may name; None if the term does not tell."""
    names = terms.signatures[head].attributes
    if OUTPUTS not in names:
        return None
    flags = terms.attributes.get(data[names.index(OUTPUTS)])
    assert isinstance(flags, tuple)
    return tuple(int(flag) for flag in flags)


def term_inputs(signature: Signature, term: Term, cell: Callable[[int], Term]) -> list[int]:
    """Returns the classes of all inputs, those in the list included.

    `cell` gives the link or the end of a list by its class.
    """
    classes = list(term.children[: signature.inputs])
    if signature.rest:
        link = cell(term.children[-1])
        while link.head == CONS:
            classes.append(link.children[0])
            link = cell(link.children[1])
    return classes


def input_facts(terms: Terms, handles: Iterable[int]) -> tuple[Fact | None, ...]:
    """Returns the facts of a node's inputs from their handles, without absent ones at the end."""
    facts = [terms.value_fact(handle) for handle in handles]
    while facts and facts[-1] is None:
        facts.pop()
    return tuple(facts)


def reached(roots: Iterable[int], below: Callable[[int], Iterable[int]]) -> set[int]:
    """Returns the roots and all that is below them; `below` gives what is right below one."""
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        current = waiting.pop()
        if current not in found:
            found.add(current)
            waiting += below(current)
    return found


def buildable(terms: Iterable[Term], given: Container[int]) -> dict[int, Term]:
    """Returns, by class, a term whose children are all given or buildable.

    Given classes are left out. Breadth-first search keeps the chains short.
    """
    users: dict[int, list[int]] = {}
    missing: list[int] = []
    ready: list[int] = []
    wanted = [term for term in terms if term.eclass not in given]
    for number, term in enumerate(wanted):
        children = {child for child in term.children if child not in given}
        missing.append(len(children))
        for child in children:
            users.setdefault(child, []).append(number)
        if not children:
            ready.append(number)
    found: dict[int, Term] = {}
    while ready:
        following: list[int] = []
        for number in ready:
            term = wanted[number]
            if term.eclass in found:
                continue
            found[term.eclass] = term
            for user in users.get(term.eclass, ()):
                missing[user] -= 1
                if not missing[user]:
                    following.append(user)
        ready = following
    return found
