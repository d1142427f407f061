"""The runtime: ONNX Runtime with one thread and all of its optimizations, as in every figure here."""

from __future__ import annotations

import importlib
from typing import Any


def open_session(path: str, profile: str = "") -> Any:
    """Returns a session with one thread. `profile` is the beginning of the profile's file name."""
    runtime: Any = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.log_severity_level = 3
    if profile:
        options.enable_profiling = True
        options.profile_file_prefix = profile
    return runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
