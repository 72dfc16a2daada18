"""Text up to the first of some strings, by the automaton of Aho and Corasick ("Efficient string matching", 1975).

Its states are the beginnings of those strings; each becomes one rule, which reads one character and calls the next. The
state of the empty beginning repeats all characters with which no string begins, so plain text is a body: masks of its
states are found once for a vocabulary and shared. A search for the complement of "contains one of these" would find the same
automaton one product at a time, without bodies.

Special tokens are no text. A string with one is followed as text up to there; the token itself leaves no doubt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..base.errors import ConstraintLimit
from ..base.utf8 import ALL, Ranges, intersect, invert, normalize
from ..vocabulary.vocabulary import TOKEN_OPEN
from .expression import EMPTY, Grammar, Node, Rule
from .segments import Segment
from .source import Limits


class Outcome(NamedTuple):
    """What follows a string that has been found in a text."""

    after: Node  # what follows the string; FAIL when it may not occur
    marker: Segment | None  # what the string is


class Word(NamedTuple):
    """A string to look for."""

    text: str  # up to the first special token
    rest: bytes  # from there
    outcome: Outcome


def text_until(
    grammar: Grammar, rule: Rule, outcomes: Mapping[bytes, Outcome], at_end: Node, segment: Segment | None, limits: Limits
) -> Node:
    """Text up to the first of some strings, that string, and its outcome; or text without any of them, and `at_end`.

    outcomes: by string, spelled as `Grammar.token` spells special tokens. `rule` is defined as the result, so that outcomes
    may call it. The text belongs to `segment`; without segments no parser can tell it from what follows.
    """
    words = [_word(spelled, outcome) for spelled, outcome in outcomes.items()]
    if not words:
        text = grammar.repeat(grammar.chars(ALL))
        text = grammar.seq(text if segment is None else grammar.segment(text, segment), at_end)
        grammar.define(rule, text)
        return text
    _Scan(grammar, rule, words, at_end, segment, limits).define()
    return grammar.call(rule)


def _word(spelled: bytes, outcome: Outcome) -> Word:
    text, token, rest = spelled.partition(TOKEN_OPEN)
    return Word(text.decode(), token + rest, outcome)


class _Scan:
    """Defines one rule for each beginning of a word."""

    def __init__(
        self, grammar: Grammar, rule: Rule, words: list[Word], at_end: Node, segment: Segment | None, limits: Limits
    ) -> None:
        self._grammar, self._words, self._at_end, self._segment = grammar, words, at_end, segment
        self._alphabet = sorted({char for word in words for char in word.text})
        self._whole = {word.text: word for word in words if not word.rest}
        beginnings = sorted({word.text[:i] for word in words for i in range(len(word.text) + bool(word.rest))} - {""})
        if len(beginnings) * len(self._alphabet) > limits.nodes:
            raise ConstraintLimit("strings to look for in text", limit="nodes", value=limits.nodes)
        self._rules = {
            "": rule,
            **{beginning: grammar.rule(f"text, perhaps {beginning!r}") for beginning in beginnings},
        }
        self._others = invert(normalize((ord(char), ord(char)) for char in self._alphabet))
        self._longest = max((len(word.text) for word in words), default=0)

    def define(self) -> None:
        for beginning, rule in self._rules.items():
            self._grammar.define(rule, self._state(beginning))

    def _state(self, beginning: str) -> Node:
        """What may follow text that ends with this beginning and no longer one."""
        grammar = self._grammar
        targets: dict[str, list[str]] = {}
        options: list[Node] = []
        for char in self._alphabet:
            found = next((word for suffix in _suffixes(beginning + char) if (word := self._whole.get(suffix))), None)
            if found is not None:  # of words that end here the one that began first
                options.append(self._leave(char.encode(), found.outcome))
            else:
                targets.setdefault(self._longest_suffix(beginning + char), []).append(char)
        plain = _union(self._others, targets.pop("", []))
        for target, chars in targets.items():
            options.append(self._step(_union((), chars), target))
        for word in self._words:
            if word.rest and beginning.endswith(word.text):
                options.append(self._leave(word.rest, word.outcome))
            elif not beginning and self._is_reached(word):  # says nothing new, but tells how few tokens it takes
                options.append(self._leave(word.text.encode() + word.rest, word.outcome))
        options.append(self._at_end)
        if beginning:
            return grammar.alt(self._step(plain, ""), *options)
        return grammar.seq(self._text(grammar.repeat(self._chars(plain)), 0), grammar.alt(*options))

    def _step(self, chars: Ranges, target: str) -> Node:
        """One character, after which the text ends with `target`."""
        return self._grammar.seq(
            self._text(self._chars(chars), len(target.encode())), self._grammar.call(self._rules[target])
        )

    def _text(self, node: Node, held: int) -> Node:
        if self._segment is None or node == EMPTY:
            return node
        return self._grammar.segment(node, self._segment.holding(held))

    def _leave(self, rest: bytes, outcome: Outcome) -> Node:
        mark = self._grammar.literal(rest)
        return self._grammar.seq(mark if outcome.marker is None else self._grammar.segment(mark, outcome.marker), outcome.after)

    def _chars(self, ranges: Ranges) -> Node:
        is_one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
        return self._grammar.literal(chr(ranges[0][0])) if is_one else self._grammar.chars(ranges)

    def _is_reached(self, word: Word) -> bool:
        """Whether a word can be read to its end, because no other word ends before."""
        before = word.text if word.rest else word.text[:-1]
        return bool(word.text) and not any(whole in before for whole in self._whole)

    def _longest_suffix(self, text: str) -> str:
        return next(suffix for suffix in _suffixes(text[-self._longest :]) if suffix in self._rules)


def _suffixes(text: str) -> Iterable[str]:
    """The suffixes of a text, the longest first, the empty one last."""
    return (text[i:] for i in range(len(text) + 1))


def _union(ranges: Ranges, chars: Iterable[str]) -> Ranges:
    return intersect(normalize([*ranges, *((ord(char), ord(char)) for char in chars)]), ALL)
