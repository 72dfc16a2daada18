"""Which short words of nonterminals have no text that another nonterminal lacks.

    A ⊑ C       all texts of A are texts of C
    A B ⊑ C     all texts of A B are

A set of such claims is true if each of them holds as far as one byte shows, where behind the byte the claims themselves may be
used, inside of longer words and one after another:

    the empty text    is one of C if it is one of A B
    each byte         leads A B to words each of which is ⊑ one of those to which it leads C

(by induction on the length of the text; simulation up to precongruence, see Bonchi and Pous 2013). So all claims are made that
short texts do not refute, and those that do not hold are withdrawn, until all hold: what is left is the largest such set. It need
not have all that is true, which cannot be decided.

    S = "a" S? S?    S? S? ⊑ S?, since S S? S? ⊑ S S? by S? S? ⊑ S? itself
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..grammar.stopwatch import look
from .greibach import Greibach, Word
from .rule_automata import TooLarge
from .short_texts import ShortTexts

MOST_IN_PAIRS = 40  # nonterminals, of which pairs are compared
_LONGEST = 12  # words that are compared
_SHORT = {1: 8, 2: 5, 3: 4, 4: 3, 5: 3, 6: 2, 7: 2, 8: 2}  # bytes of texts by which most claims are refuted, by byte classes
_MOST_COMPARED = 60_000  # words, in all rounds


class Inclusions:
    """What is known of the words of a grammar. with_pairs: whether words of two nonterminals are compared."""

    def __init__(self, grammar: Greibach, *, with_pairs: bool) -> None:
        """Raises `TooLarge`."""
        self._grammar = grammar
        size = len(grammar.nullable)
        short, longest = ShortTexts(grammar), _SHORT.get(len(grammar.byte_classes), 1)
        missing = [~short.within((one,), longest) for one in range(size)]

        def wider(word: Word) -> int:
            texts = short.within(word, longest)
            return sum(1 << one for one in range(size) if not texts & missing[one])

        # Which nonterminals contain a word, as bits.
        self._of_one = [wider((one,)) for one in range(size)]
        self._of_two = [[0] * size for _ in range(size)]
        self._has_pairs = with_pairs and size <= MOST_IN_PAIRS
        for first, second in product(range(size), repeat=2) if self._has_pairs else ():
            self._of_two[first][second] = wider((first, second))
        self._compared = 0
        self._contained: dict[tuple[Word, Word], bool] = {}
        self._pieces: dict[Word, list[list[int]]] = {}
        self._joined: dict[tuple[int, int], int] = {}
        self._made: dict[Word, list[set[Word]]] = {}
        self._settle()

    def one(self, smaller: int, larger: int) -> bool:
        return bool(self._of_one[smaller] >> larger & 1)

    def two(self, first: int, second: int, larger: int) -> bool:
        return bool(self._of_two[first][second] >> larger & 1)

    def contains(self, larger: Word, smaller: Word) -> bool:
        """Whether what is known shows that `larger` has all texts of `smaller`."""
        if larger == smaller:
            return True
        key = (larger, smaller)
        known = self._contained.get(key)
        if known is None:
            known = self._contained[key] = len(smaller) <= _LONGEST and self._covers(larger, smaller)
        return known

    def _settle(self) -> None:
        """Withdraw claims until all hold."""
        rows = [self._of_one, *self._of_two]
        changed = True
        while changed:
            self._forget()
            changed = False
            for k, row in enumerate(rows):
                look()
                for second, claims in enumerate(row):
                    word = (second,) if k == 0 else (k - 1, second)
                    behind = self._behind(word) if claims else []
                    for larger in _members(claims):
                        if word != (larger,) and not self._hold(behind, larger):
                            row[second] &= ~(1 << larger)
                            changed = True
        self._forget()

    def _forget(self) -> None:
        """What fewer claims may no longer show; what more of them did not show stays."""
        self._contained = {key: False for key, holds in self._contained.items() if not holds}
        self._pieces.clear()
        self._joined.clear()

    def _behind(self, word: Word) -> list[set[Word]]:
        """[byte classes] what each makes of a word."""
        found = self._made.get(word)
        if found is None:
            found = self._made[word] = [self._grammar.behind(word, k) for k in range(len(self._grammar.byte_classes))]
        return found

    def _hold(self, behind: list[set[Word]], larger: int) -> bool:
        """Whether all words that bytes have made of another one are contained in those that they make of `larger`."""
        for wider, words in zip(self._grammar.words[larger], behind, strict=True):
            for word in words:
                if word not in wider and not any(self.contains(one, word) for one in wider):
                    return False
        return True

    def _covers(self, larger: Word, smaller: Word) -> bool:
        """Whether `smaller` can be cut into pieces, one for each nonterminal of `larger`, that each of them contains; an empty one
        where it may be empty."""
        self._compared += 1
        if self._compared > _MOST_COMPARED:
            raise TooLarge
        pieces = self._pieces_of(smaller)
        reached = 1  # bit i: what is to the left of i is taken
        for nonterminal in larger:
            passed = reached if self._grammar.nullable[nonterminal] else 0
            for start in _members(reached):
                for length, containing in enumerate(pieces[start], 1):
                    passed |= (containing >> nonterminal & 1) << start + length
            reached = passed
        return bool(reached >> len(smaller) & 1)

    def _pieces_of(self, word: Word) -> list[list[int]]:
        """[start][length - 1] which nonterminals contain a piece of a word, as bits (Cocke, Younger and Kasami); only pieces of one
        where pairs are not known. The last row is empty."""
        known = self._pieces.get(word)
        if known is not None:
            return known
        if not word:
            return [[]]
        rests = self._pieces_of(word[1:])
        first = [self._of_one[word[0]]]
        for length in range(2, len(word) + 1 if self._has_pairs else 2):
            found = 0
            for cut in range(1, length):
                left, right = first[cut - 1], rests[cut - 1][length - cut - 1]
                if left and right:
                    found |= self._containing(left, right)
            first.append(found)
        made = self._pieces[word] = [first, *rests]
        return made

    def _containing(self, left: int, right: int) -> int:
        """Which nonterminals contain one of `left` before one of `right`, all as bits."""
        found = self._joined.get((left, right))
        if found is None:
            found = 0
            for one in _members(left):
                row = self._of_two[one]
                for other in _members(right):
                    found |= row[other]
            self._joined[left, right] = found
        return found


def _members(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
