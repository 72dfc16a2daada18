"""Finite automata as arrays: determinised, multiplied, negated, trimmed and minimised while a constraint is compiled.

They are what intersections and complements are computed with (intersections.py), where an operand that only waits for
something must not leave traces: a pattern that has been found somewhere is `any text` from then on, and in the minimal automaton
that is one state, whatever was found how often. So the product of several such patterns stays as small as what may be
known of a text, and whether something is left of it is a question of all its states, not of a search.

State 0 is dead: it accepts nothing and is never left. All other states of an automaton are reached from its start and reach
an accepting state. Bytes between which no state tells are one letter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .automaton_loops import TOO_MANY_STATES, explore, find_blocks, measure, merge_letters, multiply, write_transitions
from .machine import Machine
from .tables import DEAD

_FIRST_STATES = 512  # for which room is made at first
_MORE_STATES = 4_096  # between two looks at the clock, at the most


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
    room = min(_FIRST_STATES, limit)
    while True:
        states, letters = np.empty(room + 2, np.int32), np.zeros(256, np.int32)
        count, num_letters = machine.call(explore, start, room, states, letters)
        if count != TOO_MANY_STATES:
            break
        if room == limit:
            raise TooManyStates
        check()
        room = min(2 * room, room + _MORE_STATES, limit)
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
