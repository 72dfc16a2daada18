"""Pairs of an automaton's state and a memory: how both go on with a text, whether anything new can come, what that costs.

A text is alive when some way leads away from all rivals to an accepting state: usually one byte does, otherwise pairs are searched
along the rivals, whose number is finite. So keys and items out of finite sets never lead into a dead end, provided that one is
left whenever a key or an item begins; that a further item is possible is looked at when its comma is read, that a further key is
possible is up to the grammar's counters.

A search is given up after MAX_PAIRS pairs and its text allowed. Only objects inside unique arrays come near, with many members in
any order and values that are all but used up: there the same value has many texts.
"""

from __future__ import annotations

import numpy as np

from ..automaton.determinize import leaf_after, step
from ..automaton.multibyte_step import leap
from ..automaton.nodes import EMPTY, FAIL, SEQ, intern_node, join, leaf, wide
from ..automaton.states import after_text, items_of, state_of_all
from ..automaton.tables import (
    DEAD,
    EPOCH,
    FAULT,
    INFINITE,
    ITEM_GAP,
    MIXED,
    NO_FAULT,
    REC,
    STATE_BITS,
    STATE_MASK,
    UNKNOWN,
    layout,
)
from ..automaton.unions import spread
from ..base.kinds import Kind
from ..masks.trie_walk import FIRST_PRINTABLE, token_bytes
from ..numba_support.jit import entry, inner, pointer, words_at
from .duplicate_candidates import mark_rivals, rival_word
from .seen_values import (
    ARRAY_CLOSE,
    IN_KEY,
    ITEM_CLOSE,
    KEY_CLOSE,
    KEY_ESCAPE,
    KEY_OPEN,
    NOTHING,
    OBJECT,
    OUTSIDE,
    REFUSED,
    START,
    UNIQUE,
    is_bracket_or_comma,
    is_recorded,
    is_space,
    memory,
    mode_after,
    remember,
)

PAIR = int(Kind.PAIR)
MAX_PAIRS = 1 << 14


@inner
def is_plain(m, t, here, byte, event):
    """Whether a byte only makes the word longer, and concerns nothing but the rivals there are."""
    mode = m[t.b + REC * here]
    if mode == OUTSIDE:
        return event != KEY_OPEN and not is_space(byte) and not is_bracket_or_comma(byte)
    return mode_after(mode, byte, event) != OUTSIDE or (event != KEY_CLOSE and is_recorded(m, t, wide(m[t.a + REC * here])))


@inner
def after_rival(m, t, here, byte, event, rival):
    """The memory after a plain byte that leads to a word known already."""
    return memory(m, t, wide(m[t.a + REC * here]), mode_after(m[t.b + REC * here], byte, event), rival)


@inner
def transition(m, t, state, byte):
    answer = wide(m[t.next + state * 256 + byte])
    return step(m, t, wide(state), wide(byte)) if answer == UNKNOWN else answer


@inner
def follow(m, t, state, answer, here, byte):
    """(state, memory) after a byte on which a state has the transition `answer`; (DEAD, REFUSED) where it does not survive.

    What ends a repeated item is refused by those alternatives only that ask for different ones; with the others it goes on.
    """
    after, event = answer & STATE_MASK, answer >> STATE_BITS
    if after == DEAD:
        return wide(DEAD), wide(REFUSED)
    kept = remember(m, t, here, byte, event)
    if kept == REFUSED and (event == ITEM_CLOSE or event == ARRAY_CLOSE) and m[t.n + FAULT] == NO_FAULT:
        after = after_repeated(m, t, state, byte)
        if after != DEAD:
            kept = remember(m, t, here, byte, wide(0))
    return (after, kept) if kept != REFUSED else (wide(DEAD), wide(REFUSED))


@inner
def after_repeated(m, t, state, byte):
    """The state after a comma or bracket behind an item, of the alternatives that do not ask whether it was there before. DEAD on
    a fault."""
    start, length = items_of(m, t, state)
    count = wide(0)
    for j in range(start, start + length):
        item = wide(m[t.pool + j])
        rest, _, _, event = leaf_after(m, t, leaf(m, t, item), byte)
        if rest == FAIL or event == ITEM_CLOSE or event == ARRAY_CLOSE:
            continue
        target = join(m, t, rest, wide(m[t.b + REC * item]) if m[t.kind + REC * item] == SEQ else wide(EMPTY))
        if m[t.n + FAULT] == NO_FAULT and m[t.size + REC * target] < INFINITE:
            count = spread(m, t, target, count)
    return state_of_all(m, t, count)


