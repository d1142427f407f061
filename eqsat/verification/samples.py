"""Samples: random inputs for a model.

The input is a model. `make_plan` returns a `Plan`, which is plain data. From a plan, sizes, a style
and a seed, `draw` makes the inputs: tensors of every element type, sequences, optionals and maps.
The same arguments give the same bits. Drawing needs only numpy and happens in the worker; planning
needs onnx.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from eqsat.dimension_names import is_own, sizes_of
from eqsat.frozen import frozen

if TYPE_CHECKING:
    import onnx

    from eqsat.facts.dims import Dim
    from eqsat.verification.input_ranges import Want

NORMAL, CALM, POSITIVE, ONES, ZEROS = "normal", "calm", "positive", "ones", "zeros"

_LONG = ((1024, 2), (16384, 2), (1024, 1))  # sizes of signals and of their batch: some models take single ones alone
_LONGEST = 1 << 18  # the most elements of inputs of such sizes
_APART = 6  # the most free dimensions that have edges of their own

_WORDS = ("a", "b", "apple", "Über", "two words", "", "42", "a")
MOST_ELEMENTS = 1 << 24


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


def make_edges(plan: Plan, bounds: Collection[int], arbitrary: Collection[str], together: bool = False) -> tuple[Edge, ...]:
    """Returns the edges of a plan.

    Each free dimension becomes 0 unless the plan is `filled`, 1 and, if there are any `bounds`, larger
    than all of them. Each of the `arbitrary` inputs becomes extreme. The dimensions take turns, or all
    go `together`.
    """
    groups = [(name,) for name in plan.symbols]
    groups = [plan.symbols] if together and groups else [*groups[:_APART], *([plan.symbols[_APART:]] if len(groups) > _APART else [])]
    beyond = tuple(sorted({bound + 1 for bound in bounds}, reverse=True))
    edges = [Edge(group, sizes) for sizes in (() if plan.filled else (0,), (1,), beyond) if sizes for group in groups]
    wide = frozenset(name for name, spec in plan.inputs.items() if name in arbitrary and _has_ends(spec))
    return (*edges, *([Edge(extremes=wide)] if wide else []))


def _has_ends(spec: Spec) -> bool:
    return spec.kind == "tensor" and _is_free(spec) and spec.dtype in ("int16", "int32", "int64", "uint16", "uint32", "uint64")


def make_plan(model: onnx.ModelProto, overridable: bool = False, filled: bool = False) -> Plan:
    """Returns the plan for the required inputs of `model`, without sizes of 0 if it is to be `filled`.

    A size whose name is arithmetic follows from the names within. With `overridable`, the plan has the
    inputs with a default value too. Raises `NotImplementedError` naming an input whose type has no
    samples.
    """
    from eqsat.facts.dims import symbols
    from eqsat.model.names import stored_names
    from eqsat.verification.input_ranges import input_ranges, nodes_in_order
    from eqsat.verification.sizes_by_name import sizes_by_name

    graph = model.graph
    given = set(stored_names(graph))
    shapes = _Shapes(model)
    specs: dict[str, Spec] = {}
    wants: dict[str, Want] = input_ranges(with_functions_inlined(model).graph, shapes.find) if graph.input else {}
    for value in graph.input:
        if value.name not in given or overridable:
            specs[value.name] = _spec(value.name, value.type, wants.get(value.name))
    seen: dict[str, set[int]] = {}
    for spec in specs.values():
        leaf = spec
        while leaf.element is not None:
            leaf = leaf.element
        for position, size in enumerate(leaf.shape or ()):
            if isinstance(size, str):
                seen.setdefault(size, set()).add(position)
    plan = Plan(
        specs,
        tuple(seen),
        frozenset(name for name, positions in seen.items() if positions == {0}),
        tuple(name for name, spec in specs.items() if spec.kind == "tensor" and spec.shape is None),
        any(node.op_type == "Loop" for node in nodes_in_order(model.graph.node)),
        filled=filled,
    )
    computed = sizes_by_name(seen)
    free = dict.fromkeys(name for name in seen if name not in computed)
    free.update(dict.fromkeys(name for size in computed.values() for name in symbols(size)))
    named = replace(plan, symbols=tuple(free), computed=computed)
    return named if any(size_choices(named)) else plan


def with_functions_inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model without its functions, or the model itself if onnx cannot inline them."""
    from eqsat.runtime.onnx_passes import NativeFailure, inlined

    try:
        return inlined(model)
    except NativeFailure:  # shapes are advice only
        return model


