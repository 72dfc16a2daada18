"""The context of a state's repetitions: what stands beside them and behind them.

The tables of a body class (char_class_tables.py) say which tokens are made of its characters, and how long they are. Two questions
decide whether they are right for a state that loops on the class. Do nothing but repetitions of the class read its
characters (`is_body_exclusive`)? From which state are the tokens read on that leave the repetition, wherever in it they leave
(`exit_state_of`)?
"""

from __future__ import annotations

from ..automaton.closures import CLOSURE_HEADER, ENDLESS, make_closure
from ..automaton.determinize import step
from ..automaton.nodes import EMPTY, head_of, wide
from ..automaton.states import items_of, plain_items, state_of
from ..automaton.tables import DEAD, FRAMED, REC, STATE_MASK, UNKNOWN, Counter, Fault
from ..base.kinds import Kind
from ..numba_support.jit import inner
from ..vocabulary.packed_vocabulary import TrieRecord, child_of, first_ascii

_FEW = 8  # items of a state that are compared; of one behind a character, where there are more few tokens reach them


@inner
def is_body_exclusive(arena, tables, s):
    """Whether characters of the body class are read by repetitions of it only, and not by what follows those. Kept in
    `state_body_is_exclusive`.

    Then the tokens made of such characters that survive are exactly those of at most `state_max_chars` characters, the
    most that any of the repetitions allows.
    """
    if arena[tables.state_body_is_exclusive + REC * s] != UNKNOWN:
        return arena[tables.state_body_is_exclusive + REC * s] == 1
    body, (start, length) = wide(arena[tables.state_body_class + REC * s]), items_of(arena, tables, s)
    answer, own = arena[tables.n + Counter.FAULT] == Fault.NONE, wide(-1)
    for j in range(start, start + length):
        item = wide(arena[tables.pool + j])
        if (
            arena[tables.body_class + REC * head_of(arena, tables, item)] == body
            and arena[tables.kind + REC * head_of(arena, tables, item)] == Kind.CLASS
        ):
            answer = answer and (own < 0 or own == head_of(arena, tables, item)) and arena[tables.kind + REC * item] == Kind.SEQ
            own = head_of(arena, tables, item)
    answer = answer and own >= 0
    for j in range(start, start + length):
        item = wide(arena[tables.pool + j])
        if answer and item != EMPTY and head_of(arena, tables, item) != own:
            answer = not overlaps(arena, tables, own, head_of(arena, tables, item))
        elif answer and item != EMPTY:
            rest = wide(arena[tables.b + REC * item])
            answer = 1 + leading_copies(arena, tables, rest, body) <= arena[tables.state_max_chars + REC * s]
            answer = answer and not begins_alike(arena, tables, own, after_leading_copies(arena, tables, rest, body))
    if arena[tables.n + Counter.FAULT] == Fault.NONE:
        arena[tables.state_body_is_exclusive + REC * s] = 1 if answer else 0
    return answer


@inner
def leading_copies(arena, tables, continuation, body):
    """The most characters that a repetition of a body class reads at the beginning of a continuation; 0 if it begins
    with no such repetition."""
    head = head_of(arena, tables, continuation)
    if arena[tables.kind + REC * head] != Kind.REPEAT or arena[tables.body_class + REC * arena[tables.a + REC * head]] != body:
        return wide(0)
    return wide(ENDLESS - 1) if arena[tables.c + REC * head] < 0 else wide(arena[tables.c + REC * head])


@inner
def after_leading_copies(arena, tables, continuation, body):
    """What comes behind the repetition of a body class with which a continuation begins; the continuation itself if
    there is none."""
    if leading_copies(arena, tables, continuation, body) == 0:
        return continuation
    return wide(arena[tables.b + REC * continuation]) if arena[tables.kind + REC * continuation] == Kind.SEQ else wide(EMPTY)


@inner
def begins_alike(arena, tables, own, continuation):
    """Whether a continuation can begin with a byte that begins characters of the class `own`. True on a fault."""
    if arena[tables.kind + REC * head_of(arena, tables, continuation)] == Kind.LITERAL:
        return overlaps(arena, tables, own, head_of(arena, tables, continuation))
    if arena[tables.closure + REC * continuation] == 0:
        make_closure(arena, tables, continuation, wide(0))
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return True
    start = wide(arena[tables.closure + REC * continuation])
    for j in range(start + CLOSURE_HEADER, start + CLOSURE_HEADER + wide(arena[tables.pool + start])):
        if arena[tables.pool + j] != EMPTY and overlaps(arena, tables, own, head_of(arena, tables, wide(arena[tables.pool + j]))):
            return True
    return False


@inner
def overlaps(arena, tables, own, node):
    """Whether the class `own` and another leaf can begin with the same byte."""
    for e in range(arena[tables.a + REC * own], arena[tables.a + REC * own] + arena[tables.b + REC * own]):
        low, high = arena[tables.edge_low + e], arena[tables.edge_high + e]
        if arena[tables.kind + REC * node] == Kind.LITERAL:
            if low <= arena[tables.text + arena[tables.a + REC * node]] <= high:
                return True
        elif arena[tables.kind + REC * node] == Kind.CLASS:
            for f in range(arena[tables.a + REC * node], arena[tables.a + REC * node] + arena[tables.b + REC * node]):
                if arena[tables.edge_low + f] <= high and low <= arena[tables.edge_high + f]:
                    return True
        else:
            return True
    return False


