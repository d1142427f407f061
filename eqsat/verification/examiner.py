"""The examiner: it asks the judge about two models, in another process, and survives its crashes.

The input is two models, and perhaps inputs. The output is a `Judgement`
(eqsat/verification/request.py), whatever happens to the process that runs them. A crash, a timeout
or a lack of memory counts against the optimized model only if the original alone does not have it.
Runtimes have faults of their own at edges: if the original does not survive an edge, the optimized
model need not either.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import onnx

from eqsat.frozen import mutable
from eqsat.model.external_data import has_external_data
from eqsat.runtime.onnx_passes import NativeFailure, inlined
from eqsat.runtime.worker import RemoteError, Worker, WorkerDied, WorkerTimeout
from eqsat.verification.input_ranges import nodes_in_order
from eqsat.verification.loaded_model import LoadedModel, depends_on_inputs, random_outputs, weight_bytes
from eqsat.verification.planning import make_edges, make_plan, with_functions_inlined
from eqsat.verification.relations import related_plans
from eqsat.verification.request import DIFFERENT, EQUAL, UNVERIFIED, Judgement, Request
from eqsat.verification.runs import named
from eqsat.verification.sample_plan import Edge, Plan
from eqsat.verification.steering import Steering, size_bounds, steering

# Room for activations beside the weights. The limit only has to catch explosions.
_HEADROOM = 4
_RUNTIME_BYTES = 1 << 29  # memory for the runtime itself, with any model
# With several threads a session takes a fraction of a millisecond longer to open. Models below these
# limits run on one.
_MANY_BYTES = 1 << 24  # of weights
_MANY_ELEMENTS = 1 << 16  # of inputs
_MANY_TIMES = 64  # as long an axis at an edge
_NODE_WORK = 16
_MOST_TIMEOUTS = 2
_INSIDE = 4  # values inside that take a smaller share of the time limit are not what takes long
_JUDGE = "eqsat.verification.judge:judge"

_SECONDS = 1.5  # for looking further than at whole models on usual draws, if these did not take as many


def patience_after(seconds: float, most: float) -> float:
    """Returns the seconds for looking further at models that took so many seconds: half of these, or
    a few, but not more than `most`.
    """
    return min(max(_SECONDS, seconds / 2), most)


class _SlowReference(WorkerTimeout):
    """The runtime refuses the original, and onnx's reference took too long with it."""

    def __init__(self, refusal: str, seconds: float) -> None:
        super().__init__(seconds)
        self.refusal = refusal

    def __str__(self) -> str:
        return f"refuses the original model ({self.refusal}), and the reference of onnx {super().__str__()}"


