"""The mask walk: it finds the tokens that may come next in a state.

Comes in: a state, and a byte trie of the vocabulary (packed_vocabulary.py). Goes out: *edits* of a mask row (mask_rows.py),
ranges of tokens that survive. A token *survives* when the automaton can read all of its bytes.

The same idea in seven versions, from obvious to fast; tests hold them equal:

1. Try every token byte by byte (`end_states`, which also tells where each token leads).
2. Walk the byte trie depth first (`walk`): a dead byte skips a whole subtree, and a shared prefix is read once.
3. Do not make states for the bytes of a literal (`walk_text`, `walk_literals`): every prefix of it survives.
4. Use *bodies*. A state that loops on a class of characters, such as the inside of a JSON string, accepts every token made
   of them. Subtrees of such characters are taken whole (`Shape` in packed_records.py). For classes that are met often the
   bits of those tokens are known, by length in characters (`BodyClass.slices`), and only the *residual* trie of the others is
   walked.
5. Walk words apart from what reads any letters (apart.py).
6. Do not make a state for the last byte of a token, if there is no longer token (`reads_plainly`).
7. Walk a trie in which groups of bytes are one, such as all small letters (byte_classes.py), where states read a group alike; look
   at the single tokens where they do not (`walk_each`).

Why the slices are exact: every string of at most `max_chars` characters of the class, the last one possibly cut short,
survives, because the repetition itself is in the state. Longer ones are dead if nothing else in the state can read such
characters (`is_body_exclusive`); and when `max_chars` is at least the longest token of the class, there are none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..automaton.determinize import step
from ..automaton.nodes import EMPTY, NO_BODY, NO_UNLISTED, head_of, wide
from ..automaton.states import (
    after_text,
    framed,
    intern_state,
    items_of,
    plain_items,
    state_of,
    tail_of,
)
from ..automaton.tables import DEAD, STATE_BITS, STATE_MASK, UNKNOWN, Fault, Tables, tables_at
from ..base.ids import NodeId, StateId, TokenId
from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import entry, inner
from ..numba_support.record_access import pointer
from ..numba_support.records import Words
from ..vocabulary.packed_records import (
    FIRST_LEAD,
    NO_HEIGHT,
    QUOTE,
    ROOT,
    ROOT_TABLE,
    Shape,
    Trie,
    Vocab,
    below,
    child_of,
    ending_at,
    is_inside,
    token_bytes,
    trie_of,
    vocab_at,
)
from .apart import WORTH_APART, put_apart, put_aside, reads_alike
from .mask_rows import set_tokens
from .multibyte_step import leap
from .shared_continuations import note_end, note_end_inside
from .uniform_transitions import survives

WORTH_A_UNIFORM = 32  # nodes of a subtree for which the run of a state is found out
_SEVERAL = 3  # literals that are walked each for itself


@inner
def next_child(m: Tables, trie: Trie, i: int, state: StateId, table: int, end: int) -> int:
    """Where a walk goes on behind a dead node i: at its next sibling that `state` may read, or at `end` when there is
    none. Without a table of children (table: 0), at the next sibling."""
    if table == 0:
        return trie.nodes[i].skip
    row, children = m.next + state * 256, trie.children + 256 * table
    for byte in range(trie.nodes[i].byte + 1, 256):
        if row[byte] != DEAD and children[byte] != 0:
            return children[byte] - 1
    return end


@inner
def walk(m: Tables, vocab: Vocab, rows: Words, trie: Trie, top: int, state: StateId) -> int:
    """Note the tokens below a node of a trie that survive from `state`, as edits of the row. top: the node, or ROOT.
    Returns the number of nodes visited. On a fault some tokens are missing."""
    m.n.num_apart = visited = at = 0
    if top != ROOT or trie.is_grouped or not put_apart(m, vocab, rows, trie, top, state):
        put_aside(m, trie.place, top, state)
    while at < m.n.num_apart and m.n.fault == Fault.NONE:
        part = m.apart[at]
        visited += walk_part(m, vocab, rows, trie_of(vocab, part.trie), part.node, part.state, state)
        at += 1
    return visited


@inner
def walk_part(m: Tables, vocab: Vocab, rows: Words, trie: Trie, top: int, state: StateId, of: StateId) -> int:
    """`walk`, but for what is put aside on the way. of: the state from which the whole walk is, which gets the events."""
    i, n = begin_walk(m, trie, top, state)
    visited = events = 0
    if m.states[state].literal_left > 0 and not trie.is_grouped:
        i = walk_text(m, rows, trie, top, state)
    pending_start = pending_end = 0  # tokens of the order that live, not yet set
    while i < n and m.n.fault == Fault.NONE:
        visited += 1
        node = trie.nodes[i]
        d, byte = node.depth, node.byte
        above = m.path[d - 1]
        before = above.state
        if before == DEAD:
            i = above.after
            continue
        if trie.is_grouped and trie.group_ends[byte] > byte + 1 and not reads_alike(m, before, byte, trie.group_ends[byte]):
            events |= walk_each(m, vocab, rows, trie, i, before)
            i = node.skip
            continue
        start, end, skip = node.first, trie.nodes[i + 1].first, node.skip
        has_shape, begins = trie.has_shapes and skip > i + 1, byte >= FIRST_LEAD
        if has_shape and begins and not trie.is_grouped and is_within(m, trie.shapes[i], before, skip - i):
            end, i = trie.nodes[skip].first, skip
        else:
            s = m.next[before * 256 + byte]
            is_last = s == UNKNOWN and skip == i + 1 and reads_plainly(m, before, byte)
            if s == UNKNOWN and not is_last:
                s = step(m, before, byte)
                if m.n.fault != Fault.NONE:
                    break
            if s == DEAD:
                i = next_child(m, trie, i, before, above.table, above.after)
                continue
            events |= 1 if is_last else 1 << (s >> STATE_BITS)
            s &= STATE_MASK
            if s == DEAD:
                i = skip
                continue
            if is_last:
                i = skip
            elif has_shape and not begins and is_within(m, trie.shapes[i], s, skip - i):
                end, i = trie.nodes[skip].first, skip
            elif m.states[s].literal_left > 0 and skip > i + 1 and not trie.is_grouped:
                m.path[d].state, m.path[d].after = DEAD, skip
                i = walk_text(m, rows, trie, i, s)
            else:
                if m.states[s].accept == 1 and skip > i + 1:
                    note_end(m, trie, i)
                if trie.nodes[skip].first - end > WORTH_APART and put_apart(m, vocab, rows, trie, i, s):
                    i = skip
                else:
                    here = m.path[d]
                    here.state, here.table, here.after = s, node.table, skip
                    i += 1
        if start != end:
            if start != pending_end:
                set_tokens(rows, trie.order + pending_start, trie.order + pending_end)
                pending_start = start
            pending_end = end
    set_tokens(rows, trie.order + pending_start, trie.order + pending_end)
    m.states[of].events |= events
    m.n.visited += visited
    return visited


@inner
def begin_walk(m: Tables, trie: Trie, top: int, state: StateId) -> tuple[int, int]:
    """(first node, node behind the last) of what lies below a node, from `state` on."""
    if top == ROOT:
        depth, table, end = 0, 0 if trie.is_grouped else ROOT_TABLE, trie.num_nodes
    else:
        depth, table, end = trie.nodes[top].depth, trie.nodes[top].table, trie.nodes[top].skip
    here = m.path[depth]
    here.state, here.table, here.after = state, table, end
    return top + 1, end


@inner
def reads_plainly(m: Tables, state: StateId, byte: int) -> bool:
    """Whether a class or a literal reads a byte from a state, and passes no event: what ends with this byte survives, and needs no
    state behind it. False where it takes the transition to find out."""
    start, length = plain_items(m, state)
    is_read = False
    for j in range(start, start + length):
        item = m.pool[j]
        head = m.nodes[head_of(m, item)]
        if head.kind == Kind.LITERAL:
            is_read = is_read or m.text[head.a] == byte
        elif head.kind == Kind.CLASS:
            for e in range(head.a, head.a + head.b):
                if m.edge_low[e] <= byte <= m.edge_high[e]:
                    if head.c != 0 or m.nodes[m.edge_next[e]].size >= INFINITE:
                        return False
                    is_read = True
        elif item != EMPTY:
            return False
    return is_read


@inner
def walk_each(m: Tables, vocab: Vocab, rows: Words, trie: Trie, i: int, state: StateId) -> int:
    """Note those tokens at node i of a trie by groups, and below it, that survive, each looked at by itself. state: the
    one before the node's byte. Returns the events that the tokens can pass, as bits."""
    first, last = below(trie, i)
    offset, events = trie.nodes[i].depth - 1, 0
    pending_start = pending_end = 0
    for place in range(first, last):
        start, end = token_bytes(vocab, vocab.array[place])
        s, at = state, start + offset
        while at < end and s != DEAD and m.n.fault == Fault.NONE:
            answer = m.next[s * 256 + vocab.text[at]]
            if answer == UNKNOWN and at + 1 == end and reads_plainly(m, s, vocab.text[at]):
                break  # it survives
            if answer == UNKNOWN:
                answer = step(m, s, vocab.text[at])
            events |= 1 << (answer >> STATE_BITS)
            s, at = answer & STATE_MASK, at + 1
            if m.states[s].accept == 1 and at < end:
                note_end_inside(m, place, at - start)
        if s != DEAD:
            if place != pending_end:
                set_tokens(rows, pending_start, pending_end)
                pending_start = place
            pending_end = place + 1
    set_tokens(rows, pending_start, pending_end)
    return events


