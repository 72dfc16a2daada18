"""What else stands beside the repetitions of a state's body, and behind them.

Tables say which tokens are made of the characters of a class, and how long they are. They are right for a state whose body is of
that class if nothing but repetitions of it reads its characters, and tokens that leave it do so alike from wherever in the body
that is only if what comes behind each repetition goes on as the state itself does.
"""

from __future__ import annotations

from .atlas import FIRST_BYTES, NODE_WIDTH, NODES, NUM_NODES, REACH
from .compiled import inner
from .derive import step
from .expression import UNBOUNDED
from .nodes import CLASS, EMPTY, FAIL, LITERAL, REPEAT, SEQ, leaf, pair, repetition, wide
from .states import ENDLESS, HEADER, close, intern_state, items_of, state_of
from .tables import DEAD, FAULT, NO_FAULT, REC, STATE_MASK, UNKNOWN

_MAX_FAR, _MAX_HEADS = 16, 4  # items of a state whose repetitions may be far from their ends; heads before a repetition


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
def exits_alike(m, t, v, trie, state):
    """Whether the suffixes of a trie leave a state's body alike from wherever in the body that is: at once, and after any number
    of characters up to the radius. For states where `is_alone`.

    So what is behind each repetition has to read them as the state itself does (any of them may be left later, when the others
    have come to their ends), and the longest repetition must have no lower bound that is still to be reached.
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
        if not begin_alike(m, t, v, trie, state, state_of(m, t, behind(m, t, rest, body))):
            return False
        if more + 1 == radius and (more == 0 or m[t.b + REC * leaf(m, t, rest)] == 0):
            is_left_anywhere = True
    return is_left_anywhere


@inner
def begin_alike(m, t, v, trie, state, other):
    """Whether two states go to the same ones on the first bytes of a trie. False on a fault."""
    nodes, i = wide(v[trie + NODES]), wide(0)
    while i < v[trie + NUM_NODES] and m[t.n + FAULT] == NO_FAULT:
        node = nodes + NODE_WIDTH * i
        byte = v[node] & 255
        s, after = m[t.next + state * 256 + byte], m[t.next + other * 256 + byte]
        if s == UNKNOWN:
            s = step(m, t, wide(state), wide(byte))
        if after == UNKNOWN:
            after = step(m, t, wide(other), wide(byte))
        if s != after:
            return False
        i = wide(v[node + 2])
    return m[t.n + FAULT] == NO_FAULT


@inner
def far_state(m, t, v, tables, s):
    """The state with endless repetitions of the body class instead of those of a state, if only tokens of the class itself are long
    enough to tell them apart; DEAD when there is none, or on a fault. tables: of the class.

    No token that leaves the class has more than REACH characters, unless a control character ends it, which the state must not
    allow behind any character of its body.
    """
    body, reach = wide(m[t.state_body + REC * s]), wide(v[tables + REACH])
    if m[t.state_radius + REC * s] >= ENDLESS or m[t.state_radius + REC * s] <= reach or not ends_at_controls(m, t, v, tables, s):
        return wide(DEAD)
    start, length = items_of(m, t, s)
    if length > _MAX_FAR or m[t.n + FAULT] != NO_FAULT:
        return wide(DEAD)
    changed = False
    for j in range(length):
        item = wide(m[t.pool + start + j])
        other = without_end(m, t, item, body, reach)
        if other == FAIL or m[t.n + FAULT] != NO_FAULT:
            return wide(DEAD)
        changed = changed or other != item
        m[t.items + j] = other
    return intern_state(m, t, length, body, wide(ENDLESS)) if changed else wide(DEAD)


@inner
def without_end(m, t, item, body, reach):
    """A continuation with an endless repetition of the body class instead of its first one; FAIL when that has a lower bound, or
    an upper one that is not beyond reach."""
    node, depth = item, wide(0)
    while m[t.kind + REC * node] == SEQ and depth < _MAX_HEADS:
        head = wide(m[t.a + REC * node])
        if m[t.kind + REC * head] == REPEAT and m[t.unit + REC * m[t.a + REC * head]] == body:
            high = wide(m[t.c + REC * head])
            if high < 0:
                return item
            if m[t.b + REC * head] > 0 or high < reach:
                return wide(FAIL)
            head = repetition(m, t, wide(m[t.a + REC * head]), wide(0), wide(UNBOUNDED))
            out = pair(m, t, head, wide(m[t.b + REC * node]))
            while depth > 0 and m[t.n + FAULT] == NO_FAULT:
                depth -= 1
                out = pair(m, t, wide(m[t.work + depth]), out)
            return out
        m[t.work + depth] = head
        node, depth = wide(m[t.b + REC * node]), depth + 1
    return item


@inner
def ends_at_controls(m, t, v, tables, s):
    """Whether no control character may come behind a character of a class from a state. False on a fault."""
    first = wide(0)
    while first < 0x80 and v[tables + FIRST_BYTES + (first >> 5)] >> (first & 31) & 1 == 0:
        first += 1
    if first == 0x80:
        return False
    after = m[t.next + s * 256 + first]
    if after == UNKNOWN:
        after = step(m, t, wide(s), first)
    row = t.next + (after & STATE_MASK) * 256
    for control in range(0x20):
        if m[row + control] != DEAD:
            return False
    return after & STATE_MASK != DEAD
