"""Valuation: the cost of a model on a target, as the target's runtime would run it.

ONNX Runtime fuses nodes and converts layouts when it loads a model. So Valuation asks ONNX Runtime
for the graph that it would run, and prices that graph. The graph is priced as written on other
targets, and where ONNX Runtime refuses the model or would need too much memory or time.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any

import onnx

from eqsat.control.bodies import BODIES
from eqsat.cost.graph_price import NodePrice, Totals, node_prices
from eqsat.cost.price import Price
from eqsat.cost.shaped import USUAL_SIZE, assumed_size
from eqsat.cost.sizing import complete
from eqsat.cost.subnormals import faint_values
from eqsat.cost.target import Target
from eqsat.dimension_names import is_own, sizes_of
from eqsat.frozen import frozen, mutable
from eqsat.model.file_bytes import written_bytes
from eqsat.model.model import count_nodes
from eqsat.model.nameless import nameless_key
from eqsat.model.prepare import default_inputs
from eqsat.model.single_precision import half_of, has_halves, in_halves, in_single, needs_its_files
from eqsat.model.stand_ins import COPIES, prepared_bytes, with_stand_ins
from eqsat.model.validity import light
from eqsat.rewriting.recent import Recent
from eqsat.runtime.onnx_passes import NativeFailure, inferred, inlined
from eqsat.runtime.own_graph import NoGraph, fix_sizes, loads, measured_graph, own_graph
from eqsat.runtime.worker import Worker
from eqsat.settings import Objective

_MOST_NODES = 20_000  # nodes up to which the runtime is asked; on deeper chains it takes more than in proportion

EQUALLY_DEAR = 0.0005
"""The share by which two predictions must differ before one model is preferred."""
SLIGHT = 0.1
"""The part of a launch by which two predicted times must differ as well. No measured rate of a tiny
kernel is more precise.
"""


@frozen
class Figures:
    """The cost of a model, and how it was found."""

    nodes: int
    totals: Totals
    stored: int  # bytes of the graph in a file
    asked: bool  # whether the runtime's own graph was priced
    refused: bool = False  # whether the runtime refuses this model although it loads others


@frozen
class Row:
    """The cost of one node that runs."""

    name: str  # the name of its first output
    operator: str
    price: Price
    known: bool  # whether the target, or the table of operators, describes it
    inputs: tuple[str, ...]  # names; absent ones are empty
    outputs: tuple[str, ...]
    measured: float | None = None  # seconds, if measured


@mutable
class Valuation:
    """Prices whole models, and tells which of two is better under an objective."""

    target: Target
    objective: Objective
    sizes: Mapping[str, int]  # of named dimensions
    library: str | None  # the library of custom operators
    worker: Worker
    memory: int = 1 << 30  # bytes that the runtime may take when it prepares a graph
    verified: bool = True  # whether a result is verified; verification finds the nodes that the runtime refuses
    asks: bool = field(init=False)
    """Whether the runtime is asked for its graph. All models are priced alike, so asking stops if
    the runtime refuses the first model.
    """
    _loads: bool = False  # whether the runtime has loaded a model
    _known: dict[bytes, Figures] = field(default_factory=dict[bytes, Figures])  # by the digest of the message
    # What the runtime makes of a model, by the key of its form without names
    _alike: dict[bytes, Totals] = field(default_factory=dict[bytes, "Totals"])
    _parts: Valuation | None = None
    _figured: Recent[Figures] = field(default_factory=Recent[Figures])
    _faint: Recent[dict[str, float]] = field(default_factory=Recent[dict[str, float]])
    _peaks: Recent[int] = field(default_factory=Recent[int])
    widened: Recent[onnx.ModelProto] = field(default_factory=Recent[onnx.ModelProto])  # the model whose numbers have full rank

    def __post_init__(self) -> None:
        self.asks = self.target.asks

    def of_parts(self) -> Valuation:
        """Returns a valuation for small parts of models. One that the runtime refuses is the worst,
        and tells nothing of whole models.
        """
        if self._parts is None:
            self._parts = Valuation(self.target, self.objective, self.sizes, self.library, self.worker, self.memory, verified=False)
        return self._parts

    def assumed(self, model: onnx.ModelProto) -> dict[str, int]:
        """Returns the size that prices assume for each free dimension of a model's inputs."""
        sizes = (size for info in model.graph.input for size in sizes_of(info.type.tensor_type, info.name))
        return {size: assumed_size(size, self.sizes) for size in sizes if isinstance(size, str)}

    def assumed_by_name(self, model: onnx.ModelProto) -> dict[str, int]:
        """Returns the size that prices assume for each named dimension of a model's inputs."""
        return {name: size for name, size in self.assumed(model).items() if not is_own(name)}

    def figures(self, model: onnx.ModelProto, folder: Path | None) -> Figures:
        """Returns the cost of a model whose external data are under `folder`."""
        recent = self._figured.get(model)
        if recent is not None and recent.asked == self.asks:
            return recent
        faint = self.faint(model, folder)
        if len(model.graph.node) > _MOST_NODES:
            found = self._figures(model, folder, faint, b"", 0)  # no message, which would take as much memory as the model
        else:
            message, zeros = with_stand_ins(model)
            # Stand-ins have no elements that would tell which values are faint.
            key = hashlib.blake2b(message + repr(faint).encode() if faint else message, digest_size=16).digest()
            found = self._known.get(key)
            if found is None or found.asked != self.asks:
                found = self._known[key] = self._figures(model, folder, faint, message, zeros)
        return self._figured.add(model, found)

    def _figures(self, model: onnx.ModelProto, folder: Path | None, faint: Mapping[str, float], message: bytes, zeros: int) -> Figures:
        stored = written_bytes(model.graph)
        totals = self._totals(model, folder, faint, message, zeros, stored)
        return Figures(count_nodes(model), totals or Totals.of(()), stored, self.asks, totals is None)

    def _totals(self, model: onnx.ModelProto, folder: Path | None, faint: Mapping[str, float], message: bytes, zeros: int, stored: int) -> Totals | None:
        """Returns the sums of a model's prices, or None if the runtime refuses it. Turns often lead
        to models that differ in names alone. The runtime is asked about the first of them.
        """
        self._ask_within_limits(model, stored)
        key = nameless_key(model) if self.asks and not faint else None
        if key is not None and key in self._alike:
            return self._alike[key]
        try:
            found = Totals.of(row.price for row in self._prices(model, folder, faint, message, zeros))
        except NoGraph:
            found = None
        if key is not None and self.asks and found is not None:
            self._alike[key] = found  # a model is refused for its names as well
        return found

    def rows(self, model: onnx.ModelProto, folder: Path | None) -> list[Row]:
        """Returns the price of each node that runs for a model. Raises `NoGraph` if the runtime
        refuses this model but has loaded another.
        """
        self._ask_within_limits(model, written_bytes(model.graph))
        faint = self.faint(model, folder)
        return [self._row(row) for row in self._prices(model, folder, faint, *with_stand_ins(model))]

    def measured(self, model: onnx.ModelProto, folder: Path | None, feeds: Mapping[str, Any], runs: int) -> list[Row]:
        """Returns the price and the measured time of each node that ONNX Runtime runs for a model.
        Bodies are left out. The time is the mean of `runs` runs on `feeds`. Raises `NoGraph` where
        ONNX Runtime does not run the model, and `ValueError` where the model is too large for one
        message.
        """
        data, seconds = measured_graph(model.SerializeToString(), *self._surroundings(model, folder), feeds, runs, self.worker)
        prices = [row for row in self._sized(data, self.faint(model, folder)) if not row.inside]
        return [self._row(row, taken) for row, taken in zip(prices, seconds, strict=True)]

    def _row(self, row: NodePrice, measured: float | None = None) -> Row:
        return Row(row.name, row.node.key, row.price, self.target.knows(row.node.key), row.inputs, row.outputs, measured)

    def _surroundings(self, model: onnx.ModelProto, folder: Path | None) -> tuple[str | None, str | None, Mapping[str, int], int]:
        """Returns the arguments of a request to the runtime that are no part of the model."""
        return None if folder is None else str(folder), self.library, self.assumed(model), USUAL_SIZE

    def faint(self, model: onnx.ModelProto, folder: Path | None) -> dict[str, float]:
        """Returns the values of a model with subnormal elements, if these slow the target down."""
        if not self.target.subnormal:
            return {}
        return self._faint.of(model, lambda: faint_values(model.graph, folder))

    def _ask_within_limits(self, model: onnx.ModelProto, stored: int) -> None:
        """Asks the runtime no more if a model, whose graph is `stored` in as many bytes, is too large."""
        large = stored > self.memory or (COPIES * stored > self.memory and prepared_bytes(model.graph) > self.memory)
        if large or len(model.graph.node) > _MOST_NODES:
            self.asks = False

    def _prices(self, model: onnx.ModelProto, folder: Path | None, faint: Mapping[str, float], message: bytes, zeros: int) -> list[NodePrice]:
        """Returns the price of each node that runs. The message has stand-ins for large weights."""
        if self.asks:
            try:
                data = self._of_halves(model, folder, message, zeros) or self._asked(model, folder, message, zeros)
                self._loads = True
                return self._sized(data, faint)
            except (NoGraph, ValueError) as error:
                if self._loads:
                    raise NoGraph(str(error)) from None
                self.asks = False
        return self._as_written(model, faint)

    def _asked(self, model: onnx.ModelProto, folder: Path | None, message: bytes, zeros: int) -> bytes:
        """Returns the graph that the runtime makes of a model; the message is the model with stand-ins."""
        return own_graph(message, zeros, *self._surroundings(model, folder), self.worker, self.target.layouts)

    def _of_halves(self, model: onnx.ModelProto, folder: Path | None, message: bytes, zeros: int) -> bytes:
        """Returns the graph that another device than a CPU makes of a model with 16-bit floats; empty if
        there are none, if files hold what may decide sizes, or if the runtime refuses the model in float32.
        """
        if self.target.layouts or not has_halves(model) or needs_its_files(model):
            return b""
        with suppress(NoGraph, NativeFailure):
            typed = inferred(light(model))
            if half := half_of(typed):
                return in_halves(self._asked(model, folder, *in_single(message, zeros, typed, half)), typed, half)
        return b""

    def multiply_adds(self, model: onnx.ModelProto, figures: Figures) -> float:
        """Returns the multiply-adds of a model's own nodes. Those of the runtime's graph count the
        channels with which it fills up blocks.
        """
        if not figures.asked:
            return figures.totals.multiply_adds
        return sum(row.price.multiply_adds for row in self._as_written(model, {}))

    def _as_written(self, model: onnx.ModelProto, faint: Mapping[str, float]) -> list[NodePrice]:
        """Returns the price of each node of a model as it stands."""
        typed, trips = self._typed(model)
        constants = {tensor.name for tensor in model.graph.initializer}.difference(default_inputs(model))
        return node_prices(typed, self.target, self.sizes, constants, trips, faint)

    def _sized(self, data: bytes, faint: Mapping[str, float]) -> list[NodePrice]:
        """Returns the prices of a serialized graph of the runtime, with the sizes that facts can tell."""
        model = onnx.ModelProto.FromString(data)
        trips = complete(model.graph, model.opset_import)
        return node_prices(model, self.target, self.sizes, trips=trips, faint=faint)

    def peak(self, model: onnx.ModelProto, folder: Path | None) -> int:
        """Returns the peak of a model in its written order: the most bytes of activations alive at
        once. Fusions of the runtime do not count.
        """
        from eqsat.rewriting.node_order import memory

        return self._peaks.of(model, lambda: memory(model, folder, self.sizes))

    def loads(self, model: onnx.ModelProto, folder: Path | None) -> bool:
        """Tells whether the runtime loads a model as users do, as far as it is asked. One without a
        price may have sizes that do not fit those that prices assume.
        """
        if not self.asks or not self.figures(model, folder).refused:
            return True
        place, library, *_ = self._surroundings(model, folder)
        return loads(*with_stand_ins(model), place, library, self.worker)

    def cost(self, model: onnx.ModelProto, folder: Path | None) -> float:
        """Returns the cost that the objective makes small: seconds, launches or bytes."""
        if self.target.counts and self.objective == "time":
            return float(self.figures(model, folder).totals.launches)
        return self._costs(model, self.figures(model, folder), folder)[0][0]

    def is_better(self, new: onnx.ModelProto, old: onnx.ModelProto, folder: Path | None) -> bool:
        """Tells whether one model is better than another: cheaper, or equally cheap with fewer
        nodes. If memory is the objective and both need the same, the predicted time decides before
        the nodes.

        If a model that the runtime refuses will be verified, it counts as the best: verification
        mends it node by node. Otherwise it counts as the worst.
        """
        figures = self.both(new, old, folder)
        one, other = (self._costs(model, its, folder) for model, its in zip((new, old), figures, strict=True))
        for (mine, slight), (its, _) in zip(one, other, strict=True):
            if not math.isclose(mine, its, rel_tol=EQUALLY_DEAR, abs_tol=slight):
                return mine < its
        return figures[0].nodes < figures[1].nodes

    def is_worse(self, new: onnx.ModelProto, old: onnx.ModelProto, folder: Path | None) -> bool:
        """Tells whether a model made of another one is worse: dearer, or equally dear with more nodes. It is
        not if the runtime refuses the other.
        """
        return self.is_better(old, new, folder) and not self.mends(new, old, folder)

    def mends(self, new: onnx.ModelProto, old: onnx.ModelProto, folder: Path | None) -> bool:
        """Tells whether the runtime loads a model and refuses the other, of which it was made."""
        first, second = self.both(new, old, folder)
        return second.refused and not first.refused

    def both(self, one: onnx.ModelProto, other: onnx.ModelProto, folder: Path | None) -> tuple[Figures, Figures]:
        """Returns the figures of two models, priced in the same way."""
        first, second = self.figures(one, folder), self.figures(other, folder)
        return (first if first.asked == second.asked else self.figures(one, folder)), second

    def _costs(self, model: onnx.ModelProto, figures: Figures, folder: Path | None) -> tuple[tuple[float, float], ...]:
        """Returns the costs to minimize, the most important first, each with the difference that
        is too slight to count.
        """
        totals = figures.totals
        time = totals.seconds, SLIGHT * self.target.start
        if figures.refused:
            worst = (-math.inf if self.verified else math.inf), 0.0
            return (worst, worst) if self.objective == "memory" else (worst,)
        if self.objective == "memory":
            return (float(self.peak(model, folder)), 0.0), time
        if self.objective == "time":
            return (time,)
        costs = {"launches": totals.launches, "bytes": totals.bytes, "size": figures.stored}
        return ((float(costs[self.objective]), 0.0),)

    def _typed(self, model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, int]]:
        """Returns the model with its functions inlined and types inferred by onnx, as far as onnx
        can, and the trips of its loops. Where only launches count, types tell no more than trips.
        """
        found = light(model)
        fix_sizes(found.graph, self.assumed(found), USUAL_SIZE)
        try:
            found = inlined(found)
        except NativeFailure:
            return found, {}
        if not self.target.counts:
            with suppress(NativeFailure):
                found = inferred(found)
        completes = not self.target.counts or any(node.op_type in BODIES for node in found.graph.node)
        return found, complete(found.graph, found.opset_import) if completes else {}
