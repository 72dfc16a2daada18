"""The mask walk: which tokens may come next in a state.

Three versions of one idea, from obvious to fast; tests hold them equal.

1. Try every token byte by byte (`end_states`): also says where each token leads.
2. Walk the vocabulary's byte trie depth first (`walk`): a dead byte skips a whole subtree, a shared prefix is read once.
3. Use *bodies*: a state that loops on a class of characters (the inside of a JSON string) accepts every token made of them. The
   bits of those tokens are found once per vocabulary and class, by length in characters (`BodyClass.slices`); only the *residual*
   trie of the other tokens is walked. Where that is not exact (a bounded repetition that is not alone in its state), the plain
   walk takes whole subtrees that stay inside the body (`heights`).

Exactness of the slices: every byte string of class characters, the last one possibly cut short, of at most `radius` characters
survives, because the repetition itself is in the state. Longer ones are dead if nothing else in the state can read such
characters (`state_alone`), and do not exist in the vocabulary if `radius` is at least the longest.
"""

from __future__ import annotations

import numpy as np

from .compiled import entry, inner
from .derive import step
from .tables import DEAD, FAULT, NO_FAULT, STATE_MASK, UNKNOWN, VISITED, layout


@inner
def set_tokens(mask, order, start, end):
    """Set the bits of order[start:end]."""
    for i in range(start, end):
        token = order[i]
        mask[token >> 5] |= np.uint32(1) << np.uint32(token & 31)


@entry
def walk(arena, byte, depth, skip, first, order, max_depth, heights, body, state, mask):
    """Set in `mask` (uint32 [ceil(V / 32)]) the bits of the trie's tokens that survive from `state`; returns nodes visited.

    heights: uint8 [n] or empty: per node the most characters of class `body` in a suffix below it, 255 when some suffix is not
    made of such characters. On a fault the mask is incomplete.
    """
    m, t = arena, layout(arena)
    path = np.empty(max_depth + 1, np.int32)  # [depth] state after that many bytes
    path[0] = state
    use_body = heights.size > 0
    n, i, visited = byte.size, 0, 0
    pending_start = pending_end = 0  # tokens order[pending_start:pending_end] live, not yet set
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
        start = first[i]
        if use_body and m[t.state_body + s] == body and heights[i] < 255 and heights[i] <= m[t.state_radius + s]:
            i = skip[i]
            end = first[i]
        else:
            path[d] = s
            i += 1
            end = first[i]
        if start != end:
            if start != pending_end:
                set_tokens(mask, order, pending_start, pending_end)
                pending_start = start
            pending_end = end
    set_tokens(mask, order, pending_start, pending_end)
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
def copy_rows(arena, states, rows, out):
    """out[k] = the mask row of states[k], for states whose row is known; returns the first k without one, or len(states)."""
    m, t = arena, layout(arena)
    for k in range(states.size):
        row = m[t.state_row + states[k]]
        if row == 0:
            return k
        out[k] = rows[row - 1]
    return states.size


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
    """FNV-1a over 32-bit words, for finding equal mask rows."""
    h = np.uint64(14695981039346656037)
    for word in words:
        h = (h ^ np.uint64(word)) * np.uint64(1099511628211)
    return h
