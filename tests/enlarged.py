"""Instances of rules at sizes that reach into the vectors of runtimes: test lines with other sizes, and with each floating-point type.

The checker draws small tensors, which show what is wrong with a rule. How a kernel rounds shows where rows are longer than its vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from eqsat.checker.instances import Instance, from_test
from eqsat.language import syntax
from eqsat.language.resolve import Resolved
from eqsat.language.syntax import Number, Type

FLOATS = ("float", "double", "float16", "bfloat16")
SIZES = (1, 3, 7, 8, 16, 17, 33, 40, 67, 130)  # around the lengths of vectors, and with what is left over
_CHANGED = 0.6  # of the sizes of a line


def enlarged(rule: Resolved, number: int) -> Iterator[Instance]:
    """Of each floating-point type, `number` times one of the rule's test lines with other sizes, as far as they are legal."""
    random = Random(rule.rule.name)
    for dtype in FLOATS:
        for _ in range(number):
            line = _line(random.choice(rule.rule.tests), dtype, random)
            try:
                yield from_test(replace(rule, rule=replace(rule.rule, tests=(line,))), 0)
            except ValueError:
                continue


def _line(test: syntax.Test, dtype: str, random: Random) -> syntax.Test:
    sizes = {dim.value for given in test.given for type_ in given.types for dim in type_.dims or () if isinstance(dim, Number)}
    chosen = {size: random.choice(SIZES) for size in sorted(sizes) if size > 1 and random.random() < _CHANGED}

    def changed(type_: Type) -> Type:
        free = type_.dtype == "float" or type_.dtype.isupper()
        dims = None if type_.dims is None else tuple(_sized(dim, chosen) for dim in type_.dims)
        return Type(dtype if free else type_.dtype, dims)

    return syntax.Test(tuple(replace(given, types=tuple(map(changed, given.types))) for given in test.given))


def _sized(dim: syntax.Expression, chosen: dict[int | float, int]) -> syntax.Expression:
    if isinstance(dim, Number) and dim.value in chosen:
        return Number(chosen[dim.value], str(chosen[dim.value]))
    return dim
