"""A mask by a walk of the vocabulary from the state itself, with the tables of its class; trie_walk.py says why that is exact.

A mask is described as a base and edits, see mask_rows.py; here the base is a slice of a class (char_class_tables.py), or empty.
"""

from __future__ import annotations

import numpy as np

from ..automaton.closures import ENDLESS
from ..automaton.nodes import CLASS, NO_BODY, SEQ, leaf, pair, repetition, wide
from ..automaton.states import intern_state, items_of
from ..automaton.tables import (
    CLASS_TABLES,
    CLASS_WIDTH,
    CLEARED,
    CLEARED_END,
    DEAD,
    FAULT,
    IN_STRING,
    KEPT,
    KEPT_END,
    NO_FAULT,
    NUM_ENDS,
    ONLY_JSON,
    REC,
    STATE_MASK,
    WANTED,
)
from ..base.kinds import UNBOUNDED
from ..numba_support.jit import inner
from ..vocabulary.byte_classes import LOWER, UPPER
from ..vocabulary.packed_vocabulary import (
    BY_PREFIX,
    CONTROLS,
    EXITS,
    FAR,
    FAR_LENGTH,
    FIRST_BYTES,
    GROUPED,
    LAST_SLICE,
    LINE,
    LONGEST,
    NUM_CONTROLS,
    NUM_EXITS,
    NUM_FAR,
    PREFIX,
    RESIDUAL,
    REST,
    SLICES,
    STRING,
    TRIE,
    WORDS,
    is_inside,
)
from .loop_context import copies, door_of, is_alone, is_loop
from .mask_rows import clear_tokens
from .shared_continuations import completes_inside
from .trie_walk import reads_alike, walk, walk_literals, without_literals
from .uniform_transitions import run_of

ONLY_IN_STRINGS = tuple(b"#_AZbz")  # some of what stands in JSON only there, and in most strings
MANY_TOKENS = 4000  # more than are looked at one by one
MANY_VISITED = 1000  # trie nodes, by a walk inside a class, after which tables of the class are asked for


@inner
def fill(m, t, v, r, state):
    """Describe the mask of a state by a walk from this state alone, without EOS; returns the base, see mask_rows.py."""
    other = without_literals(m, t, state)
    base = fill_other(m, t, v, r, other) if other != DEAD and m[t.n + FAULT] == NO_FAULT else wide(0)
    if other != state and m[t.n + FAULT] == NO_FAULT:
        m[t.state_events + REC * state] |= m[t.state_events + REC * other]
        walk_literals(m, t, v, r, state, False)
    return base


@inner
def fill_other(m, t, v, r, state):
    """The same without regard to literals. Inside a string, walks pass by control characters, and what has them is cleared then."""
    is_in_string = may_be_in_string(m, t, state)
    m[t.n + IN_STRING] = 1 if is_in_string else 0
    base = fill_plain(m, t, v, r, state)
    m[t.n + IN_STRING] = 0
    if is_in_string:
        clear_tokens(r, wide(v[CONTROLS]), wide(v[CONTROLS]) + wide(v[NUM_CONTROLS]))
    return base


@inner
def may_be_in_string(m, t, state):
    """Whether a text is JSON and inside a string: it may go on with what nothing else has."""
    row = t.next + state * 256
    for byte in ONLY_IN_STRINGS:
        if m[row + byte] != DEAD:
            return m[t.n + ONLY_JSON] == 1
    return False


@inner
def fill_plain(m, t, v, r, state):
    """Describe the mask of a state without literals."""
    body, radius = wide(m[t.state_body + REC * state]), wide(m[t.state_radius + REC * state])
    tables = wide(m[t.classes + CLASS_WIDTH * body + CLASS_TABLES]) if body >= 0 else string_class(m, t, v, state)
    if tables != 0:
        slice_ = slice_of(m, t, v, tables, state, radius) if body >= 0 else wide(v[tables + LAST_SLICE])
        if slice_ >= 0:
            return fill_body(m, t, v, r, state, tables, slice_)
    base, other = wide(0), wide(state)
    if tables == 0:
        space, rest, radius = split_space(m, t, v, state)
        are_ends_seen = m[t.n + NUM_ENDS] < 0 or space == DEAD or not completes_inside(m, t, space, body_of(m, t, space))
        if space != DEAD and are_ends_seen and is_alone(m, t, space):
            base, other = fill_space(m, t, v, r, space, radius), rest
            m[t.state_events + REC * state] |= m[t.state_events + REC * space]
    trie = wide(v[GROUPED]) if reads_letters_alike(m, t, other) else wide(v[TRIE])
    if walk(m, t, v, r, trie, wide(-1), other) > MANY_VISITED and body >= 0 and tables == 0:
        m[t.n + WANTED] = body + 1
    m[t.state_events + REC * state] |= m[t.state_events + REC * other]
    return base


