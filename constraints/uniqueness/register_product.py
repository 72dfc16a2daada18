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
from numpy.typing import NDArray

from ..automaton.determinize import leaf_after, step
from ..automaton.nodes import EMPTY, FAIL, head_of, intern_node, join, wide
from ..automaton.states import after_text, items_of, state_of_all
from ..automaton.tables import DEAD, STATE_BITS, STATE_MASK, UNKNOWN, Fault, Tables, tables_at
from ..automaton.unions import append_parts
from ..base.ids import NodeId, RegisterId, StateId, TokenId
from ..base.kinds import INFINITE, Event, Kind
from ..masks.multibyte_step import leap
from ..masks.uniform_transitions import FIRST_PRINTABLE
from ..numba_support.jit import entry, inner
from ..numba_support.record_access import pointer
from ..numba_support.records import Words
from ..vocabulary.packed_records import token_bytes, vocab_at
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
def is_plain(m: Tables, seen: RegisterId, byte: int, event: int) -> bool:
    """Whether a byte only makes the word longer, so that it matters to none but the candidates that there are."""
    mode = m.nodes[seen].b
    if mode == TextMode.OUTSIDE:
        return event != Event.KEY_OPEN and not is_space(byte) and not is_bracket_or_comma(byte)
    if mode_after(mode, byte, event) != TextMode.OUTSIDE:
        return True
    return event != Event.KEY_CLOSE and is_recorded(m, m.nodes[seen].a)


@inner
def after_candidate_byte(m: Tables, seen: RegisterId, byte: int, event: int, candidate: NodeId) -> RegisterId:
    """The register behind a plain byte that leads to a known word, `candidate`."""
    return register(m, m.nodes[seen].a, mode_after(m.nodes[seen].b, byte, event), candidate)


@inner
def transition(m: Tables, state: StateId, byte: int) -> int:
    """The transition of a state on a byte: read from the table, or found now."""
    answer = m.next[state * 256 + byte]
    return step(m, state, byte) if answer == UNKNOWN else answer


@inner
def follow(m: Tables, state: StateId, answer: int, seen: RegisterId, byte: int) -> tuple[StateId, RegisterId]:
    """(state, register) behind a byte on which `state` has the transition `answer`; (DEAD, REPEATED) where the text does
    not survive.

    A byte that ends a repeated item is refused only by the alternatives that ask for different items; the text goes on
    with the others.
    """
    after, event = StateId(answer & STATE_MASK), answer >> STATE_BITS
    if after == DEAD:
        return DEAD, REPEATED
    kept = seen_after(m, seen, byte, event)
    if kept == REPEATED and (event == Event.ITEM_CLOSE or event == Event.ARRAY_CLOSE) and m.n.fault == Fault.NONE:
        after = after_repeated(m, state, byte)
        if after != DEAD:
            kept = seen_after(m, seen, byte, 0)
    return (after, kept) if kept != REPEATED else (DEAD, REPEATED)


@inner
def after_repeated(m: Tables, state: StateId, byte: int) -> StateId:
    """The state behind a comma or bracket at the end of a repeated item, of the alternatives that do not ask for
    different items. DEAD on a fault."""
    start, length = items_of(m, state)
    count = 0
    for j in range(start, start + length):
        item = m.pool[j]
        rest, _, _, event = leaf_after(m, head_of(m, item), byte)
        if rest == FAIL or event == Event.ITEM_CLOSE or event == Event.ARRAY_CLOSE:
            continue
        target = join(m, rest, m.nodes[item].b if m.nodes[item].kind == Kind.SEQ else EMPTY)
        if m.n.fault == Fault.NONE and m.nodes[target].size < INFINITE:
            count = append_parts(m, target, count)
    return state_of_all(m, count)


@inner
def way_out(m: Tables, state: StateId, seen: RegisterId, epoch: int, at_most: int) -> bool:
    """Whether one byte leads away from all candidates, to a state of a cost of at most `at_most`. epoch: as `mark_candidates`
    gives it."""
    word, row = m.nodes[seen].c, m.next + state * 256
    for k in range(256):
        byte = FIRST_PRINTABLE + k & 255  # one of the printable ones is enough, most often
        answer = row[byte]  # as `transition`, without a call for each of the bytes that lead nowhere
        if answer == UNKNOWN:
            answer = step(m, state, byte)
        after = answer & STATE_MASK
        if after == DEAD or m.states[after].cost > at_most or not is_plain(m, seen, byte, answer >> STATE_BITS):
            continue
        if candidate_word(m, word, byte, epoch) == NIL:
            return True
    return False


