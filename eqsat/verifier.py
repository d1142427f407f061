"""The verify stage: does one model compute what another computes?

Comes in: two models (eqsat/subject.py), and perhaps the user's inputs. Goes out: a `Verdict`, plain data with figures.
Promised: "equal" is said only of models that ran on the same inputs, or are the same graph, and whose every output
that is not random was the same bits or within a tolerance that the original's own sensitivity sets; what could not
be run is "unverified", and says why. No model can take this process down (eqsat/worker.py).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from eqsat.errors import InputError
from eqsat.judge import DIFFERENT, EQUAL, UNVERIFIED, Judgement, OutputJudgement, Request
from eqsat.names import stored_names
from eqsat.ranges import nodes_in_order
from eqsat.regions import Cut, Region
from eqsat.samples import Plan, Spec, make_plan, numpy_dtype
from eqsat.subject import Subject, depends_on_inputs, has_external_data, random_outputs, read_subject, weight_bytes
from eqsat.worker import RemoteError, Worker, WorkerDied, WorkerTimeout, shared

__all__ = ["DIFFERENT", "EQUAL", "UNVERIFIED", "Subject", "Verdict", "verify", "verify_files"]

# A weight is there as the file's bytes, as a tensor, and perhaps packed for a kernel.
_COPIES = 3
_HEADROOM = 4  # activations come on top of weights, and the limit is to catch explosions, not to be exact
_RUNTIME_BYTES = 1 << 29  # what the runtime itself may need, whatever the model
_MANY_BYTES = 1 << 24
_MANY_NODES = 20_000
_NAMES_GIVEN_UP = 64
_ONLY_ONES = "it ran only at sizes that are all 1"
_DEPTHS = (0, 1, 4, 16, sys.maxsize)  # how many levels of nodes before a region are taken in, until it is found equal


@dataclass
class Verdict:
    """What verification found; `asdict` of it is JSON.

    `status` is "equal", "different" or "unverified", the last two with a `reason`; `output` is the one that differs, if one does. `sizes` lists, for each named
    dimension, the size in each run. `regions` counts the parts that were judged apart, None when the models were run whole.
    """

    status: str
    reason: str = ""
    output: str = ""
    engine: str = ""
    outputs: list[OutputJudgement] = field(default_factory=list[OutputJudgement])
    runs: int = 0
    sizes: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    notes: list[str] = field(default_factory=list[str])
    regions: int | None = None
    seconds: float = 0.0

    @property
    def max_error(self) -> float | None:
        """The largest error of any output; None if one was not finite."""
        errors = [output.max_error for output in self.outputs]
        return None if None in errors else max((error for error in errors if error is not None), default=0.0)

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain JSON data."""
        return {**asdict(self), "max_error": self.max_error}


def verify_files(
    original: str | Path,
    optimized: str | Path,
    *,
    inputs: Mapping[str, np.ndarray] | None = None,
    seed: int = 0,
    memory_limit: int = 1 << 30,
    custom_op_library: str | Path | None = None,
    time_limit: float = 60.0,
) -> Verdict:
    """`verify` for two files; raises `InputError` if one of them is not a model."""
    return verify(
        read_subject(original),
        read_subject(optimized),
        inputs=inputs,
        seed=seed,
        memory_limit=memory_limit,
        custom_op_library=custom_op_library,
        time_limit=time_limit,
    )


def verify(
    original: Subject,
    optimized: Subject,
    *,
    inputs: Mapping[str, np.ndarray] | None = None,
    seed: int = 0,
    memory_limit: int = 1 << 30,
    custom_op_library: str | Path | None = None,
    time_limit: float = 60.0,
    worker: Worker | None = None,
) -> Verdict:
    """Whether `optimized` computes what `original` computes, on random inputs or on `inputs`.

    Raises `InputError` if `inputs` are not what the original takes. Models whose weights need more than `memory_limit`
    bytes are judged region by region. `time_limit` is in seconds and holds for each call of the runtime.
    """
    started = time.perf_counter()
    judge = _Judge(seed, memory_limit, str(custom_op_library) if custom_op_library is not None else None, time_limit, worker or shared())
    verdict = _verify(original, optimized, inputs, judge)
    verdict.seconds = time.perf_counter() - started
    return verdict