@inner
def fill_body(m, t, v, r, state, tables, slice_):
    """The same of a state inside a class with tables, by a slice of it."""
    body, radius = wide(m[t.state_body + REC * state]), wide(m[t.state_radius + REC * state])
    trie, exits = wide(v[tables + RESIDUAL]), wide(v[tables + EXITS])
    if exits != 0 and (is_alone(m, t, state) if body >= 0 else m[t.state_accept + REC * state] == 0):
        door, least = wide(state), wide(0)
        if body >= 0 and not is_loop(m, t, v, tables, state):
            door, least = door_of(m, t, v, exits, state)
        if door != DEAD and (least != 1 or v[tables + NUM_EXITS] <= MANY_TOKENS):
            walk_exits(m, t, v, r, tables, state, door, least, radius if body >= 0 else wide(ENDLESS))
            trie = wide(v[tables + REST])
    if body >= 0 and slice_ == v[tables + LAST_SLICE]:
        clear_longer(v, r, tables, radius)
    walk(m, t, v, r, trie, wide(-1), state)
    return v[tables + SLICES] + slice_ * wide(v[WORDS])


@inner
def split_space(m, t, v, state):
    """(state, state, radius): the items of a state that repeat characters of a class, such as white space behind a number, without
    end, if no token leaves it behind more of them than there may be, and the other items. (DEAD, state, 0) where there are none.

    Otherwise a state would be made for each number of characters that have been read. The mask is that of both together.
    """
    start, length = items_of(m, t, state)
    body, radius = wide(NO_BODY), wide(0)
    for j in range(start, start + length):
        item = wide(m[t.pool + j])
        if body == NO_BODY:
            body = repeated(m, t, v, item)
        if body != NO_BODY and repeated(m, t, v, item) == body:
            most = 1 + copies(m, t, wide(m[t.b + REC * item]), body)
            radius = most if radius == 0 else min(radius, most)
    if body == NO_BODY or radius < most_before_exits(m, t, v, body):
        return wide(DEAD), wide(state), wide(0)
    parts = np.zeros(2, np.int64)
    for part in range(2):
        count = wide(0)
        for j in range(start, start + length):
            item = wide(m[t.pool + j])
            if (repeated(m, t, v, item) == body) == (part == 0):
                m[t.items + count] = endless(m, t, item) if part == 0 else item
                count += 1
        if part == 0:
            parts[part] = intern_state(m, t, count, body, wide(ENDLESS))
        else:
            parts[part] = intern_state(m, t, count, wide(m[t.state_body + REC * state]), wide(m[t.state_radius + REC * state]))
    if parts[0] == DEAD or parts[1] == DEAD:
        return wide(DEAD), wide(state), wide(0)
    return wide(parts[0]), wide(parts[1]), radius


@inner
def endless(m, t, item):
    """An item that begins with a repetition, without its end."""
    own, rest = leaf(m, t, item), wide(m[t.b + REC * item])
    loop = leaf(m, t, rest)
    again = repetition(m, t, wide(m[t.a + REC * loop]), wide(m[t.b + REC * loop]), wide(UNBOUNDED))
    return pair(m, t, own, pair(m, t, again, wide(m[t.b + REC * rest])) if m[t.kind + REC * rest] == SEQ else again)


@inner
def most_before_exits(m, t, v, body):
    """The most characters of a class before the rest of a token."""
    tables = wide(m[t.classes + CLASS_WIDTH * body + CLASS_TABLES])
    return wide(v[v[tables + PREFIX]]) if v[tables + NUM_EXITS] > 0 else wide(0)


