"""Quantization: writes the int8 form of a model, as ONNX Runtime's own quantizer makes it by default.

The nodes stay, each between DequantizeLinear and QuantizeLinear, with weights and activations in
int8. Inputs that the description of the model draws decide the scales.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.inputs import description_path, read_description

quantization: Any = importlib.import_module("onnxruntime.quantization")

DRAWS = 4  # inputs from which the scales are taken


class _Draws(quantization.CalibrationDataReader):
    """The inputs as the quantizer asks for them: one draw at a time, then None."""

    def __init__(self, draws: Iterator[dict[str, np.ndarray]]) -> None:
        self._draws = draws

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._draws, None)


def quantize(model: Path, made: Path) -> None:
    """Writes the int8 form of a model with a description, and its description. The quantizer's
    exceptions pass through.
    """
    description = read_description(model)
    draws = _Draws(description.draw(seed) for seed in range(DRAWS))
    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder) / "prepared.onnx"
        # The quantizer wants the shapes of all values, and the model as the runtime simplifies it.
        quantization.quant_pre_process(model, prepared, skip_symbolic_shape=True)
        quantization.quantize_static(prepared, made, draws)
    made_by = {**description.made_by, "quantizer": f"onnxruntime {importlib.import_module('onnxruntime').__version__}"}
    description_path(made).write_text(replace(description, made_by=made_by).to_json(), encoding="utf-8")
    onnx.checker.check_model(made)
