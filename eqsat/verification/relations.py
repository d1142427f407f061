"""Relations: sizes of inputs that depend on others, as a model's own arithmetic wants them.

The attention mask of a decoder has the sum of the past and the present tokens as its length, but
its dimension has a name of its own. At arbitrary sizes such a model does not run. The input is a
model and a `Plan`; the output is more plans, in which some symbols are computed from others. What a
symbol may be is found among the sizes that the model computes. A plan promises nothing: the model
itself decides whether it takes the draws.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import onnx

from eqsat.facts.dims import Dim, Poly, symbol, symbols
from eqsat.facts.fact import INT_LIMIT, UNKNOWN, Fact, from_tensor
from eqsat.facts.inference import infer
from eqsat.operators import find_operator, normal_domain, read_attributes
from eqsat.verification.samples import Plan, Spec, numpy_dtype

_ALONE = 48  # plans with one relation
_PAIRS = 64  # plans with two


def related_plans(model: onnx.ModelProto, plan: Plan) -> Iterator[Plan]:
    """Yields plans with computed sizes, the most plausible first: with one relation, then with two.

    Sizes that follow by their names keep to these, but in the first plan. Functions of the model have
    to be inlined.
    """
    if plan.computed:
        named = dict.fromkeys(size for spec in plan.inputs.values() for size in _shape(spec) if isinstance(size, str))
        yield replace(plan, symbols=tuple(named), computed={})
    found = list(itertools.islice(_relations(model, plan), _ALONE))
    for name, size in found:
        yield _with(plan, {name: size})
    for (one, first), (other, second) in itertools.islice(itertools.combinations(found, 2), _PAIRS):
        if one != other and one not in symbols(second) and other not in symbols(first):
            yield _with(plan, {one: first, other: second})


def _with(plan: Plan, computed: dict[str, Dim]) -> Plan:
    return replace(plan, symbols=tuple(name for name in plan.symbols if name not in computed), computed={**plan.computed, **computed})


def _relations(model: onnx.ModelProto, plan: Plan) -> Iterator[tuple[str, Dim]]:
    """Yields a symbol and the size that it may be: sums of others first, then other symbols."""
    uses = Counter(size for spec in plan.inputs.values() for size in set(_shape(spec)) if isinstance(size, str))
    # A name that few inputs have is the likelier one to depend on others.
    names = sorted(plan.symbols, key=lambda name: uses[name])
    sizes = _computed_sizes(model, plan)
    sums = [size for size, _ in sizes.most_common() if len(size) > 1 and all(len(monomial) <= 1 for monomial, _ in size)]
    rest = [size for size, _ in sizes.most_common() if size not in sums and len(symbols(size)) > 0 and not _is_name(size)]
    for size in (*sums, *(symbol(name) for name in plan.symbols), *rest):
        for name in names:
            if name not in symbols(size):
                yield name, size


def _is_name(size: Poly) -> bool:
    return len(symbols(size)) == 1 and size == symbol(symbols(size)[0])


def _computed_sizes(model: onnx.ModelProto, plan: Plan) -> Counter[Poly]:
    """Counts the symbolic sizes, and the symbolic integers, of the values of the main graph."""
    facts = {name: _given(spec, plan.computed) for name, spec in plan.inputs.items() if spec.kind == "tensor"}
    facts |= {tensor.name: _stored(tensor) for tensor in model.graph.initializer}
    opsets = {normal_domain(item.domain): item.version for item in model.opset_import}
    found: Counter[Poly] = Counter()
    for node in model.graph.node:
        domain = normal_domain(node.domain)
        operator = find_operator(domain, node.op_type, opsets.get(domain, 1))
        inputs = tuple(facts.get(name, UNKNOWN) if name else None for name in node.input)
        for name, fact in zip(node.output, infer(operator, read_attributes(operator, node.attribute), inputs, len(node.output)), strict=True):
            facts[name] = fact
            found.update({size for size in (*(fact.shape or ()), *(fact.ints or ())) if isinstance(size, Poly)})
    return found


def _given(spec: Spec, computed: Mapping[str, Dim]) -> Fact:
    shape = None if spec.shape is None else tuple(computed.get(size, symbol(size)) if isinstance(size, str) else size for size in spec.shape)
    return Fact(_code(spec.dtype), shape)


def _code(dtype: str) -> int:
    return int(onnx.TensorProto.STRING) if dtype == "str" else int(onnx.helper.np_dtype_to_tensor_dtype(numpy_dtype(dtype)))


def _stored(tensor: onnx.TensorProto) -> Fact:
    small = math.prod(tensor.dims) <= INT_LIMIT
    return from_tensor(tensor) if small else Fact(tensor.data_type, tuple(tensor.dims), True)


def _shape(spec: Spec) -> tuple[int | str, ...]:
    while spec.element is not None:
        spec = spec.element
    return spec.shape or ()
