"""Parsing of one rule or `def` by the grammar: its syntax tree, or a `TokenError` with a message in
our own words.

`parse` imports this module, and with it lark, only when there is a rule to parse. The first rule
reads `grammar.lark`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedToken
from lark.lexer import PatternStr

from eqsat.frozen import frozen
from eqsat.language.builder import Builder
from eqsat.language.lexer import Chunk, RuleLexer, TokenError
from eqsat.language.problems import nearest
from eqsat.language.syntax import FileDefinition, Label, Place, Rule

# The phrases for tokens in messages, in this order. Other tokens are shown as written.
_PHRASES = {
    "INTEGER": "an expression",
    "DTYPE": "a name or a data type",
    "NAME": "a name",
    "RULE_NAME": "the name of the rule, one blank behind `rule`",
    "FORWARD": "`=>` or `<=>`",
    "WHERE": "`where`",
    "EXACT_IF": "`exact if`",
    "TEST": "`test`",
    "NEWLINE": "the end of the line",
    "$END": "the end of the rule",
}
# Symbols that may follow any expression, so naming them would not help the reader.
_LENGTHENING = frozenset("+ - * / // % ** == != < <= >= in not and or if for ? [ (".split())


@frozen
class _Parser:
    parse: Callable[[Chunk], Rule | FileDefinition]
    builder: Builder
    words: Mapping[str, str]  # by terminal with a fixed text, that text


@functools.cache
def _parser() -> _Parser:
    text = resources.files("eqsat.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    builder = Builder()
    lark: Any = Lark(text, parser="lalr", lexer=RuleLexer, transformer=builder, keep_all_tokens=True, maybe_placeholders=False)
    words = {terminal.name: terminal.pattern.value for terminal in lark.terminals if isinstance(terminal.pattern, PatternStr)}
    return _Parser(lark.parse, builder, words)


def parse_chunk(chunk: Chunk) -> Rule | FileDefinition:
    """The rule or `def` with the text `chunk`. The caller adds its documentation and file."""
    parser = _parser()
    parser.builder.begin(chunk)
    try:
        return parser.parse(chunk)
    except UnexpectedToken as error:
        raise _explained(error, chunk, parser.words) from None


def _explained(error: UnexpectedToken, chunk: Chunk, words: Mapping[str, str]) -> TokenError:
    token: Any = error.token
    parser: Any = error.interactive_parser
    accepted: set[str] = parser.accepts()
    place = Place(token.line, token.column, len(token))
    if token.type == "$END":
        last = chunk.text.split("\n")
        place = Place(chunk.line + len(last) - 1, len(last[-1]) + 1)
    if "LABEL" in accepted and token.type == "$END":
        return TokenError(place, "the rule that `for` belongs to follows in the next line")
    if "LABEL" in accepted:
        return TokenError(place, "a rule begins with `exact rule NAME:`, `real rule NAME:` or `finite rule NAME:`" + nearest(token, Label))
    if "NAME" in accepted and words.get(token.type, "").isalpha():
        return TokenError(place, f"`{token}` is a word of the language and no name")
    found = "" if token.type in ("NEWLINE", "$END") else f", found `{token}`"
    hint = "; compare with `==`" if token == "=" and "PLUS" in accepted else ""
    hint = "; a list is written without `..` here" if token == ".." and "INTEGER" in accepted else hint
    return TokenError(place, f"expected {_choice(accepted, words)}{found}{hint}")


def _choice(accepted: set[str], words: Mapping[str, str]) -> str:
    """A phrase for the tokens that may follow. A whole expression stands for its parts, and tokens
    that end an expression hide those that lengthen it.
    """
    if accepted - {"LPAR"} == {"DTYPE"}:
        return "a capital letter, which stands for an operator"
    for start in ("INTEGER", "DTYPE", "NAME"):
        if start in accepted:
            return _PHRASES[start]
    if "FORWARD" in accepted:
        accepted = accepted - {"NEWLINE"}
    if "NEWLINE" in accepted:
        accepted = accepted - {"$END"}
    symbols = {words[name] for name in accepted if name in words}
    if "+" in symbols:
        symbols -= _LENGTHENING | ({">"} if "<" in symbols else set())
    choice = [f"`{symbol}`" for symbol in sorted(symbols)] + [phrase for name, phrase in _PHRASES.items() if name in accepted]
    return f"{', '.join(choice[:-1])} or {choice[-1]}" if len(choice) > 1 else choice[0]
