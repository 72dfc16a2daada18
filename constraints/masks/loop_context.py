"""What else stands beside the repetitions of a state's body, and behind them.

Tables say which tokens are made of the characters of a class, and how long they are. They are right for a state whose body is of
that class if nothing but repetitions of it reads its characters, and tokens that leave it do so alike from wherever in the body
that is only if what comes behind each repetition goes on as the state itself does.
"""

from __future__ import annotations

from ..automaton.closures import ENDLESS, HEADER, close
from ..automaton.determinize import step
from ..automaton.nodes import CLASS, EMPTY, LITERAL, REPEAT, SEQ, leaf, wide
from ..automaton.states import items_of, plain_items, state_of
from ..automaton.tables import DEAD, FAULT, FRAMED, NO_FAULT, REC, STATE_MASK, UNKNOWN
from ..numba_support.jit import inner
from ..vocabulary.packed_vocabulary import CHILDREN, child_of, first_ascii

_FEW = 8  # items of a state that are compared; of one behind a character, where there are more few tokens reach them


@inner
def is_alone(m, t, s):
    """Whether characters of the body class can only be read by repetitions of it, and not by what follows those.

    Then the tokens made of such characters are exactly those of at most `radius` characters, the most that one of the repetitions
    allows.
    """
    if m[t.state_alone + REC * s] != UNKNOWN:
        return m[t.state_alone + REC * s] == 1
    body, (start, length) = wide(m[t.state_body + REC * s]), items_of(m, t, s)
    answer, own = m[t.n + FAULT] == NO_FAULT, wide(-1)
    for j in range(start, start + length):
        item = wide(m[t.pool + j])
        if m[t.unit + REC * leaf(m, t, item)] == body and m[t.kind + REC * leaf(m, t, item)] == CLASS:
            answer = answer and (own < 0 or own == leaf(m, t, item)) and m[t.kind + REC * item] == SEQ
            own = leaf(m, t, item)
    answer = answer and own >= 0
    for j in range(start, start + length):
        item = wide(m[t.pool + j])
        if answer and item != EMPTY and leaf(m, t, item) != own:
            answer = not overlaps(m, t, own, leaf(m, t, item))
        elif answer and item != EMPTY:
            rest = wide(m[t.b + REC * item])
            answer = 1 + copies(m, t, rest, body) <= m[t.state_radius + REC * s]
            answer = answer and not begins_alike(m, t, own, behind(m, t, rest, body))
    if m[t.n + FAULT] == NO_FAULT:
        m[t.state_alone + REC * s] = 1 if answer else 0
    return answer


@inner
def copies(m, t, continuation, body):
    """The most characters that a repetition of a body class reads at the beginning of a continuation; 0 if none is there."""
    head = leaf(m, t, continuation)
    if m[t.kind + REC * head] != REPEAT or m[t.unit + REC * m[t.a + REC * head]] != body:
        return wide(0)
    return wide(ENDLESS - 1) if m[t.c + REC * head] < 0 else wide(m[t.c + REC * head])


@inner
def behind(m, t, continuation, body):
    """What comes behind that repetition; the continuation itself if it does not begin with one."""
    if copies(m, t, continuation, body) == 0:
        return continuation
    return wide(m[t.b + REC * continuation]) if m[t.kind + REC * continuation] == SEQ else wide(EMPTY)


@inner
def begins_alike(m, t, own, continuation):
    """Whether a continuation can begin with a byte of a class."""
    if m[t.kind + REC * leaf(m, t, continuation)] == LITERAL:
        return overlaps(m, t, own, leaf(m, t, continuation))
    if m[t.closure + REC * continuation] == 0:
        close(m, t, continuation)
        if m[t.n + FAULT] != NO_FAULT:
            return True
    start = wide(m[t.closure + REC * continuation])
    for j in range(start + HEADER, start + HEADER + wide(m[t.pool + start])):
        if m[t.pool + j] != EMPTY and overlaps(m, t, own, leaf(m, t, wide(m[t.pool + j]))):
            return True
    return False


@inner
def overlaps(m, t, own, node):
    """Whether a class and another leaf can begin with the same byte."""
    for e in range(m[t.a + REC * own], m[t.a + REC * own] + m[t.b + REC * own]):
        low, high = m[t.edge_low + e], m[t.edge_high + e]
        if m[t.kind + REC * node] == LITERAL:
            if low <= m[t.text + m[t.a + REC * node]] <= high:
                return True
        elif m[t.kind + REC * node] == CLASS:
            for f in range(m[t.a + REC * node], m[t.a + REC * node] + m[t.b + REC * node]):
                if m[t.edge_low + f] <= high and low <= m[t.edge_high + f]:
                    return True
        else:
            return True
    return False


