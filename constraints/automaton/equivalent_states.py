"""Classes of equivalent states of a finite automaton: those behind which the same texts end.

States are taken apart until those of a class lead to the same classes with each letter. Of a class that falls apart the largest
part keeps its number, so a state changes its class log n times at the most, and only those that lead to it are looked at again.
Their transitions are compared whole, as rows. Hopcroft's algorithm, which keeps a partition of single transitions, follows fewer
of them, but each through ten words in places of their own: on automata of texts it takes ten times as long and more.

All functions here are compiled. An automaton is its transitions, [states, letters], where state 0 is dead.
"""

from __future__ import annotations

import numpy as np

from ..numba_support.jit import entry, inner
from .nodes import wide
from .tables import DEAD

NOBODY = 0  # instead of a state: the dead one is in no list


@entry(next_="const int32[:,:]", accepts="const uint8[:]", block="int32[:]")
def find_blocks(next_, accepts, block):
    """Write the class of equivalent states that each state belongs to, from 1 on, 0 for the dead one. Returns their number."""
    num_states, num_letters = next_.shape
    begin, before = predecessors(next_)
    room = 2 * num_states + 3  # classes, while some are taken apart
    following, preceding = np.zeros(num_states, np.int32), np.zeros(num_states, np.int32)  # in the list of a class
    heads, sizes, largest = np.zeros(room, np.int32), np.zeros(room, np.int32), np.zeros(room, np.int32)
    free, groups, origins = np.empty(room, np.int32), np.empty(num_states, np.int32), np.empty(num_states, np.int32)
    places, slots, factors = np.empty(num_states, np.int64), new_slots(num_states), random_words(num_letters)
    touched, is_touched = np.empty(num_states, np.int32), np.zeros(num_states, np.uint8)
    lists = following, preceding, heads, sizes
    num_free, num_touched = 0, 0
    for number in range(room - 1, 2, -1):  # 1 and 2 are those that end and those that do not
        free[num_free], num_free = number, num_free + 1
    block[DEAD] = 0
    for state in range(num_states - 1, 0, -1):
        block[state] = 1 if accepts[state] else 2
        add(lists, wide(block[state]), wide(state))
        touched[num_touched], num_touched = state, num_touched + 1
    while num_touched > 0:
        # those that are alike become classes of their own
        num_groups = 0
        for k in range(num_touched):
            state = wide(touched[k])
            is_touched[state] = 0
            slot = slot_of(slots, next_, factors, block, heads, state)
            if slots[slot] == 0:
                num_free -= 1
                slots[slot], places[num_groups] = free[num_free], slot
                groups[num_groups], origins[num_groups], num_groups = free[num_free], block[state], num_groups + 1
                heads[slots[slot]], sizes[slots[slot]], largest[block[state]] = NOBODY, 0, 0
            remove(lists, wide(block[state]), state)
            add(lists, wide(slots[slot]), state)
        # the largest part of what was one class keeps its number
        for k in range(num_groups):
            slots[places[k]] = 0
            if largest[origins[k]] == 0 or sizes[groups[k]] > sizes[largest[origins[k]]]:
                largest[origins[k]] = groups[k]
        for k in range(num_groups):
            of, group = origins[k], groups[k]
            if largest[of] == group and sizes[group] > sizes[of]:
                heads[of], heads[group] = heads[group], heads[of]
                sizes[of], sizes[group] = sizes[group], sizes[of]
        for k in range(num_groups):
            state = wide(heads[groups[k]])
            if state == NOBODY:
                free[num_free], num_free = groups[k], num_free + 1
            while state != NOBODY:
                block[state] = groups[k]
                state = wide(following[state])
        # what leads to the others is looked at again
        num_touched = 0
        for k in range(num_groups):
            state = wide(heads[groups[k]])
            while state != NOBODY:
                for at in range(begin[state], begin[state + 1]):
                    other = before[at]
                    if is_touched[other] == 0 and sizes[block[other]] > 1:
                        is_touched[other] = 1
                        touched[num_touched], num_touched = other, num_touched + 1
                state = wide(following[state])
    return numbered(block)


@inner
def numbered(block):
    """Number classes from 1 on, in the order of their first states. Returns how many there are."""
    names, count = np.zeros(2 * block.size + 3, np.int32), 0
    for state in range(1, block.size):
        if names[block[state]] == 0:
            count += 1
            names[block[state]] = count
        block[state] = names[block[state]]
    return count


@inner
def predecessors(next_):
    """(begin, before): the states that lead to each state but the dead one, before[begin[state] : begin[state + 1]]."""
    num_states, num_letters = next_.shape
    begin, last = np.zeros(num_states + 2, np.int64), np.zeros(num_states, np.int32)
    for state in range(1, num_states):
        for letter in range(num_letters):
            target = next_[state, letter]
            if target != DEAD and last[target] != state:
                last[target] = state
                begin[target + 2] += 1
    for state in range(num_states):
        begin[state + 2] += begin[state + 1]
    before = np.empty(begin[num_states + 1], np.int32)
    for state in range(num_states):
        last[state] = 0
    for state in range(1, num_states):
        for letter in range(num_letters):
            target = next_[state, letter]
            if target != DEAD and last[target] != state:
                last[target] = state
                before[begin[target + 1]] = state
                begin[target + 1] += 1
    return begin, before


# -- lists of the states of each class ----------------------------------------------------------------------------------


@inner
def add(lists, number, state):
    """Put a state before the others of a class."""
    following, preceding, heads, sizes = lists
    head = heads[number]
    following[state], preceding[state] = head, NOBODY
    if head != NOBODY:
        preceding[head] = state
    heads[number] = state
    sizes[number] += 1


@inner
def remove(lists, number, state):
    following, preceding, heads, sizes = lists
    later, earlier = following[state], preceding[state]
    if earlier == NOBODY:
        heads[number] = later
    else:
        following[earlier] = later
    if later != NOBODY:
        preceding[later] = earlier
    sizes[number] -= 1


# -- states that are alike ----------------------------------------------------------------------------------------------


@inner
def new_slots(num_states):
    """A hash table of classes."""
    size = 2
    while size < 2 * num_states:
        size *= 2
    return np.zeros(size, np.int32)


@inner
def random_words(count):
    """Odd factors, one a letter, that differ in all bits."""
    words = np.empty(count, np.uint64)
    for k in range(count):
        h = np.uint64(k + 1) * np.uint64(0x9E3779B97F4A7C15)
        h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        words[k] = h | np.uint64(1)
    return words


@inner
def slot_of(slots, next_, factors, block, heads, state):
    """The slot of the class whose first state is of one class with `state`, and leads to the same classes; a free one where there
    is none."""
    row = next_[state]
    total = np.uint64(wide(block[state]))
    for letter in range(row.size):
        total += np.uint64(wide(block[row[letter]])) * factors[letter]
    total = (total ^ (total >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    mask = slots.size - 1
    slot = np.int64(total >> np.uint64(33)) & mask
    while slots[slot] != 0 and not are_alike(next_, block, wide(heads[slots[slot]]), state):
        slot = (slot + 1) & mask
    return slot


@inner
def are_alike(next_, block, state, other):
    """Whether two states are of one class, and lead to the same ones."""
    if block[state] != block[other]:
        return False
    for letter in range(next_.shape[1]):
        if block[next_[state, letter]] != block[next_[other, letter]]:
            return False
    return True
