"""One seed: the model is drawn, optimized and compared.

This runs in a process of its own, so that a crash takes down nothing else.
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
from eqsat.runtime.session import ONNXRUNTIME, ReferenceSession, open_runtime
from eqsat.runtime.unwritten import under_fills
from eqsat.settings import Settings
from eqsat.traits import NEWEST
from eqsat.verification.leaves import signature
from tests.support.dearer import dearer
from tests.support.models import same

from .chance import Chance
from .cone import cone
from .feeds import Feed, feeds
from .generate import Generator, Model
from .oracle import DIFFERS, KernelSession, Runs
from .scope import captures

SAME, NOTHING, DIFFERENT = "same", "nothing", "different"
RUNTIME = "runtime"  # the runtime is wrong on the original, according to the reference
POLES = "poles"  # it differs where an infinity or a NaN arises inside, of which real arithmetic tells nothing
GIVEN_UP, LEFT_OUT = "given up", "left out"  # by verification: the whole model, or a rule
_SMALL_REGIONS = Path(__file__).with_name("small_regions.toml")
_AGAIN = 4
VERIFIED = 25  # one model in so many is verified too
LURED = "lured"  # the runtime is right on the original, and wrong on the optimized model
FAILURES = (DIFFERENT, GIVEN_UP, LEFT_OUT)

Run = tuple[Feed, list[Any]]  # inputs that the original accepts, and its outputs


@dataclass
class Outcome:
    """The outcome of a seed: one of the words above; `nothing` if no model ran."""

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
    """Returns the model of a seed."""
    return generator().model(seed)


def original(seed: int) -> bool:
    """Draws the model and runs it as it is. If this crashes, the runtime is to blame."""
    model = drawn(seed)
    return model is not None and bool(accepted(model, seed))


def options(seed: int, exact: bool, engine: str) -> dict[str, Any]:
    """Returns the settings for the model of a seed."""
    return {
        "verify": False,
        "constant_defaults": "none",  # runs replace the defaults, also those of weights
        "exact": exact,
        "engine": engine,
        "order": f"random:{seed}" if engine == "greedy" and seed % 5 else "file",
        "strict": seed % 3 == 0,
        "effort": ("normal", "low", "normal", "normal", "low")[seed % 5],
        "target": ("onnxruntime-cpu", "onnxruntime-cuda", "launches", "generic-gpu")[seed % 4],
        # These phases cut small models into regions too.
        "phases": _SMALL_REGIONS if seed % 7 < 3 else None,
    }


def accepted(model: Model, seed: int) -> list[Run]:
    """Returns the feeds that the runtime accepts, with the original's outputs."""
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


def attempt(seed: int, exact: bool, engine: str) -> Outcome:
    """Draws, optimizes and compares."""
    begun = time.perf_counter()
    model = drawn(seed)
    runs = accepted(model, seed) if model is not None else []
    outcome = Outcome(seed, NOTHING) if model is None or not runs else compared(model, runs, seed, exact, engine)
    outcome.seconds = time.perf_counter() - begun
    return outcome


def compared(model: Model, runs: list[Run], seed: int, exact: bool, engine: str) -> Outcome:
    """Compares the optimized model with the outputs of the original."""
    outcome = Outcome(seed, SAME, runs=len(runs))
    settings = options(seed, exact, engine)
    try:
        result = eqsat.optimize(model.proto, **settings)
    except Exception as error:
        return Outcome(seed, DIFFERENT, f"{type(error).__name__}: {error}")
    outcome.rules = [rule["name"] for rule in result.report["rules"]]
    outcome.nodes = (eqsat.count_nodes(model.proto), eqsat.count_nodes(result.model))
    outcome.status, outcome.reason, outcome.style = verdict(model.proto, result.model, meant(runs, result.report), exact)
    if outcome.status == SAME and (wrong := dearer(result.report)):
        outcome.status, outcome.reason = DIFFERENT, wrong
    if outcome.status == SAME and seed % VERIFIED == 0 and not exact:
        outcome.status, outcome.reason = verified(model.proto, settings["engine"], settings["order"])
    return outcome


def judged(proto: onnx.ModelProto, runs: list[Run], settings: dict[str, Any]) -> tuple[str, str, str]:
    """Returns the verdict on a model, optimized with these settings."""
    try:
        result = eqsat.optimize(proto, **settings)
        found = verdict(proto, result.model, meant(runs, result.report), settings["exact"])
        wrong = dearer(result.report)
        return (DIFFERENT, wrong, "") if found[0] == SAME and wrong else found
    except Exception as error:
        return DIFFERENT, f"{type(error).__name__}: {error}", ""


def meant(runs: list[Run], report: Any) -> list[Run]:
    """Returns the runs on which the models must be equal.

    If a rule needs finite tensors, these are the runs with finite inputs.
    """
    return [run for run in runs if not run[0].special] if report["finite"] else runs


def verified(proto: onnx.ModelProto, engine: str, order: str) -> tuple[str, str]:
    """Tells whether verification, too, finds no difference.

    It may neither give up the whole model nor leave out a rule.
    """
    report = eqsat.optimize(proto, engine=engine, order=order).report
    if report["verify"]["engine"] != ONNXRUNTIME:
        return SAME, ""  # the runtime accepted none of its draws, and the reference accepts illegal models
    dropped = [rule["name"] for rule in report["rules"] if rule.get("dropped")]
    if report["verify"]["status"] == "different":
        return GIVEN_UP, f"verification gave up the whole model: {report['verify']['reason']}"
    return (LEFT_OUT, f"verification left out {', '.join(dropped)}: {' '.join(report['notes'])}") if dropped else (SAME, "")


