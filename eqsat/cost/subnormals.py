"""Subnormal numbers: the values of a graph that hold floats below the least normal one.

A Softmax makes them where a mask lowers scores by some 90 to 100, as the -100 of Swin does:
exp(-100) lies between 0 and the least normal float. Many processors leave their fast path for each
of these, so that the Softmax can take ten times as long, and a product with them fifty times.

Only estimates of time depend on what is found here, and whether low scores are raised
(eqsat/rewriting/raising.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from eqsat.cost.shaped import PricedNode
from eqsat.errors import InputError
from eqsat.model.tensors import Tensor, constant_value, read_tensor
from eqsat.operators import normal_domain

VECTOR = 16
"""Floats that a processor multiplies at once. Kernels of products pad columns to whole vectors."""

# exp of a number in between is subnormal in float32: 2**-126 is exp(-87.3), 2**-149 is exp(-103.3). Scores
# add some units to what a mask says, so the bounds are wider, and half of the elements count.
_LOWEST, _HIGHEST, _LIKELY = -106.0, -80.0, 0.5
_ROWS = 1 << 12  # of a mask that are read at most
_CHOSEN = 0.5  # of the elements of a Where that are one of its constants
_MOVES = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Transpose", "Identity", "Flatten"})
_COPIES = _MOVES | {"Expand"}
_SUMS = frozenset({"Add", "Sum"})
_PRODUCTS = frozenset({"MatMul", "FusedMatMul"})
_ARITHMETIC = frozenset({"Add", "Sub", "Mul", "Div"})
_STEPS = 10  # operations of a Softmax on each of its subnormal elements, as measured with half of a row masked
# A number that a Cast makes a float counts as well.
_NUMBERS = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.INT32})


def faint_values(graph: onnx.GraphProto, folder: Path | None) -> dict[str, float]:
    """Returns the values that a Softmax makes with subnormal elements, moved or not, and the
    expected share of these elements. External data of masks are under `folder`.
    """
    if not any(node.op_type == "Softmax" for node in graph.node):
        return {}
    masks = _Masks(graph, folder)
    found: dict[str, float] = {}
    for node in graph.node:
        if normal_domain(node.domain):
            continue
        if node.op_type == "Softmax":
            share = max(masks.shares(node.input[0]), default=0.0)
            if share > 0:
                found[node.output[0]] = share
        elif node.op_type in _MOVES and node.input[0] in found:
            found[node.output[0]] = found[node.input[0]]
    return found


def share_of(node: PricedNode, inputs: Sequence[str], outputs: Sequence[str], faint: Mapping[str, float]) -> float:
    """Returns the share of subnormal elements that a node works with: those of its first input, or of
    its result if it is a Softmax.
    """
    names = outputs if node.name == "Softmax" else inputs
    return faint.get(names[0], 0.0) if names else 0.0


def delay(node: PricedNode, share: float, seconds: float) -> float:
    """Returns how much longer a node takes for the subnormal elements that it works with, which are
    this share of all. Each operation of a processor on one of them takes `seconds` more.
    """
    first, result = node.inputs[0], node.outputs[0]
    if first is None or result is None:
        return 0.0
    if node.name in _PRODUCTS:
        columns = result.shape[-1] if result.shape else 1
        return first.elements * share * -(-columns // VECTOR) * seconds
    steps = _STEPS if node.name == "Softmax" else float(node.name in _ARITHMETIC)
    return first.elements * share / VECTOR * steps * seconds


class _Masks:
    """The constants of a graph that are added to scores."""

    def __init__(self, graph: onnx.GraphProto, folder: Path | None) -> None:
        self._folder = folder
        self._makers = {name: node for node in graph.node for name in node.output}
        self._stored = {tensor.name: tensor for tensor in graph.initializer}
        self._floats = {info.name for info in (*graph.input, *graph.value_info) if info.type.tensor_type.elem_type == TensorProto.FLOAT}
        self._floats |= {tensor.name for tensor in graph.initializer if tensor.data_type == TensorProto.FLOAT}
        self._known: dict[tuple[str, bool, bool], float] = {}

    def shares(self, scores: str) -> Iterator[float]:
        """Yields, for each constant that is part of these scores, the share of their elements that
        Softmax makes subnormal for it. Scores of other types than float32 have none.
        """
        waiting, seen = [(scores, False, False)], set[tuple[str, bool, bool]]()
        while waiting:
            # Whether a Where chooses the value for some elements, and whether a Cast makes it a float.
            name, chosen, cast = waiting.pop()
            if (name, chosen, cast) in seen:
                continue
            seen.add((name, chosen, cast))
            maker = self._makers.get(name)
            if name in self._stored or (maker is not None and maker.op_type == "Constant"):
                yield self._share(name, chosen, cast)
            elif maker is not None and normal_domain(maker.domain) == "":
                if maker.op_type in _SUMS:
                    waiting += [(name, chosen, cast) for name in maker.input]
                elif maker.op_type in _COPIES:
                    waiting.append((maker.input[0], chosen, cast))
                elif maker.op_type == "Where":
                    waiting += [(name, True, cast) for name in maker.input[1:]]
                elif maker.op_type in ("Cast", "CastLike") and (cast or self._makes_floats(maker)):
                    waiting.append((maker.input[0], chosen, True))

    def _makes_floats(self, cast: onnx.NodeProto) -> bool:
        if cast.op_type == "CastLike":
            return any(name in self._floats for name in cast.input[1:])
        return any(item.name == "to" and item.i == TensorProto.FLOAT for item in cast.attribute)

    def _share(self, name: str, chosen: bool, cast: bool) -> float:
        key = name, chosen, cast
        if key not in self._known:
            tensor = self._tensor(name)
            known = tensor is not None and (cast or tensor.dtype == TensorProto.FLOAT)
            self._known[key] = _subnormal_share(tensor, chosen) if known else 0.0
        return self._known[key]

    def _tensor(self, name: str) -> Tensor | None:
        try:
            if name in self._stored:
                tensor = self._stored[name]
                return read_tensor(tensor, self._folder) if tensor.data_type in _NUMBERS else None
            return next(filter(None, (constant_value(item, self._folder) for item in self._makers[name].attribute)), None)
        except (InputError, ValueError):
            return None  # a mask that nobody can read slows nothing


def _subnormal_share(tensor: Tensor | None, chosen: bool) -> float:
    """Returns the share of subnormal elements for a mask, or for the number that a Where chooses."""
    if tensor is None or tensor.dtype not in _NUMBERS or 0 in tensor.dims:
        return 0.0
    array: Any = tensor.array()
    if array.size == 1:
        return _LIKELY * _CHOSEN if chosen and _LOWEST < float(array.item()) < _HIGHEST else 0.0
    rows: Any = array.reshape(-1, array.shape[-1])
    rows = rows[:: -(-len(rows) // _ROWS)].astype(np.float64)
    with np.errstate(invalid="ignore"):
        below = rows - rows.max(axis=1, keepdims=True)
        return _LIKELY * float(((below > _LOWEST) & (below < _HIGHEST)).mean())
