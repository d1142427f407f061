"""Phases: which rules run, in which order, and how far; a file defines them for each effort.

The project's own file is rules/phases.toml; it also documents the fields.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Set
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from eqsat.contributed import DOMAINS
from eqsat.errors import InputError
from eqsat.frozen import frozen
from eqsat.settings import EFFORTS
from eqsat.shipped import RULES, SELDOM

BUILT_IN = RULES / "phases.toml"
EVERYTHING = "*"
EXCEPT = "-"
UNLIMITED = (1e9, 0.0)
"""More e-nodes than any run may have."""
# Forms that pay only together, such as all Convs of a chain, are few in a region. So the solver finds
# soon what a search by single steps misses.
_PROOF = 0.02


@frozen
class Phase:
    """Groups of rules that run together, and their limits.

    A limit is a pair: a constant, and an amount for each e-node at the start of the phase.
    """

    name: str = "all"
    groups: tuple[str, ...] = (EVERYTHING,)
    settle: tuple[str, ...] = ()
    rounds: int = 0
    # Rounds in the regions of a graph that is cut; None: as many as in one that is solved whole
    fewer: int | None = None
    # Whether it runs over the whole of a graph that is cut, and not in the regions
    before: bool = False
    # Whether it runs once, over the result of all turns, where the target takes in a group that it names
    after: bool = False
    # Whether it runs only where the target's caches do not hold the weights
    cold: bool = False
    # Operators of which the model must have one; none: it runs whatever operators there are
    wants: tuple[str, ...] = ()
    firings: tuple[float, float] = (0, 0)
    nodes: tuple[float, float] = UNLIMITED

    def has(self, group: str) -> bool:
        """Tells whether the rules of a group take part."""
        return (EVERYTHING in self.groups and EXCEPT + group not in self.groups) or group in self.groups

    def settles(self, group: str) -> bool:
        """Tells whether size-preserving rules of a group run until nothing changes."""
        return self.has(group) and (EVERYTHING in self.settle or group in self.settle)

    def most_firings(self, size: int) -> int:
        """Returns the most firings of a growing rule in a round.

        `size` is the number of e-nodes at the start of the phase.
        """
        return int(self.firings[0] + self.firings[1] * size)

    def most_nodes(self, size: int) -> int:
        """Returns the most e-nodes to which the phase may grow an e-graph of `size` e-nodes."""
        return int(size + self.nodes[0] + self.nodes[1] * size)


@frozen
class Plan:
    """The phases of an effort, and the most turns. Each turn starts from the last one's result."""

    phases: tuple[Phase, ...]
    turns: int = 1
    # The phases after the last turn, and the nodes of a region there
    last: tuple[Phase, ...] = ()
    last_regions: tuple[int, int] | None = None
    # The least and the most nodes of a region of a larger graph; None: no graph is cut.
    regions: tuple[int, int] | None = None
    # Groups of rules, and the first opset that has the operator that they make.
    since: Mapping[str, int] = field(default_factory=dict[str, int])
    # Seconds of the exact solver for a choice whose costs are predictions.
    proof: float = 0.0

    def useless(self, opset: int) -> frozenset[str]:
        """The groups that make what an opset lacks."""
        return frozenset(group for group, first in self.since.items() if opset < first)

    @property
    def simplifying(self) -> Plan:
        """The plan of the first phase alone, which only simplifies."""
        return replace(self, phases=self.phases[:1], last=())

    @property
    def before_cut(self) -> Plan:
        """The plan for the whole of a graph that is cut afterwards. It may have no phases."""
        return Plan(tuple(phase for phase in self.phases if phase.before))

    def after_turns(self, cold: bool, operators: Set[str]) -> Plan:
        """Returns the plan for the result of all turns, which has these operators. It may have no phases.
        `cold` tells whether the caches do not hold the weights.
        """
        phases = (phase for phase in self.last if (cold or not phase.cold) and not (phase.wants and operators.isdisjoint(phase.wants)))
        return Plan(tuple(phases), regions=self.last_regions, proof=_PROOF)

    def in_regions(self, launch_bound: bool) -> Plan:
        """Returns the plan for the regions of a graph that is cut. Where launches take most of a
        model's time, further nodes are worth joining, and rounds are as many as in a graph that is
        solved whole.
        """
        phases = (phase if phase.fewer is None or launch_bound else replace(phase, rounds=phase.fewer) for phase in self.phases if not phase.before)
        return replace(self, phases=tuple(phases))

    def check(self, groups: Iterable[str]) -> None:
        """Raises `InputError` if a phase names a group that is not among these, and not one of those
        that only some targets take in or that is about a runtime's own operators.
        """
        known = {*groups, *SELDOM, *DOMAINS, EVERYTHING}
        for phase in (*self.phases, *self.last):
            strange = [group for group in phase.groups if group.removeprefix(EXCEPT) not in known]
            if strange := [*strange, *(group for group in phase.settle if group not in known)]:
                raise InputError(f"the phase '{phase.name}' names the group '{strange[0]}', which is not there")
        if strange := [group for group in self.since if group not in known]:
            raise InputError(f"'since' names the group '{strange[0]}', which is not there")


def load(effort: str = "normal", path: Path | None = None) -> Plan:
    """Returns the plan of an effort, from a file or from the project's own.

    Raises a one-line `InputError` for a bad file.
    """
    return _built_in(effort) if path is None else _read(effort, path)


