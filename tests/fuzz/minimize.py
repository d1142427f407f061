"""Minimizing a failure: it takes a model and inputs, and returns smaller ones and the rules needed.

Each step is tried, and kept if the same kind of difference remains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper, printer

from eqsat.language.library import built_in
from eqsat.runtime.onnx_passes import inlined
from eqsat.runtime.session import open_runtime

from . import trial
from .cone import cone
from .feeds import Feed
from .scope import captures, element_code

_PASSES = 3


@dataclass(frozen=True)
class Case:
    """A model, inputs on which it fails, and the rules to optimize it with; None: all rules."""

    proto: onnx.ModelProto
    feed: Feed
    rules: tuple[str, ...] | None = None

    def text(self) -> str:
        """Returns the case as ONNX text, ready for a test."""
        with np.printoptions(threshold=64):
            inputs = "\n".join(f"  {name}: {value!r}" for name, value in self.feed.inputs.items())
        rules = "all rules" if self.rules is None else ", ".join(self.rules) or "no rule"
        return f"{printer.to_text(self.proto)}\n  inputs:\n{inputs}\n  rules: {rules}"


def minimized(seed: int, exact: bool, engine: str) -> str:
    """Returns the smallest failing case that was found for a seed, as text."""
    model = trial.drawn(seed)
    runs = trial.accepted(model, seed) if model is not None else []
    if model is None or not runs:
        return ""
    status, _, style = trial.judged(model.proto, runs, trial.options(seed, exact, engine))
    if status == trial.SAME:
        return "nothing differs when it is tried again"
    feeds = [feed for feed, _ in runs if feed.style == style] or [runs[0][0]]

    def fails(case: Case) -> bool:
        try:
            expected = open_runtime(case.proto.SerializeToString()).run(case.feed.inputs, [value.name for value in case.proto.graph.output])
        except Exception:
            return False
        chosen = {} if case.rules is None else {"only": case.rules} if case.rules else {"skip": [group.name for group in built_in().groups]}
        return trial.judged(case.proto, [(case.feed, expected)], trial.options(seed, exact, engine) | chosen)[0] == status

    case = next((case for case in (Case(model.proto, feed) for feed in feeds) if fails(case)), None)
    if case is None:
        return printer.to_text(model.proto)
    return reduced(case, fails).text()


def reduced(case: Case, fails: Callable[[Case], bool]) -> Case:
    """Returns the case made smaller step by step, while it fails."""
    for _ in range(_PASSES):
        before = case
        for steps in (_inlined, _outputs, _cuts, _rules, _attributes, _sizes, _inputs, _elements):
            going = True
            while going:
                smaller = next((other for other in steps(case) if fails(other)), None)
                going = smaller is not None
                case = smaller or case
        if case is before:
            break
    return case


def _copy(case: Case) -> Case:
    proto = onnx.ModelProto()
    proto.CopyFrom(case.proto)
    return replace(case, proto=proto)


def _inlined(case: Case) -> Iterator[Case]:
    if case.proto.functions:
        yield _tidy(replace(case, proto=inlined(case.proto)))


def _outputs(case: Case) -> Iterator[Case]:
    """Yields cases without one of several outputs."""
    for place in range(len(case.proto.graph.output) if len(case.proto.graph.output) > 1 else 0):
        other = _copy(case)
        del other.proto.graph.output[place]
        yield _tidy(other)


def _cuts(case: Case) -> Iterator[Case]:
    """Yields cases with an input in place of a node, or an inner result as the output."""
    graph = case.proto.graph
    values = _values(case)
    inferred = _inferred(case.proto)
    for place, node in enumerate(graph.node):
        names = [name for name in node.output if name]
        if not all(isinstance(values.get(name), np.ndarray) for name in names):
            continue
        if len(graph.output) == 1 and graph.output[0].name not in names:
            other = _copy(case)
            del other.proto.graph.output[:]
            other.proto.graph.output.extend(helper.make_tensor_value_info(name, element_code(values[name].dtype), [None] * values[name].ndim) for name in names)
            yield _tidy(other)
        for kind in ("inferred", "open", "fixed"):
            other = _copy(case)
            del other.proto.graph.node[place]
            infos = [inferred.get(name) if kind == "inferred" else _info(name, values[name], kind == "fixed") for name in names]
            if not all(_fits(info, values[name]) for info, name in zip(infos, names, strict=True)) or {value.name for value in graph.output} & set(names):
                continue
            other.proto.graph.input.extend(info for info in infos if info is not None)
            yield _tidy(replace(other, feed=replace(case.feed, inputs=case.feed.inputs | {name: values[name] for name in names})))


def _rules(case: Case) -> Iterator[Case]:
    """Yields cases with fewer rules."""
    if case.rules is None:
        import eqsat

        fired = [rule["name"] for rule in eqsat.optimize(case.proto, verify=False).report["rules"]]
        yield replace(case, rules=tuple(fired))
        return
    if case.rules:
        yield replace(case, rules=())
    for place in range(len(case.rules)):
        yield replace(case, rules=case.rules[:place] + case.rules[place + 1 :])


def _attributes(case: Case) -> Iterator[Case]:
    for place, node in enumerate(case.proto.graph.node):
        for number in range(len(node.attribute)):
            other = _copy(case)
            del other.proto.graph.node[place].attribute[number]
            yield other


def _sizes(case: Case) -> Iterator[Case]:
    """Yields cases with a size in place of its name."""
    for place, value in enumerate(case.proto.graph.input):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            array = case.feed.inputs.get(value.name)
            if not dim.HasField("dim_value") and isinstance(array, np.ndarray):
                other = _copy(case)
                other.proto.graph.input[place].type.tensor_type.shape.dim[axis].dim_value = array.shape[axis]
                yield other


def _inputs(case: Case) -> Iterator[Case]:
    """Yields cases with a constant in place of an input."""
    for place, value in enumerate(case.proto.graph.input):
        array = case.feed.inputs.get(value.name)
        if isinstance(array, np.ndarray) and array.size <= 16 and array.dtype != np.dtype(object) and len(case.proto.graph.input) > 1:
            other = _copy(case)
            del other.proto.graph.input[place]
            for tensor in [tensor for tensor in other.proto.graph.initializer if tensor.name == value.name]:
                other.proto.graph.initializer.remove(tensor)
            other.proto.graph.initializer.append(numpy_helper.from_array(array, value.name))
            yield _tidy(other)


def _elements(case: Case) -> Iterator[Case]:
    """Yields cases with one number throughout an input."""
    for name, array in case.feed.inputs.items():
        if isinstance(array, np.ndarray) and array.dtype.kind in "fiu" and array.size > 1 and (array != array.flat[0]).any():
            for number in (0, 1):
                yield replace(case, feed=replace(case.feed, inputs=case.feed.inputs | {name: np.full_like(array, number)}))


def _values(case: Case) -> dict[str, Any]:
    """Returns all values of the original's top-level nodes on the inputs of the case."""
    shown = _copy(case).proto
    known = {value.name for value in shown.graph.output}
    shown.graph.output.extend(ValueInfoProto(name=name) for node in shown.graph.node for name in node.output if name and name not in known)
    names = [value.name for value in shown.graph.output]
    try:
        return dict(zip(names, open_runtime(shown.SerializeToString()).run(case.feed.inputs, names), strict=True))
    except Exception:
        return {}


