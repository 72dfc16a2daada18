"""What is wrong with a text that is no GBNF: where, what was found, and what was expected.

The notation is read by a few lines of code (gbnf_syntax.py). What may stand where they stop, lark tells, by the same notation as a
grammar of its own. It is asked only about texts that cannot be read: to build its tables takes longer than most compiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.lark import PostLex

from ...base.errors import GrammarSyntaxError
from ...grammar.stopwatch import look
from ..regex.parser import syntax_error
from .syntax_tree import Tree

GBNF = r"""
start: _NEWLINE? (rule (_NEWLINE rule)* _NEWLINE?)?
rule: NAME _DEFINED alternatives
alternatives: sequence ("|" sequence)*
sequence: item*
?item: STRING                       -> literal
     | CLASS                        -> char_class
     | "."                          -> any
     | NAME                         -> reference
     | TOKEN                        -> token
     | "(" alternatives ")"         -> group
     | item "*"                    -> star
     | item "+"                    -> plus
     | item "?"                    -> optional
     | item "{" INT "}"            -> exactly
     | item "{" INT "," [INT] "}"  -> between

_DEFINED: "::="
NAME: /[a-zA-Z0-9_-]+/
INT: /[0-9]+/
STRING: /"(?:[^"\\]++|\\.)*+"/s
CLASS: /\[(?:[^\]\\]++|\\.)*+\]/s
TOKEN: /!?<[^>\r\n]*>/
_NEWLINE: /[\r\n]+/
%ignore /[ \t]+/
%ignore /#[^\r\n]*/
"""


class _LineEnds(PostLex):
    """Drops the newlines that do not end a rule."""

    always_accept = ("_NEWLINE",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        depth, before, newline = 0, "", None
        for token in stream:
            look()
            if token.type == "_NEWLINE":
                newline = newline or token
                continue
            if newline is not None and depth == 0 and before not in ("VBAR", "_DEFINED") and token.type != "VBAR":
                yield newline
            depth += (token.type == "LPAR") - (token.type == "RPAR")
            before, newline = token.type, None
            yield token
        if newline is not None:
            yield newline


@lru_cache
def parser() -> Lark:
    """Reads the same texts as `gbnf_syntax.parse`, as the same trees."""
    return Lark(GBNF, parser="lalr", lexer="contextual", postlex=_LineEnds(), maybe_placeholders=True, tree_class=Tree)


def fault(text: str) -> GrammarSyntaxError:
    """What is wrong with a text that is no GBNF."""
    try:
        parser().parse(text)
    except UnexpectedCharacters as error:
        index = error.pos_in_stream or 0
        return syntax_error(text, _unreadable(text, index), index)
    except UnexpectedToken as error:
        return _unexpected(text, error)
    raise AssertionError(f"lark reads {text!r}")  # a test holds the two equal


_EXPRESSION = {"STRING", "CLASS", "DOT", "TOKEN", "LPAR"}
_REPETITION = {"STAR", "PLUS", "QMARK", "LBRACE"}
_WORDS = {
    "NAME": "a rule name", "INT": "a number", "_DEFINED": "::=", "_NEWLINE": "a new line", "VBAR": "|", "RPAR": ")",
    "COMMA": ",", "RBRACE": "}", "$END": "the end",
}  # fmt: skip


def _unexpected(text: str, error: UnexpectedToken) -> GrammarSyntaxError:
    token, expected = error.token, error.accepts or error.expected
    if token.type == "$END":
        return syntax_error(text, f"the grammar ends early, expected {_listed(expected)}", len(text.rstrip()))
    found = "this new line" if token.type == "_NEWLINE" else repr(str(token))
    start = token.start_pos or 0
    if token.type in _REPETITION and not _REPETITION & set(expected):
        return syntax_error(text, f"there is nothing before {found} that it could repeat", start)
    return syntax_error(text, f"unexpected {found}, expected {_listed(expected)}", start)


def _listed(expected: set[str]) -> str:
    words = ["an expression"] if expected >= _EXPRESSION else []
    hidden = {*_EXPRESSION, *_REPETITION, *({"NAME"} if words else ())}
    return " or ".join([*words, *sorted(_WORDS.get(name, name) for name in expected - hidden)])


def _unreadable(text: str, index: int) -> str:
    never_closed = {'"': "a string that is never closed", "[": "a character class that is never closed"}
    instead = {"'": "strings are written in double quotes", "<": "tokens are written <name> or <[id]>"}
    char = text[index]
    if char in never_closed:
        return never_closed[char]
    return f"unexpected {char!r}" + (f"; {instead[char]}" if char in instead else "")
