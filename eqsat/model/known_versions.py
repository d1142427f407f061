"""Versions: up to which opset and IR version the installed onnx knows the meaning of a model.

A later opset may give any operator of the standard another meaning. A later IR version is harmless
as long as the model has none of its new fields, which onnx would drop.
"""

from __future__ import annotations

import functools

import onnx
from onnx import defs

from eqsat.errors import InputError
from eqsat.operators import STANDARD_DOMAINS


@functools.cache
def known_opset(domain: str) -> int | None:
    """Return the newest opset that onnx knows of a domain, or None for a domain outside the standard."""
    if domain not in STANDARD_DOMAINS:
        return None
    released = {"": defs.onnx_opset_version(), "ai.onnx.ml": defs.onnx_ml_opset_version()}.get(domain)
    return released or max(schema.since_version for schema in defs.get_all_schemas_with_history() if schema.domain == domain)


def check_opset(domain: str, opset: int) -> None:
    """Raise an `InputError` for an opset that is newer than those that onnx knows."""
    known = known_opset(domain)
    if known is not None and opset > known:
        name = domain or "ai.onnx"
        raise InputError(f"the model uses opset {opset} of {name}; {known} is the newest that onnx {onnx.__version__} here knows, and a newer onnx may know it")


def check_fields(proto: onnx.ModelProto) -> None:
    """Raise an `InputError` for a model of a newer IR version that has fields which onnx does not
    know.
    """
    text = newer_ir(proto)
    if text is None:
        return
    known = onnx.ModelProto()
    known.CopyFrom(proto)
    known.DiscardUnknownFields()
    if known.ByteSize() != proto.ByteSize():
        raise InputError(f"{text}, and the model has fields that are new; a newer onnx may know them")


def newer_ir(proto: onnx.ModelProto) -> str | None:
    """Return a note if the model's IR version is newer than those that onnx knows, or None."""
    known = int(onnx.IR_VERSION)
    if proto.ir_version <= known:
        return None
    return f"the model has IR version {proto.ir_version}, which was read as {known}, the newest that onnx {onnx.__version__} here knows"
