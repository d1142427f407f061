"""Quantization: writes smaller forms of a model, as ONNX Runtime's own tools make them.

- `int8`, the default of the tool: the nodes stay, each between DequantizeLinear and QuantizeLinear,
  with weights and activations in int8. Inputs that the description of the model draws decide the
  scales, here and in the next two.
- `uint8`: likewise with activations in uint8, and a scale for each channel of a weight.
- `operators`: operators of quantized tensors, such as QLinearMatMul, in place of the nodes.
- `dynamic`: weights in int8, and scales of activations that the model computes when it runs.
- `float16`: floats of 16 bits, between Casts at inputs and outputs.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Iterator
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


def _static(**settings: Any) -> Callable[[Path, Path, _Draws], None]:
    return lambda prepared, made, draws: quantization.quantize_static(prepared, made, draws, **settings)


# Without `reduce_range` the kernels of processors without products of bytes cut sums off.
_BYTES = {"activation_type": quantization.QuantType.QUInt8, "weight_type": quantization.QuantType.QInt8, "reduce_range": True}


def _dynamic(prepared: Path, made: Path, _: _Draws) -> None:
    quantization.quantize_dynamic(prepared, made, weight_type=quantization.QuantType.QInt8, per_channel=True, reduce_range=True)


def _float16(prepared: Path, made: Path, _: _Draws) -> None:
    model = importlib.import_module("onnxruntime.transformers.onnx_model").OnnxModel(onnx.load(prepared))
    model.convert_float_to_float16(keep_io_types=True)
    model.topological_sort()  # the Casts of the inputs come last
    onnx.save(model.model, made)


FORMS: dict[str, Callable[[Path, Path, _Draws], None]] = {
    "int8": _static(),
    "uint8": _static(per_channel=True, **_BYTES),
    "operators": _static(quant_format=quantization.QuantFormat.QOperator, **_BYTES),
    "dynamic": _dynamic,
    "float16": _float16,
}
"""The function that writes each form of a prepared model."""


def quantize(model: Path, made: Path, form: str) -> None:
    """Writes a form of a model with a description, and its description. The tools' exceptions pass
    through.
    """
    description = read_description(model)
    draws = _Draws(description.draw(seed) for seed in range(DRAWS))
    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder) / "prepared.onnx"
        # The quantizer wants the shapes of all values, and the model as the runtime simplifies it.
        quantization.quant_pre_process(model, prepared, skip_symbolic_shape=True)
        FORMS[form](prepared, made, draws)
    made_by = {**description.made_by, "quantizer": f"onnxruntime {importlib.import_module('onnxruntime').__version__}, {form}"}
    description_path(made).write_text(replace(description, made_by=made_by).to_json(), encoding="utf-8")
    onnx.checker.check_model(made)