@inner
def walk_rest(m: Tables, vocab: Vocab, rows: Words, place: int, offset: int, state: StateId) -> None:
    """Note the token at a place if it survives. state: the one before the token's byte number `offset`."""
    start, end = token_bytes(vocab, vocab.array[place])
    s, at, events = state, start + offset, 0
    while at < end and s != DEAD and m.n.fault == Fault.NONE:
        answer = m.next[s * 256 + vocab.text[at]]
        if answer == UNKNOWN:
            answer = step(m, s, vocab.text[at])
        events |= 1 << (answer >> STATE_BITS)
        s, at = answer & STATE_MASK, at + 1
    if s != DEAD:
        set_tokens(rows, place, place + 1)
    m.states[state].events |= events


@inner
def is_within(m: Tables, shape: Shape, s: StateId, size: int) -> bool:
    """Whether everything below a trie node (`size` nodes) survives from the state `s`, because it stays inside the
    state's body, or inside what an intersection has for one. In a walk that begins inside a JSON string, tokens with
    control characters are not looked at."""
    body, first = m.states[s].body_class, m.n.in_string & (1 - shape.is_quoted)
    if body >= 0:
        is_low = shape.height <= min(m.states[s].max_chars, NO_HEIGHT - 1)
        return is_low and is_inside(shape.first_bytes, m.classes[body].first_bytes, first)
    if (
        m.states[s].has_no_product == 1
        or shape.height >= NO_HEIGHT
        or (size < WORTH_A_UNIFORM and m.states[s].uniform == 0)
    ):
        return False
    return survives(m, shape, s, first)


