"""Masks from the tables of body classes: a state's mask, made by walking the vocabulary from this state alone.

Comes in: a state. Goes out: the description of its mask, as a base and edits (mask_rows.py). The base is a slice of a body
class, all tokens of its characters up to a length (char_class_tables.py), or empty; what leaves the class is walked. trie_walk.py
says why that is exact.
"""

from __future__ import annotations

import numpy as np

from ..automaton.closures import ENDLESS
from ..automaton.nodes import NO_BODY, head_of, repetition, sequence, wide
from ..automaton.states import intern_state, items_of
from ..automaton.tables import CLASS_TABLES, CLASS_WIDTH, DEAD, REC, STATE_MASK, Counter, Fault
from ..base.kinds import UNBOUNDED, Kind
from ..numba_support.jit import inner
from ..vocabulary.byte_classes import LOWER, UPPER
from ..vocabulary.packed_vocabulary import ClassRecord, Header, is_inside
from .loop_context import exit_state_of, is_body_exclusive, is_loop, leading_copies
from .mask_rows import clear_tokens
from .shared_continuations import completes_inside
from .trie_walk import reads_alike, walk, walk_literals, without_literals
from .uniform_transitions import uniform_of

ONLY_IN_STRINGS = tuple(b"#_AZbz")  # some of what stands in JSON only there, and in most strings
MANY_TOKENS = 4000  # more than are looked at one by one
MANY_VISITED = 1000  # trie nodes, by a walk inside a class, after which tables of the class are asked for


@inner
def fill(arena, tables, vocab, rows, state):
    """Describe the mask of a state, without EOS, by a walk from this state alone. Returns the base and notes the edits,
    see mask_rows.py."""
    other = without_literals(arena, tables, state)
    base = (
        fill_other(arena, tables, vocab, rows, other)
        if other != DEAD and arena[tables.n + Counter.FAULT] == Fault.NONE
        else wide(0)
    )
    if other != state and arena[tables.n + Counter.FAULT] == Fault.NONE:
        arena[tables.state_events + REC * state] |= arena[tables.state_events + REC * other]
        walk_literals(arena, tables, vocab, rows, state, False)
    return base


@inner
def fill_other(arena, tables, vocab, rows, state):
    """`fill` for a state whose literals are walked elsewhere. Inside a string the walks pass by control characters; the
    tokens that have them are cleared at the end."""
    is_in_string = may_be_in_string(arena, tables, state)
    arena[tables.n + Counter.IN_STRING] = 1 if is_in_string else 0
    base = fill_plain(arena, tables, vocab, rows, state)
    arena[tables.n + Counter.IN_STRING] = 0
    if is_in_string:
        clear_tokens(rows, wide(vocab[Header.CONTROLS]), wide(vocab[Header.CONTROLS]) + wide(vocab[Header.NUM_CONTROLS]))
    return base


@inner
def may_be_in_string(arena, tables, state):
    """Whether the text is JSON and may be inside a string here: it can go on with characters that JSON has nowhere
    else."""
    row = tables.next + state * 256
    for byte in ONLY_IN_STRINGS:
        if arena[row + byte] != DEAD:
            return arena[tables.n + Counter.ONLY_JSON] == 1
    return False


@inner
def fill_plain(arena, tables, vocab, rows, state):
    """Describe the mask of a state without literals. Returns the base."""
    body, max_chars = wide(arena[tables.state_body_class + REC * state]), wide(arena[tables.state_max_chars + REC * state])
    class_tables = (
        wide(arena[tables.classes + CLASS_WIDTH * body + CLASS_TABLES])
        if body >= 0
        else string_class(arena, tables, vocab, state)
    )
    if class_tables != 0:
        slice_ = (
            slice_of(arena, tables, vocab, class_tables, state, max_chars)
            if body >= 0
            else wide(vocab[class_tables + ClassRecord.LAST_SLICE])
        )
        if slice_ >= 0:
            return fill_body(arena, tables, vocab, rows, state, class_tables, slice_)
    base, other = wide(0), wide(state)
    if class_tables == 0:
        space, rest, max_chars = split_space(arena, tables, vocab, state)
        are_ends_seen = (
            arena[tables.n + Counter.NUM_ENDS] < 0
            or space == DEAD
            or not completes_inside(arena, tables, space, body_of(arena, tables, space))
        )
        if space != DEAD and are_ends_seen and is_body_exclusive(arena, tables, space):
            base, other = fill_space(arena, tables, vocab, rows, space, max_chars), rest
            arena[tables.state_events + REC * state] |= arena[tables.state_events + REC * space]
    trie = wide(vocab[Header.GROUPED]) if reads_letters_alike(arena, tables, other) else wide(vocab[Header.TRIE])
    if walk(arena, tables, vocab, rows, trie, wide(-1), other) > MANY_VISITED and body >= 0 and class_tables == 0:
        arena[tables.n + Counter.WANTED] = body + 1
    arena[tables.state_events + REC * state] |= arena[tables.state_events + REC * other]
    return base


