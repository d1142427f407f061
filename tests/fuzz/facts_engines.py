"""The values that the runtime and the reference compute in a graph.

The worker calls these functions.

A node that an engine refuses must not hide the values before it. So the longest prefix of such a
graph that runs is used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import onnx

from eqsat.runtime.session import ReferenceSession, Session, open_runtime

Feeds = dict[str, Any]
Values = dict[str, Any]


class Observed(NamedTuple):
    """The engines' values in one run, by name.

    It also tells whether the runtime lacks a kernel for some node.
    """

    runtime: Values
    reference: Values
    lacks: bool


def observe(model: bytes, runs: Sequence[Feeds]) -> list[Observed]:
    """Returns the values of each run, as far as the engines compute them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        proto = onnx.load_model_from_string(model)
        refusals: list[Exception] = []
        runtime = _values(proto, runs, open_runtime, refusals)
        lacks = any(type(refusal).__name__ == "NotImplemented" for refusal in refusals)
        return [Observed(*values, lacks) for values in zip(runtime, _values(proto, runs, ReferenceSession, []), strict=True)]


def _values(proto: onnx.ModelProto, runs: Sequence[Feeds], engine: Callable[[bytes], Session], refusals: list[Exception]) -> list[Values]:
    sessions: dict[int, tuple[Session, list[str]] | None] = {}

    def session(count: int) -> tuple[Session, list[str]] | None:
        if count not in sessions:
            sessions[count] = None
            cut = prefix(proto, count)
            try:
                sessions[count] = engine(cut.SerializeToString()), [value.name for value in cut.graph.output]
            except Exception as refusal:
                refusals.append(refusal)
        return sessions[count]

    def run(count: int, feeds: Feeds) -> Values | None:
        opened = session(count)
        if opened is None:
            return None
        try:
            return dict(zip(opened[1], opened[0].run(feeds, opened[1]), strict=True))
        except Exception:
            return None

    found: list[Values] = []
    for feeds in runs:
        values = run(len(proto.graph.node), feeds)
        low, high = 0, len(proto.graph.node) - 1
        kept: Values = {}
        while values is None and low < high:
            middle = (low + high + 1) // 2
            part = run(middle, feeds)
            low, high = (low, middle - 1) if part is None else (middle, high)
            kept = kept if part is None else part
        found.append(kept if values is None else values)
    return found


def prefix(proto: onnx.ModelProto, count: int) -> onnx.ModelProto:
    """Returns the model of the first `count` nodes."""
    cut = onnx.ModelProto()
    cut.CopyFrom(proto)
    keep(cut.graph.node, proto.graph.node[:count])
    made = {name for node in cut.graph.node for name in node.output}
    keep(cut.graph.output, [value for value in proto.graph.output if value.name in made])
    return cut


def keep(field: Any, items: Sequence[Any]) -> None:
    """Replaces the items of a repeated field."""
    copies = list(items)
    del field[:]
    field.extend(copies)
