"""Foreign kernels: ONNX Runtime with its optimizations off, or else the reference of onnx.

They compute the operators that our own kernels lack. The input is a `Call` whose arrays have the
types to compute in; the output is its results. Each node becomes a model of its own, whose inputs
have no declared shape, so that one session serves all shapes. The sessions used last are kept. A
node that no runtime accepts is `Unsupported`; one that ONNX Runtime accepts and fails to run is
`Illegal`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

import numpy as np
import onnx
from onnx import helper

from eqsat.checker.kernels.call import Array, Call, Illegal, Unsupported, is_float
from eqsat.operators import Operator, attribute_default, contributed_operator, find_operator
from eqsat.runtime.session import ONNXRUNTIME, REFERENCE, OnnxRuntimeSession, ReferenceSession, Session

_SESSIONS = 512
_IR_VERSION = 10

# Attributes that an engine ignores. A node with such an attribute is computed by another engine, or
# not at all.
_RECURRENT: Final = frozenset({"activation_alpha", "activation_beta", "activations", "clip"})
IGNORED: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    (REFERENCE, "GRU"): _RECURRENT,
    (REFERENCE, "LSTM"): _RECURRENT | {"input_forget"},
    (REFERENCE, "RNN"): _RECURRENT,
}

# Operators in which the reference replaces infinities by numbers.
_OF_NUMBERS: Final = frozenset({"Resize"})

# Attributes in a form that can be hashed: messages as bytes.
_Items: TypeAlias = tuple[tuple[str, Any], ...]


def compute(call: Call) -> list[Array]:
    """A node's results by the first runtime that accepts it. Raises `Unsupported` or `Illegal`."""
    items: _Items = tuple(
        (name, value.SerializeToString(deterministic=True) if isinstance(value, onnx.AttributeProto) else value) for name, value in call.attributes.items()
    )
    operator = call.operator
    dtypes = tuple(0 if value is None else int(helper.np_dtype_to_tensor_dtype(value.dtype)) for value in call.inputs)
    wanted = tuple(bool(result) for result in call.results)
    session = _session(operator.domain, operator.name, operator.opset, items, dtypes, wanted)
    if isinstance(session, str):
        raise Unsupported(f"no runtime takes {operator.name}: {session}")
    if session.engine == REFERENCE and operator.name in _OF_NUMBERS and any(is_float(x) and not np.isfinite(x).all() for x in call.all_inputs()):
        raise Illegal(f"the reference computes {operator.name} of numbers alone")
    feeds = {f"i{position}": value for position, value in enumerate(call.inputs) if value is not None}
    try:
        return [np.asarray(value) for value in session.run(feeds)]
    except Exception as error:
        if session.engine == ONNXRUNTIME:
            raise Illegal(_line(error)) from None
        raise Unsupported(f"the reference fails on {operator.name}: {_line(error)}") from None


def run(model: bytes) -> list[Array]:
    """The outputs of a model without inputs by ONNX Runtime alone. Raises `Unsupported` if ONNX
    Runtime does not run the model.
    """
    _quiet()
    try:
        return [np.asarray(value) for value in OnnxRuntimeSession(model).run({})]
    except Exception as error:
        raise Unsupported(_line(error)) from None


@functools.lru_cache(maxsize=_SESSIONS)
def _session(domain: str, name: str, opset: int, items: _Items, dtypes: tuple[int, ...], wanted: tuple[bool, ...]) -> Session | str:
    """A session, or the reason why there is none."""
    operator = contributed_operator(domain, name) or find_operator(domain, name, opset)
    model = _model(operator, items, dtypes, wanted)
    _quiet()
    changed = frozenset(attribute for attribute, value in items if value != attribute_default(operator, attribute))
    reasons: list[str] = []
    for opened in (OnnxRuntimeSession, ReferenceSession):
        if ignored := sorted(changed & IGNORED.get((opened.engine, name), frozenset())):
            reasons.append(f"{opened.engine} reads over {', '.join(ignored)}")
            continue
        try:
            return opened(model)
        except Exception as refusal:
            reasons.append(_line(refusal))
    return reasons[0]


def _model(operator: Operator, items: _Items, dtypes: tuple[int, ...], wanted: tuple[bool, ...]) -> bytes:
    inputs = [f"i{position}" if dtype else "" for position, dtype in enumerate(dtypes)]
    outputs = [f"o{position}" if here else "" for position, here in enumerate(wanted)]
    node = helper.make_node(operator.name, inputs, outputs, domain=operator.domain)
    for attribute, value in items:
        kind = _kind(operator, attribute)
        if isinstance(value, bytes) and kind not in (onnx.AttributeProto.STRING, onnx.AttributeProto.STRINGS):
            node.attribute.append(onnx.AttributeProto.FromString(value))
        else:
            node.attribute.append(helper.make_attribute(attribute, value, attr_type=kind))
    graph = helper.make_graph(
        [node],
        "node",
        [helper.make_tensor_value_info(name, dtype, None) for name, dtype in zip(inputs, dtypes, strict=True) if dtype],
        [onnx.ValueInfoProto(name=name) for name in outputs if name],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(operator.domain, operator.opset)], ir_version=_IR_VERSION).SerializeToString()


def _kind(operator: Operator, attribute: str) -> int:
    """The type code of an attribute. Only operators with a schema are computed."""
    assert operator.schema is not None
    return int(cast(Any, operator.schema.attributes[attribute].type).value)


@functools.lru_cache(maxsize=1)
def _quiet() -> None:
    """Silences ONNX Runtime, which writes every refusal to the error stream. Here a refusal is an
    expected answer.
    """
    runtime: Any = importlib.import_module("onnxruntime")
    runtime.set_default_logger_severity(4)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
