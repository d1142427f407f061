"""Sources: the kinds of models that callers have, and the messages inside.

A source is a path, an `onnx.ModelProto`, an `onnx_ir.Model` or a `torch.onnx.ONNXProgram`. `load`
returns its message; `same_kind` makes a result the kind that the source was. Neither torch nor
onnx_ir is imported unless the caller has one of their objects, or asks for one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeAlias, cast

import onnx
from google.protobuf.message import DecodeError

from eqsat.errors import InputError
from eqsat.model import file_kinds
from eqsat.model.known_versions import check_fields
from eqsat.parameters.value_types import wrong_type

Source: TypeAlias = "str | os.PathLike[str] | onnx.ModelProto | Any"

_WANTED = "a path, an onnx.ModelProto, an onnx_ir.Model or a torch.onnx.ONNXProgram"
_SERIALIZED = "; onnx.load_model_from_string reads the bytes of a file"


def load(source: Source, name: str = "source") -> tuple[onnx.ModelProto, Path | None]:
    """Return a model's message and the folder of its external data (None: it has none).

    The caller may change the message. `name` is the argument that the source was given for.
    """
    if (path := path_of(source)) is not None:
        if not path:
            raise InputError(f"{name} is an empty text; it has to be {_WANTED}")
        return read_proto(path), Path(path).parent
    if isinstance(source, onnx.ModelProto):
        proto = onnx.ModelProto()
        proto.CopyFrom(source)
        check_fields(proto)
        return proto, None
    if _is_onnx_ir(source):
        return _from_onnx_ir(source)
    if is_program(source):
        program: Any = source
        return _from_onnx_ir(program.model)
    raise wrong_type(name, source, _WANTED + (_SERIALIZED if isinstance(source, bytes) else ""))


def path_of(source: object) -> str | None:
    """Return the path that a source is, or None if it is none."""
    path = os.fspath(cast("os.PathLike[Any] | str", source)) if isinstance(source, str | os.PathLike) else None
    return path if isinstance(path, str) else None


def read_proto(path: str | Path) -> onnx.ModelProto:
    """Read the message in a file without its external data.

    Raise `InputError` if the file has no model, and say what it has if its beginning tells.
    """
    if (line := file_kinds.address(str(path))) is not None:
        raise InputError(line)
    if os.path.isdir(path):
        raise InputError(file_kinds.folder(Path(path)))
    path = Path(path)
    try:
        with path.open("rb") as file:
            beginning = file.read(file_kinds.BEGINNING)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: can not read it: {getattr(error, 'strerror', None) or error}") from None
    is_text = path.suffix in file_kinds.TEXT_FORMATS
    if (what := file_kinds.foreign(beginning)) is not None:
        raise InputError(f"{path}: {what}")
    try:
        proto: onnx.ModelProto = onnx.load(path, load_external_data=False)  # pyright: ignore[reportUnknownMemberType]
    except (DecodeError, ValueError, UnicodeError, RuntimeError) as error:
        raise _unreadable(str(path), error, "not a text model" if is_text else "not an ONNX model, or a truncated one") from None
    except OSError as error:
        raise InputError(f"{path}: can not read it: {error.strerror or error}") from None
    return readable(proto, str(path))


def parse_proto(data: bytes, label: str) -> onnx.ModelProto:
    """Return the message in the bytes of a file, which errors name by `label`."""
    if (what := file_kinds.foreign(data[: file_kinds.BEGINNING])) is not None:
        raise InputError(f"{label}: {what}")
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError as error:
        raise _unreadable(label, error, "not an ONNX model, or a truncated one") from None
    return readable(proto, label)


def _unreadable(label: str, error: Exception, what: str) -> InputError:
    return InputError(f"{label}: {what} ({str(error)[:120]})")


def readable(proto: onnx.ModelProto, label: str) -> onnx.ModelProto:
    """Returns the message itself if it is a model all of whose fields are known."""
    if not proto.HasField("graph"):
        raise InputError(f"{label}: holds no graph; it is not an ONNX model")
    try:
        check_fields(proto)
    except InputError as error:
        raise InputError(f"{label}: {error}") from None
    return proto


def _is_onnx_ir(source: object) -> bool:
    return any(kind.__name__ == "Model" and kind.__module__.split(".")[0] == "onnx_ir" for kind in type(source).__mro__)


def is_program(source: object) -> bool:
    """Tell whether an object is a `torch.onnx.ONNXProgram`: it holds an `onnx_ir.Model`, and the
    program that torch exported.
    """
    return hasattr(type(source), "model_proto") and hasattr(source, "exported_program") and _is_onnx_ir(getattr(source, "model", None))


def _from_onnx_ir(source: Any) -> tuple[onnx.ModelProto, Path | None]:
    import onnx_ir

    tensors: list[Any] = [value.const_value for value in source.graph.initializers.values()]
    folders = {str(tensor.base_dir) for tensor in tensors if type(tensor).__name__ == "ExternalTensor"}
    if len(folders) > 1:
        raise InputError(f"the model's external data lie in {len(folders)} folders; save it to one file first")
    ir: Any = onnx_ir
    proto: onnx.ModelProto = ir.to_proto(source)
    return proto, Path(folders.pop()) if folders else None


def to_onnx_ir(proto: onnx.ModelProto, folder: Path | None) -> Any:
    """Return a message as an `onnx_ir.Model`; its external data stay in their files."""
    try:
        import onnx_ir
    except ImportError:
        raise InputError("an onnx_ir.Model needs onnx-ir; install it with: pip install 'eqsat[onnx-ir]'") from None
    ir: Any = onnx_ir
    model = ir.from_proto(proto)
    if folder is not None:
        ir.external_data.set_base_dir(model.graph, str(folder))
    return model


def same_kind(source: object, proto: onnx.ModelProto, folder: Path | None) -> Any:
    """Return a message as the kind of model that a source is.

    A program of torch keeps its exported program, whose inputs and outputs are the same.
    """
    if is_program(source):
        program: Any = source
        return type(program)(to_onnx_ir(proto, folder), program.exported_program)
    return to_onnx_ir(proto, folder) if _is_onnx_ir(source) else proto
