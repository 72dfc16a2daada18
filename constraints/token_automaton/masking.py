"""From a state to the number of its mask row: the cheapest way is chosen to make it.

Comes in: a state, and a register where keys or items are remembered. Goes out: the number of a row (mask_rows.py), kept in
`state_row`. Each way describes the mask as a base and edits. They are tried in this order:

    row_of_endless      the state without the ends of repetitions that are out of reach (counter_saturation.py)
    row_without_words   any key, without the tokens that spell names (word_complement_masks.py)
    row_beside_names    any key of a pattern, likewise (pattern_complement_masks.py)
    similar_state       the endless body where most characters lead, and what differs from it (`walk_difference`)
    before_tail         the state without the tail behind all its items (shared_continuations.py)
    before_end          the endless state of the same body class (counter_saturation.py)
    fill                a walk from the state itself (class_masks.py)

`row_with_seen` then takes away the tokens that the register refuses (duplicate_masks.py).
"""

from __future__ import annotations

import numpy as np

from ..automaton.closures import ENDLESS
from ..automaton.nodes import EMPTY, wide
from ..automaton.states import inner_of, state_of
from ..automaton.tables import DEAD, NO_CLASS, Fault, tables_at
from ..masks.class_masks import MANY_TOKENS, body_of, clear_longer, fill, slice_of, string_class
from ..masks.counter_saturation import saturate_class, saturate_state
from ..masks.mask_rows import Region, clear_tokens, find_or_make, has_too_many_edits
from ..masks.pattern_complement_masks import clear_excluded, without_exclusion
from ..masks.shared_continuations import (
    are_ends_known,
    common_tail,
    completes_inside,
    end_of,
    ends_of,
    keep_ends,
    without_tail,
)
from ..masks.trie_walk import reads_alike, walk, walk_difference, walk_literals, walk_rest, without_literals
from ..masks.uniform_transitions import FIRST_PRINTABLE, LAST_PRINTABLE, majority
from ..masks.word_complement_masks import clear_words, state_of_any
from ..numba_support.jit import entry, inner
from ..numba_support.records import words_at
from ..uniqueness.duplicate_masks import REMEMBERED, WalkMode, judge_trie, where_refusals_begin
from ..uniqueness.register_product import SeenFlag, seen_flags
from ..vocabulary.byte_classes import LOWER, UPPER
from ..vocabulary.packed_vocabulary import NODE_WIDTH, Header, TrieRecord

NO_ROOM = -1  # instead of the number of a row
ROOM = 4  # rows that one call may add


@entry
def mask_row(arena_address, vocab_address, rows_address, state, seen, has_items, completable):
    """(number of the mask row of a state and a register, body class for which tables are wanted).

    The number is NO_ROOM when ROOM rows do not fit into the pool; it means nothing on a fault. here: the register, 0 for
    an automaton without. completable: the address of the tokens behind which the vocabulary can finish (int32 [words]),
    0 when these are all tokens.
    """
    m, vocab, rows = tables_at(arena_address), words_at(vocab_address), words_at(rows_address)
    wanted, number = NO_CLASS, m.states[state].row
    if number == 0:
        if rows[Region.COUNT] + ROOM > rows[Region.CAPACITY]:
            return NO_ROOM, wanted
        number = row_of_endless(m, vocab, rows, state, completable)
        if number == 0:
            number = row_and_similar(m, vocab, rows, state, completable)
        wanted = m.n.wanted
        m.n.wanted = NO_CLASS
    if seen != 0 and m.n.fault == Fault.NONE:
        number = row_with_seen(m, vocab, rows_address, number, state, seen, has_items)
    return number, wanted


