"""Marks in a tree: strings that may hold special tokens, the ends that a part has to read, tokens by name or id."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from ...base.errors import ConstraintError, UnsupportedKeyword
from ...grammar.excluded_strings import Outcome
from ...grammar.expression import EMPTY, FAIL, Grammar, Node, Rule
from ...grammar.segments import MARKUP, Segment
from ...grammar.tokens import token_of
from ...vocabulary.vocabulary import token_spelling


@dataclass(frozen=True, slots=True)
class Context:
    """What a part stands in."""

    segment: Segment  # what its text is
    marker: Segment  # what the strings are that begin and separate its parts
    path: str
    ends: tuple[str, ...] = ()  # of the tag that it is the content of, which it has to read
    closing: Segment = MARKUP  # what those are


def spelled(grammar: Grammar, text: str) -> list[bytes]:
    """Markup as bytes: text, a special token, text, and so on. Of names of special tokens the longest counts."""
    names = sorted(filter(None, grammar.special_tokens), key=len, reverse=True)
    pieces = re.split(f"({'|'.join(map(re.escape, names))})", text) if names else [text]
    return [(grammar.token(piece) or b"") if i % 2 else piece.encode() for i, piece in enumerate(pieces)]


class Markup:
    """The marks of one tree in one grammar."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._spelled: dict[str, bytes] = {}

    def then_end(self, node: Node, context: Context) -> Node:
        return self._grammar.seq(node, self.ends(context))

    def ends(self, context: Context) -> Node:
        """One of the ends that a part has to read; nothing when there are none."""
        if not context.ends:
            return EMPTY
        marks = map(self.spell, context.ends)
        return reduce(self._grammar.alt, (self.marked(mark, context.closing.marked(mark)) for mark in marks))

    def marked(self, text: bytes, segment: Segment) -> Node:
        return self._grammar.segment(self._grammar.literal(text), segment) if text else EMPTY

    def token_id(self, token: str | int, context: Context) -> int:
        try:
            return token_of(self._grammar, f"<[{token}]>" if isinstance(token, int) else token)
        except UnsupportedKeyword:
            raise ConstraintError(f"the vocabulary has no token {token!r}", path=context.path, keyword="token") from None

    def spell(self, text: str) -> bytes:
        if text not in self._spelled:
            try:
                self._spelled[text] = b"".join(spelled(self._grammar, text))
            except UnicodeEncodeError:
                raise ConstraintError(f"{text!r} contains half of a surrogate pair") from None
        return self._spelled[text]

    def sought(self, text: str, context: Context) -> bytes:
        """A string to be looked for in text."""
        found = self.spell(text)
        if not found:
            reason = f"{text!r} cannot be looked for in text: it is empty, or a token that ends the output"
            raise ConstraintError(reason, path=context.path)
        return found

    def passed_over(self, without: Iterable[str | int] | None, rule: Rule, context: Context) -> dict[bytes, Outcome]:
        """Special tokens that may stand in text, which goes on behind them."""
        return {token: Outcome(self._grammar.call(rule), MARKUP) for token in self.tokens_in_text(without, context)}

    def tokens_in_text(self, without: Iterable[str | int] | None, context: Context) -> list[bytes]:
        if without is None:
            return []
        left_out = {self.token_id(token, context) for token in without} | self._grammar.end_tokens
        return [token_spelling(token) for token in sorted(set(self._grammar.special_tokens.values()) - left_out)]

    def exclusions(self, excludes: Iterable[str], context: Context) -> dict[bytes, Outcome]:
        return {self.sought(text, context): Outcome(FAIL, context.marker) for text in excludes}

    def endings(self, context: Context) -> dict[bytes, Outcome]:
        marks = (self.sought(text, context) for text in context.ends)
        return {mark: Outcome(EMPTY, context.closing.marked(mark)) for mark in marks}
