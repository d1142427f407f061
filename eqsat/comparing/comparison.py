"""A comparison: the variants of one model, verified, priced and timed side by side.

`compare` lets optimizers make the variants, and `compare_as_is` takes two given models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from eqsat.comparing.child import Limits
from eqsat.comparing.making import as_it_is, make_variant, verified
from eqsat.comparing.optimizers import Optimizer, library_option, promise_option
from eqsat.comparing.prediction import predicted
from eqsat.comparing.stopwatch import Measured, Measurement, Request, launches, measure, own_worker
from eqsat.comparing.variant import Variant
from eqsat.model.prepare import dimension_names
from eqsat.model.sources import read_proto
from eqsat.runtime.interleaved import NotTimed
from eqsat.runtime.worker import Worker
from eqsat.tuning.runnable import runnable_inputs

Figure = Callable[[Measured], float]
"""A figure of a measurement, such as its time in parts of the original's."""


@dataclass(frozen=True)
class Comparison:
    """One model: its variants by name, the original first, and how they ran. `failure` is the
    reason if none of them did. `predicted` has the milliseconds that eqsat predicts. `sizes` are
    those of the named dimensions of the inputs.
    """

    model: str
    variants: Mapping[str, Variant]
    measurement: Measurement
    failure: str = ""
    predicted: Mapping[str, float] = field(default_factory=dict[str, float])
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def original(self) -> Variant:
        return next(iter(self.variants.values()))

    def counting(self, name: str) -> Measured | None:
        """Returns the measurement of a variant if it is right."""
        variant = self.variants.get(name)
        return self.measurement.measured.get(name) if variant is not None and variant.right else None

    def ratio(self, name: str, figure: Figure, other: str) -> float | None:
        """Returns a figure of a variant divided by that of another, if both are right."""
        mine, base = self.counting(name), self.counting(other)
        return figure(mine) / figure(base) if mine is not None and base is not None and figure(base) else None


@dataclass(frozen=True)
class Conditions:
    """The conditions that hold for all variants.

    `clock` is one of the stopwatch's, and `assumed` are sizes of named dimensions. `inputs` are
    the caller's, from the file `inputs_path`; without them, inputs are drawn. `target` prices the
    models. `library` is the file of their custom operators. Under `no_empty_inputs` eqsat may rely on
    it that no input is empty, and verification draws none.
    """

    limits: Limits
    rounds: int
    seconds: float
    threads: int = 1
    clock: str = "wall"
    assumed: Mapping[str, int] = field(default_factory=dict[str, int])
    inputs: Mapping[str, np.ndarray[Any, Any]] | None = None
    inputs_path: Path | None = None
    target: str | None = None
    library: Path | None = None
    no_empty_inputs: bool = False

    @property
    def of_verification(self) -> list[str]:
        """The options of `eqsat verify` that say the same."""
        inputs = [] if self.inputs_path is None else ["--inputs", str(self.inputs_path)]
        return [*inputs, *library_option(self.library), *promise_option(self.no_empty_inputs)]


def compare(name: str, model: Path, optimizers: Sequence[Optimizer], folder: Path, conditions: Conditions, progress: Callable[[str], None]) -> Comparison:
    """Returns what each optimizer makes of a model. The results lie in `folder`, under the names of
    the optimizers.

    Raises `InputError` if the model is not one, or if the given inputs are not its own.
    """
    original = as_it_is(model)
    with own_worker() as worker:
        trial = _Trial(model, conditions, worker, progress)
        variants = [original]
        for optimizer in optimizers:
            progress(optimizer.name)
            variants.append(make_variant(optimizer, model, folder / f"{optimizer.name}.onnx", conditions.limits, conditions.of_verification))
        return trial.comparison(name, variants)


def compare_as_is(first: Path, second: Path, conditions: Conditions, progress: Callable[[str], None]) -> Comparison:
    """Returns how two given models compare; the first is the original.

    Raises `InputError` if one of them is not a model, or if the given inputs are not the original's.
    """
    original, other = as_it_is(first, str(first)), as_it_is(second, str(second))
    with own_worker() as worker:
        trial = _Trial(first, conditions, worker, progress)
        progress("verify")
        return trial.comparison(str(first), [original, verified(other, first, conditions.limits, conditions.of_verification)])


class _Trial:
    """The inputs of a comparison, and what can be measured with them."""

    def __init__(self, original: Path, conditions: Conditions, worker: Worker, progress: Callable[[str], None]) -> None:
        self._conditions = conditions
        self._worker = worker
        self._progress = progress
        self._failure = ""
        self._feeds: Mapping[str, Any] = {}
        proto = read_proto(original)
        names = dimension_names(proto)
        sizes: Mapping[str, int] = {name: size for name, size in conditions.assumed.items() if name in names}
        progress("inputs")
        try:
            self._feeds, sizes = runnable_inputs(proto, conditions.inputs, sizes, lambda feeds: launches(str(original), self._asked({}, feeds), worker))
        except NotTimed as error:
            self._failure = f"the original does not run: {error}"
        self._sizes = {name: size for name, size in sizes.items() if name in names}

    def _asked(self, paths: Mapping[str, str], feeds: Mapping[str, Any]) -> Request:
        its = self._conditions
        library = None if its.library is None else str(its.library)
        return Request(paths, feeds, its.rounds, its.seconds, its.clock, its.threads, its.limits.seconds, its.limits.memory, library)

    def comparison(self, name: str, variants: Sequence[Variant]) -> Comparison:
        """Returns the comparison of verified variants."""
        its = self._conditions
        paths = {variant.name: variant.path for variant in variants if variant.path}
        guesses: dict[str, float] = {}
        for variant, path in paths.items():
            self._progress(f"predict {variant}")
            guess = predicted(Path(path), self._sizes, its.limits, its.target, its.library)
            if guess is not None:
                guesses[variant] = guess
        found = Measurement() if self._failure else measure(self._asked(paths, self._feeds), self._worker, self._progress)
        return Comparison(name, {variant.name: variant for variant in variants}, found, self._failure, guesses, self._sizes)
