"""Timing: measures how long ONNX Runtime takes for cases, with one thread.

All cases are timed in turn, round after round. A disturbance of the machine then hits a few rounds
of all cases, not all rounds of a few. The least time of a case counts, because noise never makes a
kernel faster. Time is the thread's own processor time, so that other processes do not count. With
one thread, ONNX Runtime computes in the thread that calls it.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import helper

from eqsat.calibrate.case import Case, Given
from eqsat.cost.shaped import PricedNode, Shaped

_ROUNDS = 15
_SLICE = 2.5e-3  # seconds of a case in one round


@dataclass(frozen=True)
class Timed:
    """A case as a price sees it, and the seconds of its node, without the overhead of a run."""

    case: Case
    node: PricedNode
    seconds: float


class _Running:
    """A model that is ready to be timed."""

    def __init__(self, case: Case, chain: int) -> None:
        runtime: Any = importlib.import_module("onnxruntime")
        options = runtime.SessionOptions()
        levels = runtime.GraphOptimizationLevel
        options.graph_optimization_level = levels.ORT_ENABLE_ALL if case.optimized else levels.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        session = runtime.InferenceSession(case.model(chain).SerializeToString(), options, providers=["CPUExecutionProvider"])
        feeds = case.feeds()
        results = session.run(None, feeds)
        self.outputs = tuple(Shaped(int(helper.np_dtype_to_tensor_dtype(result.dtype)), result.shape) for result in results)
        binding = session.io_binding()
        for name, array in feeds.items():
            binding.bind_cpu_input(name, array)
        # The results are always written to the same memory, as in a graph with planned memory.
        self._kept = [runtime.OrtValue.ortvalue_from_numpy(result) for result in results]
        for output, value in zip(session.get_outputs(), self._kept, strict=True):
            binding.bind_ortvalue_output(output.name, value)
        self._run: Callable[[Any], None] = session.run_with_iobinding
        self._binding = binding
        self.seconds = float("inf")
        self._times = 1
        self.measure()
        self._times = max(int(_SLICE / max(self.seconds, 1e-7)), 1)
        self.seconds = float("inf")

    def measure(self) -> None:
        """Runs another round."""
        run, binding = self._run, self._binding
        start = time.thread_time()
        for _ in range(self._times):
            run(binding)
        self.seconds = min(self.seconds, (time.thread_time() - start) / self._times)


def time_cases(cases: Sequence[Case], progress: Callable[[str], None]) -> list[Timed]:
    """Returns the seconds of each case. Cases that the runtime refuses are left out."""
    empty = _Running(Case("Neg", (Given((1,)),)), 1)
    running: list[tuple[Case, list[_Running]]] = []
    for number, case in enumerate(cases):
        progress(f"build {number + 1} of {len(cases)}: {case.key}")
        try:
            running.append((case, [_Running(case, links) for links in ([1, case.chain] if case.chain > 1 else [1])]))
        except Exception as error:
            if type(error).__module__.startswith("onnxruntime"):
                continue
            raise
    for number in range(_ROUNDS):
        progress(f"round {number + 1} of {_ROUNDS}")
        empty.measure()
        for _, models in running:
            for model in models:
                model.measure()
    timed: list[Timed] = []
    for case, models in running:
        first, last = models[0], models[-1]
        seconds = (last.seconds - first.seconds) / (case.chain - 1) if case.chain > 1 else first.seconds - empty.seconds
        timed.append(Timed(case, _node(case, first.outputs), max(seconds, 1e-9)))
    return timed


def runtime_version() -> str:
    """Returns the runtime and its version, to which the figures belong."""
    return f"onnxruntime {importlib.import_module('onnxruntime').__version__}"


def _node(case: Case, outputs: tuple[Shaped, ...]) -> PricedNode:
    attributes = {name: value.encode() if isinstance(value, str) else value for name, value in case.attributes.items()}
    return PricedNode(case.domain, case.name, attributes, [None if given is None else given.shaped for given in case.inputs], outputs, opset=case.opset)
