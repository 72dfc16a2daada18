"""Terminals of lark's notation as regular expressions: strings, patterns with flags, ranges, and what is built of them.

A terminal is one set of texts, built as one tree, so that an assertion sees the whole terminal and nothing around it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from ...base.errors import ConstraintError, ConstraintLimit, GrammarSyntaxError, UnsupportedKeyword
from ...base.utf8 import MAX_CODE_POINT, SURROGATES, normalize
from ...grammar.components import components, is_recursive
from ...grammar.source import Limits
from ...grammar.stopwatch import LOOK_EVERY, hold, look
from ..regex.charsets import ignoring_case
from ..regex.lark_dialect import FLAGS, parse_lark_regex
from ..regex.parser import line_and_column, syntax_error
from ..regex.substrings import structured_regex
from ..regex.tree import Alternate, Both, CharSet, Complement, Concat, Repeat
from ..regex.tree import Tree as Pattern
from .lark_common import LIBRARIES
from .lark_syntax import fail_at, parse
from .syntax_tree import Token, Tree

_ESCAPES = {
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "f": "\f",
    "v": "\v",
    "b": "\b",
    "a": "\a",
    "0": "\0",
    "\\": "\\",
    '"': '"',
    "'": "'",
    "/": "/",
}
_WORD = 8  # bytes of a place in a list
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_SURROGATE_PAIR = re.compile(r"\\u([Dd][89ABab][0-9A-Fa-f]{2})\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})")
_REPEATS: dict[str, tuple[int, int | None]] = {"star": (0, None), "plus": (1, None), "optional": (0, 1)}
_NOT_IN_TERMINALS = {
    "json": "%json",
    "block": "%lark",
    "token": "a token",
    "subgrammar": "another grammar",
    "parametric": "a parameter",
    "use": "a template",
}


class Terminals:
    """The terminals of one grammar text by name, each built once. `bodies`: as written; `known`: built already (imported)."""

    def __init__(
        self, text: str, bodies: Mapping[str, Tree[Token]], limits: Limits, known: Mapping[str, Pattern] | None = None
    ) -> None:
        self.text, self.limits = text, limits
        self.patterns: dict[str, Pattern] = dict(known or {})
        calls = {name: [called for called in _called(body) if called in bodies] for name, body in bodies.items()}
        for component in components(calls):
            if is_recursive(component, calls):
                body = bodies[component[0]]
                called = next(token for token in _uses(body) if token in component)
                line, column = line_and_column(text, called.start_pos or 0)
                raise ConstraintError(
                    "the terminal is made of itself", path=component[0], line=line, column=column,
                    instead="a rule, in lower case, which may call itself",
                )  # fmt: skip
            self.patterns[component[0]] = self.pattern(bodies[component[0]])

    def pattern(self, tree: Tree[Token]) -> Pattern:
        """The texts of an expression in which all names are terminals. Raises `ConstraintError` with the place."""
        look()
        built: dict[int, Pattern] = {}
        nesting: dict[int, int] = {}
        for part in tree.iter_subtrees():
            below = [child for child in part.children if isinstance(child, Tree)]
            adds = part.data not in ("alternatives", "alternative", "conjunction", "sequence")
            nesting[id(part)] = depth = max((nesting[id(child)] for child in below), default=0) + adds
            if depth > self.limits.nesting:
                raise ConstraintLimit("a terminal nests too deep", limit="nesting", value=self.limits.nesting)
            built[id(part)] = self._built(part, [built[id(child)] for child in below])
        return built[id(tree)]

    def _built(self, tree: Tree[Token], parts: list[Pattern]) -> Pattern:
        kind = str(tree.data)
        if kind in ("alternatives", "conjunction"):
            return (
                parts[0]
                if len(parts) == 1
                else Alternate(tuple(parts))
                if kind == "alternatives"
                else Both(tuple(parts))
            )
        if kind in ("sequence", "group"):
            return parts[0] if len(parts) == 1 else Concat(tuple(parts))
        if kind == "alternative":
            return self._alternative(tree, parts)
        if kind == "negation":
            return Complement(parts[0])
        if kind in _REPEATS:
            return Repeat(parts[0], *_REPEATS[kind])
        if kind == "maybe":
            return Repeat(parts[0], 0, 1)
        token = tree.children[-1] if kind in ("counted", "structured", "json", "block") else tree.children[0]
        assert isinstance(token, Token)
        if kind == "counted":
            return Repeat(parts[0], *count_of(self.text, token, self.limits))
        return self.value(tree, token)

    def _alternative(self, tree: Tree[Token], parts: list[Pattern]) -> Pattern:
        alias, condition = tree.children[-2:]
        if isinstance(condition, Token):
            fail_at(self.text, condition, "%if belongs to rules with a parameter, a terminal has none")
        if isinstance(alias, Token):
            fail_at(self.text, alias, "-> names an alternative of a rule, a terminal has no such names")
        return parts[0]

    def value(self, tree: Tree[Token], token: Token) -> Pattern:
        """A leaf that is a terminal by itself."""
        kind = str(tree.data)
        if kind == "literal":
            return literal_pattern(self.text, token)
        if kind == "regexp":
            return regexp_pattern(self.text, token, self.limits)
        if kind == "range":
            low, high = (one_character(self.text, end) for end in tree.children if isinstance(end, Token))
            if low > high:
                first = next(end for end in tree.children if isinstance(end, Token))
                fail_at(self.text, first, f"the range {low!r}..{high!r} is empty: its end comes before its beginning")
            return CharSet(normalize([(ord(low), ord(high))]))
        if kind == "structured":
            return self._structured(token)
        if kind == "reference":
            if token.type == "RULE":
                fail_at(
                    self.text, token, f"{str(token)!r} is a rule; a terminal is made of strings, patterns and terminals"
                )
            if token not in self.patterns:
                fail_at(self.text, token, f"there is no terminal {str(token)!r}")
            return self.patterns[str(token)]
        fail_at(self.text, token, f"a terminal cannot contain {_NOT_IN_TERMINALS[kind]}")

    def _structured(self, token: Token) -> Pattern:
        try:
            return structured_regex(json_value(self.text, token), self.limits)
        except ConstraintLimit:
            raise
        except GrammarSyntaxError:
            raise
        except ConstraintError as error:
            line, column = line_and_column(self.text, token.start_pos or 0)
            raise ConstraintError(
                error.reason, keyword=error.keyword, instead=error.instead, line=line, column=column
            ) from None


def _called(tree: Tree[Token]) -> list[str]:
    return list(map(str, _uses(tree)))


def _uses(tree: Tree[Token]) -> Iterator[Token]:
    """The names in an expression."""
    parts = (part.children[0] for part in tree.iter_subtrees() if part.data == "reference")
    return (token for token in parts if isinstance(token, Token))


@lru_cache
def library_terminals(library: str) -> Mapping[str, Pattern]:
    """What `%import library.NAME` names."""
    text = LIBRARIES[library]
    bodies = {str(tree.children[0]): tree.children[-1] for tree in parse(text)}
    return Terminals(text, bodies, Limits()).patterns


# -- leaves -------------------------------------------------------------------------------------------------------------


def literal_pattern(text: str, token: Token) -> Pattern:
    """`"text"` or `"text"i`."""
    characters = literal_text(text, token)
    hold(2 * _WORD * len(characters))
    own = {char: ((ord(char), ord(char)),) for char in dict.fromkeys(characters)}
    sets = {char: CharSet(ignoring_case(ranges, False) if token.endswith("i") else ranges) for char, ranges in own.items()}
    return Concat(tuple(sets[char] for char in characters))


def literal_text(text: str, token: Token) -> str:
    """What a STRING means, with its escapes. Raises `GrammarSyntaxError`."""
    start = token.start_pos or 0
    index, end = start + 1, start + len(token.removesuffix("i")) - 1
    characters: list[str] = []
    while index < end:
        if len(characters) % LOOK_EVERY == LOOK_EVERY - 1:
            look()
        if text[index] != "\\":
            plain = text.find("\\", index, end)
            characters.append(text[index : plain if plain > 0 else end])
            index += len(characters[-1])
            continue
        if pair := _SURROGATE_PAIR.match(text, index, end):  # as in JSON
            characters.append(bytes.fromhex(pair[1] + pair[2]).decode("utf-16-be"))
            index = pair.end()
            continue
        letter, count = text[index + 1], _HEX_DIGITS.get(text[index + 1], 0)
        digits = text[index + 2 : index + 2 + count]
        if letter in _ESCAPES:
            characters.append(_ESCAPES[letter])
        elif count == 0:
            known = " ".join(f"\\{one}" for one in [*_ESCAPES, *_HEX_DIGITS])
            raise syntax_error(text, f"unknown escape \\{letter}, expected one of {known}", index)
        elif index + 2 + count > end or not set(digits) <= set("0123456789abcdefABCDEF"):
            raise syntax_error(text, f"\\{letter} must be followed by {count} hex digits", index)
        elif int(digits, 16) > MAX_CODE_POINT or SURROGATES[0] <= int(digits, 16) <= SURROGATES[1]:
            raise syntax_error(text, f"\\{letter}{digits} is no character", index)
        else:
            characters.append(chr(int(digits, 16)))
        index += 2 + count
    return "".join(characters)


def one_character(text: str, token: Token) -> str:
    """The code point of an end of a range."""
    characters = literal_text(text, token)
    if token.endswith("i") or len(characters) != 1:
        fail_at(text, token, "an end of a range is one character without flags")
    return characters


def regexp_pattern(text: str, token: Token, limits: Limits) -> Pattern:
    """`/pattern/flags`. Errors tell the place in the grammar, not in the pattern."""
    pattern, _, flags = token[1:].rpartition("/")
    unknown = [flag for flag in flags if flag not in FLAGS]
    if unknown:
        fail_at(text, token, f"there is no flag {unknown[0]!r} of patterns, expected i, m, s, u or x")
    if len(pattern) > limits.pattern_characters:
        raise ConstraintLimit(
            f"a pattern of {len(pattern)} characters", limit="pattern_characters", value=limits.pattern_characters
        )
    try:
        return parse_lark_regex(pattern, flags, limits)
    except GrammarSyntaxError as error:
        at = (token.start_pos or 0) + 1 + (error.column or 1) - 1
        raise syntax_error(text, error.reason.split("\n")[0], at) from None
    except UnsupportedKeyword as error:
        line, column = line_and_column(text, (token.start_pos or 0) + (error.column or 1))
        raise UnsupportedKeyword(
            error.reason, keyword=error.keyword, instead=error.instead, line=line, column=column
        ) from None


def count_of(text: str, token: Token, limits: Limits) -> tuple[int, int | None]:
    """`{2}`, `{2,}`, `{,4}`, `{2,4}`, `~2`, `~2..4`."""
    body = token.strip("{}~ \t").replace("..", ",") if token.startswith("~") else token[1:-1]
    ends = [end.strip() for end in body.split(",")]
    if len(ends) > 2 or not any(ends) or not all(end.isdigit() or not end for end in ends):
        fail_at(text, token, f"{str(token)!r} is no number of repetitions")
    for end in ends:
        if len(end.lstrip("0")) > len(str(limits.repetition)) or int(end or 0) > limits.repetition:
            line, _ = line_and_column(text, token.start_pos or 0)
            raise ConstraintLimit(f"line {line}: {end[:20]} repetitions", limit="repetition", value=limits.repetition)
    low = int(ends[0] or 0)
    high = int(ends[-1]) if ends[-1] else None
    if high is not None and high < low:
        fail_at(text, token, f"at least {low} but at most {high} copies is impossible")
    return low, high


def json_value(text: str, token: Token) -> object:
    """A JSON object that belongs to the notation itself, which is never deep."""
    try:
        return json.loads(token)
    except RecursionError:
        fail_at(text, token, "brackets nested too deep for an option")
    except ValueError as error:
        at = (token.start_pos or 0) + getattr(error, "pos", 0)
        raise syntax_error(text, f"no JSON: {getattr(error, 'msg', error)}", at) from None