@inner
def row_of_endless(m, vocab, rows, state, completable):
    """The number of the row of a state that has the mask of its `saturate_state`; 0 when there is no other such state."""
    saturated = saturate_state(m, vocab, state)
    if saturated == state or m.n.fault != Fault.NONE:
        return 0
    number = row_and_similar(m, vocab, rows, saturated, completable)
    if saturate_state(m, vocab, state) != saturated or m.n.fault != Fault.NONE:
        return 0
    m.states[state].row, m.states[state].events = number, m.states[saturated].events
    return number


@inner
def row_and_similar(m, vocab, rows, state, completable):
    """The number of the row of a state, made if needed; if it follows from the row of a similar state, that is made
    first."""
    unlisted = m.states[state].unlisted if completable == 0 and m.states[state].row == 0 else 0
    if unlisted != 0:
        number = row_without_words(m, vocab, rows, state, unlisted)
        if number != 0:
            return number
    if completable == 0 and m.states[state].row == 0 and not has_known_inner(m, state):
        number = row_beside_names(m, vocab, rows, state)
        if number != 0:
            return number
    return row_by_similar(m, vocab, rows, state, completable)


@inner
def row_by_similar(m, vocab, rows, state, completable):
    """The number of the row of a state, made if needed, with the help of `similar_state`; names in keys are not looked
    at."""
    base_state = similar_state(m, vocab, state) if completable == 0 and not has_known_inner(m, state) else DEAD
    if base_state != DEAD:
        row_of(m, vocab, rows, base_state, DEAD, completable)
    return row_of(m, vocab, rows, state, base_state, completable)


@inner
def row_beside_names(m, vocab, rows, state):
    """The number of the row of a state with several literals, such as the names that a key may have; 0 when it is not
    done.

    It is made from the row of the state without the literals and of any key (pattern_complement_masks.py), which is often the same
    behind each of the names.
    """
    base_state, words, tail = without_exclusion(m, state)
    if base_state == DEAD and m.n.fault == Fault.NONE and m.states[state].frame == 0:
        base_state, words = without_literals(m, state), DEAD
    if base_state == DEAD or base_state == state or m.n.fault != Fault.NONE:
        return 0
    base = -row_by_similar(m, vocab, rows, base_state, 0)
    rows[Region.NUM_EDITS] = 0
    if m.n.fault != Fault.NONE:
        return 0
    if words != DEAD:
        clear_excluded(m, vocab, rows, words, tail)
    m.states[state].events |= m.states[base_state].events
    walk_literals(m, vocab, rows, state, False)
    return 0 if has_too_many_edits(rows) else keep_row(m, vocab, rows, state, base, 0)


@inner
def row_without_words(m, vocab, rows, state, unlisted):
    """The number of the row of a state in an UNLISTED node, made from the row of its body (word_complement_masks.py); 0 when
    it is not done."""
    base_state = state_of_any(m, state, unlisted)
    if base_state == DEAD or m.n.fault != Fault.NONE:
        return 0
    base = -row_of(m, vocab, rows, base_state, DEAD, 0)
    rows[Region.NUM_EDITS] = 0
    if m.n.fault != Fault.NONE:
        return 0
    clear_words(m, vocab, rows, unlisted)
    m.states[state].events |= m.states[base_state].events
    walk_literals(m, vocab, rows, state, True)
    return 0 if has_too_many_edits(rows) else keep_row(m, vocab, rows, state, base, 0)


@inner
def has_known_inner(m, state):
    """Whether a state is a frame whose mask follows from what is known of its inner state."""
    return m.states[state].frame != 0 and m.states[inner_of(m, state)].ends != 0


@inner
def similar_state(m, vocab, state):
    """The state where most characters lead to from `state`, if it is an endless body; DEAD when there is none, and on a
    fault.

    Inside a key that may still become one of several names, any other character leads into the body of all other keys.
    """
    if m.states[state].body_class >= 0 or m.states[state].literal_left > 0 or not reads_most(m, state):
        return DEAD
    base_state, votes = majority(m, state), 0
    for byte in range(FIRST_PRINTABLE, LAST_PRINTABLE + 1):
        votes += 1 if m.next[state * 256 + byte] == base_state else -1
    if votes < 0 or m.n.fault != Fault.NONE:
        return DEAD
    is_endless = m.states[base_state].body_class >= 0 and m.states[base_state].max_chars >= ENDLESS
    return base_state if base_state != state and (is_endless or string_class(m, vocab, base_state) != 0) else DEAD


