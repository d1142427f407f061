"""Evaluation: a model is read once and computed many times, node by node, on different inputs and
in two modes.

The input is a model of the newest opset without bodies, and arrays for its inputs. The output is a
`Program`, and for each run of it a `Run`: the outputs, and events such as an infinity. In the mode
`BITS` every node computes in the types that the model declares. In the mode `REAL` floats have
double precision throughout: only casts and quantization round to a declared type. The first engine
that supports a node computes it: eqsat/checker/kernels/reference.py, ONNX Runtime, the reference of
onnx.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

from eqsat.checker.kernels import foreign, reference
from eqsat.checker.kernels.call import Array, Call, Illegal, Kernel, Unsupported, is_float, some
from eqsat.checker.kernels.casts import rounds_floats
from eqsat.checker.kernels.noise import Noise
from eqsat.contributed import DOMAINS, register
from eqsat.facts.fact import FLOATS
from eqsat.model.model import BODY_TYPES
from eqsat.operators import Attributes, Operator, contributed_operator, find_operator, read_attributes

Feeds: TypeAlias = Mapping[str, Array]

_OBJECTION = re.compile(r"\(op_type:(\w+)[^)\n]*\): (?:\[\w+\] )?(.+)")

_DOUBLE = np.dtype(np.float64)


class Mode(Enum):
    """The meaning of a float: a number of its declared type, or a real number."""

    BITS = auto()
    REAL = auto()


class IllegalModel(Exception):
    """ONNX's checker or inference refuses the model; the text is its reason."""


class Step(NamedTuple):
    """A node, ready to be computed, and what its operator and attributes say of every run."""

    operator: Operator
    attributes: Attributes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dtypes: tuple[int, ...]
    results: tuple[int, ...]
    kinds: tuple[np.dtype[Any] | None, ...]  # the types of the results as numpy has them
    kernel: Kernel | None
    rounds: bool
    exact: bool  # whether short results on short operands are exact
    vanishes: bool  # whether its results may show an underflow
    ordered: bool  # whether it orders elements


@dataclass(slots=True)
class Run:
    """The outputs of one run of a program, and events in it.

    Only undisturbed runs with reals note events.
    """

    outputs: list[Array]
    exact: bool = True  # every float is the result of real arithmetic
    infinite: bool = False  # finite floats gave an infinity
    empty: bool = False  # some tensor has no elements
    vanished: bool = False  # some float may have underflowed

    def note_step(self, step: Step, inputs: Sequence[Array | None], results: Sequence[Array]) -> None:
        """Notes the inputs and results of one step of a run with reals."""
        self.exact = self.exact and step.exact
        if step.vanishes and not self.vanished:
            self.vanished = reference.vanishes(step.operator.name, inputs, results, self.infinite)
        if not self.infinite:
            self.infinite = any(map(_is_infinite, results)) and not any(map(_is_infinite, inputs))

    def note(self, values: Iterable[Array]) -> None:
        """Notes all values of a run with reals."""
        for array in values:
            self.empty |= array.size == 0
            if is_float(array):
                self.exact = self.exact and reference.is_short(array)


@dataclass(frozen=True, slots=True)
class Input:
    """The declared type of a graph input or constant."""

    dtype: int
    shape: tuple[int, ...]


