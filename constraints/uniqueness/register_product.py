"""The product of the automaton and the register: a *configuration* is a state and a register, which go on with the text
together.

A text is *alive* when some way leads away from all candidates to an accepting state. Usually one byte does; otherwise
configurations are searched along the candidates, whose number is finite (`is_alive`). So keys and items out of finite sets
never lead into a dead end, provided that one is left whenever a key or an item begins. Whether a further item is
possible is looked at when its comma is read; whether a further key is possible is up to the grammar's counters.

    {"a": 1, "    where keys are out of {"a", "b"}: the byte "a" is refused at once, because only "a" could come of it

Besides, this file says what candidates add to the tokens that suffice to finish (`extra_cost`).

A search is given up after MAX_CONFIGURATIONS configurations, and its text is allowed. Only objects inside unique arrays come
near that, with many members in any order and values that are all but used up: there the same value has many texts.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag

import numpy as np

from ..automaton.determinize import leaf_after, step
from ..automaton.multibyte_step import leap
from ..automaton.nodes import EMPTY, FAIL, head_of, intern_node, join, wide
from ..automaton.states import after_text, items_of, state_of_all
from ..automaton.tables import (
    DEAD,
    REC,
    STATE_BITS,
    STATE_MASK,
    UNKNOWN,
    Counter,
    Fault,
    layout,
)
from ..automaton.unions import append_parts
from ..base.kinds import INFINITE, Event, Kind
from ..masks.trie_walk import token_bytes
from ..masks.uniform_transitions import FIRST_PRINTABLE
from ..numba_support.jit import entry, inner, pointer, words_at
from .duplicate_candidates import candidate_word, mark_candidates
from .seen_values import (
    EMPTY_WORD,
    NIL,
    REPEATED,
    TextMode,
    is_bracket_or_comma,
    is_in_key,
    is_recorded,
    is_space,
    mode_after,
    register,
    seen_after,
)

MAX_CONFIGURATIONS = 1 << 14


@inner
def is_plain(arena, tables, seen, byte, event):
    """Whether a byte only makes the word longer, so that it matters to none but the candidates that there are."""
    mode = arena[tables.b + REC * seen]
    if mode == TextMode.OUTSIDE:
        return event != Event.KEY_OPEN and not is_space(byte) and not is_bracket_or_comma(byte)
    if mode_after(mode, byte, event) != TextMode.OUTSIDE:
        return True
    return event != Event.KEY_CLOSE and is_recorded(arena, tables, wide(arena[tables.a + REC * seen]))


@inner
def after_candidate_byte(arena, tables, seen, byte, event, candidate):
    """The register behind a plain byte that leads to a known word, `candidate`."""
    return register(
        arena,
        tables,
        wide(arena[tables.a + REC * seen]),
        mode_after(arena[tables.b + REC * seen], byte, event),
        candidate,
    )


@inner
def transition(arena, tables, state, byte):
    """The transition of a state on a byte: read from the table, or found now."""
    answer = wide(arena[tables.next + state * 256 + byte])
    return step(arena, tables, wide(state), wide(byte)) if answer == UNKNOWN else answer


@inner
def follow(arena, tables, state, answer, seen, byte):
    """(state, register) behind a byte on which `state` has the transition `answer`; (DEAD, REPEATED) where the text does
    not survive.

    A byte that ends a repeated item is refused only by the alternatives that ask for different items; the text goes on
    with the others.
    """
    after, event = answer & STATE_MASK, answer >> STATE_BITS
    if after == DEAD:
        return wide(DEAD), wide(REPEATED)
    kept = seen_after(arena, tables, seen, byte, event)
    if (
        kept == REPEATED
        and (event == Event.ITEM_CLOSE or event == Event.ARRAY_CLOSE)
        and arena[tables.n + Counter.FAULT] == Fault.NONE
    ):
        after = after_repeated(arena, tables, state, byte)
        if after != DEAD:
            kept = seen_after(arena, tables, seen, byte, wide(0))
    return (after, kept) if kept != REPEATED else (wide(DEAD), wide(REPEATED))


@inner
def after_repeated(arena, tables, state, byte):
    """The state behind a comma or bracket at the end of a repeated item, of the alternatives that do not ask for
    different items. DEAD on a fault."""
    start, length = items_of(arena, tables, state)
    count = wide(0)
    for j in range(start, start + length):
        item = wide(arena[tables.pool + j])
        rest, _, _, event = leaf_after(arena, tables, head_of(arena, tables, item), byte)
        if rest == FAIL or event == Event.ITEM_CLOSE or event == Event.ARRAY_CLOSE:
            continue
        target = join(
            arena,
            tables,
            rest,
            wide(arena[tables.b + REC * item]) if arena[tables.kind + REC * item] == Kind.SEQ else wide(EMPTY),
        )
        if arena[tables.n + Counter.FAULT] == Fault.NONE and arena[tables.size + REC * target] < INFINITE:
            count = append_parts(arena, tables, target, count)
    return state_of_all(arena, tables, count)


@inner
def way_out(arena, tables, state, seen, epoch, at_most):
    """Whether one byte leads away from all candidates, to a state of a cost of at most `at_most`. epoch: as `mark_candidates`
    gives it."""
    word, row = wide(arena[tables.c + REC * seen]), tables.next + state * 256
    for k in range(256):
        byte = FIRST_PRINTABLE + k & 255  # one of the printable ones is enough, most often
        answer = wide(arena[row + byte])  # as `transition`, without a call for each of the bytes that lead nowhere
        if answer == UNKNOWN:
            answer = step(arena, tables, wide(state), wide(byte))
        after = answer & STATE_MASK
        if (
            after == DEAD
            or arena[tables.state_cost + REC * after] > at_most
            or not is_plain(arena, tables, seen, byte, answer >> STATE_BITS)
        ):
            continue
        if candidate_word(arena, tables, word, wide(byte), epoch) == NIL:
            return True
    return False


@inner
def is_alive(arena, tables, state, seen):
    """Whether what is being read can become something that is not remembered yet; True on a fault.

    A search along the candidates, depth first, which ends at once where the automaton admits anything else. Answers are
    kept in the field `size` of CONFIGURATION nodes.
    """
    epoch, _ = mark_candidates(arena, tables, seen)
    if epoch == 0 or way_out(arena, tables, state, seen, epoch, INFINITE - 1):
        return True
    configuration = intern_node(arena, tables, wide(Kind.CONFIGURATION), wide(state), wide(seen), wide(0))
    if arena[tables.n + Counter.FAULT] != Fault.NONE or arena[tables.size + REC * configuration] == 1:
        return True
    if arena[tables.size + REC * configuration] == 0:
        return False
    configurations, todo = np.empty(MAX_CONFIGURATIONS, np.int32), np.empty(MAX_CONFIGURATIONS, np.int32)
    count = left = wide(1)
    arena[tables.n + Counter.EPOCH] += 1
    visit = wide(arena[tables.n + Counter.EPOCH])
    configurations[0] = todo[0] = configuration
    arena[tables.marked_in + REC * configuration] = visit
    while left > 0:
        left -= 1
        s, h = wide(arena[tables.a + REC * todo[left]]), wide(arena[tables.b + REC * todo[left]])
        if todo[left] != configuration:
            epoch, _ = mark_candidates(arena, tables, h)
            if epoch == 0 or way_out(arena, tables, s, h, epoch, INFINITE - 1):
                arena[tables.size + REC * configuration] = 1 if arena[tables.n + Counter.FAULT] == Fault.NONE else UNKNOWN
                return True
        row = tables.next + s * 256
        for byte in range(256):  # the printable ones last, which are looked at first
            if arena[row + byte] == DEAD:
                continue
            further, after = follow(arena, tables, s, transition(arena, tables, s, byte), h, wide(byte))
            if after == REPEATED or arena[tables.state_cost + REC * further] >= INFINITE:
                continue
            successor = intern_node(arena, tables, wide(Kind.CONFIGURATION), further, after, wide(0))
            if arena[tables.n + Counter.FAULT] != Fault.NONE or count == MAX_CONFIGURATIONS:
                return True
            if arena[tables.size + REC * successor] == 1:
                arena[tables.size + REC * configuration] = 1
                return True
            if arena[tables.size + REC * successor] != 0 and arena[tables.marked_in + REC * successor] != visit:
                arena[tables.marked_in + REC * successor] = visit
                configurations[count] = todo[left] = successor
                count, left = count + 1, left + 1
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return True
    for i in range(count):
        arena[tables.size + REC * configurations[i]] = 0
    return False


class SeenFlag(IntFlag):
    """Bits that `seen_flags` returns for a register."""

    NONE = 0
    HAS_CANDIDATES = 1  # there are candidates
    IN_TEXT = 2  # inside a string
    HAS_WORDS = 4  # some open object has keys, or unique array items
    IN_NAME = 8  # inside a string that is a key
    IN_UNIQUE = 16  # inside a unique array


@inner
def seen_flags(arena, tables, seen):
    """What is known of a register that matters to tokens, as bits of `SeenFlag`."""
    bits = SeenFlag.HAS_CANDIDATES if mark_candidates(arena, tables, seen)[0] != 0 else SeenFlag.NONE
    if arena[tables.b + REC * seen] != TextMode.OUTSIDE:
        bits |= SeenFlag.IN_TEXT | (SeenFlag.IN_NAME if is_in_key(arena[tables.b + REC * seen]) else SeenFlag.NONE)
    frame = arena[tables.a + REC * seen]
    while frame != NIL:
        if arena[tables.b + REC * frame] != NIL:
            bits |= SeenFlag.HAS_WORDS
        if arena[tables.kind + REC * frame] == Kind.UNIQUE:
            bits |= SeenFlag.IN_UNIQUE
        frame = arena[tables.a + REC * frame]
    return bits


@entry(data="const uint8[:]")
def run_remembering(arena_address, state, seen, data):
    """(state, register, number of bytes read) behind `data` (uint8 array); state DEAD when it does not survive. The
    caller looks for faults."""
    arena = words_at(arena_address)
    tables = layout(arena)
    return run_bytes_remembering(arena, tables, wide(state), wide(seen), pointer(data), wide(0), wide(data.size))


@entry
def advance_remembering(arena_address, vocab_address, state, seen, token):
    """(state, register) behind a token; state DEAD when it does not survive. The caller looks for faults."""
    arena, vocab = words_at(arena_address), words_at(vocab_address)
    tables = layout(arena)
    start, end = token_bytes(vocab, token)
    if start == end:
        return wide(DEAD), wide(REPEATED)
    after, kept, _ = run_bytes_remembering(arena, tables, wide(state), wide(seen), vocab, start, end)
    return after, kept


@inner
def run_bytes_remembering(arena, tables, state, seen, data, start, end):
    """`run_remembering` for data[start:end]."""
    after, kept, read = run_by_bytes(arena, tables, state, seen, data, start, end, True)
    if after != DEAD or arena[tables.n + Counter.FAULT] != Fault.NONE:
        return after, kept, read
    return run_by_bytes(arena, tables, state, seen, data, start, end, False)


@inner
def run_by_bytes(arena, tables, state, seen, data, start, end, may_leap):
    """`run_remembering` for data[start:end]. No states are made inside the only literal of a state (see `after_text`),
    nor, if `may_leap`, inside of names (see multibyte_step.py); then the number of bytes means nothing if not all survive."""
    size = end - start
    states, memories = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
    spelled = np.empty(size + 1, np.int64)  # bytes of the literal of states[i] that have been read
    read, count = wide(0), wide(0)
    states[0], memories[0], spelled[0] = state, seen, 0
    while read < size:
        byte = wide(data[start + read])
        if arena[tables.state_literal_left + REC * state] > 0:
            if arena[tables.text + arena[tables.state_literal + REC * state] + count] != byte:
                break
            count += 1
            if count == arena[tables.state_literal_left + REC * state]:
                state, count = after_text(arena, tables, state, count), wide(0)
            seen = seen_after(arena, tables, seen, byte, wide(0))
        else:
            answer = wide(arena[tables.next + state * 256 + byte])
            if answer == UNKNOWN and may_leap:
                after, leapt = leap(arena, tables, state, data, start + read, end)
                if leapt > 0:
                    for k in range(leapt):
                        seen = seen_after(arena, tables, seen, wide(data[start + read + k]), wide(0))
                    state, read = after, read + leapt
                    states[read], memories[read], spelled[read] = state, seen, count
                    continue
            state, seen = follow(arena, tables, state, transition(arena, tables, state, byte), seen, byte)
        if state == DEAD or seen == REPEATED:
            break
        read += 1
        states[read], memories[read], spelled[read] = state, seen, count
    if read == size:
        state = state_at(arena, tables, states[read], spelled[read])
        if is_alive(arena, tables, state, seen):
            return state, seen, read
    while (
        not may_leap
        and read > 0
        and not is_alive(arena, tables, state_at(arena, tables, states[read], spelled[read]), memories[read])
    ):
        read -= 1
    return wide(DEAD), wide(REPEATED), min(read, size - 1)


@inner
def state_at(arena, tables, state, spelled):
    """The state behind the first `spelled` bytes of the only literal of a state."""
    return after_text(arena, tables, state, spelled) if spelled > 0 else state


class ExtraCost(IntEnum):
    """What `extra_cost` and `extra_cost_of` return beside other numbers of tokens."""

    ONE_MORE = 1
    SEARCH = -1  # to be searched for
    EXPECTS_KEY = -2  # to be asked again behind the quote that must come next


@inner
def extra_cost(arena, tables, state, seen, epoch, is_inner, spells):
    """Tokens that candidates add to the cost of a state: 0 without candidates, ONE_MORE where one more character makes the
    difference, SEARCH when that has to be searched for.

    At the beginning of an item it is the surcharge that the grammar has charged for any item (shortest_completion.py). But where
    arrays of other kinds may stand in the same place, the cheapest kind may have no item left: SEARCH.
    """
    if epoch == 0:
        return wide(0)
    if arena[tables.c + REC * seen] == EMPTY_WORD and not is_inner:
        return wide(ExtraCost.SEARCH) if arena[tables.n + Counter.MIXED] == 1 else wide(arena[tables.n + Counter.ITEM_GAP])
    in_body = arena[tables.state_body_class + REC * state] >= 0 and spells
    is_enough = in_body and way_out(arena, tables, state, seen, epoch, arena[tables.state_cost + REC * state])
    return wide(ExtraCost.ONE_MORE) if is_enough else wide(ExtraCost.SEARCH)


@inner
def expects_key(arena, tables, state, seen):
    """Whether a key that is to be remembered must come next, in an object that has keys already."""
    frame = arena[tables.a + REC * seen]
    return (
        arena[tables.kind + REC * frame] == Kind.OBJECT
        and arena[tables.b + REC * frame] != NIL
        and must_open_key(arena, tables, state)
    )


@inner
def must_open_key(arena, tables, state):
    """Whether nothing but white space and the quote of a key that is to be remembered may come next."""
    found = False
    for byte in range(256):
        if is_space(byte):
            continue
        answer = transition(arena, tables, state, byte)
        if answer & STATE_MASK != DEAD:
            if answer >> STATE_BITS != Event.KEY_OPEN:
                return False
            found = True
    return found


@entry(spells="bool")
def extra_cost_of(arena_address, state, seen, spells):
    """`extra_cost` of a state and a register, or EXPECTS_KEY."""
    arena = words_at(arena_address)
    tables = layout(arena)
    if arena[tables.b + REC * seen] == TextMode.OUTSIDE and expects_key(arena, tables, state, seen):
        return wide(ExtraCost.EXPECTS_KEY)
    epoch, is_inner = mark_candidates(arena, tables, seen)
    return extra_cost(arena, tables, wide(state), wide(seen), epoch, is_inner, spells)
