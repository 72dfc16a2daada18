"""Text up to the first of some strings, by the automaton of Aho and Corasick ("Efficient string matching", 1975).

Its states are the beginnings of those strings; each becomes one rule, which reads one character and calls the next. The
state of the empty beginning repeats all characters with which no string begins, so plain text is a body: masks of its
states are found once for a vocabulary and shared. A search for the complement of "contains one of these" would find the same
automaton one product at a time, without bodies.

Special tokens are no text. A string with one is followed as text up to there; the token itself leaves no doubt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ..base.errors import ConstraintLimit
from ..base.utf8 import ALL, Ranges, intersect, invert, normalize
from ..vocabulary.vocabulary import TOKEN_OPEN
from .expression import EMPTY, Grammar, Node, Rule
from .segments import Segment
from .source import Limits
from .stopwatch import LOOK_EVERY, hold, look

_SHOWN: Final = 40  # characters of a beginning, in the name of its rule
_BEGINNING_BYTES: Final = 250  # that a beginning holds beside objects: numbers, texts, places in lists
_MOVE_BYTES: Final = 100  # that one entry of a table of moves holds


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
    """Defines one rule for each beginning of a word that text may end with.

    Beginnings are numbered as the nodes of a tree of words; 0 is the empty one. Each knows its *suffix*, the longest other
    beginning that it ends with, and takes from there what it does not continue itself.
    """

    def __init__(
        self, grammar: Grammar, rule: Rule, words: list[Word], at_end: Node, segment: Segment | None, limits: Limits
    ) -> None:
        self._grammar, self._words, self._at_end, self._segment = grammar, words, at_end, segment
        self._longer: list[dict[str, int]] = [{}]  # of each beginning, by the next character
        self._sizes, self._shown = [0], [""]  # bytes; the last characters
        self._last = [self._added(word.text) for word in words]  # of each word
        self._alphabet = {char for longer in self._longer for char in longer}
        held = {last for last, word in zip(self._last, words, strict=True) if word.rest}
        num_rules = sum(1 for number, longer in enumerate(self._longer) if longer or number in held)
        if num_rules * len(self._alphabet) > limits.nodes:
            raise ConstraintLimit("strings to look for in text", limit="nodes", value=limits.nodes)
        self._rules = {0: rule}
        self._moves: list[dict[str, int]] = [{} for _ in self._longer]  # by characters that do not lead to the empty beginning
        self._found: list[Word | None] = [None] * len(self._longer)  # of words that end here the one that began first
        self._rests: list[list[int]] = [[] for _ in self._longer]  # words of which the rest may follow
        self._reached = self._linked()

    def define(self) -> None:
        for number in self._reached:
            if self._found[number] is None:
                self._grammar.define(self._rules[number], self._state(number))

    def _added(self, text: str) -> int:
        """The number of a text, which is a beginning from now on, as all its own beginnings are."""
        at = 0
        for char in text:
            known = self._longer[at].get(char)
            if known is None:
                known = self._longer[at][char] = len(self._longer)
                self._longer.append({})
                self._sizes.append(self._sizes[at] + len(char.encode()))
                self._shown.append((self._shown[at] + char)[-_SHOWN:])
                if known % LOOK_EVERY == 0:
                    hold(LOOK_EVERY * _BEGINNING_BYTES)
                    look()
            at = known
        return at

    def _linked(self) -> list[int]:
        """The beginnings that are reached before any word is found, and words that are found there, the shortest first."""
        reached, suffixes = [0], [0] * len(self._longer)
        for index, (last, word) in enumerate(zip(self._last, self._words, strict=True)):
            if word.rest:
                self._rests[last].append(index)
            else:
                self._found[last] = word
        for count, number in enumerate(reached):  # grows while it is gone through
            if count % LOOK_EVERY == 0:
                look()
            suffix = suffixes[number]
            if number:
                self._found[number] = self._found[number] or self._found[suffix]
                if self._found[number] is not None:
                    continue
                self._rules[number] = self._grammar.rule(f"text, perhaps {self._shown[number]!r}")
                if self._rests[suffix]:
                    self._rests[number] = sorted(self._rests[number] + self._rests[suffix])
            longer = self._longer[number]
            for char, child in sorted(longer.items()):
                suffixes[child] = self._moves[suffix].get(char, 0) if number else 0
                reached.append(child)
            if number and not longer:
                self._moves[number] = self._moves[suffix]
            else:
                self._moves[number] = {**self._moves[suffix], **longer}
                hold(len(self._moves[number]) * _MOVE_BYTES)
        return reached

    def _state(self, number: int) -> Node:
        """What may follow text that ends with this beginning and no longer one."""
        grammar, moves = self._grammar, self._moves[number]
        options: list[Node] = []
        steps: list[Node] = []
        for char, target in sorted(moves.items()):
            found = self._found[target]
            if found is not None:
                options.append(self._leave(char.encode(), found.outcome))
            else:
                steps.append(self._step(((ord(char), ord(char)),), target))
        options += steps
        for index in self._rests[number]:
            options.append(self._leave(self._words[index].rest, self._words[index].outcome))
        if not number:
            options += self._whole_words()
        options.append(self._at_end)
        plain = intersect(invert(normalize((ord(char), ord(char)) for char in moves)), ALL)
        if number:
            return grammar.alt(self._step(plain, 0), *options)
        return grammar.seq(self._text(grammar.repeat(self._chars(plain)), 0), grammar.alt(*options))

    def _whole_words(self) -> list[Node]:
        """The words that can be read to their ends, because no other word ends before. They say nothing new, but tell how few
        tokens a word takes."""
        reached = set(self._reached)
        return [
            self._leave(word.text.encode() + word.rest, word.outcome)
            for last, word in zip(self._last, self._words, strict=True)
            if last and last in reached and not (word.rest and self._found[last])
        ]

    def _step(self, chars: Ranges, target: int) -> Node:
        """One character, after which the text ends with `target`."""
        return self._grammar.seq(
            self._text(self._chars(chars), self._sizes[target]), self._grammar.call(self._rules[target])
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
