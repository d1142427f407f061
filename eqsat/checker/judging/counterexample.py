"""Counterexamples: a readable form of a case that was judged different, and a model that shows it
alone.

Text and model hold exactly the values that tell the sides apart. The model is valid if the right
side is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import onnx
from onnx import numpy_helper, printer, shape_inference

from eqsat.checker.drawing.writing import Instance
from eqsat.checker.judging.differences import unequal_bits
from eqsat.checker.judging.verdict import Case, Kind, Verdict, explain
from eqsat.language import syntax
from eqsat.runtime.worker import RemoteError, WorkerDied, WorkerTimeout, shared
from eqsat.traits import COMMUTATIVE

_SECONDS = 60.0  # for ONNX Runtime to run a counterexample


@dataclass(frozen=True)
class Counterexample:
    """A case in which a rule is wrong.

    `model` has no inputs and computes both sides: outputs `left_0`, `right_0`, and so on.
    """

    reason: str
    left: str  # as ONNX text
    right: str
    model: bytes
    origin: str
    size: int  # elements and nodes; small is good
    kind: Kind
    evidence: str = ""  # ONNX Runtime's result for the model
    note: str = ""  # a note for the reader of the text


def counterexample(case: Case, verdict: Verdict, instance: Instance) -> Counterexample:
    """The counterexample of a verdict."""
    assert verdict.kind is not None
    sizes = [np.asarray(value).size for value in verdict.inputs.values()]
    size = sum(sizes) + 8 * (len(case.left.graph.node) + len(case.right.graph.node))
    left, right = _with_values(case.left, verdict), _with_values(case.right, verdict)
    _declare(right, left)
    model = _both(left, right, case.free, verdict).SerializeToString()
    return Counterexample(explain(verdict), printer.to_text(left.graph), printer.to_text(right.graph), model, instance.origin, size, verdict.kind)


def with_evidence(example: Counterexample, rule: syntax.Rule) -> Counterexample:
    """The counterexample with ONNX Runtime's result, and a note on how to read its text."""
    commuting = sorted({term.operator for line in rule.left for term in _terms(line.value) if term.operator in COMMUTATIVE and _named(term)})
    note = f"{' and '.join(commuting)} {'commutes' if len(commuting) == 1 else 'commute'}: inputs may have changed places" if commuting else ""
    return replace(example, evidence=_evidence(example), note=note)


def _terms(value: syntax.Expression | None) -> Iterator[syntax.Term]:
    if isinstance(value, syntax.Term):
        yield value
        for item in value.inputs:
            yield from _terms(item)


def _named(term: syntax.Term) -> bool:
    """Whether a term has two named inputs, which can change places."""
    return len({item.name for item in term.inputs if isinstance(item, syntax.Name)}) > 1


def _evidence(example: Counterexample) -> str:
    ours = "" if example.kind is Kind.FAILS else "; what is shown was computed by eqsat's own kernels"
    try:
        outputs = shared().call("eqsat.checker.kernels.foreign:run", example.model, timeout=_SECONDS)
    except RemoteError as refusal:
        reason = refusal.message.rpartition(" : ")[2].partition(" Name:")[0].partition(" with node name ")[0]
        return f"ONNX Runtime does not run it ({reason}){ours}"
    except (WorkerDied, WorkerTimeout) as end:
        return f"ONNX Runtime does not survive it ({end}){ours}"
    half = len(outputs) // 2
    differ = any(a.shape != b.shape or a.dtype != b.dtype or unequal_bits(a, b).any() for a, b in zip(outputs[:half], outputs[half:], strict=True))
    return "in ONNX Runtime its outputs differ" if differ else f"in ONNX Runtime its outputs do not differ{ours}"


def _with_values(side: onnx.ModelProto, verdict: Verdict) -> onnx.ModelProto:
    """A side with the values of the arbitrary constants that tell the sides apart."""
    result = onnx.ModelProto()
    result.CopyFrom(side)
    for tensor in result.graph.initializer:
        if tensor.name in verdict.inputs:
            tensor.CopyFrom(numpy_helper.from_array(np.asarray(verdict.inputs[tensor.name]), tensor.name))
    return result


def _declare(right: onnx.ModelProto, left: onnx.ModelProto) -> None:
    """Declares the types of the right side's outputs: those that ONNX infers, or else those that
    the rule claims.
    """
    inferred = shape_inference.infer_shapes(right).graph.output
    for info, found, claimed in zip(right.graph.output, inferred, left.graph.output, strict=True):
        known = found.type.tensor_type.elem_type and found.type.tensor_type.HasField("shape")
        info.type.CopyFrom(found.type if known else claimed.type)


def _both(left: onnx.ModelProto, right: onnx.ModelProto, free: frozenset[str], verdict: Verdict) -> onnx.ModelProto:
    """Both sides in one model, with the inputs on which they differ stored in it."""
    result = onnx.ModelProto()
    result.CopyFrom(left)
    graph = result.graph
    graph.name = "counterexample"
    del graph.node[:], graph.output[:], graph.input[:], graph.initializer[:], graph.value_info[:]
    common = {tensor.name: tensor for side in (left, right) for tensor in side.graph.initializer if tensor.name in free}
    for info in left.graph.input:
        # If types alone tell the sides apart, any values will do.
        kind = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        blank = np.full([size.dim_value for size in info.type.tensor_type.shape.dim], "" if kind.kind == "O" else 0, kind)
        common[info.name] = numpy_helper.from_array(np.asarray(verdict.inputs.get(info.name, blank)), info.name)
    graph.initializer.extend(common.values())
    for prefix, side in (("left", left), ("right", right)):
        names = {info.name: f"{prefix}_{index}" for index, info in enumerate(side.graph.output)}

        def renamed(name: str, names: dict[str, str] = names, prefix: str = prefix) -> str:
            return name if name in common or not name else names.get(name, f"{prefix}.{name}")

        for tensor in side.graph.initializer:
            if tensor.name not in common:
                copy = graph.initializer.add()
                copy.CopyFrom(tensor)
                copy.name = renamed(tensor.name)
        for node in side.graph.node:
            copy = graph.node.add()
            copy.CopyFrom(node)
            copy.input[:] = map(renamed, node.input)
            copy.output[:] = map(renamed, node.output)
        for info in side.graph.output:
            copy = graph.output.add()
            copy.CopyFrom(info)
            copy.name = renamed(info.name)
    return result