def verdict(proto: onnx.ModelProto, optimized: onnx.ModelProto, runs: list[Run], exact: bool) -> tuple[str, str, str]:
    """Compares both models. Returns the status, the reason, and the style of the inputs."""
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


def malformed(model: onnx.ModelProto, optimized: onnx.ModelProto) -> str:
    """Returns the defect of the optimized model that shows before it runs."""
    if [value.name for value in model.graph.output] != [value.name for value in optimized.graph.output]:
        return "the outputs are not those of the original"
    if [value.name for value in model.graph.input] != [value.name for value in optimized.graph.input]:
        return "the inputs are not those of the original"
    if optimized.ByteSize() > model.ByteSize() + Settings().growth(model.ByteSize()):
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
    """Returns the culprit of a difference, by ONNX's reference.

    The reference cannot run every model, so it judges each output alone.
    """
    names = [value.name for value in proto.graph.output]
    if not _settled(proto, feed, expected):
        return RUNTIME  # each run gives something else: memory that nothing wrote
    found: set[str] = set()
    for name, value in zip(names, expected, strict=True):
        try:
            found.add(_fault((cone(proto, {name}), cone(optimized, {name})), feed, value, built.inputs, exact))
        except Exception:
            found.add(DIFFERENT)
    # If each output alone is right, the runtime is wrong when it computes them together.
    return next((status for status in (DIFFERENT, LURED, RUNTIME) if status in found), LURED)


def _settled(proto: onnx.ModelProto, feed: Feed, expected: list[Any]) -> bool:
    names = [value.name for value in proto.graph.output]
    again = [outputs for _ in range(_AGAIN) for outputs in under_fills(open_runtime(proto.SerializeToString()), feed.inputs, names)]
    return all(same(a, b) for outputs in again for a, b in zip(outputs, expected, strict=True))


def _fault(models: tuple[onnx.ModelProto, onnx.ModelProto], feed: Feed, expected: Any, built: dict[str, Any], exact: bool) -> str:
    """Returns the culprit for one output.

    If the reference cannot run the model at all, it stays a difference.
    """
    here = Runs(*models)
    try:
        (actual,) = here.optimized.run(feed.inputs, here.names)
        if not here.difference(feed, [expected], [actual], exact):
            return SAME
        if signature(expected) != signature(actual) and _scans_nothing(models[0], feed):
            return RUNTIME
    except Exception:
        pass  # the runtime fails on the optimized model, perhaps rightly
    there = _judge(models, built)
    try:
        meant = there.original.run(feed.inputs, there.names)
    except Exception:
        return RUNTIME  # the runtime accepts inputs that the model was not made for
    meant, actual = (_shaped(outputs, expected) for outputs in (meant, there.optimized.run(feed.inputs, there.names)))
    if there.difference(feed, meant, actual, exact):
        return DIFFERENT
    return RUNTIME if there.difference(feed, meant, [expected], exact, alone=True) else LURED


def _judge(models: tuple[onnx.ModelProto, onnx.ModelProto], built: dict[str, Any]) -> Runs:
    """Returns both models on an engine that runs the original on the inputs it was made for.

    Raises an exception if no engine does.
    """
    try:
        return _running(Runs(*models, ReferenceSession), built)
    except Exception:  # the reference has only the newest version of some operators
        pass
    try:
        return _running(Runs(_newer(models[0], 19), _newer(models[1], 19), ReferenceSession), built)
    except Exception:  # and it does not run all of them
        return _running(Runs(_newer(models[0], NEWEST), _newer(models[1], NEWEST), KernelSession), built)


def _running(there: Runs, built: dict[str, Any]) -> Runs:
    there.original.run(built, there.names)
    return there


def _scans_nothing(proto: onnx.ModelProto, feed: Feed) -> bool:
    """Tells whether a node uses the scanned output of a Loop that takes no turn.

    ONNX gives this output no sizes, and the runtime takes 0 for each that it does not infer.
    """
    model = onnx.ModelProto()
    model.CopyFrom(proto)
    used = {name for node in model.graph.node for name in (*node.input, *captures(node))} | {value.name for value in model.graph.output}
    scanned = [name for node in model.graph.node if node.op_type == "Loop" for name in node.output[len(node.input) - 2 :] if name in used]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in scanned)
    return bool(scanned) and any(len(value) == 0 for value in open_runtime(model.SerializeToString()).run(feed.inputs, scanned))


def _shaped(outputs: list[Any], expected: Any) -> list[Any]:
    """Returns outputs of the reference in the runtime's shape.

    The reference drops some axes of size 1; the shapes were compared in the runtime.
    """
    alike = [isinstance(array, np.ndarray) and isinstance(expected, np.ndarray) and array.size == expected.size for array in outputs]
    return [array.reshape(expected.shape) if same_size else array for array, same_size in zip(outputs, alike, strict=True)]


def _newer(proto: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """Returns the model as an opset reads it that is at least as new, if ONNX's checker accepts it.

    The reference has no (De)QuantizeLinear below 19, and the checker has the newest kernels only.
    """
    result = onnx.ModelProto()
    result.CopyFrom(proto)
    for item in result.opset_import:
        item.version = max(item.version, opset) if not item.domain else item.version
    onnx.checker.check_model(result, full_check=True)
    return result
