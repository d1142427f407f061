"""Writable terms: which terms the result may have, and what another one lacks.

A term that rules have made becomes a node of the model's opset, or the nodes of its definition. The
target must have a kernel for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from onnx import TensorProto

from eqsat.choose.available import alone, refused
from eqsat.choose.prices import Prices
from eqsat.cost.target import Target
from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.facts.fact import HALVES, Fact
from eqsat.frozen import frozen
from eqsat.operators import read_attributes
from eqsat.runtime.worker import Worker
from eqsat.spelling.definitions import define
from eqsat.spelling.opsets import write
from eqsat.terms.forms import Definition, Written, source_fact
from eqsat.terms.reading import input_facts, term_attributes, term_outputs
from eqsat.terms.terms import Term
from eqsat.traits import NEWEST


def written(encoding: Encoding, egraph: EGraph, term: Term, opset: int) -> Written | Definition | None:
    """Returns the spelling of a term that the original lacks, given the facts of its children. It
    is a node in the opset, or else the nodes of its definition. Returns None if the opset cannot
    spell it.
    """
    terms = encoding.terms
    signature = terms.signatures[term.head]
    operator = signature.operator
    if not _has_laws(encoding, term):
        # No rule makes such a term, so the original has an equal one.
        return Written(operator, {}, ())
    if operator.domain not in terms.written if operator.contributed else not operator.standard or operator.opset != NEWEST:
        return None
    node = (operator, term_attributes(terms, term.head, term.data), _inputs(encoding, egraph, term), _outputs(encoding, term), opset)
    return write(*node) or define(*node)


def _has_laws(encoding: Encoding, term: Term) -> bool:
    """Tells whether a rule may make such a term."""
    signature = encoding.terms.signatures[term.head]
    return signature.operator.pure and not signature.lawless


def _inputs(encoding: Encoding, egraph: EGraph, term: Term) -> tuple[Fact | None, ...]:
    """Returns the facts of a term's inputs, without absent inputs at the end."""
    terms = encoding.terms
    signature = terms.signatures[term.head]
    handles = [egraph.facts[child] for child in term.children[: signature.inputs]]
    if signature.rest:
        handles += terms.chain(egraph.facts[term.children[-1]])
    return input_facts(terms, handles)


def _outputs(encoding: Encoding, term: Term) -> int:
    """Returns the number of outputs that a term's node lists."""
    signature = encoding.terms.signatures[term.head]
    named = None if signature.single else term_outputs(encoding.terms, term.head, term.data)
    return len(named or (1,))


def unwritable(prices: Prices, made: Iterable[Term], opset: int, worker: Worker) -> set[Term]:
    """Returns the terms that the opset cannot spell, or for which the target lacks a kernel. The
    original has none of the terms.

    A missing kernel of ONNX Runtime matters only if it has one for each node of the original.
    Definitions are allowed only for the operators that the target assembles from them.
    """
    encoding = prices.encoding
    known = prices.shared.models
    found: set[Term] = set()
    models: dict[bytes, list[Term]] = {}
    for term in made:
        if not prices.runs(term):
            found.add(term)
        elif _has_laws(encoding, term):
            # The answer depends only on a term and the facts around it. Repeated layers share it.
            key = opset, prices.key(term)
            if key not in known:
                known[key] = _alone(prices, term, opset)
            model = known[key]
            if model is None:
                found.add(term)
            elif model:
                models.setdefault(model, []).append(term)
    lacking = refused(models, worker)
    if lacking and not refused(_own_nodes(prices), worker):
        found.update(term for model in lacking for term in models[model])
    return found


def _alone(prices: Prices, term: Term, opset: int) -> bytes | None:
    """Returns the single-node model that tells whether the target has a kernel for a term. It is empty
    if the answer does not matter, and None if the opset cannot spell the term.
    """
    encoding, egraph = prices.encoding, prices.egraph
    spelled = written(encoding, egraph, term, opset)
    if isinstance(spelled, Written):
        facts = _inputs(encoding, egraph, term)
        inputs = [source_fact(source, facts) for source in spelled.inputs]
        return alone(spelled.operator, spelled.attributes, asked(inputs, prices.target), _outputs(encoding, term)) or b""
    assembled = isinstance(spelled, Definition) and encoding.terms.signatures[term.head].operator.name in prices.target.assembles
    return b"" if assembled else None


def asked(inputs: Sequence[Fact | None], target: Target) -> list[Fact | None]:
    """Returns the inputs of a node about whose kernel ONNX Runtime's CPU provider is asked. That has few
    for 16-bit floats, so it is asked about float32 if the target is another device: what that lacks, the
    target itself tells.
    """
    if target.layouts:
        return list(inputs)
    return [fact._replace(dtype=int(TensorProto.FLOAT)) if fact is not None and fact.dtype in HALVES else fact for fact in inputs]


def _own_nodes(prices: Prices) -> Iterator[bytes]:
    """Yields the single-node models of the original's nodes."""
    encoding = prices.encoding
    for node in encoding.nodes.values():
        facts = [encoding.fact(name) if name else None for name in node.inputs]
        model = alone(node.operator, read_attributes(node.operator, node.proto.attribute), asked(facts, prices.target), len(node.outputs))
        if model is not None:
            yield model


@frozen
class Obstacle:
    """What the result lacks for a term."""

    operator: str
    opset: int | None = None
    """The oldest newer opset that can express the term and has a kernel for it."""
    domain: str | None = None
    """The domain that has to be allowed."""


def obstacle(prices: Prices, term: Term, opset: int, worker: Worker) -> Obstacle | None:
    """Returns what the result lacks for a term that rules have made, or None if it may have it. An
    obstacle without an opset or a domain is a kernel that the target lacks.
    """
    operator = prices.encoding.terms.signatures[term.head].operator
    if not unwritable(prices, [term], opset, worker):
        return None
    if operator.contributed and operator.domain not in prices.encoding.terms.written:
        return Obstacle(operator.full_name, domain=operator.domain)
    newer = (number for number in range(opset + 1, NEWEST + 1) if not unwritable(prices, [term], number, worker))
    return Obstacle(operator.full_name, next(newer, None) if prices.runs(term) else None)
