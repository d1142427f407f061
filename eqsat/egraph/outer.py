"""The surroundings of a graph: the values of the graphs around a body that it may use, and the promises that
the callers of the main graph make.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from eqsat.facts.fact import Fact
from eqsat.frozen import mutable
from eqsat.model.model import Constant


@mutable
class Outer:
    """The values of the surrounding graphs that a body may use: their facts and constants."""

    facts: dict[str, Fact] = field(default_factory=dict[str, Fact])
    constants: dict[str, Constant] = field(default_factory=dict[str, Constant])
    # By name, the first name of the same value.
    same: dict[str, str] = field(default_factory=dict[str, str])
    # Whether this is the model's main graph, whose callers must keep to its declared inputs.
    main: bool = False
    filled: bool = False  # whether its callers promise that no size of an input is 0
    arbitrary: frozenset[str] = frozenset()  # inputs that stand for constants of arbitrary elements
    # Values whose nodes stay as written: they get no facts, and no rule sees them.
    kept: frozenset[str] = frozenset()

    def only(self, names: Iterable[str]) -> Outer:
        """Returns the part of these values that a body with just these captures sees."""
        kept = [name for name in names if name in self.facts]
        first: dict[str, str] = {}
        same = {name: first.setdefault(self.same.get(name, name), name) for name in kept}
        return Outer({name: self.facts[name] for name in kept}, {name: self.constants[name] for name in kept if name in self.constants}, same)
