"""Weights apart: the large weights of a model lie in a file of the run while it is optimized.

A run copies its graphs often, and hands them to other processes. With the weights in the messages,
each copy would hold them again. So `apart` moves them to a file, as external data that begin at whole
pages, and `joined` makes the message as it would be with the weights inside.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.unknown_fields import UnknownFieldSet
from onnx import TensorProto, helper

from eqsat.model.external_data import copy_range, has_foreign_data, refer
from eqsat.model.model import without_weights
from eqsat.model.tensors import RUN_FILE, External, header, is_apart, is_weight, read_tensor, tensor_bytes

WORTH = 1 << 23  # bytes of weights from which copies take longer than a file
_PAGE = 4096


class WeightFile:
    """A file of a run, with the weights that its models share. It goes away with this object."""

    def __init__(self) -> None:
        """Raises `OSError` where no file can be made."""
        self._place = tempfile.TemporaryDirectory(prefix="eqsat-", ignore_cleanup_errors=True)
        self.folder = Path(self._place.name)
        """The folder of the external data of models whose weights are in the file."""
        self._file = (self.folder / RUN_FILE).open("wb")
        self._end = 0  # bytes that are written

    def refer(self, tensor: TensorProto, data: bytes | memoryview | External) -> None:
        """Writes elements to the file, and lets a tensor without elements refer to them.

        Raises `OSError` if there is no room; the tensor is as before then.
        """
        begin = -(-self._end // _PAGE) * _PAGE
        self._file.seek(begin)
        if isinstance(data, External):
            copy_range(data, self._file)
        else:
            self._file.write(data)
            self._file.flush()  # other processes read it
        self._end = self._file.seek(0, os.SEEK_END)
        refer(tensor, RUN_FILE, begin, self._end - begin)

    def stored(self, array: np.ndarray[Any, Any], name: str) -> TensorProto | None:
        """Returns a tensor whose elements, those of an array, are in the file. Returns None for one that
        is small, or for which there is no room.
        """
        if array.dtype.kind in "OSU":
            return None
        tensor = TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype.newbyteorder("=")))
        if not is_weight(tensor):
            return None
        little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
        with contextlib.suppress(OSError):
            self.refer(tensor, little.reshape(-1).view(np.uint8).data)
            return tensor
        return None


def apart(model: onnx.ModelProto, beside: WeightFile | None = None) -> tuple[onnx.ModelProto, WeightFile] | None:
    """Returns a model without its large weights, and the file that has them: `beside` those of another
    model, or a new one. Returns None where they are few, where the model has external data, and where
    the disk has no room.
    """
    if sum(tensor_bytes(tensor) for tensor in model.graph.initializer if is_plain(tensor)) < WORTH or not may_be_lean(model):
        return None
    try:
        file, found = beside or WeightFile(), without_weights(model)
        for tensor in model.graph.initializer:
            data = tensor.raw_data if is_plain(tensor) else b""
            if data and len(data) == tensor_bytes(tensor):
                lean = found.graph.initializer.add()
                lean.CopyFrom(header(tensor))
                file.refer(lean, data)
            else:
                found.graph.initializer.append(tensor)
    except OSError:
        return None
    return found, file


def is_plain(tensor: TensorProto) -> bool:
    """Tells whether a tensor is a weight whose elements are raw bytes, and nothing is unusual."""
    usual = not tensor.HasField("segment") and not tensor.HasField("data_location") and min(tensor.dims, default=1) >= 0
    return usual and tensor.HasField("raw_data") and is_weight(tensor) and not UnknownFieldSet(tensor)


def may_be_lean(model: onnx.ModelProto) -> bool:
    """Tells whether `joined` can make a model again as it was: no other weights are in files, and there
    are no fields that onnx does not know, which copies lack.
    """
    return not has_foreign_data(model) and not UnknownFieldSet(model) and not UnknownFieldSet(model.graph)


def joined(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """Returns a model with those weights inside that are apart in a file in `folder`."""
    found = without_weights(model)
    for tensor in model.graph.initializer:
        if is_apart(tensor):
            whole = found.graph.initializer.add()
            whole.CopyFrom(header(tensor))
            whole.raw_data = b"".join(read_tensor(tensor, folder).chunks())
        else:
            found.graph.initializer.append(tensor)
    return found
