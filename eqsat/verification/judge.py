"""The judge: it runs two models on the same inputs, in the worker, and compares their outputs.

The input is a `Request`: two serialized models, and a plan for drawing inputs. The output is a
`Judgement`. The original sets the standard. If it refuses a draw, another is drawn; the optimized
model must accept every draw that the original accepts. If outputs differ, the original's own
sensitivity decides whether the difference matters (eqsat/verification/tolerance.py). At a size of 0
the runtime alone is no standard: ONNX Runtime ignores negative axes of reductions there, and leaves
results of Concat unwritten.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from eqsat.runtime.session import ReferenceSession, Session, open_runtime
from eqsat.runtime.unwritten import under_fills
from eqsat.verification import samples, tolerance
from eqsat.verification.agreement import Agreement, Doubt, showing
from eqsat.verification.leaves import digest, moves, signature
from eqsat.verification.nudges import Nudge, Nudges
from eqsat.verification.request import DIFFERENT, EQUAL, UNVERIFIED, Judgement, OutputJudgement, Request
from eqsat.verification.runs import NoDraw, Run, Runs, is_memory, named, one_line
from eqsat.verification.sample_plan import Draw
from eqsat.verification.undefined import is_undefined

_AT_ONCE = 4  # nudges between two looks whether any changes something
_NUDGING = 4  # times patience that the nudges of a run may take
_NUDGES_INSIDE = 4  # beyond those that outputs need

# The place of an output, and the arrays of it that differ, by the numbers of their leaves.
_Differing = tuple[int, list[tuple[int, tolerance.Difference]]]

_Opener = Callable[[bytes, str | None, Request], Session]


class _Different(Exception):
    """The optimized model differs from the original: the reason, the output if there is one, and its
    unexplained error as a share of its length: infinite if the output has another type or shape.
    """

    def __init__(self, reason: str, output: str = "", relative: float | None = None) -> None:
        super().__init__(reason)
        self.output = output
        self.relative = relative


def judge(request: Request) -> Judgement:
    """Judges whether the optimized model of `request` computes the same as its original.

    If the runtime refuses the original, the judgement says why, and whether the reference may be
    asked instead.
    """
    judgement = Judgement(UNVERIFIED)
    opener = _open_reference if request.refusal else _open_runtime
    try:
        request, original = _opened(request, opener)
    except Exception as error:
        return _refused(request, error, last=False)
    judgement.engine = original.engine
    comparison = _Comparison(request, judgement, original, opener)
    try:
        comparison.run()
    except _Different as error:
        judgement.status, judgement.reason, judgement.output, judgement.relative = DIFFERENT, str(error), error.output, error.relative
        judgement.draw = comparison.draw
        return judgement
    except (_OutOfMemory, _OutOfTime) as error:
        judgement.reason, judgement.too_much = str(error), True
        judgement.seconds_inside = comparison.agreement.seconds
        return judgement
    except NoDraw as none:
        return _refused(request, none.error, last=request.brief)
    except _BeyondReference as lack:
        judgement.reason = f"the original model does not run: {request.refusal}; and of the optimized one the reference of onnx says: {lack}"
        return judgement
    judgement.status = EQUAL
    judgement.agreed = frozenset(comparison.agreement.names)
    judgement.seconds_inside = comparison.agreement.seconds
    return judgement


def _opened(request: Request, opener: _Opener) -> tuple[Request, Session]:
    """Returns the request whose models have the values inside as outputs, with a session of its original.

    The runtime keeps all outputs of a graph until a run ends, those that nobody asks for as well. So
    the models have no more of them than the memory for them holds at the first draw's sizes.
    """
    if not request.inside:
        return request, opener(request.original, request.original_folder, request)
    shown = _showing(request, request.inside)
    original = opener(shown.original, shown.original_folder, shown)
    kept = Agreement(shown, original).affordable(next(request.plan.size_choices(), dict[str, int]()))
    if len(kept) == len(request.inside):
        return shown, original
    del original  # its weights make room for those of the next session
    shown = _showing(request, kept)
    return shown, opener(shown.original, shown.original_folder, shown)


def _showing(request: Request, inside: Sequence[str]) -> Request:
    """Returns the request whose models have these values inside as outputs."""
    optimized = request.optimized and showing(request.optimized, inside)
    return replace(request, original=showing(request.original, inside), optimized=optimized, inside=tuple(inside))


def _refused(request: Request, error: Exception, last: bool) -> Judgement:
    """Returns the judgement where an engine refuses the original. The runtime's reason counts, which the
    request of the reference has. No other engine follows the `last` one, nor one that hits the memory
    limit: the reference takes no less.
    """
    if is_memory(error):
        return Judgement(UNVERIFIED, f"the original model needs more memory than the limit allows: {one_line(error)}", too_much=True)
    refusal = request.refusal or one_line(error)
    return Judgement(UNVERIFIED, f"the original model does not run: {refusal}", refusal="" if last or request.refusal else refusal)


class _OutOfMemory(Exception):
    """The optimized model, or the comparison, hit the memory limit. This says nothing about its results."""


class _OutOfTime(Exception):
    """Nudges take so long that regions tell more in the time that is left."""


class _BeyondReference(Exception):
    """The reference lacks an operator of the optimized model. This says nothing about its results."""


def _raise_if_memory(error: Exception) -> None:
    if is_memory(error):
        raise _OutOfMemory(f"the optimized model needs more memory than the limit allows: {one_line(error)}") from None


def _open_runtime(model: bytes, folder: str | None, request: Request) -> Session:
    return open_runtime(model, folder, request.custom_op_library, request.threads)


def _open_reference(model: bytes, folder: str | None, request: Request) -> Session:
    del request
    return ReferenceSession(model, folder)


class _Comparison:
    """The two models of a request on one engine, which `opener` opens."""

    def __init__(self, request: Request, judgement: Judgement, original: Session, opener: _Opener) -> None:
        self._request = request
        self._judgement = judgement
        self._original = original
        self._opener = opener
        coarsest = samples.numpy_dtype(request.coarsest) if request.coarsest else None
        self._nudges = Nudges(
            request.original,
            request.weights,
            request.original_folder,
            original,
            lambda model: opener(model, request.original_folder, request),
            request.steering,
            coarsest,
            request.seed,
        )
        self.agreement = Agreement(request, original)
        """The values inside that agreed in the runs so far."""
        self.draw: Draw | None = None
        """The draw of the last compared run."""
        self._weights_tell = False  # whether nudged weights explained a run, after nudged inputs did not

    def run(self) -> None:
        """Runs both models on several draws; raises `_Different` or `NoDraw`."""
        request, judgement, original = self._request, self._judgement, self._original
        optimized: Session | None = None
        refusal = ""
        if request.optimized is not None:
            try:
                optimized = self._opener(request.optimized, request.optimized_folder, request)
            except Exception as error:
                _raise_if_memory(error)
                if original.engine == ReferenceSession.engine and isinstance(error, NotImplementedError):
                    raise _BeyondReference(one_line(error)) from None
                refusal = f"{original.engine} takes the original model but not the optimized one: {one_line(error)}"
        judgement.outputs = [OutputJudgement(name, name in request.random) for name in request.outputs]
        digests: list[list[tuple[str, bytes, bytes | None]]] = [[] for _ in request.outputs]
        runs = Runs(request, original, judgement, self.agreement)
        for run in runs.usual():
            if refusal:  # an original that loads and never runs is no standard
                raise _Different(refusal)
            if request.only_edges:
                break
            self._count(run)
            if optimized is not None:
                self._compare(run, optimized)
            for output, seen, value in zip(judgement.outputs, digests, run.outputs, strict=True):
                if output.name in request.dependent and not output.random:
                    seen.append(digest(value))
        for output, seen in zip(judgement.outputs, digests, strict=True):
            if len(seen) > 1:
                output.exercised = moves(seen)
        for run in runs.at_edges():
            self._count(run)
            judgement.edges += 1
            judgement.draw = run.draw
            if optimized is not None:
                try:
                    self._compare(run, optimized)
                except (_OutOfMemory, _OutOfTime) as error:
                    judgement.notes.append(f"not compared at {named(run.draw)}: {error}")
                except _Different:
                    if is_undefined(request, run, lambda model: self._opener(model, request.original_folder, request)):
                        reason = "ONNX does not define the original there, which leaves a size open beside one of 0"
                        judgement.notes.append(f"not compared at {named(run.draw)}: {reason}")
                        continue
                    if original.engine == ReferenceSession.engine or not self._reference_finds_equal(run):
                        raise
                    judgement.notes.append(f"at {named(run.draw)} the runtime tells the models apart, and the reference of ONNX does not")

    def _reference_finds_equal(self, run: Run) -> bool:
        """Tells whether the reference finds the models equal in a run with faults of runtimes.

        These are runs without elements or with extreme integers. There the result may depend on the
        spelling of a node: ONNX Runtime adds up int64 in double precision.
        """
        request = self._request
        if run.draw is None or not (0 in run.draw.sizes.values() or run.draw.extremes) or request.optimized is None:
            return False
        try:
            original = _open_reference(request.original, request.original_folder, request)
            outputs = original.run(run.feeds, [request.outputs[place] for place in run.places])
            optimized = _open_reference(request.optimized, request.optimized_folder, request)
        except Exception:
            return False
        judgement = Judgement(UNVERIFIED, outputs=[OutputJudgement(name, name in request.random) for name in request.outputs])
        comparison = _Comparison(request, judgement, original, _open_reference)
        try:
            comparison._compare(replace(run, outputs=outputs, inside={}), optimized)
        except (_Different, _OutOfMemory, _OutOfTime):
            return False
        return True

    def _count(self, run: Run) -> None:
        self._judgement.runs += 1
        for name, size in (run.draw.sizes if run.draw is not None else {}).items():
            self._judgement.sizes.setdefault(name, []).append(size)

    def _compare(self, run: Run, optimized: Session) -> None:
        """Raises `_Different` unless the optimized model's outputs match the original's."""
        self.draw = run.draw
        where = f" ({named(run.draw)})" if named(run.draw) else ""
        names = [self._request.outputs[place] for place in run.places]
        try:
            values = optimized.run(run.feeds, [*names, *run.inside])
        except Exception as error:
            _raise_if_memory(error)
            raise _Different(f"the optimized model fails on inputs that the original accepts{where}: {one_line(error)}") from None
        try:
            self._compare_values(run, names, values, where)
        except MemoryError as error:
            raise _OutOfMemory(f"to compare the results takes more memory than the limit allows: {one_line(error)}") from None

    def _compare_values(self, run: Run, names: Sequence[str], values: Sequence[Any], where: str) -> None:
        """Raises `_Different` unless the optimized model's `values`, the outputs and then those inside, match the original's."""
        open_: list[_Differing] = []
        for position, a, b in zip(run.places, run.outputs, values[: len(names)], strict=True):
            output = self._judgement.outputs[position]
            before, after = signature(a), signature(b)
            if before != after:
                raise _Different(f"output '{output.name}' is {before} in the original and {after} in the optimized model{where}", output.name, math.inf)
            if output.random:
                continue
            if differences := tolerance.differences(a, b):
                open_.append((position, differences))
                output.bitwise = False
        with self.agreement.timed:
            doubts = self.agreement.doubts(run.inside, values[len(names) :])
        if open_ or doubts:
            self._explain(run, open_, doubts, where)

    def _explain(self, run: Run, open_: Sequence[_Differing], doubts: Sequence[Doubt], where: str) -> None:
        """Nudges until the original's own changes explain each difference.

        Raises `_Different` for a difference of outputs that they do not explain.
        """
        inputs, weights = self._nudges.inputs(run.feeds), self._nudges.weights(run.feeds)
        end = time.monotonic() + _NUDGING * self._request.patience
        if left := self._unexplained(open_):
            for nudges in self._order(inputs, weights):
                left = self._nudge(nudges, left, doubts, end, always=nudges is weights)
                if not left:
                    self._weights_tell |= nudges is weights
                    break
        # Nudged weights move every value, and their sessions serve all runs unless they are large.
        self._nudge_inside(weights if self._nudges.keeps else inputs, doubts)
        unexplained = {position for position, _ in left}
        for position, differences in open_:
            output = self._judgement.outputs[position]
            if position in unexplained and self._shows_unwritten_memory(run, output.name):
                self._judgement.notes.append(f"output '{output.name}' of the original shows memory that nothing wrote, and was not compared{where}")
                continue
            for _, difference in differences:
                finding = difference.judge(self._request.decided(position))
                if finding.max_error is None or output.max_error is None:
                    output.max_error = None
                elif finding.max_error >= output.max_error:
                    output.max_error, output.tolerance = finding.max_error, finding.tolerance
                output.near_ties += finding.near_ties
                if finding.unexplained:
                    error = "" if finding.max_error is None else f", error {finding.error:.3g} over a tolerance of {finding.tolerance:.3g}"
                    reason = f"output '{output.name}' differs in {finding.unexplained} elements{error}{where}"
                    raise _Different(reason, output.name, finding.relative if error else None)

    def _order(self, inputs: Iterator[Nudge], weights: Iterator[Nudge]) -> Sequence[Iterator[Nudge]]:
        """Returns the order in which nudges are tried. Those of weights move more values, but large
        ones take long to make.
        """
        if self._weights_tell:
            return weights, inputs
        return (itertools.islice(inputs, _AT_ONCE), weights, inputs) if self._nudges.keeps else (inputs, weights)

    def _nudge_inside(self, nudges: Iterator[Nudge], doubts: Sequence[Doubt]) -> None:
        """Runs a few more nudges for values inside, as long as each explains some, and notes those that
        differ all the same.
        """
        with self.agreement.timed:
            left = self.agreement.open(doubts)
            for nudge in itertools.islice(nudges, _NUDGES_INSIDE if left else 0):
                try:
                    values = nudge.session.run(nudge.inputs, [doubt.name for doubt in left])
                except Exception:  # as in `_nudge`
                    continue
                for doubt, value in zip(left, values, strict=True):
                    tolerance.noted(doubt.parts, value, nudge.factor)
                before, left = left, self.agreement.open(left)
                if not left or len(left) == len(before):
                    break
            self.agreement.drop({doubt.name for doubt in left})

    def _nudge(self, nudges: Iterator[Nudge], open_: Sequence[_Differing], doubts: Sequence[Doubt], end: float, always: bool) -> Sequence[_Differing]:
        """Runs nudges and notes the changes. Returns the outputs whose differences they do not explain.

        Changes only grow, so an output whose differences are explained runs no more. The runs end
        once all are. Unless they go on `always`, they also end if the first few change nothing:
        inputs that the outputs ignore show no rounding. Raises `_OutOfTime` after the `end`.
        """
        moved, left = always, open_
        for number, nudge in enumerate(nudges):
            names = [self._request.outputs[position] for position, _ in left]
            try:
                values = nudge.session.run(nudge.inputs, [*names, *(doubt.name for doubt in doubts)])
            except Exception:  # a nudge that moves the model out of its domain shows nothing
                continue
            for (_, differences), value in zip(left, values[: len(names)], strict=True):
                moved |= tolerance.noted(differences, value, nudge.factor)
            for doubt, value in zip(doubts, values[len(names) :], strict=True):
                tolerance.noted(doubt.parts, value, nudge.factor)
            left = self._unexplained(left)
            if not left or (not moved and number % _AT_ONCE == _AT_ONCE - 1):
                break
            if time.monotonic() > end:
                raise _OutOfTime("to explain a difference by rounding takes long")
        return left

    def _shows_unwritten_memory(self, run: Run, name: str) -> bool:
        """Tells whether the original's output depends on the former content of memory."""
        try:
            digests = {digest(value) for (value,) in under_fills(self._original, run.feeds, [name])}
        except Exception:
            return False
        return len(digests) > 1

    def _unexplained(self, open_: Sequence[_Differing]) -> list[_Differing]:
        """Returns the outputs with a difference that the noted changes do not explain."""
        return [each for each in open_ if not all(difference.explained(self._request.decided(each[0])) for _, difference in each[1])]
