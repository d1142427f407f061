"""Relations: sizes of inputs that depend on others, as a model's own arithmetic wants them.

The attention mask of a decoder has the sum of the past and the present tokens as its length, but
its dimension has a name of its own. A traced model may have a name for a size that it was traced
with, and that its Reshapes want. At arbitrary sizes such models do not run. The input is a model and
a `Plan`; the output is more plans, in which some symbols are computed from others, or have one size.
What a symbol may be is found among the sizes that the model computes, and in Reshapes, whose result
has as many elements as their input. A plan promises nothing: the model itself decides whether it
takes the draws.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import onnx

from eqsat.cost.shaped import batch_sizes
from eqsat.facts.dims import Dim, Poly, symbol, symbols
from eqsat.facts.fact import INT_LIMIT, INTEGERS, UNKNOWN, Fact, from_tensor
from eqsat.facts.inference import infer
from eqsat.facts.polynomials import exact_divide, product
from eqsat.operators import find_operator, normal_domain, read_attributes
from eqsat.verification.planning import make_plan, with_functions_inlined
from eqsat.verification.required_sizes import required_sizes
from eqsat.verification.sample_plan import MOST_ELEMENTS, Plan, Spec
from eqsat.verification.samples import numpy_dtype

_Typed: TypeAlias = tuple[onnx.NodeProto, tuple[Fact | None, ...], tuple[Fact, ...]]

_ALONE = 48  # plans with one relation
_PAIRS = 64  # plans with two
_SCALED = frozenset({"Resize", "Upsample"})  # lists of floats decide the sizes of their results


def related_plans(model: onnx.ModelProto, plan: Plan) -> Iterator[Plan]:
    """Yields plans with computed sizes, the most plausible first: with the sizes that constants require, which
    all that follow have as well, then with one relation, then with two.

    Sizes that follow by their names keep to these, but in the first plan. Functions of the model have
    to be inlined.
    """
    if plan.computed:
        named = dict.fromkeys(size for spec in plan.inputs.values() for size in _shape(spec) if isinstance(size, str))
        yield replace(plan, symbols=tuple(named), computed={})
    typed = list(_typed_nodes(model, plan))
    required: dict[str, Dim] = {name: size for name, size in _required(typed).items() if name in plan.symbols}
    if required:
        plan = _with(plan, required)
        yield plan
        typed = list(_typed_nodes(model, plan))
    found = list(itertools.islice(_relations(typed, plan), _ALONE))
    for name, size in found:
        yield _with(plan, {name: size})
    for (one, first), (other, second) in itertools.islice(itertools.combinations(found, 2), _PAIRS):
        if one != other and one not in symbols(second) and other not in symbols(first):
            yield _with(plan, {one: first, other: second})


def with_fixed_sizes(sizes: Mapping[str, int], model: onnx.ModelProto) -> dict[str, int]:
    """Returns sizes of named dimensions, those without which Reshapes and products by constants of a model
    fail, and 1 for batches that have no name of their own.
    """
    return {**batch_sizes(model.graph), **_wanted_sizes(model), **sizes}


def _wanted_sizes(model: onnx.ModelProto) -> dict[str, int]:
    if all(size.HasField("dim_value") for info in model.graph.input for size in info.type.tensor_type.shape.dim):
        return {}
    flat = with_functions_inlined(model)  # once, also for the plan
    try:
        plan = make_plan(flat)
    except NotImplementedError:  # an input of a type that has no samples
        return {}
    typed = list(_typed_nodes(flat, plan))
    by_reshapes = {name: size for name, size in reversed(_most_wanted(typed)) if isinstance(size, int)}
    return by_reshapes | _required(typed)


def _required(typed: Iterable[_Typed]) -> dict[str, int]:
    return required_sizes((node, inputs) for node, inputs, _ in typed)


def _with(plan: Plan, computed: dict[str, Dim]) -> Plan:
    return replace(plan, symbols=tuple(name for name in plan.symbols if name not in computed), computed={**plan.computed, **computed})


def _relations(typed: Sequence[_Typed], plan: Plan) -> Iterator[tuple[str, Dim]]:
    """Yields a symbol and the size that it may be: what Reshapes want first, then sums of others, then
    other symbols.
    """
    yield from (relation for relation in _most_wanted(typed) if relation[0] in plan.symbols)
    uses = Counter(size for spec in plan.inputs.values() for size in set(_shape(spec)) if isinstance(size, str))
    # A name that few inputs have is the likelier one to depend on others.
    names = sorted(plan.symbols, key=lambda name: uses[name])
    sizes = Counter(itertools.chain.from_iterable(_computed(outputs) for _, _, outputs in typed))
    sums = [size for size, _ in sizes.most_common() if len(size) > 1 and all(len(monomial) <= 1 for monomial, _ in size)]
    rest = [size for size, _ in sizes.most_common() if size not in sums and len(symbols(size)) > 0 and not _is_name(size)]
    for size in (*sums, *(symbol(name) for name in plan.symbols), *rest):
        for name in names:
            if name not in symbols(size):
                yield name, size


def _is_name(size: Poly) -> bool:
    return len(symbols(size)) == 1 and size == symbol(symbols(size)[0])


def _typed_nodes(model: onnx.ModelProto, plan: Plan) -> Iterator[_Typed]:
    """Yields the nodes of the main graph with the facts of their inputs and outputs."""
    facts = {name: _given(spec, plan.computed) for name, spec in plan.inputs.items() if spec.kind == "tensor"}
    scales = {name for node in model.graph.node if node.op_type in _SCALED for name in node.input}
    facts |= {tensor.name: _stored(tensor, tensor.name in scales) for tensor in model.graph.initializer}
    opsets = {normal_domain(item.domain): item.version for item in model.opset_import}
    for node in model.graph.node:
        domain = normal_domain(node.domain)
        operator = find_operator(domain, node.op_type, opsets.get(domain, 1))
        inputs = tuple(facts.get(name, UNKNOWN) if name else None for name in node.input)
        outputs = infer(operator, read_attributes(operator, node.attribute), inputs, len(node.output))
        facts.update(zip(node.output, outputs, strict=True))
        yield node, inputs, outputs


def _computed(outputs: Iterable[Fact]) -> set[Poly]:
    """Returns the symbolic sizes, and the symbolic integers, of a node's results."""
    return {size for fact in outputs for size in (*(fact.shape or ()), *(fact.ints or ())) if isinstance(size, Poly)}


