"""The mask walk: which tokens may come next in a state.

Four versions of one idea, from obvious to fast; tests hold them equal.

1. Try every token byte by byte (`end_states`): also says where each token leads.
2. Walk the vocabulary's byte trie depth first (`walk`): a dead byte skips a whole subtree, a shared prefix is read once.
3. Use *bodies*: a state that loops on a class of characters (the inside of a JSON string) accepts every token made of them. The
   bits of those tokens are found once per vocabulary and class, by length in characters (`BodyClass.slices`); only the *residual*
   trie of the other tokens is walked. Where that is not exact (a bounded repetition that is not alone in its state), the plain
   walk takes whole subtrees that stay inside the body (`heights`).
4. Walk two states in step (`walk_apart`): where both are in one state, the masks agree, so a mask is known from one of a state that
   differs in a few bytes only.

Exactness of the slices: every byte string of class characters, the last one possibly cut short, of at most `radius` characters
survives, because the repetition itself is in the state. Longer ones are dead if nothing else in the state can read such
characters (`state_alone`), and do not exist in the vocabulary if `radius` is at least the longest.
"""

from __future__ import annotations

import numpy as np

from .compiled import entry, inner
from .derive import ENDLESS, step
from .tables import DEAD, FAULT, NO_FAULT, STATE_BITS, STATE_MASK, UNKNOWN, VISITED, layout

FIRST_PRINTABLE, LAST_PRINTABLE = 0x20, 0x7E


@inner
def set_tokens(mask, order, start, end):
    """Set the bits of order[start:end]."""
    for i in range(start, end):
        token = order[i]
        mask[token >> 5] |= np.uint32(1) << np.uint32(token & 31)


@inner
def clear_tokens(mask, order, start, end):
    for i in range(start, end):
        token = order[i]
        mask[token >> 5] &= ~(np.uint32(1) << np.uint32(token & 31))


@inner
def next_child(m, t, nodes, children, i, state, table, end):
    """After dead node i: the next sibling that `state` may read, or `end` when there is none. Without a table, just the next."""
    if table == 0:
        return np.int64(nodes[i, 2])
    row = t.next + np.int64(state) * 256
    for byte in range((nodes[i, 0] & 255) + 1, 256):
        if m[row + byte] != DEAD and children[table, byte] != 0:
            return np.int64(children[table, byte] - 1)
    return np.int64(end)


@entry
def plan(arena, state):
    """What is known of a state before its mask is walked: (body class, radius, alone, accepting, a state that it is like).

    A state is like another when most characters lead there and that is an endless body: inside a key that may still become one
    of several names, any other character leads into the body of all other keys. DEAD when there is none.
    """
    m, t = arena, layout(arena)
    like, votes = DEAD, 0
    if m[t.state_body + state] < 0:
        for byte in range(FIRST_PRINTABLE, LAST_PRINTABLE + 1):  # the majority, found by votes (Boyer and Moore 1981)
            s = m[t.next + state * 256 + byte]
            if s == UNKNOWN:
                s = step(m, t, np.int64(state), np.int64(byte))
                if m[t.n + FAULT] != NO_FAULT:
                    break
            s &= STATE_MASK
            if votes == 0:
                like = s
            votes += 1 if s == like else -1
        if m[t.state_body + like] < 0 or m[t.state_radius + like] < ENDLESS:
            like = DEAD
    return m[t.state_body + state], m[t.state_radius + state], m[t.state_alone + state], m[t.state_accept + state], like


