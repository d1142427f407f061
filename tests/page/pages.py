"""Runs whose pages the tests read: a model from text is optimized, and its page made."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import onnx

from eqsat.cli.summary import summary
from eqsat.page.document import report_page
from eqsat.page.page_data import page_data
from eqsat.pipeline import Result, run
from eqsat.settings import Settings
from tests.support.models import parse

SETTINGS = Settings(effort="low", memory_limit=1 << 30)

LAYERS = 6


def layered() -> onnx.ModelProto:
    """Returns a model of named layers, in each of which three nodes go: a second Relu, and two Transposes."""
    nodes: list[str] = []
    names: list[str] = []
    for layer in range(LAYERS):
        nodes += [
            f"h{layer} = MatMul (x{layer}, w)",
            f"r{layer} = Relu (h{layer})",
            f"s{layer} = Relu (r{layer})",
            f"t{layer} = Transpose <perm = [1, 0]> (s{layer})",
            f"u{layer} = Transpose <perm = [1, 0]> (t{layer})",
            f"x{layer + 1} = Add (u{layer}, x{layer})",
        ]
        names += [f"/model/layer.{layer}/{name}" for name in ("mm/MatMul", "act/Relu", "act/Relu_1", "Transpose", "Transpose_1", "Add")]
    weight = ", ".join(["0.25"] * 16)
    model = parse("g (float[4, 4] x0) => (float[4, 4] x6) <float[4, 4] w = {" + weight + "}> {" + "\n".join(nodes) + "}")
    for node, name in zip(model.graph.node, names, strict=True):
        node.name = name
    return model


def run_of(model: onnx.ModelProto | Path) -> Result:
    return run(model, SETTINGS)


def data_of(result: Result) -> dict[str, Any]:
    return page_data(result, SETTINGS, summary(result.report))


def page_of(result: Result) -> str:
    return report_page(result, SETTINGS, summary(result.report))


class Parsed(HTMLParser):
    """The elements of a document, the text of its scripts, and whether each is closed."""

    VOID = frozenset({"meta", "input", "br", "img", "link"})

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.title = ""
        self.faults: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        within = self._open[-1] if self._open else ""
        if within == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = attributes, text + data
        elif within == "style":
            self.styles.append(data)
        elif within == "title":
            self.title += data

    def data(self) -> dict[str, Any]:
        (found,) = [text for attributes, text in self.scripts if attributes.get("id") == "data"]
        return json.loads(found)
