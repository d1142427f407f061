"""Files that are no ONNX models, recognized by their name or their first bytes.

The input is the text of a path, or the beginning of a file. The output is one line that says what
it is and how it becomes a model, or None for anything that may be an ONNX model.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

BEGINNING = 512
"""How many bytes of a file tell its kind."""

TEXT_FORMATS = frozenset({".onnxtxt", ".onnxtext", ".textproto", ".prototxt", ".pbtxt", ".json", ".onnxjson"})
"""The endings of models as text."""

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_EXPORT = "export the model with torch.onnx.export"
_NO_MODEL_INSIDE = "holds numbers without a graph"

# Where in a file the bytes lie, the bytes, and what the file is.
_SIGNATURES = (
    (0, b"version https://git-lfs", "is a pointer of Git LFS, not the model itself; fetch it with: git lfs pull"),
    (0, b"\x1f\x8b", "is compressed by gzip; unpack it first: gunzip"),
    (0, b"\xfd7zXZ\x00", "is compressed by xz; unpack it first: unxz"),
    (0, b"\x28\xb5\x2f\xfd", "is compressed by zstd; unpack it first: unzstd"),
    (0, b"\x89HDF\r\n", "is an HDF5 file, as Keras writes; convert it to ONNX with tf2onnx"),
    (4, b"TFL3", "is a TensorFlow Lite model; convert it to ONNX with tf2onnx --tflite"),
    (4, b"ORTM", "is a model in ONNX Runtime's own format (.ort); give the ONNX file that it was made of"),
    (0, b"GGUF", f"is a GGUF file, which {_NO_MODEL_INSIDE}; give an ONNX export of the model"),
    (0, b"\x93NUMPY", "is an array of numpy, not a model"),
    (257, b"ustar", "is a tar archive; unpack it first"),
    (0, b"<?xml", "is XML, as OpenVINO writes, not an ONNX model"),
    (0, b"\x80\x02", f"is a pickle, as PyTorch writes; {_EXPORT}"),
    (0, b"\x80\x04", f"is a pickle, as PyTorch writes; {_EXPORT}"),
    (0, b"\x80\x05", f"is a pickle, as PyTorch writes; {_EXPORT}"),
)
_PAGE = re.compile(rb"\s*<(?:!doctype html|html)", re.IGNORECASE)
_PYTORCH = re.compile(rb"(?:data\.pkl|constants\.pkl|/version|\.data/serialization_id|/byteorder)")


def address(text: str) -> str | None:
    """Returns a line for a text that is an address, not a path."""
    if not _ADDRESS.match(text) or os.path.exists(text):
        return None
    if text.lower().startswith("file:"):
        return f"{text}: is an address; give the path alone"
    return f"{text}: is an address, and eqsat reads files; download it first: curl -L -o model.onnx ADDRESS"


def folder(path: Path) -> str:
    """Returns a line for a folder that was given as a model."""
    if (path / "saved_model.pb").exists():
        return f"{path}: is a TensorFlow SavedModel; convert it to ONNX with tf2onnx --saved-model"
    models = sorted(inside.name for inside in path.glob("*.onnx"))
    if not models:
        return f"{path}: is a folder, not a model file"
    return f"{path}: is a folder, not a model file; give the models in it, such as {path / models[0]}"


def irregular(path: Path) -> str | None:
    """Returns a line for a device or a pipe, which would be lost if a new file took its place."""
    if not path.exists() or path.is_file() or path.is_dir():
        return None
    return f"{path}: is a device or a pipe, and a result replaces a file as a whole; '-o -' writes to standard output"


def foreign(beginning: bytes) -> str | None:
    """Returns what a file is that begins with these bytes."""
    if not beginning:
        return "is empty"
    for place, signature, what in _SIGNATURES:
        if beginning.startswith(signature, place):
            return what
    if beginning.startswith(b"PK\x03\x04"):
        return f"is a PyTorch file; {_EXPORT}" if _PYTORCH.search(beginning) else "is a zip archive; unpack it first"
    if 2 <= int.from_bytes(beginning[:8], "little") < 1 << 32 and beginning[8:10] == b'{"':
        return f"is a safetensors file, which {_NO_MODEL_INSIDE}; {_EXPORT}"
    if _PAGE.match(beginning):
        return "is a web page; the download went wrong, or was not that of the raw file"
    return None
