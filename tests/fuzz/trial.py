"""One seed: the model is drawn, optimized and compared. This runs in a process of its own, which a
crash takes down alone.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import eqsat
from eqsat.rewriting.valuation import EQUALLY_DEAR
from eqsat.runtime.session import ONNXRUNTIME, open_runtime
from eqsat.runtime.unwritten import under_fills
from eqsat.verification import tolerance as compare
from tests.support.models import same

from .chance import Chance
from .cone import cone
from .feeds import Feed, feeds
from .generate import Generator, Model
from .oracle import DIFFERS, Runs
from .scope import captures

SAME, NOTHING, DIFFERENT = "same", "nothing", "different"
RUNTIME = "runtime"  # is wrong on the original, says the reference
POLES = "poles"  # it differs where an infinity or a NaN comes up on the way, of which real arithmetic says nothing
GIVEN_UP, LEFT_OUT = "given up", "left out"  # by verification: the whole model, or a rule
_SMALL_REGIONS = Path(__file__).with_name("small_regions.toml")
_AGAIN = 4
VERIFIED = 25  # one model in so many is verified as well
LURED = "lured"  # the runtime is right on the original, and wrong on the optimized model
FAILURES = (DIFFERENT, GIVEN_UP, LEFT_OUT)

Run = tuple[Feed, list[Any]]  # inputs that the original takes, and what it makes of them


@dataclass
class Outcome:
    """What a seed came to: one of the words above; `nothing` if there was no model that runs."""

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
    return {
        "verify": False,
        "exact": exact,
        "strict": seed % 3 == 0,
        "effort": ("normal", "low", "normal", "normal", "low")[seed % 5],
        "target": ("onnxruntime-cpu", "onnxruntime-cpu", "launches", "generic-gpu")[seed % 4],
        # Small models are cut into regions as well.
        "phases": _SMALL_REGIONS if seed % 7 < 3 else None,
    }


def accepted(model: Model, seed: int) -> list[Run]:
    """The feeds that the runtime takes, with the original's outputs."""
    names = [value.name for value in model.proto.graph.output]
    try:
        session = open_runtime(model.proto.SerializeToString())
    except Exception:
        return []
    found: list[Run] = []
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


def compared(model: Model, runs: list[Run], seed: int, exact: bool) -> Outcome:
    """The model, optimized, against what it gave before."""
    outcome = Outcome(seed, SAME, runs=len(runs))
    try:
        result = eqsat.optimize(model.proto, **options(seed, exact))
    except Exception as error:
        return Outcome(seed, DIFFERENT, f"{type(error).__name__}: {error}")
    outcome.rules = [rule["name"] for rule in result.report["rules"]]
    outcome.nodes = (eqsat.count_nodes(model.proto), eqsat.count_nodes(result.model))
    outcome.status, outcome.reason, outcome.style = verdict(model.proto, result.model, meant(runs, result.report), exact)
    if outcome.status == SAME and (wrong := dearer(result.report)):
        outcome.status, outcome.reason = DIFFERENT, wrong
    if outcome.status == SAME and seed % VERIFIED == 0 and not exact:
        outcome.status, outcome.reason = verified(model.proto)
    return outcome


def judged(proto: onnx.ModelProto, runs: list[Run], settings: dict[str, Any]) -> tuple[str, str, str]:
    """The verdict on a model, optimized with these settings."""
    try:
        result = eqsat.optimize(proto, **settings)
        found = verdict(proto, result.model, meant(runs, result.report), settings["exact"])
        wrong = dearer(result.report)
        return (DIFFERENT, wrong, "") if found[0] == SAME and wrong else found
    except Exception as error:
        return DIFFERENT, f"{type(error).__name__}: {error}", ""


def meant(runs: list[Run], report: Any) -> list[Run]:
    """The runs on which the models are meant to be the same: where a rule needs finite tensors,
    those that begin with such.
    """
    return [run for run in runs if not run[0].special] if report["finite"] else runs


def verified(proto: onnx.ModelProto) -> tuple[str, str]:
    """Whether verification finds nothing either: then it neither gives up the whole model nor leaves out a rule."""
    report = eqsat.optimize(proto).report
    if report["verify"]["engine"] != ONNXRUNTIME:
        return SAME, ""  # the runtime took none of its draws, and the reference takes what is no model
    dropped = [rule["name"] for rule in report["rules"] if rule.get("dropped")]
    if report["verify"]["status"] == "different":
        return GIVEN_UP, f"verification gave up the whole model: {report['verify']['reason']}"
    return (LEFT_OUT, f"verification left out {', '.join(dropped)}: {' '.join(report['notes'])}") if dropped else (SAME, "")


def verdict(proto: onnx.ModelProto, optimized: onnx.ModelProto, runs: list[Run], exact: bool) -> tuple[str, str, str]:
    """Whether both are the same; else why not, and on inputs of which style."""
    wrong = malformed(proto, optimized)
    if wrong:
        return DIFFERENT, wrong, ""
    try:
        both = Runs(proto, optimized)
    except Exception as error:
        feed, expected = runs[0]
        return fault(proto, optimized, feed, expected, feed, exact), f"the runtime refuses the optimized model: {error}", feed.style
    worst = SAME, "", ""
    for feed, expected in runs:
        try:
            actual = both.optimized.run(feed.inputs, both.names)
            reason = both.difference(feed, expected, actual, exact)
        except Exception as error:
            reason = f"the optimized model fails: {' '.join(str(error).split())}"
        if not reason:
            continue
        status = fault(proto, optimized, feed, expected, runs[0][0], exact)
        if status in (DIFFERENT, LURED) and not exact and not feed.special and reason.startswith(DIFFERS) and poles(both, feed):
            status = POLES
        if worst[0] == SAME or status in (DIFFERENT, LURED):
            worst = status, f"{reason} (sizes {feed.sizes})", feed.style
        if status == DIFFERENT:
            break
    return worst


