"""The mask walk: it finds the tokens that may come next in a state.

Comes in: a state, and a byte trie of the vocabulary (packed_vocabulary.py). Goes out: *edits* of a mask row (mask_rows.py),
ranges of tokens that survive. A token *survives* when the automaton can read all of its bytes.

The same idea in six versions, from obvious to fast; tests hold them equal:

1. Try every token byte by byte (`end_states`, which also tells where each token leads).
2. Walk the byte trie depth first (`walk`): a dead byte skips a whole subtree, and a shared prefix is read once.
3. Do not make states for the bytes of a literal (`walk_text`, `walk_literals`): every prefix of it survives.
4. Use *bodies*. A state that loops on a class of characters, such as the inside of a JSON string, accepts every token made
   of them. Subtrees of such characters are taken whole (`shapes` in packed_vocabulary.py). For classes that are met often the
   bits of those tokens are known, by length in characters (`BodyClass.slices`), and only the *residual* trie of the others is
   walked.
5. Walk a trie in which groups of bytes are one, such as all small letters (byte_classes.py), where states read a group alike; look
   at the single tokens where they do not (`walk_each`).
6. Walk two states in step (`walk_difference`). Where both reach the same state their masks agree; so the mask of a state follows
   from that of another one that differs in a few bytes.

Why the slices are exact: every string of at most `max_chars` characters of the class, the last one possibly cut short,
survives, because the repetition itself is in the state. Longer ones are dead if nothing else in the state can read such
characters (`is_body_exclusive`); and when `max_chars` is at least the longest token of the class, there are none.
"""

from __future__ import annotations

import numpy as np

from ..automaton.determinize import step
from ..automaton.multibyte_step import leap
from ..automaton.nodes import EMPTY, NO_BODY, head_of, wide
from ..automaton.states import (
    after_text,
    framed,
    have_one_tail,
    inner_of,
    intern_state,
    items_of,
    plain_items,
    state_of,
    tail_of,
)
from ..automaton.tables import DEAD, STATE_BITS, STATE_MASK, UNKNOWN, Fault, tables_at
from ..base.kinds import Kind
from ..numba_support.jit import entry, inner
from ..numba_support.record_access import pointer, words_at
from ..vocabulary.packed_vocabulary import (
    FIRST_LEAD,
    IS_QUOTED,
    NO_HEIGHT,
    NODE_WIDTH,
    SHAPE_WIDTH,
    Header,
    TrieRecord,
    child_of,
    is_inside,
)
from .mask_rows import clear_tokens, set_tokens
from .shared_continuations import note_end, note_end_inside
from .uniform_transitions import survives

WORTH_A_UNIFORM = 32  # nodes of a subtree for which the run of a state is found out
_QUOTE = 0x22
_SEVERAL = 3  # literals that are walked each for itself
_FAR_APART = 4000  # trie nodes; two states whose masks differ in more are walked each for itself


@inner
def next_child(m, vocab, trie, i, state, table, end):
    """Where a walk goes on behind a dead node i: at its next sibling that `state` may read, or at `end` when there is
    none. Without a table of children (table: 0), at the next sibling."""
    node = vocab[trie + TrieRecord.NODES] + NODE_WIDTH * i
    if table == 0:
        return vocab[node + 2]
    row, children = m.next + state * 256, vocab[trie + TrieRecord.CHILDREN] + 256 * table
    for byte in range((vocab[node] & 255) + 1, 256):
        if row[byte] != DEAD and vocab[children + byte] != 0:
            return vocab[children + byte] - 1
    return end