@entry
def walk(arena, nodes, children, order, max_depth, heights, body, state, mask):
    """Set in `mask` (uint32 [ceil(V / 32)]) the bits of the trie's tokens that survive from `state`; returns nodes visited.

    nodes, children, order: a `WalkedTrie`. heights: uint8 [n] or empty: per node the most characters of class `body` in a suffix
    below it, 255 when some suffix is not made of such characters. On a fault the mask is incomplete.
    """
    m, t = arena, layout(arena)
    path = np.empty(max_depth + 1, np.int32)  # [depth] state after that many bytes
    table = np.empty(max_depth + 1, np.int32)  # [depth] the table of the children of the node there, 0 when it has none
    after = np.empty(max_depth + 1, np.int32)  # [depth] the first node behind its subtree
    n, i, visited, events = nodes.shape[0] - 1, np.int64(0), 0, 0
    path[0], table[0], after[0] = state, 1, n
    use_body = heights.size > 0
    pending_start = pending_end = 0  # tokens order[pending_start:pending_end] live, not yet set
    while i < n:
        visited += 1
        d, byte = nodes[i, 1], nodes[i, 0] & 255
        s = m[t.next + path[d - 1] * 256 + byte]
        if s == UNKNOWN:
            s = step(m, t, np.int64(path[d - 1]), np.int64(byte))
            if m[t.n + FAULT] != NO_FAULT:
                return visited
        if s == DEAD:
            i = next_child(m, t, nodes, children, i, path[d - 1], table[d - 1], after[d - 1])
            continue
        events |= 1 << (s >> STATE_BITS)
        s &= STATE_MASK
        if s == DEAD:
            i = np.int64(nodes[i, 2])
            continue
        start = nodes[i, 3]
        if use_body and m[t.state_body + s] == body and heights[i] < 255 and heights[i] <= m[t.state_radius + s]:
            i = np.int64(nodes[i, 2])
            end = nodes[i, 3]
        else:
            path[d], table[d], after[d] = s, nodes[i, 0] >> 8, nodes[i, 2]
            i += 1
            end = nodes[i, 3]
        if start != end:
            if start != pending_end:
                set_tokens(mask, order, pending_start, pending_end)
                pending_start = start
            pending_end = end
    set_tokens(mask, order, pending_start, pending_end)
    m[t.state_events + state] = events
    m[t.n + VISITED] += visited
    return visited


@entry
def walk_apart(arena, nodes, order, max_depth, state, like, limit, mask):
    """Make `mask`, that of state `like`, the mask of `state`: only subtrees that lead them to different states are walked.

    Returns nodes visited, -1 when they would be more than `limit`. On a fault or beyond the limit the mask is incomplete.
    """
    m, t = arena, layout(arena)
    path = np.empty(max_depth + 1, np.int32)
    like_path = np.empty(max_depth + 1, np.int32)
    path[0], like_path[0] = state, like
    n, i, visited, events = nodes.shape[0] - 1, np.int64(0), 0, np.int64(m[t.state_events + like])
    while i < n:
        visited += 1
        if visited > limit:
            return -1
        d, byte = nodes[i, 1], nodes[i, 0] & 255
        s, other = m[t.next + path[d - 1] * 256 + byte], m[t.next + like_path[d - 1] * 256 + byte]
        if s == UNKNOWN:
            s = step(m, t, np.int64(path[d - 1]), np.int64(byte))
        if other == UNKNOWN:
            other = step(m, t, np.int64(like_path[d - 1]), np.int64(byte))
        if m[t.n + FAULT] != NO_FAULT:
            return visited
        if s == other:
            i = np.int64(nodes[i, 2])
            continue
        if s & STATE_MASK != DEAD:
            events |= 1 << (s >> STATE_BITS)
        s, other = s & STATE_MASK, other & STATE_MASK
        path[d], like_path[d] = s, other
        if s == DEAD:
            clear_tokens(mask, order, nodes[i, 3], nodes[i + 1, 3])
        else:
            set_tokens(mask, order, nodes[i, 3], nodes[i + 1, 3])
        i += 1
    m[t.state_events + state] = events
    m[t.n + VISITED] += visited
    return visited


