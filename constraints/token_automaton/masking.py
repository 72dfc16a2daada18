"""Mask rows: the mask of a state, and of a state and a memory, made at the end of the pool and kept if it is new."""

from __future__ import annotations

import numpy as np

from ..automaton.closures import ENDLESS
from ..automaton.nodes import EMPTY, wide
from ..automaton.states import inner_of, state_of
from ..automaton.tables import (
    CLASS_TABLES,
    CLASS_WIDTH,
    CLEARED,
    CLEARED_END,
    DEAD,
    FAULT,
    FRAMED,
    KEPT,
    KEPT_END,
    NO_CLASS,
    NO_FAULT,
    NUM_ENDS,
    REC,
    WANTED,
    layout,
)
from ..masks.class_masks import MANY_TOKENS, body_of, clear_longer, fill, slice_of, string_class
from ..masks.counter_saturation import endless_state, far_state
from ..masks.mask_rows import CAPACITY, COUNT, NUM_EDITS, clear_tokens, find_or_make, has_too_many_edits
from ..masks.pattern_complement_masks import clear_excluded, without_exclusion
from ..masks.shared_continuations import ENDS, TOO_MANY, common_tail, completes_inside, keep_ends, without_tail
from ..masks.trie_walk import reads_alike, walk, walk_apart, walk_literals, walk_rest, without_literals
from ..masks.uniform_transitions import FIRST_PRINTABLE, LAST_PRINTABLE, majority
from ..masks.word_complement_masks import clear_words, state_of_any, unlisted_of
from ..numba_support.jit import entry, inner, words_at
from ..uniqueness.duplicate_masks import ALONG, REMEMBERED, WHOLE, judge_trie, where_refusals_begin
from ..uniqueness.register_product import IN_UNIQUE, TRACKED, outlook
from ..vocabulary.byte_classes import LOWER, UPPER
from ..vocabulary.packed_vocabulary import GROUPED, LISTED, NODE_WIDTH, NODES, TRIE

NO_ROOM = -1  # instead of the number of a row
ROOM = 4  # rows that one call may add


@entry
def mask_row(arena, atlas, rows, state, here, has_items, completable):
    """(number of the mask row of a state and a memory, body class for which tables are wanted).

    The number is NO_ROOM when ROOM rows do not fit into the pool, and meaningless on a fault. here: 0 for an automaton without
    memory. completable: address of the tokens after which the vocabulary can finish (int32 [words]), 0 when that is all of them.
    """
    m, v, r = words_at(arena), words_at(atlas), words_at(rows)
    t = layout(m)
    wanted, number = wide(NO_CLASS), wide(m[t.state_row + REC * state])
    if number == 0:
        if r[COUNT] + ROOM > r[CAPACITY]:
            return wide(NO_ROOM), wanted
        number = row_of_endless(m, t, v, r, state, completable)
        if number == 0:
            number = row_and_similar(m, t, v, r, state, completable)
        wanted = wide(m[t.n + WANTED])
        m[t.n + WANTED] = NO_CLASS
    if here != 0 and m[t.n + FAULT] == NO_FAULT:
        number = row_remembering(m, t, v, rows, number, state, here, has_items)
    return number, wanted


@inner
def row_of_endless(m, t, v, r, state, completable):
    """The number of the row of a state, which is that of its `endless_state`; 0 when there is no other such state."""
    far = endless_state(m, t, v, state)
    if far == state or m[t.n + FAULT] != NO_FAULT:
        return wide(0)
    number = row_and_similar(m, t, v, r, far, completable)
    if endless_state(m, t, v, state) != far or m[t.n + FAULT] != NO_FAULT:
        return wide(0)
    m[t.state_row + REC * state], m[t.state_events + REC * state] = number, m[t.state_events + REC * far]
    return number


