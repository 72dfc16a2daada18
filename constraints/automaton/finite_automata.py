"""Finite automata as arrays: determinised, multiplied, negated, trimmed and minimised while a constraint is compiled.

They are what intersections and complements are computed with (intersections.py), where an operand that only waits for
something must not leave traces: a pattern that has been found somewhere is `any text` from then on, and in the minimal automaton
that is one state, whatever was found how often. So the product of several such patterns stays as small as what may be
known of a text, and whether something is left of it is a question of all its states, not of a search.

State 0 is dead: it accepts nothing and is never left. All other states of an automaton are reached from its start and reach
an accepting state. Bytes between which no state tells are one letter.

What one keyword says of a text is the same in every schema, and most intersections are of few such: to determinise `email` takes 15
milliseconds. So minimal automata are kept for the process, by how an expression is built, whatever grammar it is in.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..grammar.stopwatch import check_bytes
from .automaton_loops import TOO_MANY_STATES, explore, measure, merge_letters, multiply, write_transitions
from .equivalent_states import find_blocks
from .machine import Machine
from .tables import DEAD

_COPIES = 3  # of a product's transitions are there while what leads nowhere is left out
_FIRST_STATES = 1024  # for which room is made at first
_MAX_WORDS = 4_000_000  # of all automata that are kept
_WORDS_OF_OTHERS = 1_000  # of an automaton beside its transitions, and of one that has too many states


class TooManyStates(Exception):
    """An automaton has more states than it may."""


class FiniteAutomaton(NamedTuple):
    """A set of byte strings. A named tuple because compiled code is given its arrays."""

    letters: NDArray[np.int32]  # [256] the letter of a byte
    next: NDArray[np.int32]  # [states, letters]
    accepts: NDArray[np.uint8]  # [states] 1 where a text may end
    start: int

    @property
    def num_states(self) -> int:
        return len(self.next)


def determinized(machine: Machine, start: int, limit: int, check: Callable[[], None]) -> FiniteAutomaton:
    """The automaton of all texts behind a state of a machine. Raises `TooManyStates` beyond `limit` states; `check` is called
    now and then."""
    letters, first, done = np.zeros(256, np.int32), np.zeros(256, np.int32), np.ones(3, np.int32)
    states = np.zeros(_FIRST_STATES, np.int32)
    states[1] = start
    while start != DEAD and done[0] <= done[1]:
        if done[1] + 256 >= states.size:
            states = np.append(states, np.zeros_like(states))
        machine.call(explore, limit, states, letters, first, done)
        if done[1] > limit:
            raise TooManyStates
        check()
    count, num_letters = (int(done[1]), int(done[2])) if start != DEAD else (0, 1)
    next_, accepts = np.zeros((count + 1, num_letters), np.int32), np.zeros(count + 1, np.uint8)
    machine.call(write_transitions, states, count, letters, next_, accepts)
    return FiniteAutomaton(letters, next_, accepts, min(1, count))


def complement(automaton: FiniteAutomaton) -> FiniteAutomaton:
    """All other byte strings."""
    letters, next_, accepts, start = automaton
    everything, count = len(next_), next_.shape[1]
    others = np.where(next_ == DEAD, everything, next_)
    others[DEAD] = DEAD
    rows = np.vstack([others, np.full((1, count), everything, np.int32)]).astype(np.int32)
    ends = np.append(1 - accepts, 1).astype(np.uint8)
    ends[DEAD] = 0
    return trimmed(FiniteAutomaton(letters, rows, ends, start if start != DEAD else everything))


def product(
    first: FiniteAutomaton, second: FiniteAutomaton, limit: int, check: Callable[[], None] = lambda: None
) -> tuple[FiniteAutomaton, NDArray[np.int32]]:
    """(intersection, the state of `second` in each of its states). Raises `TooManyStates` beyond `limit` states; `check` is
    called now and then."""
    codes, letters = np.unique(first.letters * 256 + second.letters, return_inverse=True)
    of_first, of_second = (codes // 256).astype(np.int32), (codes % 256).astype(np.int32)
    room = min(_FIRST_STATES, limit)
    while True:
        pairs, next_ = np.empty((room + 2, 2), np.int32), np.zeros((room + 2, codes.size), np.int32)
        count = multiply(first.next, second.next, of_first, of_second, first.start, second.start, pairs, next_)
        if count != TOO_MANY_STATES:
            break
        if room == limit:
            raise TooManyStates
        check()
        room = min(8 * room, limit)
    pairs, next_ = pairs[: count + 1], next_[: count + 1]
    check_bytes(_COPIES * next_.nbytes)
    accepts = first.accepts[pairs[:, 0]] & second.accepts[pairs[:, 1]]
    whole = FiniteAutomaton(letters.astype(np.int32).ravel(), next_, accepts, min(1, count))
    kept = live(whole)
    return only(whole, kept), pairs[kept, 1]


def trimmed(automaton: FiniteAutomaton) -> FiniteAutomaton:
    """The same set without states from which no text is completed."""
    return only(automaton, live(automaton))


def minimized(automaton: FiniteAutomaton) -> FiniteAutomaton:
    """The same set with the fewest states and letters. The automaton is trimmed."""
    block = np.zeros(automaton.num_states, np.int32)
    count = find_blocks(automaton.next, automaton.accepts, block)
    first = np.zeros(count + 1, np.int64)
    first[block[::-1]] = np.arange(automaton.num_states)[::-1]
    next_ = block[automaton.next[first]]
    letter, kept = np.empty(next_.shape[1], np.int32), np.empty(next_.shape[1], np.int32)
    num_letters = merge_letters(next_, letter, kept)
    columns = np.ascontiguousarray(next_[:, kept[:num_letters]])
    return FiniteAutomaton(letter[automaton.letters], columns, automaton.accepts[first], int(block[automaton.start]))


def live(automaton: FiniteAutomaton) -> NDArray[np.int64]:
    """The states from which some text is completed, behind the dead one."""
    distances = np.empty(automaton.num_states, np.int32)
    measure(automaton.next, automaton.accepts, distances)
    return np.append(DEAD, np.flatnonzero(distances >= 0))


def only(automaton: FiniteAutomaton, kept: NDArray[np.int64]) -> FiniteAutomaton:
    """The automaton with those states that are kept, the dead one first."""
    if kept.size == automaton.num_states:
        return automaton
    number = np.zeros(automaton.num_states, np.int32)
    number[kept] = np.arange(kept.size)
    return FiniteAutomaton(
        automaton.letters, number[automaton.next[kept]], automaton.accepts[kept], int(number[automaton.start])
    )


class AutomatonCache:
    """The most recently used automata. Thread-safe.

    Attributes: `hits` and `misses` count what was asked for.
    """

    def __init__(self, max_words: int = _MAX_WORDS) -> None:
        self._lock, self._max_words = threading.Lock(), max_words
        self._kept: OrderedDict[Hashable, FiniteAutomaton | int] = OrderedDict()  # or the states that it has more of
        self._num_words = self.hits = self.misses = 0

    def automaton(self, key: Hashable, most_states: int, make: Callable[[], FiniteAutomaton]) -> FiniteAutomaton:
        """The automaton that `make` makes for a key, which means the same in every grammar. Raises `TooManyStates` where it is
        known to have more than `most_states`, and when `make` does."""
        with self._lock:
            known = self._kept.get(key)
            if known is not None:
                self._kept.move_to_end(key)
            is_known = isinstance(known, FiniteAutomaton) or (known is not None and known >= most_states)
            self.hits, self.misses = self.hits + is_known, self.misses + (not is_known)
        if is_known:
            if isinstance(known, FiniteAutomaton) and known.num_states <= most_states:
                return known
            raise TooManyStates
        try:
            made = make()
        except TooManyStates:
            self._keep(key, most_states)
            raise
        self._keep(key, made)
        return made

    def _keep(self, key: Hashable, value: FiniteAutomaton | int) -> None:
        with self._lock:
            if key in self._kept:
                self._num_words -= _words_of(self._kept.pop(key))
            self._kept[key] = value
            self._num_words += _words_of(value)
            while self._num_words > self._max_words:
                self._num_words -= _words_of(self._kept.popitem(last=False)[1])


def _words_of(value: FiniteAutomaton | int) -> int:
    return _WORDS_OF_OTHERS + (value.next.size if isinstance(value, FiniteAutomaton) else 0)


AUTOMATON_CACHE = AutomatonCache()  # of the process
