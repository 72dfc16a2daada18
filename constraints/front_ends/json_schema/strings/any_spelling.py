"""JSON strings in every spelling: each character as itself, where JSON allows that, or as any of its escapes.

What is remembered while a text is written (names that must not come twice, items that must differ) is compared byte by byte, so it
keeps the one canonical spelling; `canonical` writes that.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....base.utf8 import Ranges, intersect
from ....grammar.expression import EMPTY, FAIL, Grammar, Node
from ....grammar.source import Limits
from ..documents.values import scalar_text
from .code_units import four_digits, numbered
from .text import LITERAL, JsonText

_SHORT = {0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r", 0x22: '"', 0x2F: "/", 0x5C: "\\"}


class AnySpelling(JsonText):
    """Builds the texts of strings with any escapes: RFC 8259, 7."""

    notation = "json, any escapes"

    def __init__(self, grammar: Grammar, whitespace: str, limits: Limits) -> None:
        self._canonical = JsonText(grammar, whitespace, limits)
        self._characters: dict[str, Node] = {}
        super().__init__(grammar, whitespace, limits)

    @property
    def canonical(self) -> JsonText:
        return self._canonical

    def unit(self, ranges: Ranges) -> Node:
        """The texts of one character out of a set of code points, in every spelling."""
        key, memo = ("any spelling", ranges), self.grammar.memo
        if key not in memo:
            escapes = self.grammar.seq(self.grammar.literal("\\"), self._any_escape(ranges))
            memo[key] = self.grammar.alt(self.grammar.chars(intersect(ranges, LITERAL)), escapes)
        return memo[key]

    def bodies(self, texts: Iterable[str]) -> Node:
        """The texts of given strings without their quotes, as a prefix tree of characters."""
        distinct = list(dict.fromkeys(texts))
        if len(distinct) == 1:
            return self.grammar.seq(*map(self._character, distinct[0]))
        children: list[dict[str, int]] = [{}]
        ends: set[int] = set()
        for text in distinct:
            at = 0
            for char in text:
                following = children[at].get(char)
                if following is None:
                    following = children[at][char] = len(children)
                    children.append({})
                at = following
            ends.add(at)
        nodes: dict[int, Node] = {}
        for at in reversed(range(len(children))):  # a place comes before those behind it
            ways = (self.grammar.seq(self._character(char), nodes.pop(child)) for char, child in children[at].items())
            nodes[at] = self.grammar.alt(EMPTY if at in ends else FAIL, *ways)
        return nodes[0]

    def name(self, name: str) -> Node:
        """The texts of a key known beforehand."""
        return self.string(self.bodies([name]))

    def other_name(self, known: Iterable[str]) -> Node:
        """The texts of a key that is none of `known`, in canonical spelling because keys are remembered."""
        return self._canonical.other_name(known)

    def scalars(self, values: Iterable[object], digits: int) -> Node:
        """The texts of given values that are neither arrays nor objects."""
        strings, others = [], []
        for value in values:
            strings.append(value) if isinstance(value, str) else others.append(scalar_text(value, digits).encode())
        return self.grammar.alt(self.string(self.bodies(strings)) if strings else FAIL, self.grammar.words(others))

    def _character(self, char: str) -> Node:
        known = self._characters.get(char)
        if known is None:
            code = ord(char)
            known = self.unit(((code, code),))
            if 0xD800 <= code <= 0xDFFF:  # has no other spelling
                known = self.grammar.seq(self.grammar.literal("\\"), four_digits(self.grammar, ((code, code),)))
            self._characters[char] = known
        return known

    def _any_escape(self, ranges: Ranges) -> Node:
        """The bytes that may follow the backslash of an escape."""
        short = [(ord(char), ord(char)) for code, char in _SHORT.items() if any(low <= code <= high for low, high in ranges)]
        return self.grammar.alt(self.grammar.bytes_in(short) if short else FAIL, *numbered(self.grammar, ranges))