class _Shapes:
    """Shapes of values by name: the declared ones, and if these do not suffice, inferred ones."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._known: dict[str, tuple[int | str | None, ...]] = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
        self._read(model.graph.input, named=True)
        self._inferred = False

    def find(self, name: str) -> tuple[int | str | None, ...] | None:
        if name not in self._known and not self._inferred:
            self._inferred = True
            from eqsat.runtime.onnx_passes import NativeFailure, inferred
            from eqsat.verification.loaded_model import without_weights

            try:
                typed = inferred(without_weights(self._model))
            # A model that inference refuses may still run, and shapes are advice only.
            except NativeFailure:
                typed = self._model
            self._read(typed.graph.value_info)
            self._read(typed.graph.output)
        return self._known.get(name)

    def _read(self, values: Any, named: bool = False) -> None:
        for value in values:
            if value.type.tensor_type.HasField("shape"):
                sizes = sizes_of(value.type.tensor_type, value.name)
                self._known.setdefault(value.name, tuple(size if named or isinstance(size, int) or not is_own(size) else None for size in sizes))


def _spec(name: str, kind: onnx.TypeProto, want: Want | None) -> Spec:
    from onnx import helper

    which = kind.WhichOneof("value")
    if which == "tensor_type":
        element = kind.tensor_type.elem_type
        dtype = "str" if element == 8 else helper.tensor_dtype_to_np_dtype(element).name
        shape = None
        if kind.tensor_type.HasField("shape"):
            shape = sizes_of(kind.tensor_type, name)
        return Spec("tensor", dtype, shape, want)
    if which == "sequence_type":
        return Spec("sequence", element=_spec(name, kind.sequence_type.elem_type, want))
    if which == "optional_type":
        return Spec("optional", element=_spec(name, kind.optional_type.elem_type, want))
    if which == "map_type":
        key = "str" if kind.map_type.key_type == 8 else helper.tensor_dtype_to_np_dtype(kind.map_type.key_type).name
        return Spec("map", key, element=_spec(name, kind.map_type.value_type, want))
    raise NotImplementedError(f"no sample can be drawn for input '{name}' of type {which or 'unknown'}")


def size_choices(plan: Plan) -> Iterator[dict[str, int]]:
    """Yields sizes for each symbol, the most telling first.

    All sizes differ, are equal, or are 1; then larger ones follow, for windows.
    """
    symbols = plan.symbols
    different, other = (3, 4, 5, 6, 7), (6, 9, 4, 3, 7)
    choices: list[dict[str, int]] = [
        {name: different[number % 5] for number, name in enumerate(symbols)},
        dict.fromkeys(symbols, 2),
        dict.fromkeys(symbols, 1),
        {name: other[number % 5] for number, name in enumerate(symbols)},
        dict.fromkeys(symbols, 8),
        *({name: 2 if name in plan.batches else size for name in symbols} for size in (16, 32, 64, 224)),
    ]
    ranks = (2, 1, 3, 4, 0) if plan.ranks else (0,)
    found: list[dict[str, int]] = []
    for number, choice in enumerate(choices):
        sizes = with_computed(plan, choice | {f"rank of {name}": ranks[number % len(ranks)] for name in plan.ranks})
        if sizes is not None and sizes not in found and (not found or elements(plan, sizes) <= MOST_ELEMENTS):
            found.append(sizes)
            yield sizes


def long_choices(plan: Plan) -> Iterator[dict[str, int]]:
    """Yields sizes beyond the usual ones, for windows over signals. A batch stays small, unless it may be
    the signal.
    """
    ranks = {f"rank of {name}": 2 for name in plan.ranks}
    small = plan.batches if plan.batches < set(plan.symbols) else ()
    choices = [{name: batch if name in small else size for name in plan.symbols} for size, batch in _LONG]
    for number, choice in enumerate(choices):
        sizes = None if not choice or choice in choices[:number] else with_computed(plan, choice | ranks)
        if sizes is not None and elements(plan, sizes) <= _LONGEST:
            yield sizes


def with_computed(plan: Plan, sizes: Mapping[str, int]) -> dict[str, int] | None:
    """Adds the computed sizes of a plan; None if one of them is unknown or negative, or 0 although the
    plan is filled.
    """
    if not plan.computed:
        return dict(sizes)
    from eqsat.facts.dims import evaluate

    found = ((name, evaluate(size, sizes)) for name, size in plan.computed.items())
    known = {name: size for name, size in found if size is not None and size >= int(plan.filled)}
    return {**sizes, **known} if len(known) == len(plan.computed) else None


def elements(plan: Plan, sizes: Mapping[str, int]) -> int:
    """Returns the number of elements of all input tensors."""
    return sum(int(np.prod([sizes[size] if isinstance(size, str) else size for size in spec.shape or ()])) for spec in plan.inputs.values())


def has_floats_alone(plan: Plan) -> bool:
    """Tells whether nothing is free in a plan but the elements of tensors of floats."""
    return not plan.symbols and not plan.ranks and all(spec.kind == "tensor" and "float" in spec.dtype for spec in plan.inputs.values())


def volume(plan: Plan, sizes: Mapping[str, int]) -> int:
    """Returns the number of times a model does its work.

    It is the largest product of the free dimensions of an input.
    """
    return max((math.prod(sizes[size] for size in spec.shape or () if isinstance(size, str)) for spec in plan.inputs.values()), default=1)


def draw(plan: Plan, chosen: Draw) -> dict[str, Any]:
    """Returns inputs by name. The seed of an input depends on its name, not on its place."""
    feeds: dict[str, Any] = {}
    ways = 0
    for name, spec in plan.inputs.items():
        generator = np.random.default_rng([chosen.seed, zlib.crc32(name.encode())])
        rank = chosen.sizes.get(f"rank of {name}", 0)
        if name in chosen.extremes:
            feeds[name] = _ends(numpy_dtype(spec.dtype), _shape(spec, chosen.sizes, rank), generator)
            continue
        style = CALM if plan.counts and chosen.style == NORMAL and _counts(spec) else chosen.style
        feeds[name] = _draw(spec, chosen.sizes, rank, style, generator)
        if style == NORMAL and _has_choices(spec):
            ways += 1
            feeds[name] = _telling(feeds[name], spec.want, chosen.sizes, chosen.seed // ways, generator)
    return feeds


def _telling(drawn: np.ndarray, want: Want | None, sizes: Mapping[str, int], turn: int, generator: np.random.Generator) -> np.ndarray:
    """Returns drawn values with telling ones in place of about half of them.

    A single value takes turns between all of its ways, so that a few draws go each way.
    """
    ways: list[Any] = []
    if drawn.dtype == np.bool_:
        ways = [True, False]
    elif want is not None and drawn.dtype.kind in "iuf":
        low, high = _limits(want, sizes, signed=True) if want.highs else (-math.inf, math.inf)
        if drawn.dtype.kind != "f":
            low, high = max(low, np.iinfo(drawn.dtype).min), min(high, np.iinfo(drawn.dtype).max + 1)
        ways = [value for value in want.telling if low <= value < high]
    if drawn.size == 1:
        return np.full_like(drawn, [*ways, drawn.item()][turn % (len(ways) + 1)])
    if not ways:
        return drawn
    chosen = generator.integers(0, 2 * len(ways), drawn.shape)
    return np.where(chosen < len(ways), np.array(ways, drawn.dtype)[chosen % len(ways)], drawn)


def _ends(kind: np.dtype[Any], shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """Draws integers from the limits and the middle of their type."""
    limits = np.iinfo(kind)
    low, high = int(limits.min), int(limits.max)
    values = np.array([low, low + 1, max(low, -1), 0, 1, high - 1, high], dtype=kind)
    return values[generator.integers(0, len(values), shape)]


def _counts(spec: Spec) -> bool:
    return spec.kind == "tensor" and spec.dtype in ("int32", "int64") and _is_free(spec)


def _is_free(spec: Spec) -> bool:
    """Tells whether a model takes any values of an input."""
    return spec.want is None or not spec.want.bounds


def has_choices(plan: Plan) -> bool:
    """Tells whether single values of some input may open ways through a model."""
    return any(map(_has_choices, plan.inputs.values()))


def _has_choices(spec: Spec) -> bool:
    return spec.kind == "tensor" and (spec.dtype == "bool" or (spec.want is not None and not spec.want.pattern and bool(spec.want.telling)))


def _draw(spec: Spec, sizes: Mapping[str, int], rank: int, style: str, generator: np.random.Generator) -> Any:
    if spec.kind == "tensor":
        return _tensor(spec.dtype, _shape(spec, sizes, rank), spec.want, sizes, style, generator)
    assert spec.element is not None
    if spec.kind == "sequence":
        return [_draw(spec.element, sizes, rank, style, generator) for _ in range(3)]
    if spec.kind == "optional":
        return None if style == ZEROS else _draw(spec.element, sizes, rank, style, generator)
    keys = [f"key{number}" if spec.dtype == "str" else number for number in range(3)]
    values = [_draw(spec.element, sizes, rank, style, generator) for _ in keys]
    return {key: value.item() if value.ndim == 0 else value for key, value in zip(keys, values, strict=True)}


def _shape(spec: Spec, sizes: Mapping[str, int], rank: int) -> tuple[int, ...]:
    return (3,) * rank if spec.shape is None else tuple(sizes[size] if isinstance(size, str) else size for size in spec.shape)


def _tensor(dtype: str, shape: tuple[int, ...], want: Want | None, sizes: Mapping[str, int], style: str, generator: np.random.Generator) -> np.ndarray:
    if dtype == "str":
        words = _WORDS if style == NORMAL else ("0", "1", "2")
        return np.array([words[number] for number in generator.integers(0, len(words), int(np.prod(shape)))], dtype=object).reshape(shape)
    if dtype == "bool":
        return np.full(shape, style == ONES) if style in (ONES, ZEROS) else generator.integers(0, 2, shape, np.int8) == 1
    kind = numpy_dtype(dtype)
    integer = kind.kind in "iu" or "int" in dtype
    if want is not None and want.pattern == "reshape" and integer:
        result = np.ones(shape, np.int64)
        result[-1:] = -1
        return result.astype(kind)
    if want is not None and want.pattern == "axes" and integer:
        return np.arange(int(np.prod(shape))).reshape(shape).astype(kind)
    if want is not None and want.highs and integer:
        return _ranged(kind, shape, want, sizes, style, generator)
    if style in (ONES, ZEROS):
        return np.full(shape, int(style == ONES)).astype(kind)
    if integer:
        return _integers(kind, dtype, shape, style, generator)
    # Single precision takes half the time, and is enough for all types but the widest.
    values = generator.standard_normal(shape, np.float64 if kind.itemsize > 4 else np.float32)
    if kind.kind == "c":
        values = values + 1j * generator.standard_normal(shape)
    elif style == POSITIVE or dtype.startswith("float8_e8m0") or (want is not None and want.pattern == "positive"):
        values = np.abs(values) + 0.5
    return np.asarray(values).astype(kind)


def _ranged(kind: np.dtype[Any], shape: tuple[int, ...], want: Want, sizes: Mapping[str, int], style: str, generator: np.random.Generator) -> np.ndarray:
    low, high = _limits(want, sizes, style == NORMAL and kind.kind == "i")
    if style in (ONES, ZEROS, CALM):
        low, high = want.low, want.low + 1
    return generator.integers(low, high, shape).astype(kind)


def _limits(want: Want, sizes: Mapping[str, int], signed: bool) -> tuple[int, int]:
    """Returns the first value of a range, and the one behind its last; the first may be negative if
    values are `signed`.
    """
    # A name that is no input's dimension is a size that only a run would show. Only its first
    # element is sure to exist.
    high = max(min(sizes.get(bound, want.low + 1) if isinstance(bound, str) else bound for bound in want.highs), want.low + 1)
    return -high if want.signed and signed else want.low, high


def _integers(kind: np.dtype[Any], dtype: str, shape: tuple[int, ...], style: str, generator: np.random.Generator) -> np.ndarray:
    signed = not dtype.startswith("uint")
    if style == CALM:
        low, high = 0, 2
    elif kind.itemsize == 1:
        bits = int(dtype.lstrip("uint"))
        low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    else:
        low, high = -4 if signed and style == NORMAL else 0, 9
    # To draw narrow integers takes a fraction of the time that the widest take.
    return generator.integers(low, high, shape, np.int16 if kind.itemsize == 1 else np.int64).astype(kind)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Returns the dtype of a name: numpy's own, or one of ml_dtypes."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