@inner
def walk(m, vocab, rows, trie, top, state):
    """Note the tokens below a node of a trie that survive from `state`, as edits of the row. top: the node, -1 for the
    root. Returns the number of nodes visited. On a fault some tokens are missing."""
    nodes = vocab[trie + TrieRecord.NODES]
    order = vocab[trie + TrieRecord.ORDER]
    shapes = vocab[trie + TrieRecord.SHAPES]
    n, i, visited, events, first = vocab[trie + TrieRecord.NUM_NODES], top + 1, 0, 0, m.path[0]
    groups = vocab[trie + TrieRecord.GROUPS]
    first.table = 1 if groups == 0 else 0
    if top >= 0:
        n, first = vocab[nodes + NODE_WIDTH * top + 2], m.path[vocab[nodes + NODE_WIDTH * top + 1]]
        first.table = vocab[nodes + NODE_WIDTH * top] >> 8
    first.state, first.after = state, n
    if m.states[state].literal_left > 0 and groups == 0:
        i = walk_text(m, vocab, rows, trie, top, state)
    pending_start = pending_end = 0  # tokens of the order that live, not yet set
    while i < n and m.n.fault == Fault.NONE:
        visited += 1
        node = nodes + NODE_WIDTH * i
        d, byte = vocab[node + 1], vocab[node] & 255
        above = m.path[d - 1]
        before = above.state
        if before == DEAD:
            i = above.after
            continue
        if groups != 0 and not reads_alike(m, before, byte, vocab[groups + byte]):
            events |= walk_each(m, vocab, rows, trie, i, before)
            i = vocab[node + 2]
            continue
        start, end, skip = vocab[node + 3], vocab[node + NODE_WIDTH + 3], vocab[node + 2]
        has_shape, begins = shapes != 0 and skip > i + 1, byte >= FIRST_LEAD
        if has_shape and begins and groups == 0 and is_within(m, vocab, shapes + SHAPE_WIDTH * i, before, skip - i):
            end, i = vocab[nodes + NODE_WIDTH * skip + 3], skip
        else:
            s = m.next[before * 256 + byte]
            if s == UNKNOWN:
                s = step(m, before, byte)
                if m.n.fault != Fault.NONE:
                    break
            if s == DEAD:
                i = next_child(m, vocab, trie, i, before, above.table, above.after)
                continue
            events |= 1 << (s >> STATE_BITS)
            s &= STATE_MASK
            if s == DEAD:
                i = skip
                continue
            if has_shape and not begins and is_within(m, vocab, shapes + SHAPE_WIDTH * i, s, skip - i):
                end, i = vocab[nodes + NODE_WIDTH * skip + 3], skip
            elif m.states[s].literal_left > 0 and skip > i + 1 and groups == 0:
                m.path[d].state, m.path[d].after = DEAD, skip
                i = walk_text(m, vocab, rows, trie, i, s)
            else:
                here = m.path[d]
                here.state, here.table, here.after = s, vocab[node] >> 8, skip
                if m.states[s].accept == 1 and skip > i + 1:
                    note_end(m, trie, i)
                i += 1
        if start != end:
            if start != pending_end:
                set_tokens(rows, order + pending_start, order + pending_end)
                pending_start = start
            pending_end = end
    set_tokens(rows, order + pending_start, order + pending_end)
    m.states[state].events |= events
    m.n.visited += visited
    return visited


@inner
def reads_alike(m, state, first, end):
    """Whether a state has the same transition on all bytes of first..end. False on a fault."""
    row = m.next + state * 256
    for byte in range(first, end):
        if row[byte] == UNKNOWN:
            step(m, state, byte)
            if m.n.fault != Fault.NONE:
                return False
        if row[byte] != row[first]:
            return False
    return True


@inner
def walk_each(m, vocab, rows, trie, i, state):
    """Note those tokens at node i of a trie by groups, and below it, that survive, each looked at by itself. state: the
    one before the node's byte. Returns the events that the tokens can pass, as bits."""
    nodes, order, events = vocab[trie + TrieRecord.NODES], vocab[trie + TrieRecord.ORDER], 0
    node = nodes + NODE_WIDTH * i
    pending_start = pending_end = 0
    for k in range(vocab[node + 3], vocab[nodes + NODE_WIDTH * vocab[node + 2] + 3]):
        start, end = token_bytes(vocab, vocab[order + k])
        s, at = state, start + vocab[node + 1] - 1
        while at < end and s != DEAD and m.n.fault == Fault.NONE:
            answer = m.next[s * 256 + vocab[at]]
            if answer == UNKNOWN:
                answer = step(m, s, vocab[at])
            events |= 1 << (answer >> STATE_BITS)
            s, at = answer & STATE_MASK, at + 1
            if m.states[s].accept == 1 and at < end:
                note_end_inside(m, order + k, at - start)
        if s != DEAD:
            if k != pending_end:
                set_tokens(rows, order + pending_start, order + pending_end)
                pending_start = k
            pending_end = k + 1
    set_tokens(rows, order + pending_start, order + pending_end)
    return events


