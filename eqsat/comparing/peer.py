"""Peers: `python -m eqsat.comparing.peer NAME SOURCE TARGET [LIBRARY]` lets another optimizer
optimize a file. Those that run the model load the library of its custom operators.

Each is called as its own documentation does, with its own defaults. The command is a separate
process, because an optimizer may crash, hang or leave its memory full.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx

from eqsat.model.external_data import has_external_data

_LARGE = 1024  # bytes of weights that become external, as with onnx's own function


def onnxsim(source: Path, target: Path, library: str | None) -> None:
    simplified, _ = _module("onnxsim").simplify(_load(source), custom_lib=library)
    _save(simplified, target)


def onnxslim(source: Path, target: Path, library: str | None) -> None:
    _save(_module("onnxslim").slim(_load(source)), target)


def onnxoptimizer(source: Path, target: Path, library: str | None) -> None:
    _save(_module("onnxoptimizer").optimize(_load(source)), target)


def onnxscript(source: Path, target: Path, library: str | None) -> None:
    _save(_module("onnxscript.optimizer").optimize(_load(source)), target)


def ort_basic(source: Path, target: Path, library: str | None) -> None:
    _by_onnxruntime(source, target, library, "ORT_ENABLE_BASIC")


def ort_extended(source: Path, target: Path, library: str | None) -> None:
    _by_onnxruntime(source, target, library, "ORT_ENABLE_EXTENDED")


def _by_onnxruntime(source: Path, target: Path, library: str | None, level: str) -> None:
    """Lets ONNX Runtime write the graph that it makes of a model when it loads it."""
    runtime = _module("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(target)
    if library is not None:
        options.register_custom_ops_library(library)
    options.log_severity_level = 3  # it warns that files of these levels are for this machine
    if has_external_data(onnx.load(source, load_external_data=False)):  # pyright: ignore[reportUnknownMemberType]
        # Otherwise the result refers to the data of the original, as if they lay beside it.
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", f"{target.name}.data")
        options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", str(_LARGE))
    runtime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def _module(name: str) -> Any:
    """Returns a module without type stubs."""
    return importlib.import_module(name)


def _load(source: Path) -> onnx.ModelProto:
    return onnx.load(source)  # pyright: ignore[reportUnknownMemberType]


def _save(model: onnx.ModelProto, target: Path) -> None:
    """Writes a model; one that is larger than a message can be has its weights in another file."""
    try:
        data = model.SerializeToString()
    except Exception:  # protobuf has an exception of its own for this in each version
        onnx.save_model(model, target, save_as_external_data=True, location=f"{target.name}.data")  # pyright: ignore[reportUnknownMemberType]
    else:
        target.write_bytes(data)


PEERS: dict[str, Callable[[Path, Path, str | None], None]] = {
    "onnxsim": onnxsim,
    "onnxslim": onnxslim,
    "onnxoptimizer": onnxoptimizer,
    "onnxscript": onnxscript,
    "ort-basic": ort_basic,
    "ort-extended": ort_extended,
}


def main() -> None:
    name, source, target, *library = sys.argv[1:]
    try:
        PEERS[name](Path(source), Path(target), library[0] if library else None)
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {' '.join(str(error).split())}")


if __name__ == "__main__":
    main()
