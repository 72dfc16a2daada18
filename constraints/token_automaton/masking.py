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
from ..automaton.tables import (
    CLASS_TABLES,
    CLASS_WIDTH,
    DEAD,
    FRAMED,
    NO_CLASS,
    REC,
    TOO_MANY,
    Counter,
    Fault,
    layout,
)
from ..masks.class_masks import MANY_TOKENS, body_of, clear_longer, fill, slice_of, string_class
from ..masks.counter_saturation import saturate_class, saturate_state
from ..masks.mask_rows import Region, clear_tokens, find_or_make, has_too_many_edits
from ..masks.pattern_complement_masks import clear_excluded, without_exclusion
from ..masks.shared_continuations import ENDS, common_tail, completes_inside, keep_ends, without_tail
from ..masks.trie_walk import reads_alike, walk, walk_difference, walk_literals, walk_rest, without_literals
from ..masks.uniform_transitions import FIRST_PRINTABLE, LAST_PRINTABLE, majority
from ..masks.word_complement_masks import clear_words, state_of_any, unlisted_of
from ..numba_support.jit import entry, inner, words_at
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
    arena, vocab, rows = words_at(arena_address), words_at(vocab_address), words_at(rows_address)
    tables = layout(arena)
    wanted, number = wide(NO_CLASS), wide(arena[tables.state_row + REC * state])
    if number == 0:
        if rows[Region.COUNT] + ROOM > rows[Region.CAPACITY]:
            return wide(NO_ROOM), wanted
        number = row_of_endless(arena, tables, vocab, rows, state, completable)
        if number == 0:
            number = row_and_similar(arena, tables, vocab, rows, state, completable)
        wanted = wide(arena[tables.n + Counter.WANTED])
        arena[tables.n + Counter.WANTED] = NO_CLASS
    if seen != 0 and arena[tables.n + Counter.FAULT] == Fault.NONE:
        number = row_with_seen(arena, tables, vocab, rows_address, number, state, seen, has_items)
    return number, wanted


@inner
def row_of_endless(arena, tables, vocab, rows, state, completable):
    """The number of the row of a state that has the mask of its `saturate_state`; 0 when there is no other such state."""
    saturated = saturate_state(arena, tables, vocab, state)
    if saturated == state or arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(0)
    number = row_and_similar(arena, tables, vocab, rows, saturated, completable)
    if saturate_state(arena, tables, vocab, state) != saturated or arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(0)
    arena[tables.state_row + REC * state], arena[tables.state_events + REC * state] = (
        number,
        arena[tables.state_events + REC * saturated],
    )
    return number


@inner
def row_and_similar(arena, tables, vocab, rows, state, completable):
    """The number of the row of a state, made if needed; if it follows from the row of a similar state, that is made
    first."""
    unlisted = unlisted_of(arena, tables, state) if completable == 0 and arena[tables.state_row + REC * state] == 0 else wide(0)
    if unlisted != 0:
        number = row_without_words(arena, tables, vocab, rows, state, unlisted)
        if number != 0:
            return number
    if completable == 0 and arena[tables.state_row + REC * state] == 0 and not has_known_inner(arena, tables, state):
        number = row_beside_names(arena, tables, vocab, rows, state)
        if number != 0:
            return number
    return row_by_similar(arena, tables, vocab, rows, state, completable)


@inner
def row_by_similar(arena, tables, vocab, rows, state, completable):
    """The number of the row of a state, made if needed, with the help of `similar_state`; names in keys are not looked
    at."""
    base_state = (
        similar_state(arena, tables, vocab, state)
        if completable == 0 and not has_known_inner(arena, tables, state)
        else wide(DEAD)
    )
    if base_state != DEAD:
        row_of(arena, tables, vocab, rows, base_state, wide(DEAD), completable)
    return row_of(arena, tables, vocab, rows, state, base_state, completable)


