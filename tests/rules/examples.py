"""Examples of rules: models, and their form after the built-in rules.

The modules `examples_*` have the examples of the parts of the library.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np
import onnx
from onnx import defs, numpy_helper

import eqsat
from eqsat.spelling.versions import CHANGES
from tests.support.models import operators, parse, signature

OPSETS = (11, 13, 17, 21)
TYPE = re.compile(r"\b(?:b?float16|float|double|u?int\d+|bool|string)\b")


@dataclass(frozen=True)
class Example:
    """A model as ONNX text, the operators left of it, and rules that fire on it.

    Constants without elements get random ones.
    """

    text: str
    left: dict[str, int]
    rules: str = ""
    opsets: tuple[int, ...] = OPSETS
    target: str = "launches"
    allow_domain: str = ""  # a domain of a runtime's own operators, which the target has to know

    @property
    def names(self) -> set[str]:
        return set(self.rules.split())

    def model(self, opset: int) -> onnx.ModelProto:
        domain = f', "{self.allow_domain}" : 1' if self.allow_domain else ""
        return parse(self.text, f'<ir_version: 8, opset_import: ["" : {opset}{domain}]>')

    @property
    def distinct_opsets(self) -> list[int]:
        """Returns the opsets that differ for the example, newest first.

        An opset is left out if all operators of the model and of its result mean the same in a
        newer one.
        """
        types = frozenset(f"tensor({name})" for name in {"float", "int64", *TYPE.findall(self.text)})
        newest: dict[object, int] = {}
        for opset in sorted(self.opsets, reverse=True):
            names = sorted({*operators(self.model(opset)), *self.left})
            newest.setdefault(tuple(meaning(name, opset, types) for name in names), opset)
        return list(newest.values())

    def check(self, opset: int) -> None:
        """Optimizes the model at an opset with all rules, and checks the result.

        eqsat verifies the result itself.
        """
        model = filled(self.model(opset))
        result = eqsat.optimize(model, max_growth=1 << 16, target=self.target, allow_domain=[self.allow_domain] * bool(self.allow_domain))
        report = result.report
        assert report["verify"]["status"] == "equal"
        assert report["limits"]["hit"] in (None, "growth", "rounds")
        assert operators(result.model) == Counter(self.left)
        assert self.names <= {rule["name"] for rule in report["rules"] if rule["matches"]}


@cache
def meaning(name: str, opset: int, types: frozenset[str]) -> object:
    """Returns everything that an opset can change of an operator.

    This is its parameters, its data types among `types`, its attributes, and eqsat's knowledge
    beyond schemas.
    """
    try:
        schema = defs.get_schema(name, opset, "")
    except defs.SchemaError:
        return None
    parameters = [(item.name, item.option, sorted(item.types & types)) for item in (*schema.inputs, *schema.outputs)]
    attributes = sorted((key, str(item.type), item.required, str(item.default_value)) for key, item in schema.attributes.items())
    return str((parameters, attributes, [change.version for change in CHANGES.get(name, ()) if change.version <= opset]))


def filled(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with random elements for constants without elements."""
    generator = np.random.default_rng(0)
    for name, _, sizes in signature(model.graph.value_info):
        array = generator.standard_normal([size for size in sizes or [] if isinstance(size, int)]).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    del model.graph.value_info[:]
    return model
