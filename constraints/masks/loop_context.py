"""The context of a state's repetitions: what stands beside them and behind them.

The tables of a body class (char_class_tables.py) say which tokens are made of its characters, and how long they are. Two questions
decide whether they are right for a state that loops on the class. Do nothing but repetitions of the class read its
characters (`is_body_exclusive`)? From which state are the tokens read on that leave the repetition, wherever in it they leave
(`exit_state_of`)?
"""

from __future__ import annotations

from ..automaton.closures import ENDLESS, closure_items, closure_of, make_closure
from ..automaton.determinize import step
from ..automaton.nodes import EMPTY, FAIL, head_of
from ..automaton.states import items_of, plain_items, state_of
from ..automaton.tables import DEAD, STATE_MASK, UNKNOWN, Fault, Tables
from ..base.ids import BodyId, NodeId, StateId
from ..base.kinds import Kind
from ..numba_support.jit import inner
from ..vocabulary.packed_records import ROOT, ROOT_TABLE, ClassTables, Trie, child_of, first_ascii

_FEW = 8  # items of a state that are compared; of one behind a character, where there are more few tokens reach them


@inner
def is_body_exclusive(m: Tables, s: StateId) -> bool:
    """Whether characters of the body class are read by repetitions of it only, and not by what follows those. Kept in
    `state_body_is_exclusive`.

    Then the tokens made of such characters that survive are exactly those of at most `state_max_chars` characters, the
    most that any of the repetitions allows.
    """
    if m.states[s].body_is_exclusive != UNKNOWN:
        return m.states[s].body_is_exclusive == 1
    body, (start, length) = m.states[s].body_class, items_of(m, s)
    answer, own = m.n.fault == Fault.NONE, FAIL
    for j in range(start, start + length):
        item = m.pool[j]
        if m.nodes[head_of(m, item)].body_class == body and m.nodes[head_of(m, item)].kind == Kind.CLASS:
            answer = answer and (own == FAIL or own == head_of(m, item)) and m.nodes[item].kind == Kind.SEQ
            own = head_of(m, item)
    answer = answer and own != FAIL
    for j in range(start, start + length):
        item = m.pool[j]
        if answer and item != EMPTY and head_of(m, item) != own:
            answer = not overlaps(m, own, head_of(m, item))
        elif answer and item != EMPTY:
            rest = m.nodes[item].b
            answer = 1 + leading_copies(m, rest, body) <= m.states[s].max_chars
            answer = answer and not begins_alike(m, own, after_leading_copies(m, rest, body))
    if m.n.fault == Fault.NONE:
        m.states[s].body_is_exclusive = 1 if answer else 0
    return answer


@inner
def leading_copies(m: Tables, continuation: NodeId, body: BodyId) -> int:
    """The most characters that a repetition of a body class reads at the beginning of a continuation; 0 if it begins
    with no such repetition."""
    head = head_of(m, continuation)
    if m.nodes[head].kind != Kind.REPEAT or m.nodes[m.nodes[head].a].body_class != body:
        return 0
    return ENDLESS - 1 if m.nodes[head].c < 0 else m.nodes[head].c


@inner
def after_leading_copies(m: Tables, continuation: NodeId, body: BodyId) -> NodeId:
    """What comes behind the repetition of a body class with which a continuation begins; the continuation itself if
    there is none."""
    if leading_copies(m, continuation, body) == 0:
        return continuation
    return m.nodes[continuation].b if m.nodes[continuation].kind == Kind.SEQ else EMPTY


@inner
def begins_alike(m: Tables, own: NodeId, continuation: NodeId) -> bool:
    """Whether a continuation can begin with a byte that begins characters of the class `own`. True on a fault."""
    if m.nodes[head_of(m, continuation)].kind == Kind.LITERAL:
        return overlaps(m, own, head_of(m, continuation))
    if m.n.graph == 1:
        return state_overlaps(m, own, state_of(m, continuation))
    if m.nodes[continuation].closure == 0:
        make_closure(m, continuation, 0)
        if m.n.fault != Fault.NONE:
            return True
    items = closure_items(m, continuation)
    for j in range(closure_of(m, continuation).length):
        if items[j] != EMPTY and overlaps(m, own, head_of(m, items[j])):
            return True
    return False


@inner
def state_overlaps(m: Tables, own: NodeId, state: StateId) -> bool:
    """Whether a state can read a byte that begins characters of the class `own`. True on a fault."""
    start, length = items_of(m, state)
    for j in range(start, start + length):
        if m.pool[j] != EMPTY and overlaps(m, own, head_of(m, m.pool[j])):
            return True
    return m.n.fault != Fault.NONE


