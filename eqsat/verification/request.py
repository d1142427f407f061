"""Requests and judgements: the question to the judge and its answer, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from eqsat.frozen import frozen, mutable
from eqsat.verification.sample_plan import Draw, Edge, Plan
from eqsat.verification.steering import Decided, Steering

EQUAL, DIFFERENT, UNVERIFIED = "equal", "different", "unverified"


@frozen(slots=False)
class Request:
    """Two serialized models, and how to try them.

    Without `optimized` it asks only whether the original runs.
    """

    original: bytes
    original_folder: str | None
    optimized: bytes | None
    optimized_folder: str | None
    plan: Plan
    outputs: tuple[str, ...]
    dependent: frozenset[str]  # outputs that depend on an input
    random: frozenset[str]  # outputs that depend on a random operator
    coarsest: str  # the coarser of bfloat16 and float16 that the original has, or ""
    steering: Steering  # the original's values that decide sizes, indices and integers
    weights: int  # bytes of the original's weights
    work: int  # about the number of multiplications if every free dimension is 1
    nodes: int  # the number of the original's nodes
    inputs: Mapping[str, Any] | None
    seed: int
    patience: float  # seconds after which no further draw begins
    # Whether the models are a region on arbitrary values: one that refuses the usual draws is tried
    # with more of the nodes before it, so other draws and engines are not.
    brief: bool
    threads: int = 1
    custom_op_library: str | None = None
    edges: tuple[Edge, ...] = ()
    only_long: bool = False  # no draws of usual sizes, at which the runtime crashes
    only_edges: bool = False  # skip the usual draws, which another request has tried
    inside: tuple[str, ...] = ()  # values inside that both models name; they are compared, and decide nothing
    refusal: str = ""  # why the runtime does not run the original; then onnx's reference runs the models

    def decided(self, place: int) -> Decided:
        """Returns the way in which floats decide the integers of an output."""
        return self.steering.decided.get(self.outputs[place], Decided.CHOSEN)


@mutable(slots=False)
class OutputJudgement:
    """The findings about one output, over all runs."""

    name: str
    random: bool = False
    bitwise: bool = True
    exercised: bool | None = None
    max_error: float | None = 0.0
    tolerance: float | None = None
    near_ties: int = 0


@mutable(slots=False)
class Judgement:
    """The findings about two models."""

    status: str
    reason: str = ""
    output: str = ""  # the name of the output that differs
    engine: str = ""
    outputs: list[OutputJudgement] = field(default_factory=list[OutputJudgement])
    runs: int = 0
    edges: int = 0  # how many of the last runs were at edges
    sizes: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    notes: list[str] = field(default_factory=list[str])
    # Edges whose sizes would have taken too long.
    costly: list[Edge] = field(default_factory=list[Edge])
    relative: float | None = None  # the unexplained error of the output that differs, as a share of its length
    draw: Draw | None = None  # the draw that showed the difference, or else the last one at an edge
    too_much: bool = False  # running took too long, or too much memory, so there is no judgement
    refusal: str = ""  # why the runtime does not run the original, if onnx's reference may
    crashed: bool = False  # the runtime crashed on the original
    agreed: frozenset[str] = frozenset()  # the values inside that were equal in all runs
    seconds_inside: float = 0.0  # spent on values inside
