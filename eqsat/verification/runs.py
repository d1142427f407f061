"""Runs: inputs that the original accepts, with its outputs.

The input is a `Request` and a session of its original. The output is runs on the user's inputs or
on drawn ones, first usual draws and then draws at edges. If the original refuses a draw, another is
drawn in its place, or none.
"""

from __future__ import annotations

import itertools
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from eqsat.frozen import frozen
from eqsat.runtime.refusals import refusal
from eqsat.runtime.session import Session, open_runtime
from eqsat.verification import samples
from eqsat.verification.agreement import Agreement
from eqsat.verification.leaves import is_float, leaves, plain
from eqsat.verification.request import UNVERIFIED, Judgement, Request
from eqsat.verification.sample_plan import CALM, NORMAL, ONES, POSITIVE, ZEROS, Draw, Edge, Plan
from eqsat.verification.steering import Decided

_RUNS = 3
_RUNS_INSIDE = 3  # of these, in which values inside are compared where they vary in kind
_CHEAP = 1 << 18  # the most elements of an input for which a third run is cheap
_EDGE_WORK = 1 << 28  # the work of an edge's run that costs no more than loading a model
_EDGE_VOLUME = 256  # an edge may repeat the work of a model of any size so many times
_EDGE_ELEMENTS = 3 << 20  # the most elements of inputs, and of outputs, of an edge's run
_EDGE_TOUCHED = 1 << 26  # the most elements that its nodes touch, if each touches as many as these
_EDGE_SHARE = 4  # a run at an edge takes no larger share of patience: it is one of many with nudges
_SHORT = 0.01  # seconds of a run that say nothing about longer ones
_REFUSALS = 4
_SLOW = 3  # times patience that the first draw takes where a second one would hardly end within the limit
_TELLING = 2  # small choices of sizes that show whether a plan fits a model
_SMALL = 16
_EXTREMES = 3  # draws of extreme integers: a draw of few elements holds few extremes


@frozen(slots=False)
class Run:
    """Inputs that the original accepts, and its outputs on them."""

    feeds: dict[str, Any]
    draw: Draw | None  # None: the user's own
    places: tuple[int, ...]  # the positions of these outputs
    outputs: list[Any]
    inside: dict[str, Any] = field(default_factory=dict[str, Any])  # by name, the values inside that are compared
    seconds: float = 0.0


class NoDraw(Exception):
    """The original ran on no draw; `error` is the engine's on the first draw."""

    def __init__(self, error: Exception) -> None:
        super().__init__(one_line(error))
        self.error = error