@inner
def is_alive(m: Tables, state: StateId, seen: RegisterId) -> bool:
    """Whether what is being read can become something that is not remembered yet; True on a fault.

    A search along the candidates, depth first, which ends at once where the automaton admits anything else. Answers are
    kept in the field `size` of CONFIGURATION nodes.
    """
    epoch, _ = mark_candidates(m, seen)
    if epoch == 0 or way_out(m, state, seen, epoch, INFINITE - 1):
        return True
    configuration = intern_node(m, Kind.CONFIGURATION, wide(state), wide(seen), 0)
    if m.n.fault != Fault.NONE or m.nodes[configuration].size == 1:
        return True
    if m.nodes[configuration].size == 0:
        return False
    configurations, todo = np.empty(MAX_CONFIGURATIONS, np.int32), np.empty(MAX_CONFIGURATIONS, np.int32)
    count = left = 1
    m.n.epoch += 1
    visit = m.n.epoch
    configurations[0] = todo[0] = configuration
    m.nodes[configuration].marked_in = visit
    while left > 0:
        left -= 1
        s, h = m.nodes[todo[left]].a, m.nodes[todo[left]].b
        if todo[left] != configuration:
            epoch, _ = mark_candidates(m, h)
            if epoch == 0 or way_out(m, s, h, epoch, INFINITE - 1):
                m.nodes[configuration].size = 1 if m.n.fault == Fault.NONE else UNKNOWN
                return True
        row = m.next + s * 256
        for byte in range(256):  # the printable ones last, which are looked at first
            if row[byte] == DEAD:
                continue
            further, after = follow(m, s, transition(m, s, byte), h, wide(byte))
            if after == REPEATED or m.states[further].cost >= INFINITE:
                continue
            successor = intern_node(m, Kind.CONFIGURATION, further, after, 0)
            if m.n.fault != Fault.NONE or count == MAX_CONFIGURATIONS:
                return True
            if m.nodes[successor].size == 1:
                m.nodes[configuration].size = 1
                return True
            if m.nodes[successor].size != 0 and m.nodes[successor].marked_in != visit:
                m.nodes[successor].marked_in = visit
                configurations[count] = todo[left] = successor
                count, left = count + 1, left + 1
        if m.n.fault != Fault.NONE:
            return True
    for i in range(count):
        m.nodes[configurations[i]].size = 0
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
def seen_flags(m: Tables, seen: RegisterId) -> int:
    """What is known of a register that matters to tokens, as bits of `SeenFlag`."""
    bits = SeenFlag.HAS_CANDIDATES if mark_candidates(m, seen)[0] != 0 else SeenFlag.NONE
    if m.nodes[seen].b != TextMode.OUTSIDE:
        bits |= SeenFlag.IN_TEXT | (SeenFlag.IN_NAME if is_in_key(m.nodes[seen].b) else SeenFlag.NONE)
    frame = m.nodes[seen].a
    while frame != NIL:
        if m.nodes[frame].b != NIL:
            bits |= SeenFlag.HAS_WORDS
        if m.nodes[frame].kind == Kind.UNIQUE:
            bits |= SeenFlag.IN_UNIQUE
        frame = m.nodes[frame].a
    return bits


@entry(data="const uint8[:]")
def run_remembering(
    arena_address: int, state: StateId, seen: RegisterId, data: NDArray[np.uint8]
) -> tuple[StateId, RegisterId, int]:
    """(state, register, number of bytes read) behind `data` (uint8 array); state DEAD when it does not survive. The
    caller looks for faults."""
    m = tables_at(arena_address)
    return run_bytes_remembering(m, state, seen, pointer(data), 0, wide(data.size))


@entry
def advance_remembering(
    arena_address: int, vocab_address: int, state: StateId, seen: RegisterId, token: TokenId
) -> tuple[StateId, RegisterId]:
    """(state, register) behind a token; state DEAD when it does not survive. The caller looks for faults."""
    m, vocab = tables_at(arena_address), vocab_at(vocab_address)
    start, end = token_bytes(vocab, token)
    if start == end:
        return DEAD, REPEATED
    after, kept, _ = run_bytes_remembering(m, state, seen, vocab.text, start, end)
    return after, kept


@inner
def run_bytes_remembering(
    m: Tables, state: StateId, seen: RegisterId, data: Words, start: int, end: int
) -> tuple[StateId, RegisterId, int]:
    """`run_remembering` for data[start:end]."""
    after, kept, read = run_by_bytes(m, state, seen, data, start, end, True)
    if after != DEAD or m.n.fault != Fault.NONE:
        return after, kept, read
    return run_by_bytes(m, state, seen, data, start, end, False)


