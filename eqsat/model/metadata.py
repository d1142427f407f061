"""Metadata of a model: the notes of its producer, which no runtime reads.

The input is a message, changed in place. Dropped are documentation strings and `metadata_props` of
the model, of graphs, functions, nodes, values, attributes and tensors, at any depth, and the name
and version of the producer. Kept are all names (of inputs, outputs, values and nodes), types,
sizes, denotations, the opsets, the IR version, and the domain and version of the model itself.
"""

from __future__ import annotations

from typing import cast

import onnx
from google.protobuf.message import Message

_NOTES = ("doc_string", "metadata_props", "producer_name", "producer_version")


def strip_metadata(model: onnx.ModelProto) -> None:
    """Drops the metadata of a model."""
    waiting: list[Message] = [model]
    while waiting:
        message = waiting.pop()
        fields = message.DESCRIPTOR.fields_by_name
        for name in _NOTES:
            if name in fields:
                message.ClearField(name)
        if isinstance(message, onnx.TensorProto):
            continue  # its other fields are elements, and listing them would copy them
        for descriptor, value in message.ListFields():
            if descriptor.message_type is not None:
                waiting.extend([value] if isinstance(value, Message) else cast("list[Message]", value))