@inner
def way_out(m, t, state, here, epoch, at_most):
    """Whether one byte leads away from all rivals, to a state of a cost of at most `at_most`."""
    word, row = wide(m[t.c + REC * here]), t.next + state * 256
    for k in range(256):
        byte = FIRST_PRINTABLE + k & 255  # one of the printable ones is enough, most often
        answer = wide(m[row + byte])  # as `transition`, without a call for each of the bytes that lead nowhere
        if answer == UNKNOWN:
            answer = step(m, t, wide(state), wide(byte))
        after = answer & STATE_MASK
        if after == DEAD or m[t.state_cost + REC * after] > at_most or not is_plain(m, t, here, byte, answer >> STATE_BITS):
            continue
        if rival_word(m, t, word, wide(byte), epoch) == NOTHING:
            return True
    return False


@inner
def is_alive(m, t, state, here):
    """Whether something that is not remembered yet can come of what is being read; True on a fault.

    A search along the rivals, depth first, which ends at once where the automaton admits anything else. Verdicts are kept by pair
    of state and memory, in the column `size`.
    """
    epoch, _ = mark_rivals(m, t, here)
    if epoch == 0 or way_out(m, t, state, here, epoch, INFINITE - 1):
        return True
    pair = intern_node(m, t, wide(PAIR), wide(state), wide(here), wide(0))
    if m[t.n + FAULT] != NO_FAULT or m[t.size + REC * pair] == 1:
        return True
    if m[t.size + REC * pair] == 0:
        return False
    pairs, todo = np.empty(MAX_PAIRS, np.int32), np.empty(MAX_PAIRS, np.int32)
    count = left = wide(1)
    m[t.n + EPOCH] += 1
    visit = wide(m[t.n + EPOCH])
    pairs[0] = todo[0] = pair
    m[t.stamp + REC * pair] = visit
    while left > 0:
        left -= 1
        s, h = wide(m[t.a + REC * todo[left]]), wide(m[t.b + REC * todo[left]])
        if todo[left] != pair:
            epoch, _ = mark_rivals(m, t, h)
            if epoch == 0 or way_out(m, t, s, h, epoch, INFINITE - 1):
                m[t.size + REC * pair] = 1 if m[t.n + FAULT] == NO_FAULT else UNKNOWN
                return True
        row = t.next + s * 256
        for byte in range(256):  # the printable ones last, which are looked at first
            if m[row + byte] == DEAD:
                continue
            further, after = follow(m, t, s, transition(m, t, s, byte), h, wide(byte))
            if after == REFUSED or m[t.state_cost + REC * further] >= INFINITE:
                continue
            successor = intern_node(m, t, wide(PAIR), further, after, wide(0))
            if m[t.n + FAULT] != NO_FAULT or count == MAX_PAIRS:
                return True
            if m[t.size + REC * successor] == 1:
                m[t.size + REC * pair] = 1
                return True
            if m[t.size + REC * successor] != 0 and m[t.stamp + REC * successor] != visit:
                m[t.stamp + REC * successor] = visit
                pairs[count] = todo[left] = successor
                count, left = count + 1, left + 1
        if m[t.n + FAULT] != NO_FAULT:
            return True
    for i in range(count):
        m[t.size + REC * pairs[i]] = 0
    return False


FREE, TRACKED, IN_TEXT, HAS_WORDS, IN_NAME, IN_UNIQUE = 0, 1, 2, 4, 8, 16  # bits of `outlook`


@inner
def outlook(m, t, here):
    """TRACKED: there are rivals; IN_TEXT: inside a string; IN_NAME: which is a key; HAS_WORDS: some open object has keys, or unique
    array items; IN_UNIQUE: inside a unique array."""
    bits = TRACKED if mark_rivals(m, t, here)[0] != 0 else FREE
    if m[t.b + REC * here] != OUTSIDE:
        bits |= IN_TEXT | (IN_NAME if m[t.b + REC * here] == IN_KEY or m[t.b + REC * here] == KEY_ESCAPE else FREE)
    frame = m[t.a + REC * here]
    while frame != NOTHING:
        if m[t.b + REC * frame] != NOTHING:
            bits |= HAS_WORDS
        if m[t.kind + REC * frame] == UNIQUE:
            bits |= IN_UNIQUE
        frame = m[t.a + REC * frame]
    return bits


@entry
def run_remembering(arena, state, here, data):
    """(state, memory, bytes read) after some bytes; state DEAD when they do not survive. The caller looks for faults."""
    m = words_at(arena)
    t = layout(m)
    return run_bytes_remembering(m, t, wide(state), wide(here), pointer(data), wide(0), wide(data.size))


