"""Loops over finite automata: states found and numbered, pairs of states, distances, letters that are read alike.

All functions here are compiled; finite_automata.py calls them. An automaton is its transitions, [states, letters], where state 0 is
dead, and a number for each state that says whether a text may end there.
"""

from __future__ import annotations

import numpy as np

from ..numba_support.jit import entry, inner
from .determinize import step
from .nodes import mix, wide
from .tables import DEAD, STATE_MASK, UNKNOWN, Fault, tables_at

TOO_MANY_STATES = -1  # instead of the number of states
AT_ONCE = 512  # states that are followed in one call, a few milliseconds


@entry(states="int32[:]", letters="int32[:]", first="int32[:]", done="int32[:]")
def explore(arena_address, limit, states, letters, first, done):
    """Follow some of the states that have been found, at most AT_ONCE, and fewer beyond `limit` states or where room ends. Written
    are the states that they lead to, the letter of every byte, a byte of each letter, and how far that is. To be called again.

    states: [1:] those that have been found; done: the next one to follow, how many states there are, how many letters.
    """
    m = tables_at(arena_address)
    at, count, num_letters = wide(done[0]), wide(done[1]), wide(done[2])
    is_known = np.zeros(m.states_size, np.uint8)
    for i in range(1, count + 1):
        is_known[states[i]] = 1
    end = at + AT_ONCE
    while at <= count and at < end and count <= limit and count + 256 < states.size:
        s = wide(states[at])
        row = m.next + 256 * s
        for byte in range(256):
            if row[byte] == UNKNOWN:
                step(m, s, wide(byte))
                if m.n.fault != Fault.NONE:
                    return
            target = row[byte] & STATE_MASK
            if target != DEAD and is_known[target] == 0:
                count += 1
                is_known[target], states[count] = 1, target
        num_letters = split_letters(row, letters, first, num_letters)
        at += 1
        done[0], done[1], done[2] = at, count, num_letters


@inner
def split_letters(row, letters, first, count):
    """Give bytes different letters between which a row of transitions tells; returns how many letters there are then."""
    for byte in range(256):
        letter = wide(letters[byte])
        if row[byte] & STATE_MASK == row[first[letter]] & STATE_MASK:
            continue
        target = row[byte] & STATE_MASK
        first[count] = byte
        for other in range(byte, 256):
            if letters[other] == letter and row[other] & STATE_MASK == target:
                letters[other] = count
        count += 1
    return count


@entry(states="const int32[:]", letters="const int32[:]", next_="int32[:,:]", accepts="uint8[:]")
def write_transitions(arena_address, states, count, letters, next_, accepts):
    """Write the transitions of states[1 : count + 1] by letter, and which of them accept."""
    m = tables_at(arena_address)
    number, first = np.zeros(m.states_size, np.int32), np.zeros(256, np.int64)
    for i in range(1, count + 1):
        number[states[i]] = i
    for byte in range(255, -1, -1):
        first[letters[byte]] = byte
    for i in range(1, count + 1):
        accepts[i] = m.states[states[i]].accept
        for letter in range(next_.shape[1]):
            next_[i, letter] = number[m.next[256 * wide(states[i]) + first[letter]] & STATE_MASK]


@entry(
    first="const int32[:,:]", second="const int32[:,:]", of_first="const int32[:]", of_second="const int32[:]",
    pairs="int32[:,:]", next_="int32[:,:]",
)  # fmt: skip
def multiply(first, second, of_first, of_second, start_first, start_second, pairs, next_):
    """Write the pairs of states that are reached together and live each by itself, from 1 on, and their transitions. Returns
    their number, TOO_MANY_STATES when there is no room.

    first, second: transitions; of_first, of_second: the letters of each by the letters of both.
    """
    most = len(pairs) - 2
    size = 1
    while size < 4 * most:
        size *= 2
    slots = np.zeros(size, np.int32)
    count = 0
    pairs[0, 0] = pairs[0, 1] = DEAD
    if start_first == DEAD or start_second == DEAD:
        return count
    count, _ = enter_pair(slots, pairs, count, wide(start_first), wide(start_second))
    i = 1
    while i <= count:
        x, y = wide(pairs[i, 0]), wide(pairs[i, 1])
        for letter in range(of_first.size):
            a, b = wide(first[x, of_first[letter]]), wide(second[y, of_second[letter]])
            if a == DEAD or b == DEAD:
                next_[i, letter] = DEAD
                continue
            count, target = enter_pair(slots, pairs, count, a, b)
            if count > most:
                return TOO_MANY_STATES
            next_[i, letter] = target
        i += 1
    return count


@inner
def enter_pair(slots, pairs, count, a, b):
    """(number of pairs, the number of this one), which is entered if it is new."""
    mask = slots.size - 1
    slot = mix(a, b, 0, 0) & mask
    while slots[slot] != 0:
        i = wide(slots[slot])
        if pairs[i, 0] == a and pairs[i, 1] == b:
            return count, i
        slot = (slot + 1) & mask
    count += 1
    slots[slot], pairs[count, 0], pairs[count, 1] = count, a, b
    return count, count


@entry(next_="const int32[:,:]", accepts="const uint8[:]", distances="int32[:]")
def measure(next_, accepts, distances):
    """Write the bytes of the shortest text behind each state, -1 where there is none (breadth first, backwards)."""
    num_states, num_letters = next_.shape
    begin, source = into_states(next_)
    queue, end = np.empty(num_states, np.int32), 0
    for state in range(num_states):
        distances[state] = 0 if accepts[state] else -1
        if accepts[state]:
            queue[end], end = state, end + 1
    at = 0
    while at < end:
        state = queue[at]
        at += 1
        for k in range(begin[state], begin[state + 1]):
            other = source[k] // num_letters
            if distances[other] < 0:
                distances[other] = distances[state] + 1
                queue[end], end = other, end + 1


@inner
def into_states(next_):
    """(begin, source): the transitions into each state but the dead one, source[begin[state] : begin[state + 1]], each as state
    times letters plus letter."""
    num_states, num_letters = next_.shape
    begin = np.zeros(num_states + 2, np.int64)
    for state in range(num_states):
        for letter in range(num_letters):
            if next_[state, letter] != DEAD:
                begin[next_[state, letter] + 2] += 1
    for state in range(num_states):
        begin[state + 2] += begin[state + 1]
    source = np.empty(begin[num_states + 1], np.int64)
    for state in range(num_states):
        for letter in range(num_letters):
            target = next_[state, letter]
            if target != DEAD:
                source[begin[target + 1]] = state * num_letters + letter
                begin[target + 1] += 1
    return begin, source


@entry(next_="const int32[:,:]", letter="int32[:]", first="int32[:]")
def merge_letters(next_, letter, first):
    """Give letters between which no state tells one number, written to letter[letters], and to first[number] the first of them;
    returns how many numbers there are."""
    count = 0
    for i in range(next_.shape[1]):
        letter[i] = count
        for j in range(count):
            if is_same_column(next_, i, first[j]):
                letter[i] = j
                break
        if letter[i] == count:
            first[count] = i
            count += 1
    return count


@inner
def is_same_column(next_, i, j):
    """Whether all states go the same way on two letters."""
    for s in range(next_.shape[0]):
        if next_[s, i] != next_[s, j]:
            return False
    return True