class Program:
    """A model that is ready to run.

    Raises `IllegalModel` if ONNX's own inference refuses it, `Unsupported` if a type is not known.
    Who knows that inference accepts the model, and the data types that it finds, gives these as
    `types`.
    """

    def __init__(self, model: onnx.ModelProto, types: Mapping[str, int] | None = None) -> None:
        graph = (_typed(model) if types is None else model).graph
        self.constants: dict[str, Array] = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self.types: dict[str, int] = {tensor.name: tensor.data_type for tensor in graph.initializer}
        if types is not None:
            self.types |= types
        else:
            for value in (*graph.input, *graph.value_info, *graph.output):
                self.types.setdefault(value.name, value.type.tensor_type.elem_type)
        self.inputs: dict[str, Input] = {
            value.name: Input(value.type.tensor_type.elem_type, tuple(size.dim_value for size in value.type.tensor_type.shape.dim))
            for value in graph.input
            if value.name not in self.constants
        }
        self.outputs: list[str] = [value.name for value in graph.output]
        imports = {entry.domain: entry.version for entry in model.opset_import}
        self._steps: list[Step] = []
        for node in graph.node:
            step = self._step(node, imports)
            if step.operator.standard and step.operator.name == "Constant":
                self.constants[step.outputs[0]] = reference.KERNELS["Constant"](Call(step.operator, step.attributes, (), (), step.results))[0]
            else:
                self._steps.append(step)

    def _step(self, node: onnx.NodeProto, imports: Mapping[str, int]) -> Step:
        operator = contributed_operator(node.domain, node.op_type) or find_operator(node.domain, node.op_type, imports.get(node.domain, 1))
        attributes = read_attributes(operator, node.attribute)
        if operator.schema is None or not operator.pure or any(attribute.type in BODY_TYPES for attribute in node.attribute):
            raise Unsupported(f"{node.op_type} is random, has a body, or is not known")
        if unknown := [name for name in node.output if name and not self.types.get(name)]:
            raise Unsupported(f"the type of output {list(node.output).index(unknown[0])} of {node.op_type} is not known")
        inputs, outputs = tuple(node.input), tuple(node.output)
        results = tuple([self.types[name] if name else 0 for name in outputs])
        return Step(
            operator,
            attributes,
            inputs,
            outputs,
            tuple([self.types[name] if name else 0 for name in inputs]),
            results,
            tuple([helper.tensor_dtype_to_np_dtype(dtype) if dtype else None for dtype in results]),
            reference.KERNELS.get(operator.name) if operator.ruled else None,
            reference.rounds(operator.name, attributes),
            reference.exact_where_short(operator.name, attributes),
            reference.may_vanish(operator.name),
            operator.name in reference.ORDERED,
        )

    @property
    def numbers(self) -> Iterable[float]:
        """The floating-point attributes of all nodes."""
        for step in self._steps:
            yield from (value for value in step.attributes.values() if isinstance(value, float))

    @property
    def narrows(self) -> bool:
        """Whether a Cast rounds floats to another floating-point type."""
        return any(step.operator.name == "Cast" and rounds_floats(step.dtypes[0], step.results[0]) for step in self._steps)

    def run(self, feeds: Feeds, mode: Mode, noise: Noise | None = None) -> Run:
        """The outputs for `feeds`, which may redefine constants. Noise disturbs reals alone.

        Raises `Illegal` if a node gives them no meaning, `Unsupported` if no engine supports a
        node.
        """
        run = Run([])
        values = self._given(feeds, mode, noise)
        with np.errstate(all="ignore"):
            for step in self._steps:
                inputs = [values[name] if name else None for name in step.inputs]
                if step.ordered and mode is Mode.REAL and any(x is not None and is_float(x) and some(np.isnan(x)) for x in inputs):
                    raise Illegal(f"{step.operator.name} of a NaN, which has no place in any order")
                if noise is not None and mode is Mode.REAL:
                    results = _disturbed(step, inputs, noise)
                else:
                    results = _computed(step, step.attributes, inputs, mode)
                    if mode is Mode.REAL:
                        run.note_step(step, inputs, results)
                for name, result in zip(step.outputs, results, strict=False):
                    values[name] = result
            if mode is Mode.REAL and noise is None:
                run.note(values.values())
        run.outputs = [values[name] for name in self.outputs]
        return run

    def _given(self, feeds: Feeds, mode: Mode, noise: Noise | None) -> dict[str, Array]:
        """The values of inputs and constants by name."""
        known = {name: array for name, array in feeds.items() if name in self.inputs or name in self.constants}
        if mode is Mode.BITS:
            return self.constants | known
        fixed = self._reals
        if noise is not None:
            fixed = {name: _as_real(noise.constant(array)) for name, array in self.constants.items() if name not in feeds}
        return fixed | {name: _as_real(array) for name, array in known.items()}

    @functools.cached_property
    def _reals(self) -> dict[str, Array]:
        """The constants as reals."""
        return {name: _as_real(array) for name, array in self.constants.items()}