@inner
def walk_rest(m, vocab, rows, place, offset, state):
    """Note the token at a place of the packed vocabulary if it survives. state: the one before the token's byte number `offset`."""
    start, end = token_bytes(vocab, vocab[place])
    s, at, events = state, start + offset, 0
    while at < end and s != DEAD and m.n.fault == Fault.NONE:
        answer = m.next[s * 256 + vocab[at]]
        if answer == UNKNOWN:
            answer = step(m, s, vocab[at])
        events |= 1 << (answer >> STATE_BITS)
        s, at = answer & STATE_MASK, at + 1
    if s != DEAD:
        set_tokens(rows, place, place + 1)
    m.states[state].events |= events


@inner
def is_within(m, vocab, shape, s, size):
    """Whether everything below a trie node (`size` nodes) survives from the state `s`, because it stays inside the
    state's body, or inside what an intersection has for one. In a walk that begins inside a JSON string, tokens with
    control characters are not looked at."""
    body, first = m.states[s].body_class, m.n.in_string & (1 - vocab[shape + IS_QUOTED])
    if body >= 0:
        is_low = vocab[shape] <= min(m.states[s].max_chars, NO_HEIGHT - 1)
        return is_low and is_inside(vocab, shape, m.classes[body].first_bytes, first)
    if (
        m.states[s].has_no_product == 1
        or vocab[shape] >= NO_HEIGHT
        or (size < WORTH_A_UNIFORM and m.states[s].uniform == 0)
    ):
        return False
    return survives(m, vocab, shape, vocab[shape], s, first)


@inner
def walk_text(m, vocab, rows, trie, node, s):
    """Note the tokens below a trie node that spell the literal which is all that the state `s` can read. node: -1 for
    the root.

    Returns the node where the walk goes on: behind the literal, else behind the subtree. Writes a `Path` for
    every node on the way, so that the walk leaves the subtree when it has done with what is behind the literal.
    """
    nodes, order, text = vocab[trie + TrieRecord.NODES], vocab[trie + TrieRecord.ORDER], m.text + m.states[s].literal
    out = vocab[nodes + NODE_WIDTH * node + 2] if node >= 0 else vocab[trie + TrieRecord.NUM_NODES]
    left, depth = m.states[s].literal_left, (vocab[nodes + NODE_WIDTH * node + 1] if node >= 0 else 0)
    m.path[depth].state, m.path[depth].after = DEAD, out
    for k in range(left):
        node = child_of(vocab, trie, node, text[k])
        if node < 0:
            return out
        set_tokens(rows, order + vocab[nodes + NODE_WIDTH * node + 3], order + vocab[nodes + NODE_WIDTH * node + NODE_WIDTH + 3])
        depth += 1
        m.path[depth].state, m.path[depth].after = DEAD, out
    behind = vocab[nodes + NODE_WIDTH * node + 2]
    if behind == node + 1:
        return out
    s = after_text(m, s, left)
    if m.n.fault != Fault.NONE:
        return out
    shapes = vocab[trie + TrieRecord.SHAPES]
    begins = vocab[nodes + NODE_WIDTH * node] & 255 >= FIRST_LEAD
    if shapes != 0 and not begins and is_within(m, vocab, shapes + SHAPE_WIDTH * node, s, behind - node):
        set_tokens(rows, order + vocab[nodes + NODE_WIDTH * node + 3], order + vocab[nodes + NODE_WIDTH * behind + 3])
        return out
    if m.states[s].accept == 1:
        note_end(m, trie, node)
    here = m.path[depth]
    here.state, here.table, here.after = s, vocab[nodes + NODE_WIDTH * node] >> 8, behind
    return node + 1


@inner
def without_literals(m, state):
    """The state of the items of `state` that are no literals, if it has several literals, such as the names that a key
    may have; DEAD when there are no other items.

    `state` itself where it has few literals, and where it has a body: exits that are cleared before a tail
    (`keep_ends`) would clear literals too.
    """
    if m.states[state].body_class >= 0:
        return state
    start, length = items_of(m, state)
    count = 0
    for j in range(start, start + length):
        item = m.pool[j]
        if m.nodes[head_of(m, item)].kind != Kind.LITERAL:
            m.items[count] = item
            count += 1
    if length - count < _SEVERAL or m.n.fault != Fault.NONE:
        return state
    return intern_state(m, count, NO_BODY, 0, 0)