@cache
def _built_in(effort: str) -> Plan:
    """Returns the project's own plan of an effort. Its file does not change while a process runs."""
    return _read(effort, BUILT_IN)


def _read(effort: str, source: Path) -> Plan:
    try:
        table = tomllib.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{source}: can not read it: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # Python also refuses huge integers and deep nesting
        raise InputError(f"{source}: not a TOML file: {error}") from None
    if unknown := sorted(set(table) - {*EFFORTS, "turns", "regions", "since"}):
        raise InputError(f"{source}: '{unknown[0]}' is no effort; there are {', '.join(EFFORTS)}")
    turns = table.get("turns", {})
    most = cast(dict[str, Any], turns).get(effort, 1) if isinstance(turns, dict) else None
    if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= 1000:
        raise InputError(f"{source}: turns is a table with a whole number from 1 to 1000 for each effort")
    sizes = table.get("regions", {})
    region, last = (_range(source, sizes, key) for key in (effort, "after"))
    since = table.get("since", {})
    if not isinstance(since, dict) or not all(isinstance(first, int) and not isinstance(first, bool) for first in cast(dict[str, Any], since).values()):
        raise InputError(f"{source}: since is a table with the number of an opset for a group")
    rows = table.get(effort)
    if not isinstance(rows, list) or not rows:
        raise InputError(f"{source}: has no phases for the effort '{effort}'; write [[{effort}]] above each")
    phases = [_phase(f"{source}: phase {place} of '{effort}'", row) for place, row in enumerate(cast(list[Any], rows), 1)]
    if phases[0].after:
        raise InputError(f"{source}: phase 1 of '{effort}': after is for later phases; the first one simplifies")
    return Plan(
        tuple(phase for phase in phases if not phase.after),
        most,
        tuple(phase for phase in phases if phase.after),
        last,
        region,
        cast(dict[str, int], since),
    )


def _range(source: Path, sizes: object, key: str) -> tuple[int, int] | None:
    """Returns the sizes of regions that a table gives, or None if it has none."""
    found = cast(dict[str, Any], sizes).get(key) if isinstance(sizes, dict) else ()
    if found is None:
        return None
    items = cast(list[Any], found) if isinstance(found, list) else []
    whole = len(items) == 2 and all(isinstance(item, int) and not isinstance(item, bool) for item in items)
    if not whole or not 1 <= items[0] <= items[1] <= 1_000_000:
        raise InputError(f"{source}: regions is a table with two whole numbers for an effort: the least and the most nodes of a region, 1 <= least <= most")
    return items[0], items[1]


def _phase(where: str, row: object) -> Phase:
    if not isinstance(row, dict):
        raise InputError(f"{where}: write [[...]] above it, two brackets on each side")
    fields = cast(dict[str, Any], row)
    wanted = {"name", "groups", "settle", "rounds", "before", "after", "cold", "wants", "firings", "nodes"}
    if unknown := sorted(set(fields) - wanted):
        raise InputError(f"{where}: '{unknown[0]}' is no field of a phase; there are {', '.join(sorted(wanted))}")
    name = fields.get("name", "")
    before, after, cold = (fields.get(key, False) for key in ("before", "after", "cold"))
    rounds, fewer = _rounds(where, fields.get("rounds", 0))
    if not isinstance(name, str) or not name:
        raise InputError(f"{where}: name is a text that is not empty")
    groups, settle = (_names(where, field, fields.get(field, default)) for field, default in (("groups", [EVERYTHING]), ("settle", [])))
    wants = _names(where, "wants", fields.get("wants", []))
    if not all(isinstance(found, bool) for found in (before, after, cold)) or (before and after) or ((cold or wants) and not after):
        raise InputError(f"{where}: before, after and cold are true or false; before excludes after, and cold is for phases that say after, as is wants")
    return Phase(
        name,
        groups,
        settle,
        rounds,
        fewer,
        before,
        after,
        cold,
        wants,
        _pair(where, "firings", fields.get("firings", [0, 0])),
        _pair(where, "nodes", fields.get("nodes", list(UNLIMITED))),
    )


def _rounds(where: str, value: object) -> tuple[int, int | None]:
    """Returns the rounds in a graph that is solved whole, and in regions if these are other ones."""
    items = cast(list[Any], value if isinstance(value, list) else [value])
    if len(items) not in (1, 2) or not all(isinstance(item, int) and not isinstance(item, bool) and 0 <= item <= 1000 for item in items):
        raise InputError(f"{where}: rounds is a whole number from 0 to 1000, or two: [in a graph that is solved whole, in regions]")
    return items[0], items[1] if len(items) == 2 else None


def _names(where: str, field: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in cast(list[Any], value)):
        raise InputError(f"{where}: {field} is a list of names" + ("" if field == "wants" else f' of groups, or ["{EVERYTHING}"]'))
    return tuple(cast(list[str], value))


def _pair(where: str, field: str, value: object) -> tuple[float, float]:
    items = cast(list[Any], value) if isinstance(value, list) else []
    if len(items) != 2 or not all(isinstance(item, (int, float)) and not isinstance(item, bool) and 0 <= item <= 1e9 for item in items):
        raise InputError(f"{where}: {field} is two numbers from 0: [so many, and so many for each e-node at its begin]")
    return float(items[0]), float(items[1])
