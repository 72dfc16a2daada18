"""Grammars whose texts are those of a finite automaton, however ambiguous they are: such an automaton is found, and proved.

    root ::= "a" root? root? | "b" root*      is ("a" | "b")+

A guess comes first: two beginnings are one state if the same short texts may follow them. Then it is proved that the automaton and
the grammar have the same texts:

    all of the grammar's are the automaton's     for each nonterminal, from which states its texts lead to which, as a fixpoint; the
                                                 first one's have to end in accepting states
    all of the automaton's are the grammar's     claims that a set of words has all texts that a state accepts; one holds as far as
                                                 one byte shows, where behind the byte other claims may be used. If all hold that
                                                 are made on the way, they are true, by induction on the length of the text

A claim on some words is one on all that have these among them, or longer ones of which parts that may be empty can be left out. So
lists of lists come back to a claim that is made already. What needs ever more claims is given up.
"""

from __future__ import annotations

from typing import NamedTuple

from ..grammar.stopwatch import look
from .greibach import Greibach, Word
from .rule_automata import TooLarge
from .short_texts import ShortTexts

# By the number of byte classes: bytes of a beginning and what follows, and of what follows. Too many tell apart what is one
# state, too few do not tell apart what are two.
_LENGTHS = {
    1: ((24, 8),), 2: ((14, 6), (12, 5)), 3: ((9, 4), (8, 3)), 4: ((7, 3),), 5: ((6, 3),), 6: ((6, 2),),
}  # fmt: skip
_MOST_STATES = 40
_MOST_CLAIMS = 120
_LONGEST, _MOST_WORDS = 8, 24  # letters of a word, words of a claim; those that are longer, and more of them, are not used
_MOST_WORK = 200_000  # words that a byte makes of others

_Claim = frozenset[Word]


class FiniteForm(NamedTuple):
    """A finite automaton; state 0 is the first."""

    accepting: list[bool]
    after: list[list[int]]  # [states][byte classes] the next state
    byte_classes: list[list[tuple[int, int]]]

    def states_with_texts(self) -> list[bool]:
        """Whether a text is accepted from each."""
        alive = list(self.accepting)
        for _ in alive:
            alive = [known or any(alive[other] for other in row) for known, row in zip(alive, self.after, strict=True)]
        return alive


def finite_form(grammar: Greibach) -> FiniteForm | None:
    """An automaton with the texts of a grammar, None where none is found."""
    for longest, seen in _LENGTHS.get(len(grammar.byte_classes), ()):
        try:
            form = _guess(grammar, longest, seen)
            if _has_no_more(grammar, form) and _Claims(grammar, form).hold():
                return form
        except TooLarge:
            pass
    return None


# -- the guess ----------------------------------------------------------------------------------------------------------


def _guess(grammar: Greibach, longest: int, seen: int) -> FiniteForm:
    """From texts of `longest` bytes at most: beginnings are told apart by what follows within `seen`. Raises `TooLarge`."""
    base = len(grammar.byte_classes)
    short = ShortTexts(grammar)
    texts = [short.of_one(0, length) for length in range(longest + 1)]

    def following(text: int, length: int) -> tuple[int, ...]:
        return tuple(texts[length + more] >> text * base**more & (1 << base**more) - 1 for more in range(seen + 1))

    numbers = {following(0, 0): 0}
    beginnings = [(0, 0)]
    after: list[list[int]] = []
    for text, length in beginnings:
        if length + 1 + seen > longest:
            raise TooLarge
        row: list[int] = []
        for byte_class in range(base):
            longer = base * text + byte_class, length + 1
            row.append(numbers.setdefault(following(*longer), len(beginnings)))
            if row[-1] == len(beginnings):
                beginnings.append(longer)
        after.append(row)
        if len(beginnings) > _MOST_STATES:
            raise TooLarge
    return FiniteForm([bool(what[0]) for what in numbers], after, grammar.byte_classes)


# -- the proofs ---------------------------------------------------------------------------------------------------------