@inner
def row_and_similar(m, t, v, r, state, completable):
    """The number of the row of a state, made if needed, and of a similar one first if there is one."""
    unlisted = unlisted_of(m, t, state) if completable == 0 and m[t.state_row + REC * state] == 0 else wide(0)
    if unlisted != 0:
        number = row_without_words(m, t, v, r, state, unlisted)
        if number != 0:
            return number
    if completable == 0 and m[t.state_row + REC * state] == 0 and not has_known_inner(m, t, state):
        number = row_beside_names(m, t, v, r, state)
        if number != 0:
            return number
    return row_by_similar(m, t, v, r, state, completable)


@inner
def row_by_similar(m, t, v, r, state, completable):
    """The same, if there is no row yet, without regard to names."""
    like = similar_state(m, t, v, state) if completable == 0 and not has_known_inner(m, t, state) else wide(DEAD)
    if like != DEAD:
        row_of(m, t, v, r, like, wide(DEAD), completable)
    return row_of(m, t, v, r, state, like, completable)


@inner
def row_beside_names(m, t, v, r, state):
    """The number of the row of a state with several literals, such as names that a key may have, by that of the state without them
    and of any key (see pattern_complement_masks.py), which is often the same behind each of the names; 0 when it is not done."""
    like, words, tail = without_exclusion(m, t, state)
    if like == DEAD and m[t.n + FAULT] == NO_FAULT and m[t.state_length + REC * state] != FRAMED:
        like, words = without_literals(m, t, state), wide(DEAD)
    if like == DEAD or like == state or m[t.n + FAULT] != NO_FAULT:
        return wide(0)
    base = -row_by_similar(m, t, v, r, like, wide(0))
    r[NUM_EDITS] = 0
    if m[t.n + FAULT] != NO_FAULT:
        return wide(0)
    if words != DEAD:
        clear_excluded(m, t, v, r, words, tail)
    m[t.state_events + REC * state] |= m[t.state_events + REC * like]
    walk_literals(m, t, v, r, state, False)
    return wide(0) if has_too_many_edits(r) else keep_row(m, t, v, r, state, base, wide(0))


@inner
def row_without_words(m, t, v, r, state, unlisted):
    """The number of the row of a state in an UNLISTED node, by that of its body, see word_complement_masks.py; 0 when it is not done."""
    like = state_of_any(m, t, state, unlisted)
    if like == DEAD or m[t.n + FAULT] != NO_FAULT:
        return wide(0)
    base = -row_of(m, t, v, r, like, wide(DEAD), wide(0))
    r[NUM_EDITS] = 0
    if m[t.n + FAULT] != NO_FAULT:
        return wide(0)
    clear_words(m, t, v, r, unlisted)
    m[t.state_events + REC * state] |= m[t.state_events + REC * like]
    walk_literals(m, t, v, r, state, True)
    return wide(0) if has_too_many_edits(r) else keep_row(m, t, v, r, state, base, wide(0))


@inner
def has_known_inner(m, t, state):
    """Whether a state is a frame whose mask follows from what is known of its inner state."""
    if m[t.state_length + REC * state] != FRAMED:
        return False
    return m[t.state_ends + REC * inner_of(m, t, state)] > 0


@inner
def similar_state(m, t, v, state):
    """A state where most characters lead to from `state`, if that is an endless body; DEAD when there is none, or on a fault.

    Inside a key that may still become one of several names, any other character leads into the body of all other keys.
    """
    if m[t.state_body + REC * state] >= 0 or m[t.state_left + REC * state] > 0 or not reads_most(m, t, state):
        return wide(DEAD)
    like, votes = majority(m, t, state), 0
    for byte in range(FIRST_PRINTABLE, LAST_PRINTABLE + 1):
        votes += 1 if m[t.next + state * 256 + byte] == like else -1
    if votes < 0 or m[t.n + FAULT] != NO_FAULT:
        return wide(DEAD)
    is_endless = m[t.state_body + REC * like] >= 0 and m[t.state_radius + REC * like] >= ENDLESS
    return like if like != state and (is_endless or string_class(m, t, v, like) != 0) else wide(DEAD)