@dataclass(frozen=True)
class _Judge:
    seed: int
    memory_limit: int
    custom_op_library: str | None
    time_limit: float
    worker: Worker
    proved: set[bytes] = field(default_factory=set[bytes])  # forms of regions that were equal

    def ask(self, request: Request) -> Judgement:
        """The worker's judgement; a crash is the original's if it happens without the optimized model too."""
        try:
            return self._call(request)
        except WorkerTimeout as failure:
            return Judgement(UNVERIFIED, f"the runtime {failure}", late=True)
        except (WorkerDied, RemoteError) as failure:
            try:
                alone = self._call(replace(request, optimized=None))
            except (WorkerDied, WorkerTimeout, RemoteError) as again:
                return Judgement(UNVERIFIED, f"the runtime {again} on the original model")
            if alone.status == UNVERIFIED:
                return alone
            status = DIFFERENT if isinstance(failure, WorkerDied) else UNVERIFIED
            return Judgement(status, f"the runtime {failure} on the optimized model", alone.engine)

    def _call(self, request: Request) -> Judgement:
        return self.worker.call("eqsat.judge:judge", request, timeout=self.time_limit, memory=max(self.memory_limit * _HEADROOM, _RUNTIME_BYTES))


def _verify(original: Subject, optimized: Subject, inputs: Mapping[str, np.ndarray] | None, judge: _Judge) -> Verdict:
    reason = _interface_change(original.proto, optimized.proto)
    if reason:
        return Verdict(DIFFERENT, reason)
    if _same_graph(original, optimized):
        return Verdict(EQUAL, notes=["unchanged: the two models are the same graph; nothing was run"])
    try:
        plan = make_plan(original.proto)
    except NotImplementedError as error:
        return Verdict(UNVERIFIED, str(error))
    if inputs is not None:
        inputs = _checked_inputs(inputs, plan)
    if (weight_bytes(original.proto) + weight_bytes(optimized.proto)) * _COPIES > judge.memory_limit:
        return _by_regions(original, optimized, judge, "the weights do not fit in the memory limit")
    if inputs is None and max(len(subject.proto.graph.node) for subject in (original, optimized)) > _MANY_NODES:
        # Loading is not linear in every runtime; where little differs, there is little to run.
        verdict = _by_regions(original, optimized, judge, f"there are more than {_MANY_NODES:,} nodes")
        if verdict.status == EQUAL:
            return verdict
    try:
        return _whole(original, optimized, inputs, plan, judge)
    except _TooMuch as reason:
        # What is the same in both models needs no running, and often that is nearly all.
        verdict = _by_regions(original, optimized, judge, str(reason))
        if verdict.status == UNVERIFIED:
            verdict.reason = f"{reason}; {verdict.reason}"
        return verdict


class _TooMuch(Exception):
    """The models can not be run as a whole: why."""


def _whole(original: Subject, optimized: Subject, inputs: Mapping[str, np.ndarray] | None, plan: Plan, judge: _Judge) -> Verdict:
    try:
        request = _request(original, optimized, inputs, plan, judge)
    except ValueError:  # protobuf's, on a message over its limit
        raise _TooMuch("the model is too large to be handed to the runtime in one piece") from None
    judgement = judge.ask(request)
    if judgement.late:
        raise _TooMuch(judgement.reason)
    verdict = Verdict(
        judgement.status, judgement.reason, judgement.output, judgement.engine, judgement.outputs, judgement.runs, judgement.sizes, judgement.notes
    )
    still = [output.name for output in verdict.outputs if output.exercised is False]
    if still:
        verdict.notes.append(f"not exercised, the same on every draw: {', '.join(still)}")
    if verdict.status == EQUAL and inputs is None and _defaults(original.proto):
        _with_defaults_replaced(verdict, original, request, judge)
    return verdict


def _with_defaults_replaced(verdict: Verdict, original: Subject, request: Request, judge: _Judge) -> None:
    """One more trial in which inputs that have a default value are fed as well."""
    judgement = judge.ask(replace(request, plan=make_plan(original.proto, overridable=True)))
    if judgement.status == DIFFERENT:
        verdict.status = DIFFERENT
        verdict.reason = f"with other values for the inputs that have a default: {judgement.reason}"
    elif judgement.status == UNVERIFIED:
        verdict.notes.append(f"inputs that have a default value were left at it: {judgement.reason}")
    else:
        verdict.runs += judgement.runs


def _request(original: Subject, optimized: Subject, inputs: Mapping[str, np.ndarray] | None, plan: Plan, judge: _Judge) -> Request:
    proto = original.proto
    return Request(
        original=proto.SerializeToString(),
        original_folder=_folder(original),
        optimized=optimized.proto.SerializeToString(),
        optimized_folder=_folder(optimized),
        plan=plan,
        outputs=tuple(value.name for value in proto.graph.output),
        dependent=depends_on_inputs(proto),
        random=random_outputs(proto) | random_outputs(optimized.proto),
        coarsest=_coarsest(proto),
        inputs=inputs,
        seed=judge.seed,
        patience=judge.time_limit / 8,
        threads=min(os.cpu_count() or 1, 4) if weight_bytes(proto) > _MANY_BYTES else 1,
        custom_op_library=judge.custom_op_library,
    )


