"""Opsets: reading nodes into the newest opset, and writing them in the opset of a model.

`read` and `write` take a node's operator, its attributes, input facts and the number of outputs.
They return a node of the other opset, or None if no equal one is known. The result computes the
same from the same inputs, wherever the given node is legal and the facts hold.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx import AttributeProto, defs

from eqsat.facts.fact import Fact, dtype_name
from eqsat.facts.inference import infer
from eqsat.facts.legality import illegal, type_rejection
from eqsat.operators import Attributes, AttributeValue, Operator, attribute_default, contributed_operator, find_operator, omitted, read_attributes
from eqsat.spelling.versions import CHANGES, HINT, NEGATIVE_AXES, NEWER_VALUES, RENAMED, lineage
from eqsat.terms.attribute_meaning import AXIS_ATTRIBUTES, is_default
from eqsat.terms.forms import Draft, Form, Source, Written
from eqsat.terms.terms import attribute_key
from eqsat.traits import NEWEST, PARAMETERS

_BODIES = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


def read(operator: Operator, attributes: Attributes, facts: Sequence[Fact | None], outputs: int) -> Form | None:
    """Return the node in the newest opset, or None if no operator there is known to mean the same.

    `attributes` come from `read_attributes`. `facts` has None for absent inputs. `outputs` counts
    the node's outputs without absent ones at the end. Nodes with bodies and impure nodes have no
    form. An operator of a runtime's own domain is read as rules know it. `operator.pure` must be false for nodes that are, or may be, in training mode.
    """
    if any(map(_hidden, attributes.values())):
        return None
    contributed = contributed_operator(operator.domain, operator.name)
    if contributed is not None:
        # An attribute that the schema leaves out has the default 0.
        known = {name: value for name, value in attributes.items() if value != 0 or attribute_default(contributed, name) is not None}
        draft = Draft(contributed, {**read_attributes(contributed, ()), **known}, _places(facts), facts, outputs)
        return Form(contributed, draft.attributes, tuple(draft.inputs)) if _legal(draft) else None
    if not operator.standard or not operator.pure:
        return None
    newest = find_operator("", RENAMED.get(operator.name, operator.name), NEWEST)
    if all(schema.since_version != operator.version for schema in lineage(newest.name)):
        return None
    known = {name: value for name, value in attributes.items() if name != HINT}
    draft = Draft(newest, known, _places(facts), facts, outputs)
    if not all(change.up(draft) for change in CHANGES.get(newest.name, ()) if change.version > operator.version):
        return None
    draft.attributes = {**read_attributes(newest, ()), **draft.attributes}
    if not _narrowed(draft, operator, newest) or type_rejection(newest, draft.facts) is not None:
        return None
    return Form(newest, dict(sorted(draft.attributes.items())), tuple(draft.inputs))


def _legal(draft: Draft) -> bool:
    """Tell whether a node of a runtime's own operator is as its schema describes it."""
    return _complete(draft, draft.operator) and type_rejection(draft.operator, draft.facts) is None


def _places(facts: Sequence[Fact | None]) -> list[Source]:
    return [None if fact is None else position for position, fact in enumerate(facts)]


def _hidden(value: AttributeValue) -> bool:
    return isinstance(value, AttributeProto) and (bool(value.ref_attr_name) or value.type in _BODIES)


def write(operator: Operator, attributes: Attributes, facts: Sequence[Fact | None], outputs: int, opset: int) -> Written | None:
    """Return a node of the newest opset in `opset`, or None if `opset` cannot express it.

    The arguments are as in `read`, for a standard operator of the newest opset. The result omits
    attributes that equal the defaults of its version, and inputs that became attributes.
    """
    target = operator if operator.contributed else _target(operator.name, opset)
    if target is None or not operator.ruled:
        return None
    full = {**read_attributes(operator, ()), **attributes}
    draft = Draft(operator, dict(full), _places(facts), facts, outputs)
    if target.version != operator.version:
        if any(_is_newer(operator.name, name, value, target.version) for name, value in full.items()) or (opset < NEGATIVE_AXES and _counts_from_end(draft)):
            return None
        if not all(change.down(draft) for change in reversed(CHANGES.get(operator.name, ())) if change.version > target.version):
            return None
        results = infer(operator, full, tuple(facts), outputs)
        if not _narrowed(draft, operator, target) or not _typed(draft, target, results) or _misnamed(target, facts, results):
            return None
    kept = {name: value for name, value in sorted(draft.attributes.items()) if not _is_declared(target, name, value)}
    return Written(target, kept, tuple(draft.inputs))


