"""Nudges: a model and its inputs moved by a unit or a few in their last place, which shows how far rounding may carry.

Comes in: a serialized model, inputs, and what steers the model (eqsat/steering.py). Goes out: the inputs moved, and the
model with its weights moved too, the same ones for the same seed. What decides sizes, indices and bounds stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from eqsat import compare
from eqsat.runtime import Session
from eqsat.steering import Steering

_NUDGES = 16
_WEIGHT_NUDGES = 8
_LARGEST_MODEL_TO_NUDGE = 1 << 27
_LARGEST_TO_KEEP = 1 << 24  # bytes of a model whose nudged sessions are kept for further inputs


class Nudges:
    """The nudges of one model: `session` runs it as it is, `opener` makes a session of a model with other weights."""

    def __init__(
        self, model: bytes, session: Session, opener: Callable[[bytes], Session], steering: Steering, coarsest: np.dtype[Any] | None, seed: int
    ) -> None:
        self._model = model
        self._session = session
        self._opener = opener
        self._steering = steering
        self._coarsest = coarsest
        self._seed = seed
        self._kept: dict[int, Session | None] = {}

    def of(self, inputs: Mapping[str, Any]) -> Iterator[tuple[Session, dict[str, Any], float]]:
        """The model on nudged inputs; then with its weights nudged too; then by the last place of its narrowest type.

        Each with the factor by which what it moves counts.
        """
        generator = np.random.default_rng([self._seed, 1])

        def feeds(units: int, narrow: np.dtype[Any] | None = None) -> dict[str, Any]:
            return {name: value if name in self._steering.inputs else compare.nudge(value, units, generator, narrow) for name, value in inputs.items()}

        for number in range(_NUDGES):
            units = _units(number)
            yield self._session, feeds(units), compare.MULTIPLE / units
        for number in range(_WEIGHT_NUDGES if self._coarsest is None else 2 * _WEIGHT_NUDGES):
            narrow = self._coarsest if number >= _WEIGHT_NUDGES else None
            units = _units(number) if narrow is None else 1
            session = self._nudged(number, units, narrow)
            if session is None:
                return
            yield session, feeds(units, narrow), compare.MULTIPLE / units

    def _nudged(self, number: int, units: int, narrow: np.dtype[Any] | None) -> Session | None:
        """The model with its weights nudged; None if it has none."""
        if number in self._kept:
            return self._kept[number]
        model = nudge_weights(self._model, units, np.random.default_rng([self._seed, 2, number]), narrow, self._steering.constants)
        session = None if model is None else self._opener(model)
        if len(self._model) <= _LARGEST_TO_KEEP:
            self._kept[number] = session
        return session


def _units(number: int) -> int:
    return compare.MULTIPLE if number % 2 else 1


def nudge_weights(model: bytes, units: int, generator: np.random.Generator, coarsest: np.dtype[Any] | None, kept: frozenset[str] = frozenset()) -> bytes | None:
    """The model with the floating-point weights that it holds nudged; None if it holds none, or too many bytes of them.

    Those that are `kept` stay, and those that hold whole numbers: they may mean what a nudge would break, a count or a sign.
    """
    import onnx
    from onnx import numpy_helper

    if len(model) > _LARGEST_MODEL_TO_NUDGE:
        return None
    proto = onnx.load_model_from_string(model)
    # A weight that is one number everywhere may be held by the operator that fills it.
    holders = (node for node in proto.graph.node if node.op_type in ("Constant", "ConstantOfShape"))
    constants = ((node.output[0], attribute.t) for node in holders for attribute in node.attribute if attribute.name == "value")
    changed = False
    for name, tensor in (*((tensor.name, tensor) for tensor in proto.graph.initializer), *constants):
        if name not in kept and tensor.data_location != onnx.TensorProto.EXTERNAL and tensor.data_type != onnx.TensorProto.STRING:
            array = numpy_helper.to_array(tensor)
            if compare.is_float(array) and not _is_whole(array):
                tensor.CopyFrom(numpy_helper.from_array(compare.nudge(array, units, generator, coarsest), tensor.name))
                changed = True
    return proto.SerializeToString() if changed else None


def _is_whole(array: np.ndarray) -> bool:
    values = compare.plain(array)
    return bool(np.isfinite(values).all() and (values == np.rint(values)).all())
