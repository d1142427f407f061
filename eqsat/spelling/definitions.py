"""Definitions: an operator that an opset lacks, in nodes that the opset has.

`define` takes a node of the newest opset, as `write` does. It returns the nodes of its definition,
spelled as ONNX Runtime recognizes them: it runs each definition as one kernel. So whoever chooses
the operator gets that kernel at any opset.

Each definition holds for float32, that of RMSNormalization for 16 bits as well, where it rounds in the
same places. It computes the same as its operator in real arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from onnx import TensorProto

from eqsat.facts.fact import HALVES, Fact
from eqsat.facts.inference import infer
from eqsat.operators import Attributes, AttributeValue, Operator, find_operator, read_attributes
from eqsat.spelling.opsets import write
from eqsat.terms.forms import Definition, Source, Written, floats, source_fact, vector
from eqsat.traits import NEWEST


def define(operator: Operator, attributes: Attributes, facts: Sequence[Fact | None], outputs: int, opset: int) -> Definition | None:
    """Return the nodes that define a node of the newest opset in `opset`; None if none are known.

    The arguments are as in `write`.
    """
    rule = _DEFINITIONS.get(operator.name) if operator.standard else None
    dtypes = {0 if fact is None else fact.dtype for fact in facts}
    if rule is None or outputs != 1 or len(dtypes) != 1 or not dtypes <= _DTYPES.get(operator.name, _SINGLE):
        return None
    draft = _Draft(facts, {**read_attributes(operator, ()), **attributes}, opset)
    try:
        rule(draft)
    except _Undefined:
        return None
    return Definition(tuple(draft.nodes))


class _Undefined(Exception):
    """The node has no definition in the opset."""


class _Draft:
    """The nodes of a definition so far."""

    def __init__(self, facts: Sequence[Fact | None], attributes: Attributes, opset: int) -> None:
        self.facts = list(facts)  # of the inputs, then of the nodes
        self.attributes = attributes
        self.inputs = len(facts)
        self.nodes: list[Written] = []
        self._opset = opset

    def node(self, name: str, *inputs: Source, **attributes: AttributeValue) -> int:
        """Add a node and return its place. Raise `_Undefined` if the opset does not have it."""
        operator = find_operator("", name, NEWEST)
        facts = tuple(source_fact(source, self.facts) for source in inputs)
        full = {**read_attributes(operator, ()), **attributes}
        written = write(operator, full, facts, 1, self._opset)
        if written is None:
            raise _Undefined
        # The spelling of a node has places of its own.
        spelled = tuple(inputs[source] if isinstance(source, int) else source for source in written.inputs)
        self.nodes.append(Written(written.operator, written.attributes, spelled))
        self.facts += infer(operator, full, facts, 1)
        return len(self.facts) - 1

    def root(self, square: int) -> int:
        """Add the root of a mean square and epsilon."""
        epsilon = self.attributes["epsilon"]
        if not isinstance(epsilon, float) or self.attributes["stash_type"] != TensorProto.FLOAT:
            raise _Undefined
        return self.node("Sqrt", self.node("Add", square, _number(epsilon)))

    def last_axis(self) -> Source:
        """Return the axes input of a reduction along the last axis.

        Raise `_Undefined` if the node normalizes other axes, or its other inputs do not have just
        that axis.
        """
        x, *others = (None if fact is None else fact.shape for fact in self.facts[: self.inputs])
        axis = self.attributes["axis"]
        if not x or not isinstance(axis, int) or axis % len(x) != len(x) - 1 or any(shape != x[-1:] for shape in others):
            raise _Undefined
        return vector([len(x) - 1])


def _number(value: float) -> Source:
    return floats(TensorProto.FLOAT, (), [value])


def _gelu(draft: _Draft) -> None:
    """x * (1 + erf(x / sqrt(2))) / 2, or x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))."""
    if draft.attributes["approximate"] == b"tanh":
        cube = draft.node("Mul", draft.node("Pow", 0, _number(3.0)), _number(0.044715))
        bend = draft.node("Tanh", draft.node("Mul", draft.node("Add", 0, cube), _number((2 / math.pi) ** 0.5)))
        draft.node("Mul", draft.node("Mul", 0, _number(0.5)), draft.node("Add", bend, _number(1.0)))
        return
    if draft.attributes["approximate"] != b"none":
        raise _Undefined
    error = draft.node("Erf", draft.node("Div", 0, _number(2**0.5)))
    draft.node("Mul", draft.node("Mul", 0, draft.node("Add", error, _number(1.0))), _number(0.5))


def _layer_normalization(draft: _Draft) -> None:
    """The centred tensor over its standard deviation, times a scale, plus a bias."""
    if draft.inputs != 3:
        raise _Undefined  # ONNX Runtime recognizes none without a bias
    axes = draft.last_axis()
    centred = draft.node("Sub", 0, draft.node("ReduceMean", 0, axes))
    variance = draft.node("ReduceMean", draft.node("Pow", centred, _number(2.0)), axes)
    draft.node("Add", draft.node("Mul", draft.node("Div", centred, draft.root(variance)), 1), 2)


def _rms_normalization(draft: _Draft) -> None:
    """The tensor over the root of its mean square, in single precision, times a scale."""
    x, scale = draft.facts
    assert x is not None and scale is not None
    wide = 0 if x.dtype == TensorProto.FLOAT else draft.node("Cast", 0, to=int(TensorProto.FLOAT))
    square = draft.node("ReduceMean", draft.node("Pow", wide, _number(2.0)), draft.last_axis())
    normal = draft.node("Div", wide, draft.root(square))
    draft.node("Mul", normal if x.dtype == TensorProto.FLOAT else draft.node("Cast", normal, to=scale.dtype), 1)


_DEFINITIONS: dict[str, Callable[[_Draft], None]] = {
    "Gelu": _gelu,
    "LayerNormalization": _layer_normalization,
    "RMSNormalization": _rms_normalization,
}

_SINGLE = frozenset({int(TensorProto.FLOAT)})
_DTYPES = {"RMSNormalization": _SINGLE | HALVES}
"""The data types for which an operator has its definition, if not for float32 alone."""

DEFINED = tuple(_DEFINITIONS)
"""The operators that have a definition."""