@inner
def walk_literals(m, vocab, rows, state, are_noted):
    """Note the tokens that survive from a state along its literals. Each literal is walked by itself; otherwise a state
    would be made for every byte of each of them. On a fault some tokens are missing.

    are_noted: whether the tokens that end before the first quote are noted already.
    """
    start, length = plain_items(m, state)
    tail = tail_of(m, state)
    for j in range(start, start + length):
        item = m.pool[j]
        if m.nodes[head_of(m, item)].kind == Kind.LITERAL and m.n.fault == Fault.NONE:
            m.states[state].events |= walk_literal(m, vocab, rows, vocab[Header.TRIE], item, tail, not are_noted)


@inner
def walk_literal(m, vocab, rows, trie, item, tail, is_noted):
    """Note the tokens that survive along one item that begins with a literal, with `tail` behind it (EMPTY for none).
    Returns the events that tokens can pass behind the literal, as bits.

    is_noted: False if the tokens that end before its first quote are noted already.
    """
    nodes, order, literal_ = vocab[trie + TrieRecord.NODES], vocab[trie + TrieRecord.ORDER], head_of(m, item)
    text, node = m.text + m.nodes[literal_].a, -1
    for k in range(m.nodes[literal_].b):
        node = child_of(vocab, trie, node, text[k])
        if node < 0:
            return 0
        is_noted = is_noted or text[k] == _QUOTE
        if is_noted:
            set_tokens(
                rows,
                order + vocab[nodes + NODE_WIDTH * node + 3],
                order + vocab[nodes + NODE_WIDTH * node + NODE_WIDTH + 3],
            )
    if vocab[nodes + NODE_WIDTH * node + 2] == node + 1:
        return 0
    after = state_of(m, m.nodes[item].b if m.nodes[item].kind == Kind.SEQ else EMPTY)
    if tail != EMPTY:
        after = framed(m, after, tail)
    if m.n.fault != Fault.NONE:
        return 0
    if m.states[after].accept == 1:
        note_end(m, trie, node)
    walk(m, vocab, rows, trie, node, after)
    return m.states[after].events


@inner
def walk_difference(m, vocab, rows, state, base_state):
    """Note the edits that turn the mask of the state `base_state` into the mask of `state`. Only the subtrees that lead the
    two to different states are walked; frames with the same tail are walked as their inner states, until one of these
    is complete.

    Returns False when it gives up, because the two differ in too much. On a fault edits are missing.
    """
    trie = vocab[Header.TRIE]
    nodes, order = vocab[trie + TrieRecord.NODES], vocab[trie + TrieRecord.ORDER]
    is_inside_frame = have_one_tail(m, state, base_state)
    m.path[0].state = inner_of(m, state) if is_inside_frame else state
    m.path[0].other = inner_of(m, base_state) if is_inside_frame else base_state
    n, i, visited, events = vocab[trie + TrieRecord.NUM_NODES], 0, 0, m.states[base_state].events
    while i < n:
        visited += 1
        if visited > _FAR_APART:
            return False
        node = nodes + NODE_WIDTH * i
        d, byte = vocab[node + 1], vocab[node] & 255
        above = m.path[d - 1]
        s, other = m.next[above.state * 256 + byte], m.next[above.other * 256 + byte]
        if s == UNKNOWN:
            s = step(m, above.state, byte)
        if other == UNKNOWN:
            other = step(m, above.other, byte)
        if m.n.fault != Fault.NONE:
            return True
        if s == other:
            i = vocab[node + 2]
            continue
        if s & STATE_MASK != DEAD:
            events |= 1 << (s >> STATE_BITS)
        s, other = s & STATE_MASK, other & STATE_MASK
        if is_inside_frame and (m.states[s].accept == 1 or m.states[other].accept == 1):
            return False
        m.path[d].state, m.path[d].other = s, other
        if s == DEAD:
            clear_tokens(rows, order + vocab[node + 3], order + vocab[node + NODE_WIDTH + 3])
        else:
            set_tokens(rows, order + vocab[node + 3], order + vocab[node + NODE_WIDTH + 3])
        i += 1
    m.states[state].events = events
    m.n.visited += visited
    return True