@inner
def fill_space(m, t, v, r, space, radius):
    """Describe the mask of the first of those states, of which at most `radius` characters may follow; returns the base."""
    tables = wide(m[t.classes + CLASS_WIDTH * m[t.state_body + REC * space] + CLASS_TABLES])
    slice_ = min(radius, wide(v[tables + LAST_SLICE]))
    if slice_ == v[tables + LAST_SLICE]:
        clear_longer(v, r, tables, radius)
    walk(m, t, v, r, wide(v[tables + RESIDUAL]), wide(-1), space)
    return v[tables + SLICES] + slice_ * wide(v[WORDS])


@inner
def repeated(m, t, v, item):
    """The class of which an item repeats characters, if its exits are known; else NO_BODY."""
    own = leaf(m, t, item)
    unit = wide(m[t.unit + REC * own])
    if m[t.kind + REC * own] != CLASS or m[t.kind + REC * item] != SEQ or unit == NO_BODY:
        return wide(NO_BODY)
    tables = wide(m[t.classes + CLASS_WIDTH * unit + CLASS_TABLES])
    is_known = tables != 0 and v[tables + EXITS] != 0 and copies(m, t, wide(m[t.b + REC * item]), unit) > 0
    return unit if is_known else wide(NO_BODY)


@inner
def walk_exits(m, t, v, r, tables, state, door, least, most):
    """Note the tokens that leave the body of a state through a door, see `door_of`: those of which the part in the body has so many
    characters."""
    exits, end = wide(v[tables + BY_PREFIX]), wide(v[tables + NUM_EXITS])  # the longest parts come first
    kept, kept_end = longer_parts(v, tables, most), longer_parts(v, tables, least - 1)
    if kept == kept_end:
        return
    walk(m, t, v, r, wide(v[tables + EXITS]), wide(-1), door)
    m[t.state_events + REC * state] |= m[t.state_events + REC * door]
    m[t.n + CLEARED], m[t.n + KEPT] = exits, exits + kept
    m[t.n + KEPT_END], m[t.n + CLEARED_END] = exits + kept_end, exits + end
    clear_tokens(r, exits, exits + kept)
    clear_tokens(r, exits + kept_end, exits + end)


@inner
def longer_parts(v, tables, chars):
    """How many of the exits of a class have a part in it of more characters than that."""
    low, high = wide(0), wide(v[tables + NUM_EXITS])
    while low < high:
        middle = (low + high) // 2
        if v[v[tables + PREFIX] + middle] > chars:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def reads_letters_alike(m, t, state):
    """Whether a state reads letters, and one like another; and so the states where they lead to."""
    if m[t.next + state * 256 + LOWER] == DEAD and m[t.next + state * 256 + UPPER] == DEAD:
        return False
    s = wide(state)
    for _ in range(3):
        for first in (LOWER, UPPER):
            if not reads_alike(m, t, s, wide(first), wide(first + 26)):
                return False
        first = LOWER if m[t.next + s * 256 + LOWER] != DEAD else UPPER
        s = wide(m[t.next + s * 256 + first] & STATE_MASK)
    return True


@inner
def string_class(m, t, v, state):
    """The tables of the class of JSON strings of which all characters lead from a state back to itself, as they do in a key that
    is none of the excluded ones; 0 when there is none."""
    run = run_of(m, t, state) if m[t.state_flat + REC * state] == 0 else wide(0)
    if run != 0 and m[run] == state:
        for tables in (wide(v[STRING]), wide(v[LINE])):
            if is_inside(v, tables + FIRST_BYTES - 1, run + 1, m, 0):
                return tables
    return wide(0)


@inner
def slice_of(m, t, v, tables, state, radius):
    """The slice of a class that is right for a state with this body, but for tokens that are longer; -1 when there is none."""
    if radius < v[tables + LONGEST] and not is_alone(m, t, state):
        return wide(-1)
    return min(radius, wide(v[tables + LAST_SLICE]))


@inner
def clear_longer(v, r, tables, radius):
    """Note that the tokens of a class with more characters than that are not to be set."""
    first, count = wide(v[tables + FAR]), wide(0)
    while count < v[tables + NUM_FAR] and v[v[tables + FAR_LENGTH] + count] > radius:
        count += 1
    clear_tokens(r, first, first + count)


@inner
def body_of(m, t, state):
    return wide(m[t.state_body + REC * state])