@inner
def reads_most(m, t, state):
    """Whether a state may read more than half of the printable characters."""
    live = 0
    for byte in range(FIRST_PRINTABLE, LAST_PRINTABLE + 1):
        live += 1 if m[t.next + state * 256 + byte] != DEAD else 0
    return 2 * live > LAST_PRINTABLE + 1 - FIRST_PRINTABLE


@inner
def row_of(m, t, v, r, state, like, completable):
    """The number of the mask row of a state, which is made if needed. like: a state whose row is there and similar, or DEAD."""
    number = wide(m[t.state_row + REC * state])
    if number != 0 or m[t.n + FAULT] != NO_FAULT:
        return number
    base, is_done = wide(0), False
    if like != DEAD:
        r[NUM_EDITS], base = 0, -wide(m[t.state_row + REC * like])
        is_done = walk_apart(m, t, v, r, state, like)
    elif completable == 0:
        base = before_tail(m, t, v, r, state)
        if base == 0 and m[t.n + FAULT] == NO_FAULT:
            base = before_end(m, t, v, r, state)
        is_done = base != 0
    if not is_done and m[t.n + FAULT] == NO_FAULT:
        r[NUM_EDITS] = 0
        base = fill(m, t, v, r, state)
    return keep_row(m, t, v, r, state, base, completable)


@inner
def keep_row(m, t, v, r, state, base, completable):
    """Make the row that is described and give it to a state that has none; the number of the state's row, 0 on a fault."""
    if m[t.n + FAULT] == NO_FAULT and m[t.state_row + REC * state] == 0:
        m[t.state_row + REC * state] = find_or_make(r, v, base, wide(m[t.state_accept + REC * state]), completable)
    return wide(m[t.state_row + REC * state])


@inner
def before_tail(m, t, v, r, state):
    """Describe the mask of a state by that of the state without its tail, see shared_continuations.py; returns the base, 0 when it is not done.

    A tail behind characters of the state's body is none: there would be an end at each of the many prefixes of tokens.
    """
    tail = common_tail(m, t, state)
    before = without_tail(m, t, state, tail) if tail != EMPTY else wide(DEAD)
    if before == DEAD or m[t.state_accept + REC * before] == 1:
        return wide(0)
    if completes_inside(m, t, before, body_of(m, t, before)) or completes_inside(m, t, before, body_of(m, t, state)):
        return wide(0)
    if m[t.state_ends + REC * before] == 0 or m[t.state_row + REC * before] == 0:
        find_ends(m, t, v, r, before)
    ends = wide(m[t.state_ends + REC * before])
    if ends == TOO_MANY or m[t.n + FAULT] != NO_FAULT:
        return wide(0)
    following = state_of(m, t, tail) if m[t.pool + ends] > 0 else wide(DEAD)
    if m[t.n + FAULT] != NO_FAULT:
        return wide(0)
    if following != DEAD and has_to_look_at_many(m, t, v, ends, following):
        return wide(0)
    r[NUM_EDITS] = 0
    for k in range(t.pool + ends + ENDS, t.pool + ends + ENDS + 2 * m[t.pool + ends], 2):
        if m[k] < 0:
            walk_rest(m, t, v, r, -wide(m[k]), wide(m[k + 1]), following)
        else:
            walk(m, t, v, r, wide(m[k]), wide(m[k + 1]), following)
    clear_tokens(r, wide(m[t.pool + ends + 1]), wide(m[t.pool + ends + 2]))
    clear_tokens(r, wide(m[t.pool + ends + 3]), wide(m[t.pool + ends + 4]))
    if has_too_many_edits(r):
        return wide(0)
    m[t.state_events + REC * state] = m[t.state_events + REC * before]
    if following != DEAD:
        m[t.state_events + REC * state] |= m[t.state_events + REC * following]
    return -wide(m[t.state_row + REC * before])


