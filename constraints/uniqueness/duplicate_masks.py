"""What the memory says about tokens: the vocabulary's trie walked against the automaton and the memory together.

The walk interns next to nothing, although every token writes a key or an item of its own: as long as there are no rivals, bytes
are only noted, and the memory is brought up to date where a new key or item begins.
"""

from __future__ import annotations

import numpy as np

from ..automaton.closures import ENDLESS
from ..automaton.nodes import wide
from ..automaton.tables import (
    CLASS_TABLES,
    CLASS_WIDTH,
    DEAD,
    FAULT,
    FREE_ITEMS,
    FREE_NAMES,
    INFINITE,
    NO_FAULT,
    REC,
    STATE_BITS,
    STATE_MASK,
    layout,
)
from ..base.kinds import Event
from ..base.utf8 import LAST_ASCII
from ..masks.loop_context import is_alone, is_loop
from ..masks.mask_rows import clear_tokens
from ..numba_support.jit import entry, inner, words_at
from ..vocabulary.packed_vocabulary import (
    DEPTH,
    FIRST_LEAD,
    NO_HEIGHT,
    NODE_WIDTH,
    NODES,
    NUM_NODES,
    ORDER,
    QUOTED_APART,
    QUOTED_ONCE,
    QUOTED_THRICE,
    QUOTED_TWICE,
    SEPARATED,
    SHAPE_WIDTH,
    SHAPES,
    SPELLS,
    STRING,
    TRIE,
    is_ascii,
    is_inside,
)
from .duplicate_candidates import mark_rivals, next_along_rivals, rival_word
from .register_product import (
    EXPECTS_KEY,
    HAS_WORDS,
    IN_NAME,
    IN_TEXT,
    IN_UNIQUE,
    ONE_MORE,
    TRACKED,
    after_rival,
    expects_key,
    extra_cost,
    follow,
    is_alive,
    is_plain,
    must_open_key,
    outlook,
    transition,
    way_out,
)
from .seen_values import BACKSLASH, COMMA, ITEM_CLOSE, KEY_OPEN, OUTSIDE, REFUSED, is_space, remember

# The frame of the walk at each depth: the trie's node; the byte read there, its event, the state behind it; the memory after the
# first SINCE bytes; the memory whose rivals are those here, 0 without rivals; whether a repeated item has ended some alternatives.
PLACE, BYTE, EVENT, STATE, KNOWN, SINCE, ORIGIN, NARROWED = range(8)
FRAME = 8
NO_ROWS = 0
WHOLE, ALONG, IN_BRIEF, IN_KEY = range(4)  # ways to walk a trie, see `judge_trie`
REMEMBERED = sum(1 << event for event in Event if event not in (Event.NONE, Event.OBJECT_OPEN, Event.OBJECT_CLOSE))


@entry
def judge(arena, atlas, state, here, way, ends, extra, hard):
    """Walk the trie of all tokens from a state and a memory. Every output may be empty when it is not wanted.

    way: WHOLE; IN_BRIEF to leave out tokens that change nothing because they stay inside of a string without rivals; IN_KEY to
        leave out also those that begin so and have a quotation mark then. They count for the least cost all the same.

    ends, extra: int32 [tokens]: ends[k] = the state that the k-th token in order leads to, DEAD when it does not survive; what the
        memory adds to the cost there, SEARCH or EXPECTS_KEY when that has to be found out.
    hard: int32 [5, tokens]: k, id, state, memory and extra of the tokens for which it has to; in brief those with ONE_MORE, too.

    Returns the number of hard tokens, and the least cost after one for which nothing has to be found out, INFINITE without any.
    """
    m, v = words_at(arena), words_at(atlas)
    t = layout(m)
    count, least, _ = judge_trie(m, t, v, NO_ROWS, wide(v[TRIE]), wide(state), wide(here), wide(way), ends, extra, hard, wide(0))
    if way == IN_KEY:
        none, trie = np.empty(0, np.int32), wide(v[QUOTED_ONCE])
        least = min(least, judge_trie(m, t, v, NO_ROWS, trie, wide(state), wide(here), wide(WHOLE), none, none, hard, count)[1])
    return count, least


