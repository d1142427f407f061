"""Parsing: the `RuleFile` of a text, or `RuleErrors` with the problems of each of its rules.

The parser cuts the file into definitions and rules at their first lines. The grammar parses each by
itself, so an error in one hides none in another. Every text gives one of the two results, in time
that grows with its length. Parsing the output of `printer` gives the printed tree again, comments
included.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePath

from eqsat.frozen import mutable
from eqsat.language.problems import Problem, RuleErrors
from eqsat.language.syntax import FileDefinition, Place, Rule, RuleFile

SIZE_LIMIT = 4 << 20  # bytes of a rule file
_PROBLEM_LIMIT = 200  # enough for a file that is no rule file

_HEADER = re.compile(r"(?P<rule>([A-Za-z]+ +)?rule\b)|(?P<ranges>for\b)|def\b", re.ASCII)
_BEGINNING = "a rule begins with `exact rule NAME:`, `real rule NAME:` or `finite rule NAME:`"
_COMMENTS = "comments stand above a rule"
_DEFINITIONS = "the definitions of a file stand above its rules"
_NAME = re.compile(r"\n(?:[A-Za-z]+ +)?rule +([\w-]{1,100})(?![\w-])", re.ASCII)
_FORBIDDEN = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def parse(text: str, file: str) -> RuleFile:
    """The rules of a file. `file` is the name that messages show; its stem is the name of the
    group.
    """
    found, problems = read(text, file)
    if problems:
        raise RuleErrors(problems)
    return found


def read(text: str, file: str) -> tuple[RuleFile, list[Problem]]:
    """Parses as `parse` does, but returns the readable part of the file and the problems of the
    rest.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if len(text) > SIZE_LIMIT:
        raise RuleErrors([_too_large(file)])
    lines = text.split("\n")
    parts = _cut(lines, file)
    problems, rules, definitions = parts.problems, list[Rule](), list[FileDefinition]()
    for piece in parts.pieces:
        if len(problems) >= _PROBLEM_LIMIT:
            break
        result = _parse_rule(lines, piece, file)
        match result:
            case Rule():
                rules.append(result)
            case FileDefinition():
                definitions.append(result)
                if parts.rules_begin is not None and result.begin > parts.rules_begin:
                    problems.append(Problem(file, Place(result.begin, 1, 3), "", _DEFINITIONS, lines[result.begin - 1]))
            case Problem():
                problems.append(result)
    return RuleFile(PurePath(file).stem, parts.preamble, tuple(rules), tuple(definitions)), problems[:_PROBLEM_LIMIT]


def decode(data: bytes, file: str) -> str:
    """The text of a file, which must be UTF-8 and no larger than a rule file may be."""
    if len(data) > SIZE_LIMIT:
        raise RuleErrors([_too_large(file)])
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
        raise RuleErrors([Problem(file, Place(before.count(b"\n") + 1, column), "", "the text is not UTF-8")]) from None


def _too_large(file: str) -> Problem:
    return Problem(file, Place(1, 1), "", f"a rule file has at most {SIZE_LIMIT >> 20} MiB; split it")


# --- from lines to rules ---


@mutable
class _Piece:
    """The lines of one rule or `def`, numbered from 0, and the comment above it."""

    begin: int
    end: int
    documentation: tuple[str, ...]
    open: bool  # the piece is a `for` line whose rule is still to come


@mutable
class _Parts:
    """The parts of a file."""

    preamble: tuple[str, ...]
    pieces: list[_Piece]
    problems: list[Problem]
    rules_begin: int | None = None  # the line of the first rule, from 1


def _cut(lines: list[str], file: str) -> _Parts:
    """Finds the rules and their comments. A line in a forbidden position becomes a problem and is
    blanked in `lines`.
    """
    parts = _Parts((), [], [])
    block: list[int] = []  # the comment lines right above
    top, strange = True, False  # no text was seen yet; text outside of any rule was reported
    for number, line in enumerate([*lines, ""]):
        if found := _FORBIDDEN.search(line):
            what = "a tab; write blanks" if found.group() == "\t" else f"U+{ord(found.group()):04X} is no character of a text"
            parts.problems.append(Problem(file, Place(number + 1, found.start() + 1), "", what, line))
            line = lines[number] = _FORBIDDEN.sub(" ", line)
        content = line.strip(" ")
        if content.startswith("#"):
            block.append(number)
            continue
        header = _HEADER.match(line)
        if header and header["rule"] and parts.pieces and parts.pieces[-1].open and not block:
            parts.pieces[-1].open = False
        elif header:
            parts.pieces.append(_Piece(number, len(lines), _comment(lines, block), bool(header["ranges"])))
            if len(parts.pieces) > 1:
                parts.pieces[-2].end = number - len(block)
            if parts.rules_begin is None and not line.startswith("def"):
                parts.rules_begin = number + 1
        elif top and block and not content:
            parts.preamble = _comment(lines, block)
        else:
            if block:
                parts.problems.append(Problem(file, Place(block[0] + 1, lines[block[0]].index("#") + 1), "", _COMMENTS, lines[block[0]]))
                lines[block[0] : block[-1] + 1] = [""] * len(block)
            if content and not parts.pieces and not strange:
                strange = True
                parts.problems.append(Problem(file, Place(number + 1, len(line) - len(line.lstrip(" ")) + 1), "", _BEGINNING, line))
        top = top and not content and not block
        block = []
    return parts


def _comment(lines: list[str], block: list[int]) -> tuple[str, ...]:
    return tuple(lines[number].strip(" ").removeprefix("#").removeprefix(" ") for number in block)


# --- one rule ---


def _parse_rule(lines: list[str], piece: _Piece, file: str) -> Rule | FileDefinition | Problem:
    from eqsat.language.grammar import parse_chunk
    from eqsat.language.lexer import Chunk, TokenError

    chunk = Chunk("\n".join(lines[piece.begin : piece.end]).rstrip(" \n"), piece.begin + 1)
    try:
        return replace(parse_chunk(chunk), documentation=piece.documentation, file=file)
    except TokenError as error:
        name = _NAME.search("\n" + chunk.text)
        return Problem(file, error.place, name.group(1) if name else "", str(error), lines[error.place.line - 1])
