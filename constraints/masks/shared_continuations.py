"""Shared continuations: states that differ only in the tail behind all their items, whose masks are made from one
shared mask.

A token in such a state either survives before the tail is reached, which does not depend on the tail; or it completes
what stands before the tail and goes on in the tail. So the mask is that of the state without the tail, plus what
survives from the state of the tail behind the *ends*: the nodes of the vocabulary's tries at which the part before the
tail is complete. The same part, any JSON value or any string, stands at many places of a schema, with another tail at
each.

    number then "}"   =   mask of number,  and below the nodes "0", "1", "12", ... what survives from "}"

Comes in: a state. Goes out: its tail (`common_tail`), the state without it (`without_tail`), and the ends that a walk
has noted (`note_end`, `keep_ends`), kept in `pool`; by_shared_tail.py puts the mask together from them.
"""

from __future__ import annotations

from ..automaton.nodes import EMPTY, NO_BODY, NO_UNLISTED, head_of, sequence
from ..automaton.states import inner_of, intern_state, items_of, state_of, tail_of
from ..automaton.tables import DEAD, END_WORDS, ENDS_WORDS, MAX_ENDS, End, Ends, Fault, Tables, end_at, ends_at
from ..base.ids import BodyId, NodeId, StateId
from ..base.kinds import Kind
from ..numba_support.jit import inner
from ..vocabulary.packed_records import NO_PLACE, Trie
from .loop_context import after_leading_copies, leading_copies

_MAX_HEADS = 12  # before a tail; also how deep one is looked for
_MAX_ITEMS = 64


@inner
def common_tail(m: Tables, s: StateId) -> NodeId:
    """The tail of a frame. Of another state the longest tail with which all its items end; EMPTY when there is none, or
    only one item."""
    if m.states[s].frame != 0:
        return tail_of(m, s)
    start, length = m.states[s].start, m.states[s].length
    if length < 2 or length > _MAX_ITEMS:
        return EMPTY
    first = m.pool[start]
    tail = m.nodes[first].b if m.nodes[first].kind == Kind.SEQ else EMPTY
    for j in range(start + 1, start + length):
        while tail != EMPTY and not ends_with(m, m.pool[j], tail):
            tail = m.nodes[tail].b if m.nodes[tail].kind == Kind.SEQ else EMPTY
    return tail if ends_with(m, first, tail) else EMPTY


@inner
def ends_with(m: Tables, item: NodeId, tail: NodeId) -> bool:
    """Whether a continuation ends with a tail, with at least one and at most _MAX_HEADS parts before it."""
    for _ in range(_MAX_HEADS):
        if m.nodes[item].kind != Kind.SEQ:
            return False
        item = m.nodes[item].b
        if item == tail:
            return True
    return False


@inner
def without_tail(m: Tables, s: StateId, tail: NodeId) -> StateId:
    """The state without its common tail, if that state has been made before; else DEAD: for what stands at one place it
    is not worth it.

    Its body is found from its own items: the tail may begin with the rest of the repetition that gave the state its
    body.
    """
    if m.states[s].frame != 0:
        return inner_of(m, s)
    start, length = m.states[s].start, m.states[s].length
    body, max_chars = NO_BODY, 0
    for j in range(length):
        node, depth = m.pool[start + j], 0
        while node != tail:
            m.work[depth] = m.nodes[node].a
            node, depth = m.nodes[node].b, depth + 1
        depth -= 1
        item = m.work[depth]
        while depth > 0:
            depth -= 1
            item = sequence(m, m.work[depth], item)
        m.items[j] = item
        if m.n.fault != Fault.NONE:
            return DEAD
        unit = m.nodes[head_of(m, item)].body_class
        if unit != NO_BODY and m.nodes[item].kind == Kind.SEQ:
            more = leading_copies(m, m.nodes[item].b, unit)
            if more >= max_chars and more > 0:
                body, max_chars = unit, 1 + more
    num_states = m.n.states
    found = intern_state(m, length, body, max_chars, NO_UNLISTED)
    return found if m.n.states == num_states and m.n.fault == Fault.NONE else DEAD


