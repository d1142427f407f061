"""What the runtime and the reference compute for every value of a graph: these functions are called in the worker.

A node that an engine refuses must not hide what those before it give, so of such a graph the longest prefix that runs is taken.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import onnx

from eqsat.runtime import ReferenceSession, Session, open_runtime

Feeds = dict[str, Any]
Values = dict[str, Any]


def observe(model: bytes, runs: Sequence[Feeds]) -> list[tuple[Values, Values]]:
    """For each run the values that the runtime and the reference give, as far as they do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        proto = onnx.load_model_from_string(model)
        return list(zip(_values(proto, runs, open_runtime), _values(proto, runs, ReferenceSession), strict=True))


def reference_only(model: bytes, runs: Sequence[Feeds]) -> list[tuple[Values, Values]]:
    """The same where the runtime does not survive."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [({}, values) for values in _values(onnx.load_model_from_string(model), runs, ReferenceSession)]


def _values(proto: onnx.ModelProto, runs: Sequence[Feeds], engine: Callable[[bytes], Session]) -> list[Values]:
    sessions: dict[int, tuple[Session, list[str]] | None] = {}

    def session(count: int) -> tuple[Session, list[str]] | None:
        if count not in sessions:
            sessions[count] = None
            with contextlib.suppress(Exception):
                cut = prefix(proto, count)
                sessions[count] = engine(cut.SerializeToString()), [value.name for value in cut.graph.output]
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
    """The model of the first nodes."""
    cut = onnx.ModelProto()
    cut.CopyFrom(proto)
    del cut.graph.node[count:]
    made = {name for node in cut.graph.node for name in node.output}
    kept = [value for value in proto.graph.output if value.name in made]
    del cut.graph.output[:]
    cut.graph.output.extend(kept)
    return cut
