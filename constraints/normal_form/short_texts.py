"""All short texts of nonterminals and words, as bits: two sets of texts are compared at once."""

from __future__ import annotations

from .greibach import Greibach, Word
from .rule_automata import TooLarge

_MOST_WORK = 200_000  # texts put together


class ShortTexts:
    """All texts of nonterminals and words, by their length: those of n bytes as bits, of which the number of a text, as digits that
    are byte classes, says which one. All raise `TooLarge`."""

    def __init__(self, grammar: Greibach) -> None:
        self._grammar, self._base, self._left = grammar, len(grammar.byte_classes), _MOST_WORK
        self._of_one: dict[tuple[int, int], int] = {}
        self._of_word: dict[tuple[Word, int], int] = {}

    def within(self, word: Word, longest: int) -> int:
        """The texts of at most so many bytes: those of each length behind the bits of all shorter ones."""
        found, shift = 0, 0
        for length in range(longest + 1):
            found |= self.of_word(word, length) << shift
            shift += self._base**length
        return found

    def of_one(self, nonterminal: int, length: int) -> int:
        if length == 0:
            return int(self._grammar.nullable[nonterminal])
        known = self._of_one.get((nonterminal, length))
        if known is None:
            known = 0
            for byte_class, words in enumerate(self._grammar.words[nonterminal]):
                rests = 0
                for word in words:
                    rests |= self.of_word(word, length - 1)
                known |= rests << byte_class * self._base ** (length - 1)
            self._of_one[nonterminal, length] = known
        return known

    def of_word(self, word: Word, length: int) -> int:
        if not word:
            return int(length == 0)
        known = self._of_word.get((word, length))
        if known is None:
            known = 0
            for first in range(length + 1):
                texts = self.of_one(word[0], first)
                rests = self.of_word(word[1:], length - first) if texts else 0
                known |= self._joined(texts, rests, self._base ** (length - first)) if rests else 0
            self._of_word[word, length] = known
        return known

    def _joined(self, texts: int, rests: int, step: int) -> int:
        self._left -= texts.bit_count()
        if self._left < 0:
            raise TooLarge
        found = 0
        while texts:
            found |= rests << step * (texts.bit_length() - 1)
            texts ^= 1 << texts.bit_length() - 1
        return found
