"""The built-in rules on small models: each example of the modules `examples_*`.

All rules optimize it, and eqsat itself verifies the result.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from eqsat.language.library import whole_library
from tests.rules import spellings
from tests.rules.examples import Example

MODULES = sorted(path.stem for path in Path(__file__).parent.glob("examples_*.py"))
EXAMPLES: dict[str, Example] = {
    f"{module.removeprefix('examples_')}: {name}": example for module in MODULES for name, example in import_module(f"tests.rules.{module}").EXAMPLES.items()
}
CASES = [
    pytest.param(example, opset, id=f"{name} at {opset}", marks=[pytest.mark.slow] if older else [])
    for name, example in EXAMPLES.items()
    for older, opset in enumerate(example.distinct_opsets)
]


@pytest.mark.parametrize(("example", "opset"), CASES)
def test_an_example(example: Example, opset: int) -> None:
    example.check(opset)


def test_every_rule_has_an_example() -> None:
    """One member of a family is enough: the checker tries all members alike."""
    fired = {name for example in EXAMPLES.values() for name in example.names} | {name for spelling in spellings.read() for name in spelling.rules}
    assert fired <= whole_library().group_of.keys()
    assert {entry.listed.family for entry in whole_library().entries} == {name.partition("[")[0] for name in fired}
