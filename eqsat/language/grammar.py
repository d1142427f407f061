"""The grammar at work: the text of one rule comes in, its syntax tree goes out, or `TokenError` in words of ours.

`grammar.lark` is read once, at the first rule; until then nothing of lark is loaded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedToken
from lark.lexer import PatternStr

from eqsat.language.builder import Builder
from eqsat.language.errors import nearest
from eqsat.language.lexer import Chunk, RuleLexer, TokenError
from eqsat.language.syntax import Label, Place, Rule

# How a message names what may follow, in this order; the other tokens are shown as they are written.
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
# What makes an expression longer may follow any; that is no news.
_LENGTHENING = frozenset("+ - * / // % ** == != < <= >= in not and or if for ? [ (".split())


@dataclass(frozen=True, slots=True)
class _Parser:
    parse: Callable[[Chunk], Rule]
    builder: Builder
    words: Mapping[str, str]  # by terminal, the text of those that are always written the same


@functools.cache
def _parser() -> _Parser:
    text = resources.files("eqsat.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    builder = Builder()
    lark: Any = Lark(text, parser="lalr", lexer=RuleLexer, transformer=builder, keep_all_tokens=True, maybe_placeholders=False)
    words = {terminal.name: terminal.pattern.value for terminal in lark.terminals if isinstance(terminal.pattern, PatternStr)}
    return _Parser(lark.parse, builder, words)


def parse_chunk(chunk: Chunk) -> Rule:
    """The rule whose text `chunk` is. Its documentation and file are the caller's to add."""
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
    if "LABEL" in accepted:
        return TokenError(place, "a rule begins with `exact rule NAME:`, `real rule NAME:` or `finite rule NAME:`" + nearest(token, Label))
    if "NAME" in accepted and words.get(token.type, "").isalpha():
        return TokenError(place, f"`{token}` is a word of the language and no name")
    found = "" if token.type in ("NEWLINE", "$END") else f", found `{token}`"
    hint = "; compare with `==`" if token == "=" and "PLUS" in accepted else ""
    return TokenError(place, f"expected {_choice(accepted, words)}{found}{hint}")


def _choice(accepted: set[str], words: Mapping[str, str]) -> str:
    """What may follow, as a phrase: whole expressions before their parts, and what ends an expression before what lengthens it."""
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
