"""Writing: a finished draw becomes an instance, a concrete ONNX graph.

The input is a `Drawing` that succeeded. The output is an `Instance`: its model, which strict shape
inference accepts, and in some draws the same graph with named sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from eqsat.checker.drawing.domains import Domain, domains
from eqsat.checker.drawing.draw import Drawing
from eqsat.checker.drawing.elements import draw_elements
from eqsat.checker.drawing.placed import Placed, parameter
from eqsat.checker.samplers.leaf_shapes import Sizes, numbers
from eqsat.facts.fact import Fact, to_type
from eqsat.language.values import Value
from eqsat.model.imports import import_domains
from eqsat.operators import to_attribute
from eqsat.traits import NEWEST

# Share of the instances with named sizes in which one input has no known rank.
_UNRANKED: Final = 0.15
_IR_VERSION: Final = 10
_OPSETS: Final = [helper.make_opsetid("", NEWEST)]


@dataclass(frozen=True)
class Instance:
    """One instance.

    `symbolic` is the same graph with named sizes, or with an input without a rank; `sizes` has the
    values of the names in `model`.
    """

    model: onnx.ModelProto
    free: frozenset[str]  # initializers whose elements are arbitrary, within their domains
    # The domains of graph inputs and free initializers that exclude some elements.
    domains: Mapping[str, Domain]
    bindings: Mapping[str, Value | None]  # the values of the rule's names
    origin: str
    symbolic: onnx.ModelProto | None = None
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    # The shapes in `model` of all values whose sizes do not depend on elements.
    shapes: Mapping[str, Sizes] = field(default_factory=dict[str, Sizes])
    types: Mapping[str, int] = field(default_factory=dict[str, int])  # the data types of all values in `model`


def finished(drawing: Drawing, origin: str) -> Instance:
    """The instance of a draw that succeeded, with elements for the constants that lack them."""
    wanted = domains((placed.node, placed.step.inputs, placed.step.outputs) for placed in drawing.nodes)
    free: set[str] = set()
    inputs: list[onnx.ValueInfoProto] = []
    initializers: list[TensorProto] = []
    for leaf in drawing.left.leaves:
        name, fact = leaf.name, drawing.facts[leaf.name]
        if name not in drawing.constants:
            inputs.append(_info(name, fact))
            continue
        if leaf.number is None and not leaf.read:
            free.add(name)
        array, domain = drawing.arrays.get(name), wanted.get(name)
        # Elements are drawn at the first use of a leaf; a later use may restrict them.
        if array is None or (name in free and domain is not None and not domain.holds(array)):
            array = draw_elements(drawing.generator, fact.dtype, numbers(fact.shape), domain)
        initializers.append(numpy_helper.from_array(array, name))
    nodes = [_node(placed, index, initializers) for index, placed in enumerate(drawing.nodes)]
    outputs = [_info(name, drawing.facts[name]) for name in dict.fromkeys(drawing.left.roots)]
    graph = helper.make_graph(nodes, "left", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=_OPSETS, ir_version=_IR_VERSION)
    import_domains(model)
    kept = {name: wanted[name] for name in (*(info.name for info in inputs), *free) if name in wanted}
    symbolic, sizes = _named(drawing, model) if drawing.symbolic else (None, {})
    shapes = {name: numbers(fact.shape) for name, fact in drawing.facts.items() if fact.shape is not None and len(numbers(fact.shape)) == len(fact.shape)}
    types = {name: fact.dtype for name, fact in drawing.facts.items()}
    return Instance(model, frozenset(free), kept, drawing.bindings.values, origin, symbolic, sizes, shapes, types)


def _info(name: str, fact: Fact) -> onnx.ValueInfoProto:
    info = onnx.ValueInfoProto(name=name)
    type_ = to_type(Fact(fact.dtype, fact.shape))
    assert type_ is not None
    info.type.CopyFrom(type_)
    return info


def _node(placed: Placed, index: int, initializers: list[TensorProto]) -> NodeProto:
    inputs = [name or "" for name in placed.step.inputs]
    for position, key in placed.parameters.items():
        fact = parameter(placed.settings[key])
        name = f"{key}_{index}"
        initializers.append(numpy_helper.from_array(np.array(fact.ints, np.int64).reshape(numbers(fact.shape)), name))
        inputs[position] = name
    while inputs and not inputs[-1]:
        inputs.pop()
    node = helper.make_node(placed.step.operator.name, inputs, placed.step.outputs, domain=placed.step.operator.domain or None)
    node.attribute.extend(to_attribute(placed.step.operator, key, value) for key, value in placed.attributes.items())
    return node


def _named(drawing: Drawing, model: onnx.ModelProto) -> tuple[onnx.ModelProto | None, dict[str, int]]:
    """The model with some sizes of its inputs named, sometimes without the rank of an input.

    Equal sizes share one name, or each has its own.
    """
    random = drawing.random
    sizes: dict[str, int] = {}
    result = onnx.ModelProto()
    result.CopyFrom(model)
    common = random.random() < 0.7
    share = random.choice((0.5, 1.0, 1.0))
    chosen = {size for info in model.graph.input for size in numbers(drawing.facts[info.name].shape) if random.random() < share}
    for info in result.graph.input:
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            size = dim.dim_value
            if size in chosen if common else random.random() < share:
                name = f"N{size}" if common else f"{info.name}_{axis}"
                sizes[name] = size
                dim.dim_param = name
    if not sizes:
        return None, {}
    if random.random() < _UNRANKED:
        random.choice(result.graph.input).type.tensor_type.ClearField("shape")
        left = {dim.dim_param for info in result.graph.input for dim in info.type.tensor_type.shape.dim}
        sizes = {name: size for name, size in sizes.items() if name in left}
    for info in result.graph.output:
        for dim in info.type.tensor_type.shape.dim:
            dim.Clear()
    return result, sizes