def _has_no_more(grammar: Greibach, form: FiniteForm) -> bool:
    """Whether all texts of a grammar are accepted. Raises `TooLarge`."""
    states = range(len(form.after))
    leads = [[1 << state if nullable else 0 for state in states] for nullable in grammar.nullable]  # [nonterminals][states], bits
    num_words = sum(len(words) for row in grammar.words for words in row)
    changed, left = True, _MOST_WORK
    while changed:
        changed, left = False, left - num_words * len(states)
        if left < 0:
            raise TooLarge
        look()
        for nonterminal, row in enumerate(grammar.words):
            for state in states:
                found = leads[nonterminal][state]
                for byte_class, words in enumerate(row):
                    for word in words:
                        found |= _led(1 << form.after[state][byte_class], word, leads)
                changed = changed or found != leads[nonterminal][state]
                leads[nonterminal][state] = found
    return all(form.accepting[state] for state in states if leads[0][0] >> state & 1)


def _led(states: int, word: Word, leads: list[list[int]]) -> int:
    for nonterminal in word:
        found, row = 0, leads[nonterminal]
        while states:
            last = states.bit_length() - 1
            found |= row[last]
            states ^= 1 << last
        states = found
    return states


class _Claims:
    """That sets of words have all texts which states accept."""

    def __init__(self, grammar: Greibach, form: FiniteForm) -> None:
        self._grammar, self._form, self._left = grammar, form, _MOST_WORK
        self._made: list[list[_Claim]] = [[] for _ in form.after]
        self._alive = form.states_with_texts()

    def hold(self) -> bool:
        """Raises `TooLarge`."""
        waiting: list[tuple[int, _Claim]] = [(0, frozenset([(0,)]))]
        if self._form.accepting[0] and not self._grammar.nullable[0]:
            return False
        self._made[0].append(waiting[0][1])
        for count, (state, claim) in enumerate(waiting):
            if count == _MOST_CLAIMS:
                raise TooLarge
            for byte_class, after in enumerate(self._form.after[state]):
                if not self._alive[after]:
                    continue
                words = self._behind(claim, byte_class)
                if self._form.accepting[after] and not any(map(self._may_be_empty, words)):
                    return False
                if not any(self._contains(words, known) for known in self._made[after]):
                    waiting.append((after, self._chosen(words)))
                    self._made[after].append(waiting[-1][1])
                    if not waiting[-1][1]:
                        return False
        return True

    def _may_be_empty(self, word: Word) -> bool:
        return all(self._grammar.nullable[nonterminal] for nonterminal in word)

    def _behind(self, claim: _Claim, byte_class: int) -> set[Word]:
        look()
        found: set[Word] = set()
        for word in claim:
            found |= self._grammar.behind(word, byte_class)
            self._left -= len(found)
        if self._left < 0:
            raise TooLarge
        return found

    def _contains(self, words: set[Word], claim: _Claim) -> bool:
        return all(word in words or any(self._is_part(word, other) for other in words) for word in claim)

    def _is_part(self, word: Word, other: Word) -> bool:
        """Whether `word` is left of `other` without some parts that may be empty."""
        at = 0
        for nonterminal in other:
            if at < len(word) and word[at] == nonterminal:
                at += 1
            elif not self._grammar.nullable[nonterminal]:
                return False
        return at == len(word)

    def _chosen(self, words: set[Word]) -> _Claim:
        """Some of the words: the shortest of those that are not part of others."""
        short = sorted((word for word in words if len(word) <= _LONGEST), key=lambda word: (len(word), word))[: 4 * _MOST_WORDS]
        self._left -= len(short) ** 2 // 8
        largest = [word for word in short if not any(word != other and self._is_part(word, other) for other in short)]
        chosen = largest[:_MOST_WORDS]
        if not any(map(self._may_be_empty, chosen)):  # as one among all may be
            chosen += [word for word in short if self._may_be_empty(word)][:1]
        return frozenset(chosen)