def _misnamed(target: Operator, facts: Sequence[Fact | None], results: Sequence[Fact]) -> bool:
    """Tell whether ONNX's inference gives an output size the name of another size.

    ONNX Runtime shares memory between values whose sizes have the same names. So it fails where
    these sizes differ. Only Slice of opset 10 does this: it keeps the names of the axes it cuts.
    """
    if (target.name, target.version) != ("Slice", 10):
        return False
    data, axes = facts[0], facts[3] if len(facts) > 3 else None
    if data is None or data.shape is None:
        return False
    made = results[0].shape or (None,) * len(data.shape)
    if axes is None or axes.ints is None:
        cut = set(range(len(data.shape)))
    else:
        cut = {axis % len(data.shape) for axis in axes.ints if isinstance(axis, int)}
    return any(not isinstance(data.shape[axis], int) and (made[axis] is None or made[axis] != data.shape[axis]) for axis in cut)


def _is_declared(target: Operator, name: str, value: AttributeValue) -> bool:
    default = attribute_default(target, name)
    return default is not None and attribute_key(default) == attribute_key(value) and omitted(target, name, value)


def _target(name: str, opset: int) -> Operator | None:
    for spelling in (name, *(old for old, new in RENAMED.items() if new == name)):
        target = find_operator("", spelling, opset)
        if target.schema is not None:
            return target if any(schema.since_version == target.version for schema in lineage(name)) else None
    return None


def _is_newer(operator: str, name: str, value: AttributeValue, version: int) -> bool:
    return isinstance(value, bytes) and NEWER_VALUES.get((operator, name), {}).get(value, 0) > version


def _counts_from_end(draft: Draft) -> bool:
    """Tell whether an axis is, or may be, negative."""
    name = draft.operator.name
    if any((name, attribute) in AXIS_ATTRIBUTES and _is_negative(value) for attribute, value in draft.attributes.items()):
        return True
    schema = draft.operator.schema
    assert schema is not None
    given = [position for position in PARAMETERS.get(name, ()) if schema.inputs[position].name in ("axes", "axis") and draft.fact(position) is not None]
    return any(min(draft.numbers(position) or (-1,)) < 0 for position in given)


def _is_negative(value: AttributeValue) -> bool:
    return any(isinstance(axis, int) and axis < 0 for axis in (value if isinstance(value, tuple) else (value,)))


def _narrowed(draft: Draft, source: Operator, target: Operator) -> bool:
    """Drop attributes without effect that the target lacks.

    Tell whether the target has the remaining ones.
    """
    assert target.schema is not None
    for name, value in list(draft.attributes.items()):
        if name not in target.schema.attributes and is_default(source, name, value):
            del draft.attributes[name]
    return _complete(draft, target)


def _complete(draft: Draft, target: Operator) -> bool:
    """Tell whether attributes, inputs and outputs satisfy the target's schema."""
    schema = target.schema
    assert schema is not None
    declared = schema.attributes
    if not draft.attributes.keys() <= declared.keys() or any(formal.required and name not in draft.attributes for name, formal in declared.items()):
        return False
    if not schema.min_input <= len(draft.inputs) <= schema.max_input or not schema.min_output <= draft.outputs <= schema.max_output:
        return False
    single = defs.OpSchema.FormalParameterOption.Single
    return all(source is not None or formal.option != single for formal, source in zip(schema.inputs, draft.inputs, strict=False))


def _typed(draft: Draft, target: Operator, results: Sequence[Fact]) -> bool:
    """Tell whether the target is known to accept the input types and to return the output types."""
    assert target.schema is not None
    facts = draft.facts
    if any(fact is not None and not fact.dtype for fact in facts) or illegal(target, draft.attributes, facts, draft.outputs) is not None:
        return False
    formals = target.schema.outputs
    return all(fact.dtype and f"tensor({dtype_name(fact.dtype)})" in formals[min(place, len(formals) - 1)].types for place, fact in enumerate(results))
