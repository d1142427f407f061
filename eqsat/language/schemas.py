"""Terms in rules by ONNX's schemas: known operators, the sorts of attributes and parameters, and
the problems of terms that a schema forbids.
"""

from __future__ import annotations

import functools

from onnx import defs

from eqsat.contributed import DOMAINS, contributed_names
from eqsat.language.problems import Report, nearest
from eqsat.language.sorts import Sort
from eqsat.language.syntax import Attribute, Mapped, Maybe, Spread, Term, Wildcard
from eqsat.operators import Operator, attribute_default, contributed_operator, find_operator
from eqsat.traits import DTYPE_ATTRIBUTES, NEWEST, PARAMETERS

_TYPES = defs.OpSchema.AttrType
_OPTIONS = defs.OpSchema.FormalParameterOption
_SORTS = {
    _TYPES.INT: Sort.INTEGER,
    _TYPES.FLOAT: Sort.FLOAT,
    _TYPES.STRING: Sort.STRING,
    _TYPES.INTS: Sort.LIST,
    _TYPES.FLOATS: Sort.LIST,
    _TYPES.STRINGS: Sort.LIST,
}
_ITEMS = {_TYPES.FLOATS: Sort.FLOAT, _TYPES.STRINGS: Sort.STRING}


@functools.cache
def standard_operators() -> tuple[str, ...]:
    """The names of ONNX's own operators in the newest opset."""
    names = {schema.name for schema in defs.get_all_schemas_with_history() if not schema.domain}
    return tuple(sorted(name for name in names if find_operator("", name, NEWEST).schema is not None))


def attribute_sort(operator: Operator, name: str) -> Sort | None:
    """The sort of an attribute; None for kinds that the language lacks (graphs, tensors, types)."""
    assert operator.schema is not None
    if (operator.name, name) in DTYPE_ATTRIBUTES:
        return Sort.DTYPE
    return _SORTS.get(operator.schema.attributes[name].type)


def item_sort(operator: Operator, name: str) -> Sort:
    """The sort of the items of a list attribute; integers for any other attribute."""
    assert operator.schema is not None
    return _ITEMS.get(operator.schema.attributes[name].type, Sort.INTEGER)


def parameter_sort(operator: Operator, position: int) -> Sort | None:
    """The sort of an input that is a parameter, a list or an integer; None for tensors."""
    rank = PARAMETERS.get(operator.name, {}).get(position)
    return None if rank is None else Sort.LIST if rank else Sort.INTEGER


def known_operator(term: Term, outputs: int, report: Report) -> Operator | None:
    """The operator of a term with `outputs` named outputs, or None. Reports everything that the
    schema forbids.
    """
    operator = _named(term, report)
    if operator is None:
        return None
    schema = operator.schema
    assert schema is not None
    if any(attribute.type in (_TYPES.GRAPH, _TYPES.GRAPHS) for attribute in schema.attributes.values()):
        report.add(term.place, f"{term.operator} has a body, which no rule can match or make")
        return None
    if not operator.pure:
        report.add(term.place, f"{term.operator} draws random numbers: equal terms are not equal values")
        return None
    _check_attributes(term, operator, report)
    _check_inputs(term, schema, report)
    _check_outputs(term, schema, outputs, report)
    return operator


def _named(term: Term, report: Report) -> Operator | None:
    """The operator that a term names, or None. Reports a name that means nothing."""
    if term.domain and term.domain not in DOMAINS:
        report.add(term.place, f"rules know no operators of the domain {term.domain}; they know those of {', '.join(DOMAINS)}")
        return None
    if term.domain:
        operator, names = contributed_operator(term.domain, term.operator), contributed_names(term.domain)
        if operator is None:
            report.add(term.place, f"rules know no operator {term.operator} of {term.domain} (they know: {', '.join(names)})")
        return operator
    operator = find_operator("", term.operator, NEWEST)
    if operator.schema is None:
        report.add(term.place, f"ONNX has no operator {term.operator} in opset {NEWEST}{nearest(term.operator, standard_operators())}")
        return None
    return operator