def _by_regions(original: Subject, optimized: Subject, judge: _Judge, reason: str) -> Verdict:
    """Judge apart what differs; what is the same in both needs no running. `reason` is why the models are not run whole."""
    cut = Cut(original, optimized)
    verdict = Verdict(EQUAL, regions=len(cut))
    verdict.notes.append(f"judged region by region, on random values between the regions: {reason}")
    results = {value.name for value in original.proto.graph.output}
    judged: set[object] = set()
    given_up = number = 0
    end = time.monotonic() + judge.time_limit
    while number < len(cut):
        if time.monotonic() > end and verdict.status == EQUAL:
            verdict.status, verdict.reason = UNVERIFIED, f"{len(cut) - number} of {len(cut)} regions were not reached in {judge.time_limit:g} s"
            break
        if cut.key(number) in judged:
            number += 1
            continue
        part, closed = _one_region(cut, number, judge)
        if part.status == DIFFERENT and part.output and given_up < _NAMES_GIVEN_UP and cut.uncut(part.output):
            given_up += 1
            number = 0
            continue
        if part.status == DIFFERENT and not (closed and (not part.output or part.output in results)):
            # A name inside the models may have been given to another value.
            doubt = "the name may stand for another value" if closed else "on arbitrary values; it may hold on those that arise"
            part.status, part.reason = UNVERIFIED, f"{part.reason} ({doubt})"
        judged.add(cut.key(number))
        number += 1
        verdict.engine = verdict.engine or part.engine
        verdict.outputs += part.outputs
        verdict.runs += part.runs
        verdict.notes += part.notes
        if part.status == DIFFERENT or (part.status == UNVERIFIED and verdict.status == EQUAL):
            verdict.status, verdict.reason, verdict.output = part.status, part.reason, part.output
        if part.status == DIFFERENT:
            break
    verdict.regions = len(judged)
    return verdict


