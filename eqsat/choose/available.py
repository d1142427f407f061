"""Available kernels: which nodes ONNX Runtime can load, found by loading models of one node each.

The input is nodes as operator, attributes and data types. The output is the nodes that ONNX Runtime
refuses. Many kernels are missing for some data type or opset, and a model with such a node does not
load. Schemas and documentation do not answer the question: ONNX Runtime casts the inputs of some
nodes and expands others into functions. A node of unknown types is never refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onnx import AttributeProto, helper

from eqsat.facts.fact import Fact
from eqsat.operators import Attributes, Operator, to_attribute
from eqsat.runtime.worker import RemoteError, Worker, WorkerDied, WorkerTimeout

_SECONDS = 60.0
# The version that introduced 4-bit integers; ONNX Runtime has no kernels for later types.
_IR_VERSION = 10

# Whether each model is refused; ONNX Runtime does not change within a process.
_known: dict[bytes, bool] = {}


def alone(operator: Operator, attributes: Attributes, inputs: Sequence[Fact | None], outputs: int) -> bytes | None:
    """Returns the model of a single node, with the data types of its inputs and without shapes.

    Returns None if a data type is unknown, or if the node's meaning depends on the graph around it.
    """
    schema = operator.schema
    if schema is None or not operator.ruled or any(fact is not None and not fact.dtype for fact in inputs):
        return None
    if any(isinstance(value, AttributeProto) and (value.ref_attr_name or value.type == AttributeProto.GRAPH) for value in attributes.values()):
        return None
    node = helper.make_node(
        operator.name,
        ["" if fact is None else f"x{place}" for place, fact in enumerate(inputs)],
        [f"y{n}" for n in range(max(outputs, schema.min_output))],
        domain=operator.domain or None,
    )
    node.attribute.extend(to_attribute(operator, name, value) for name, value in sorted(attributes.items()))
    given = [helper.make_tensor_value_info(f"x{place}", fact.dtype, None) for place, fact in enumerate(inputs) if fact is not None]
    graph = helper.make_graph([node], "alone", given, [helper.make_empty_tensor_value_info(name) for name in node.output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(operator.domain, operator.opset)], ir_version=_IR_VERSION)
    return model.SerializeToString()


def refused(models: Iterable[bytes], worker: Worker) -> frozenset[bytes]:
    """Returns the models that ONNX Runtime has no kernels for, or that crash it."""
    asked = frozenset(models)
    new = [model for model in asked if model not in _known]
    _known.update(zip(new, _answers(new, worker), strict=True))
    return frozenset(model for model in asked if _known[model])


def _answers(models: list[bytes], worker: Worker) -> list[bool]:
    if not models:
        return []
    try:
        answers: list[bool] = worker.call("eqsat.choose.available:refusals", models, timeout=_SECONDS)
    except (RemoteError, WorkerDied, WorkerTimeout):
        return [True] if len(models) == 1 else [answer for model in models for answer in _answers([model], worker)]
    return answers


def refusals(models: list[bytes]) -> list[bool]:
    """Tells for each model whether ONNX Runtime lacks a kernel or rejects a type. Runs in the
    worker.
    """
    from eqsat.runtime.session import open_runtime

    found: list[bool] = []
    for model in models:
        try:
            open_runtime(model)
        # Other errors concern shapes and values, which this model does not have.
        except Exception as error:
            found.append(type(error).__name__ in ("NotImplemented", "InvalidGraph"))
        else:
            found.append(False)
    return found