@entry
def advance_remembering(arena, atlas, state, here, token):
    """(state, memory) after a token; state DEAD when it does not survive. The caller looks for faults."""
    m, v = words_at(arena), words_at(atlas)
    t = layout(m)
    start, end = token_bytes(v, token)
    if start == end:
        return wide(DEAD), wide(REFUSED)
    after, kept, _ = run_bytes_remembering(m, t, wide(state), wide(here), v, start, end)
    return after, kept


@inner
def run_bytes_remembering(m, t, state, here, data, start, end):
    """As `run_remembering` for data[start:end]."""
    after, kept, read = run_by_bytes(m, t, state, here, data, start, end, True)
    if after != DEAD or m[t.n + FAULT] != NO_FAULT:
        return after, kept, read
    return run_by_bytes(m, t, state, here, data, start, end, False)


@inner
def run_by_bytes(m, t, state, here, data, start, end, may_leap):
    """The same. Within the only literal of a state no states are made, see `after_text`, and if `may_leap` within names (see
    multibyte_step.py); then it is not known which bytes survive of those that do not all."""
    size = end - start
    states, memories = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
    spelled = np.empty(size + 1, np.int64)  # bytes of the literal of states[i] that have been read
    read, count = wide(0), wide(0)
    states[0], memories[0], spelled[0] = state, here, 0
    while read < size:
        byte = wide(data[start + read])
        if m[t.state_left + REC * state] > 0:
            if m[t.text + m[t.state_text + REC * state] + count] != byte:
                break
            count += 1
            if count == m[t.state_left + REC * state]:
                state, count = after_text(m, t, state, count), wide(0)
            here = remember(m, t, here, byte, wide(0))
        else:
            answer = wide(m[t.next + state * 256 + byte])
            if answer == UNKNOWN and may_leap:
                after, leapt = leap(m, t, state, data, start + read, end)
                if leapt > 0:
                    for k in range(leapt):
                        here = remember(m, t, here, wide(data[start + read + k]), wide(0))
                    state, read = after, read + leapt
                    states[read], memories[read], spelled[read] = state, here, count
                    continue
            state, here = follow(m, t, state, transition(m, t, state, byte), here, byte)
        if state == DEAD or here == REFUSED:
            break
        read += 1
        states[read], memories[read], spelled[read] = state, here, count
    if read == size:
        state = state_at(m, t, states[read], spelled[read])
        if is_alive(m, t, state, here):
            return state, here, read
    while not may_leap and read > 0 and not is_alive(m, t, state_at(m, t, states[read], spelled[read]), memories[read]):
        read -= 1
    return wide(DEAD), wide(REFUSED), min(read, size - 1)


@inner
def state_at(m, t, state, spelled):
    return after_text(m, t, state, spelled) if spelled > 0 else state


# How many tokens beyond the automaton's own cost suffice after some text, when it is a number of tokens; else:
ONE_MORE, SEARCH, EXPECTS_KEY = 1, -1, -2  # that; to be searched for; to be asked again behind the quote that must come next


@inner
def extra_cost(m, t, state, here, epoch, is_inner, spells):
    """Tokens that rivals cost: none without any, one where one more character makes the difference; SEARCH otherwise.

    At the beginning of an item the grammar has promised the most that any item may cost, see shortest_completion.py; but beside other arrays,
    what costs least may have no item left.
    """
    if epoch == 0:
        return wide(0)
    if m[t.c + REC * here] == START and not is_inner:
        return wide(SEARCH) if m[t.n + MIXED] == 1 else wide(m[t.n + ITEM_GAP])
    in_body = m[t.state_body + REC * state] >= 0 and spells
    return wide(ONE_MORE) if in_body and way_out(m, t, state, here, epoch, m[t.state_cost + REC * state]) else wide(SEARCH)


@inner
def expects_key(m, t, state, here):
    """Whether a key that is to be remembered must come next, in an object that has some."""
    frame = m[t.a + REC * here]
    return m[t.kind + REC * frame] == OBJECT and m[t.b + REC * frame] != NOTHING and must_open_key(m, t, state)


@inner
def must_open_key(m, t, state):
    found = False
    for byte in range(256):
        if is_space(byte):
            continue
        answer = transition(m, t, state, byte)
        if answer & STATE_MASK != DEAD:
            if answer >> STATE_BITS != KEY_OPEN:
                return False
            found = True
    return found


@entry
def prospect(arena, state, here, spells):
    """What `extra_cost` says of a state and a memory, or EXPECTS_KEY."""
    m = words_at(arena)
    t = layout(m)
    if m[t.b + REC * here] == OUTSIDE and expects_key(m, t, state, here):
        return wide(EXPECTS_KEY)
    epoch, is_inner = mark_rivals(m, t, here)
    return extra_cost(m, t, wide(state), wide(here), epoch, is_inner, spells)
