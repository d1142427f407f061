"""One node in several spellings, and the results of each on the same inputs.

The spellings are the given one, the newest opset, and the node written back.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from eqsat.facts.dims import Poly, evaluate, symbol
from eqsat.facts.fact import Fact, from_array
from eqsat.operators import AttributeValue, Operator, attribute_default
from eqsat.runtime.session import ReferenceSession, open_runtime
from eqsat.spelling.normal import normalize
from eqsat.spelling.opsets import write
from eqsat.terms.forms import Form, Source, Written
from eqsat.terms.terms import Literal
from eqsat.traits import NEWEST
from tests.support.models import same

# Degrees of knowledge of an input: its elements, its sizes, its rank and the names of its sizes,
# its data type.
ELEMENTS, SIZES, NAMES, TYPE = range(4)


NOT_RUN = "no engine runs the node itself"

# Kernels of the newest version that round differently from older ones. Newest versions that ONNX
# Runtime expands as functions, which round differently. Newest versions that no engine has.
ROUNDED = frozenset({"AveragePool"})
EXPANDED = frozenset({"Attention"})
WITHOUT_KERNEL = frozenset({"GlobalLpPool"})


def known(value: Any, place: int = 0, degree: int = ELEMENTS) -> Fact | None:
    """Returns the fact of an input with the example `value`, at a degree of knowledge."""
    if value is None:
        return None
    fact = from_array(value)
    if degree == ELEMENTS:
        return fact
    if degree == SIZES:
        return Fact(fact.dtype, fact.shape)
    return Fact(fact.dtype, tuple(symbol(f"{place}.{axis}") for axis in range(value.ndim))) if degree == NAMES else Fact(fact.dtype)


def made(source: Source, values: Sequence[Any]) -> Source:
    """Returns a literal with the sizes that its names have in `values`."""
    if not isinstance(source, Literal) or source.concrete:
        return source
    names = {f"{place}.{axis}": size for place, value in enumerate(values) if value is not None for axis, size in enumerate(value.shape)}
    return dataclasses.replace(source, elements=tuple(evaluate(item, names) if isinstance(item, Poly) else item for item in source.elements))


def one_node(form: Form | Written, values: Sequence[Any], outputs: Sequence[str], opset: int = NEWEST) -> onnx.ModelProto:
    """Returns a model of one node.

    Positions among its inputs refer to `values`; literals become initializers.
    """
    sources = [made(source, values) for source in form.inputs]
    names = ["" if source is None else f"literal{place}" if isinstance(source, Literal) else f"input{source}" for place, source in enumerate(sources)]
    literals = [numpy_helper.from_array(source.array, name) for source, name in zip(sources, names, strict=False) if isinstance(source, Literal)]
    while names and not names[-1]:
        names.pop()
    node = helper.make_node(form.operator.name, names, outputs)
    for name, value in form.attributes.items():
        if isinstance(value, onnx.AttributeProto):
            node.attribute.append(value)
        elif attribute_default(form.operator, name) != value:
            node.attribute.append(helper.make_attribute(name, value, attr_type=onnx.AttributeProto.INTS if value == () else None))
    used = sorted({source for source in sources if isinstance(source, int)})
    declared = [helper.make_tensor_value_info(f"input{place}", from_array(values[place]).dtype, values[place].shape) for place in used]
    graph = helper.make_graph([node], "one", declared, [onnx.ValueInfoProto(name=name) for name in outputs if name], literals)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def compute(model: onnx.ModelProto, values: Sequence[Any], engines: Sequence[Any] = (open_runtime, ReferenceSession)) -> tuple[Any, list[Any] | None]:
    """Returns the first engine that runs the model, and its outputs.

    Engines refuse with many kinds of exceptions.
    """
    feeds = {info.name: values[int(info.name.removeprefix("input"))] for info in model.graph.input}
    for engine in engines:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return engine, engine(model.SerializeToString()).run(feeds)
            except Exception:
                continue
    return None, None


def fault(
    operator: Operator,
    attributes: Mapping[str, AttributeValue],
    form: Form,
    facts: Sequence[Fact | None],
    values: Sequence[Any],
    outputs: Sequence[str],
    back: bool,
) -> str | None:
    """Returns the fault of a form of the node, or None.

    With `back`, the node's own opset must be able to express it.
    """
    newest = normalize(form, facts, len(outputs))
    if normalize(newest, facts, len(outputs)) != newest:
        return f"not normal: {show(newest)}"
    written = write(newest.operator, newest.attributes, newest.facts(facts), len(outputs), operator.opset)
    if written is None and back:
        return f"can not be written back: {show(newest)}"
    places = tuple(None if value is None else place for place, value in enumerate(values))
    first = one_node(Written(operator, dict(attributes), places), values, outputs, operator.opset)
    # In an opset that is too new for the operator, the runtime expands functions, so both sides
    # share it.
    latest = max(NEWEST, operator.opset)
    candidates: list[tuple[Form | Written, int]] = [(form, latest), (newest, latest)]
    if written is not None:
        sources = tuple(newest.inputs[source] if isinstance(source, int) else source for source in written.inputs)
        written = Written(written.operator, written.attributes, sources)
        candidates.append((written, operator.opset))
        refusal = illegal(one_node(written, values, outputs, operator.opset).graph.node[0], operator.opset)
        if refusal is not None:
            return f"{refusal}: {show(written)}"
    engine, expected = compute(first, values)
    if expected is None:
        return NOT_RUN
    for candidate, opset in candidates:
        model = one_node(candidate, values, outputs, opset)
        wanted, (_, actual) = expected, compute(model, values, [engine])
        if actual is None or (operator.name in EXPANDED and candidate.operator.version != operator.version):
            # The runtime has no kernel for some of the newest versions. Then the reference runs
            # both.
            _, actual = compute(model, values, [ReferenceSession])
            _, wanted = compute(first, values, [ReferenceSession])
        rounds = operator.name in ROUNDED and candidate.operator.version != operator.version
        if actual is None and operator.name in WITHOUT_KERNEL and opset == latest:
            continue
        if actual is None or wanted is None:
            return f"does not run: {show(candidate)}"
        if not same(wanted, actual) and not (rounds and all(map(close, wanted, actual))):
            return f"{difference(wanted, actual)}: {show(candidate)}"
    return None


def close(left: Any, right: Any) -> bool:
    """Tells whether elements differ only by rounding."""
    return left.dtype == right.dtype and left.shape == right.shape and np.allclose(left, right, rtol=1e-6, atol=1e-6)


def difference(wanted: Any, actual: Any) -> str:
    """Returns the difference between the outputs and the wanted ones."""
    parts: list[str] = []
    for left, right in zip(wanted, actual, strict=True):
        if left.shape != right.shape or left.dtype != right.dtype:
            parts.append(f"{left.dtype}{left.shape} became {right.dtype}{right.shape}")
        elif not same(left, right):
            apart = int(np.sum(left != right))
            farthest = np.max(np.abs(left.astype(np.float64) - right.astype(np.float64)))
            parts.append(f"{apart} of {left.size} elements differ, by up to {farthest:.3g}")
    return "; ".join(parts)


def illegal(node: onnx.NodeProto, opset: int) -> str | None:
    """Returns the error of onnx's checker about a node, or None."""
    context = onnx.checker.C.CheckerContext()
    context.ir_version, context.opset_imports = 10, {"": opset}
    try:
        onnx.checker.check_node(node, context)
    except onnx.checker.ValidationError as error:
        return str(error)
    return None


def show(form: Form | Written) -> str:
    """Returns a form as text for people."""
    return f"{form.operator} {form.attributes} {form.inputs}"