@entry
def hard_tokens(arena, atlas, state, here, has_items, hard):
    """The hard tokens of `judge`, and those behind which alternatives are gone, looked for only where they can be; returns their
    number. The row of the state has to be known."""
    m, v = words_at(arena), words_at(atlas)
    t = layout(m)
    prospects = outlook(m, t, wide(here))
    if not prospects & TRACKED and not m[t.state_events + REC * state] & REMEMBERED:
        return wide(0)
    none, count = np.empty(0, np.int32), wide(0)
    if prospects & TRACKED:
        count, _, _ = judge_trie(m, t, v, NO_ROWS, wide(v[TRIE]), wide(state), wide(here), wide(ALONG), none, none, hard, wide(0))
    trie = where_words_begin(v, prospects, has_items)
    return judge_trie(m, t, v, NO_ROWS, trie, wide(state), wide(here), wide(WHOLE), none, none, hard, count)[0]


@inner
def where_words_begin(v, prospects, has_items):
    """The trie of the tokens in which another key or item can begin that has rivals."""
    in_text = prospects & IN_TEXT
    if has_items:
        return wide(v[QUOTED_ONCE if in_text else SEPARATED])
    return wide(v[QUOTED_TWICE if in_text else QUOTED_ONCE if prospects & HAS_WORDS else QUOTED_THRICE])


@inner
def where_refusals_begin(m, t, v, prospects):
    """The trie of the tokens that may be refused for another key or item that begins in them; not for items of unique arrays that
    begin there too.

    Behind a key comes a value first. A key or a string that may be any but some is refused at its closing quotation mark only:
    until then it may become another.
    """
    in_text, has_words, has_free_names = prospects & IN_TEXT, prospects & HAS_WORDS, m[t.n + FREE_NAMES] * v[SPELLS]
    if prospects & IN_UNIQUE:
        if m[t.n + FREE_ITEMS] * v[SPELLS] == 0:
            return where_words_begin(v, prospects, wide(1))
        return wide(v[QUOTED_ONCE if has_words and not in_text and not has_free_names else QUOTED_TWICE])
    if in_text and (prospects & IN_NAME or not has_words):
        return wide(v[QUOTED_APART])
    if has_free_names:
        return wide(v[QUOTED_THRICE if in_text or not has_words else QUOTED_TWICE])
    return where_words_begin(v, prospects, wide(0))


