"""The problems of rule files. Every stage makes `Problem`s, which point into the text; one
`RuleErrors` carries them all.

A problem is shown as `file:line:column: rule NAME: message`, then the line and a caret below the
place.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from eqsat.errors import InputError
from eqsat.frozen import frozen
from eqsat.language.syntax import Place, Rule

_SHOWN = 200  # problems that a message lists at most
_WINDOW = 160  # characters of a source line that are shown, a bound for hostile files


@frozen
class Problem:
    """One broken law. `rule` is "" outside of any rule; `source` is the line of the file that
    `place` points into.
    """

    file: str
    place: Place
    rule: str
    message: str
    source: str = ""

    def __str__(self) -> str:
        """The message with its position; below it the line and a caret, if the source is known."""
        rule = f"rule {self.rule}: " if self.rule else ""
        text = f"{self.file}:{self.place.line}:{self.place.column}: {rule}{self.message}"
        if not self.source:
            return text
        begin = max(0, self.place.column - _WINDOW // 2) if len(self.source) > _WINDOW else 0
        shown = "".join(character if character.isprintable() else " " for character in self.source[begin : begin + _WINDOW])
        return f"{text}\n    {shown.rstrip()}\n    {' ' * (self.place.column - 1 - begin)}^"


class Report:
    """Collects the problems of one rule. A problem that two checks find is reported once."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._messages: dict[tuple[Place, str], None] = {}

    def add(self, place: Place, message: str) -> None:
        """Adds a problem at `place`."""
        self._messages[place, f"{message} (in `def {place.source}`)" if place.source else message] = None

    @property
    def problems(self) -> list[Problem]:
        """The problems found, with the lines of the rule's text."""
        lines, first = self.rule.source.split("\n"), self.rule.begin
        return [Problem(self.rule.file, place, self.rule.name, message, lines[place.line - first]) for place, message in self._messages]


class RuleErrors(InputError):
    """All problems of one file, or of several, in the order of the text."""

    located = True

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.file, problem.place.line, problem.place.column, problem.message)))
        super().__init__("; ".join(str(problem).partition("\n")[0] for problem in self.problems))
        self.args = (self.problems,)  # for pickling: an exception is made again from its arguments

    def __str__(self) -> str:
        more = len(self.problems) - _SHOWN
        return "\n".join([*map(str, self.problems[:_SHOWN]), *([f"and {more} more errors"] if more > 0 else [])])


def nearest(name: str, known: Iterable[str]) -> str:
    """`, did you mean X?` where some known name is close to `name`, or nothing."""
    candidates = sorted(set(known))
    found = [other for other in candidates if other.lower() == name.lower()] or difflib.get_close_matches(name, candidates, n=1)
    return f"; did you mean {found[0]}?" if found else ""
