"""The fuzzer of facts: eqsat's facts against the values of the runtime and the reference.

    python -m tests.fuzz.facts --seeds 20000 [--first 0] [--operators Slice,Resize]

Every seed is one graph. It begins with a node of any standard operator of opsets 7 to 26, with
attributes that differ from their defaults, or with a computation with sizes. Its inputs have named,
unknown and known sizes, and nodes follow it. The fuzzer compares the types, sizes, integers,
uniform elements, ranges and constants that `eqsat.egraph.encode` derives, at several choices of the sizes.
A size on which the two engines differ must be unknown. A wrong fact is cut down to the nodes it
depends on, and printed as ONNX text.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import onnx
from onnx import TypeProto

from eqsat.control.flow import simplify
from eqsat.egraph.encode import encode
from eqsat.egraph.outer import Outer
from eqsat.facts.dims import Dim, evaluate
from eqsat.facts.fact import Contradiction, Fact, from_array, show_dims
from eqsat.facts.intervals import Range
from eqsat.model.model import Graph, Node, attribute_graphs
from eqsat.model.names import captures
from eqsat.model.read import normalize
from eqsat.model.tensors import ContentIndex
from eqsat.rewriting.body_facts import control_flow_facts
from eqsat.runtime.worker import RemoteError, Worker, WorkerDied, WorkerTimeout
from eqsat.terms.derivation import Derivation
from eqsat.terms.terms import Terms

from .facts_bodies import Wrapped, repeated, wrap
from .facts_engines import Observed, keep
from .facts_excuses import excused
from .facts_graphs import draw_graph
from .facts_models import Drawn

ENGINES = ("the runtime", "the reference")
_SECONDS = 20.0
_MEMORY = 1 << 30


class Wrong(NamedTuple):
    """A fact that is not true."""

    seed: int
    value: str
    text: str  # the stated fact, and the true value
    model: str


class Tally(NamedTuple):
    """The totals of a campaign."""

    graphs: int
    ran: Counter[str]  # graphs that an engine ran, by engine
    facts: int  # statements that were compared
    operators: Counter[str]  # of first nodes that ran, by name
    wrong: list[Wrong]


def stated(model: onnx.ModelProto) -> dict[str, Fact] | str:
    """Returns the fact of every value, bodies included, or the reason why there are none."""
    read = normalize(simplify(model), None, None)
    terms = Terms()
    derivation, contents = Derivation(terms), ContentIndex()
    found: dict[str, Fact] = {}

    def encoded(graph: Graph, outer: Outer) -> tuple[Fact, ...]:
        encoding = encode(graph, terms, derivation, contents, outer, lambda names: {}, descend)
        found.update({name: encoding.fact(name) for name in encoding.values})
        return tuple(encoding.fact(name) for name in graph.outputs)

    def descend(node: Node, outer: Outer) -> tuple[Node, tuple[Fact, ...]]:
        return node, control_flow_facts(node, {name: encoded(body, outer.only(body.captured())) for name, body in node.bodies.items()})

    try:
        encoded(read.graph, Outer(main=True))
    except Contradiction as error:
        return str(error)
    return found


# --- one fact against one value ---


def faults(fact: Fact, value: Any, sizes: Mapping[str, int]) -> Iterator[str]:
    """Yields the statements of a fact that are not true of a value."""
    if value is None:
        return
    if isinstance(value, list):
        yield from _sequence_faults(fact, value)
        return
    if not isinstance(value, np.ndarray):
        return
    actual = from_array(value)
    if fact.other is not None and TypeProto.FromString(fact.other).WhichOneof("value") != "optional_type":
        yield "no tensor, but it is one"
    if fact.dtype not in (0, actual.dtype):
        yield f"type {fact.dtype}, but it is {actual.dtype}"
    for what, dims, found in (("shape", fact.shape, value.shape), ("elements", fact.ints, _whole(value))):
        if dims is None or found is None:
            continue
        if len(dims) != len(found):
            yield f"{what} {show_dims(dims)}, but it is {found}"
        elif any(_differs(dim, size, sizes) for dim, size in zip(dims, found, strict=True)):
            yield f"{what} {show_dims(dims)}, but it is {found}"
    if fact.uniform is not None and fact.uniform != actual.uniform:
        yield f"all elements {fact.uniform!r}, but they are {value}"
    if fact.floats is not None and value.tobytes() != fact.floats:
        yield f"elements {fact.floats!r}, but they are {value}"
    if fact.doubled and not np.allclose(*(side.astype(np.float64) for side in np.split(value, 2, axis=-1)), rtol=1e-2, equal_nan=True):
        yield f"equal halves, but they are {value}"
    if fact.paired and not np.allclose(value[..., ::2].astype(np.float64), value[..., 1::2].astype(np.float64), rtol=1e-2, equal_nan=True):
        yield f"equal neighbours, but they are {value}"
    if fact.range is not None and (outlier := _outlier(fact.range, value)) is not None:
        yield f"elements in {fact.range}, but one is {outlier}"


def _outlier(bounds: Range, value: np.ndarray[Any, Any]) -> Any:
    """Returns an element that is not in a range as computed; None if there is none."""
    elements = value.ravel() if value.dtype.kind in "iub" else value.ravel().astype(np.float64)
    wrong = [element for element in elements.tolist() if not (bounds.nan if element != element else bounds.least <= element <= bounds.most)]
    return wrong[0] if wrong else None


def _whole(value: np.ndarray[Any, Any]) -> tuple[int, ...] | None:
    return tuple(int(element) for element in value.ravel()) if value.dtype.kind in "iub" or value.dtype in (ml_dtypes.int4, ml_dtypes.uint4) else None


def _differs(dim: Dim, size: int, sizes: Mapping[str, int]) -> bool:
    known = evaluate(dim, sizes)
    return known is not None and known != size


def _sequence_faults(fact: Fact, value: list[Any]) -> Iterator[str]:
    if fact.dtype or fact.shape is not None:
        yield "a tensor, but it is a sequence"
    if fact.other is None:
        return
    proto = TypeProto.FromString(fact.other)
    tensor = proto.sequence_type.elem_type.tensor_type
    for element in value:
        if not isinstance(element, np.ndarray) or not tensor.HasField("shape"):
            continue
        claimed = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
        if len(claimed) != element.ndim or any(size is not None and size != found for size, found in zip(claimed, element.shape, strict=True)):
            yield f"a sequence of {claimed}, but an element has the shape {element.shape}"


def count(fact: Fact) -> int:
    """Returns the number of statements of a fact."""
    sizes = sum(dim is not None for dims in (fact.shape, fact.ints) if dims is not None for dim in dims)
    return (
        bool(fact.dtype)
        + sizes
        + (fact.uniform is not None)
        + (fact.floats is not None)
        + fact.doubled
        + fact.paired
        + fact.const
        + (fact.other is not None)
        + (fact.range is not None)
    )


# --- graphs ---


class Looked(NamedTuple):
    """A graph with the values of its engines."""

    seed: int
    drawn: Drawn
    sizes: list[dict[str, int]]
    seen: list[Observed]
    wrapped: Wrapped | None = None  # the same graph with control flow

    def feeds(self, sizes: Mapping[str, int]) -> dict[str, Any]:
        """Returns the inputs at these sizes."""
        return self.drawn.feeds(sizes, self.seed) or {}


def compare(looked: Looked) -> tuple[int, list[Wrong]]:
    """Returns the number of compared statements, and the wrong ones."""
    model = looked.drawn.model()
    compared, wrong = _compared(looked, model, model)
    if looked.wrapped is not None and not wrong:
        more, wrong = _compared(looked, model, looked.wrapped.model)
        compared += more
    return compared, wrong


def _compared(looked: Looked, open_model: onnx.ModelProto, model: onnx.ModelProto) -> tuple[int, list[Wrong]]:
    """Compares the facts of a model, perhaps with control flow, with the open one's values."""
    facts = stated(model)
    if isinstance(facts, str):
        ran = any(len(seen.runtime) == len(open_model.graph.output) for seen in looked.seen)
        return 1, [Wrong(looked.seed, "", f"a contradiction: {facts}", onnx.printer.to_text(model))] if ran else []
    wrong: dict[str, str] = {}
    compared = 0
    first: dict[tuple[str, str], Any] = {}
    for sizes, seen in zip(looked.sizes, looked.seen, strict=True):
        # The runtime decides which nodes are legal: the reference accepts many that no runtime
        # does.
        words = {name: value for name, value in seen.reference.items() if seen.lacks or name in seen.runtime}
        known = {**looked.feeds(sizes), **looked.drawn.constants, **seen.reference, **seen.runtime}
        for engine, values in zip(ENGINES, (seen.runtime, words), strict=True):
            certain = _certain(open_model, engine, values, known)
            bound = dict(sizes)
            for name, value in values.items():
                if isinstance(value, np.ndarray):
                    bound |= {f"?{name}.{axis}": size for axis, size in enumerate(value.shape)}
            for name, value in [*certain.items(), *_outputs(looked.wrapped, certain)]:
                fact = facts.get(name)
                if fact is None or name in wrong:
                    continue
                compared += count(fact)
                said = next(faults(fact if engine == ENGINES[0] else fact._replace(dtype=0), value, bound), None)
                if said is None and fact.const and isinstance(value, np.ndarray) and first.setdefault((engine, name), _bits(value)) != _bits(value):
                    said = "a constant, but it changes"
                if said is not None:
                    wrong[name] = f"at {sizes} {name} is said to have {said} in {engine}"
    roots = _roots(model, wrong) if model is open_model else list(wrong)[:1]
    return compared, [Wrong(looked.seed, name, wrong[name], onnx.printer.to_text(_cone(model, name))) for name in roots]