@inner
def completes_inside(m: Tables, s: StateId, body: BodyId) -> bool:
    """Whether a state can be complete directly behind characters of a body class: its own, or that of the longer state.

    Then its ends are of no use. Tokens inside of its own body are not walked, and those that leave the body only from
    its beginning, so that not all ends are seen; and in any case there are thousands of them.
    """
    if body < 0:
        return False
    start, length = items_of(m, s)
    for j in range(start, start + length):
        item = m.pool[j]
        own = head_of(m, item)
        if m.nodes[own].kind == Kind.CLASS and m.nodes[own].body_class == body:
            rest = after_leading_copies(m, m.nodes[item].b, body) if m.nodes[item].kind == Kind.SEQ else EMPTY
            if rest == EMPTY or m.states[state_of(m, rest)].accept == 1:
                return True
    return False


@inner
def note_end(m: Tables, trie: Trie, node: int) -> None:
    """Note an end, while ends are noted: at this trie node what has been walked is complete, and tokens go on behind
    it."""
    if m.n.notes_ends == 1 and m.n.num_ends <= MAX_ENDS:
        if m.n.num_ends < MAX_ENDS:
            end = m.ends[m.n.num_ends]
            end.trie, end.node, end.token, end.offset = trie.place, node, 0, 0
        m.n.num_ends += 1


@inner
def note_end_inside(m: Tables, token: int, offset: int) -> None:
    """Note an end in the middle of a node of groups. token: its place in the packed vocabulary; offset: bytes of it before the
    end."""
    if m.n.notes_ends == 1 and m.n.num_ends <= MAX_ENDS:
        if m.n.num_ends < MAX_ENDS:
            end = m.ends[m.n.num_ends]
            end.trie, end.node, end.token, end.offset = NO_PLACE, 0, token, offset
        m.n.num_ends += 1


@inner
def begin_ends(m: Tables) -> None:
    """Note ends from now on."""
    m.n.cleared = m.n.kept = m.n.kept_end = m.n.cleared_end = m.n.num_ends = 0
    m.n.notes_ends = 1


@inner
def keep_ends(m: Tables, s: StateId) -> None:
    """Write the ends that have been noted to `pool`, as the ends of the state `s`, unless its ends are known already."""
    count, start = m.n.num_ends, m.n.pool
    m.n.notes_ends = 0
    if m.n.fault != Fault.NONE or are_ends_known(m, s):
        return
    if count > MAX_ENDS:
        m.states[s].has_too_many_ends = 1
        return
    if start + ENDS_WORDS + END_WORDS * count > m.pool_size:
        m.n.fault = Fault.FULL_POOL
        return
    m.n.pool, m.states[s].ends = start + ENDS_WORDS + END_WORDS * count, start
    ends = ends_of(m, s)
    ends.count = count
    ends.cleared, ends.kept = m.n.cleared, m.n.kept
    ends.kept_end, ends.cleared_end = m.n.kept_end, m.n.cleared_end
    for k in range(count):
        noted, kept = m.ends[k], end_of(m, s, k)
        kept.trie, kept.node, kept.token, kept.offset = noted.trie, noted.node, noted.token, noted.offset


@inner
def are_ends_known(m: Tables, s: StateId) -> bool:
    """Whether the ends of a state have been looked for."""
    return m.states[s].ends != 0 or m.states[s].has_too_many_ends == 1


@inner
def ends_of(m: Tables, s: StateId) -> Ends:
    return ends_at(m.pool + m.states[s].ends)


@inner
def end_of(m: Tables, s: StateId, k: int) -> End:
    """The k-th end of a state."""
    return end_at(m.pool + m.states[s].ends + ENDS_WORDS + END_WORDS * k)
