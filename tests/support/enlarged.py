"""Instances of rules at sizes that reach into the vectors of runtimes.

They come from test lines with other sizes, and with each floating-point type. A rule without test
lines gets those of drawn instances of floats. The checker draws small tensors, which show whether a
rule is right. Rows longer than a kernel's vectors show how it rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from random import Random

from eqsat.checker.drawing.instances import Instance, draw, from_test
from eqsat.checker.drawing.left_side import judgements, terms
from eqsat.checker.judging.trial import try_rule
from eqsat.language import syntax
from eqsat.language.compile import compile_rule
from eqsat.language.resolved import Resolved
from eqsat.language.scope import names
from eqsat.language.sorts import Sort
from eqsat.language.syntax import Name, Number, Type
from eqsat.language.values import DTYPES, DType, Value
from eqsat.traits import PARAMETERS

FLOATS = ("float", "double", "float16", "bfloat16")
SIZES = (1, 3, 7, 8, 16, 17, 33, 40, 67, 130)  # around the lengths of vectors, with remainders
_CHANGED = 0.6  # of the sizes of a line
_FACTORS = (3, 7, 16, 17)
_BEYOND = 1 << 31  # a bound that means "to the end"
_LINES = 4  # for a rule without lines
_DRAWN = 40  # instances from which these lines come
_NAMES = {dtype.code: name for name, dtype in DTYPES.items()}
_TENSORS = (Sort.TENSOR, Sort.TENSORS)
_ATTEMPTS = 60  # a legal instance took at most 52; most lines with other sizes are legal at once, or never


def enlarged(rule: Resolved, number: int) -> Iterator[Instance]:
    """Yields legal instances of the rule's test lines with other sizes.

    There are `number` for each floating-point type.
    """
    random = Random(rule.rule.name)
    for dtype in FLOATS:
        for turn in range(number):
            line = (_scaled if turn % 2 else _resized)(typed(random.choice(lines(rule)), dtype), random)
            try:
                yield from_test(replace(rule, rule=replace(rule.rule, tests=(line,))), 0, _ATTEMPTS)
            except ValueError:
                continue


def lines(rule: Resolved) -> tuple[syntax.Test, ...]:
    """Returns the test lines of a rule, or some that it could have."""
    if rule.rule.tests:
        return rule.rule.tests
    key = (rule.rule.name, rule.rule.left)
    if key not in _known:
        instances = list(islice(draw(rule, 0), _DRAWN))
        fired = {trial.instance: None for trial in try_rule(compile_rule(rule)[0], instances).fired}
        ordered = sorted(fired, key=lambda place: _poor(instances[place]))
        _known[key] = tuple(dict.fromkeys(_line(rule, instances[place]) for place in ordered))[:_LINES]
    return _known[key]


_known: dict[tuple[str, tuple[syntax.Line, ...]], tuple[syntax.Test, ...]] = {}


def _poor(instance: Instance) -> tuple[bool, int]:
    """Returns a sort key that puts instances first which round and can grow.

    It tells whether no tensor is of floats, and how many sizes cannot change.
    """
    types = _dtypes(instance)
    return "float" not in types.values(), sum(size < 2 for name in types for size in instance.shapes.get(name, ()))


def _dtypes(instance: Instance) -> dict[str, str]:
    """Returns the data types of the leaves; any type of floats becomes float."""
    graph = instance.model.graph
    codes = {leaf.name: leaf.data_type for leaf in graph.initializer} | {leaf.name: leaf.type.tensor_type.elem_type for leaf in graph.input}
    return {name: "float" if _NAMES[code] in FLOATS else _NAMES[code] for name, code in codes.items()}


def _line(rule: Resolved, instance: Instance) -> syntax.Test:
    """Returns the test line of an instance.

    It has the types of its leaves, and the values of attributes and parameters that do not follow
    from types.
    """
    types: dict[str, list[Type]] = {}
    for name, dtype in _dtypes(instance).items():
        own, _, place = name.rpartition("_")
        known = own if own in rule.sorts and place.isdigit() and rule.sorts[own] is Sort.TENSORS else "_" if name.startswith("any_") else name
        if known == "_" or rule.sorts.get(known) in _TENSORS:
            types.setdefault(known, []).append(Type(dtype, tuple(Number(size, str(size)) for size in instance.shapes[name])))
    measured = {name for one in judgements(rule) for dim in one.type.dims or () for name in names(dim)}
    slots = [attribute.value for term in terms(rule) for attribute in term.attributes]
    slots += [item for term in terms(rule) for place, item in enumerate(term.inputs) if item is not None and place in PARAMETERS.get(term.operator, {})]
    named = dict.fromkeys(name for slot in slots for name in names(slot) if name not in measured and rule.sorts.get(name) not in (*_TENSORS, None))
    values = {name: _written(value) for name in named if (value := instance.bindings.get(name)) is not None}
    return syntax.Test((*(syntax.Given(name, tuple(of)) for name, of in types.items()), *(syntax.Given(name, (), value) for name, value in values.items())))


def _written(value: Value) -> syntax.Expression:
    match value:
        case DType():
            return Name(str(value))
        case str():
            return syntax.Text(value)
        case tuple():
            return syntax.Items(tuple(_written(item) for item in value if item is not None))
        case _:
            assert isinstance(value, int | float)
            return Number(value, repr(value))


def typed(test: syntax.Test, dtype: str) -> syntax.Test:
    """Returns a test line whose type variables, and float, are this data type."""

    def changed(type_: Type) -> Type:
        return Type(dtype, type_.dims) if type_.dtype == "float" or type_.dtype.isupper() else type_

    return syntax.Test(tuple(replace(given, types=tuple(map(changed, given.types))) for given in test.given))


def _resized(test: syntax.Test, random: Random) -> syntax.Test:
    """Changes some of the sizes; equal ones stay equal."""
    sizes = {dim.value for given in test.given for type_ in given.types for dim in type_.dims or () if isinstance(dim, Number)}
    return _with_sizes(test, {size: random.choice(SIZES) for size in sorted(sizes) if size > 1 and random.random() < _CHANGED})


def _scaled(test: syntax.Test, random: Random) -> syntax.Test:
    """Multiplies all sizes, and some of the numbers beside them.

    These may be lengths and bounds that go with the sizes.
    """
    factor = random.choice(_FACTORS)
    larger = _with_sizes(test, {size: size * factor for size in range(2, 100)})
    return syntax.Test(tuple(replace(given, value=_times(given.value, factor)) if random.random() < 0.5 else given for given in larger.given))


def _times(value: syntax.Expression | None, factor: int) -> syntax.Expression | None:
    match value:
        case Number(int(number)) if abs(number) < _BEYOND:
            return Number(number * factor, str(number * factor))
        case syntax.Items(items):
            return syntax.Items(tuple(item for part in items if (item := _times(part, factor)) is not None))
        case _:
            return value


def _with_sizes(test: syntax.Test, sizes: dict[int | float, int]) -> syntax.Test:
    def changed(dim: syntax.Expression) -> syntax.Expression:
        return Number(sizes[dim.value], str(sizes[dim.value])) if isinstance(dim, Number) and dim.value in sizes else dim

    def resized(type_: Type) -> Type:
        return type_ if type_.dims is None else Type(type_.dtype, tuple(map(changed, type_.dims)))

    return syntax.Test(tuple(replace(given, types=tuple(map(resized, given.types))) for given in test.given))
