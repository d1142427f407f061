"""Spellings: for each operator that rules recognize, the ways in which models write it out.

They stand in `spellings.txt`. Below a heading, each line is a model: `opset type: body`. The input
is `x`, and the last name in the body the output. Both have the type; `-> type` gives the output
another one, and `; type name` adds an input. `{0.5}` is a scalar constant of the type of `x`,
`{int64: 1, 2}` a list, and `?[4]` a constant with these sizes and random elements.
Rules that fire stand after `|`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper

from tests.support.models import parse

_HEADING = re.compile(r"\[(.+): (\w+)(?:, (.+))?\]")
_LINE = re.compile(r"(\d+) ([^:;>]+?)(?: -> ([^:;]+?))?((?:; [^:;]+)*): (.*?)(?: \| (.*))?")
_CONSTANT = re.compile(r"\{(?:(\w+): )?([^}]*)\}|\?\[([^\]]*)\]")
_TYPES = {"float": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "double": np.float64, "int64": np.int64}


@dataclass(frozen=True)
class Spelling:
    """A function written out, the operator that it is, and the operators that may stay beside it."""

    function: str
    number: int
    operator: str
    others: frozenset[str]
    line: str

    def __str__(self) -> str:
        return f"{self.function} {self.number}"

    @property
    def rules(self) -> set[str]:
        """Returns rules that fire on the model."""
        return set(self.line.partition(" | ")[2].split())

    def model(self) -> onnx.ModelProto:
        """Returns the model of the line."""
        found = _LINE.fullmatch(self.line)
        assert found, self.line
        opset, kind, result, more, body, _ = found.groups()
        constants = _Constants(kind.partition("[")[0])
        body = _CONSTANT.sub(constants.put, body)
        output = re.findall(r"(\w+) = ", re.sub(r"<[^>]*>", "", body))[-1]
        inputs = ", ".join([f"{kind} x", *(each.strip() for each in more.split(";")[1:])])
        model = parse(f"g ({inputs}) => ({result or kind} {output}) {{ {body} }}", f'<ir_version: 10, opset_import: ["" : {opset}]>')
        model.graph.initializer.extend(constants.made)
        return model


@dataclass
class _Constants:
    """The constants of a line, made where they stand in its text."""

    kind: str
    made: list[onnx.TensorProto] = field(default_factory=list[onnx.TensorProto])

    def put(self, found: re.Match[str]) -> str:
        """Returns the name of a constant."""
        kind, elements, sizes = found.groups()
        dtype = _TYPES[kind or self.kind]
        if sizes is not None:
            array = np.random.default_rng(len(self.made)).uniform(0.5, 1.5, [int(size) for size in sizes.split(",")]).astype(dtype)
        else:
            array = np.array([float(element) for element in elements.split(",")]).astype(dtype).reshape([-1] if kind else [])
        self.made.append(numpy_helper.from_array(array, f"constant_{len(self.made)}"))
        return self.made[-1].name


def read() -> list[Spelling]:
    """Returns all spellings, in the order of the file."""
    found: list[Spelling] = []
    function, operator, others, number = "", "", frozenset[str](), 0
    for line in (Path(__file__).parent / "spellings.txt").read_text(encoding="utf-8").splitlines():
        heading = _HEADING.fullmatch(line)
        if heading:
            function, operator, others, number = heading[1], heading[2], frozenset((heading[3] or "").split()), 0
        elif line and not line.startswith("#"):
            number += 1
            found.append(Spelling(function, number, operator, others, line))
    return found
