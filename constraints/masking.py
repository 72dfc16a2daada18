"""Mask rows: the mask of a state, and of a state and a memory, made at the end of the pool and kept if it is new."""

from __future__ import annotations

import numpy as np

from .atlas import (
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
    NODE_WIDTH,
    NODES,
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
from .closures import ENDLESS
from .compiled import entry, inner, words_at
from .excluded import clear_excluded, without_exclusion
from .far import endless_state, far_state
from .groups import LOWER, UPPER
from .kinds import UNBOUNDED
from .nodes import CLASS, EMPTY, NO_BODY, SEQ, leaf, pair, repetition, wide
from .repetitions import copies, door_of, is_alone, is_loop
from .rivals import TRACKED, outlook
from .rows import CAPACITY, COUNT, NUM_EDITS, clear_tokens, find_or_make, has_too_many_edits
from .runs import FIRST_PRINTABLE, LAST_PRINTABLE, majority, run_of
from .states import inner_of, intern_state, items_of, state_of
from .tables import (
    CLASS_TABLES,
    CLASS_WIDTH,
    CLEARED,
    CLEARED_END,
    DEAD,
    FAULT,
    FRAMED,
    IN_STRING,
    KEPT,
    KEPT_END,
    NO_CLASS,
    NO_FAULT,
    NUM_ENDS,
    ONLY_JSON,
    REC,
    STATE_MASK,
    WANTED,
    layout,
)
from .tails import ENDS, TOO_MANY, common_tail, completes_inside, keep_ends, without_tail
from .unlisted_masks import clear_words, state_of_any, unlisted_of
from .verdicts import REMEMBERED, judge_trie, where_refusals_begin
from .walk import reads_alike, walk, walk_apart, walk_literals, walk_rest, without_literals

ONLY_IN_STRINGS = tuple(b"#_AZbz")  # some of what stands in JSON only there, and in most strings
MANY_VISITED = 1000  # trie nodes, by a walk inside a class, after which tables of the class are asked for
_MANY_TOKENS = 4000  # more than are looked at one by one
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
    and of any key (see excluded.py), which is often the same behind each of the names; 0 when it is not done."""
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
    """The number of the row of a state in an UNLISTED node, by that of its body, see unlisted_masks.py; 0 when it is not done."""
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
def fill(m, t, v, r, state):
    """Describe the mask of a state by a walk from this state alone, without EOS; returns the base, see rows.py."""
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
        if door != DEAD and (least != 1 or v[tables + NUM_EXITS] <= _MANY_TOKENS):
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
    """Describe the mask of a state by that of the state without its tail, see tails.py; returns the base, 0 when it is not done.

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
def body_of(m, t, state):
    return wide(m[t.state_body + REC * state])


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
    return tokens > _MANY_TOKENS


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
        cleared += judge_trie(m, t, v, rows, wide(v[TRIE]), state, here, wide(1), none, none, hard, wide(0))[2]
    trie = where_refusals_begin(m, t, v, prospects, has_items)
    cleared += judge_trie(m, t, v, rows, trie, state, here, wide(0), none, none, hard, wide(0))[2]
    if cleared == 0 or m[t.n + FAULT] != NO_FAULT:
        return wide(number)
    return find_or_make(r, v, -wide(number), wide(m[t.state_accept + REC * state]), wide(0))
