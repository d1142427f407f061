"""Data types of a left side: which tensors must agree, which types each may have, and their
drawing.

The input is a flat left side with its rule. The output, from `Dtypes.draw`, is a type for every
tensor and for every type variable of the rule. The types satisfy all schemas and judgements of the
left side. Variables that ONNX leaves independent are drawn independently, so that mixed types
occur.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from random import Random
from typing import Final, TypeAlias

from onnx import TensorProto

from eqsat.checker.drawing.left_side import Left, Step, judgements
from eqsat.checker.samplers.weighted import as_often, one_of
from eqsat.facts.fact import dtype_name
from eqsat.language.resolved import Resolved
from eqsat.language.syntax import Name
from eqsat.operators import Operator

# How often each type is drawn if many are possible. Complex numbers, strings and types without
# kernels are left out.
WEIGHTS: Final[Mapping[int, int]] = {
    TensorProto.FLOAT: 12,
    TensorProto.DOUBLE: 3,
    TensorProto.FLOAT16: 5,
    TensorProto.BFLOAT16: 2,
    TensorProto.INT64: 5,
    TensorProto.INT32: 4,
    TensorProto.INT16: 1,
    TensorProto.INT8: 3,
    TensorProto.UINT64: 1,
    TensorProto.UINT32: 1,
    TensorProto.UINT16: 1,
    TensorProto.UINT8: 4,
    TensorProto.BOOL: 3,
}

# By operator and attribute, the type variable of the schema that the attribute decides.
DECIDING: Final[Mapping[tuple[str, str], str]] = {
    ("BitCast", "to"): "T2",
    ("BlackmanWindow", "output_datatype"): "T2",
    ("Cast", "to"): "T2",
    ("DequantizeLinear", "output_dtype"): "T3",
    ("EyeLike", "dtype"): "T2",
    ("HammingWindow", "output_datatype"): "T2",
    ("HannWindow", "output_datatype"): "T2",
    ("MelWeightMatrix", "output_datatype"): "T3",
    ("QuantizeLinear", "output_dtype"): "T3",
}

_DECIDING_OF = {
    operator: [(attribute, variable) for (name, attribute), variable in DECIDING.items() if name == operator] for operator in {name for name, _ in DECIDING}
}
"""The same by operator alone."""

_CODES = {dtype_name(code): code for code in TensorProto.DataType.values() if code}
_ALL = frozenset(WEIGHTS)
_OFTEN: Final = as_often(WEIGHTS)

# A holder of one type: a tensor of the graph, a type variable of a node (its place among the
# steps), or one of the rule (RULE).
Key: TypeAlias = "str | tuple[int, str]"
RULE: Final = -1


class Dtypes:
    """The types that the tensors of one left side may have."""

    def __init__(self, rule: Resolved, left: Left) -> None:
        self._parents: dict[Key, Key] = {}
        self._allowed: dict[Key, frozenset[int]] = {}
        for place, step in enumerate(left.steps):
            self._add_step(place, step)
        for judgement in judgements(rule):
            letter = judgement.type.dtype
            for leaf in left.leaves:
                if leaf.given == judgement.name:
                    self._state(leaf.name, letter)
            if judgement.name in left.names:
                self._state(left.names[judgement.name], letter)
        members: dict[Key, list[Key]] = {}
        for key in self._parents:
            members.setdefault(self._find(key), []).append(key)
        self._groups: list[tuple[list[Key], list[int], tuple[int, ...]]] = []  # with the types, once and as often as they are drawn
        for root, keys in members.items():
            allowed = sorted(self._allowed.get(root, _ALL))
            self._groups.append((keys, allowed, as_often({code: WEIGHTS[code] for code in allowed})))

    def draw(self, random: Random) -> dict[Key, int] | None:
        """A type for every tensor and type variable; None if no type satisfies all schemas."""
        main = [one_of(random, _OFTEN) for _ in range(6)]
        found: dict[Key, int] = {}
        for keys, allowed, often in self._groups:
            if not allowed:
                return None
            # Most variables get the same type: completely mixed graphs are rare in models, and few
            # runtimes have kernels for them.
            alike = [code for code in main if code in allowed] if random.random() < 0.75 else []
            code = alike[0] if alike else one_of(random, often)
            found.update(dict.fromkeys(keys, code))
        return found

    def plain(self, given: Mapping[Key, int], place: int = 0) -> dict[Key, int] | None:
        """The given types of tensors and type variables. Any other one gets the type at `place`
        among its possible ones, in the order of WEIGHTS (float first), or the last of them.
        """
        found: dict[Key, int] = {}
        for keys, allowed, _ in self._groups:
            wanted = [given[key] for key in keys if key in given][:1] or [code for code in WEIGHTS if code in allowed]
            if not wanted:
                return None
            found.update(dict.fromkeys(keys, wanted[min(place, len(wanted) - 1)]))
        return found

    def _find(self, key: Key) -> Key:
        parent = self._parents.setdefault(key, key)
        while parent != key:
            key, parent = parent, self._parents[parent]
        return key

    def _join(self, a: Key, b: Key) -> None:
        a, b = self._find(a), self._find(b)
        if a != b:
            self._parents[a] = b
            self._restrict(b, self._allowed.pop(a, _ALL))

    def _restrict(self, key: Key, codes: Iterable[int]) -> None:
        root = self._find(key)
        self._allowed[root] = self._allowed.get(root, _ALL).intersection(codes)

    def _state(self, key: Key, dtype: str) -> None:
        """States that `key` has the type `dtype` of a judgement: a type variable of the rule, the
        name of a type, or `_`.
        """
        if dtype in _CODES:
            self._restrict(key, (_CODES[dtype],))
        elif dtype != "_":
            self._join(key, (RULE, dtype))

    def _add_step(self, place: int, step: Step) -> None:
        variables = _variables(step.operator)
        outputs = step.operator.formals[1]

        def add(value: str, formal: str) -> None:
            if formal in variables:
                self._join(value, (place, formal))
            else:
                self._restrict(value, _codes((formal,)))

        for name, codes in variables.items():
            self._restrict((place, name), codes)
        for position, value in enumerate(step.inputs):
            if value is not None:
                add(value, step.formal(position))
        for position, value in enumerate(step.outputs):
            add(value, outputs[min(position, len(outputs) - 1)][1])
        self._decide(place, step)

    def _decide(self, place: int, step: Step) -> None:
        operator = step.operator.name
        if operator == "ConstantOfShape":
            # Its value is a tensor, which no rule can name.
            self._restrict((place, "T2"), (TensorProto.FLOAT,))
        for attribute, variable in _DECIDING_OF.get(operator, ()):
            pattern = step.slots.get(attribute)
            if isinstance(pattern, Name):
                self._state((place, variable), pattern.name)
            elif pattern is None and step.carried is None:
                if operator == "EyeLike":
                    self._join((place, "T1"), (place, variable))
                elif operator == "DequantizeLinear":
                    self._join((place, "T2"), (place, variable))
                elif operator == "QuantizeLinear" and len(step.inputs) < 3:
                    self._restrict((place, variable), (TensorProto.UINT8,))


@functools.cache
def _variables(operator: Operator) -> Mapping[str, frozenset[int]]:
    """The data types that each type variable of an operator's schema may be."""
    assert operator.schema is not None
    return {constraint.type_param_str: _codes(constraint.allowed_type_strs) for constraint in operator.schema.type_constraints}


def _codes(types: Iterable[str]) -> frozenset[int]:
    return frozenset(_CODES[text[7:-1]] for text in types if text.startswith("tensor(") and text[7:-1] in _CODES) & _ALL
