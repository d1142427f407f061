"""Tokens: the text of one rule as tokens of the grammar, each with its place in the file.

The grammar defines the form of each token. The lexer settles the line structure: which line breaks
are tokens, and whether every bracket is closed. It also bounds the nesting, so that no later stage
recurses too deep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lark.common import LexerConf
from lark.lexer import Lexer, PatternStr, Token

from eqsat.frozen import frozen
from eqsat.language.syntax import Place

NAME_LIMIT = 100  # characters; names appear in messages and in file names
NESTING_LIMIT = 100  # of brackets, and of operators on the way into them

_CLOSED_BY = {"(": ")", "[": "]", "<": ">"}
# Tokens whose text may start with line breaks.
_LINE_STARTS = frozenset({"FORWARD", "BOTH", "WHERE", "EXACT_IF", "TEST", "NEWLINE"})
_RANGES = re.compile(r"for\b[^:]*", re.ASCII)
_VARIABLES = re.compile(r"(?:\b([A-Z][0-9]*)|\(([^()]*)\))\s*in\b", re.ASCII)
_VARIABLE = re.compile(r"\b[A-Z][0-9]*\b", re.ASCII)
_APPLIED = re.compile(r" *[(<]")  # the text after a name in the place of an operator
_DEEPENING = frozenset("+ - * / // % ** not if".split())
_CONTINUING = frozenset([*"=> <=> where test : , = + - * / // % ** == != < <= > >= in not and or if else for .. ~".split(), "exact if"])


@frozen
class Chunk:
    """The text of one rule, and the line of the file on which it begins."""

    text: str
    line: int

    @property
    def variables(self) -> frozenset[str]:
        """The names that a `for` line at the beginning gives to operators."""
        header = _RANGES.match(self.text)
        found = _VARIABLES.finditer(header.group()) if header else ()
        return frozenset(name for one in found for name in _VARIABLE.findall(one.group()))

    def source(self, line: int) -> str:
        """One line of the file."""
        return self.text.split("\n")[line - self.line]


class TokenError(Exception):
    """Text that can not be read as tokens."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.place = place


class Brackets:
    """The open brackets, and the depth of nesting in them: brackets, and operators since the last
    comma.
    """

    def __init__(self) -> None:
        self.open: list[tuple[str, Place]] = []
        self._depths = [0]
        self._depth = 0

    def deepen(self, place: Place) -> None:
        """Counts one more operator or bracket, at `place`."""
        self._depths[-1] += 1
        self._depth += 1
        if self._depth > NESTING_LIMIT:
            raise TokenError(place, f"nested more than {NESTING_LIMIT} levels deep; name the parts in `where`")

    def restart(self) -> None:
        """Starts a new part within these brackets, which is not nested in the part before it."""
        self._depth -= self._depths[-1]
        self._depths[-1] = 0

    def enter(self, bracket: str, place: Place) -> None:
        """Opens a bracket."""
        self.deepen(place)
        self.open.append((bracket, place))
        self._depths.append(0)

    def leave(self, bracket: str, place: Place) -> None:
        """Closes the bracket that was opened last, which must match."""
        if not self.open:
            raise TokenError(place, f"`{bracket}` closes nothing")
        opened, opening = self.open.pop()
        if _CLOSED_BY[opened] != bracket:
            raise TokenError(opening, f"unclosed `{opened}`")
        self._depth -= self._depths.pop()

    def close_all(self) -> None:
        """Checks that all brackets are closed here."""
        if self.open:
            bracket, place = self.open[-1]
            raise TokenError(place, f"unclosed `{bracket}`")


class RuleLexer(Lexer):
    """Splits a `Chunk` into tokens; raises `TokenError` if that fails."""

    __future_interface__ = 2  # makes lark pass its lexer state, whose text may be any object

    def __init__(self, lexer_conf: LexerConf) -> None:
        self._words: dict[str, str] = {}
        patterns: list[str] = []
        for terminal in lexer_conf.terminals:
            if isinstance(terminal.pattern, PatternStr):
                self._words[terminal.pattern.value] = terminal.name
            else:
                patterns.append(f"(?P<{terminal.name}>{terminal.pattern.to_regexp()})")
        symbols = sorted((word for word in self._words if not word.isalpha()), key=len, reverse=True)
        self._match = re.compile(f"[ ]*(?:{'|'.join(patterns)}|{'|'.join(map(re.escape, symbols))})", re.ASCII).match

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Token]:
        """The tokens of the chunk that lark was given to parse."""
        chunk: Chunk = lexer_state.text
        text, words, match = chunk.text, self._words, self._match
        position, line, line_start = 0, chunk.line, 0
        variables = chunk.variables
        brackets = Brackets()
        continued = testing = False
        last = ""
        while found := match(text, position):
            value = found.group().lstrip(" \n")
            kind = words.get(value, found.lastgroup) or ""
            end = found.end()
            begin = end - len(value)
            if value in variables and _APPLIED.match(text, end):
                kind = "OPERATOR"
            if kind in _LINE_STARTS:
                if kind != "NEWLINE":
                    brackets.close_all()
                    testing = testing or kind == "TEST"
                elif not (brackets.open or continued or testing):
                    brackets.restart()
                    yield Token(kind, value, position, line, position - line_start + 1)
                if breaks := text.count("\n", position, begin):
                    line += breaks
                    line_start = text.rindex("\n", position, begin) + 1
                position = end
                if kind == "NEWLINE":
                    continue
                brackets.restart()
            position = end
            place = Place(line, begin - line_start + 1, len(value))
            if len(value) > NAME_LIMIT and value[0].isalpha():
                raise TokenError(place, f"a name has at most {NAME_LIMIT} characters")
            if value in "([" or (value == "<" and last in ("OPERATOR", "QUALIFIED")):
                brackets.enter(value, place)
            elif value in ")]" or (value == ">" and brackets.open and brackets.open[-1][0] == "<"):
                brackets.leave(value, place)
            elif value == ",":
                brackets.restart()
            elif value in _DEEPENING:
                brackets.deepen(place)
            last = kind
            continued = value in _CONTINUING
            yield Token(kind, value, begin, place.line, place.column)
        rest = text[position:].lstrip(" ")
        if rest:
            raise TokenError(Place(line, len(text) - len(rest) - line_start + 1), _unreadable(rest))
        brackets.close_all()


def _unreadable(rest: str) -> str:
    if rest[0] == "#":
        return "comments stand above a rule"
    if rest[0] == '"':
        return 'a string ends with `"` on the line where it begins; in it, `\\` stands before `"` and `\\`'
    return f"`{rest[0]}` is no part of the language"
