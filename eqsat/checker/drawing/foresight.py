"""Foresight: conditions on ranges and data types that a draw breaks whatever its shapes.

The input is a rule's conditions and the first choices of a draw: data types, and the operators that
bound its leaves. The output is whether these choices break a condition. Such a draw would be
refused later and at a higher price.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

from eqsat.checker.drawing.bounded import READERS, owner
from eqsat.checker.drawing.conditions import Open
from eqsat.checker.drawing.dtypes import RULE, Key
from eqsat.checker.drawing.elements import number
from eqsat.checker.drawing.left_side import Left, calls
from eqsat.facts.fact import UNKNOWN, Fact, from_array
from eqsat.facts.inference import infer
from eqsat.language.expressions import Unevaluable, evaluate
from eqsat.language.pattern import newest
from eqsat.language.scope import names
from eqsat.language.syntax import Expression, Guard, Line, Name, Number, Term
from eqsat.language.values import DType, Tensor, Value

_TYPES = frozenset({"dtype"})  # the function whose value does not depend on a range either
_SHAPE = (2, 2)  # of a tensor whose range is foreseen; no bounding operator looks at it


class Foresight:
    """The conditions of a rule that can be foreseen."""

    def __init__(self, conditions: Iterable[Open], tensors: frozenset[str]) -> None:
        found = [(condition.condition, needs) for condition, needs, *_ in conditions if isinstance(condition, Guard)]
        self._of_types = [one for one in found if _reads_only(*one, tensors, _TYPES)]
        self._of_ranges = [one for one in found if one not in self._of_types and _reads_only(*one, tensors, READERS | _TYPES)]
        self._ranged = frozenset(name for _, needs in self._of_ranges for name in needs & tensors)

    def refuses_types(self, left: Left, types: Mapping[Key, int]) -> bool:
        """Whether a condition is broken by these data types of the tensors and type variables."""
        if not self._of_types:
            return False
        values = _values({name: Fact(types[value]) for name, value in left.names.items() if value in types}, types)
        return any(_is_broken(*condition, values) for condition in self._of_types)

    def refuses_ranges(self, left: Left, types: Mapping[Key, int], lines: Iterable[Line]) -> bool:
        """Whether a condition is broken by the ranges that bounding lines give to leaves that are no
        constants.
        """
        if not self._of_ranges:
            return False
        leaves = {owner(leaf.given): leaf.name for leaf in left.leaves}
        bounds = {line.targets[0]: line.value for line in lines}
        ranged = self._ranged & leaves.keys() & left.names.keys()
        facts = {name: _bounded_fact(bounds.get(name, Name(name)), types[left.names[name]], types[leaves[name]]) for name in ranged}
        values = _values(facts, types)
        return any(_is_broken(*condition, values) for condition in self._of_ranges)


def _reads_only(expression: Expression, needs: frozenset[str], tensors: frozenset[str], functions: frozenset[str]) -> bool:
    """Whether an expression reads tensors by these functions alone."""
    reads = [call.arguments[0].name for call in calls(expression) if call.function in functions and isinstance(call.arguments[0], Name)]
    return sorted(name for name in reads if name in tensors) == sorted(name for name in names(expression) if name in needs & tensors)


def _values(facts: Mapping[str, Fact], types: Mapping[Key, int]) -> dict[str, Value | None]:
    """The values of the rule's type variables and of its tensors."""
    values: dict[str, Value | None] = {key[1]: DType(code) for key, code in types.items() if type(key) is tuple and key[0] == RULE}
    return values | {name: Tensor(fact) for name, fact in facts.items()}


def _is_broken(condition: Expression, needs: frozenset[str], values: Mapping[str, Value | None]) -> bool:
    try:
        return needs <= values.keys() and evaluate(condition, values) is False
    except Unevaluable:
        return False


@functools.lru_cache(maxsize=1 << 13)
def _bounded_fact(expression: Expression, dtype: int, free: int) -> Fact:
    """The fact of a bounding line's value if its free tensor is no constant. `dtype` is the data type
    of the value, `free` that of the free tensor.
    """
    match expression:
        case Term():
            operator = newest(expression)
            inner = dtype if operator.name != "Cast" else free
            inputs = tuple(_bounded_fact(item, inner, free) for item in expression.inputs)
            return infer(operator, {"to": dtype} if operator.name == "Cast" else {}, inputs, 1)[0]
        case Number(value):
            array = number(dtype, (), value)
            return UNKNOWN if array is None else from_array(array)
        case _:
            return Fact(free, _SHAPE)
