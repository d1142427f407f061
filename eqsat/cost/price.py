"""The price of a node: its time, and the launches, bytes and operations behind it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from onnx import TensorProto

from eqsat.cost.kinds import COUNTERS, DECLARED
from eqsat.cost.movement import unknown
from eqsat.cost.shaped import PricedNode
from eqsat.cost.sliding import patched, stepped
from eqsat.cost.target import Blocked, Expanded, Rates, Target
from eqsat.cost.workload import Work, integer, passed, text
from eqsat.frozen import frozen

__all__ = ["Bound", "Price", "PricedNode", "as_definition", "price", "work"]

Bound = Literal["launch", "memory", "compute"]


@frozen
class Price:
    """The price of a node. `seconds` are predicted; the other figures are counted."""

    seconds: float
    launches: int
    bytes: float  # bytes read and written
    operations: float  # multiply-adds count as two
    bound: Bound
    multiply_adds: float  # of sums of products alone: no bias, scale, softmax or activation


def work(node: PricedNode, target: Target) -> Work:
    """Returns the work of the target's kernel for a node."""
    declared = target.operators.get(node.key)
    count = COUNTERS.get(node.key, unknown)
    if declared is None:
        found = count(node)
    else:
        if count is unknown and declared.kind is not None:
            count = DECLARED.get(declared.kind, unknown)
        found = count(node)
        if declared.kind is not None:
            found = found._replace(kind=declared.kind)
        if declared.operations is not None:
            found = found._replace(operations=declared.operations * found.elements)
    if target.blocked is None:
        return patched(node, found) if found.kind in _PATCHED else found
    if found.kind not in _CONVS:
        return found
    return found._replace(kind=found.kind + "_blocked") if node.domain == BLOCKED_DOMAIN or blocks(node, target.blocked) else stepped(node, found)


def price(node: PricedNode, target: Target) -> Price:
    """Returns the price of a node on a target: its launches, plus the longer of moving bytes and
    computing.

    The price is finite and not negative. A node without a kernel has the price of the kernel that
    it would have. `Target.runs` tells the two apart.
    """
    done = work(node, target)
    rates = target.rates(done.kind, node.key, node.opset)
    computing = _computing(done, rates) + _activating(node, done, target)
    if computing:
        computing *= rates.relative.get(_dtype(node), 1.0)
    whole = max(done.whole, done.bytes)
    moving = target.transfer(whole) * done.bytes / whole / rates.bandwidth if whole else 0.0
    launching = rates.launch or 0.0
    bound: Bound = "memory" if moving >= computing else "compute"
    longer = moving if moving >= computing else computing
    return Price(launching + longer, rates.launches, done.bytes, done.operations, bound if longer > launching else "launch", done.multiply_adds)


def as_definition(kernel: Price, more: Expanded, target: Target) -> Price:
    """Returns the price of a node that runs as the nodes of its operator's definition, from the price of
    the one kernel that it would be.
    """
    moved = [kernel.bytes * share for share in more.moved]
    longer = max(kernel.seconds * more.relative, sum(map(target.transfer, moved)))
    return replace(kernel, seconds=longer + more.launches * target.start, launches=kernel.launches + more.launches, bytes=sum(moved))


def _computing(done: Work, rates: Rates) -> float:
    operations = done.operations
    if rates.columns > 1 and done.columns:
        operations *= -(-done.columns // rates.columns) * rates.columns / done.columns
    time = operations / rates.throughput + passed(done, rates.depth) * rates.per_element + done.rows * rates.per_row + done.weights * rates.per_weight
    return time + _waiting(done, rates)


def _activating(node: PricedNode, done: Work, target: Target) -> float:
    """Returns the seconds in which a kernel computes the activation that it was fused with, on the channels
    that fill up the last block as well. A Conv has it for nothing if it is a Relu.
    """
    name, output = text(node, "activation", ""), node.outputs[0] if node.outputs else None
    plain = done.kind.removesuffix("_blocked")
    if not name or output is None or (name == "Relu" and plain in _CONVS):
        return 0.0
    activation = PricedNode("", name, {}, [output], [output])
    alone = work(activation, target)
    seconds = alone.operations / target.rates(alone.kind, activation.key, activation.opset).throughput
    channels = output.shape[1] if output.shape is not None and len(output.shape) > 1 else 0
    if target.blocked is None or plain == done.kind or not channels:
        return seconds
    return seconds * -(-channels // target.blocked.block) * target.blocked.block / channels


def _waiting(done: Work, rates: Rates) -> float:
    """Returns the seconds for which a kernel waits for weights that the caches do not hold."""
    waiting = done.stored * rates.per_cold_weight
    if waiting and done.kind in _PACKED and done.inner and done.columns:
        waiting *= min(done.multiply_adds / done.inner / done.columns / _ROWS_OF_FULL_WAIT, 1.0)
    return waiting


def _dtype(node: PricedNode) -> int:
    """Returns the data type that decides the speed: that of the first input that is no condition."""
    first = 0
    for tensor in node.inputs:
        if tensor is not None:
            if tensor.dtype != TensorProto.BOOL:
                return tensor.dtype
            first = tensor.dtype
    return first


_CONVS = frozenset({"conv", "depthwise", "grouped"})
_PATCHED = frozenset({"conv", "grouped"})
_PACKED = frozenset({"gemm", "matmul"})
_ROWS_OF_FULL_WAIT = 16
"""The rows from which a product waits for its weights as long as it ever does. The kernels for fewer
rows read them more evenly: measured on 1 to 784 rows."""
BLOCKED_DOMAIN = "com.microsoft.nchwc"
"""The domain of the operators into which ONNX Runtime converts Convs and nodes around them."""


def blocks(node: PricedNode, layout: Blocked) -> bool:
    """Tells whether ONNX Runtime converts a Conv to the layout in blocks of channels.

    It converts only Convs over images with two axes, with constant filters and bias. A dense Conv
    needs input channels that fill whole vectors, or fewer than a block (the first Conv of a
    network). A depthwise Conv needs channels that fill whole vectors. Other groups must be whole
    blocks.
    """
    if len(node.inputs) < 2:
        return False
    filters, bias = node.inputs[1], node.inputs[2] if len(node.inputs) > 2 else None
    if filters is None or not filters.constant or filters.dtype not in layout.dtypes or filters.shape is None or len(filters.shape) != 4:
        return False
    if bias is not None and not bias.constant:
        return False
    outputs, inputs = filters.shape[:2]
    groups = integer(node, "group", 1)
    if groups == 1:
        return inputs < layout.block or inputs % layout.multiple == 0
    if outputs % layout.multiple:
        return False
    if inputs == 1 and outputs == groups:
        return True
    return groups > 1 and inputs % layout.block == 0 and outputs % groups == 0 and (outputs // groups) % layout.block == 0