def _inferred(proto: onnx.ModelProto) -> dict[str, ValueInfoProto]:
    try:
        graph = onnx.shape_inference.infer_shapes(proto).graph
    except Exception:
        return {}
    return {value.name: value for value in (*graph.value_info, *graph.output) if value.type.tensor_type.HasField("shape")}


def _fits(info: ValueInfoProto | None, array: np.ndarray) -> bool:
    """Tells whether an inferred type is true of the value."""
    if info is None:
        return False
    dims = info.type.tensor_type.shape.dim
    return len(dims) == array.ndim and all(not dim.HasField("dim_value") or dim.dim_value == size for dim, size in zip(dims, array.shape, strict=True))


def _info(name: str, array: np.ndarray, fixed: bool) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, element_code(array.dtype) or TensorProto.FLOAT, array.shape if fixed else [None] * array.ndim)


def _tidy(case: Case) -> Case:
    """Returns the case without unneeded nodes, constants and inputs."""
    proto = cone(case.proto, {value.name for value in case.proto.graph.output})
    graph = proto.graph
    read = {name for node in graph.node for name in (*node.input, *captures(node))} | {value.name for value in graph.output}
    kept = [value for value in case.proto.graph.input if value.name in read]
    constants = [tensor for tensor in case.proto.graph.initializer if tensor.name in read]
    del graph.input[:], graph.initializer[:]
    graph.input.extend(kept)
    graph.initializer.extend(constants)
    names = {value.name for value in kept}
    return replace(case, proto=proto, feed=replace(case.feed, inputs={name: value for name, value in case.feed.inputs.items() if name in names}))