def _computed(step: Step, attributes: Attributes, inputs: Sequence[Array | None], mode: Mode) -> list[Array]:
    """The results of a step with these attributes."""
    call = Call(step.operator, attributes, tuple(inputs), step.dtypes, step.results)
    results = _by_engine(call, step, mode)
    if mode is Mode.REAL:
        return [_as_real(x) for x in results]
    # A normalization returns its statistics in the type in which it computed them.
    return [x if kind is None or x.dtype == kind else x.astype(kind) for x, kind in zip(results, step.kinds, strict=False)]


def _disturbed(step: Step, inputs: Sequence[Array | None], noise: Noise) -> list[Array]:
    """The results of a step with reals under a disturbance."""
    attributes = step.attributes if step.kernel is None else noise.attributes(step.attributes)
    if not step.rounds:
        return _computed(step, attributes, inputs, Mode.REAL)
    settings = reference.SETTINGS.get(step.operator.name, ())
    moved = [x if x is None or position in settings else noise.rounding(x) for position, x in enumerate(inputs)]
    return [noise.rounding(x) for x in _computed(step, attributes, moved, Mode.REAL)]


def _by_engine(call: Call, step: Step, mode: Mode) -> list[Array]:
    """The results of the first engine that supports a step."""
    if step.kernel is not None:
        try:
            return [np.asarray(x) for x in step.kernel(call)]
        except Unsupported:
            pass  # a runtime may have this form of the operator
        # numpy raises these for shapes that do not fit.
        except (ValueError, IndexError) as error:
            raise Illegal(str(error)) from None
    return foreign.compute(call if mode is Mode.BITS else _in_double(call))


def _is_infinite(x: Array | None) -> bool:
    """Tell whether some element is an infinity."""
    return x is not None and is_float(x) and some(np.isinf(x))


def _typed(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the types of all values, as ONNX's own inference finds them."""
    if any(entry.domain in DOMAINS for entry in model.opset_import):
        register()
    try:
        return _inferred(model, propagates=True)
    except IllegalModel as error:
        # Integer elements wrap, so an overflow during data propagation is no error: it concerns no
        # size.
        if "during data propagation" not in str(error):
            raise
    return _inferred(model, propagates=False)


def _inferred(model: onnx.ModelProto, propagates: bool) -> onnx.ModelProto:
    try:
        return shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=propagates)
    except Exception as error:  # inference raises exceptions of any type
        raise IllegalModel(_objection(str(error))) from None


def _objection(text: str) -> str:
    """ONNX's message on the first node that it objects to; other messages follow from that one."""
    found = _OBJECTION.search(text)
    return f"{found[1]}: {found[2].strip()}" if found else " ".join(text.split())


def _as_real(array: Array) -> Array:
    return array if array.dtype is _DOUBLE or not is_float(array) else array.astype(np.float64)


def _in_double(call: Call) -> Call:
    """The call for a runtime. Floats stay double if the operator admits that; otherwise they are
    rounded to their declared type.
    """
    schema = call.operator.schema
    assert schema is not None
    formals = list(schema.inputs)

    def taken(position: int, value: Array | None) -> Array | None:
        if value is None or not is_float(value):
            return value
        # The last formal of a variadic operator stands for all that follow.
        admitted = formals[min(position, len(formals) - 1)].types
        if "tensor(double)" in admitted and call.dtype(position) in FLOATS:
            return value
        return value.astype(helper.tensor_dtype_to_np_dtype(call.dtype(position)))

    return Call(call.operator, call.attributes, tuple(taken(position, value) for position, value in enumerate(call.inputs)), call.dtypes, call.results)
