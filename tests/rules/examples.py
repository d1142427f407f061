"""Examples of rules: what the built-in rules make of a model. Those of a part of the rules are in the modules `examples_*`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

import eqsat
from tests.support.models import operators, parse, signature

OPSETS = (11, 13, 17, 21)


@dataclass(frozen=True)
class Example:
    """A model as ONNX text, the operators that are left of it, and rules that fire on it. Constants without elements get random ones."""

    text: str
    left: dict[str, int]
    rules: str = ""
    opsets: tuple[int, ...] = OPSETS

    @property
    def names(self) -> set[str]:
        return set(self.rules.split())

    def check(self, opset: int) -> None:
        """Optimizes the model at an opset with all rules, and looks at what is left, which eqsat itself verifies."""
        model = filled(parse(self.text, f'<ir_version: 8, opset_import: ["" : {opset}]>'))
        result = eqsat.optimize(model, max_growth=1 << 16)
        report = result.report
        assert report["verify"]["status"] == "equal"
        assert report["limits"]["hit"] in (None, "growth", "rounds")
        assert operators(result.model) == Counter(self.left)
        assert self.names <= {rule["name"] for rule in report["rules"] if rule["matches"]}


def filled(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with random elements for the constants that its text gives none."""
    generator = np.random.default_rng(0)
    for name, _, sizes in signature(model.graph.value_info):
        array = generator.standard_normal([size for size in sizes or [] if isinstance(size, int)]).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    del model.graph.value_info[:]
    return model
