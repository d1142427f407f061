"""Typing judgements, `w: T[m, ..k]`: whether one holds of a tensor, and the names that it binds.

The input is a type, the fact of a tensor, and the names that have values. The result says whether
the tensor has the type, None if that is unknown, and binds the names that are new. A known result
holds for all named sizes, each an integer >= 0. Sizes that are expressions are compared, never
solved.
"""

from __future__ import annotations

import itertools

from eqsat.facts.dims import Dim
from eqsat.facts.fact import Fact
from eqsat.language.expressions import Unevaluable, evaluate
from eqsat.language.syntax import Expression, Name, Place, Spread, Type, Wildcard
from eqsat.language.values import DTYPES, DType, List, NoValue, Value, equal, every

Environment = dict[str, Value | None]


def judge(type: Type, fact: Fact, environment: Environment) -> bool | None:
    """Whether the tensor with this fact has the type `type`; None if that is unknown. Raises
    `Unevaluable` if a written size has no value.

    Names that `environment` lacks are bound in it. Names of data types and sizes are bound before
    any expression among the sizes is evaluated. A name is never bound to an unknown size; the
    judgement is then not known to hold. Unless the result is True, the environment may lack some of
    the names.
    """
    if fact.other is not None:
        return False
    # A different data type decides, even if a written size has no value.
    same = _judge_dtype(type.dtype, fact, environment, type.place)
    return same if same is False else every((same, _judge_shape(type.dims, fact.shape, environment)))


def _judge_dtype(name: str, fact: Fact, environment: Environment, place: Place) -> bool | None:
    if name == "_":
        return True
    if not fact.dtype:
        return None
    if name in DTYPES and name not in environment:
        return DTYPES[name].code == fact.dtype
    return _bind(name, DType(fact.dtype), environment, place)


def _judge_shape(written: tuple[Expression, ...] | None, sizes: tuple[Dim, ...] | None, environment: Environment) -> bool | None:
    if written is None:
        return True
    spread = next((position for position, item in enumerate(written) if isinstance(item, Spread)), None)
    if sizes is None:
        return True if written == (Spread(Wildcard()),) else None
    rest = len(sizes) - len(written) + 1
    if (rest != 1) if spread is None else (rest < 0):
        return False
    values: List = sizes if spread is None else (*sizes[:spread], sizes[spread : spread + rest], *sizes[spread + rest :])
    pairs = [(item.item if isinstance(item, Spread) else item, value) for item, value in zip(written, values, strict=True)]
    named = (_bind(pattern.name, value, environment, pattern.place) for pattern, value in pairs if isinstance(pattern, Name))
    computed = (_compare(evaluate(pattern, environment), value, pattern.place) for pattern, value in pairs if not isinstance(pattern, Name | Wildcard))
    return every(itertools.chain(named, computed))


def _bind(name: str, value: Value | None, environment: Environment, place: Place) -> bool | None:
    if name in environment:
        return _compare(environment[name], value, place)
    if value is None:
        return None
    environment[name] = value
    return True


def _compare(wanted: Value | None, value: Value | None, place: Place) -> bool | None:
    try:
        return equal(wanted, value)
    except NoValue as error:
        raise Unevaluable(place, str(error)) from None