@inner
def fill_body(arena, tables, vocab, rows, state, class_tables, slice_):
    """Describe the mask of a state inside a class with tables, beginning with the slice `slice_` of the class. Returns
    the base."""
    body, max_chars = wide(arena[tables.state_body_class + REC * state]), wide(arena[tables.state_max_chars + REC * state])
    trie, exits = wide(vocab[class_tables + ClassRecord.RESIDUAL]), wide(vocab[class_tables + ClassRecord.EXITS])
    if exits != 0 and (is_body_exclusive(arena, tables, state) if body >= 0 else arena[tables.state_accept + REC * state] == 0):
        exit_state, least = wide(state), wide(0)
        if body >= 0 and not is_loop(arena, tables, vocab, class_tables, state):
            exit_state, least = exit_state_of(arena, tables, vocab, exits, state)
        if exit_state != DEAD and (least != 1 or vocab[class_tables + ClassRecord.NUM_EXITS] <= MANY_TOKENS):
            walk_exits(
                arena,
                tables,
                vocab,
                rows,
                class_tables,
                state,
                exit_state,
                least,
                max_chars if body >= 0 else wide(ENDLESS),
            )
            trie = wide(vocab[class_tables + ClassRecord.REST])
    if body >= 0 and slice_ == vocab[class_tables + ClassRecord.LAST_SLICE]:
        clear_longer(vocab, rows, class_tables, max_chars)
    walk(arena, tables, vocab, rows, trie, wide(-1), state)
    return vocab[class_tables + ClassRecord.SLICES] + slice_ * wide(vocab[Header.WORDS])


@inner
def split_space(arena, tables, vocab, state):
    """(space, rest, most): a state of the items that repeat characters of one class, such as white space behind a
    number, made endless; a state of the other items; and how many characters may come in the first at most. (DEAD,
    state, 0) where this is not done.

    The mask is that of both states together. Otherwise a state would be made for each number of characters that have
    been read. It is done only where no token leaves the class behind more characters than may come.
    """
    start, length = items_of(arena, tables, state)
    body, max_chars = wide(NO_BODY), wide(0)
    for j in range(start, start + length):
        item = wide(arena[tables.pool + j])
        if body == NO_BODY:
            body = repeated(arena, tables, vocab, item)
        if body != NO_BODY and repeated(arena, tables, vocab, item) == body:
            most = 1 + leading_copies(arena, tables, wide(arena[tables.b + REC * item]), body)
            max_chars = most if max_chars == 0 else min(max_chars, most)
    if body == NO_BODY or max_chars < most_before_exits(arena, tables, vocab, body):
        return wide(DEAD), wide(state), wide(0)
    parts = np.zeros(2, np.int64)
    for part in range(2):
        count = wide(0)
        for j in range(start, start + length):
            item = wide(arena[tables.pool + j])
            if (repeated(arena, tables, vocab, item) == body) == (part == 0):
                arena[tables.items + count] = endless(arena, tables, item) if part == 0 else item
                count += 1
        if part == 0:
            parts[part] = intern_state(arena, tables, count, body, wide(ENDLESS))
        else:
            parts[part] = intern_state(
                arena,
                tables,
                count,
                wide(arena[tables.state_body_class + REC * state]),
                wide(arena[tables.state_max_chars + REC * state]),
            )
    if parts[0] == DEAD or parts[1] == DEAD:
        return wide(DEAD), wide(state), wide(0)
    return wide(parts[0]), wide(parts[1]), max_chars


@inner
def endless(arena, tables, item):
    """An item that begins with a character and a repetition, with the repetition made endless."""
    own, rest = head_of(arena, tables, item), wide(arena[tables.b + REC * item])
    loop = head_of(arena, tables, rest)
    again = repetition(arena, tables, wide(arena[tables.a + REC * loop]), wide(arena[tables.b + REC * loop]), wide(UNBOUNDED))
    return sequence(
        arena,
        tables,
        own,
        sequence(arena, tables, again, wide(arena[tables.b + REC * rest]))
        if arena[tables.kind + REC * rest] == Kind.SEQ
        else again,
    )


@inner
def most_before_exits(arena, tables, vocab, body):
    """The most characters of a body class with which a token begins that leaves the class."""
    class_tables = wide(arena[tables.classes + CLASS_WIDTH * body + CLASS_TABLES])
    return wide(vocab[vocab[class_tables + ClassRecord.PREFIX]]) if vocab[class_tables + ClassRecord.NUM_EXITS] > 0 else wide(0)


@inner
def fill_space(arena, tables, vocab, rows, space, max_chars):
    """Describe the mask of the state `space` of `split_space`, in which at most `max_chars` characters may come. Returns
    the base."""
    class_tables = wide(arena[tables.classes + CLASS_WIDTH * arena[tables.state_body_class + REC * space] + CLASS_TABLES])
    slice_ = min(max_chars, wide(vocab[class_tables + ClassRecord.LAST_SLICE]))
    if slice_ == vocab[class_tables + ClassRecord.LAST_SLICE]:
        clear_longer(vocab, rows, class_tables, max_chars)
    walk(arena, tables, vocab, rows, wide(vocab[class_tables + ClassRecord.RESIDUAL]), wide(-1), space)
    return vocab[class_tables + ClassRecord.SLICES] + slice_ * wide(vocab[Header.WORDS])