@inner
def reads_most(m, state):
    """Whether a state may read more than half of the printable characters."""
    live = 0
    for byte in range(FIRST_PRINTABLE, LAST_PRINTABLE + 1):
        live += 1 if m.next[state * 256 + byte] != DEAD else 0
    return 2 * live > LAST_PRINTABLE + 1 - FIRST_PRINTABLE


@inner
def row_of(m, vocab, rows, state, base_state, completable):
    """The number of the mask row of a state, which is made if needed. like: a similar state whose row is there, or
    DEAD."""
    number = m.states[state].row
    if number != 0 or m.n.fault != Fault.NONE:
        return number
    base, is_done = 0, False
    if base_state != DEAD:
        rows[Region.NUM_EDITS], base = 0, -m.states[base_state].row
        is_done = walk_difference(m, vocab, rows, state, base_state)
    elif completable == 0:
        base = before_tail(m, vocab, rows, state)
        if base == 0 and m.n.fault == Fault.NONE:
            base = before_end(m, vocab, rows, state)
        is_done = base != 0
    if not is_done and m.n.fault == Fault.NONE:
        rows[Region.NUM_EDITS] = 0
        base = fill(m, vocab, rows, state)
    return keep_row(m, vocab, rows, state, base, completable)


@inner
def keep_row(m, vocab, rows, state, base, completable):
    """Make the row that has been described, for a state that has none. Returns the number of the state's row, 0 on a
    fault."""
    if m.n.fault == Fault.NONE and m.states[state].row == 0:
        m.states[state].row = find_or_make(rows, vocab, base, m.states[state].accept, completable)
    return m.states[state].row


@inner
def before_tail(m, vocab, rows, state):
    """Describe the mask of a state by that of the state without its tail (shared_continuations.py). Returns the base, 0 when it
    is not done.

    A tail behind characters of the state's body does not count: there would be an end at each of the many prefixes of
    tokens.
    """
    tail = common_tail(m, state)
    before = without_tail(m, state, tail) if tail != EMPTY else DEAD
    if before == DEAD or m.states[before].accept == 1:
        return 0
    if completes_inside(m, before, body_of(m, before)) or completes_inside(m, before, body_of(m, state)):
        return 0
    if not are_ends_known(m, before) or m.states[before].row == 0:
        find_ends(m, vocab, rows, before)
    if m.states[before].has_too_many_ends == 1 or m.n.fault != Fault.NONE:
        return 0
    ends = ends_of(m, before)
    following = state_of(m, tail) if ends.count > 0 else DEAD
    if m.n.fault != Fault.NONE:
        return 0
    if following != DEAD and has_to_look_at_many(m, vocab, before, following):
        return 0
    rows[Region.NUM_EDITS] = 0
    for k in range(ends.count):
        end = end_of(m, before, k)
        if end.trie == 0:
            walk_rest(m, vocab, rows, end.token, end.offset, following)
        else:
            walk(m, vocab, rows, end.trie, end.node, following)
    clear_tokens(rows, ends.cleared, ends.kept)
    clear_tokens(rows, ends.kept_end, ends.cleared_end)
    if has_too_many_edits(rows):
        return 0
    m.states[state].events = m.states[before].events
    if following != DEAD:
        m.states[state].events |= m.states[following].events
    return -m.states[before].row