@inner
def door_of(m, t, v, trie, state):
    """(state, n): the suffixes of a trie leave the body of a state as they are read from that one, from wherever in the body that
    is, behind n characters or more, up to the radius. (DEAD, 0) where this does not hold, and on a fault. For states where
    `is_alone`.

    So what is behind each repetition has to read them as the state itself does (any of them may be left later, when the others
    have come to their ends), and the longest must have no lower bound that is still to be reached. If there is only one, and it
    has one or cannot be left before a character, the state must not read them at all.
    """
    body, radius, is_left_anywhere = wide(m[t.state_body + REC * state]), wide(m[t.state_radius + REC * state]), False
    start, length = items_of(m, t, state)
    for j in range(start, start + length):
        item = wide(m[t.pool + j])
        own = leaf(m, t, item)
        if m[t.kind + REC * own] != CLASS or m[t.unit + REC * own] != body:
            continue
        rest = wide(m[t.b + REC * item])
        more = copies(m, t, rest, body)
        following = state_of(m, t, behind(m, t, rest, body))
        low = wide(0) if more == 0 else wide(m[t.b + REC * leaf(m, t, rest)])
        is_alike = low == 0 and leave_alike(m, t, v, trie, state, own, following)
        is_short = low > 0 or plain_items(m, t, following)[1] <= _FEW
        if not is_alike and is_short and more + 1 == radius and is_only_way(m, t, state, own):
            is_closed = leave_alike(m, t, v, trie, state, own, wide(DEAD))
            return (following, 1 + low) if is_closed else (wide(DEAD), wide(0))
        if not is_alike and (low == 0 or not leave_alike(m, t, v, trie, state, own, following)):
            return wide(DEAD), wide(0)
        is_left_anywhere = is_left_anywhere or (more + 1 == radius and low == 0)
    return (wide(state) if is_left_anywhere else wide(DEAD)), wide(0)


@inner
def is_loop(m, t, v, tables, state):
    """Whether all characters of the body of a state lead back to it. For states where `is_alone`: one character tells. False where
    none of them is ASCII, and on a fault."""
    first = first_ascii(v, tables)
    if m[t.state_radius + REC * state] < ENDLESS or first == 0x80:
        return False
    after = m[t.next + state * 256 + first]
    if after == UNKNOWN:
        after = step(m, t, wide(state), first)
    return m[t.n + FAULT] == NO_FAULT and after & STATE_MASK == state


@inner
def is_only_way(m, t, state, own):
    """Whether only one item of a state begins with a leaf."""
    start, length = items_of(m, t, state)
    count = 0
    for j in range(start, start + length):
        count += 1 if leaf(m, t, wide(m[t.pool + j])) == own else 0
    return count == 1


@inner
def leave_alike(m, t, v, trie, state, own, following):
    """Whether two states go to the same ones on the first bytes of the suffixes in a trie, which the leaf `own` does not read.

    False on a fault.
    """
    if have_same_ways(m, t, v, trie, state, following, own) and have_same_ways(m, t, v, trie, following, state, own):
        return True
    return begin_alike(m, t, v, trie, state, following)


@inner
def have_same_ways(m, t, v, trie, state, other, own):
    """Whether the items of a state are those of another one, but for such as begin with `own` or with a literal that no suffix
    begins with. False also where it is not looked at: frames, and many items."""
    start, length = wide(m[t.state_start + REC * state]), wide(m[t.state_length + REC * state])
    end = wide(m[t.state_start + REC * other]) + wide(m[t.state_length + REC * other])
    if length == FRAMED or m[t.state_length + REC * other] == FRAMED or length > _FEW:
        return False
    for j in range(start, start + length):
        item, k = wide(m[t.pool + j]), wide(m[t.state_start + REC * other])
        node = leaf(m, t, item)
        if node == own:
            continue
        if m[t.kind + REC * node] == LITERAL and child_of(v, trie, wide(-1), m[t.text + m[t.a + REC * node]]) < 0:
            continue
        while k < end and m[t.pool + k] < item:  # they are sorted
            k += 1
        if k == end or m[t.pool + k] != item:
            return False
    return True


@inner
def begin_alike(m, t, v, trie, state, other):
    """Whether two states go to the same ones on the first bytes of a trie. False on a fault."""
    children = wide(v[trie + CHILDREN]) + 256  # of the root
    for byte in range(256):
        if v[children + byte] == 0:
            continue
        s, after = m[t.next + state * 256 + byte], m[t.next + other * 256 + byte]
        if s == UNKNOWN:
            s = step(m, t, wide(state), wide(byte))
        if after == UNKNOWN:
            after = step(m, t, wide(other), wide(byte))
        if s != after or m[t.n + FAULT] != NO_FAULT:
            return False
    return True
