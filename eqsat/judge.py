"""The trial of two models on the same inputs; it runs in the worker.

Comes in: a `Request`: two serialized models and how to draw inputs. Goes out: a `Judgement`. The original sets the
standard: draws that it refuses are drawn again, what it accepts the optimized model must accept, and where the two
differ, the original's own sensitivity says whether that matters (eqsat/compare.py).
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eqsat import compare, native, samples
from eqsat.runtime import ReferenceSession, Session, open_runtime
from eqsat.steering import Decided, Steering, steering

EQUAL, DIFFERENT, UNVERIFIED = "equal", "different", "unverified"

_RUNS = 3
_CHEAP = 1 << 18  # elements of an input up to which the third run is cheap
_NUDGES = 16
_WEIGHT_NUDGES = 8
_LARGEST_MODEL_TO_NUDGE = 1 << 27


@dataclass(frozen=True)
class Request:
    """Two models, serialized, and how to try them; without `optimized`, only whether the original runs."""

    original: bytes
    original_folder: str | None
    optimized: bytes | None
    optimized_folder: str | None
    plan: samples.Plan
    outputs: tuple[str, ...]
    dependent: frozenset[str]  # outputs that depend on an input
    random: frozenset[str]  # outputs that depend on a random operator
    coarsest: str  # the narrowest of float16 and bfloat16 that the original computes in, or ""
    inputs: Mapping[str, Any] | None
    seed: int
    patience: float  # seconds after which no further draw is begun
    threads: int = 1
    custom_op_library: str | None = None


@dataclass
class OutputJudgement:
    """What was found of one output, over all runs."""

    name: str
    random: bool = False
    bitwise: bool = True
    exercised: bool | None = None
    max_error: float | None = 0.0
    tolerance: float | None = None
    near_ties: int = 0


@dataclass
class Judgement:
    status: str
    reason: str = ""
    output: str = ""  # the one that differs
    engine: str = ""
    outputs: list[OutputJudgement] = field(default_factory=list[OutputJudgement])
    runs: int = 0
    sizes: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    notes: list[str] = field(default_factory=list[str])
    late: bool = False  # there is no judgement because running took too long


class _Different(Exception):
    """The optimized model is not the original: why, and at which output if at one."""

    def __init__(self, reason: str, output: str = "") -> None:
        super().__init__(reason)
        self.output = output


@dataclass(frozen=True)
class _Run:
    """Inputs that the original accepts, and its outputs on them."""

    feeds: dict[str, Any]
    sizes: dict[str, int]
    outputs: list[Any]


def judge(request: Request) -> Judgement:
    """Whether the optimized model of `request` computes what its original computes."""
    judgement = Judgement(UNVERIFIED)
    trial = _Trial(request, judgement)
    reasons: list[str] = []
    for opener in (_open_runtime, _open_reference):
        try:
            original = opener(request.original, request.original_folder, request)
        except Exception as error:
            reasons.append(_line(error))
            continue
        judgement.engine = original.engine
        try:
            trial.hold(original, opener)
        except _Different as error:
            judgement.status, judgement.reason, judgement.output = DIFFERENT, str(error), error.output
            return judgement
        except _OutOfMemory as error:
            judgement.reason = str(error)
            return judgement
        except _NoDraw as error:
            reasons.append(str(error))
            continue
        judgement.status = EQUAL
        return judgement
    judgement.engine = ""
    judgement.reason = f"the original model does not run: {reasons[0]}"
    return judgement


class _OutOfMemory(Exception):
    """The optimized model ran into the memory limit, which says nothing about what it computes."""


def _raise_if_memory(error: Exception) -> None:
    if isinstance(error, MemoryError) or re.search(r"bad_alloc|bad allocation|[Ff]ailed to allocate", str(error)):
        raise _OutOfMemory(f"the optimized model needs more memory than the limit allows: {_line(error)}") from None


class _NoDraw(Exception):
    """The original ran on no draw; the text is what the engine said to the first."""


def _open_runtime(model: bytes, folder: str | None, request: Request) -> Session:
    return open_runtime(model, folder, request.custom_op_library, request.threads)


def _open_reference(model: bytes, folder: str | None, request: Request) -> Session:
    del request
    return ReferenceSession(model, folder)


def _line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else f"{text[:297]}..."


class _Trial:
    def __init__(self, request: Request, judgement: Judgement) -> None:
        self._request = request
        self._judgement = judgement
        self._end = time.monotonic() + request.patience

    def hold(self, original: Session, opener: Any) -> None:
        """Run both models on several draws; raises `_Different` or `_NoDraw`."""
        request, judgement = self._request, self._judgement
        self._original, self._opener = original, opener
        optimized: Session | None = None
        if request.optimized is not None:
            try:
                optimized = opener(request.optimized, request.optimized_folder, request)
            except Exception as error:
                _raise_if_memory(error)
                raise _Different(f"{original.engine} takes the original model but not the optimized one: {_line(error)}") from None
        judgement.outputs = [OutputJudgement(name, name in request.random) for name in request.outputs]
        digests: list[list[tuple[str, bytes, bytes | None]]] = [[] for _ in request.outputs]
        for run in self._runs(original):
            judgement.runs += 1
            for name, size in run.sizes.items():
                judgement.sizes.setdefault(name, []).append(size)
            if optimized is not None:
                self._compare(run, optimized)
            for seen, value in zip(digests, run.outputs, strict=True):
                seen.append(compare.digest(value))
        for output, seen in zip(judgement.outputs, digests, strict=True):
            if output.name in request.dependent and len(seen) > 1 and not output.random:
                output.exercised = compare.moves(seen)

    def _runs(self, original: Session) -> Iterator[_Run]:
        request = self._request
        if request.inputs is not None:
            try:
                yield _Run(dict(request.inputs), {}, original.run(request.inputs, request.outputs))
            except Exception as error:
                raise _NoDraw(_line(error)) from None
            return
        first, style = self._first(original)
        yield first
        if not request.plan.inputs:
            return
        choices = [sizes for sizes in samples.size_choices(request.plan) if sizes != first.sizes]
        found, number = 1, 0
        wanted = _RUNS if all(leaf.array is None or leaf.array.size <= _CHEAP for value in first.feeds.values() for leaf in compare.leaves(value)) else 2
        while found < wanted and number < len(choices) + _RUNS and (found < 2 or time.monotonic() < self._end):
            sizes = choices[number] if number < len(choices) else first.sizes
            number += 1
            feeds = samples.draw(request.plan, sizes, style, request.seed + number)
            try:
                outputs = original.run(feeds, request.outputs)
            except Exception:  # not every choice of sizes fits a model; the first that did is known
                continue
            found += 1
            yield _Run(feeds, sizes, outputs)

    def _first(self, original: Session) -> tuple[_Run, str]:
        """The first draw that the original accepts, and its style."""
        refusal = ""
        hollow: tuple[_Run, str] | None = None
        for sizes, style in _attempts(self._request.plan):
            feeds = samples.draw(self._request.plan, sizes, style, self._request.seed)
            try:
                run = _Run(feeds, sizes, original.run(feeds, self._request.outputs))
            except Exception as error:
                refusal = refusal or _line(error)
                if time.monotonic() > self._end:
                    break
                continue
            if not _all_nan(run.outputs):
                return run, style
            hollow = hollow or (run, style)
            if style == samples.POSITIVE:
                break
        if hollow is None:
            raise _NoDraw(refusal)
        self._judgement.notes.append("every floating-point output is NaN on every draw")
        return hollow

    def _compare(self, run: _Run, optimized: Session) -> None:
        """Raises `_Different` unless the optimized model's outputs are the original's."""
        where = f" (sizes {', '.join(f'{name}={size}' for name, size in run.sizes.items())})" if run.sizes else ""
        try:
            values = optimized.run(run.feeds, self._request.outputs)
        except Exception as error:
            _raise_if_memory(error)
            raise _Different(f"the optimized model fails on inputs that the original accepts{where}: {_line(error)}") from None
        open_: list[tuple[int, list[tuple[int, compare.Difference]]]] = []
        for position, (output, a, b) in enumerate(zip(self._judgement.outputs, run.outputs, values, strict=True)):
            before, after = compare.signature(a), compare.signature(b)
            if before != after:
                raise _Different(f"output '{output.name}' is {before} in the original and {after} in the optimized model{where}", output.name)
            if output.random:
                continue
            pairs = zip(compare.leaves(a), compare.leaves(b), strict=True)
            differences = [(number, compare.Difference(x.array, y.array)) for number, (x, y) in enumerate(pairs) if x.array is not None and y.array is not None]
            differences = [(number, difference) for number, difference in differences if difference.any]
            if differences:
                open_.append((position, differences))
                output.bitwise = False
        if open_:
            self._explain(run, open_, where)

    def _explain(self, run: _Run, open_: Sequence[tuple[int, list[tuple[int, compare.Difference]]]], where: str) -> None:
        """Nudge until the original's own changes explain each difference; raises `_Different` if they do not."""
        names = [self._request.outputs[position] for position, _ in open_]
        if not self._explained(open_):
            for number, (session, feeds, factor) in enumerate(self._nudged(run)):
                try:
                    values = session.run(feeds, names)
                except Exception:  # a nudge that moves the model out of its domain tells nothing
                    continue
                for (_, differences), value in zip(open_, values, strict=True):
                    parts = compare.leaves(value)
                    for leaf, difference in differences:
                        if leaf < len(parts) and (array := parts[leaf].array) is not None:
                            difference.moved(array, factor)
                if number % 4 == 3 and self._explained(open_):
                    break
        for position, differences in open_:
            output = self._judgement.outputs[position]
            for _, difference in differences:
                finding = difference.judge(self._decided(position))
                if finding.max_error is None or output.max_error is None:
                    output.max_error = None
                elif finding.max_error >= output.max_error:
                    output.max_error, output.tolerance = finding.max_error, finding.tolerance
                output.near_ties += finding.near_ties
                if finding.unexplained:
                    error = "" if finding.max_error is None else f", error {finding.max_error:.3g} over a tolerance of {finding.tolerance:.3g}"
                    raise _Different(f"output '{output.name}' differs in {finding.unexplained} elements{error}{where}", output.name)

    def _explained(self, open_: Sequence[tuple[int, list[tuple[int, compare.Difference]]]]) -> bool:
        return not any(difference.judge(self._decided(position)).unexplained for position, differences in open_ for _, difference in differences)

    def _decided(self, position: int) -> Decided:
        """How floats decide the integers of an output."""
        return self._steering.decided.get(self._request.outputs[position], Decided.CHOSEN)

    @functools.cached_property
    def _steering(self) -> Steering:
        import onnx

        proto = onnx.load_model_from_string(self._request.original)
        return steering(onnx.load_model_from_string(native.inline(self._request.original)) if proto.functions else proto)

    def _nudged(self, run: _Run) -> Iterator[tuple[Session, dict[str, Any], float]]:
        """The original on nudged inputs; then with its weights nudged too; then by the last place of its narrowest type.

        What decides sizes, indices and bounds stays as it is.
        """
        generator = np.random.default_rng([self._request.seed, 1])
        coarsest = samples.numpy_dtype(self._request.coarsest) if self._request.coarsest else None

        def feeds(units: int, narrow: np.dtype[Any] | None = None) -> dict[str, Any]:
            kept = self._steering.inputs
            return {name: value if name in kept else compare.nudge(value, units, generator, narrow) for name, value in run.feeds.items()}

        for number in range(_NUDGES):
            units = compare.MULTIPLE if number % 2 else 1
            yield self._original, feeds(units), compare.MULTIPLE / units
        for narrow in (None, coarsest) if coarsest is not None else (None,):
            for number in range(_WEIGHT_NUDGES):
                units = compare.MULTIPLE if number % 2 and narrow is None else 1
                model = nudge_weights(self._request.original, units, generator, narrow, self._steering.constants)
                if model is None:
                    return
                session = self._opener(model, self._request.original_folder, self._request)
                yield session, feeds(units, narrow), compare.MULTIPLE / units


def _attempts(plan: samples.Plan) -> Iterator[tuple[dict[str, int], str]]:
    """Sizes and styles for a first draw, the most telling first."""
    choices = list(samples.size_choices(plan))
    yield from ((sizes, samples.NORMAL) for sizes in choices[:2])
    yield choices[0], samples.CALM
    yield from ((sizes, samples.NORMAL) for sizes in choices[2:])
    for style in (samples.ONES, samples.ZEROS, samples.CALM, samples.POSITIVE):
        yield from ((sizes, style) for sizes in choices[:3])


def _all_nan(outputs: Sequence[Any]) -> bool:
    arrays = [leaf.array for output in outputs for leaf in compare.leaves(output) if leaf.array is not None and leaf.array.size]
    arrays = [array for array in arrays if compare.is_float(array)]
    return bool(arrays) and all(bool(np.isnan(compare.plain(array)).all()) for array in arrays)


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
