"""Raising: keeps subnormal numbers, with which many processors compute slowly, out of a Softmax.

A mask may lower scores so far that a Softmax makes subnormal numbers of them
(eqsat/cost/subnormals.py). Such a Softmax reads the differences of its scores from the largest one in
their row, none of them below a bound. What it gives for those that were raised is still far below the
last place of what adds up to 1; NaN and infinity stay. No rule can do this, because for real numbers
it is a change.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx
from onnx import helper

from eqsat.choose.storing import Place, store_array
from eqsat.model.imports import standard_opset
from eqsat.model.names import FreshNames, all_names
from eqsat.operators import find_operator, normal_domain, read_attributes

_BOUND = -60.0
"""The least difference from the largest score. exp(-60) is 2**-86: neither its share of a row nor its
product with a usual number is subnormal, and beside 1 it is 2**-62 of the last place."""
_BROADCASTS = 8  # the first opset whose Max broadcasts
_AXES_ARE_INPUTS = 18  # of ReduceMax, from this opset on
_ONE_AXIS = 13  # the first opset whose Softmax is along a single axis


def raised(model: onnx.ModelProto, faint: Collection[str]) -> onnx.ModelProto:
    """Returns the model with raised scores in front of each Softmax whose result is in `faint`, the
    values with subnormal elements. Returns the model itself if there is none.
    """
    opset = standard_opset(model.opset_import)
    slow = {node.output[0] for node in model.graph.node if _is_row_by_row(node, opset) and node.output[0] in faint}
    if not slow or opset < _BROADCASTS:
        return model
    raising = _Raising(model, opset)
    for node in model.graph.node:
        raising.add(node, not slow.isdisjoint(node.output))
    return raising.result()


def _is_row_by_row(node: onnx.NodeProto, opset: int) -> bool:
    """Tells whether a node is a Softmax along one axis. Before opset 13, only one along the last axis is
    known to be.
    """
    return node.op_type == "Softmax" and not normal_domain(node.domain) and (opset >= _ONE_AXIS or _axis(node, opset) == -1)


def _axis(softmax: onnx.NodeProto, opset: int) -> int:
    axis = read_attributes(find_operator("", "Softmax", opset), softmax.attribute)["axis"]
    assert isinstance(axis, int)
    return axis


class _Raising:
    """A graph that is written anew, node by node."""

    def __init__(self, model: onnx.ModelProto, opset: int) -> None:
        self._model = onnx.ModelProto()
        self._model.CopyFrom(model)
        del self._model.graph.node[:]
        self._opset = opset
        self._place = Place(constant_nodes=model.ir_version < 4)
        self._fresh = FreshNames(all_names(model.graph))
        self._nodes: list[onnx.NodeProto] = []
        self._axes: dict[int, str] = {}
        self._bound = self._stored("bound", np.array(_BOUND, np.float32))

    def add(self, node: onnx.NodeProto, slow: bool) -> None:
        """Adds a node of the model, with raised scores if it is a slow Softmax."""
        kept = onnx.NodeProto()
        kept.CopyFrom(node)
        if slow:
            kept.input[0] = self._raised(node)
        self._nodes.append(kept)

    def result(self) -> onnx.ModelProto:
        """Returns the model with the nodes so far."""
        self._model.graph.node.extend(self._nodes)
        return self._model

    def _raised(self, softmax: onnx.NodeProto) -> str:
        """Adds the nodes that raise the scores of a Softmax; returns the name of what it reads.

        The bound is one of differences, because beside large scores it would vanish.
        """
        axis, scores = _axis(softmax, self._opset), softmax.input[0]
        top, below, found = (self._fresh.make(f"{scores}_{what}") for what in ("top", "below", "raised"))
        largest = helper.make_node("ReduceMax", [scores], [top])
        if self._opset >= _AXES_ARE_INPUTS:
            largest.input.append(self._axes_input(axis))
        else:
            largest.attribute.append(helper.make_attribute("axes", [axis]))
        self._nodes += [largest, helper.make_node("Sub", [scores, top], [below]), helper.make_node("Max", [below, self._bound], [found])]
        return found

    def _axes_input(self, axis: int) -> str:
        if axis not in self._axes:
            self._axes[axis] = self._stored("axes", np.array([axis]))
        return self._axes[axis]

    def _stored(self, stem: str, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
        name = self._fresh.make(stem)
        store_array(self._model.graph, self._nodes, self._place, name, array)
        return name
