"""The text of a GBNF grammar as trees, one a rule. What is wrong with a text that is none, gbnf_faults.py tells.

Source: the grammar parser of llama.cpp (src/llama-grammar.cpp). A rule ends where its line ends, except inside parentheses,
after `::=` and after `|`. Beyond llama.cpp, names may contain `_` and a line may begin with the `|` that continues its rule.

    rule          NAME "::=" alternatives
    alternatives  sequence ("|" sequence)*              sequence: item*
    item          STRING CLASS "." NAME TOKEN "(" alternatives ")", and behind it any of * + ? {2} {2,} {2,4}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from ...base.utf8 import MAX_CODE_POINT, SURROGATES, Ranges, invert, normalize
from ...grammar.stopwatch import LOOK_EVERY, look
from ..regex.parser import syntax_error
from .syntax_tree import Token, Tree

_TOKENS = re.compile(
    r"""
    [ \t]* (?: \# [^\r\n]* )?
    (?: (?P<NAME> [a-zA-Z0-9_-]+ ) | (?P<DEFINED> ::= ) | (?P<NEWLINE> [\r\n]+ )
      | (?P<STRING> "(?:[^"\\]++|\\.)*+" ) | (?P<CLASS> \[(?:[^\]\\]++|\\.)*+\] ) | (?P<TOKEN> !?<[^>\r\n]*> )
      | (?P<SIGN> [.*+?|(){},] ) | (?P<END> \Z ) )
    """,
    re.VERBOSE | re.DOTALL,
)
_PLAIN = re.compile("[^\\\\\ud800-\udfff]+")  # characters of a string that stand for themselves
_VALUES = {"STRING": "literal", "CLASS": "char_class", "NAME": "reference", "TOKEN": "token"}
_REPETITIONS = {"*": "star", "+": "plus", "?": "optional"}
_END = "END"


class RuleText(NamedTuple):
    """One rule as written."""

    name: Token
    tree: Tree[Token]


class _NoGbnf(Exception):
    """The text is none."""


def parse(text: str) -> list[RuleText]:
    """The rules of a grammar in the order written. Raises `GrammarSyntaxError`."""
    try:
        return list(_rules(list(_without_inner_newlines(_tokens(text)))))
    except _NoGbnf:
        pass
    from .gbnf_faults import fault  # imports lark

    raise fault(text)


def _tokens(text: str) -> Iterator[Token]:
    """All tokens, the last one an END. A sign is of the type that it is itself."""
    end = 0
    while (match := _TOKENS.match(text, end)) is not None:
        kind, end = match.lastgroup or "", match.end()
        found = match[kind]
        yield Token(found if kind == "SIGN" else kind, found, match.start(kind))
        if kind == _END:
            return
    raise _NoGbnf


def _without_inner_newlines(tokens: Iterator[Token]) -> Iterator[Token]:
    """The tokens without those newlines that end no rule, and one of several."""
    depth, before, newline = 0, "", None
    for token in tokens:
        look()
        if token.type == "NEWLINE":
            newline = newline or token
            continue
        if newline is not None and depth == 0 and before not in ("|", "DEFINED") and token.type != "|":
            yield newline
        depth += (token.type == "(") - (token.type == ")")
        before, newline = token.type, None
        yield token


def _rules(tokens: list[Token]) -> Iterator[RuleText]:
    at = 1 if tokens[0].type == "NEWLINE" else 0
    while tokens[at].type != _END:
        if tokens[at].type != "NAME" or tokens[at + 1].type != "DEFINED":
            raise _NoGbnf
        name = tokens[at]
        tree, at = _alternatives(tokens, at + 2)
        yield RuleText(name, tree)
        if tokens[at].type == "NEWLINE":
            at += 1
        elif tokens[at].type != _END:
            raise _NoGbnf


def _alternatives(tokens: list[Token], at: int) -> tuple[Tree[Token], int]:
    """(tree, place behind it) of what begins at a place of the tokens; parentheses may be as deep as they are."""
    above: list[tuple[list[Tree[Token]], list[Tree[Token]]]] = []  # what the open parentheses stand in
    sequences: list[Tree[Token]] = []
    items: list[Tree[Token]] = []
    while True:
        look()
        token = tokens[at]
        at += 1
        if token.type in _VALUES:
            items.append(Tree(_VALUES[token.type], [token]))
        elif token.type == ".":
            items.append(Tree("any", []))
        elif token.type in _REPETITIONS and items:
            items[-1] = Tree(_REPETITIONS[token.type], [items[-1]])
        elif token.type == "{" and items:
            items[-1], at = _counted(items[-1], tokens, at)
        elif token.type == "(":
            above.append((sequences, items))
            sequences, items = [], []
        elif token.type == "|":
            sequences.append(Tree("sequence", items))
            items = []
        elif token.type == ")" and above:
            group: Tree[Token] = Tree("group", [Tree("alternatives", [*sequences, Tree("sequence", items)])])
            sequences, items = above.pop()
            items.append(group)
        elif above:
            raise _NoGbnf
        else:
            return Tree("alternatives", [*sequences, Tree("sequence", items)]), at - 1


def _counted(item: Tree[Token], tokens: list[Token], at: int) -> tuple[Tree[Token], int]:
    """(tree, place behind it) of an item with the number of its copies, which begins at a place of the tokens."""
    low, at = _number(tokens, at)
    if tokens[at].type == "}":
        return Tree("exactly", [item, low]), at + 1
    if tokens[at].type != ",":
        raise _NoGbnf
    high, at = (None, at + 1) if tokens[at + 1].type == "}" else _number(tokens, at + 1)
    if tokens[at].type != "}":
        raise _NoGbnf
    return Tree("between", [item, low, high]), at + 1


def _number(tokens: list[Token], at: int) -> tuple[Token, int]:
    token = tokens[at]
    if token.type != "NAME" or not (token.isascii() and token.isdigit()):
        raise _NoGbnf
    return Token("INT", token, token.start_pos), at + 1


# -- characters ----------------------------------------------------------------------------------------------------------

_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}


def string_text(text: str, token: Token) -> str:
    """What a STRING of `text` means. Raises `GrammarSyntaxError`."""
    index, end = _inside(token)
    pieces: list[str] = []
    while index < end:
        if len(pieces) % LOOK_EVERY == LOOK_EVERY - 1:
            look()
        plain = _PLAIN.match(text, index, end)
        if plain is not None:
            pieces.append(plain[0])
            index = plain.end()
            continue
        code_point, after = _character(text, index)
        if SURROGATES[0] <= code_point <= SURROGATES[1]:
            raise syntax_error(text, f"U+{code_point:04X} is half of a character; write \\U and 8 hex digits", index)
        pieces.append(chr(code_point))
        index = after
    return "".join(pieces)


def class_ranges(text: str, token: Token) -> Ranges:
    """What a CLASS of `text` means. Raises `GrammarSyntaxError`."""
    index, end = _inside(token)
    negated = text[index] == "^"
    index += negated
    ranges: set[tuple[int, int]] = set()
    count = 0
    while index < end:
        start, count = index, count + 1
        if count % LOOK_EVERY == 0:
            look()
        low, index = _character(text, index)
        high = low
        if text[index] == "-" and index + 1 < end:  # before the bracket that closes, "-" is itself
            high, index = _character(text, index + 1)
        if high < low:
            raise syntax_error(
                text, f"the range {text[start:index]} is empty: its end comes before its beginning", start
            )
        ranges.add((low, high))
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


def fail_at(text: str, token: Token, reason: str) -> NoReturn:
    raise syntax_error(text, reason, _start(token))
