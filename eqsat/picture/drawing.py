"""Drawings: a graph as one SVG element, with a box for each node, input and output.

The input is a message, the output text of SVG that needs no script, font or network. All names are
escaped. A graph with more boxes than a person can follow is not drawn; its drawing says how many.
"""

from __future__ import annotations

import re
from collections.abc import Container
from html import escape

import onnx

from eqsat.frozen import frozen
from eqsat.model.model import attribute_graphs
from eqsat.operators import normal_domain
from eqsat.picture.layered import Layout, layered

MOST_BOXES = 120
"""The most boxes of a drawing; the report as a page has graphs of any size."""

_LETTER, _PADDING, _HEIGHT, _MARGIN = 7.2, 18.0, 28.0, 6.0
_LONGEST_LABEL, _LONGEST_TITLE = 28, 160
_FILLS = {"end": ("#f2f2f2", "#8c8c8c"), "node": ("#e6eef9", "#5b7ba8"), "changed": ("#ffe9c7", "#c77f0a")}
_FORBIDDEN = re.compile("[\x00-\x1f\x7f\ufffe\uffff\ud800-\udfff]")


@frozen
class _Box:
    label: str
    title: str
    kind: str


def drawing(model: onnx.ModelProto, unchanged: Container[tuple[str, ...]], title: str) -> str:
    """Returns the drawing of a model's main graph. Nodes whose identity is not in `unchanged` have
    another color.
    """
    boxes, arrows = _boxes(model.graph, unchanged)
    if len(boxes) > MOST_BOXES:
        return _message(f"{title}: {_count(model.graph)} nodes are too many to draw here")
    widths = [min(len(box.label), _LONGEST_LABEL) * _LETTER + _PADDING for box in boxes]
    return _svg(boxes, arrows, widths, layered(widths, arrows), title)


def identity(node: onnx.NodeProto) -> tuple[str, ...]:
    """Returns the operator of a node and the names of its outputs, which tell it from the others."""
    return (normal_domain(node.domain), node.op_type, *node.output)


def identities(model: onnx.ModelProto) -> frozenset[tuple[str, ...]]:
    """Returns the identity of each node of a model's main graph."""
    return frozenset(map(identity, model.graph.node))


def _count(graph: onnx.GraphProto) -> int:
    return sum(not _is_constant(node) for node in graph.node)


def _is_constant(node: onnx.NodeProto) -> bool:
    return node.op_type == "Constant" and normal_domain(node.domain) == ""


def _boxes(graph: onnx.GraphProto, unchanged: Container[tuple[str, ...]]) -> tuple[list[_Box], list[tuple[int, int]]]:
    """Returns the boxes, and the arrows between them. Constants have no box."""
    stored = {tensor.name for tensor in graph.initializer}
    nodes = [node for node in graph.node if not _is_constant(node)]
    boxes = [_Box(info.name, f"input {info.name}", "end") for info in graph.input if info.name not in stored]
    makers = {box.label: number for number, box in enumerate(boxes)}
    first = len(boxes)
    for number, node in enumerate(nodes, first):
        makers.update((name, number) for name in node.output if name)
        boxes.append(_box(node, identity(node) in unchanged))
    arrows = [(makers[name], number) for number, node in enumerate(nodes, first) for name in dict.fromkeys(_reads(node)) if name in makers]
    for info in graph.output:
        if info.name in makers:
            arrows.append((makers[info.name], len(boxes)))
        boxes.append(_Box(info.name, f"output {info.name}", "end"))
    return boxes, list(dict.fromkeys(arrows))


def _box(node: onnx.NodeProto, unchanged: bool) -> _Box:
    inside = sum(len(body.node) for _, body in attribute_graphs(node))
    label = node.op_type + (f" ({inside} inside)" if inside else "")
    return _Box(label, f"{node.op_type} {node.name}: {', '.join(node.input)} -> {', '.join(node.output)}", "node" if unchanged else "changed")


def _reads(node: onnx.NodeProto) -> list[str]:
    """Returns the values around a node that it reads, also those that its bodies do."""
    names = list(node.input)
    for _, body in attribute_graphs(node):
        own = {info.name for info in body.input} | {tensor.name for tensor in body.initializer} | {name for inner in body.node for name in inner.output}
        inside = [*(name for inner in body.node for name in _reads(inner)), *(info.name for info in body.output)]
        names += [name for name in inside if name not in own]
    return names


def _svg(boxes: list[_Box], arrows: list[tuple[int, int]], widths: list[float], layout: Layout, title: str) -> str:
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{_text(title, _LONGEST_TITLE)}" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{-_MARGIN:g} {-_MARGIN:g} {width:.0f} {height:.0f}" '
        'font-family="sans-serif" font-size="12" text-anchor="middle">'
    ]
    for source, target in arrows:
        (x, y), (u, v) = layout.places[source], layout.places[target]
        y, v = y + _HEIGHT / 2, v - _HEIGHT / 2
        bend = (y + v) / 2
        parts.append(f'<path d="M{x:.1f} {y:.1f}C{x:.1f} {bend:.1f} {u:.1f} {bend:.1f} {u:.1f} {v:.1f}" fill="none" stroke="#8c8c8c"/>')
    for box, (number, (x, y)) in zip(boxes, sorted(layout.places.items()), strict=True):
        fill, stroke = _FILLS[box.kind]
        left, top = x - widths[number] / 2, y - _HEIGHT / 2
        parts.append(
            f"<g><title>{_text(box.title, _LONGEST_TITLE)}</title>"
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{widths[number]:.1f}" height="{_HEIGHT:g}" rx="5" fill="{fill}" stroke="{stroke}"/>'
            f'<text x="{x:.1f}" y="{y + 4:.1f}" fill="#1a1a1a">{_text(box.label, _LONGEST_LABEL)}</text></g>'
        )
    return "".join([*parts, "</svg>"])


def _message(text: str) -> str:
    """Returns a drawing that is a line of text."""
    width = len(text) * _LETTER + _PADDING
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" height="32" font-family="sans-serif" '
        f'font-size="12"><text x="0" y="20" fill="#8c8c8c">{_text(text, _LONGEST_TITLE)}</text></svg>'
    )


def _text(text: str, most: int) -> str:
    """Returns a text, shortened, for the inside of an element or an attribute."""
    shown = text if len(text) <= most else f"{text[: most - 3]}..."
    return escape(_FORBIDDEN.sub("\ufffd", shown))