@inner
def has_to_look_at_many(m, vocab, before, state):
    """Whether a state tells letters apart, and many tokens lie behind the ends of the state `before` in the trie by groups."""
    if reads_alike(m, state, LOWER, LOWER + 26) and reads_alike(m, state, UPPER, UPPER + 26):
        return False
    nodes, tokens = vocab[vocab[Header.GROUPED] + TrieRecord.NODES], 0
    for k in range(ends_of(m, before).count):
        end = end_of(m, before, k)
        if end.trie == vocab[Header.GROUPED]:
            node = nodes + NODE_WIDTH * end.node
            tokens += vocab[nodes + NODE_WIDTH * vocab[node + 2] + 3] - vocab[node + 3]
    return tokens > MANY_TOKENS


@inner
def find_ends(m, vocab, rows, state):
    """Make the row of a state, and find its ends. The ends outlive the row, see `TokenAutomaton.drop_rows`."""
    base = before_end(m, vocab, rows, state)
    if base == 0:
        fill_and_note(m, vocab, rows, state)
    else:
        keep_row(m, vocab, rows, state, base, 0)


@inner
def fill_and_note(m, vocab, rows, state):
    """Make the row of a state by a walk from this state, and note its ends on the way."""
    m.n.cleared = m.n.kept = m.n.kept_end = m.n.cleared_end = 0
    m.n.num_ends = rows[Region.NUM_EDITS] = 0
    m.n.notes_ends = 1
    base = fill(m, vocab, rows, state)
    keep_ends(m, state)
    keep_row(m, vocab, rows, state, base, 0)


@inner
def before_end(m, vocab, rows, state):
    """Describe the mask of a state, and its ends, by those of the state in which its repetitions have no end
    (`saturate_class`). Returns the base, 0 when it is not done."""
    body = m.states[state].body_class
    class_tables = m.classes[body].tables if body >= 0 else 0
    if class_tables == 0 or slice_of(m, vocab, class_tables, state, m.states[state].max_chars) < 0:
        return 0
    saturated = saturate_class(m, vocab, class_tables, state)
    if saturated == DEAD:
        return 0
    if not are_ends_known(m, saturated) or m.states[saturated].row == 0:
        fill_and_note(m, vocab, rows, saturated)
    rows[Region.NUM_EDITS] = 0
    clear_longer(vocab, rows, class_tables, m.states[state].max_chars)
    m.states[state].events = m.states[saturated].events
    if not are_ends_known(m, state):
        m.states[state].ends, m.states[state].has_too_many_ends = m.states[saturated].ends, m.states[saturated].has_too_many_ends
    return -m.states[saturated].row


@inner
def row_with_seen(m, vocab, rows_address, number, state, seen, has_items):
    """The number of the mask row of a state and a register; number: that of the state alone."""
    flags, rows = seen_flags(m, seen), words_at(rows_address)
    if not flags & SeenFlag.HAS_CANDIDATES and not m.states[state].events & REMEMBERED:
        return wide(number)
    if rows[Region.COUNT] + 1 > rows[Region.CAPACITY]:
        return NO_ROOM
    none, unsettled, cleared = np.empty(0, np.int32), np.empty((5, 0), np.int32), 0
    rows[Region.NUM_EDITS] = 0
    if flags & SeenFlag.HAS_CANDIDATES:
        cleared += judge_trie(
            m, vocab, rows_address, vocab[Header.TRIE], state, seen, WalkMode.ALONG, none, none, unsettled, 0
        )[2]
    trie = where_refusals_begin(m, vocab, flags)
    cleared += judge_trie(m, vocab, rows_address, trie, state, seen, WalkMode.WHOLE, none, none, unsettled, 0)[2]
    if has_items and not flags & SeenFlag.IN_UNIQUE:
        trie = vocab[Header.LISTED]
        cleared += judge_trie(m, vocab, rows_address, trie, state, seen, WalkMode.WHOLE, none, none, unsettled, 0)[2]
    if cleared == 0 or m.n.fault != Fault.NONE:
        return wide(number)
    return find_or_make(rows, vocab, -wide(number), m.states[state].accept, 0)
