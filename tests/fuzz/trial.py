"""One seed: the model is drawn, optimized and compared. This runs in a process of its own, which a crash takes down alone."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import onnx

import eqsat

from .chance import Chance
from .feeds import Feed, feeds
from .generate import Generator, Model
from .oracle import Runs

SAME, NOTHING, RUNTIME, DIFFERENT = "same", "nothing", "runtime", "different"


@dataclass
class Outcome:
    """What a seed came to: `same`; `nothing` if there was no model that runs; `runtime` where the runtime alone differs; `different`."""

    seed: int
    status: str
    reason: str = ""
    style: str = ""
    rules: list[str] = field(default_factory=list)
    nodes: tuple[int, int] = (0, 0)
    runs: int = 0
    seconds: float = 0.0


@cache
def generator() -> Generator:
    return Generator()


def drawn(seed: int) -> Model | None:
    """The model of a seed."""
    return generator().model(seed)


def original(seed: int) -> bool:
    """Draws the model and runs it as it is; a crash in here is the runtime's."""
    model = drawn(seed)
    return model is not None and bool(accepted(model, seed))


def options(seed: int, exact: bool) -> dict[str, Any]:
    """How the model of a seed is optimized."""
    return {"verify": False, "exact": exact, "effort": ("normal", "low", "normal", "normal", "low")[seed % 5]}


def accepted(model: Model, seed: int) -> list[tuple[Feed, list[Any]]]:
    """The feeds that the runtime takes, with the original's outputs."""
    from eqsat.runtime import open_runtime

    names = [value.name for value in model.proto.graph.output]
    try:
        session = open_runtime(model.proto.SerializeToString())
    except Exception:
        return []
    found: list[tuple[Feed, list[Any]]] = []
    for feed in feeds(model, Chance(seed, 1)):
        try:
            found.append((feed, session.run(feed.inputs, names)))
        except Exception:
            if not found:
                return []
    return found


def attempt(seed: int, exact: bool) -> Outcome:
    """Draws, optimizes and compares."""
    begun = time.perf_counter()
    model = drawn(seed)
    runs = accepted(model, seed) if model is not None else []
    outcome = Outcome(seed, NOTHING) if model is None or not runs else compared(model, runs, seed, exact)
    outcome.seconds = time.perf_counter() - begun
    return outcome


def compared(model: Model, runs: list[tuple[Feed, list[Any]]], seed: int, exact: bool, **more: Any) -> Outcome:
    """The model, optimized, against what it gave before."""
    outcome = Outcome(seed, SAME, runs=len(runs))
    try:
        result = eqsat.optimize(model.proto, **options(seed, exact), **more)
    except Exception as error:
        return Outcome(seed, DIFFERENT, f"{type(error).__name__}: {error}")
    outcome.rules = [rule["name"] for rule in result.report["rules"]]
    outcome.nodes = (eqsat.count_nodes(model.proto), eqsat.count_nodes(result.model))
    outcome.status, outcome.reason, outcome.style = verdict(model, result.model, runs, exact)
    return outcome


def verdict(model: Model, optimized: onnx.ModelProto, runs: list[tuple[Feed, list[Any]]], exact: bool) -> tuple[str, str, str]:
    """Whether both are the same; else why not, and on inputs of which style."""
    wrong = malformed(model.proto, optimized)
    if wrong:
        return DIFFERENT, wrong, ""
    try:
        both = Runs(model.proto, optimized)
    except Exception as error:
        return DIFFERENT, f"the runtime refuses the optimized model: {error}", ""
    for feed, expected in runs:
        try:
            actual = both.optimized.run(feed.inputs, both.names)
            reason = both.difference(feed, expected, actual, exact)
        except Exception as error:
            reason = f"the optimized model fails: {' '.join(str(error).split())}"
        if reason:
            status = RUNTIME if reference_agrees(model.proto, optimized, feed, exact) else DIFFERENT
            return status, f"{reason} (sizes {feed.sizes})", feed.style
    return SAME, "", ""


def malformed(model: onnx.ModelProto, optimized: onnx.ModelProto) -> str:
    """What is wrong with the optimized model before it runs."""
    if [value.name for value in model.graph.output] != [value.name for value in optimized.graph.output]:
        return "the outputs are not those of the original"
    if [value.name for value in model.graph.input] != [value.name for value in optimized.graph.input]:
        return "the inputs are not those of the original"
    if eqsat.count_nodes(optimized) > eqsat.count_nodes(model):
        return "there are more nodes than before"
    if optimized.ByteSize() > model.ByteSize() + 2048:
        return "the model is larger than before"
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception:
        return ""
    try:
        onnx.checker.check_model(optimized, full_check=True)
    except Exception as error:
        return f"ONNX's checker refuses the optimized model: {error}"
    return ""


def reference_agrees(model: onnx.ModelProto, optimized: onnx.ModelProto, feed: Feed, exact: bool) -> bool:
    """Whether both models are the same on the reference, so that the difference is the runtime's own."""
    try:
        both = Runs(model, optimized, reference=True)
        with np.errstate(all="ignore"):
            expected, actual = both.original.run(feed.inputs, both.names), both.optimized.run(feed.inputs, both.names)
            return not both.difference(feed, expected, actual, exact)
    except Exception:
        return False
