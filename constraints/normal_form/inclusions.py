"""Which short words of nonterminals have no text that another nonterminal lacks.

    A ⊑ C       all texts of A are texts of C
    A B ⊑ C     all texts of A B are

A set of such claims is true if each of them holds as far as one byte shows, where behind the byte the claims themselves may be
used, inside of longer words and one after another:

    the empty text    is one of C if it is one of A B
    each byte         leads A B to words each of which is ⊑ one of those to which it leads C

(by induction on the length of the text; simulation up to precongruence, see Bonchi and Pous 2013). So all claims are made, and
those that do not hold are withdrawn, until all hold: what is left is the largest such set. It need not have all that is true,
which cannot be decided.

    S = "a" S? S?    S? S? ⊑ S?, since S S? S? ⊑ S S? by S? S? ⊑ S? itself
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..grammar.stopwatch import look
from .greibach import Greibach, Word
from .rule_automata import TooLarge

MOST_IN_PAIRS = 40  # nonterminals, of which pairs are compared
_LONGEST = 12  # words that are compared
_MOST_COMPARED = 120_000  # words, in all rounds


class Inclusions:
    """What is known of the words of a grammar. with_pairs: whether words of two nonterminals are compared."""

    def __init__(self, grammar: Greibach, *, with_pairs: bool) -> None:
        """Raises `TooLarge`."""
        self._grammar = grammar
        size = len(grammar.nullable)
        self._may_be_empty = sum(1 << k for k in range(size) if grammar.nullable[k])
        first = [sum(1 << k for k, words in enumerate(row) if words) for row in grammar.words]
        wider = [sum(1 << v for v in range(size) if not first[u] & ~first[v]) for u in range(size)]
        # Which nonterminals contain a word, as bits.
        self._of_one = [wider[u] & (self._may_be_empty if grammar.nullable[u] else -1) for u in range(size)]
        self._of_two = [[0] * size for _ in range(size)]
        for u, v in product(range(size), repeat=2) if with_pairs and size <= MOST_IN_PAIRS else ():
            both = wider[u] & (wider[v] if grammar.nullable[u] else -1)
            self._of_two[u][v] = both & (self._may_be_empty if grammar.nullable[u] and grammar.nullable[v] else -1)
        self._compared = 0
        self._contained: dict[tuple[Word, Word], bool] = {}
        self._pieces: dict[Word, list[list[int]]] = {}
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
                    for larger in _members(claims):
                        if not self._holds(word, larger):
                            row[second] &= ~(1 << larger)
                            changed = True
        self._forget()

    def _forget(self) -> None:
        self._contained.clear()
        self._pieces.clear()

    def _holds(self, word: Word, larger: int) -> bool:
        if word == (larger,):
            return True
        for byte_class, wider in enumerate(self._grammar.words[larger]):
            behind = self._grammar.behind(word, byte_class)
            if not all(any(self.contains(one, rest) for one in wider) for rest in behind):
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
        """[start][length - 1] which nonterminals contain a piece of a word, as bits (Cocke, Younger and Kasami). The last row is
        empty."""
        known = self._pieces.get(word)
        if known is not None:
            return known
        if not word:
            return [[]]
        rests = self._pieces_of(word[1:])
        first = [self._of_one[word[0]]]
        for length in range(2, len(word) + 1):
            found = 0
            for cut in range(1, length):
                for left in _members(first[cut - 1]):
                    row = self._of_two[left]
                    for right in _members(rests[cut - 1][length - cut - 1]):
                        found |= row[right]
            first.append(found)
        made = self._pieces[word] = [first, *rests]
        return made


def _members(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
