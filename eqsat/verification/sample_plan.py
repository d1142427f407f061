"""The plan of samples: the inputs of a model as plain data, and the sizes to draw them at.

A plan is made from a model (eqsat/verification/planning.py) and goes to the worker, which draws the
inputs from it (eqsat/verification/samples.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from eqsat.frozen import frozen

if TYPE_CHECKING:
    from eqsat.facts.dims import Dim
    from eqsat.verification.input_ranges import Want

NORMAL, CALM, POSITIVE, ONES, ZEROS = "normal", "calm", "positive", "ones", "zeros"

MOST_ELEMENTS = 1 << 24
"""The most elements of inputs of any but the first sizes."""

_LONG = ((1024, 2), (16384, 2), (1024, 1))  # sizes of signals and of their batch: some models take single ones alone
_LONGEST = 1 << 18  # the most elements of inputs of such sizes


@frozen(slots=False)
class Spec:
    """One input: `kind` is tensor, sequence, optional or map.

    `dtype` is a numpy or ml_dtypes name, or "str"; that of a map belongs to its keys. A dimension
    is a size or a name. A `shape` of None is any rank. `element` is the element of a sequence or an
    optional, or the value of a map.
    """

    kind: str
    dtype: str = ""
    shape: tuple[int | str, ...] | None = None
    want: Want | None = None
    element: Spec | None = None

    @property
    def is_free(self) -> bool:
        """Whether a model takes any values of the input."""
        return self.want is None or not self.want.bounds

    @property
    def has_choices(self) -> bool:
        """Whether single values of the input may open ways through a model."""
        telling = self.want is not None and not self.want.pattern and bool(self.want.telling)
        return self.kind == "tensor" and (self.dtype == "bool" or telling)


@frozen(slots=False)
class Plan:
    """The inputs of one model, with everything that drawing them needs."""

    inputs: Mapping[str, Spec]
    symbols: tuple[str, ...] = ()
    batches: frozenset[str] = frozenset()  # symbols that occur only as a first dimension
    ranks: tuple[str, ...] = ()  # inputs of unknown rank
    counts: bool = False  # integers may be counts of loops, so none is negative
    computed: Mapping[str, Dim] = field(default_factory=dict[str, "Dim"])  # sizes that follow from the symbols
    filled: bool = False  # no free or computed size is 0

    def size_choices(self) -> Iterator[dict[str, int]]:
        """Yields sizes for each symbol, the most telling first.

        All sizes differ, are equal, or are 1; then larger ones follow, for windows.
        """
        symbols = self.symbols
        different, other = (3, 4, 5, 6, 7), (6, 9, 4, 3, 7)
        choices: list[dict[str, int]] = [
            {name: different[number % 5] for number, name in enumerate(symbols)},
            dict.fromkeys(symbols, 2),
            dict.fromkeys(symbols, 1),
            {name: other[number % 5] for number, name in enumerate(symbols)},
            dict.fromkeys(symbols, 8),
            *({name: 2 if name in self.batches else size for name in symbols} for size in (16, 32, 64, 224)),
        ]
        ranks = (2, 1, 3, 4, 0) if self.ranks else (0,)
        found: list[dict[str, int]] = []
        for number, choice in enumerate(choices):
            sizes = self.with_computed(choice | {f"rank of {name}": ranks[number % len(ranks)] for name in self.ranks})
            if sizes is not None and sizes not in found and (not found or self.elements(sizes) <= MOST_ELEMENTS):
                found.append(sizes)
                yield sizes

    def long_choices(self) -> Iterator[dict[str, int]]:
        """Yields sizes beyond the usual ones, for windows over signals. A batch stays small, unless it may be
        the signal.
        """
        ranks = {f"rank of {name}": 2 for name in self.ranks}
        small = self.batches if self.batches < set(self.symbols) else ()
        choices = [{name: batch if name in small else size for name in self.symbols} for size, batch in _LONG]
        for number, choice in enumerate(choices):
            sizes = None if not choice or choice in choices[:number] else self.with_computed(choice | ranks)
            if sizes is not None and self.elements(sizes) <= _LONGEST:
                yield sizes

    def with_computed(self, sizes: Mapping[str, int]) -> dict[str, int] | None:
        """Adds the computed sizes; None if one of them is unknown or negative, or 0 although the
        plan is filled.
        """
        if not self.computed:
            return dict(sizes)
        from eqsat.facts.dims import evaluate

        found = ((name, evaluate(size, sizes)) for name, size in self.computed.items())
        known = {name: size for name, size in found if size is not None and size >= int(self.filled)}
        return {**sizes, **known} if len(known) == len(self.computed) else None

    def elements(self, sizes: Mapping[str, int]) -> int:
        """Returns the number of elements of all input tensors."""
        return sum(int(np.prod([sizes[size] if isinstance(size, str) else size for size in spec.shape or ()])) for spec in self.inputs.values())

    @property
    def has_floats_alone(self) -> bool:
        """Whether nothing is free but the elements of tensors of floats."""
        return not self.symbols and not self.ranks and all(spec.kind == "tensor" and "float" in spec.dtype for spec in self.inputs.values())

    def volume(self, sizes: Mapping[str, int]) -> int:
        """Returns the number of times a model does its work.

        It is the largest product of the free dimensions of an input.
        """
        return max((math.prod(sizes[size] for size in spec.shape or () if isinstance(size, str)) for spec in self.inputs.values()), default=1)

    @property
    def has_choices(self) -> bool:
        """Whether single values of some input may open ways through a model."""
        return any(spec.has_choices for spec in self.inputs.values())


@frozen(slots=False)
class Draw:
    """One draw: the sizes, style and seed of a plan's inputs."""

    sizes: dict[str, int]
    style: str
    seed: int
    extremes: frozenset[str] = frozenset()  # integer inputs that hold the limits of their type


@frozen(slots=False)
class Edge:
    """An edge to draw at.

    Either `symbols` have the first of `sizes` that the original accepts, or `extremes` hold the
    limits of their type.
    """

    symbols: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    extremes: frozenset[str] = frozenset()