@entry(byte="const uint8[:]", depth="const int32[:]", skip="const int32[:]", first="const int32[:]", ends="int32[:]")
def end_states(arena_address, byte, depth, skip, first, max_depth, state, ends):
    """Fill ends[k] with the state that token order[k] leads to, DEAD when it does not survive. Returns the number of
    nodes visited."""
    m = tables_at(arena_address)
    path = np.empty(max_depth + 1, np.int32)
    path[0] = state
    ends[:] = DEAD
    n, i, visited = byte.size, 0, 0
    while i < n:
        visited += 1
        d = depth[i]
        s = m.next[path[d - 1] * 256 + byte[i]]
        if s == UNKNOWN:
            s = step(m, wide(path[d - 1]), wide(byte[i]))
            if m.n.fault != Fault.NONE:
                return visited
        s &= STATE_MASK
        if s == DEAD:
            i = skip[i]
            continue
        path[d] = s
        ends[first[i] : first[i + 1]] = s
        i += 1
    return visited


@inner
def run_bytes(m, s, data, start, end):
    """(state, number of bytes read) behind data[start:end] from the state `s`; DEAD when they do not survive, and on a
    fault."""
    i = wide(start)
    while i < end:
        left = min(m.states[s].literal_left, end - i)
        if left > 0:
            for k in range(left):
                if data[i + k] != m.text[m.states[s].literal + k]:
                    return DEAD, i + k - start
            s, i = after_text(m, s, left), i + left
        else:
            answer = m.next[s * 256 + data[i]]
            if answer == UNKNOWN:
                after, count = leap(m, wide(s), data, i, end)
                if count > 0:
                    s, i = after, i + count
                    continue
                answer = step(m, wide(s), wide(data[i]))
            s = wide(answer & STATE_MASK)
            i += 1
        if s == DEAD:
            return s, i - 1 - start
    return wide(s), i - start


@entry(data="const uint8[:]")
def run(arena_address, state, data):
    """(state, number of bytes read) behind `data` (uint8 array); DEAD when it does not survive, and on a fault."""
    m = tables_at(arena_address)
    return run_bytes(m, state, pointer(data), 0, wide(data.size))


@entry(states="const int32[:]", tokens="const int32[:]", out="int32[:]")
def advance(arena_address, vocab_address, states, tokens, out):
    """Fill out[k] with the state behind token tokens[k] from states[k], DEAD when it does not survive. Stops at a
    fault."""
    m, vocab = tables_at(arena_address), words_at(vocab_address)
    for k in range(states.size):
        start, end = token_bytes(vocab, tokens[k])
        out[k] = run_bytes(m, wide(states[k]), vocab, start, end)[0] if start < end else DEAD
        if m.n.fault != Fault.NONE:
            return


@entry
def advance_one(arena_address, vocab_address, state, token):
    """The state behind a token, DEAD when it does not survive, and on a fault."""
    m, vocab = tables_at(arena_address), words_at(vocab_address)
    start, end = token_bytes(vocab, token)
    return run_bytes(m, state, vocab, start, end)[0] if start < end else DEAD


@inner
def token_bytes(vocab, token):
    """(start, end) of the bytes of a token in the packed vocabulary."""
    offsets = vocab[Header.OFFSETS] + token
    return vocab[Header.BYTES] + vocab[offsets], vocab[Header.BYTES] + vocab[offsets + 1]


@entry
def only_byte(arena_address, state):
    """The one byte that may come in a state, -1 when there are several or the text may end. The caller looks for
    faults."""
    m = tables_at(arena_address)
    if m.states[state].accept == 1:
        return -1
    found = -1
    for byte in range(256):
        answer = m.next[state * 256 + byte]
        if answer == UNKNOWN:
            answer = step(m, state, byte)
            if m.n.fault != Fault.NONE:
                return -1
        if answer & STATE_MASK != DEAD:
            if found >= 0:
                return -1
            found = byte
    return found