def dearer(report: Any) -> str:
    """What became dearer than before, by the prices of the target: time, and on paper the nodes."""
    nodes, cost = report["nodes"], report["cost"]
    if cost["target"] == "launches" and nodes["after"] > nodes["before"]:
        return "there are more nodes than before"
    before, after = (cost[side]["seconds"] for side in ("before", "after"))
    slower = before is not None and after is not None and after > before * (1 + EQUALLY_DEAR)
    return f"it is predicted to take {after} s, and took {before}" if slower else ""


def malformed(model: onnx.ModelProto, optimized: onnx.ModelProto) -> str:
    """What is wrong with the optimized model before it runs."""
    if [value.name for value in model.graph.output] != [value.name for value in optimized.graph.output]:
        return "the outputs are not those of the original"
    if [value.name for value in model.graph.input] != [value.name for value in optimized.graph.input]:
        return "the inputs are not those of the original"
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


def poles(both: Runs, feed: Feed) -> bool:
    try:
        return both.arises(feed)
    except Exception:
        return False


def fault(proto: onnx.ModelProto, optimized: onnx.ModelProto, feed: Feed, expected: list[Any], built: Feed, exact: bool) -> str:
    """Whose fault a difference is, by ONNX's reference; each output is asked about alone, since it
    can not run every model.
    """
    names = [value.name for value in proto.graph.output]
    if not _settled(proto, feed, expected):
        return RUNTIME  # it gives something else each time: memory that nothing was written to
    found: set[str] = set()
    for name, value in zip(names, expected, strict=True):
        try:
            found.add(_fault((cone(proto, {name}), cone(optimized, {name})), feed, value, built.inputs, exact))
        except Exception:
            found.add(DIFFERENT)
    # Where each output alone is right, the runtime is wrong when it computes them together.
    return next((status for status in (DIFFERENT, LURED, RUNTIME) if status in found), LURED)


def _settled(proto: onnx.ModelProto, feed: Feed, expected: list[Any]) -> bool:
    names = [value.name for value in proto.graph.output]
    again = [outputs for _ in range(_AGAIN) for outputs in under_fills(open_runtime(proto.SerializeToString()), feed.inputs, names)]
    return all(same(a, b) for outputs in again for a, b in zip(outputs, expected, strict=True))


def _fault(models: tuple[onnx.ModelProto, onnx.ModelProto], feed: Feed, expected: Any, built: dict[str, Any], exact: bool) -> str:
    """The same of one output. What the reference can not run at all stays a difference."""
    here = Runs(*models)
    try:
        (actual,) = here.optimized.run(feed.inputs, here.names)
        if not here.difference(feed, [expected], [actual], exact):
            return SAME
        if compare.signature(expected) != compare.signature(actual) and _scans_nothing(models[0], feed):
            return RUNTIME
    except Exception:
        pass  # the runtime fails on the optimized model: is that right?
    try:
        there = Runs(*models, reference=True)
        there.original.run(built, there.names)
    except Exception:  # it has only the newest version of some operators
        there = Runs(*map(_newer, models), reference=True)
        there.original.run(built, there.names)
    try:
        meant = there.original.run(feed.inputs, there.names)
    except Exception:
        return RUNTIME  # it takes inputs that the model was not made for
    meant, actual = (_shaped(outputs, expected) for outputs in (meant, there.optimized.run(feed.inputs, there.names)))
    if there.difference(feed, meant, actual, exact):
        return DIFFERENT
    return RUNTIME if there.difference(feed, meant, [expected], exact, alone=True) else LURED


def _scans_nothing(proto: onnx.ModelProto, feed: Feed) -> bool:
    """Whether what a Loop scans is used though it takes no turn: ONNX gives that no sizes, and the
    runtime takes 0 for each that it does not infer.
    """
    model = onnx.ModelProto()
    model.CopyFrom(proto)
    used = {name for node in model.graph.node for name in (*node.input, *captures(node))} | {value.name for value in model.graph.output}
    scanned = [name for node in model.graph.node if node.op_type == "Loop" for name in node.output[len(node.input) - 2 :] if name in used]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in scanned)
    return bool(scanned) and any(len(value) == 0 for value in open_runtime(model.SerializeToString()).run(feed.inputs, scanned))


def _shaped(outputs: list[Any], expected: Any) -> list[Any]:
    """Outputs of the reference, which forgets axes of size 1 here and there, in the shape that the
    runtime gives; the runtime has compared shapes.
    """
    alike = [isinstance(array, np.ndarray) and isinstance(expected, np.ndarray) and array.size == expected.size for array in outputs]
    return [array.reshape(expected.shape) if same_size else array for array, same_size in zip(outputs, alike, strict=True)]


def _newer(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model as opset 19 reads it, if ONNX's checker takes it so: the reference has no
    (De)QuantizeLinear that is older.
    """
    result = onnx.ModelProto()
    result.CopyFrom(proto)
    for item in result.opset_import:
        item.version = max(item.version, 19) if not item.domain else item.version
    onnx.checker.check_model(result, full_check=True)
    return result