@inner
def repeated(arena, tables, vocab, item):
    """The body class of which an item repeats characters, if the class's exits are known; else NO_BODY."""
    own = head_of(arena, tables, item)
    unit = wide(arena[tables.body_class + REC * own])
    if arena[tables.kind + REC * own] != Kind.CLASS or arena[tables.kind + REC * item] != Kind.SEQ or unit == NO_BODY:
        return wide(NO_BODY)
    class_tables = wide(arena[tables.classes + CLASS_WIDTH * unit + CLASS_TABLES])
    is_known = (
        class_tables != 0
        and vocab[class_tables + ClassRecord.EXITS] != 0
        and leading_copies(arena, tables, wide(arena[tables.b + REC * item]), unit) > 0
    )
    return unit if is_known else wide(NO_BODY)


@inner
def walk_exits(arena, tables, vocab, rows, class_tables, state, exit_state, least, most):
    """Note the tokens that leave the body of a state and are read from `exit_state` then, see `exit_state_of`: those with `least`
    to `most` characters inside the body."""
    exits, end = (
        wide(vocab[class_tables + ClassRecord.BY_PREFIX]),
        wide(vocab[class_tables + ClassRecord.NUM_EXITS]),
    )  # the longest parts come first
    kept, kept_end = longer_parts(vocab, class_tables, most), longer_parts(vocab, class_tables, least - 1)
    if kept == kept_end:
        return
    walk(arena, tables, vocab, rows, wide(vocab[class_tables + ClassRecord.EXITS]), wide(-1), exit_state)
    arena[tables.state_events + REC * state] |= arena[tables.state_events + REC * exit_state]
    arena[tables.n + Counter.CLEARED], arena[tables.n + Counter.KEPT] = exits, exits + kept
    arena[tables.n + Counter.KEPT_END], arena[tables.n + Counter.CLEARED_END] = exits + kept_end, exits + end
    clear_tokens(rows, exits, exits + kept)
    clear_tokens(rows, exits + kept_end, exits + end)


@inner
def longer_parts(vocab, tables, chars):
    """How many exits of a class have more than `chars` characters inside the class."""
    low, high = wide(0), wide(vocab[tables + ClassRecord.NUM_EXITS])
    while low < high:
        middle = (low + high) // 2
        if vocab[vocab[tables + ClassRecord.PREFIX] + middle] > chars:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def reads_letters_alike(arena, tables, state):
    """Whether a state reads letters, and reads them all alike, and so do the states to which they lead."""
    if arena[tables.next + state * 256 + LOWER] == DEAD and arena[tables.next + state * 256 + UPPER] == DEAD:
        return False
    s = wide(state)
    for _ in range(3):
        for first in (LOWER, UPPER):
            if not reads_alike(arena, tables, s, wide(first), wide(first + 26)):
                return False
        first = LOWER if arena[tables.next + s * 256 + LOWER] != DEAD else UPPER
        s = wide(arena[tables.next + s * 256 + first] & STATE_MASK)
    return True


@inner
def string_class(arena, tables, vocab, state):
    """The tables of the class of JSON strings (or of those without line separators) if all its characters lead from a
    state back to itself, as in a key that is none of the excluded ones; else 0."""
    run = uniform_of(arena, tables, state) if arena[tables.state_has_no_product + REC * state] == 0 else wide(0)
    if run != 0 and arena[run] == state:
        for class_tables in (wide(vocab[Header.STRING]), wide(vocab[Header.LINE])):
            if is_inside(vocab, class_tables + ClassRecord.FIRST_BYTES - 1, run + 1, arena, 0):
                return class_tables
    return wide(0)


@inner
def slice_of(arena, tables, vocab, class_tables, state, max_chars):
    """The slice of a body class that is right for a state with this body, apart from longer tokens (`clear_longer`); -1
    when there is none."""
    if max_chars < vocab[class_tables + ClassRecord.LONGEST] and not is_body_exclusive(arena, tables, state):
        return wide(-1)
    return min(max_chars, wide(vocab[class_tables + ClassRecord.LAST_SLICE]))


@inner
def clear_longer(vocab, rows, tables, max_chars):
    """Note that the tokens of a class with more than `max_chars` characters do not survive."""
    first, count = wide(vocab[tables + ClassRecord.LONG_TOKENS]), wide(0)
    while (
        count < vocab[tables + ClassRecord.NUM_LONG_TOKENS]
        and vocab[vocab[tables + ClassRecord.LONG_TOKEN_LENGTHS] + count] > max_chars
    ):
        count += 1
    clear_tokens(rows, first, first + count)


@inner
def body_of(arena, tables, state):
    return wide(arena[tables.state_body_class + REC * state])
