"""Peers: `python -m benchmarks.latency.peer NAME SOURCE TARGET` lets another optimizer optimize a
file.

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


def onnxsim(model: onnx.ModelProto) -> onnx.ModelProto:
    simplified, _ = importlib.import_module("onnxsim").simplify(model)
    return simplified


def onnxslim(model: onnx.ModelProto) -> onnx.ModelProto:
    return importlib.import_module("onnxslim").slim(model)


def onnxscript(model: onnx.ModelProto) -> onnx.ModelProto:
    optimizer: Any = importlib.import_module("onnxscript.optimizer")
    return optimizer.optimize(model)


PEERS: dict[str, Callable[[onnx.ModelProto], onnx.ModelProto]] = {"onnxsim": onnxsim, "onnxslim": onnxslim, "onnxscript": onnxscript}


def main() -> None:
    name, source, target = sys.argv[1:]
    model = onnx.load_from_string(Path(source).read_bytes())
    Path(target).write_bytes(PEERS[name](model).SerializeToString())


if __name__ == "__main__":
    main()