@entry
def end_states(arena, byte, depth, skip, first, max_depth, state, ends):
    """The state each token leads to: ends[k] for token order[k], DEAD when it does not survive. Returns nodes visited."""
    m, t = arena, layout(arena)
    path = np.empty(max_depth + 1, np.int32)
    path[0] = state
    ends[:] = DEAD
    n, i, visited = byte.size, 0, 0
    while i < n:
        visited += 1
        d = depth[i]
        s = m[t.next + path[d - 1] * 256 + byte[i]]
        if s == UNKNOWN:
            s = step(m, t, np.int64(path[d - 1]), np.int64(byte[i]))
            if m[t.n + FAULT] != NO_FAULT:
                return visited
        s &= STATE_MASK
        if s == DEAD:
            i = skip[i]
            continue
        path[d] = s
        ends[first[i] : first[i + 1]] = s
        i += 1
    return visited


@entry
def run(arena, state, data):
    """The state after some bytes (uint8); DEAD when they do not survive, or on a fault. Returns (state, bytes read)."""
    m, t = arena, layout(arena)
    for i in range(data.size):
        s = m[t.next + state * 256 + data[i]]
        if s == UNKNOWN:
            s = step(m, t, np.int64(state), np.int64(data[i]))
        state = s & STATE_MASK
        if state == DEAD:
            return DEAD, i
    return state, data.size


@entry
def advance(arena, states, tokens, offsets, data, out):
    """out[k] = state after token tokens[k] from states[k], DEAD when it does not survive. Stops at a fault."""
    m, t = arena, layout(arena)
    for k in range(states.size):
        s = states[k]
        start, end = offsets[tokens[k]], offsets[tokens[k] + 1]
        if start == end:
            s = DEAD  # never text
        for i in range(start, end):
            answer = m[t.next + s * 256 + data[i]]
            if answer == UNKNOWN:
                answer = step(m, t, np.int64(s), np.int64(data[i]))
                if m[t.n + FAULT] != NO_FAULT:
                    return
            s = answer & STATE_MASK
            if s == DEAD:
                break
        out[k] = s


@entry
def only_byte(arena, state):
    """The one byte that may follow a state that is not accepting, else -1. The caller looks for faults."""
    m, t = arena, layout(arena)
    if m[t.state_accept + state] == 1:
        return -1
    found = -1
    for byte in range(256):
        answer = m[t.next + state * 256 + byte]
        if answer == UNKNOWN:
            answer = step(m, t, np.int64(state), np.int64(byte))
            if m[t.n + FAULT] != NO_FAULT:
                return -1
        if answer & STATE_MASK != DEAD:
            if found >= 0:
                return -1
            found = byte
    return found


@entry
def hash_words(words):
    """A 64-bit hash of 32-bit words, for finding equal mask rows: FNV-1a in eight lanes."""
    prime = np.uint64(1099511628211)
    a = b = c = d = np.uint64(14695981039346656037)
    e = f = g = h = np.uint64(0x9E3779B97F4A7C15)
    whole = words.size // 8 * 8
    for i in range(0, whole, 8):
        a, b = (a ^ np.uint64(words[i])) * prime, (b ^ np.uint64(words[i + 1])) * prime
        c, d = (c ^ np.uint64(words[i + 2])) * prime, (d ^ np.uint64(words[i + 3])) * prime
        e, f = (e ^ np.uint64(words[i + 4])) * prime, (f ^ np.uint64(words[i + 5])) * prime
        g, h = (g ^ np.uint64(words[i + 6])) * prime, (h ^ np.uint64(words[i + 7])) * prime
    for i in range(whole, words.size):
        a = (a ^ np.uint64(words[i])) * prime
    for lane in (b, c, d, e, f, g, h):
        a = (a ^ (lane >> np.uint64(29)) ^ lane) * prime
    return a


@entry
def is_row(rows, number, mask):
    """Whether rows[number - 1] equals the mask."""
    for i in range(mask.size):
        if rows[number - 1, i] != mask[i]:
            return False
    return True


@entry
def take_rows(rows, numbers, out):
    """out[k] = rows[numbers[k] - 1]."""
    for k in range(numbers.size):
        out[k] = rows[numbers[k] - 1]