@inner
def row_beside_names(arena, tables, vocab, rows, state):
    """The number of the row of a state with several literals, such as the names that a key may have; 0 when it is not
    done.

    It is made from the row of the state without the literals and of any key (pattern_complement_masks.py), which is often the same
    behind each of the names.
    """
    base_state, words, tail = without_exclusion(arena, tables, state)
    if base_state == DEAD and arena[tables.n + Counter.FAULT] == Fault.NONE and arena[tables.state_length + REC * state] != FRAMED:
        base_state, words = without_literals(arena, tables, state), wide(DEAD)
    if base_state == DEAD or base_state == state or arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(0)
    base = -row_by_similar(arena, tables, vocab, rows, base_state, wide(0))
    rows[Region.NUM_EDITS] = 0
    if arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(0)
    if words != DEAD:
        clear_excluded(arena, tables, vocab, rows, words, tail)
    arena[tables.state_events + REC * state] |= arena[tables.state_events + REC * base_state]
    walk_literals(arena, tables, vocab, rows, state, False)
    return wide(0) if has_too_many_edits(rows) else keep_row(arena, tables, vocab, rows, state, base, wide(0))


@inner
def row_without_words(arena, tables, vocab, rows, state, unlisted):
    """The number of the row of a state in an UNLISTED node, made from the row of its body (word_complement_masks.py); 0 when
    it is not done."""
    base_state = state_of_any(arena, tables, state, unlisted)
    if base_state == DEAD or arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(0)
    base = -row_of(arena, tables, vocab, rows, base_state, wide(DEAD), wide(0))
    rows[Region.NUM_EDITS] = 0
    if arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(0)
    clear_words(arena, tables, vocab, rows, unlisted)
    arena[tables.state_events + REC * state] |= arena[tables.state_events + REC * base_state]
    walk_literals(arena, tables, vocab, rows, state, True)
    return wide(0) if has_too_many_edits(rows) else keep_row(arena, tables, vocab, rows, state, base, wide(0))


@inner
def has_known_inner(arena, tables, state):
    """Whether a state is a frame whose mask follows from what is known of its inner state."""
    if arena[tables.state_length + REC * state] != FRAMED:
        return False
    return arena[tables.state_ends + REC * inner_of(arena, tables, state)] > 0


@inner
def similar_state(arena, tables, vocab, state):
    """The state where most characters lead to from `state`, if it is an endless body; DEAD when there is none, and on a
    fault.

    Inside a key that may still become one of several names, any other character leads into the body of all other keys.
    """
    if (
        arena[tables.state_body_class + REC * state] >= 0
        or arena[tables.state_literal_left + REC * state] > 0
        or not reads_most(arena, tables, state)
    ):
        return wide(DEAD)
    base_state, votes = majority(arena, tables, state), 0
    for byte in range(FIRST_PRINTABLE, LAST_PRINTABLE + 1):
        votes += 1 if arena[tables.next + state * 256 + byte] == base_state else -1
    if votes < 0 or arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(DEAD)
    is_endless = (
        arena[tables.state_body_class + REC * base_state] >= 0
        and arena[tables.state_max_chars + REC * base_state] >= ENDLESS
    )
    return base_state if base_state != state and (is_endless or string_class(arena, tables, vocab, base_state) != 0) else wide(DEAD)


@inner
def reads_most(arena, tables, state):
    """Whether a state may read more than half of the printable characters."""
    live = 0
    for byte in range(FIRST_PRINTABLE, LAST_PRINTABLE + 1):
        live += 1 if arena[tables.next + state * 256 + byte] != DEAD else 0
    return 2 * live > LAST_PRINTABLE + 1 - FIRST_PRINTABLE


@inner
def row_of(arena, tables, vocab, rows, state, base_state, completable):
    """The number of the mask row of a state, which is made if needed. like: a similar state whose row is there, or
    DEAD."""
    number = wide(arena[tables.state_row + REC * state])
    if number != 0 or arena[tables.n + Counter.FAULT] != Fault.NONE:
        return number
    base, is_done = wide(0), False
    if base_state != DEAD:
        rows[Region.NUM_EDITS], base = 0, -wide(arena[tables.state_row + REC * base_state])
        is_done = walk_difference(arena, tables, vocab, rows, state, base_state)
    elif completable == 0:
        base = before_tail(arena, tables, vocab, rows, state)
        if base == 0 and arena[tables.n + Counter.FAULT] == Fault.NONE:
            base = before_end(arena, tables, vocab, rows, state)
        is_done = base != 0
    if not is_done and arena[tables.n + Counter.FAULT] == Fault.NONE:
        rows[Region.NUM_EDITS] = 0
        base = fill(arena, tables, vocab, rows, state)
    return keep_row(arena, tables, vocab, rows, state, base, completable)


