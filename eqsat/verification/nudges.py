"""Nudges: a model and its inputs, moved by a few units in the last place.

They show how far rounding carries. The input is a serialized model, inputs, and the values that
steer the model (eqsat/verification/steering.py). The output is the moved inputs, and the model with
moved weights; a seed always gives the same ones. Values that decide sizes, indices and bounds stay
as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from eqsat.runtime.session import Session
from eqsat.verification import tolerance
from eqsat.verification.last_places import nudge
from eqsat.verification.leaves import is_float, plain
from eqsat.verification.steering import Steering

if TYPE_CHECKING:
    import onnx

_NUDGES = 16
_STILL = 2  # of these, where no input has floats
_WEIGHT_NUDGES = 8
_LARGEST_MODEL_TO_NUDGE = 1 << 27
_LARGEST_TO_KEEP = 1 << 24  # the most bytes of a model whose nudged sessions serve further inputs


class Nudge(NamedTuple):
    """A run that shows rounding: a session, its inputs, and the factor by which changes of the
    outputs count.
    """

    session: Session
    inputs: dict[str, Any]
    factor: float


class Nudges:
    """The nudges of one model.

    Its `weights` are so many bytes, and `folder` has those with external data. `session` runs the model
    itself; `opener` opens it with other weights.
    """

    def __init__(
        self,
        model: bytes,
        weights: int,
        folder: str | None,
        session: Session,
        opener: Callable[[bytes], Session],
        steering: Steering,
        coarsest: np.dtype[Any] | None,
        seed: int,
    ) -> None:
        self._model = model
        self._folder = folder
        self._session = session
        self._opener = opener
        self._steering = steering
        self._coarsest = coarsest
        self._seed = seed
        self._kept: dict[int, Session | None] = {}
        self.keeps = weights <= _LARGEST_TO_KEEP
        """Whether sessions with nudged weights are kept for further inputs."""

    def inputs(self, inputs: Mapping[str, Any]) -> Iterator[Nudge]:
        """Yields the model with nudged inputs.

        Inputs without floats stay as they are. Their runs show whether the original agrees with
        itself: an output may contain memory that nothing wrote.
        """
        generator = np.random.default_rng([self._seed, 1])
        for number in range(_NUDGES):
            units = _units(number)
            fed = self._fed(inputs, units, generator)
            if number >= _STILL and all(fed[name] is value for name, value in inputs.items()):
                return
            yield Nudge(self._session, fed, tolerance.MULTIPLE / units)

    def weights(self, inputs: Mapping[str, Any]) -> Iterator[Nudge]:
        """Yields the model with nudged weights and inputs, at last in the last place of the model's
        narrowest type.
        """
        generator = np.random.default_rng([self._seed, 3])
        for number in range(_WEIGHT_NUDGES if self._coarsest is None else 2 * _WEIGHT_NUDGES):
            narrow = self._coarsest if number >= _WEIGHT_NUDGES else None
            units = _units(number) if narrow is None else 1
            session = self._nudged(number, units, narrow)
            if session is None:
                return
            yield Nudge(session, self._fed(inputs, units, generator, narrow), tolerance.MULTIPLE / units)

    def _fed(self, inputs: Mapping[str, Any], units: int, generator: np.random.Generator, narrow: np.dtype[Any] | None = None) -> dict[str, Any]:
        return {name: value if name in self._steering.inputs else nudge(value, units, generator, narrow) for name, value in inputs.items()}

    def _nudged(self, number: int, units: int, narrow: np.dtype[Any] | None) -> Session | None:
        """Returns a session with nudged weights; None if the model has none."""
        if number in self._kept:
            return self._kept[number]
        model = nudge_weights(self._model, units, np.random.default_rng([self._seed, 2, number]), narrow, self._steering.constants, self._folder)
        session = None if model is None else self._opener(model)
        if self.keeps:
            self._kept[number] = session
        return session


def _units(number: int) -> int:
    return tolerance.MULTIPLE if number % 2 else 1


def nudge_weights(
    model: bytes,
    units: int,
    generator: np.random.Generator,
    coarsest: np.dtype[Any] | None,
    kept: frozenset[str] = frozenset(),
    folder: str | None = None,
) -> bytes | None:
    """Returns the model with its floating-point weights nudged, those with external data in `folder`
    too, which then are inside of the model. Of external ones, only the smallest move if all would take
    too many bytes: there are some of them in each layer.

    Weights in `kept` stay. So do weights of whole numbers: they may be counts or signs, whose
    meaning a nudge would break. Returns None if no weight moves, or if the message is too large.
    """
    import onnx
    from onnx import numpy_helper

    if len(model) > _LARGEST_MODEL_TO_NUDGE:
        return None
    proto = onnx.load_model_from_string(model)
    # A ConstantOfShape may hold a weight, whose elements are all equal.
    holders = (node for node in proto.graph.node if node.op_type in ("Constant", "ConstantOfShape"))
    constants = ((node.output[0], attribute.t) for node in holders for attribute in node.attribute if attribute.name == "value")
    changed, kept = False, kept | _too_many(proto.graph.initializer, _LARGEST_MODEL_TO_NUDGE - len(model))
    for name, tensor in (*((tensor.name, tensor) for tensor in proto.graph.initializer), *constants):
        if name not in kept and tensor.data_type != onnx.TensorProto.STRING:
            array = numpy_helper.to_array(tensor, folder or "")
            if is_float(array) and not _is_whole(array):
                tensor.CopyFrom(numpy_helper.from_array(nudge(array, units, generator, coarsest), tensor.name))
                changed = True
    return proto.SerializeToString() if changed else None


def _too_many(weights: Iterable[onnx.TensorProto], room: int) -> set[str]:
    """Returns the names of external weights, the largest ones, for which there is no room."""
    from onnx.external_data_helper import uses_external_data

    from eqsat.model.tensors import tensor_bytes

    sizes = sorted((tensor_bytes(tensor), tensor.name) for tensor in weights if uses_external_data(tensor))
    return {name for (_, name), end in zip(sizes, accumulate(size for size, _ in sizes), strict=True) if end > room}


def _is_whole(array: np.ndarray) -> bool:
    values = plain(array)
    return bool(np.isfinite(values).all() and (values == np.rint(values)).all())
