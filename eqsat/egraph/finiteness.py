"""Finiteness: whether a value is known to hold a NaN or an infinity.

A fact holds the elements of a small constant, and the common element of a uniform one. Other
constants are read when a rule first asks for them, once and in pieces, so a graph without such
rules reads none. A fact does not say which constant it belongs to. So a constant with a NaN or an
infinity counts against all constant values of its data type and sizes.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from eqsat.egraph.encode import Encoding
from eqsat.errors import InputError
from eqsat.facts.element_bytes import decoded
from eqsat.facts.fact import INTEGERS, Fact
from eqsat.model.tensors import Tensor

_PIECE = 1 << 20  # the bytes of one read: whole elements of any type
# Types without NaN and infinity.
_PACKED = frozenset({TensorProto.FLOAT4E2M1, TensorProto.FLOAT6E2M3, TensorProto.FLOAT6E3M2})

_Kind = tuple[int, tuple[object, ...]]


class Finiteness:
    """The finiteness of the constants that a graph stores or captures, by data type and sizes."""

    def __init__(self, encoding: Encoding) -> None:
        self._constants: dict[_Kind, list[Tensor]] = {}
        self._finite: dict[_Kind, bool] = {}
        for _, constant in encoding.contents.values():
            tensor = constant.tensor
            if _may_be_infinite(tensor.dtype):
                self._constants.setdefault((tensor.dtype, tensor.dims), []).append(tensor)

    def special(self, fact: Fact) -> bool:
        """Tells whether a value may hold a NaN or an infinity, as far as constants tell.

        It may if its own known elements do. A constant value of unknown elements may if some
        constant of its type and sizes does.
        """
        if not _may_be_infinite(fact.dtype) or fact.shape is None:
            return False
        elements = fact.floats if fact.floats is not None else fact.uniform
        if elements is not None:
            return not _are_finite(elements, fact.dtype)
        return fact.const and not self._stored((fact.dtype, fact.shape))

    def _stored(self, kind: _Kind) -> bool:
        if kind not in self._finite:
            self._finite[kind] = all(map(_is_finite, self._constants.get(kind, ())))
        return self._finite[kind]


def _may_be_infinite(dtype: int) -> bool:
    """Tells whether a data type has NaN or infinity."""
    return dtype not in INTEGERS and dtype not in _PACKED and dtype not in (TensorProto.UNDEFINED, TensorProto.STRING)


def _is_finite(tensor: Tensor) -> bool:
    try:
        return all(_are_finite(chunk[start : start + _PIECE], tensor.dtype) for chunk in tensor.chunks() for start in range(0, len(chunk), _PIECE))
    except InputError:
        return False  # an unreadable constant is not known to be finite


def _are_finite(elements: bytes, dtype: int) -> bool:
    return bool(np.isfinite(decoded(elements, dtype)).all())
