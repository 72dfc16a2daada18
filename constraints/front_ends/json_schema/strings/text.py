"""JSON strings and white space as grammar nodes, in the canonical spelling."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Final

from ....base.errors import ConstraintError
from ....base.utf8 import ALL, Ranges, intersect, invert, normalize
from ....grammar.expression import EMPTY, FAIL, Event, Grammar, Kind, Node
from ....grammar.source import Limits
from ...regex.regex import lower_pattern
from ..documents.values import scalar_text, string_text

JSON_SPACE: Ranges = ((0x09, 0x0A), (0x0D, 0x0D), (0x20, 0x20))
MAX_SPACE: Final = 20  # characters of white space between two tokens under whitespace="flexible"
AUTO: Final = "flexible"  # what whitespace="auto" means: it cost trained models least of their answers (benchmarks/answers.py)
_quoted: Final = json.encoder.encode_basestring  # what `string_text` begins with
_QUOTE: Final = b'"'
SHORT_ESCAPES: Final = {0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r", 0x22: '"', 0x5C: "\\"}
_ESCAPED: Final = normalize([(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)])
LITERAL: Final = invert(_ESCAPED)  # characters that stand for themselves


class JsonText:
    """Builds the texts of strings, keys and gaps between tokens."""

    notation = "json"
    constants: ClassVar[Mapping[bool | None, str]] = {None: "null", False: "false", True: "true"}

    def __init__(self, grammar: Grammar, whitespace: str, limits: Limits) -> None:
        self.grammar = grammar
        self.values: JsonText = self  # for strings that are not keys, where they have other spellings
        self.any_character = self.unit(ALL)
        self.any_body = grammar.repeat(self.any_character)
        self._quote = grammar.literal(_QUOTE)
        self._key_end = grammar.mark(_QUOTE, Event.KEY_CLOSE)
        self._other_body = grammar.seq(self.any_body, self._key_end)
        self._names: dict[str, Node] = {}
        self._spelled: dict[str, bytes] = {}  # names with their quotes
        self._members: dict[tuple[str, Node], Node] = {}
        self._behind_names: dict[Node, Node] = {}  # the colon and a value
        self._other_names: dict[frozenset[str], Node] = {}
        self.whitespace = AUTO if whitespace == "auto" else whitespace
        self.gap = self._gap(limits)  # between two tokens
        self.margin = self.gap if whitespace == "flexible" else EMPTY  # before the whole text; behind it nothing comes
        behind = " " if self.whitespace == "spaced" else ""
        self.comma = grammar.seq(grammar.literal("," + behind), self.gap)
        self.colon = grammar.seq(self.gap, grammar.literal(":" + behind), self.gap)
        self._is_spaced = grammar.kind(self.colon) is not Kind.LITERAL

    @property
    def canonical(self) -> JsonText:
        """Builds the same texts with one spelling for each string."""
        return self

    def unit(self, ranges: Ranges) -> Node:
        """The texts of one character out of a set of code points, escaped where JSON requires it."""
        key, memo = ("unit", ranges), self.grammar.memo
        known = memo.get(key)
        if known is None:
            literal, escaped = _split(ranges)
            known = memo[key] = self.grammar.alt(self.grammar.chars(literal), self._escaped(escaped))
        return known

    def pattern_unit(self, ranges: Ranges) -> Node:
        """One character of what a pattern or format matches."""
        return self.unit(ranges)

    def string(self, body: Node) -> Node:
        return self.grammar.seq(self._quote, body, self._quote)

    def body(self, text: str) -> bytes:
        """The text of a given string, without its quotes."""
        return string_text(text)[1:-1].encode()

    def bodies(self, texts: Iterable[str]) -> Node:
        """The texts of given strings, without their quotes."""
        return self.grammar.words(map(self.body, texts))

    def scalars(self, values: Iterable[Any], digits: int) -> Node:
        """The texts of given values that are neither arrays nor objects."""
        return self.grammar.words(self.scalar(value, digits).encode() for value in values)

    def scalar(self, value: Any, digits: int) -> str:
        """The text of a given value that is neither array nor object."""
        if value is None or isinstance(value, bool):
            return self.constants[value]
        return scalar_text(value, digits)

    def name(self, name: str) -> Node:
        """The text of a key known beforehand."""
        node = self._names.get(name)
        if node is None:
            quoted: str = _quoted(name)
            spelled = self._spelled[name] = (quoted if quoted.isascii() else string_text(name)).encode()
            node = self._names[name] = self.grammar.literal(spelled)
        return node

    def member(self, name: str, value: Node) -> Node:
        """The texts of a key known beforehand and its value; FAIL without a value."""
        node = self._members.get((name, value))
        if node is None:
            node = self._members[name, value] = self._member(self.name(name), value)
        return node

    def _member(self, name: Node, value: Node) -> Node:
        if not self._is_spaced or value == FAIL:
            return self.grammar.seq(name, self.colon, value)
        behind = self._behind_names.get(value)
        if behind is None:
            behind = self._behind_names[value] = self.grammar.seq(self.colon, value)
        return self.grammar.pair(name, behind)

    def other_name(self, known: Iterable[str]) -> Node:
        """The texts of a key that is none of `known`, marked so that the object does not get it twice."""
        known = list(known)
        names = frozenset(known)
        node = self._other_names.get(names)
        if node is None:
            for name in known:
                if name not in self._names:
                    self.name(name)
            written = names if "".join(known).isascii() else {name for name in names if not _has_surrogate(name)}
            body = self.grammar.unlisted(self._other_body, map(self._spelled.__getitem__, written), len(_QUOTE))
            node = self._other_names[names] = self.grammar.mark(_QUOTE, Event.KEY_OPEN, body)
        return node

    def _escaped(self, ranges: Ranges) -> Node:
        """The texts of characters that need an escape, as bytes and not as `chars`: they are no body worth tables."""
        key, memo = ("escaped", ranges), self.grammar.memo
        if key not in memo:
            memo[key] = self._escapes({code for low, high in ranges for code in range(low, high + 1)})
        return memo[key]

    def _escapes(self, codes: set[int]) -> Node:
        """A backslash and what follows it. Alternatives begin with different bytes, which UNLISTED keys rely on."""
        short = [(ord(char), ord(char)) for code, char in SHORT_ESCAPES.items() if code in codes]
        long = {code for code in codes if code < 0x20 and code not in SHORT_ESCAPES}
        grammar = self.grammar
        rows = []
        for row in (0, 1):
            digits = [(ord(f"{code & 15:x}"),) * 2 for code in sorted(long) if code >> 4 == row]
            if digits:
                rows.append(grammar.seq(grammar.literal(f"{row}"), grammar.bytes_in(digits)))
        numbered = grammar.seq(grammar.literal("u00"), grammar.alt(*rows)) if rows else FAIL
        if not short and not rows:
            return FAIL
        return grammar.seq(grammar.literal("\\"), grammar.alt(*([grammar.bytes_in(short)] if short else []), numbered))

    def _gap(self, limits: Limits) -> Node:
        if self.whitespace in ("compact", "spaced"):
            return EMPTY
        grammar = self.grammar
        if self.whitespace == "flexible":
            return grammar.repeat(grammar.chars(JSON_SPACE), 0, MAX_SPACE)
        return lower_pattern(grammar, self.whitespace, dialect="ecma", full=True, unit=grammar.chars, limits=limits)


class PythonText(JsonText):
    """Builds the texts of values as Python literals: strings in double quotes and numbers are spelled as in JSON."""

    notation = "python"
    constants: ClassVar[Mapping[bool | None, str]] = {None: "None", False: "False", True: "True"}


class BareText(JsonText):
    """Builds the texts of strings as they are, without quotes and escapes. For schemas of strings only."""

    notation = "bare"

    def unit(self, ranges: Ranges) -> Node:
        """One character of a string out of a set of code points."""
        return self.grammar.chars(ranges)

    def string(self, body: Node) -> Node:
        return body

    def body(self, text: str) -> bytes:
        return self.scalar(text, 0).encode()

    def scalar(self, value: Any, digits: int) -> str:
        """A given string. Raises ConstraintError for one that has no UTF-8 form."""
        assert isinstance(value, str)
        if _has_surrogate(value):
            reason = f"{value!r} contains half of a surrogate pair, which cannot be written without an escape"
            raise ConstraintError(reason)
        return value


@lru_cache(maxsize=4096)
def _split(ranges: Ranges) -> tuple[Ranges, Ranges]:
    """The characters of a set that stand for themselves, and those that need an escape."""
    return intersect(ranges, LITERAL), intersect(ranges, _ESCAPED)


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and any(chr(0xD800) <= char <= chr(0xDFFF) for char in text)
