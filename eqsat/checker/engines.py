"""The runtimes that compute what our own kernels do not: ONNX Runtime, its optimizations off, and where it has no kernel the reference of onnx.

Comes in: a `Call`, its arrays in the types that the operator is to compute in. Goes out: its results. Each node is a model of its own, whose
inputs have no stated shape, so that one session serves all shapes; the sessions used last are kept. A node that
no runtime takes is `Unsupported`; one that ONNX Runtime takes and fails to run is `Illegal`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

import numpy as np
import onnx
from onnx import helper

from eqsat.checker.call import Array, Call, Illegal, Unsupported, is_float
from eqsat.operators import Operator, attribute_default, find_operator
from eqsat.runtime import ONNXRUNTIME, REFERENCE, OnnxRuntimeSession, ReferenceSession, Session

_SESSIONS = 512
_IR_VERSION = 10

# What an engine reads over: attributes that change nothing in it, so that what has them is computed by another one, or not at all.
_STATED: Final = frozenset({"activation_alpha", "activation_beta", "activations", "clip"})
IGNORED: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    (REFERENCE, "GRU"): _STATED,
    (REFERENCE, "LSTM"): _STATED | {"input_forget"},
    (REFERENCE, "RNN"): _STATED,
}

# Operators of the reference that put numbers in the place of infinities.
_OF_NUMBERS: Final = frozenset({"Resize"})

# Attributes as they are hashed: messages by their bytes.
_Items: TypeAlias = tuple[tuple[str, Any], ...]


def compute(call: Call) -> list[Array]:
    """The results of a node by the first runtime that takes it. Raises `Unsupported` or `Illegal`."""
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
    """The outputs of a model without inputs by ONNX Runtime alone. Raises `Unsupported` where it does not run it."""
    _quiet()
    try:
        return [np.asarray(value) for value in OnnxRuntimeSession(model).run({})]
    except Exception as error:
        raise Unsupported(_line(error)) from None


@functools.lru_cache(maxsize=_SESSIONS)
def _session(domain: str, name: str, opset: int, items: _Items, dtypes: tuple[int, ...], wanted: tuple[bool, ...]) -> Session | str:
    """A session, or why there is none."""
    operator = find_operator(domain, name, opset)
    model = _model(operator, items, dtypes, wanted)
    _quiet()
    stated = frozenset(attribute for attribute, value in items if value != attribute_default(operator, attribute))
    reasons: list[str] = []
    for opened in (OnnxRuntimeSession, ReferenceSession):
        if ignored := sorted(stated & IGNORED.get((opened.engine, name), frozenset())):
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
    """What sort of value an attribute holds. Only operators with a schema are computed."""
    assert operator.schema is not None
    return int(cast(Any, operator.schema.attributes[attribute].type).value)


@functools.lru_cache(maxsize=1)
def _quiet() -> None:
    """ONNX Runtime writes what it refuses to the error stream; here a refusal is an answer."""
    runtime: Any = importlib.import_module("onnxruntime")
    runtime.set_default_logger_severity(4)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