@inner
def keep_row(arena, tables, vocab, rows, state, base, completable):
    """Make the row that has been described, for a state that has none. Returns the number of the state's row, 0 on a
    fault."""
    if arena[tables.n + Counter.FAULT] == Fault.NONE and arena[tables.state_row + REC * state] == 0:
        arena[tables.state_row + REC * state] = find_or_make(
            rows, vocab, base, wide(arena[tables.state_accept + REC * state]), completable
        )
    return wide(arena[tables.state_row + REC * state])


@inner
def before_tail(arena, tables, vocab, rows, state):
    """Describe the mask of a state by that of the state without its tail (shared_continuations.py). Returns the base, 0 when it
    is not done.

    A tail behind characters of the state's body does not count: there would be an end at each of the many prefixes of
    tokens.
    """
    tail = common_tail(arena, tables, state)
    before = without_tail(arena, tables, state, tail) if tail != EMPTY else wide(DEAD)
    if before == DEAD or arena[tables.state_accept + REC * before] == 1:
        return wide(0)
    if completes_inside(arena, tables, before, body_of(arena, tables, before)) or completes_inside(
        arena, tables, before, body_of(arena, tables, state)
    ):
        return wide(0)
    if arena[tables.state_ends + REC * before] == 0 or arena[tables.state_row + REC * before] == 0:
        find_ends(arena, tables, vocab, rows, before)
    ends = wide(arena[tables.state_ends + REC * before])
    if ends == TOO_MANY or arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(0)
    following = state_of(arena, tables, tail) if arena[tables.pool + ends] > 0 else wide(DEAD)
    if arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(0)
    if following != DEAD and has_to_look_at_many(arena, tables, vocab, ends, following):
        return wide(0)
    rows[Region.NUM_EDITS] = 0
    for k in range(tables.pool + ends + ENDS, tables.pool + ends + ENDS + 2 * arena[tables.pool + ends], 2):
        if arena[k] < 0:
            walk_rest(arena, tables, vocab, rows, -wide(arena[k]), wide(arena[k + 1]), following)
        else:
            walk(arena, tables, vocab, rows, wide(arena[k]), wide(arena[k + 1]), following)
    clear_tokens(rows, wide(arena[tables.pool + ends + 1]), wide(arena[tables.pool + ends + 2]))
    clear_tokens(rows, wide(arena[tables.pool + ends + 3]), wide(arena[tables.pool + ends + 4]))
    if has_too_many_edits(rows):
        return wide(0)
    arena[tables.state_events + REC * state] = arena[tables.state_events + REC * before]
    if following != DEAD:
        arena[tables.state_events + REC * state] |= arena[tables.state_events + REC * following]
    return -wide(arena[tables.state_row + REC * before])


@inner
def has_to_look_at_many(arena, tables, vocab, ends, state):
    """Whether a state tells letters apart, and many tokens lie behind the ends in the trie by groups."""
    if reads_alike(arena, tables, state, wide(LOWER), wide(LOWER + 26)) and reads_alike(
        arena, tables, state, wide(UPPER), wide(UPPER + 26)
    ):
        return False
    nodes, tokens = wide(vocab[vocab[Header.GROUPED] + TrieRecord.NODES]), wide(0)
    for k in range(tables.pool + ends + ENDS, tables.pool + ends + ENDS + 2 * arena[tables.pool + ends], 2):
        if arena[k] == vocab[Header.GROUPED]:
            node = nodes + NODE_WIDTH * arena[k + 1]
            tokens += vocab[nodes + NODE_WIDTH * vocab[node + 2] + 3] - vocab[node + 3]
    return tokens > MANY_TOKENS