@mutable(slots=False)
class Examiner:
    """Runs the models of one verification, with its seed, its limits and its worker."""

    memory_limit: int
    custom_op_library: str | None
    worker: Worker
    seed: int = 0
    time_limit: float = 60.0
    proved: set[bytes] = field(default_factory=set[bytes])  # the forms of regions found equal
    patience: float = math.inf  # seconds after which a judgement begins no further draw; at most an eighth of the limit
    filled: bool = False  # no size of a model's inputs is 0; regions are tried without such sizes too
    _timeouts: int = 0  # of models that ran without edges

    def plan(self, model: onnx.ModelProto, overridable: bool = False) -> Plan:
        """Returns the plan for a model's inputs, as `make_plan` does."""
        return make_plan(model, overridable, self.filled)

    def request(
        self,
        original: LoadedModel,
        optimized: LoadedModel,
        plan: Plan,
        inputs: Mapping[str, np.ndarray] | None = None,
        closed: bool = True,
        inside: Sequence[str] = (),
    ) -> Request:
        """Returns the request to judge two models.

        With `closed`, the inputs are those of a whole model, so that each may have any size. The
        values `inside` are compared too. Raises `ValueError` if a model is too large for one message.
        """
        proto, other = original.proto, optimized.proto
        steers = _steering(proto)
        compared = (*(value.name for value in proto.graph.output), *inside)
        exact = {name: steers.decided[name] for name in compared if name in steers.decided}
        bounds = size_bounds(proto, steers) | size_bounds(other, _steering(other)) if plan.symbols else ()
        dependent, weights = depends_on_inputs(proto), weight_bytes(proto)
        edges = () if inputs is not None else make_edges(plan, bounds, plan.inputs.keys() - steers.constants, not closed)
        return Request(
            original=proto.SerializeToString(),
            original_folder=_folder(original),
            optimized=other.SerializeToString(),
            optimized_folder=_folder(optimized),
            plan=plan,
            outputs=tuple(value.name for value in proto.graph.output),
            dependent=dependent,
            random=random_outputs(proto) | random_outputs(other),
            coarsest=_coarsest(proto),
            steering=Steering(steers.constants, steers.inputs, exact),
            weights=weights,
            work=weights // 4 + _NODE_WORK * len(proto.graph.node),
            nodes=len(proto.graph.node),
            inputs=inputs,
            seed=self.seed,
            patience=min(self.patience, self.time_limit / 8),
            brief=not closed,
            threads=min(os.cpu_count() or 1, 4) if weights > _MANY_BYTES or _is_long(plan, inputs, edges) else 1,
            custom_op_library=self.custom_op_library,
            edges=edges,
            inside=tuple(inside),
        )

    def ask(self, request: Request) -> Judgement:
        """Returns the judgement of two models, edges included.

        A model that took all of the time limit is likely to do so again, so after a timeout each edge
        has a call for itself, and after some timeouts no model runs. Values inside decide nothing:
        unless both models run with them and are equal, or take long by themselves, they run without.
        """
        together = not self._timeouts
        if request.inside and together:
            try:
                judgement = self._call(request)
            except WorkerTimeout:
                together = False
            except (WorkerDied, RemoteError):
                pass
            else:
                if judgement.status == EQUAL or (judgement.too_much and judgement.seconds_inside < self.time_limit / _INSIDE):
                    return judgement
        request = replace(request, inside=())
        if request.edges and together:
            try:
                return self._call(request)
            except (WorkerTimeout, WorkerDied, RemoteError):
                pass
        judgement = self._settled(replace(request, edges=()))
        if judgement.crashed and any(request.plan.long_choices()):  # windows of signals may be longer than usual sizes
            request = replace(request, only_long=True)
            judgement = self._settled(replace(request, edges=()))
        for edge in request.edges if judgement.status == EQUAL else ():
            found = self._at_edge(replace(request, edges=(edge,), only_edges=True))
            if found.status == DIFFERENT:
                return found
            judgement.runs += found.edges
            judgement.edges += found.edges
            for name in judgement.sizes if found.edges else ():
                judgement.sizes[name] += found.sizes[name]
        return judgement

    def at_related_sizes(self, original: LoadedModel, request: Request) -> Request | None:
        """Returns the request at sizes that depend on one another, if the original runs at such."""
        if not request.plan.symbols and not request.plan.computed:
            return None
        try:
            plans = list(related_plans(with_functions_inlined(original.proto), request.plan))
            place: int | None = self.run("eqsat.verification.runs:runs_at", replace(request, optimized=None), plans) if plans else None
        except (WorkerTimeout, WorkerDied, RemoteError):
            return None
        if place is None:
            return None
        plan = plans[place]
        edges = (replace(edge, symbols=tuple(name for name in edge.symbols if name in plan.symbols)) for edge in request.edges)
        return replace(request, plan=plan, edges=tuple(edge for edge in edges if edge.symbols or edge.extremes))

    def run(self, function: str, *arguments: Any) -> Any:
        """Returns the result of a function in the worker, within the limits.

        Raises the worker's exceptions.
        """
        return self.worker.call(function, *arguments, timeout=self.time_limit, memory=max(self.memory_limit * _HEADROOM, _RUNTIME_BYTES))

    def _call(self, request: Request) -> Judgement:
        """Returns the judgement of the runtime, or of the reference where the runtime refuses the original.

        Each has the time limit for itself, so a slow reference does not hide the refusal.
        """
        judgement: Judgement = self.run(_JUDGE, request)
        if not judgement.refusal:
            return judgement
        try:
            return self.run(_JUDGE, replace(request, refusal=judgement.refusal, inside=()))
        except WorkerTimeout as failure:
            raise _SlowReference(judgement.refusal, failure.seconds) from None

    def _settled(self, request: Request) -> Judgement:
        """Returns the worker's judgement.

        A crash counts against the optimized model only if the original alone runs.
        """
        try:
            if self._timeouts >= _MOST_TIMEOUTS:
                raise WorkerTimeout(self.time_limit)
            return self._call(request)
        except WorkerTimeout as failure:
            self._timeouts += 1
            return Judgement(UNVERIFIED, f"the runtime {failure}", too_much=True)
        except (WorkerDied, RemoteError) as failure:
            try:
                alone = self._call(replace(request, optimized=None))
            except (WorkerDied, WorkerTimeout, RemoteError) as again:
                return Judgement(UNVERIFIED, f"the runtime {again} on the original model", crashed=isinstance(again, WorkerDied))
            if alone.status == UNVERIFIED:
                return alone
            status = DIFFERENT if isinstance(failure, WorkerDied) else UNVERIFIED
            return Judgement(status, f"the runtime {failure} on the optimized model", alone.engine)

    def _at_edge(self, request: Request) -> Judgement:
        """Returns the judgement at one edge, in a process that may crash."""
        try:
            return self._call(request)
        except (WorkerTimeout, RemoteError):
            return Judgement(UNVERIFIED)
        except WorkerDied as failure:
            try:
                alone = self._call(replace(request, optimized=None))
            except (WorkerDied, WorkerTimeout, RemoteError):
                return Judgement(UNVERIFIED)
            where = f" ({named(alone.draw)})" if named(alone.draw) else ""
            return Judgement(DIFFERENT, f"the runtime {failure} on the optimized model{where}", engine=alone.engine, draw=alone.draw)


def _is_long(plan: Plan, inputs: Mapping[str, np.ndarray] | None, edges: Sequence[Edge]) -> bool:
    """Tells whether a run may take long although a model has few weights, as on a large image."""
    if any(size > _MANY_TIMES for edge in edges for size in edge.sizes):
        return True
    elements = sum(array.size for array in inputs.values()) if inputs is not None else next(map(plan.elements, plan.size_choices()), 0)
    return elements > _MANY_ELEMENTS


def _steering(proto: onnx.ModelProto) -> Steering:
    try:
        return steering(inlined(proto))
    except NativeFailure:  # steering values inside functions remain unknown
        return steering(proto)


def _folder(model: LoadedModel) -> str | None:
    return str(model.folder) if model.folder is not None and has_external_data(model.proto) else None


def _coarsest(proto: onnx.ModelProto) -> str:
    """Returns the coarser of the model's types bfloat16 and float16; "" if it has neither.

    The model's arithmetic rounds to that type, whatever the types of its inputs.
    """
    types = {tensor.data_type for tensor in proto.graph.initializer}
    types.update(value.type.tensor_type.elem_type for value in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info))
    for node in nodes_in_order(proto.graph.node):
        for attribute in node.attribute:
            if attribute.name == "to":
                types.add(attribute.i)
            elif attribute.type == onnx.AttributeProto.TENSOR:
                types.add(attribute.t.data_type)
    return "bfloat16" if onnx.TensorProto.BFLOAT16 in types else "float16" if onnx.TensorProto.FLOAT16 in types else ""
