"""JSON strings in more spellings than the canonical one, for grammars that say which escapes they take.

Source: llguidance, docs/json_schema.md, `json_allowed_escapes` and `json_allow_general_unicode_escapes`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from ....base.utf8 import ALL, Ranges, intersect, normalize
from ....grammar.expression import FAIL, Grammar, Node
from ....grammar.source import Limits
from .code_units import numbered
from .text import LITERAL, SHORT_ESCAPES, JsonText

_CONTROLS = normalize([(0x00, 0x1F), (0x7F, 0x7F)])


class Spellings(Enum):
    """Which characters may be spelled `\\uXXXX`."""

    NEEDED = "those that have no other spelling, in this one"
    CONTROLS = "control characters"
    ALL = "all"


class EscapedText(JsonText):
    """Strings with some escapes. allowed: the letters that may stand behind a backslash."""

    def __init__(self, grammar: Grammar, whitespace: str, limits: Limits, allowed: str, spellings: Spellings) -> None:
        self._allowed, self._spellings = allowed, spellings
        self.notation = f"json {''.join(sorted(allowed))} {spellings.name}"
        super().__init__(grammar, whitespace, limits)

    def unit(self, ranges: Ranges) -> Node:
        return self._unit(ranges, self._spellings)

    def pattern_unit(self, ranges: Ranges) -> Node:
        """One character of what a pattern matches: not in all spellings."""
        return self._unit(ranges, Spellings.CONTROLS if self._spellings is Spellings.ALL else self._spellings)

    def other_name(self, known: Iterable[str]) -> Node:
        """A key that is none of `known` in any spelling."""
        if self._spellings is not Spellings.ALL:
            return super().other_name(known)
        names = (self.grammar.seq(*(self.unit(((ord(char), ord(char)),)) for char in name)) for name in known)
        return self.grammar.key(self.grammar.without(self.any_body, self.grammar.alt(*names)))

    def _unit(self, ranges: Ranges, spellings: Spellings) -> Node:
        key, grammar = ("unit", self._allowed, spellings, ranges), self.grammar
        if key not in grammar.memo:
            short = {code: letter for code, letter in SHORT_ESCAPES.items() if letter in self._allowed}
            letters = [(ord(letter),) * 2 for code, letter in short.items() if intersect(ranges, ((code, code),))]
            escapes = [grammar.bytes_in(letters)] if letters else []
            if "u" in self._allowed:
                cases = "x" if spellings is Spellings.NEEDED else "xX"
                escapes += numbered(grammar, intersect(ranges, _spelled_by_number(spellings, set(short))), cases)
            escaped = grammar.seq(grammar.literal("\\"), grammar.alt(*escapes)) if escapes else FAIL
            grammar.memo[key] = grammar.alt(grammar.chars(intersect(ranges, LITERAL)), escaped)
        return grammar.memo[key]


def _spelled_by_number(spellings: Spellings, short: set[int]) -> Ranges:
    if spellings is Spellings.ALL:
        return ALL
    if spellings is Spellings.CONTROLS:
        return _CONTROLS
    return normalize((code, code) for code in range(0x20) if code not in short)
