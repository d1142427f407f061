"""Quantized kernels: operators between DequantizeLinear and QuantizeLinear that run as one kernel.

If such a kernel is cheaper than its nodes, it is one more way to choose the class of the last one,
like a fused pair. That way needs none of the classes inside. If it is dearer, the operator
and its first DequantizeLinear share the extra cost in a choice that contains all of them: another form
of either one avoids the kernel. A DequantizeLinear may have other readers, because the runtime repeats
it for each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from eqsat.choose.prices import Prices
from eqsat.cost.fusion import Quantized
from eqsat.cost.shaped import PricedNode, Shaped
from eqsat.frozen import frozen
from eqsat.terms.terms import ABSENT, CONS, NIL, Term

_DEQUANTIZE, _QUANTIZE = "DequantizeLinear", "QuantizeLinear"
_MOST = 16  # combinations of ways to dequantize the inputs of one node; a list of many inputs could have any number


@frozen
class QuantizedKernel:
    """A kernel: the places of the ways that it runs, the last node at the end, and its cost."""

    places: tuple[int, ...]
    cost: float


class QuantizedKernels:
    """The quantized kernels among the ways to choose from one e-graph."""

    def __init__(self, prices: Prices, ways: Sequence[Term]) -> None:
        self._prices = prices
        self._ways = ways
        self._known: dict[str, list[Quantized]] = {}
        for kernel in prices.target.quantized if prices.objective in ("time", "launches") else ():
            for name in kernel.operators:
                self._known.setdefault(name, []).append(kernel)
        self._names = [self._name(way) for way in ways] if self._known else []
        self._inner: dict[int, list[int]] = {}  # by class, the operators that may be quantized
        self._dequantized: dict[int, list[int]] = {}
        self._cells: dict[int, int] = {}
        self._absent = {way.eclass for way in ways if way.head == ABSENT}
        for place, name in enumerate(self._names):
            way = ways[place]
            if name in self._known:
                self._inner.setdefault(way.eclass, []).append(place)
            elif name == _DEQUANTIZE:
                self._dequantized.setdefault(way.eclass, []).append(place)
            elif way.head in (CONS, NIL):
                self._cells[way.eclass] = place

    def found(self) -> Iterator[QuantizedKernel]:
        """Yields the kernels that are cheaper than their nodes."""
        # A product whose result is quantized, but to another type, stays in floats.
        quantized = {self._ways[place].children[0] for place, name in enumerate(self._names) if name == _QUANTIZE}
        for place, name in enumerate(self._names):
            if name == _QUANTIZE:
                for inner in self._inner.get(self._ways[place].children[0], ()):
                    yield from self._around(inner, place)
            elif self._ways[place].eclass not in quantized and any(kernel.floats for kernel in self._known.get(name, ())):
                yield from self._around(place, None)

    def dearer(self, picks: Mapping[int, int], consumers: Mapping[int, int]) -> dict[int, float]:
        """Returns the extra cost of the kernels of a choice that are dearer than their nodes, by
        place. `consumers` counts the readers of each class.
        """
        found: dict[int, float] = {}
        for last in picks.values() if self._names else ():
            inner = picks.get(self._ways[last].children[0]) if self._name_at(last) == _QUANTIZE else None
            if inner is None or self._name_at(inner) not in self._known or consumers[self._ways[inner].eclass] != 1:
                continue
            cells, inputs = self._inputs(inner)
            before = [place for eclass in inputs if (place := picks.get(eclass)) is not None and self._name_at(place) == _DEQUANTIZE]
            if before and len(before) == len(inputs):
                for _, difference in self._kernels(inner, cells, before, last):
                    for place in (inner, before[0]) if difference > 0 else ():
                        found[place] = found.get(place, 0.0) + difference / 2
        return found

    def _name(self, way: Term) -> str:
        return "" if way.head < 0 else self._prices.encoding.terms.signatures[way.head].operator.full_name

    def _name_at(self, place: int) -> str:
        return self._names[place] if place < len(self._names) else ""  # ways that are fused come last

    def _around(self, inner: int, last: int | None) -> Iterator[QuantizedKernel]:
        """Yields the cheaper kernels of an operator, with or without the node that quantizes its
        result.
        """
        cells, inputs = self._inputs(inner)
        options = [self._dequantized.get(eclass, []) for eclass in inputs]
        if math.prod(map(len, options)) > _MOST:
            options = [places[:1] for places in options]
        for before in itertools.product(*options) if options else ():
            for kernel, difference in self._kernels(inner, cells, before, last):
                if difference < 0:
                    yield kernel

    def _kernels(self, inner: int, cells: Sequence[int], before: Sequence[int], last: int | None) -> Iterator[tuple[QuantizedKernel, float]]:
        """Yields the kernels of these nodes, each with its cost minus theirs."""
        prices, node = self._prices, self._priced(inner)
        tensors = [self._priced(place).inputs for place in before]
        after = None if last is None else self._priced(last)
        result = None if after is None else _dtype(after.outputs[0])
        nodes = (*dict.fromkeys(before), inner, *([] if last is None else [last]))
        for kernel in self._known[self._names[inner]]:
            name = kernel.kernel([_dtype(own[0]) for own in tensors], result)
            if name:
                domain, _, name = name.rpartition(".")
                # Three inputs for one of the operator: a tensor, its scale and its zero point
                inputs = [tensor for own in tensors for tensor in (*own, None)[:3]] + list(after.inputs[1:] if after else ())
                fused = PricedNode(domain, name, node.attributes, inputs, (after or node).outputs)
                cost = prices.cost(prices.priced(fused))
                difference = cost - math.fsum(prices.cost(prices.price(self._ways[place])) for place in nodes)
                yield QuantizedKernel((*cells, *nodes), cost), difference

    def _inputs(self, inner: int) -> tuple[list[int], list[int]]:
        """Returns the places of the links of an operator's list of inputs, and the classes of all
        inputs that are there.
        """
        way = self._ways[inner]
        signature = self._prices.encoding.terms.signatures[way.head]
        cells: list[int] = []
        classes = [child for child in way.children[: signature.inputs] if child not in self._absent]
        if signature.rest:
            eclass = way.children[-1]
            while True:
                cells.append(self._cells[eclass])
                link = self._ways[cells[-1]]
                if link.head != CONS:
                    break
                classes.append(link.children[0])
                eclass = link.children[1]
        return cells, classes

    def _priced(self, place: int) -> PricedNode:
        return self._prices.priced_node(self._ways[place])


def _dtype(tensor: Shaped | None) -> int:
    return 0 if tensor is None else tensor.dtype