@inner
def find_ends(arena, tables, vocab, rows, state):
    """Make the row of a state, and find its ends. The ends outlive the row, see `TokenAutomaton.drop_rows`."""
    base = before_end(arena, tables, vocab, rows, state)
    if base == 0:
        fill_and_note(arena, tables, vocab, rows, state)
    else:
        keep_row(arena, tables, vocab, rows, state, base, wide(0))


@inner
def fill_and_note(arena, tables, vocab, rows, state):
    """Make the row of a state by a walk from this state, and note its ends on the way."""
    arena[tables.n + Counter.CLEARED] = arena[tables.n + Counter.KEPT] = arena[tables.n + Counter.KEPT_END] = arena[
        tables.n + Counter.CLEARED_END
    ] = 0
    arena[tables.n + Counter.NUM_ENDS] = rows[Region.NUM_EDITS] = 0
    base = fill(arena, tables, vocab, rows, state)
    keep_ends(arena, tables, state)
    keep_row(arena, tables, vocab, rows, state, base, wide(0))


@inner
def before_end(arena, tables, vocab, rows, state):
    """Describe the mask of a state, and its ends, by those of the state in which its repetitions have no end
    (`saturate_class`). Returns the base, 0 when it is not done."""
    body = wide(arena[tables.state_body_class + REC * state])
    class_tables = wide(arena[tables.classes + CLASS_WIDTH * body + CLASS_TABLES]) if body >= 0 else wide(0)
    if (
        class_tables == 0
        or slice_of(arena, tables, vocab, class_tables, state, wide(arena[tables.state_max_chars + REC * state])) < 0
    ):
        return wide(0)
    saturated = saturate_class(arena, tables, vocab, class_tables, state)
    if saturated == DEAD:
        return wide(0)
    if arena[tables.state_ends + REC * saturated] == 0 or arena[tables.state_row + REC * saturated] == 0:
        fill_and_note(arena, tables, vocab, rows, saturated)
    rows[Region.NUM_EDITS] = 0
    clear_longer(vocab, rows, class_tables, wide(arena[tables.state_max_chars + REC * state]))
    arena[tables.state_events + REC * state] = arena[tables.state_events + REC * saturated]
    if arena[tables.state_ends + REC * state] == 0:
        arena[tables.state_ends + REC * state] = arena[tables.state_ends + REC * saturated]
    return -wide(arena[tables.state_row + REC * saturated])


@inner
def row_with_seen(arena, tables, vocab, rows_address, number, state, seen, has_items):
    """The number of the mask row of a state and a register; number: that of the state alone."""
    flags, rows = seen_flags(arena, tables, seen), words_at(rows_address)
    if not flags & SeenFlag.HAS_CANDIDATES and not arena[tables.state_events + REC * state] & REMEMBERED:
        return wide(number)
    if rows[Region.COUNT] + 1 > rows[Region.CAPACITY]:
        return wide(NO_ROOM)
    none, unsettled, cleared = np.empty(0, np.int32), np.empty((5, 0), np.int32), wide(0)
    rows[Region.NUM_EDITS] = 0
    if flags & SeenFlag.HAS_CANDIDATES:
        cleared += judge_trie(
            arena,
            tables,
            vocab,
            rows_address,
            wide(vocab[Header.TRIE]),
            state,
            seen,
            wide(WalkMode.ALONG),
            none,
            none,
            unsettled,
            wide(0),
        )[2]
    trie = where_refusals_begin(arena, tables, vocab, flags)
    cleared += judge_trie(
        arena, tables, vocab, rows_address, trie, state, seen, wide(WalkMode.WHOLE), none, none, unsettled, wide(0)
    )[2]
    if has_items and not flags & SeenFlag.IN_UNIQUE:
        trie = wide(vocab[Header.LISTED])
        cleared += judge_trie(
            arena, tables, vocab, rows_address, trie, state, seen, wide(WalkMode.WHOLE), none, none, unsettled, wide(0)
        )[2]
    if cleared == 0 or arena[tables.n + Counter.FAULT] != Fault.NONE:
        return wide(number)
    return find_or_make(rows, vocab, -wide(number), wide(arena[tables.state_accept + REC * state]), wide(0))
