"""The text of a GBNF grammar as a tree, parsed with lark; errors that say where, what was found and what was expected.

Source: the grammar parser of llama.cpp (src/llama-grammar.cpp). A rule ends where its line ends, except inside parentheses,
after `::=` and after `|`. Beyond llama.cpp, names may contain `_` and a line may begin with the `|` that continues its rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, NoReturn

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.lark import PostLex

from ...base.errors import GrammarSyntaxError
from ...base.utf8 import MAX_CODE_POINT, SURROGATES, Ranges, invert, normalize
from ...grammar.stopwatch import look
from ..regex.parser import syntax_error

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
STRING: /"(?:[^"\\]|\\.)*"/s
CLASS: /\[(?:[^\]\\]|\\.)*\]/s
TOKEN: /!?<[^>\r\n]*>/
_NEWLINE: /[\r\n]+/
%ignore /[ \t]+/
%ignore /#[^\r\n]*/
"""


class RuleText(NamedTuple):
    """One rule as written."""

    name: Token
    tree: Tree[Token]


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
def _parser() -> Lark:
    return Lark(GBNF, parser="lalr", lexer="contextual", postlex=_LineEnds(), maybe_placeholders=True)


def parse(text: str) -> list[RuleText]:
    """The rules of a grammar in the order written. Raises `GrammarSyntaxError`."""
    try:
        tree = _parser().parse(text)
    except UnexpectedCharacters as error:
        index = error.pos_in_stream or 0
        raise syntax_error(text, _unreadable(text, index), index) from None
    except UnexpectedToken as error:
        raise _unexpected(text, error) from None
    return [RuleText(rule.children[0], rule.children[1]) for rule in tree.children]  # type: ignore[arg-type, union-attr]


# -- characters ----------------------------------------------------------------------------------------------------------

_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}


def string_text(text: str, token: Token) -> str:
    """What a STRING of `text` means. Raises `GrammarSyntaxError`."""
    index, end = _inside(token)
    code_points = []
    while index < end:
        code_point, after = _character(text, index)
        if SURROGATES[0] <= code_point <= SURROGATES[1]:
            raise syntax_error(text, f"U+{code_point:04X} is half of a character; write \\U and 8 hex digits", index)
        code_points.append(chr(code_point))
        index = after
    return "".join(code_points)


def class_ranges(text: str, token: Token) -> Ranges:
    """What a CLASS of `text` means. Raises `GrammarSyntaxError`."""
    index, end = _inside(token)
    negated = text[index] == "^"
    index += negated
    ranges = []
    while index < end:
        start = index
        low, index = _character(text, index)
        high = low
        if text[index] == "-" and index + 1 < end:  # before the bracket that closes, "-" is itself
            high, index = _character(text, index + 1)
        if high < low:
            raise syntax_error(
                text, f"the range {text[start:index]} is empty: its end comes before its beginning", start
            )
        ranges.append((low, high))
    if not ranges:
        raise syntax_error(text, f"the character class {token} is empty", _start(token))
    return invert(normalize(ranges)) if negated else normalize(ranges)


def _inside(token: Token) -> tuple[int, int]:
    """Where what is between the delimiters of a token begins and ends."""
    return _start(token) + 1, _start(token) + len(token) - 1


def _start(token: Token) -> int:
    assert token.start_pos is not None
    return token.start_pos


def _character(text: str, index: int) -> tuple[int, int]:
    """The code point at `index`, escaped or not, and the index after it."""
    if text[index] != "\\":
        return ord(text[index]), index + 1
    letter = text[index + 1]
    if letter in _ESCAPES:
        return ord(_ESCAPES[letter]), index + 2
    count = _HEX_DIGITS.get(letter)
    if count is None:
        raise syntax_error(text, f"unknown escape \\{letter}, expected one of {_known_escapes()}", index)
    end = index + 2 + count
    digits = text[index + 2 : end]
    if len(digits) < count or not set(digits) <= set("0123456789abcdefABCDEF"):
        raise syntax_error(text, f"\\{letter} must be followed by {count} hex digits", index)
    if int(digits, 16) > MAX_CODE_POINT:
        raise syntax_error(text, f"\\{letter}{digits} is beyond the last character, \\U0010FFFF", index)
    return int(digits, 16), end


def _known_escapes() -> str:
    return " ".join(f"\\{letter}" for letter in [*_ESCAPES, *_HEX_DIGITS])


# -- errors ----------------------------------------------------------------------------------------------------------------

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
    if token.type in _REPETITION and not _REPETITION & set(expected):
        return syntax_error(text, f"there is nothing before {found} that it could repeat", _start(token))
    return syntax_error(text, f"unexpected {found}, expected {_listed(expected)}", _start(token))


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


def fail_at(text: str, token: Token, reason: str) -> NoReturn:
    raise syntax_error(text, reason, _start(token))
