"""What the memory says about tokens: the vocabulary's trie walked against the automaton and the memory together.

The walk interns next to nothing, although every token writes a key or an item of its own: as long as there are no rivals, bytes
are only noted, and the memory is brought up to date where a new key or item begins.
"""

from __future__ import annotations

import numpy as np

from .compiled import entry, inner
from .derive import wide
from .memory import COMMA, ITEM_CLOSE, KEY_OPEN, REFUSED, is_space, remember
from .rivals import (
    EXPECTS_KEY,
    after_rival,
    expects_key,
    extra_cost,
    is_alive,
    is_plain,
    mark_rivals,
    must_open_key,
    rival_word,
    transition,
    way_out,
)
from .tables import DEAD, FAULT, INFINITE, NO_FAULT, STATE_BITS, STATE_MASK, layout
from .walk import set_tokens


@entry
def judge(arena, byte, depth, skip, first, order, max_depth, state, here, along, spells, refused, ends, extra, hard):
    """Walk the trie from a state and a memory. Every output may be empty when it is not wanted.

    along: only tokens that go along rivals, the others are not looked at.
    refused: mask (uint32 [ceil(V / 32)]) in which the bits of tokens are set that only the memory refuses.
    ends, extra: int32 [tokens]: ends[k] = the state that token order[k] leads to, DEAD when it does not survive; what the memory
        adds to the cost there, SEARCH or EXPECTS_KEY when that has to be found out.
    hard: int32 [4, tokens]: k, state, memory and extra of the tokens for which it has to.

    Returns the number of hard tokens, and the least cost after one that is not, INFINITE when there is none.
    """
    m, t = arena, layout(arena)
    path = np.empty(max_depth + 1, np.uint8)  # [depth] the byte read there
    events = np.empty(max_depth + 1, np.int64)
    states = np.empty(max_depth + 1, np.int64)
    known = np.empty(max_depth + 1, np.int64)  # the memory after path[:since]
    since = np.zeros(max_depth + 1, np.int64)
    origin = np.zeros(max_depth + 1, np.int64)  # the memory whose rivals are those here, 0 without rivals
    states[0], known[0] = state, here
    marked, (epoch, is_inner) = wide(here), mark_rivals(m, t, wide(here))
    origin[0] = here if epoch != 0 else 0
    ends[:] = DEAD
    extra[:] = 0
    n, i, num_hard, least = byte.size, 0, 0, wide(INFINITE)
    while i < n:
        d, value = depth[i], wide(byte[i])
        answer = transition(m, t, states[d - 1], value)
        if m[t.n + FAULT] != NO_FAULT:
            return num_hard, least
        s, event = answer & STATE_MASK, answer >> STATE_BITS
        if s == DEAD:
            i = skip[i]
            continue
        states[d], path[d], events[d] = s, value, event
        known[d], since[d], origin[d] = known[d - 1], since[d - 1], wide(0)
        dead = False
        if origin[d - 1] != 0:
            if marked != origin[d - 1]:
                marked, (epoch, is_inner) = origin[d - 1], mark_rivals(m, t, origin[d - 1])
            if is_plain(m, t, known[d], value, event):
                rival = rival_word(m, t, wide(m[t.c + known[d]]), value, epoch)
                if rival != 0:
                    known[d], since[d], origin[d] = after_rival(m, t, known[d], value, event, rival), d, origin[d - 1]
            else:
                known[d], since[d] = remember(m, t, known[d], value, event), d
                dead = known[d] == REFUSED
        elif event == KEY_OPEN or event == ITEM_CLOSE:
            known[d], since[d] = up_to_date(m, t, known[d], path, events, since[d], d), d
        if since[d] == d and not dead and origin[d] == 0:
            marked, (epoch, is_inner) = known[d], mark_rivals(m, t, known[d])
            origin[d] = known[d] if epoch != 0 else 0
        more = 0  # the extra cost of tokens that end here
        ends_here = first[i] != first[i + 1]
        if origin[d] != 0 and ends_here and not dead:
            if hard.size > 0:
                more = extra_cost(m, t, s, known[d], epoch, is_inner, spells)
            if not way_out(m, t, s, known[d], epoch, INFINITE - 1):
                dead = not is_alive(m, t, s, known[d])
                marked = wide(0)
        elif ends_here and hard.size > 0 and (value == COMMA or is_space(value)) and must_open_key(m, t, s):
            known[d], since[d] = up_to_date(m, t, known[d], path, events, since[d], d), d
            more = EXPECTS_KEY if expects_key(m, t, s, known[d]) else 0
        if m[t.n + FAULT] != NO_FAULT:
            return num_hard, least
        if dead:
            if refused.size > 0:
                set_tokens(refused, order, first[i], first[skip[i]])
            i = skip[i]
        elif along and origin[d] == 0:
            i = skip[i]
        else:
            if ends.size > 0:
                ends[first[i] : first[i + 1]] = s
                extra[first[i] : first[i + 1]] = more
            if ends_here and more >= 0:
                least = min(least, wide(m[t.state_cost + s]) + more)
            elif ends_here:
                for k in range(first[i], first[i + 1]):
                    hard[0, num_hard], hard[1, num_hard], hard[2, num_hard], hard[3, num_hard] = k, s, known[d], more
                    num_hard += 1
            i += 1
    return num_hard, least


@inner
def up_to_date(m, t, here, path, events, since, depth):
    """The memory after path[since + 1 : depth + 1]; nothing on the way can be refused."""
    for d in range(since + 1, depth + 1):
        here = remember(m, t, here, wide(path[d]), events[d])
    return here
