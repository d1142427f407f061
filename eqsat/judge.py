"""The trial of two models on the same inputs; it runs in the worker.

Comes in: a `Request`: two serialized models and how to draw inputs. Goes out: a `Judgement`. The original sets the
standard: draws that it refuses are drawn again, what it accepts the optimized model must accept, and where the two
differ, the original's own sensitivity says whether that matters (eqsat/compare.py).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eqsat import compare, samples
from eqsat.nudges import Nudges
from eqsat.runtime import ReferenceSession, Session, open_runtime
from eqsat.samples import Draw, Edge
from eqsat.steering import Decided, Steering

EQUAL, DIFFERENT, UNVERIFIED = "equal", "different", "unverified"

_RUNS = 3
_CHEAP = 1 << 18  # elements of an input up to which the third run is cheap
_EDGE_WORK = 1 << 28  # the work of a run at an edge that is no more than that of loading a model
_EDGE_VOLUME = 256  # so often a model may do its work at an edge, however large it is
_EDGE_ELEMENTS = 1 << 22
_REFUSALS = 4
_EXTREMES = 3  # draws: few elements hold few of the ends


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
    steering: Steering  # of the original, what decides its outputs
    work: int  # what the models do where every free dimension is 1, in multiplications or so
    inputs: Mapping[str, Any] | None
    seed: int
    patience: float  # seconds after which no further draw is begun
    threads: int = 1
    custom_op_library: str | None = None
    edges: tuple[Edge, ...] = ()
    only_edges: bool = False  # the rest has been tried


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
    edges: int = 0  # how many of the runs, the last ones, were at edges
    sizes: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    notes: list[str] = field(default_factory=list[str])
    costly: list[Edge] = field(default_factory=list[Edge])  # edges at sizes that would have taken too long
    draw: Draw | None = None  # that showed the difference, or else the last one at an edge
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
    draw: Draw | None  # None: the user's own
    places: tuple[int, ...]  # of the outputs that were asked for
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
            judgement.status, judgement.reason, judgement.output, judgement.draw = DIFFERENT, str(error), error.output, trial.draw
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
        self._everything = tuple(range(len(request.outputs)))
        self.draw: Draw | None = None
        """That of the run which was compared last."""

    def hold(self, original: Session, opener: Any) -> None:
        """Run both models on several draws; raises `_Different` or `_NoDraw`."""
        request, judgement = self._request, self._judgement
        coarsest = samples.numpy_dtype(request.coarsest) if request.coarsest else None
        self._nudges = Nudges(
            request.original, original, lambda model: opener(model, request.original_folder, request), request.steering, coarsest, request.seed
        )
        optimized: Session | None = None
        if request.optimized is not None:
            try:
                optimized = opener(request.optimized, request.optimized_folder, request)
            except Exception as error:
                _raise_if_memory(error)
                raise _Different(f"{original.engine} takes the original model but not the optimized one: {_line(error)}") from None
        judgement.outputs = [OutputJudgement(name, name in request.random) for name in request.outputs]
        digests: list[list[tuple[str, bytes, bytes | None]]] = [[] for _ in request.outputs]
        tried: list[Draw] = []
        for run in self._runs(original):
            tried += [run.draw] if run.draw is not None else []
            if request.only_edges:
                break
            self._count(run)
            if optimized is not None:
                self._compare(run, optimized)
            for seen, value in zip(digests, run.outputs, strict=True):
                seen.append(compare.digest(value))
        for output, seen in zip(judgement.outputs, digests, strict=True):
            if output.name in request.dependent and len(seen) > 1 and not output.random:
                output.exercised = compare.moves(seen)
        for run in self._at_edges(original, tried):
            self._count(run)
            judgement.edges += 1
            judgement.draw = run.draw
            if optimized is not None:
                try:
                    self._compare(run, optimized)
                except _OutOfMemory as error:
                    judgement.notes.append(f"not compared at {named(run.draw)}: {error}")

    def _count(self, run: _Run) -> None:
        self._judgement.runs += 1
        for name, size in (run.draw.sizes if run.draw is not None else {}).items():
            self._judgement.sizes.setdefault(name, []).append(size)

    def _run(self, original: Session, draw: Draw, places: tuple[int, ...]) -> _Run:
        """Raises whatever the engine raises."""
        feeds = samples.draw(self._request.plan, draw)
        return _Run(feeds, draw, places, original.run(feeds, [self._request.outputs[place] for place in places]))

    def _runs(self, original: Session) -> Iterator[_Run]:
        request = self._request
        if request.inputs is not None:
            try:
                yield _Run(dict(request.inputs), None, self._everything, original.run(request.inputs, request.outputs))
            except Exception as error:
                raise _NoDraw(_line(error)) from None
            return
        first, draw = self._first(original)
        yield first
        if not request.plan.inputs:
            return
        choices = [sizes for sizes in samples.size_choices(request.plan) if sizes != draw.sizes]
        found, number = 1, 0
        wanted = _RUNS if all(leaf.array is None or leaf.array.size <= _CHEAP for value in first.feeds.values() for leaf in compare.leaves(value)) else 2
        while found < wanted and number < len(choices) + _RUNS and (found < 2 or time.monotonic() < self._end):
            sizes = choices[number] if number < len(choices) else draw.sizes
            number += 1
            try:
                run = self._run(original, Draw(sizes, draw.style, request.seed + number), self._everything)
            except Exception:  # not every choice of sizes fits a model; the first that did is known
                continue
            found += 1
            yield run

    def _at_edges(self, original: Session, tried: list[Draw]) -> Iterator[_Run]:
        """Runs at those edges that the original takes. What decides how many there are is the models and not the clock, while patience lasts."""
        if not tried or self._request.inputs is not None:
            return
        first, integers = tried[0], tuple(place for place in self._everything if self._decided(place) == Decided.NOT)
        for number, edge in enumerate(self._request.edges):
            if time.monotonic() > self._end:
                self._judgement.notes.append(f"{len(self._request.edges) - number} draws at edges were not tried: running takes long")
                return
            seed = self._request.seed + len(tried) + _RUNS
            if edge.extremes:
                # Floats made of such integers are rounded by amounts that no nudge of the inputs shows.
                widest = max(tried, key=lambda draw: samples.elements(self._request.plan, draw.sizes))
                draws = [Draw(widest.sizes, first.style, seed + turn, edge.extremes) for turn in range(_EXTREMES if integers else 0)]
                places, wanted = integers, _EXTREMES
            else:
                draws, places, wanted = self._sizes(edge, tried, seed)[:_REFUSALS], self._everything, 1
            for draw in draws:
                try:
                    run = self._run(original, draw, places)
                except Exception:  # what the original does not take is not the optimized model's to take
                    continue
                tried.append(draw)
                yield run
                wanted -= 1
                if not wanted:
                    break

    def _sizes(self, edge: Edge, tried: list[Draw], seed: int) -> list[Draw]:
        """The draws of an edge that are new and that can be afforded, the most telling first."""
        plan, first = self._request.plan, tried[0]
        largest = max(draw.sizes.get(name, 0) for name in edge.symbols for draw in tried)
        found: list[Draw] = []
        for size in edge.sizes:
            sizes = first.sizes | dict.fromkeys(edge.symbols, size)
            if 1 < size <= largest or any(draw.sizes == sizes for draw in tried):
                continue
            volume = samples.volume(plan, sizes)
            if size > 1 and (samples.elements(plan, sizes) > _EDGE_ELEMENTS or (volume > _EDGE_VOLUME and volume * self._request.work > _EDGE_WORK)):
                if edge not in self._judgement.costly:
                    self._judgement.costly.append(edge)
                continue
            found.append(Draw(sizes, first.style, seed))
        return found

    def _first(self, original: Session) -> tuple[_Run, Draw]:
        """The first run that the original accepts, and its draw."""
        refusal = ""
        hollow: tuple[_Run, Draw] | None = None
        for sizes, style in _attempts(self._request.plan):
            draw = Draw(sizes, style, self._request.seed)
            try:
                run = self._run(original, draw, self._everything)
            except Exception as error:
                refusal = refusal or _line(error)
                if time.monotonic() > self._end:
                    break
                continue
            if not _all_nan(run.outputs):
                return run, draw
            hollow = hollow or (run, draw)
            if style == samples.POSITIVE:
                break
        if hollow is None:
            raise _NoDraw(refusal)
        self._judgement.notes.append("every floating-point output is NaN on every draw")
        return hollow

    def _compare(self, run: _Run, optimized: Session) -> None:
        """Raises `_Different` unless the optimized model's outputs are the original's."""
        self.draw = run.draw
        where = f" ({named(run.draw)})" if named(run.draw) else ""
        try:
            values = optimized.run(run.feeds, [self._request.outputs[place] for place in run.places])
        except Exception as error:
            _raise_if_memory(error)
            raise _Different(f"the optimized model fails on inputs that the original accepts{where}: {_line(error)}") from None
        open_: list[tuple[int, list[tuple[int, compare.Difference]]]] = []
        for position, a, b in zip(run.places, run.outputs, values, strict=True):
            output = self._judgement.outputs[position]
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
            for number, (session, feeds, factor) in enumerate(self._nudges.of(run.feeds)):
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
        return self._request.steering.decided.get(self._request.outputs[position], Decided.CHOSEN)


def named(draw: Draw | None) -> str:
    """What a person wants to know of a draw; empty where nothing is free."""
    if draw is None:
        return ""
    sizes = f"sizes {', '.join(f'{name}={size}' for name, size in draw.sizes.items())}" if draw.sizes else ""
    extremes = f"the ends of their type in {', '.join(sorted(draw.extremes))}" if draw.extremes else ""
    return "; ".join(part for part in (sizes, extremes) if part)


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