def _one_region(cut: Cut, number: int, judge: _Judge) -> tuple[Verdict, bool]:
    """The verdict on a region, and whether its inputs are the whole model's.

    What fails on arbitrary values between regions may hold on those that really arise, and what no arbitrary value moved
    may move on those: then deeper regions tell.
    """
    part, closed = Verdict(UNVERIFIED), False
    for depth in _DEPTHS:
        region = cut.region(number, depth, judge.memory_limit // _COPIES)
        if isinstance(region, str):
            part.reason = part.reason or region
            break
        form = region.form()
        if form is not None and form in judge.proved:
            return Verdict(EQUAL), False
        try:
            part, closed = _whole(region.original, region.optimized, None, make_plan(region.original.proto), judge), region.closed
        except (NotImplementedError, _TooMuch) as reason:
            part, closed = Verdict(UNVERIFIED, str(reason)), False
        if part.status == EQUAL:
            still = _not_tried(region, part)
            if not still and form is not None:
                judge.proved.add(form)
            if not still or (closed and still != _ONLY_ONES):  # what the whole model's inputs do not move is as good as constant
                break
            part.status, part.reason = UNVERIFIED, still
        elif part.status == DIFFERENT and not part.runs:
            # That a runtime refuses a part tells of how it was cut.
            part.status, part.output = UNVERIFIED, ""
        part.reason = f"region of {region.name}: {part.reason}"
        if closed:
            break
    return part, closed


def _not_tried(region: Region, part: Verdict) -> str:
    """Why running a region told nothing, though both models agreed; empty if it told something."""
    moving = region.moving()
    sizes = list(part.sizes.values())
    if sizes and all(size == 1 for column in sizes for size in column):
        return _ONLY_ONES
    # What depends on sizes alone is told by two choices of them.
    varied = len(set(zip(*sizes, strict=True))) != 1
    still = [output.name for output in part.outputs if output.exercised is False and not varied]
    still += [output.name for output in part.outputs if output.name in moving and not output.random and not output.exercised]
    return f"nothing that was drawn moved {still[0]}" if still else ""


def _folder(subject: Subject) -> str | None:
    return str(subject.folder) if subject.folder is not None and has_external_data(subject.proto) else None


def _defaults(proto: onnx.ModelProto) -> list[str]:
    """The inputs that have a default value; before IR version 4 an initializer had to be an input and was no default."""
    given = set(stored_names(proto.graph))
    return [value.name for value in proto.graph.input if value.name in given] if proto.ir_version >= 4 else []


def _same_graph(original: Subject, optimized: Subject) -> bool:
    a, b = original.proto, optimized.proto
    if a is b:
        return original.folder == optimized.folder
    if len(a.graph.node) != len(b.graph.node) or (has_external_data(a) and original.folder != optimized.folder):
        return False
    return list(a.opset_import) == list(b.opset_import) and a.graph == b.graph and list(a.functions) == list(b.functions)


def _interface_change(a: onnx.ModelProto, b: onnx.ModelProto) -> str:
    """How the names, order or types of inputs and outputs differ; empty if they do not."""
    required: list[list[onnx.ValueInfoProto]] = []
    for proto in (a, b):
        given = set(stored_names(proto.graph))
        required.append([value for value in proto.graph.input if value.name not in given])
    missing = sorted(set(_defaults(a)) - {value.name for value in b.graph.input})
    if missing:
        return f"the optimized model lacks input '{missing[0]}', which has a default value in the original"
    for what, before, after in (("inputs", *required), ("outputs", a.graph.output, b.graph.output)):
        names = [[value.name for value in values] for values in (before, after)]
        if names[0] != names[1]:
            return f"the {what} are {', '.join(names[0]) or 'none'} in the original and {', '.join(names[1]) or 'none'} in the optimized model"
        for old, new in zip(before, after, strict=True):
            types = _type_name(old.type), _type_name(new.type)
            if types[0] != types[1] and "" not in types:
                return f"'{old.name}' of the {what} is {types[0]} in the original and {types[1]} in the optimized model"
    return ""


def _type_name(kind: onnx.TypeProto) -> str:
    """A type without shapes; empty where the file states none."""
    which = kind.WhichOneof("value")
    if which in ("tensor_type", "sparse_tensor_type"):
        code = getattr(kind, which).elem_type
        return f"{which.removesuffix('_type')}({onnx.TensorProto.DataType.Name(code).lower()})" if code else ""
    if which == "map_type":
        return f"map({kind.map_type.key_type}, {_type_name(kind.map_type.value_type)})"
    return f"{which.removesuffix('_type')}({_type_name(getattr(kind, which).elem_type)})" if which in ("sequence_type", "optional_type") else ""


def _coarsest(proto: onnx.ModelProto) -> str:
    """The narrowest of float16 and bfloat16 in the model: what its arithmetic rounds to, whatever its inputs are."""
    types = {tensor.data_type for tensor in proto.graph.initializer}
    types.update(value.type.tensor_type.elem_type for value in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info))
    for node in nodes_in_order(proto.graph.node):
        for attribute in node.attribute:
            if attribute.name == "to":
                types.add(attribute.i)
            elif attribute.type == onnx.AttributeProto.TENSOR:
                types.add(attribute.t.data_type)
    return "bfloat16" if onnx.TensorProto.BFLOAT16 in types else "float16" if onnx.TensorProto.FLOAT16 in types else ""


def _checked_inputs(inputs: Mapping[str, np.ndarray], plan: Plan) -> dict[str, np.ndarray]:
    """The user's inputs in the types of the model; raises `InputError` naming the first that does not fit."""
    missing = [name for name in plan.inputs if name not in inputs]
    extra = [name for name in inputs if name not in plan.inputs]
    if missing or extra:
        parts = [f"{what} {', '.join(names)}" for what, names in (("missing:", missing), ("not an input of the model:", extra)) if names]
        raise InputError(f"the given inputs do not fit the model: {'; '.join(parts)}")
    return {name: _checked_input(name, inputs[name], spec) for name, spec in plan.inputs.items()}


def _checked_input(name: str, array: np.ndarray, spec: Spec) -> np.ndarray:
    if spec.kind == "optional" and spec.element is not None:
        return _checked_input(name, array, spec.element)
    if spec.kind != "tensor":
        raise InputError(f"input '{name}' is a {spec.kind}, which a file of arrays can not hold")
    if spec.dtype == "str":
        if array.dtype.kind not in "OU":
            raise InputError(f"input '{name}' must hold strings, not {array.dtype}")
        array = array.astype(object)
    else:
        kind = numpy_dtype(spec.dtype)
        if array.dtype.kind == "V" and array.dtype.itemsize == kind.itemsize:
            array = array.view(kind)  # numpy's files keep the bytes of types that numpy lacks, not their names
        if array.dtype != kind:
            raise InputError(f"input '{name}' must be {spec.dtype}, not {array.dtype}")
    if spec.shape is not None and (
        len(spec.shape) != array.ndim or any(isinstance(want, int) and want != size for want, size in zip(spec.shape, array.shape, strict=True))
    ):
        raise InputError(f"input '{name}' must have shape [{', '.join(map(str, spec.shape))}], not [{', '.join(map(str, array.shape))}]")
    return array