@inner
def judge_trie(m, t, v, rows, trie, state, here, way, ends, extra, hard, num_hard):
    """`judge` for any trie; hard tokens are put behind the first `num_hard`. k is then not a place in the order of all tokens.

    way: what is looked at: WHOLE; ALONG: only tokens that go along rivals; IN_BRIEF, IN_KEY: not those that `judge` leaves out.
    rows: the address where tokens that the memory refuses are noted, to be cleared; or NO_ROWS.

    Returns num_hard, least, and how many tokens were cleared.
    """
    nodes, order, n = wide(v[trie + NODES]), wide(v[trie + ORDER]), wide(v[trie + NUM_NODES])
    ends[:] = DEAD
    extra[:] = 0
    if n == 0:
        return num_hard, wide(INFINITE), wide(0)
    stack = np.empty((wide(v[DEPTH]) + 1, FRAME), np.int64)
    stack[0, PLACE], stack[0, STATE], stack[0, KNOWN], stack[0, SINCE] = -1, state, here, 0
    marked, (epoch, is_inner) = wide(here), mark_rivals(m, t, wide(here))
    stack[0, ORIGIN], stack[0, NARROWED] = here if epoch != 0 else 0, 0
    i, least, cleared, spells, shapes = wide(0), wide(INFINITE), wide(0), v[SPELLS] == 1, wide(v[trie + SHAPES])
    tested, loops = wide(DEAD), False
    fills = way == WHOLE and ends.size > 0 and shapes != 0
    while i < n:
        node = nodes + NODE_WIDTH * i
        d, value, skip = wide(v[node + 1]), wide(v[node] & 255), wide(v[node + 2])
        above = d - 1
        if stack[above, ORIGIN] != 0:
            if marked != stack[above, ORIGIN]:
                marked, (epoch, is_inner) = stack[above, ORIGIN], mark_rivals(m, t, stack[above, ORIGIN])
            if way == ALONG and stack[above, NARROWED] == 0 and m[t.b + REC * stack[above, KNOWN]] != OUTSIDE:
                child = next_along_rivals(m, t, v, trie, stack[above, PLACE], stack[above, KNOWN], value)
                if child < 0:
                    i = n if d == 1 else wide(v[nodes + NODE_WIDTH * stack[above, PLACE] + 2])
                    continue
                if child > i:
                    i = child
                    continue
        answer = transition(m, t, stack[above, STATE], value)
        if m[t.n + FAULT] != NO_FAULT:
            return num_hard, least, cleared
        s, event = answer & STATE_MASK, answer >> STATE_BITS
        if s == DEAD:
            if stack[above, NARROWED] == 1:
                cleared += clear_below(v, rows, nodes, order, node, skip)
            i = skip
            continue
        stack[d, NARROWED] = stack[above, NARROWED]
        stack[d, PLACE], stack[d, BYTE], stack[d, EVENT], stack[d, STATE] = i, value, event, s
        stack[d, KNOWN], stack[d, SINCE], stack[d, ORIGIN] = stack[above, KNOWN], stack[above, SINCE], 0
        dead = False
        if stack[above, ORIGIN] != 0:
            if is_plain(m, t, stack[above, KNOWN], value, event):
                rival = rival_word(m, t, wide(m[t.c + REC * stack[above, KNOWN]]), value, epoch)
                if rival != 0:
                    stack[d, KNOWN], stack[d, SINCE] = after_rival(m, t, stack[above, KNOWN], value, event, rival), d
                    stack[d, ORIGIN] = stack[above, ORIGIN]
            else:
                s, stack[d, KNOWN] = follow(m, t, stack[above, STATE], answer, stack[above, KNOWN], value)
                stack[d, SINCE], dead = d, stack[d, KNOWN] == REFUSED
                if s != stack[d, STATE]:
                    stack[d, STATE], stack[d, NARROWED] = s, 1
        elif event == KEY_OPEN or event == ITEM_CLOSE:
            stack[d, KNOWN], stack[d, SINCE] = up_to_date(m, t, stack, d), d
        if stack[d, SINCE] == d and not dead and stack[d, ORIGIN] == 0:
            marked, (epoch, is_inner) = stack[d, KNOWN], mark_rivals(m, t, stack[d, KNOWN])
            stack[d, ORIGIN] = marked if epoch != 0 else 0
        more = 0  # the extra cost of tokens that end here
        start, end = wide(v[node + 3]), wide(v[node + NODE_WIDTH + 3])
        ends_here = start != end
        if stack[d, ORIGIN] != 0 and ends_here and not dead:
            if hard.size > 0:
                more = extra_cost(m, t, s, stack[d, KNOWN], epoch, is_inner, spells)
            if not way_out(m, t, s, stack[d, KNOWN], epoch, INFINITE - 1):
                dead = not is_alive(m, t, s, stack[d, KNOWN])
                marked = wide(0)
        elif ends_here and hard.size > 0 and (value == COMMA or is_space(value)) and must_open_key(m, t, s):
            stack[d, KNOWN], stack[d, SINCE] = up_to_date(m, t, stack, d), d
            more = EXPECTS_KEY if expects_key(m, t, s, stack[d, KNOWN]) else 0
        is_dearer = stack[d, NARROWED] == 1 and ends_here and way <= ALONG and hard.size > 0 and ends.size == 0 and not dead
        if is_dearer:  # perhaps: fewer tokens may suffice for the alternatives that are gone
            stack[d, KNOWN], stack[d, SINCE] = up_to_date(m, t, stack, d), d
        if m[t.n + FAULT] != NO_FAULT:
            return num_hard, least, cleared
        stays = (way >= IN_BRIEF or fills) and stack[d, ORIGIN] == 0
        if stays:  # in a string without an end that is the same behind each character, also when one of several bytes is begun
            is_whole = value < FIRST_LEAD and ends_here
            if tested != (s if value < FIRST_LEAD else stack[above, STATE]):
                tested = s if value < FIRST_LEAD else stack[above, STATE]
                loops = m[t.state_radius + REC * tested] >= ENDLESS and is_endless(m, t, v, tested)
            stays = loops and (fills or is_whole or least <= m[t.state_cost + REC * tested])
        if dead:
            cleared += clear_below(v, rows, nodes, order, node, skip)
            i = skip
        elif way == ALONG and stack[d, ORIGIN] == 0 and stack[d, NARROWED] == 0:
            i = skip
        elif stays and (
            (way == IN_KEY and is_any_string(m, t, v, tested)) or is_within_class(m, t, v, shapes + SHAPE_WIDTH * i, tested)
        ):
            if fills:
                least = min(least, fill_inside(m, t, v, trie, stack, i, tested, ends))
            else:
                least = min(least, wide(m[t.state_cost + REC * tested]))
            i = skip
        else:
            if ends.size > 0:
                ends[start:end] = s
                extra[start:end] = more
            if ends_here and more >= 0:
                least = min(least, wide(m[t.state_cost + REC * s]) + more)
            if ends_here and (more < 0 or is_dearer or (more == ONE_MORE and way >= IN_BRIEF)):
                for k in range(start, end):
                    hard[0, num_hard], hard[1, num_hard], hard[2, num_hard] = k, v[order + k], s
                    hard[3, num_hard], hard[4, num_hard] = stack[d, KNOWN], more
                    num_hard += 1
            i += 1
    return num_hard, least, cleared