@inner
def has_to_look_at_many(m, t, v, ends, state):
    """Whether a state tells letters apart, and there are many tokens behind the ends that lie in the trie by groups."""
    if reads_alike(m, t, state, wide(LOWER), wide(LOWER + 26)) and reads_alike(m, t, state, wide(UPPER), wide(UPPER + 26)):
        return False
    nodes, tokens = wide(v[v[GROUPED] + NODES]), wide(0)
    for k in range(t.pool + ends + ENDS, t.pool + ends + ENDS + 2 * m[t.pool + ends], 2):
        if m[k] == v[GROUPED]:
            node = nodes + NODE_WIDTH * m[k + 1]
            tokens += v[nodes + NODE_WIDTH * v[node + 2] + 3] - v[node + 3]
    return tokens > MANY_TOKENS


@inner
def find_ends(m, t, v, r, state):
    """Make the row of a state, and find its ends. They outlive the row, see `TokenAutomaton.drop_rows`."""
    base = before_end(m, t, v, r, state)
    if base == 0:
        fill_and_note(m, t, v, r, state)
    else:
        keep_row(m, t, v, r, state, base, wide(0))


@inner
def fill_and_note(m, t, v, r, state):
    """The same by a walk from this state, noting the ends on the way."""
    m[t.n + CLEARED] = m[t.n + KEPT] = m[t.n + KEPT_END] = m[t.n + CLEARED_END] = m[t.n + NUM_ENDS] = r[NUM_EDITS] = 0
    base = fill(m, t, v, r, state)
    keep_ends(m, t, state)
    keep_row(m, t, v, r, state, base, wide(0))


@inner
def before_end(m, t, v, r, state):
    """Describe the mask of a state inside repetitions that end far away by that of the state in which they have no end (see
    `far_state`), the ends too; returns the base, 0 when it is not done."""
    body = wide(m[t.state_body + REC * state])
    tables = wide(m[t.classes + CLASS_WIDTH * body + CLASS_TABLES]) if body >= 0 else wide(0)
    if tables == 0 or slice_of(m, t, v, tables, state, wide(m[t.state_radius + REC * state])) < 0:
        return wide(0)
    far = far_state(m, t, v, tables, state)
    if far == DEAD:
        return wide(0)
    if m[t.state_ends + REC * far] == 0 or m[t.state_row + REC * far] == 0:
        fill_and_note(m, t, v, r, far)
    r[NUM_EDITS] = 0
    clear_longer(v, r, tables, wide(m[t.state_radius + REC * state]))
    m[t.state_events + REC * state] = m[t.state_events + REC * far]
    if m[t.state_ends + REC * state] == 0:
        m[t.state_ends + REC * state] = m[t.state_ends + REC * far]
    return -wide(m[t.state_row + REC * far])


@inner
def row_remembering(m, t, v, rows, number, state, here, has_items):
    """The number of the mask row of a state and a memory; `number` is that of the state alone."""
    prospects, r = outlook(m, t, here), words_at(rows)
    if not prospects & TRACKED and not m[t.state_events + REC * state] & REMEMBERED:
        return wide(number)
    if r[COUNT] + 1 > r[CAPACITY]:
        return wide(NO_ROOM)
    none, hard, cleared = np.empty(0, np.int32), np.empty((5, 0), np.int32), wide(0)
    r[NUM_EDITS] = 0
    if prospects & TRACKED:
        cleared += judge_trie(m, t, v, rows, wide(v[TRIE]), state, here, wide(ALONG), none, none, hard, wide(0))[2]
    trie = where_refusals_begin(m, t, v, prospects)
    cleared += judge_trie(m, t, v, rows, trie, state, here, wide(WHOLE), none, none, hard, wide(0))[2]
    if has_items and not prospects & IN_UNIQUE:
        cleared += judge_trie(m, t, v, rows, wide(v[LISTED]), state, here, wide(WHOLE), none, none, hard, wide(0))[2]
    if cleared == 0 or m[t.n + FAULT] != NO_FAULT:
        return wide(number)
    return find_or_make(r, v, -wide(number), wide(m[t.state_accept + REC * state]), wide(0))