class Runs:
    """The runs of one original. Remarks for the reader go to the notes of a judgement."""

    def __init__(self, request: Request, original: Session, judgement: Judgement, agreement: Agreement | None = None) -> None:
        self._agreement = agreement
        self._request = request
        self._original = original
        self._judgement = judgement
        self._begun = time.monotonic()
        self._everything = tuple(range(len(request.outputs)))
        self._tried: list[Draw] = []
        # Of each usual run, its sizes and the shapes of its outputs
        self._shapes: list[tuple[Mapping[str, int], tuple[tuple[int, ...], ...]]] = []
        self._pace: list[tuple[int, float]] = []  # of each usual run, its volume and seconds

    @property
    def _late(self) -> bool:
        """Tells whether patience is over."""
        return self._taken > self._request.patience

    @property
    def _taken(self) -> float:
        """Returns the seconds that the runs took so far. What values inside take does not count: no draw
        is left out for them.
        """
        return time.monotonic() - self._begun - (0.0 if self._agreement is None else self._agreement.seconds)

    @property
    def _are_heavy(self) -> bool:
        """Tells whether values inside took so much memory that comparing them again would take long."""
        return self._agreement is not None and self._agreement.heavy

    def usual(self) -> Iterator[Run]:
        """Yields the user's inputs, or some draws that the original accepts; raises `NoDraw`."""
        request = self._request
        if request.inputs is not None:
            try:
                yield Run(dict(request.inputs), None, self._everything, self._original.run(request.inputs, request.outputs))
            except Exception as error:
                raise NoDraw(error) from None
            return
        first, draw = self.first()
        self._note(first, draw)
        if self._agreement is not None and draw.style != NORMAL:
            self._agreement.clear()  # plain numbers hide more than regions would show on arbitrary ones
        yield first
        if not request.plan.inputs:
            return
        if not request.brief and self._taken > _SLOW * request.patience:
            self._judgement.notes.append("ran on one draw: running takes long")
            return
        most = max(_CHEAP, request.plan.elements(draw.sizes))
        choices = [] if request.only_long else [sizes for sizes in request.plan.size_choices() if sizes != draw.sizes]
        choices = [sizes for sizes in choices if request.plan.elements(sizes) <= most]
        found, number = 1, 0
        # Floats of one size show in one draw what they would show in several; a draw has few of the rows
        # that integers may choose.
        fed = [leaf.array for value in first.feeds.values() for leaf in leaves(value) if leaf.array is not None]
        inside = 1 if (not draw.sizes or self._are_heavy) and all(map(is_float, fed)) else _RUNS_INSIDE
        wanted = _RUNS if all(array.size <= _CHEAP for array in fed) else 2
        while found < wanted and number < len(choices) + _RUNS and (found < 2 or not self._late):
            sizes = choices[number] if number < len(choices) else draw.sizes
            number += 1
            try:
                run = self._run(Draw(sizes, draw.style, request.seed + number), self._everything, found < inside)
            except Exception:  # not every choice of sizes fits a model; the first run has one that does
                continue
            found += 1
            self._note(run, Draw(sizes, draw.style, request.seed + number))
            yield run

    def _note(self, run: Run, draw: Draw) -> None:
        """Notes a usual run."""
        self._tried.append(draw)
        self._shapes.append((draw.sizes, _shapes(run.outputs)))
        self._pace.append((self._request.plan.volume(draw.sizes), run.seconds))

    def at_edges(self) -> Iterator[Run]:
        """Yields runs at the edges that the original accepts.

        While patience lasts, their number depends on the models and not on the clock.
        """
        tried = self._tried
        if not tried:
            return
        first, integers = tried[0], tuple(place for place in self._everything if self._request.decided(place) == Decided.NOT)
        edges = list(self._request.edges)
        for number, edge in enumerate(edges):
            if self._late:
                self._judgement.notes.append(f"{len(edges) - number} draws at edges were not tried: running takes long")
                return
            seed = self._request.seed + len(tried) + _RUNS
            if edge.extremes:
                # Floats made of such integers round by amounts that no nudge of the inputs shows.
                widest = max(tried, key=lambda draw: self._request.plan.elements(draw.sizes))
                draws = [Draw(widest.sizes, first.style, seed + turn, edge.extremes) for turn in range(_EXTREMES if integers else 0)]
                places, wanted = integers, _EXTREMES
            else:
                found, costly = self._sizes(edge, seed)
                draws, places, wanted = found[:_REFUSALS], self._everything, 1
                if costly and len(edge.symbols) > 1:  # one long axis at a time may be affordable
                    edges += [Edge((name,), costly) for name in edge.symbols]
            for draw in draws:
                try:
                    # Values inside were compared at usual sizes, and there are most of them beyond all bounds.
                    run = self._run(draw, places, not self._are_heavy and not any(size > 1 for size in edge.sizes))
                except Exception:  # if the original refuses an edge, the optimized model may too
                    continue
                tried.append(draw)
                yield run
                wanted -= 1
                if not wanted:
                    break

    def _sizes(self, edge: Edge, seed: int) -> tuple[list[Draw], tuple[int, ...]]:
        """Returns the new, affordable draws of an edge, the most telling first, and the sizes that are not
        affordable.
        """
        plan, tried = self._request.plan, self._tried
        first = tried[0]
        largest = max(draw.sizes.get(name, 0) for name in edge.symbols for draw in tried)
        found: list[Draw] = []
        costly: list[int] = []
        for size in edge.sizes:
            sizes = plan.with_computed(first.sizes | dict.fromkeys(edge.symbols, size))
            if sizes is None or 1 < size <= largest or any(draw.sizes == sizes for draw in tried):
                continue
            if size > 1 and (is_costly(self._request, sizes, self._results(sizes)) or self._seconds(sizes) > self._request.patience / _EDGE_SHARE):
                costly.append(size)
                continue
            found.append(Draw(sizes, first.style, seed))
        if costly and len(edge.symbols) == 1 and edge not in self._judgement.costly:
            self._judgement.costly.append(edge)
        return found, tuple(costly)

    def _seconds(self, sizes: Mapping[str, int]) -> float:
        """Returns about how many seconds a run takes at other sizes, in doubt too few: 0 where usual runs are
        so short that most of them is overhead.
        """
        volume = self._request.plan.volume(sizes)
        (least, short), (most, long) = min(self._pace), max(self._pace)
        if long < _SHORT:
            return 0.0
        in_proportion = long * volume / max(most, 1)
        return min(in_proportion, long + max(long - short, 0) / (most - least) * (volume - most)) if most > least else in_proportion

    def _results(self, sizes: Mapping[str, int]) -> float:
        """Returns about how many elements all outputs have at other sizes. They grow as the volume does; and
        an axis that had the length of a size in each run has it again, as both axes of a square mask do.
        """
        before, shapes = self._shapes[0]
        times = self._request.plan.volume(sizes) / max(self._request.plan.volume(before), 1)
        by_axes = 0
        for place, shape in enumerate(shapes):
            named = ([size for name, size in sizes.items() if self._has(place, axis, name)] for axis in range(len(shape)))
            by_axes += math.prod(max(found, default=length) for found, length in zip(named, shape, strict=True))
        return max(sum(map(math.prod, shapes)) * times, by_axes)

    def _has(self, place: int, axis: int, name: str) -> bool:
        """Tells whether an axis of an output had the length of a named size in each usual run."""
        return all(place < len(shapes) and shapes[place][axis : axis + 1] == (sizes.get(name),) for sizes, shapes in self._shapes)

    def first(self) -> tuple[Run, Draw]:
        """Returns the first run that the original accepts, and its draw."""
        refusal: Exception | None = None
        hollow: tuple[Run, Draw] | None = None
        request = self._request
        for draw in long_attempts(request.plan, request.seed) if request.only_long else attempts(request.plan, request.seed, request.brief):
            # The styles of usual elements come first.
            if request.brief and hollow is None and draw.style not in (NORMAL, CALM):
                break
            try:
                run = self._run(draw, self._everything)
            except Exception as error:
                again = refusal is not None and one_line(refusal) == one_line(error)
                refusal = refusal or error
                # Where all is given but the elements of floats, these decide nothing, or little.
                if self._late or (again and request.plan.has_floats_alone):
                    break
                continue
            if not _all_nan(run.outputs):
                return run, draw
            hollow = hollow or (run, draw)
            if draw.style == POSITIVE:
                break
        if hollow is None:
            raise NoDraw(refusal or RuntimeError("it has no longer sizes"))
        self._judgement.notes.append("every floating-point output is NaN on every draw")
        return hollow

    def fits(self, plan: Plan, sizes: dict[str, int]) -> bool:
        """Tells whether the original runs at some sizes, not all of them 1, while patience lasts."""
        if self._late or all(size == 1 for size in sizes.values()):
            return False
        try:
            self._original.run(samples.draw(plan, Draw(sizes, NORMAL, self._request.seed)), self._request.outputs)
        except Exception:  # these sizes do not fit the model
            return False
        return True

    def _run(self, draw: Draw, places: tuple[int, ...], inside: bool = True) -> Run:
        """Runs the original on a draw. Raises whatever the engine raises. Without `inside`, or on a
        draw for some outputs alone, no values inside are compared.
        """
        feeds = samples.draw(self._request.plan, draw)
        names = [self._request.outputs[place] for place in places]
        shown = self._agreement.affordable(draw.sizes) if self._agreement is not None and inside and places == self._everything else []
        begun = time.monotonic()
        values = self._original.run(feeds, [*names, *shown])
        seconds = time.monotonic() - begun
        return Run(feeds, draw, places, values[: len(names)], dict(zip(shown, values[len(names) :], strict=True)), seconds)


