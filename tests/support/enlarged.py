"""Instances of rules at sizes that reach into the vectors of runtimes: test lines with other sizes, and with each floating-point type.

The checker draws small tensors, which show what is wrong with a rule. How a kernel rounds shows where rows are longer than its vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from eqsat.checker.drawing.instances import Instance, from_test
from eqsat.language import syntax
from eqsat.language.resolve import Resolved
from eqsat.language.syntax import Number, Type

FLOATS = ("float", "double", "float16", "bfloat16")
SIZES = (1, 3, 7, 8, 16, 17, 33, 40, 67, 130)  # around the lengths of vectors, and with what is left over
_CHANGED = 0.6  # of the sizes of a line
_FACTORS = (3, 7, 16, 17)
_ATTEMPTS = 40  # an instance that is legal was found in 33 at most; most lines with other sizes are legal at once, or never


def enlarged(rule: Resolved, number: int) -> Iterator[Instance]:
    """Of each floating-point type, `number` times one of the rule's test lines with other sizes, as far as they are legal."""
    random = Random(rule.rule.name)
    for dtype in FLOATS:
        for turn in range(number):
            line = (_scaled if turn % 2 else _resized)(typed(random.choice(rule.rule.tests), dtype), random)
            try:
                yield from_test(replace(rule, rule=replace(rule.rule, tests=(line,))), 0, _ATTEMPTS)
            except ValueError:
                continue


def typed(test: syntax.Test, dtype: str) -> syntax.Test:
    """A test line whose letters, and float, are this data type."""

    def changed(type_: Type) -> Type:
        return Type(dtype, type_.dims) if type_.dtype == "float" or type_.dtype.isupper() else type_

    return syntax.Test(tuple(replace(given, types=tuple(map(changed, given.types))) for given in test.given))


def _resized(test: syntax.Test, random: Random) -> syntax.Test:
    """Some of the sizes become others, equal ones the same."""
    sizes = {dim.value for given in test.given for type_ in given.types for dim in type_.dims or () if isinstance(dim, Number)}
    return _with_sizes(test, {size: random.choice(SIZES) for size in sorted(sizes) if size > 1 and random.random() < _CHANGED})


def _scaled(test: syntax.Test, random: Random) -> syntax.Test:
    """All sizes are multiplied, and some of the numbers beside them: lengths and bounds that go with the sizes."""
    factor = random.choice(_FACTORS)
    larger = _with_sizes(test, {size: size * factor for size in range(2, 100)})
    return syntax.Test(tuple(replace(given, value=_times(given.value, factor)) if random.random() < 0.5 else given for given in larger.given))


def _times(value: syntax.Expression | None, factor: int) -> syntax.Expression | None:
    match value:
        case Number(int(number)):
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