@inner
def overlaps(m: Tables, own: NodeId, node: NodeId) -> bool:
    """Whether the class `own` and another leaf can begin with the same byte."""
    for e in range(m.nodes[own].a, m.nodes[own].a + m.nodes[own].b):
        low, high = m.edge_low[e], m.edge_high[e]
        if m.nodes[node].kind == Kind.LITERAL:
            if low <= m.text[m.nodes[node].a] <= high:
                return True
        elif m.nodes[node].kind == Kind.CLASS:
            for f in range(m.nodes[node].a, m.nodes[node].a + m.nodes[node].b):
                if m.edge_low[f] <= high and low <= m.edge_high[f]:
                    return True
        else:
            return True
    return False


@inner
def exit_state_of(m: Tables, trie: Trie, state: StateId) -> tuple[StateId, int]:
    """(exit state, n): a suffix of the trie that leaves the body of `state` behind n characters or more is read as from
    the exit state, wherever in the body it begins. (DEAD, 0) where there is no such state, and on a fault. For states
    where `is_body_exclusive`.

    So what is behind each repetition has to read the suffixes as the state itself does (any of them may be left later,
    when the others have come to their ends), and the longest repetition must have no lower bound that is still to be
    reached. If there is only one repetition, and it has a lower bound or cannot be left before a character, the state
    must not read the suffixes at all.
    """
    body, max_chars, is_left_anywhere = m.states[state].body_class, m.states[state].max_chars, False
    start, length = items_of(m, state)
    for j in range(start, start + length):
        item = m.pool[j]
        own = head_of(m, item)
        if m.nodes[own].kind != Kind.CLASS or m.nodes[own].body_class != body:
            continue
        rest = m.nodes[item].b
        more = leading_copies(m, rest, body)
        following = state_of(m, after_leading_copies(m, rest, body))
        low = 0 if more == 0 else m.nodes[head_of(m, rest)].b
        is_alike = low == 0 and leave_alike(m, trie, state, own, following)
        is_short = low > 0 or plain_items(m, following)[1] <= _FEW
        if not is_alike and is_short and more + 1 == max_chars and is_only_way(m, state, own):
            is_closed = leave_alike(m, trie, state, own, DEAD)
            return (following, 1 + low) if is_closed else (DEAD, 0)
        if not is_alike and (low == 0 or not leave_alike(m, trie, state, own, following)):
            return DEAD, 0
        is_left_anywhere = is_left_anywhere or (more + 1 == max_chars and low == 0)
    return (state if is_left_anywhere else DEAD), 0


@inner
def is_loop(m: Tables, tables: ClassTables, state: StateId) -> bool:
    """Whether all characters of a state's body lead back to the state. For states where `is_body_exclusive`: there one character
    tells. False where none of them is ASCII, and on a fault."""
    first = first_ascii(tables)
    if m.states[state].max_chars < ENDLESS or first == 0x80:
        return False
    after = m.next[state * 256 + first]
    if after == UNKNOWN:
        after = step(m, state, first)
    return m.n.fault == Fault.NONE and after & STATE_MASK == state


@inner
def is_only_way(m: Tables, state: StateId, own: NodeId) -> bool:
    """Whether only one item of a state begins with the leaf `own`."""
    start, length = items_of(m, state)
    count = 0
    for j in range(start, start + length):
        count += 1 if head_of(m, m.pool[j]) == own else 0
    return count == 1


@inner
def leave_alike(m: Tables, trie: Trie, state: StateId, own: NodeId, following: StateId) -> bool:
    """Whether two states go to the same states on the first bytes of the suffixes in a trie, which the leaf `own` does
    not read.

    False on a fault.
    """
    if have_same_ways(m, trie, state, following, own) and have_same_ways(m, trie, following, state, own):
        return True
    return begin_alike(m, trie, state, following)


@inner
def have_same_ways(m: Tables, trie: Trie, state: StateId, other: StateId, own: NodeId) -> bool:
    """Whether all items of `state` are items of `other`, apart from those that begin with `own`, or with a literal that
    no suffix begins with. False also where it is not looked at: for frames and for many items."""
    start, length = m.states[state].start, m.states[state].length
    end = m.states[other].start + m.states[other].length
    if m.states[state].frame != 0 or m.states[other].frame != 0 or length > _FEW:
        return False
    for j in range(start, start + length):
        item, k = m.pool[j], m.states[other].start
        node = head_of(m, item)
        if node == own:
            continue
        if m.nodes[node].kind == Kind.LITERAL and child_of(trie, ROOT, m.text[m.nodes[node].a]) < 0:
            continue
        while k < end and m.pool[k] < item:  # they are sorted
            k += 1
        if k == end or m.pool[k] != item:
            return False
    return True


@inner
def begin_alike(m: Tables, trie: Trie, state: StateId, other: StateId) -> bool:
    """Whether two states go to the same states on the first bytes of a trie. False on a fault."""
    children = trie.children + 256 * ROOT_TABLE
    for byte in range(256):
        if children[byte] == 0:
            continue
        s, after = m.next[state * 256 + byte], m.next[other * 256 + byte]
        if s == UNKNOWN:
            s = step(m, state, byte)
        if after == UNKNOWN:
            after = step(m, other, byte)
        if s != after or m.n.fault != Fault.NONE:
            return False
    return True