def _shapes(outputs: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    return tuple(leaf.array.shape for value in outputs for leaf in leaves(value) if leaf.array is not None)


def is_costly(request: Request, sizes: Mapping[str, int], results: float = 0) -> bool:
    """Tells whether a run at an edge with these sizes, and so many elements of outputs, takes long."""
    volume, many = request.plan.volume(sizes), max(request.plan.elements(sizes), results)
    if many > _EDGE_ELEMENTS or many * request.nodes > _EDGE_TOUCHED:
        return True
    return volume > _EDGE_VOLUME and volume * request.work > _EDGE_WORK


def affords_some(request: Request, sizes: Sequence[int]) -> bool:
    """Tells whether a run affords some of the sizes on at least one axis, as far as the inputs tell."""
    plan = request.plan
    usual = next(plan.size_choices(), dict[str, int]())
    choices = (plan.with_computed(usual | {name: size}) for name in plan.symbols for size in sizes)
    return bool(usual) and any(known is not None and not is_costly(request, known) for known in choices)


def observe(request: Request, names: Sequence[str], draw: Draw | None) -> dict[str, Any]:
    """Returns the inputs and the values of `names` in the original of `request`.

    It runs on `draw`, or on the first draw that the original accepts.
    """
    import onnx

    proto = onnx.load_model_from_string(request.original)
    known = {value.name for value in proto.graph.output}
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
    session = open_runtime(proto.SerializeToString(), request.original_folder, request.custom_op_library, request.threads)
    feeds = request.inputs
    if feeds is None:
        feeds = samples.draw(request.plan, draw if draw is not None else Runs(request, session, Judgement(UNVERIFIED)).first()[1])
    return {**feeds, **dict(zip(names, session.run(feeds, names), strict=True))} if names else dict(feeds)


def runs_at(request: Request, plans: Sequence[Plan]) -> int | None:
    """Returns the place of the first plan at which the original runs, at sizes that are not all 1.

    Sizes that are all different come first for every plan, because equal ones fit by chance. Long ones
    come last, for windows.
    """
    runs = Runs(request, open_runtime(request.original, request.original_folder, request.custom_op_library, request.threads), Judgement(UNVERIFIED))
    for turn in itertools.zip_longest(*map(telling_sizes, plans)):
        for place, sizes in enumerate(turn):
            if sizes is not None and runs.fits(plans[place], sizes):
                return place
    return None


def telling_sizes(plan: Plan) -> list[dict[str, int] | None]:
    """Returns sizes that show whether a plan fits a model; None in place of those that it does not have."""
    usual = list(plan.size_choices())
    small = [sizes for sizes in usual[:_TELLING] if max(sizes.values(), default=0) < _SMALL]
    return [*small, *[None] * (_TELLING - len(small)), *usual[-1:], *plan.long_choices()]


def named(draw: Draw | None) -> str:
    """Returns the sizes and style of a draw as text; empty if nothing is free."""
    if draw is None:
        return ""
    sizes = f"sizes {', '.join(f'{name}={size}' for name, size in draw.sizes.items())}" if draw.sizes else ""
    extremes = f"the ends of their type in {', '.join(sorted(draw.extremes))}" if draw.extremes else ""
    return "; ".join(part for part in (sizes, extremes) if part)


def one_line(error: Exception) -> str:
    """Returns the message of an exception, on one line of bounded length."""
    text = refusal(str(error)) or type(error).__name__
    return text if len(text) <= 300 else f"{text[:297]}..."


def is_memory(error: Exception) -> bool:
    """Tells whether an engine had not enough memory."""
    return isinstance(error, MemoryError) or bool(re.search(r"bad_alloc|bad allocation|[Ff]ailed to allocate", str(error)))


def attempts(plan: Plan, seed: int = 0, brief: bool = False) -> Iterator[Draw]:
    """Yields first draws, the most telling first. If they are to be `brief`, costly ones are left out."""
    choices = list(plan.size_choices())
    yield from (Draw(sizes, NORMAL, seed) for sizes in choices[:2])
    yield Draw(choices[0], CALM, seed)
    yield from (Draw(sizes, NORMAL, seed) for sizes in choices[2:])
    if not brief:
        if plan.has_choices:  # the ways of the first seed may be for other sizes
            yield from (Draw(sizes, NORMAL, seed + 1) for sizes in choices)
        yield from long_attempts(plan, seed)
    for style in (ONES, ZEROS, CALM, POSITIVE):
        yield from (Draw(sizes, style, seed) for sizes in choices[:3])


def long_attempts(plan: Plan, seed: int) -> Iterator[Draw]:
    """Yields draws of sizes beyond the usual ones."""
    yield from (Draw(sizes, NORMAL, seed) for sizes in plan.long_choices())


def _all_nan(outputs: Sequence[Any]) -> bool:
    arrays = [leaf.array for output in outputs for leaf in leaves(output) if leaf.array is not None and leaf.array.size]
    arrays = [array for array in arrays if is_float(array)]
    return bool(arrays) and all(bool(np.isnan(plain(array)).all()) for array in arrays)