def _certain(model: onnx.ModelProto, engine: str, values: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of an engine that do not depend on its known faults."""
    doubted: set[str] = set()
    for node in model.graph.node:
        if not doubted.isdisjoint(node.input) or excused(engine, node, known):
            doubted.update(node.output)
    return {name: value for name, value in values.items() if name not in doubted}


def _outputs(wrapped: Wrapped | None, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields the possible values of the outputs of control flow."""
    for name, sources in () if wrapped is None else wrapped.outputs.items():
        for source, turns in sources:
            if isinstance(values.get(source), np.ndarray):
                yield name, repeated(values[source], turns)


def _bits(value: np.ndarray[Any, Any]) -> Any:
    return value.tolist() if value.dtype.kind in "OSU" else value.tobytes()


def _roots(model: onnx.ModelProto, wrong: Mapping[str, str]) -> list[str]:
    """Returns the first wrong values. Values computed from them are wrong only for that reason."""
    tainted: set[str] = set()
    found: list[str] = []
    for node in model.graph.node:
        bad = [name for name in node.output if name in wrong]
        if not tainted.isdisjoint(node.input):
            tainted.update(node.output)
        elif bad:
            found.append(bad[0])
            tainted.update(node.output)
    return found


def _cone(model: onnx.ModelProto, value: str) -> onnx.ModelProto:
    """Returns the part of a model that a value depends on."""
    if not any(value in node.output for node in model.graph.node):
        return model
    needed = {value}
    kept: list[onnx.NodeProto] = []
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            needed.update(node.input)
            needed.update(name for _, body in attribute_graphs(node) for name in captures(body))
            kept.insert(0, node)
    part = onnx.ModelProto()
    part.CopyFrom(model)
    keep(part.graph.node, kept)
    keep(part.graph.output, [item for item in model.graph.output if item.name == value])
    keep(part.graph.input, [item for item in model.graph.input if item.name in needed])
    keep(part.graph.initializer, [item for item in model.graph.initializer if item.name in needed])
    return part


def look(seeds: Iterable[int], operators: tuple[str, ...], worker: Worker) -> Iterator[Looked]:
    """Yields the graphs of some seeds with the values of both engines."""
    for seed in seeds:
        drawn, draw = draw_graph(seed, operators)
        wrapped = wrap(drawn, draw) if draw.chance(0.2) else None
        fed = [(sizes, drawn.feeds(sizes, seed)) for sizes in drawn.choices(draw)]
        runs = [(sizes, feeds) for sizes, feeds in fed if feeds is not None]
        seen = _observed(drawn.model().SerializeToString(), [feeds for _, feeds in runs], worker)
        yield Looked(seed, drawn, [sizes for sizes, _ in runs], seen, wrapped)


def _observed(model: bytes, runs: list[dict[str, Any]], worker: Worker) -> list[Observed]:
    """Observes all runs at once, or each by itself if an engine does not survive one."""
    try:
        return worker.call(f"{__package__}.facts_engines:observe", model, runs, timeout=_SECONDS, memory=_MEMORY)
    except (RemoteError, WorkerDied, WorkerTimeout):
        return [Observed({}, {}, False)] if len(runs) == 1 else [seen for run in runs for seen in _observed(model, [run], worker)]


def fuzz(seeds: Iterable[int], operators: tuple[str, ...] = (), shown: Any = None) -> Tally:
    """Compares the graphs of some seeds."""
    tally = Tally(0, Counter(), 0, Counter(), [])
    worker = Worker()
    try:
        for looked in look(seeds, operators, worker):
            compared, wrong = compare(looked)
            ran = [engine for place, engine in enumerate(ENGINES) if any(seen[place] for seen in looked.seen)]
            tally.ran.update(ran)
            if ran:
                tally.operators.update({node.op_type for node in looked.drawn.nodes})
            tally.wrong.extend(wrong)
            tally = tally._replace(graphs=tally.graphs + 1, facts=tally.facts + compared)
            for item in wrong if shown is not None else []:
                print(f"seed {item.seed}: {item.text}\n{item.model}\n", file=shown, flush=True)
    finally:
        worker.stop()
    return tally


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--operators", default="")
    arguments = parser.parse_args()
    operators = tuple(filter(None, arguments.operators.split(",")))
    tally = fuzz(range(arguments.first, arguments.first + arguments.seeds), operators, sys.stdout)
    print(f"{tally.graphs} graphs, {tally.ran[ENGINES[0]]} run by the runtime and {tally.ran[ENGINES[1]]} by the reference")
    print(f"{tally.facts} statements compared, {len(tally.wrong)} wrong")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