@inner
def clear_below(v, rows, nodes, order, node, skip):
    """Note the tokens at a node and below it to be cleared, if they are; returns how many there are."""
    if rows == NO_ROWS:
        return wide(0)
    start, below = wide(v[node + 3]), wide(v[nodes + NODE_WIDTH * skip + 3])
    clear_tokens(words_at(rows), order + start, order + below)
    return below - start


@inner
def fill_inside(m, t, v, trie, stack, node, inside, ends):
    """The states behind the tokens at a node and below it, all of characters that lead from the state `inside` back to it; that of
    the node is on the stack. Returns the least cost there."""
    nodes, shapes, least, i = wide(v[trie + NODES]), wide(v[trie + SHAPES]), wide(INFINITE), wide(node)
    after = wide(v[nodes + NODE_WIDTH * node + 2])
    while i < after:
        at = nodes + NODE_WIDTH * i
        d, value, skip = wide(v[at + 1]), wide(v[at] & 255), wide(v[at + 2])
        if i != node:
            stack[d, STATE] = inside if value <= LAST_ASCII else transition(m, t, stack[d - 1, STATE], value) & STATE_MASK
        if value > LAST_ASCII or not is_ascii(v, shapes + SHAPE_WIDTH * i):
            skip = i + 1
        start, end = wide(v[at + 3]), wide(v[nodes + NODE_WIDTH * skip + 3])
        if start != end:
            ends[start:end] = stack[d, STATE]
            least = min(least, wide(m[t.state_cost + REC * stack[d, STATE]]))
        i = skip
    return least


@inner
def is_endless(m, t, v, s):
    """Whether a state is inside of a string without an end, and all characters of its body lead back to it."""
    body = m[t.state_body + REC * s]
    if body < 0:
        return False
    tables = wide(m[t.classes + CLASS_WIDTH * body + CLASS_TABLES])
    return tables != 0 and is_loop(m, t, v, tables, s) and is_alone(m, t, s)


@inner
def is_any_string(m, t, v, s):
    """Whether only a quotation mark leads nearer to the end from a state for which `is_endless`: no character, and no escape."""
    if m[t.classes + CLASS_WIDTH * m[t.state_body + REC * s] + CLASS_TABLES] != v[STRING]:
        return False
    escaped = transition(m, t, s, BACKSLASH) & STATE_MASK
    return escaped == DEAD or m[t.state_cost + REC * escaped] > m[t.state_cost + REC * s]


@inner
def is_within_class(m, t, v, shape, s):
    """Whether all that lies below a node is made of characters of the body of a state."""
    classes = t.classes + CLASS_WIDTH * m[t.state_body + REC * s]
    return v[shape] < NO_HEIGHT and is_inside(v, shape, classes, m, 0)


@inner
def up_to_date(m, t, stack, depth):
    """The memory at a depth, after the bytes that have only been noted so far; none of them can be refused."""
    here = stack[depth, KNOWN]
    for d in range(stack[depth, SINCE] + 1, depth + 1):
        here = remember(m, t, here, stack[d, BYTE], stack[d, EVENT])
    return here