@inner
def walk_text(m: Tables, rows: Words, trie: Trie, node: int, s: StateId) -> int:
    """Note the tokens below a trie node, or ROOT, that spell the literal which is all that the state `s` can read.

    Returns the node where the walk goes on: behind the literal, else behind the subtree. Writes a `Path` for
    every node on the way, so that the walk leaves the subtree when it has done with what is behind the literal.
    """
    text, left = m.text + m.states[s].literal, m.states[s].literal_left
    out, depth = (trie.nodes[node].skip, trie.nodes[node].depth) if node >= 0 else (trie.num_nodes, 0)
    m.path[depth].state, m.path[depth].after = DEAD, out
    for k in range(left):
        node = child_of(trie, node, text[k])
        if node < 0:
            return out
        start, end = ending_at(trie, node)
        set_tokens(rows, start, end)
        depth += 1
        m.path[depth].state, m.path[depth].after = DEAD, out
    behind = trie.nodes[node].skip
    if behind == node + 1:
        return out
    s = after_text(m, s, left)
    if m.n.fault != Fault.NONE:
        return out
    begins = trie.nodes[node].byte >= FIRST_LEAD
    if trie.has_shapes and not begins and is_within(m, trie.shapes[node], s, behind - node):
        start, end = below(trie, node)
        set_tokens(rows, start, end)
        return out
    if m.states[s].accept == 1:
        note_end(m, trie, node)
    here = m.path[depth]
    here.state, here.table, here.after = s, trie.nodes[node].table, behind
    return node + 1