def _most_wanted(typed: Iterable[_Typed]) -> list[tuple[str, Dim]]:
    """Returns the sizes that Reshapes want, each with its symbol, the most frequent first."""
    wanted = (relation for node, inputs, outputs in typed if node.op_type == "Reshape" for relation in _wanted(inputs, outputs))
    return [relation for relation, _ in Counter(wanted).most_common()]


def _wanted(inputs: Sequence[Fact | None], outputs: Sequence[Fact]) -> Iterator[tuple[str, Dim]]:
    """Yields the symbols in the number of elements of a Reshape's input, each with the size with which
    the result has as many.
    """
    before, after = (product(fact.shape) if fact is not None and fact.shape is not None else None for fact in (inputs[0], outputs[0]))
    if before is None or after is None or before == after:
        return
    for name in symbols(before):
        others = exact_divide(before, symbol(name))
        if others is not None and name not in symbols(others) and name not in symbols(after):
            size = exact_divide(after, others)
            if size is not None and (isinstance(size, Poly) or 0 < size <= MOST_ELEMENTS):
                yield name, size


def _given(spec: Spec, computed: Mapping[str, Dim]) -> Fact:
    shape = None if spec.shape is None else tuple(computed.get(size, symbol(size)) if isinstance(size, str) else size for size in spec.shape)
    return Fact(_code(spec.dtype), shape)


def _code(dtype: str) -> int:
    return int(onnx.TensorProto.STRING) if dtype == "str" else int(onnx.helper.np_dtype_to_tensor_dtype(numpy_dtype(dtype)))


def _stored(tensor: onnx.TensorProto, scales: bool) -> Fact:
    """Returns the fact of a constant. Its elements count where they may decide sizes: those of weights
    do not, and would make the nodes of each layer different from all others.
    """
    count = math.prod(tensor.dims)
    small = count <= INT_LIMIT if scales or tensor.data_type in INTEGERS else count <= 1
    return from_tensor(tensor) if small else Fact(tensor.data_type, tuple(tensor.dims), True)


def _shape(spec: Spec) -> tuple[int | str, ...]:
    while spec.element is not None:
        spec = spec.element
    return spec.shape or ()