@inner
def run_by_bytes(
    m: Tables, state: StateId, seen: RegisterId, data: Words, start: int, end: int, may_leap: bool
) -> tuple[StateId, RegisterId, int]:
    """`run_remembering` for data[start:end]. No states are made inside the only literal of a state (see `after_text`),
    nor, if `may_leap`, inside of names (see multibyte_step.py); then the number of bytes means nothing if not all survive."""
    size = end - start
    states, memories = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
    spelled = np.empty(size + 1, np.int64)  # bytes of the literal of states[i] that have been read
    read, count = 0, 0
    states[0], memories[0], spelled[0] = state, seen, 0
    while read < size:
        byte = wide(data[start + read])
        if m.states[state].literal_left > 0:
            if m.text[m.states[state].literal + count] != byte:
                break
            count += 1
            if count == m.states[state].literal_left:
                state, count = after_text(m, state, count), 0
            seen = seen_after(m, seen, byte, 0)
        else:
            answer = m.next[state * 256 + byte]
            if answer == UNKNOWN and may_leap:
                after, leapt = leap(m, state, data, start + read, end)
                if leapt > 0:
                    for k in range(leapt):
                        seen = seen_after(m, seen, wide(data[start + read + k]), 0)
                    state, read = after, read + leapt
                    states[read], memories[read], spelled[read] = state, seen, count
                    continue
            state, seen = follow(m, state, transition(m, state, byte), seen, byte)
        if state == DEAD or seen == REPEATED:
            break
        read += 1
        states[read], memories[read], spelled[read] = state, seen, count
    if read == size:
        state = state_at(m, states[read], spelled[read])
        if is_alive(m, state, seen):
            return state, seen, read
    while not may_leap and read > 0 and not is_alive(m, state_at(m, states[read], spelled[read]), memories[read]):
        read -= 1
    return DEAD, REPEATED, min(read, size - 1)


@inner
def state_at(m: Tables, state: StateId, spelled: int) -> StateId:
    """The state behind the first `spelled` bytes of the only literal of a state."""
    return after_text(m, state, spelled) if spelled > 0 else state


class ExtraCost(IntEnum):
    """What `extra_cost` and `extra_cost_of` return beside other numbers of tokens."""

    ONE_MORE = 1
    SEARCH = -1  # to be searched for
    EXPECTS_KEY = -2  # to be asked again behind the quote that must come next


@inner
def extra_cost(m: Tables, state: StateId, seen: RegisterId, epoch: int, is_inner: bool, spells: int) -> int:
    """Tokens that candidates add to the cost of a state: 0 without candidates, ONE_MORE where one more character makes the
    difference, SEARCH when that has to be searched for.

    At the beginning of an item it is the surcharge that the grammar has charged for any item (new_texts.py). But behind
    more items than that is for, or where arrays of other kinds may stand in the same place and the cheapest kind may have no item
    left, or inside one another, each with a surcharge of its own: SEARCH.
    """
    if epoch == 0:
        return 0
    if m.nodes[seen].c == EMPTY_WORD and not is_inner:
        return ExtraCost.SEARCH if m.n.mixed == 1 or is_longer(m, m.nodes[m.nodes[seen].a].b, m.n.different - 1) else m.n.item_gap
    in_body = m.states[state].body_class >= 0 and spells
    is_enough = in_body and way_out(m, state, seen, epoch, m.states[state].cost)
    return ExtraCost.ONE_MORE if is_enough else ExtraCost.SEARCH


@inner
def is_longer(m: Tables, done: NodeId, length: int) -> bool:
    """Whether a list has more than `length` elements."""
    while done != NIL and length >= 0:
        done, length = m.nodes[done].a, length - 1
    return length < 0


@inner
def expects_key(m: Tables, state: StateId, seen: RegisterId) -> bool:
    """Whether a key that is to be remembered must come next, in an object that has keys already."""
    frame = m.nodes[seen].a
    return m.nodes[frame].kind == Kind.OBJECT and m.nodes[frame].b != NIL and must_open_key(m, state)


@inner
def must_open_key(m: Tables, state: StateId) -> bool:
    """Whether nothing but white space and the quote of a key that is to be remembered may come next."""
    found = False
    for byte in range(256):
        if is_space(byte):
            continue
        answer = transition(m, state, byte)
        if answer & STATE_MASK != DEAD:
            if answer >> STATE_BITS != Event.KEY_OPEN:
                return False
            found = True
    return found


@entry(spells="bool")
def extra_cost_of(arena_address: int, state: StateId, seen: RegisterId, spells: bool) -> int:
    """`extra_cost` of a state and a register, or EXPECTS_KEY."""
    m = tables_at(arena_address)
    if m.nodes[seen].b == TextMode.OUTSIDE and expects_key(m, state, seen):
        return ExtraCost.EXPECTS_KEY
    epoch, is_inner = mark_candidates(m, seen)
    return extra_cost(m, state, seen, epoch, is_inner, spells)