@inner
def exit_state_of(arena, tables, vocab, trie, state):
    """(exit state, n): a suffix of the trie that leaves the body of `state` behind n characters or more is read as from
    the exit state, wherever in the body it begins. (DEAD, 0) where there is no such state, and on a fault. For states
    where `is_body_exclusive`.

    So what is behind each repetition has to read the suffixes as the state itself does (any of them may be left later,
    when the others have come to their ends), and the longest repetition must have no lower bound that is still to be
    reached. If there is only one repetition, and it has a lower bound or cannot be left before a character, the state
    must not read the suffixes at all.
    """
    body, max_chars, is_left_anywhere = (
        wide(arena[tables.state_body_class + REC * state]),
        wide(arena[tables.state_max_chars + REC * state]),
        False,
    )
    start, length = items_of(arena, tables, state)
    for j in range(start, start + length):
        item = wide(arena[tables.pool + j])
        own = head_of(arena, tables, item)
        if arena[tables.kind + REC * own] != Kind.CLASS or arena[tables.body_class + REC * own] != body:
            continue
        rest = wide(arena[tables.b + REC * item])
        more = leading_copies(arena, tables, rest, body)
        following = state_of(arena, tables, after_leading_copies(arena, tables, rest, body))
        low = wide(0) if more == 0 else wide(arena[tables.b + REC * head_of(arena, tables, rest)])
        is_alike = low == 0 and leave_alike(arena, tables, vocab, trie, state, own, following)
        is_short = low > 0 or plain_items(arena, tables, following)[1] <= _FEW
        if not is_alike and is_short and more + 1 == max_chars and is_only_way(arena, tables, state, own):
            is_closed = leave_alike(arena, tables, vocab, trie, state, own, wide(DEAD))
            return (following, 1 + low) if is_closed else (wide(DEAD), wide(0))
        if not is_alike and (low == 0 or not leave_alike(arena, tables, vocab, trie, state, own, following)):
            return wide(DEAD), wide(0)
        is_left_anywhere = is_left_anywhere or (more + 1 == max_chars and low == 0)
    return (wide(state) if is_left_anywhere else wide(DEAD)), wide(0)


@inner
def is_loop(arena, tables, vocab, class_tables, state):
    """Whether all characters of a state's body lead back to the state. For states where `is_body_exclusive`: there one character
    tells. False where none of them is ASCII, and on a fault."""
    first = first_ascii(vocab, class_tables)
    if arena[tables.state_max_chars + REC * state] < ENDLESS or first == 0x80:
        return False
    after = arena[tables.next + state * 256 + first]
    if after == UNKNOWN:
        after = step(arena, tables, wide(state), first)
    return arena[tables.n + Counter.FAULT] == Fault.NONE and after & STATE_MASK == state


@inner
def is_only_way(arena, tables, state, own):
    """Whether only one item of a state begins with the leaf `own`."""
    start, length = items_of(arena, tables, state)
    count = 0
    for j in range(start, start + length):
        count += 1 if head_of(arena, tables, wide(arena[tables.pool + j])) == own else 0
    return count == 1


@inner
def leave_alike(arena, tables, vocab, trie, state, own, following):
    """Whether two states go to the same states on the first bytes of the suffixes in a trie, which the leaf `own` does
    not read.

    False on a fault.
    """
    if have_same_ways(arena, tables, vocab, trie, state, following, own) and have_same_ways(
        arena, tables, vocab, trie, following, state, own
    ):
        return True
    return begin_alike(arena, tables, vocab, trie, state, following)


@inner
def have_same_ways(arena, tables, vocab, trie, state, other, own):
    """Whether all items of `state` are items of `other`, apart from those that begin with `own`, or with a literal that
    no suffix begins with. False also where it is not looked at: for frames and for many items."""
    start, length = wide(arena[tables.state_start + REC * state]), wide(arena[tables.state_length + REC * state])
    end = wide(arena[tables.state_start + REC * other]) + wide(arena[tables.state_length + REC * other])
    if length == FRAMED or arena[tables.state_length + REC * other] == FRAMED or length > _FEW:
        return False
    for j in range(start, start + length):
        item, k = wide(arena[tables.pool + j]), wide(arena[tables.state_start + REC * other])
        node = head_of(arena, tables, item)
        if node == own:
            continue
        if (
            arena[tables.kind + REC * node] == Kind.LITERAL
            and child_of(vocab, trie, wide(-1), arena[tables.text + arena[tables.a + REC * node]]) < 0
        ):
            continue
        while k < end and arena[tables.pool + k] < item:  # they are sorted
            k += 1
        if k == end or arena[tables.pool + k] != item:
            return False
    return True


@inner
def begin_alike(arena, tables, vocab, trie, state, other):
    """Whether two states go to the same states on the first bytes of a trie. False on a fault."""
    children = wide(vocab[trie + TrieRecord.CHILDREN]) + 256  # of the root
    for byte in range(256):
        if vocab[children + byte] == 0:
            continue
        s, after = arena[tables.next + state * 256 + byte], arena[tables.next + other * 256 + byte]
        if s == UNKNOWN:
            s = step(arena, tables, wide(state), wide(byte))
        if after == UNKNOWN:
            after = step(arena, tables, wide(other), wide(byte))
        if s != after or arena[tables.n + Counter.FAULT] != Fault.NONE:
            return False
    return True