def known_attributes(term: Term, operator: Operator) -> tuple[Attribute, ...]:
    """The attributes of a term that its operator has and that the language can hold."""
    assert operator.schema is not None
    return tuple(a for a in term.attributes if a.name in operator.schema.attributes and attribute_sort(operator, a.name) is not None)


def required_attributes(operator: Operator) -> set[str]:
    """The attributes that have no default and must be there."""
    assert operator.schema is not None
    return {name for name, attribute in operator.schema.attributes.items() if attribute.required}


def _check_attributes(term: Term, operator: Operator, report: Report) -> None:
    assert operator.schema is not None
    schema, named = operator.schema, set[str]()
    for attribute in term.attributes:
        if attribute.name not in schema.attributes:
            has = f"it has: {', '.join(sorted(schema.attributes))}" if schema.attributes else "it has none"
            report.add(attribute.place, f"{term.operator} has no attribute {attribute.name} ({has})")
        elif attribute.name in named:
            report.add(attribute.place, f"{attribute.name} is given twice")
        elif attribute_sort(operator, attribute.name) is None and not isinstance(attribute.value, Wildcard):
            report.add(attribute.place, f"{attribute.name} holds a tensor or graph, which no rule can name; write `{attribute.name} = _`, or carry it by `..p`")
        elif isinstance(attribute.value, Maybe) and (schema.attributes[attribute.name].required or attribute_default(operator, attribute.name) is not None):
            why = "is required" if schema.attributes[attribute.name].required else "has a default"
            report.add(attribute.value.place, f"{attribute.name} of {term.operator} {why} and is never absent; write {attribute.value.name}")
        named.add(attribute.name)
    if term.carried is None:
        known = named <= set(schema.attributes)
        for name in sorted(required_attributes(operator) - named) if known else ():
            report.add(term.place, f"{term.operator} needs the attribute {name}, which has no default")


def _check_inputs(term: Term, schema: defs.OpSchema, report: Report) -> None:
    least, most = schema.min_input, schema.max_input
    variadic = bool(schema.inputs) and schema.inputs[-1].option == _OPTIONS.Variadic
    spreads = [item for item in term.inputs if isinstance(item, Spread | Mapped)]
    for item in spreads:
        if not variadic:
            report.add(item.place, f"{term.operator} has no list of inputs")
        elif item is not term.inputs[-1]:
            report.add(item.place, "`..` takes all inputs that remain: it stands last")
    count = len(term.inputs) - len(spreads)
    if count > most or (count < least and not spreads):
        report.add(term.place, f"{term.operator} takes {_count(least, most, 'input', 'inputs')}, not {count}")
        return
    for position, item in enumerate(term.inputs):
        formal = schema.inputs[min(position, len(schema.inputs) - 1)]
        if item is None and formal.option != _OPTIONS.Optional:
            report.add(term.place, f"{formal.name} of {term.operator} can not be left out")
        elif isinstance(item, Maybe) and formal.option != _OPTIONS.Optional:
            report.add(item.place, f"{formal.name} of {term.operator} is never absent; write {item.name}")


def _check_outputs(term: Term, schema: defs.OpSchema, outputs: int, report: Report) -> None:
    if not max(1, schema.min_output) <= outputs <= schema.max_output:
        hint = "; name them: `a, b = ...`" if outputs == 1 else ""
        report.add(term.place, f"{term.operator} has {_count(max(1, schema.min_output), schema.max_output, 'output', 'outputs')}, not {outputs}{hint}")


def _count(least: int, most: int, one: str, many: str) -> str:
    if most > 1000:  # schemas write a huge maximum for any number
        return f"at least {least} {one if least == 1 else many}"
    return f"{least} to {most} {many}" if least < most else f"{most} {one if most == 1 else many}"
