"""Planning: what a model takes as inputs, and at which edges they are drawn.

The input is a model. The output is a plan (eqsat/verification/sample_plan.py), and its edges.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import onnx
from onnx import helper

from eqsat.dimension_names import is_own, sizes_of
from eqsat.facts.dims import symbols
from eqsat.model.names import stored_names
from eqsat.runtime.onnx_passes import NativeFailure, inferred, inlined
from eqsat.verification.input_ranges import Want, input_ranges, nodes_in_order
from eqsat.verification.loaded_model import without_weights
from eqsat.verification.sample_plan import Edge, Plan, Spec
from eqsat.verification.sizes_by_name import sizes_by_name

_APART = 6  # the most free dimensions that have edges of their own


def make_plan(model: onnx.ModelProto, overridable: bool = False, filled: bool = False) -> Plan:
    """Returns the plan for the required inputs of `model`, without sizes of 0 if it is to be `filled`.

    A size whose name is arithmetic follows from the names within. With `overridable`, the plan has the
    inputs with a default value too. Raises `NotImplementedError` naming an input whose type has no
    samples.
    """
    graph = model.graph
    given = set(stored_names(graph))
    shapes = _Shapes(model)
    specs: dict[str, Spec] = {}
    wants: dict[str, Want] = input_ranges(with_functions_inlined(model).graph, shapes.find) if graph.input else {}
    for value in graph.input:
        if value.name not in given or overridable:
            specs[value.name] = _spec(value.name, value.type, wants.get(value.name))
    seen: dict[str, set[int]] = {}
    for spec in specs.values():
        leaf = spec
        while leaf.element is not None:
            leaf = leaf.element
        for position, size in enumerate(leaf.shape or ()):
            if isinstance(size, str):
                seen.setdefault(size, set()).add(position)
    plan = Plan(
        specs,
        tuple(seen),
        frozenset(name for name, positions in seen.items() if positions == {0}),
        tuple(name for name, spec in specs.items() if spec.kind == "tensor" and spec.shape is None),
        any(node.op_type == "Loop" for node in nodes_in_order(model.graph.node)),
        filled=filled,
    )
    computed = sizes_by_name(seen)
    free = dict.fromkeys(name for name in seen if name not in computed)
    free.update(dict.fromkeys(name for size in computed.values() for name in symbols(size)))
    named = replace(plan, symbols=tuple(free), computed=computed)
    return named if any(named.size_choices()) else plan


def with_functions_inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model without its functions, or the model itself if onnx cannot inline them."""
    try:
        return inlined(model)
    except NativeFailure:  # shapes are advice only
        return model


class _Shapes:
    """Shapes of values by name: the declared ones, and if these do not suffice, inferred ones."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._known: dict[str, tuple[int | str | None, ...]] = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
        self._read(model.graph.input, named=True)
        self._inferred = False

    def find(self, name: str) -> tuple[int | str | None, ...] | None:
        if name not in self._known and not self._inferred:
            self._inferred = True
            try:
                typed = inferred(without_weights(self._model))
            # A model that inference refuses may still run, and shapes are advice only.
            except NativeFailure:
                typed = self._model
            self._read(typed.graph.value_info)
            self._read(typed.graph.output)
        return self._known.get(name)

    def _read(self, values: Any, named: bool = False) -> None:
        for value in values:
            if value.type.tensor_type.HasField("shape"):
                sizes = sizes_of(value.type.tensor_type, value.name)
                self._known.setdefault(value.name, tuple(size if named or isinstance(size, int) or not is_own(size) else None for size in sizes))


def _spec(name: str, kind: onnx.TypeProto, want: Want | None) -> Spec:
    which = kind.WhichOneof("value")
    if which == "tensor_type":
        element = kind.tensor_type.elem_type
        dtype = "str" if element == 8 else helper.tensor_dtype_to_np_dtype(element).name
        shape = None
        if kind.tensor_type.HasField("shape"):
            shape = sizes_of(kind.tensor_type, name)
        return Spec("tensor", dtype, shape, want)
    if which == "sequence_type":
        return Spec("sequence", element=_spec(name, kind.sequence_type.elem_type, want))
    if which == "optional_type":
        return Spec("optional", element=_spec(name, kind.optional_type.elem_type, want))
    if which == "map_type":
        key = "str" if kind.map_type.key_type == 8 else helper.tensor_dtype_to_np_dtype(kind.map_type.key_type).name
        return Spec("map", key, element=_spec(name, kind.map_type.value_type, want))
    raise NotImplementedError(f"no sample can be drawn for input '{name}' of type {which or 'unknown'}")


def make_edges(plan: Plan, bounds: Collection[int], arbitrary: Collection[str], together: bool = False) -> tuple[Edge, ...]:
    """Returns the edges of a plan.

    Each free dimension becomes 0 unless the plan is `filled`, 1 and, if there are any `bounds`, larger
    than all of them. Each of the `arbitrary` inputs becomes extreme. The dimensions take turns, or all
    go `together`.
    """
    groups = [(name,) for name in plan.symbols]
    groups = [plan.symbols] if together and groups else [*groups[:_APART], *([plan.symbols[_APART:]] if len(groups) > _APART else [])]
    beyond = tuple(sorted({bound + 1 for bound in bounds}, reverse=True))
    edges = [Edge(group, sizes) for sizes in (() if plan.filled else (0,), (1,), beyond) if sizes for group in groups]
    wide = frozenset(name for name, spec in plan.inputs.items() if name in arbitrary and _has_ends(spec))
    return (*edges, *([Edge(extremes=wide)] if wide else []))


def _has_ends(spec: Spec) -> bool:
    return spec.kind == "tensor" and spec.is_free and spec.dtype in ("int16", "int32", "int64", "uint16", "uint32", "uint64")