@inner
def without_literals(m: Tables, state: StateId) -> StateId:
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
    return intern_state(m, count, NO_BODY, 0, NO_UNLISTED)


@inner
def walk_literals(m: Tables, vocab: Vocab, rows: Words, state: StateId, are_noted: bool) -> None:
    """Note the tokens that survive from a state along its literals. Each literal is walked by itself; otherwise a state
    would be made for every byte of each of them. On a fault some tokens are missing.

    are_noted: whether the tokens that end before the first quote are noted already.
    """
    start, length = plain_items(m, state)
    tail = tail_of(m, state)
    for j in range(start, start + length):
        item = m.pool[j]
        if m.nodes[head_of(m, item)].kind == Kind.LITERAL and m.n.fault == Fault.NONE:
            m.states[state].events |= walk_literal(m, vocab, rows, item, tail, not are_noted)


@inner
def walk_literal(m: Tables, vocab: Vocab, rows: Words, item: NodeId, tail: NodeId, is_noted: bool) -> int:
    """Note the tokens that survive along one item that begins with a literal, with `tail` behind it (EMPTY for none).
    Returns the events that tokens can pass behind the literal, as bits.

    is_noted: False if the tokens that end before its first quote are noted already.
    """
    trie, literal, node = vocab.trie, m.nodes[head_of(m, item)], ROOT
    text = m.text + literal.a
    for k in range(literal.b):
        node = child_of(trie, node, text[k])
        if node < 0:
            return 0
        is_noted = is_noted or text[k] == QUOTE
        if is_noted:
            start, end = ending_at(trie, node)
            set_tokens(rows, start, end)
    if trie.nodes[node].skip == node + 1:
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


@entry(byte="const uint8[:]", depth="const int32[:]", skip="const int32[:]", first="const int32[:]", ends="int32[:]")
def end_states(
    arena_address: int, byte: NDArray[np.uint8], depth: NDArray[np.int32], skip: NDArray[np.int32],
    first: NDArray[np.int32], max_depth: int, state: StateId, ends: NDArray[np.int32],
) -> int:
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
def run_bytes(m: Tables, s: StateId, data: Words, start: int, end: int) -> tuple[StateId, int]:
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
def run(arena_address: int, state: StateId, data: NDArray[np.uint8]) -> tuple[StateId, int]:
    """(state, number of bytes read) behind `data` (uint8 array); DEAD when it does not survive, and on a fault."""
    m = tables_at(arena_address)
    return run_bytes(m, state, pointer(data), 0, wide(data.size))


@entry(states="const int32[:]", tokens="const int32[:]", out="int32[:]")
def advance(
    arena_address: int, vocab_address: int, states: NDArray[np.int32], tokens: NDArray[np.int32], out: NDArray[np.int32]
) -> None:
    """Fill out[k] with the state behind token tokens[k] from states[k], DEAD when it does not survive. Stops at a
    fault."""
    m, vocab = tables_at(arena_address), vocab_at(vocab_address)
    for k in range(states.size):
        start, end = token_bytes(vocab, tokens[k])
        out[k] = run_bytes(m, wide(states[k]), vocab.text, start, end)[0] if start < end else DEAD
        if m.n.fault != Fault.NONE:
            return


@entry
def advance_one(arena_address: int, vocab_address: int, state: StateId, token: TokenId) -> StateId:
    """The state behind a token, DEAD when it does not survive, and on a fault."""
    m, vocab = tables_at(arena_address), vocab_at(vocab_address)
    start, end = token_bytes(vocab, token)
    return run_bytes(m, state, vocab.text, start, end)[0] if start < end else DEAD


@entry
def only_byte(arena_address: int, state: StateId) -> int:
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
