"""Changes: which tables of the e-graph changed, so that a rule runs only if it can find more.

A match is new only if a row that it reads is new. A rule reads rows of the tables in its query, and
facts of the classes in these rows. Facts of new classes come with new rows. A fact of an old class
changes only where two facts merge to another one; then all rules may find more.

Rules that read the same tables share a ruleset. egglog would find out by itself that a rule has
nothing new to match. But it prepares the tables anew for each rule, and most steps change few.
"""

from __future__ import annotations

from collections.abc import Iterable

LOOK = "look"
"""The ruleset that matches the new rows of each watched table, and does nothing."""

_NAME = "new "


class Changes:
    """The rulesets of a program by the tables that their rules read, and which of them are due."""

    def __init__(self) -> None:
        self.refined = False  # whether a fact of an old class changed since the last look
        self._rulesets: dict[tuple[str, frozenset[str]], str] = {}
        self._tables: dict[str, list[str]] = {}  # the rulesets of a family that read a table
        self._due: dict[str, None] = {}

    def ruleset(self, family: str, tables: frozenset[str]) -> str:
        """Returns the ruleset of a family for rules that read these tables. It is due, since its
        rules have just been declared.
        """
        name = self._rulesets.get((family, tables))
        if name is None:
            name = self._rulesets[family, tables] = f"{family}_{len(self._rulesets)}"
            for table in tables:
                self._tables.setdefault(table, []).append(name)
        self._due[name] = None
        return name

    def look(self, matched: Iterable[str]) -> None:
        """Notes the changes since the last look: the names of the rules of `LOOK` that matched."""
        if self.refined:
            self._due.update(dict.fromkeys(self._rulesets.values()))
            self.refined = False
        for rule in matched:
            self._due.update(dict.fromkeys(self._tables.get(rule.removeprefix(_NAME), ())))

    def due(self, families: Iterable[str]) -> list[str]:
        """Returns the rulesets of these families whose rules can find more. They count as run."""
        wanted = set(families)
        found = [name for (family, _), name in self._rulesets.items() if family in wanted and name in self._due]
        for name in found:
            del self._due[name]
        return found


def watch(table: str) -> str:
    """Returns the name of the rule of `LOOK` that matches the new rows of a table."""
    return _NAME + table
