"""eqsat as a pass of onnx_ir, for its pass managers and onnxscript's. It needs the extra `onnx-ir`.

The input is an `onnx_ir.Model` and the keyword arguments of `eqsat.optimize`, the output a model
that computes the same. `OptimizePass` changes a model in place, `FunctionalOptimizePass` returns
another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eqsat.pipeline import Result, run, settings_of

try:
    import onnx_ir
except ImportError:
    raise ImportError("eqsat.onnx_ir_pass needs the package onnx-ir; install it with: pip install 'eqsat[onnx-ir]'") from None

if TYPE_CHECKING:
    from eqsat.report import Report

_COPIED = ("graph", "ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string", "device_configurations")


class _Optimizer:
    """The settings of a pass, and the report of its last run."""

    def __init__(self, **settings: Any) -> None:
        """Takes the keyword arguments of `eqsat.optimize`. Raises `InputError` for a wrong one."""
        self._settings = settings_of(**settings)
        self.report: Report | None = None

    def _optimized(self, model: onnx_ir.Model) -> Result:
        result = run(model, self._settings)
        self.report = result.report
        return result

    def _modified(self, result: Result) -> bool:
        """Tells whether a result is another model than the given one."""
        original = result.original
        return bool(self._settings.dims or original.stripped or original.fixed) or result.model != original.proto


class OptimizePass(_Optimizer, onnx_ir.passes.InPlacePass):
    """Makes a model faster, in place: the model gets another graph, with the interface of `Result.model`.

    `report` is the report of the last run (docs/report.md).

    >>> import onnx_ir
    >>> from eqsat.onnx_ir_pass import OptimizePass
    >>> model = onnx_ir.from_onnx_text('''
    ... <ir_version: 8, opset_import: ["" : 17]>
    ... g (float[N, 4] x) => (float[N, 4] y) { a = Relu (x)  b = Relu (a)  y = Identity (b) }
    ... ''')
    >>> result = onnx_ir.passes.Sequential(OptimizePass(effort="low"))(model)
    >>> result.modified, [node.op_type for node in model.graph]
    (True, ['Relu'])
    """

    def call(self, model: onnx_ir.Model) -> onnx_ir.passes.PassResult:
        """Optimizes a model. A model that is as good as it can be is left alone."""
        result = self._optimized(model)
        if not self._modified(result):
            return onnx_ir.passes.PassResult(model, modified=False)
        other = result.to_onnx_ir()
        for name in _COPIED:
            setattr(model, name, getattr(other, name))
        model.functions.clear()
        model.functions.update(other.functions)
        model.metadata_props.clear()
        model.metadata_props.update(other.metadata_props)
        return onnx_ir.passes.PassResult(model, modified=True)


class FunctionalOptimizePass(_Optimizer, onnx_ir.passes.FunctionalPass):
    """Returns a faster model, and leaves the given one as it is."""

    def call(self, model: onnx_ir.Model) -> onnx_ir.passes.PassResult:
        """Optimizes a copy of a model."""
        result = self._optimized(model)
        return onnx_ir.passes.PassResult(result.to_onnx_ir(), modified=self._modified(result))
